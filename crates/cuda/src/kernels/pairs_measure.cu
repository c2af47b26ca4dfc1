// The largest c |x|^2 and c |y|^2 of all rows, as bits of float64, which are ordered as numbers are,
// with NaN above all: so the order of threads does not matter. Part of a source whose squares are
// expanded.
#define SEVERAL 4
extern "C" __global__ void __launch_bounds__(256) measure(
    const __grid_constant__ Nest<u64, OPERANDS> batches, const __grid_constant__ Inputs in,
    const __grid_constant__ Shape shape, u64* measured) {
    __shared__ u64 most[2];
    if (threadIdx.x < 2) most[threadIdx.x] = 0;
    __syncthreads();
    u64 own[2] = {0, 0}, at[OPERANDS], all = shape.batches * (u64)(shape.m + shape.n);
    Once p;
    locate(batches, (u64)0, at);
    once(in, at, p);
    u64 step = (u64)gridDim.x * 256, first = (u64)blockIdx.x * 256 + threadIdx.x;
    // Some rows at once, so that memory is not waited for one by one.
    for (u64 k = first; k < all; k += SEVERAL * step) {
        f64 norm[SEVERAL];
        i64 row[SEVERAL];
        EACH(u, SEVERAL) {
            // Beyond the last one is that again.
            u64 here = k + u * step < all ? k + u * step : all - 1;
            row[u] = here;
            if (shape.batches > 1) {
                row[u] = here % (u64)(shape.m + shape.n);
                locate(batches, here / (u64)(shape.m + shape.n), at);
                once(in, at, p);
            }
            OfI x;
            OfJ y;
            if (row[u] < shape.m) {
                of_i(in, at, p, row[u], x);
                norm[u] = x.norm;
            } else {
                of_j(in, at, p, row[u] - shape.m, y);
                norm[u] = y.norm;
            }
        }
        EACH(u, SEVERAL) {
            u64 bits = (u64)__double_as_longlong(fabs(norm[u]));
            EACH(side, 2) if ((row[u] < shape.m) == (side == 0) && own[side] < bits) own[side] = bits;
        }
    }
    atomicMax(&most[0], own[0]);
    atomicMax(&most[1], own[1]);
    __syncthreads();
    if (threadIdx.x < 2) atomicMax(&measured[threadIdx.x], most[threadIdx.x]);
}
