// The largest c |x|^2 and c |y|^2 of all rows, as they count against the limit, as bits of float64, which are ordered as
// numbers are, with NaN above all: so the order of threads does not matter; and whether points were moved to a centre.
// Part of a source whose squares are expanded.
#define SEVERAL 4
extern "C" __global__ void __launch_bounds__(256) measure(
    const __grid_constant__ Nest<u64, OPERANDS> batches, const __grid_constant__ Inputs in,
    const __grid_constant__ Shape shape, u64* measured) {
    __shared__ u64 most[2];
    if (threadIdx.x < 2) most[threadIdx.x] = 0;
    __syncthreads();
    u64 own[2] = {0, 0}, at[OPERANDS];
    bool moved = false;
    i64 all = shape.m + shape.n, step = (i64)gridDim.x * 256, first = (i64)blockIdx.x * 256 + threadIdx.x;
    for (u32 batch = blockIdx.y; batch < shape.batches; batch += gridDim.y) {
        Once p;
        locate(batches, batch, at);
        once(in, at, p);
        find_centre(in, at, p, shape);
        // What norms count for: more where less of the limit is there.
        const f64 count = share(p) < 1 ? (f64)ERROR_ABOUT / ERROR : 1;
        moved = moved || count > 1;
        // Some rows at once, so that memory is not waited for one by one.
        for (i64 k = first; k < all; k += SEVERAL * step) {
            f64 norm[SEVERAL];
            i64 row[SEVERAL];
            EACH(u, SEVERAL) {
                // Beyond the last one is that again.
                row[u] = k + u * step < all ? k + u * step : all - 1;
                OfI x;
                OfJ y;
                if (row[u] < shape.m) {
                    of_i(in, at, p, row[u], x);
                    about(p, x);
                    norm[u] = x.norm;
                } else {
                    of_j(in, at, p, row[u] - shape.m, y);
                    norm[u] = y.norm;
                }
            }
            EACH(u, SEVERAL) {
                u64 bits = (u64)__double_as_longlong(fabs(norm[u] * count));
                EACH(side, 2) if ((row[u] < shape.m) == (side == 0) && own[side] < bits) own[side] = bits;
            }
        }
        // The next centre is where this one was.
        __syncthreads();
    }
    atomicMax(&most[0], own[0]);
    atomicMax(&most[1], own[1]);
    __syncthreads();
    if (threadIdx.x < 2) atomicMax(&measured[threadIdx.x], most[threadIdx.x]);
    if (threadIdx.x == 0 && moved) atomicMax(&measured[3], (u64)1);
}
