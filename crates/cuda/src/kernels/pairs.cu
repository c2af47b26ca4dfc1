// Reductions over pairs. A thread owns ROWS of i in registers; the block goes over its range of j,
// tile by tile in shared memory, in groups of GROUP that are computed together. With one range the
// results are written at once; with several, states go to a buffer and `merge` joins them in order.
// Declared before: the sections of the formula (`Once`, `OfI`, `OfJ`, `once`, `of_i`, `of_j`,
// `bring_long`, `fold`, `complete`), the state (`State`, and `Merged` with wide indices), and `result`.

struct Shape {
    i64 m, n;          // rows of i of a batch, and of j
    i64 range;         // j of a range
    i64 start;         // the index of the first j
    u32 blocks;        // blocks of i of a batch
    u32 ranges;
    u32 lanes;         // threads that merge a row
    u32 batches;
    u32 first, unused; // the first block of this launch
};
struct Output { void* base; i64 row, component; };
struct Partial { A* values; i64* indices; };
// The largest norms, as bits, and the limit up to which the expanded square may be used; none where
// there is no choice.
struct Choice { const u64* measured; f64 limit; };

FN bool is_chosen(const Choice& choice) {
    if (!choice.measured) return true;
    // NaN is above every limit.
    f64 x = __longlong_as_double(choice.measured[0]), y = __longlong_as_double(choice.measured[1]);
    return (x <= choice.limit && y <= choice.limit) == (EXPANDED != 0);
}

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

// The results of a row, or its state where states are asked for.
template <class S> FN void give(const S& s, const Shape& shape, const u64 (&at)[OPERANDS], i64 i,
    i64 first, const Output& values, const Output& indices) {
    if (values.base) {
        ALONG(k, WIDTH) {
            i64 to = (i64)at[OPERANDS - 2] + i * values.row + k * values.component;
            ((R*)values.base)[to] = cast<R>(result(s, k, (A)shape.n));
        }
    }
    if (indices.base) {
        ALONG(k, INDICES) {
            i64 to = (i64)at[OPERANDS - 1] + i * indices.row + k * indices.component;
            ((i64*)indices.base)[to] = s.index(k, first);
        }
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
    i64 begin = blockIdx.y * shape.range, end = begin + shape.range;
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
            sweep<GROUP>(p, x, tiles[turn], from, whole, s, j);
            sweep<1>(p, x, tiles[turn], whole, to, s, j);
            runs++;
            EACH(r, ROWS) s[r].carry(runs);
        }
        if (after > 0) put(in, at, p, begin + j + TILE, after, tiles[turn ^ 1], next);
    }
    EACH(r, ROWS) {
        i64 i = first + r * THREADS;
        complete(s[r], x[r]);
        if (i < shape.m) {
            if (shape.ranges == 1) {
                give(s[r], shape, at, i, shape.start + begin, values, indices);
            } else {
                i64 row = ((i64)blockIdx.y * shape.batches + batch) * shape.m + i;
                ALONG(k, VALUES) partial.values[row * VALUES + k] = s[r].value(k);
                ALONG(k, INDICES) partial.indices[row * INDICES + k] = s[r].index(k, shape.start + begin);
            }
        }
    }
}

// The states of a row's ranges, in order: each of `lanes` threads joins neighbours, then one of
// them joins what they have.
extern "C" __global__ void __launch_bounds__(128) merge(
    const __grid_constant__ Nest<u64, OPERANDS> batches, const __grid_constant__ Shape shape,
    const Output values, const Output indices, const Partial partial, const Choice choice) {
    if (!is_chosen(choice)) return;
    i64 thread = (i64)blockIdx.x * 128 + threadIdx.x, rows = shape.m * shape.batches;
    i64 row = thread / shape.lanes;
    u32 lane = thread % shape.lanes, share = (shape.ranges + shape.lanes - 1) / shape.lanes;
    bool alive = row < rows;
    Merged s;
    s.init();
    u32 from = lane * share, to = from + share < shape.ranges ? from + share : shape.ranges;
    for (u32 k = from; alive && k < to; k++) {
        i64 at = k * rows + row;
        s.take(partial.values + at * VALUES, partial.indices + at * INDICES);
        s.carry(k - from + 1);
    }
    if (shape.lanes > 1) {
        i64 own = from * rows + row;
        if (alive && from < to) {
            ALONG(k, VALUES) partial.values[own * VALUES + k] = s.value(k);
            ALONG(k, INDICES) partial.indices[own * INDICES + k] = s.index(k, 0);
        }
        __syncwarp();
        if (!alive || lane != 0) return;
        s.init();
        for (u32 k = 0; k < shape.ranges; k += share) {
            i64 at = k * rows + row;
            s.take(partial.values + at * VALUES, partial.indices + at * INDICES);
        }
    }
    if (!alive) return;
    u64 at[OPERANDS];
    locate(batches, (u64)(row / shape.m), at);
    give(s, shape, at, row % shape.m, 0, values, indices);
}
