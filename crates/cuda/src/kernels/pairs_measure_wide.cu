// Wide points measured for `pairs_wide.cu`, whose head tells the walk and what is declared before.

// The largest norms of a batch's points, a warp for each, as in `measure`.
extern "C" __global__ void __launch_bounds__(256) measure_wide(
    const __grid_constant__ Nest<u64, OPERANDS> batches, const __grid_constant__ Inputs in,
    const __grid_constant__ Shape shape, const Wide w, u64* measured) {
    u64 at[OPERANDS];
    locate(batches, (u64)0, at);
    Once p;
    once(in, at, p);
    u32 lane = threadIdx.x % 32;
    u64 most[2] = {0, 0};
    i64 first = (i64)blockIdx.x * 8 + threadIdx.x / 32, step = (i64)gridDim.x * 8;
    for (i64 k = first; k < shape.m + shape.n; k += step) {
        bool left = k < shape.m;
        f64 norm = 0;
        Points points = Points::of(in, at, w, left);
        i64 row = left ? k : k - shape.m;
#pragma unroll 4
        for (int d = lane; d < w.depth; d += 32) {
            f64 v = points.at(row, d);
            norm = fma(v, v, norm);
        }
#pragma unroll
        for (int q = 16; q > 0; q /= 2) norm += __shfl_xor_sync(~0u, norm, q);
        u64 bits = (u64)__double_as_longlong(fabs(in_range<T>(norm) * scale(p)));
        if (left) most[0] = most[0] > bits ? most[0] : bits;
        else most[1] = most[1] > bits ? most[1] : bits;
    }
    if (lane < 2) atomicMax(&measured[lane], lane == 0 ? most[0] : most[1]);
}
