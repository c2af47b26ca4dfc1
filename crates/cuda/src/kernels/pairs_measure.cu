// The largest c |x|^2 and c |y|^2 of all rows, as bits of float64, which are ordered as numbers are,
// with NaN above all: so the order of threads does not matter. Part of a source whose squares are
// expanded.
extern "C" __global__ void __launch_bounds__(256) measure(
    const __grid_constant__ Nest<u64, OPERANDS> batches, const __grid_constant__ Inputs in,
    const __grid_constant__ Shape shape, u64* measured) {
    __shared__ u64 most[2];
    if (threadIdx.x < 2) most[threadIdx.x] = 0;
    __syncthreads();
    u64 own[2] = {0, 0}, at[OPERANDS], batch = 0;
    Once p;
    locate(batches, batch, at);
    once(in, at, p);
    u64 step = (u64)gridDim.x * 256, first = (u64)blockIdx.x * 256 + threadIdx.x;
    for (u64 k = first; k < shape.batches * (u64)(shape.m + shape.n); k += step) {
        i64 row = k;
        if (shape.batches > 1) {
            batch = k / (u64)(shape.m + shape.n);
            row = k % (u64)(shape.m + shape.n);
            locate(batches, batch, at);
            once(in, at, p);
        }
        f64 norm;
        if (row < shape.m) {
            OfI x;
            of_i(in, at, p, row, x);
            norm = x.norm;
        } else {
            OfJ y;
            of_j(in, at, p, row - shape.m, y);
            norm = y.norm;
        }
        u64 bits = (u64)__double_as_longlong(fabs(norm));
        u64& held = own[row < shape.m ? 0 : 1];
        held = held > bits ? held : bits;
    }
    atomicMax(&most[0], own[0]);
    atomicMax(&most[1], own[1]);
    __syncthreads();
    if (threadIdx.x < 2) atomicMax(&measured[threadIdx.x], most[threadIdx.x]);
}
