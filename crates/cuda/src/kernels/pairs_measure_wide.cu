// Wide points measured for `pairs_wide.cu`, whose head tells the walk and what is declared before.

// A number in as many bits as a head or a tail has. Where those have fewer, numbers are too small to count.
FN f32 to_half_bits(f32 v) {
    u32 bits = __float_as_uint(v);
    return __uint_as_float((bits + 0xfff + (bits >> 13 & 1)) & ~0x1fffu);
}

// The largest norms of all points, a warp for each and a layer of blocks for a batch, as they count against the
// limit: as in `measure`.
extern "C" __global__ void __launch_bounds__(256) measure_wide(
    const __grid_constant__ Nest<u64, OPERANDS> batches, const __grid_constant__ Inputs in,
    const __grid_constant__ Shape shape, const Wide of_all, u64* measured) {
    const Wide w = of_all.of(0, blockIdx.z);
    u64 at[OPERANDS];
    locate(batches, blockIdx.z, at);
    Once p;
    once(in, at, p);
    u32 lane = threadIdx.x % 32;
    u64 most[2] = {0, 0};
    bool own = false;
    for (int d = lane; d < w.depth; d += 32) own |= w.centre[d] != 0;
    const bool moved = __any_sync(~0u, own);
    const f64 of_norm = (f64)w.of_norm + (moved ? w.of_centre : 0);
    i64 first = (i64)blockIdx.x * 8 + threadIdx.x / 32, step = (i64)gridDim.x * 8;
    for (i64 k = first; k < shape.m + shape.n; k += step) {
        bool left = k < shape.m;
        f64 norm = 0;
        Points points = Points::of(in, at, w, left);
        i64 row = left ? k : k - shape.m;
#pragma unroll 4
        for (int d = lane; d - lane < w.depth; d += 32) {
            f32 v = d < w.depth ? points.at(row, d) : 0, tail = v - to_half_bits(v), rest = tail - to_half_bits(tail);
            // Over roundoff, and its square.
            f64 square = (f64)v * v, of_tail = (f64)tail * 0x1p12, of_rest = (f64)rest * 0x1p24;
            // Of 16 lanes.
            f32 largest = (f32)square;
#pragma unroll
            for (int q = 8; q > 0; q /= 2) largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, q));
            int before = d % LEAVE / 16, later = LEAVE / 16 - (before > 1 ? before : 1);
            norm = fma(square, of_norm + later * (f64)w.of_later, norm);
            norm = fma(fma(of_tail, of_tail, of_rest * of_rest), (f64)w.of_split, norm);
            if (before == 0 && lane % 16 == 0) norm = fma((f64)w.of_largest, (f64)largest, norm);
        }
#pragma unroll
        for (int q = 16; q > 0; q /= 2) norm += __shfl_xor_sync(~0u, norm, q);
        // By a scale of nothing no range of points is found again: infinite, so that the other form works.
        u64 bits = (u64)__double_as_longlong(scale(p) != 0 ? fabs(in_range<T>(norm) * scale(p)) : infinity<f64>());
        if (left) most[0] = most[0] > bits ? most[0] : bits;
        else most[1] = most[1] > bits ? most[1] : bits;
    }
    if (lane < 2) atomicMax(&measured[lane], lane == 0 ? most[0] : most[1]);
    if (threadIdx.x == 0 && moved) atomicMax(&measured[3], (u64)1);
}
