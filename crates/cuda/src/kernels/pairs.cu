// Reductions over pairs. A thread owns ROWS of i in registers; the block goes over its range of j,
// tile by tile in shared memory, in groups of GROUP that are computed together. With one range the
// results are written at once; with several, states go to a buffer. Declared before, with
// `pairs_ends.cu`: the sections of the formula (`Once`, `OfI`, `OfJ`, `once`, `of_i`, `of_j`,
// `bring_long`, `fold`, `complete`) and the state (`State`).

#define RUN 64

// A tile of j comes in two steps, so that memory is waited for behind arithmetic. Short vectors
// come to registers (`bring`) and go to the tile when the one before is done with (`put`); long ones
// are brought to the tile by all threads together, and completed there.
FN void bring(const Inputs& in, const u64 (&at)[OPERANDS], const Once& p, i64 j, i32 count, OfJ* tile,
    OfJ (&next)[AHEAD + 1]) {
    if (AHEAD == 0) bring_long(in, at, j, count < TILE ? count : TILE, tile);
    EACH(q, AHEAD) {
        int t = threadIdx.x + q * THREADS;
        if (t < count && t < TILE) of_j(in, at, p, j + t, next[q]);
    }
}
FN void put(const Inputs& in, const u64 (&at)[OPERANDS], const Once& p, i64 j, i32 count, OfJ* tile,
    OfJ (&next)[AHEAD + 1]) {
    EACH(q, AHEAD) {
        int t = threadIdx.x + q * THREADS;
        if (t < count && t < TILE) tile[t] = next[q];
    }
    if (AHEAD > 0) return;
    __syncthreads();
    for (int t = threadIdx.x; t < count && t < TILE; t += THREADS) of_j(in, at, p, j + t, tile[t]);
}

template <int G> FN void sweep(const Once& p, const OfI (&x)[ROWS], const OfJ* tile, int from, int to,
    State (&s)[ROWS], i32 j) {
#pragma unroll 1
    for (int k = from; k < to; k += G) {
        EACH(r, ROWS) fold<G>(p, x[r], tile + k, s[r], j + k);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS) reduce(
    const __grid_constant__ Nest<u64, OPERANDS> batches, const __grid_constant__ Inputs in,
    const __grid_constant__ Shape shape, const Output values, const Output indices,
    const Partial partial, const Choice choice) {
    if (!is_chosen(choice)) return;
    __shared__ OfJ tiles[2][TILE];
    u64 at[OPERANDS];
    u32 block = shape.first + blockIdx.x, batch = block / shape.blocks;
    u32 range = shape.first_range + blockIdx.y;
    locate(batches, (u64)batch, at);
    Once p;
    once(in, at, p);
    i64 first = (i64)(block % shape.blocks) * (THREADS * ROWS) + threadIdx.x;
    OfI x[ROWS];
    State s[ROWS];
    EACH(r, ROWS) {
        i64 i = first + r * THREADS;
        of_i(in, at, p, i < shape.m ? i : shape.m - 1, x[r]);
        s[r].init();
    }
    i64 begin = range * shape.range, end = begin + shape.range;
    if (end > shape.n) end = shape.n;
    i32 count = (i32)(end - begin);
    u32 runs = 0;
    OfJ next[AHEAD + 1];
    if (count > 0) {
        bring(in, at, p, begin, count, tiles[0], next);
        put(in, at, p, begin, count, tiles[0], next);
    }
    for (i32 j = 0, turn = 0; j < count; j += TILE, turn ^= 1) {
        __syncthreads();
        i32 left = count - j, after = left - TILE, here = left < TILE ? left : TILE;
        if (after > 0) bring(in, at, p, begin + j + TILE, after, tiles[turn ^ 1], next);
#pragma unroll 1
        for (int from = 0; from < here; from += RUN) {
            int to = from + RUN < here ? from + RUN : here, whole = to - (to - from) % GROUP;
            EACH(r, ROWS) s[r].begin();
            sweep<GROUP>(p, x, tiles[turn], from, whole, s, j);
            EACH(r, ROWS) {
                if (GROUP > 1 && s[r].strays()) LOOP(k, whole - from) fold<1>(p, x[r], tiles[turn] + from + k, s[r], j + from + k);
            }
            sweep<1>(p, x, tiles[turn], whole, to, s, j);
            runs++;
            EACH(r, ROWS) s[r].carry(runs);
        }
        if (after > 0) put(in, at, p, begin + j + TILE, after, tiles[turn ^ 1], next);
    }
    EACH(r, ROWS) {
        i64 i = first + r * THREADS;
        complete(in, at, i < shape.m ? i : shape.m - 1, x[r], s[r]);
        if (i < shape.m) {
            if (shape.ranges == 1) {
                give(s[r], shape, at, i, shape.start + begin, values, indices);
            } else {
                i64 row = ((i64)range * shape.batches + batch) * shape.m + i;
                ALONG(k, VALUES) partial.values[row * VALUES + k] = s[r].value(k);
                ALONG(k, INDICES) partial.indices[row * INDICES + k] = s[r].index(k, shape.start + begin);
            }
        }
    }
}
