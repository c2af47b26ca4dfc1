// Moving packs and tiles of elements for maps. `I` is the type of indices.

#define THREADS 256
#define SIDE 32

// The elements from `from` on, or one for all of the pack.
template <int V, class S> FN Pack<S, V> fetch(const S* from, bool same) {
    if (V == 1 || !same) return *(const Pack<S, V>*)from;
    Pack<S, V> x;
    S one = *from;
#pragma unroll
    for (int k = 0; k < V; k++) x.at[k] = one;
    return x;
}

// Two loops that are walked in tiles: along the first, crossing operands are contiguous; along the
// second, the output is.
template <int N> struct Cross {
    I lens[2], tiles[2];
    I steps[2][N];
};
#define TURNS (SIDE * SIDE / THREADS)
FN u32 tile_row(int q) { return (q * THREADS + threadIdx.x) / SIDE; }
FN u32 tile_column(int q) { return (q * THREADS + threadIdx.x) % SIDE; }

// Where a block's tile begins: of each operand, and along both loops.
template <int N> FN void corner(const Nest<I, N>& nest, const Cross<N>& x, I (&at)[N], I& row, I& column) {
    I number = blockIdx.x, rest = number / x.tiles[1];
    column = (number - rest * x.tiles[1]) * SIDE;
    I outer = rest / x.tiles[0];
    row = (rest - outer * x.tiles[0]) * SIDE;
    locate(nest, outer, at);
}
// What a thread brings of a tile that begins at `at`: neighbours along the output, or along a crossing
// operand. Positions are summed up before they meet the pointer, since steps may be negative and wrap.
template <class S, int N> FN void fetch_tile(
    S (&own)[TURNS], const S* from, I at, const Cross<N>& x, int operand, bool across, I row, I column) {
#pragma unroll
    for (int q = 0; q < TURNS; q++) {
        I r = row + (across ? tile_column(q) : tile_row(q)), c = column + (across ? tile_row(q) : tile_column(q));
        if (r < x.lens[0] && c < x.lens[1]) own[q] = from[at + r * x.steps[0][operand] + c * x.steps[1][operand]];
    }
}
// Rows become columns.
template <class S> FN void turn(S (&own)[TURNS], void* memory) {
    S(*tile)[SIDE + 1] = (S(*)[SIDE + 1])memory;
    __syncthreads();
#pragma unroll
    for (int q = 0; q < TURNS; q++) tile[tile_row(q)][tile_column(q)] = own[q];
    __syncthreads();
#pragma unroll
    for (int q = 0; q < TURNS; q++) own[q] = tile[tile_column(q)][tile_row(q)];
}
