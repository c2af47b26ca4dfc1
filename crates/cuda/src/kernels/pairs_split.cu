// Wide points made ready for `pairs_wide.cu`, whose head tells the walk and what is declared before.

// Where 8 numbers of a row lie in a tile, whose rows are 128 bytes: tails behind all heads, or beside
// the heads of their row where half of it is enough for these.
FN u32 place_of(u32 row, u32 chunk, bool tail) {
    if (DEPTHS == 32) chunk += tail ? 4 : 0;
    return (row * 8 + (chunk ^ row % 8)) * 16 + (DEPTHS == 64 && tail ? HEADS : 0);
}

// The tiles of 64 rows, or of 64 j, for each block: first those of all rows, `lefts` of them, then those of j. A layer
// of blocks has a batch. Beyond the last row, or the last j, there is that one again, so that a formula makes nothing of
// a pair there that it does not make of another; zeros beyond the last component.
extern "C" __global__ void __launch_bounds__(256) split(
    const __grid_constant__ Nest<u64, OPERANDS> batches, const __grid_constant__ Inputs in,
    const __grid_constant__ Shape shape, const Wide of_all, const Choice choice, u32 lefts) {
    if (!is_chosen(choice)) return;
    __shared__ T norms[SIDE];
    const int lanes = DEPTHS / 8; // threads that read a row of a tile, 8 numbers each
    const bool left = blockIdx.x < lefts;
    const u32 number = left ? blockIdx.x : blockIdx.x - lefts, batch = shape.first_batch + blockIdx.z;
    const Wide w = of_all.of(blockIdx.z, batch);
    u64 at[OPERANDS];
    locate(batches, batch, at);
    Once p;
    once(in, at, p);
    i64 first = (i64)number * SIDE, rows = left ? shape.m : shape.n;
    f32 factor = (f32)power_of_two(into_range(choice, left ? 0 : 1, scale(p)));
    Points points = Points::of(in, at, w, left);
    u8* to = (left ? w.rows : w.columns) + (i64)number * w.deep * TILE_BYTES;
#pragma unroll 1
    for (int q = 0; q < SIDE * lanes / 256; q++) {
        u32 row = (q * 256 + threadIdx.x) / lanes, chunk = threadIdx.x % lanes;
        f64 norm = 0;
        // Read in any case, and from somewhere: branches around each number would wait for it.
        const Stored* from = points.base + (first + row < rows ? first + row : rows - 1) * points.row;
#pragma unroll 1
        for (u32 k = 0; k < w.deep; k++, to += TILE_BYTES) {
            u32 d = k * DEPTHS + chunk * 8;
            Pack<f16, 8> heads, tails;
#pragma unroll
            for (int e = 0; e < 8; e++) {
                const u32 own = d + e < w.depth ? d + e : 0;
                const f32 number = widen(from[own * points.component]) - points.centre[own];
                f32 v = d + e < w.depth ? number : 0;
                norm = fma((f64)v, (f64)v, norm);
                v *= factor;
                heads.at[e] = narrow<f16>(v);
                tails.at[e] = narrow<f16>((v - widen(heads.at[e])) * TAIL);
            }
            *(Pack<f16, 8>*)(to + place_of(row, chunk, false)) = heads;
            *(Pack<f16, 8>*)(to + place_of(row, chunk, true)) = tails;
        }
        to -= w.deep * TILE_BYTES;
#pragma unroll
        for (int k = lanes / 2; k > 0; k /= 2) norm += __shfl_xor_sync(~0u, norm, k);
        if (chunk == 0) norms[row] = PRODUCT ? (T)0 : (T)(norm * scale(p));
    }
    __syncthreads();
    i64 own = first + threadIdx.x;
    if (threadIdx.x >= SIDE) return;
    if (left) {
        if (own < rows) w.row_norms[own] = norms[threadIdx.x];
        return;
    }
    OfJ y = {};
    of_j(in, at, p, own < rows ? own : rows - 1, y);
    y.norm = norms[threadIdx.x];
    w.of_columns[own] = y;
}
