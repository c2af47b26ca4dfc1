// Order: rows sorted by the digits of keys, least digit first. A key is the element's bits such that
// unsigned order is the order wanted; equal elements have equal keys. Each pass counts the digits of
// each tile, sums the counts up, and moves every element to its place; equal ones keep their order.
// Declared before: S, the element; K, the key, unsigned; FLOATING or SIGNED, 1 where S is.
// Indices travel with the keys where they are wanted, or to tell elements of one key apart.

#define THREADS 256
#define EACH 16
#define TILE (THREADS * EACH)
#define WARPS (THREADS / 32)
#define DIGITS 256

#define TOP ((K)1 << (8 * sizeof(S) - 1))
#define ALL (TOP | (TOP - 1))

template <class T> FN K bits(T x) {
    K k = 0;
    memcpy(&k, &x, sizeof(T));
    return k;
}
FN K bits(b8 x) { return x.byte != 0; }

// NaN comes last in either direction; both zeros are equal.
FN K key(S x, bool down) {
    K k = bits(x);
#if FLOATING
    if (isnan(widen(x))) return ALL;
    if (widen(x) == 0) k = 0;
    k ^= k & TOP ? ALL : TOP;
#elif SIGNED
    k ^= TOP;
#endif
    return down ? ALL ^ k : k;
}
// The element of a key; of those that share one, that at an index of its row.
FN S element(K k, bool down, const S* row, u32 index, i64 step) {
#if FLOATING
    if (k == ALL || k == key(S{}, down)) return row[index * step];
#endif
    if (down) k ^= ALL;
#if FLOATING
    k ^= k & TOP ? TOP : ALL;
#elif SIGNED
    k ^= TOP;
#endif
    S x;
    memcpy(&x, &k, sizeof(S));
    return x;
}

struct Rows {
    u32 len, tiles;     // elements of a row, and tiles of them
    i64 from, to;       // steps along the axis
    u32 down;
};

extern "C" __global__ void __launch_bounds__(THREADS) enter(
    const __grid_constant__ Nest<I, 2> nest, const Rows rows, u64 n, const S* in, K* keys, u32* indices) {
    u64 k = (u64)blockIdx.x * THREADS + threadIdx.x;
    if (k >= n) return;
    u64 row = k / rows.len;
    u32 index = (u32)(k - row * rows.len);
    I at[2];
    locate(nest, (I)row, at);
    keys[k] = key(in[(i64)at[0] + index * rows.from], rows.down);
    if (indices) indices[k] = index;
}

// Elements of a tile: a warp has neighbours, in rounds of 32.
FN u32 place(u32 tile, int round) { return tile * TILE + threadIdx.x / 32 * (32 * EACH) + round * 32 + threadIdx.x % 32; }

// How often each digit occurs in a tile: counts[row][digit][tile].
extern "C" __global__ void __launch_bounds__(THREADS) count(
    const Rows rows, u32 shift, const K* keys, u32* counts) {
    __shared__ u32 found[DIGITS];
    u32 row = blockIdx.x / rows.tiles, tile = blockIdx.x % rows.tiles;
    found[threadIdx.x] = 0;
    __syncthreads();
#pragma unroll
    for (int round = 0; round < EACH; round++) {
        u32 k = place(tile, round);
        if (k < rows.len) atomicAdd(&found[(u32)(keys[(u64)row * rows.len + k] >> shift) % DIGITS], 1);
    }
    __syncthreads();
    counts[((u64)row * DIGITS + threadIdx.x) * rows.tiles + tile] = found[threadIdx.x];
}

// The sum of what the threads before this one have; `total` is that of all.
FN u32 sum_before(u32 x, u32& total) {
    __shared__ u32 sums[WARPS];
    u32 lane = threadIdx.x % 32, sum = x;
    for (int d = 1; d < 32; d *= 2) {
        u32 left = __shfl_up_sync(~0u, sum, d);
        if (lane >= d) sum += left;
    }
    __syncthreads();
    if (lane == 31) sums[threadIdx.x / 32] = sum;
    __syncthreads();
    u32 before = 0;
    total = 0;
#pragma unroll
    for (int w = 0; w < WARPS; w++) {
        if (w < threadIdx.x / 32) before += sums[w];
        total += sums[w];
    }
    return before + sum - x;
}

// Of the tiles of a row, each count becomes that of the tiles before it; the last is of them all.
extern "C" __global__ void __launch_bounds__(THREADS) starts(const Rows rows, u32* counts, u32* totals) {
    u32* own = counts + (u64)blockIdx.x * rows.tiles;
    u32 carry = 0, total;
    for (u32 first = 0; first < rows.tiles; first += THREADS) {
        u32 tile = first + threadIdx.x, x = tile < rows.tiles ? own[tile] : 0;
        u32 before = carry + sum_before(x, total);
        if (tile < rows.tiles) own[tile] = before;
        carry += total;
    }
    if (threadIdx.x == 0) totals[blockIdx.x] = carry;
}

// Which lanes of the warp have this digit.
FN u32 alike(u32 digit, bool there) {
    u32 lanes = __ballot_sync(~0u, there);
#pragma unroll
    for (int bit = 0; bit < 8; bit++) {
        bool set = digit >> bit & 1;
        u32 with = __ballot_sync(~0u, set);
        lanes &= set ? with : ~with;
    }
    return lanes;
}

extern "C" __global__ void __launch_bounds__(THREADS) move(
    const Rows rows, u32 shift, const K* keys, const u32* indices, const u32* counts, const u32* totals,
    K* to_keys, u32* to_indices) {
    __shared__ u32 found[WARPS][DIGITS];
    __shared__ u32 start[DIGITS], target[DIGITS];
    __shared__ K sorted[TILE];
    u32* numbers = (u32*)sorted;
    u32 row = blockIdx.x / rows.tiles, tile = blockIdx.x % rows.tiles;
    u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    u64 first = (u64)row * rows.len;
    K own[EACH];
    u32 rank[EACH];
#pragma unroll
    for (int w = 0; w < WARPS; w++) found[w][threadIdx.x] = 0;
#pragma unroll
    for (int round = 0; round < EACH; round++) {
        u32 k = place(tile, round);
        own[round] = k < rows.len ? keys[first + k] : 0;
    }
    __syncthreads();
#pragma unroll
    for (int round = 0; round < EACH; round++) {
        bool there = place(tile, round) < rows.len;
        u32 digit = (u32)(own[round] >> shift) % DIGITS, lanes = alike(digit, there);
        u32 before = found[warp][digit];
        __syncwarp();
        rank[round] = before + __popc(lanes & ((1u << lane) - 1));
        if (there && lane == __ffs(lanes) - 1) found[warp][digit] = before + __popc(lanes);
        __syncwarp();
    }
    __syncthreads();
    // Of a digit: how many the warps before have, where it begins in the tile, and in the row.
    u32 here = 0, unused;
#pragma unroll
    for (int w = 0; w < WARPS; w++) {
        u32 more = found[w][threadIdx.x];
        found[w][threadIdx.x] = here;
        here += more;
    }
    u32 begin = sum_before(here, unused);
    u32 of_row = sum_before(totals[(u64)row * DIGITS + threadIdx.x], unused);
    start[threadIdx.x] = begin;
    target[threadIdx.x] = of_row + counts[((u64)row * DIGITS + threadIdx.x) * rows.tiles + tile] - begin;
    __syncthreads();
#pragma unroll
    for (int round = 0; round < EACH; round++) {
        u32 digit = (u32)(own[round] >> shift) % DIGITS;
        rank[round] += start[digit] + found[warp][digit];
        if (place(tile, round) < rows.len) sorted[rank[round]] = own[round];
    }
    __syncthreads();
    u32 inside = min(rows.len - tile * TILE, (u32)TILE), to[EACH];
#pragma unroll
    for (int round = 0; round < EACH; round++) {
        u32 k = round * THREADS + threadIdx.x;
        if (k >= inside) continue;
        to[round] = target[(u32)(sorted[k] >> shift) % DIGITS] + k;
        to_keys[first + to[round]] = sorted[k];
    }
    if (!indices) return;
    __syncthreads();
#pragma unroll
    for (int round = 0; round < EACH; round++) {
        u32 k = place(tile, round);
        if (k < rows.len) numbers[rank[round]] = indices[first + k];
    }
    __syncthreads();
#pragma unroll
    for (int round = 0; round < EACH; round++) {
        u32 k = round * THREADS + threadIdx.x;
        if (k < inside) to_indices[first + to[round]] = numbers[k];
    }
}

// Elements from where they were, or where they were.
extern "C" __global__ void __launch_bounds__(THREADS) finish(
    const __grid_constant__ Nest<I, 2> nest, const Rows rows, u64 n, u32 wanted, const S* in, const K* keys,
    const u32* indices, void* out) {
    u64 k = (u64)blockIdx.x * THREADS + threadIdx.x;
    if (k >= n) return;
    u64 row = k / rows.len;
    I at[2];
    locate(nest, (I)row, at);
    i64 to = (i64)at[1] + (i64)(k - row * rows.len) * rows.to;
    if (wanted) {
        ((i64*)out)[to] = indices[k];
    } else {
        ((S*)out)[to] = element(keys[k], rows.down, in + (i64)at[0], indices ? indices[k] : 0, rows.from);
    }
}
