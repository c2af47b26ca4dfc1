// Order: rows sorted by merging. Runs of a tile are merged in shared memory, longer ones in global
// memory: each element finds its place among those of the neighbouring run. Stable. Declared
// before: S, the element.

#define THREADS 256
#define EACH 4
#define TILE (THREADS * EACH)

// Whether a comes before b: NaN after everything, in either direction.
template <class V> FN int compare(V a, V b, bool down) {
    bool x = isnan(a), y = isnan(b);
    if (x || y) return (int)x - (int)y;
    return precedes(a, b) ? (down ? 1 : -1) : precedes(b, a) ? (down ? -1 : 1) : 0;
}
// Complex numbers by real part, then imaginary; those with NaN by which parts are.
template <class T> FN int compare(complex<T> a, complex<T> b, bool down) {
    int x = 2 * isnan(a.re) + isnan(a.im), y = 2 * isnan(b.re) + isnan(b.im);
    if (x != y) return x - y;
    int order = compare(a.re, b.re, down);
    return order != 0 ? order : compare(a.im, b.im, down);
}

// How many elements of an ascending run come before x: those that are smaller, and if `equal`
// those that are not larger.
FN u32 rank(const S* run, i64 step, u32 len, S x, bool equal, bool down) {
    u32 low = 0, high = len;
    while (low < high) {
        u32 middle = low + (high - low) / 2;
        int order = compare(widen(run[middle * step]), widen(x), down);
        if (order < 0 || (equal && order == 0)) low = middle + 1; else high = middle;
    }
    return low;
}

// Where element k of a row of runs of `width` goes when neighbouring runs are merged.
FN u32 merged(const S* row, u32 k, u32 width, u32 len, bool down) {
    u32 pair = k / (2 * width) * (2 * width), middle = pair + width;
    if (middle >= len) return k;
    u32 end = middle + width < len ? middle + width : len;
    if (k < middle) return k + rank(row + middle, 1, end - middle, row[k], false, down);
    return k - width + rank(row + pair, 1, width, row[k], true, down);
}

// Tiles of each row, sorted, with the index that each element had.
extern "C" __global__ void __launch_bounds__(THREADS) tiles(
    const __grid_constant__ Nest<I, 2> rows, u32 len, i64 step, u32 down, const S* in, S* values, u32* indices) {
    __shared__ __align__(16) unsigned char memory[2 * TILE * sizeof(S)];
    __shared__ u32 numbers[2][TILE];
    S* own = (S*)memory;
    S* other = own + TILE;
    u32 begin = blockIdx.y * TILE, count = len - begin < TILE ? len - begin : TILE;
    I at[2];
    locate(rows, (I)blockIdx.x, at);
    for (u32 k = threadIdx.x; k < count; k += THREADS) {
        own[k] = in[(i64)at[0] + (i64)(begin + k) * step];
        numbers[0][k] = begin + k;
    }
    int side = 0;
    for (u32 width = 1; width < count; width *= 2) {
        __syncthreads();
        for (u32 k = threadIdx.x; k < count; k += THREADS) {
            u32 to = merged(own, k, width, count, down);
            other[to] = own[k];
            numbers[1 - side][to] = numbers[side][k];
        }
        S* swap = own;
        own = other;
        other = swap;
        side = 1 - side;
    }
    __syncthreads();
    u64 row = (u64)blockIdx.x * len + begin;
    for (u32 k = threadIdx.x; k < count; k += THREADS) {
        values[row + k] = own[k];
        indices[row + k] = numbers[side][k];
    }
}

// One pass over all rows: neighbouring runs of `width` become one.
extern "C" __global__ void __launch_bounds__(THREADS) merge(
    u64 n, u32 len, u32 width, u32 down, const S* values, const u32* indices, S* to_values, u32* to_indices) {
    u64 k = (u64)blockIdx.x * THREADS + threadIdx.x;
    if (k >= n) return;
    u64 row = k / len * len;
    u64 to = row + merged(values + row, (u32)(k - row), width, len, down);
    to_values[to] = values[k];
    to_indices[to] = indices[k];
}

extern "C" __global__ void __launch_bounds__(THREADS) put(
    const __grid_constant__ Nest<I, 2> rows, u64 n, u32 len, i64 step, u32 wanted, const S* values,
    const u32* indices, void* out) {
    u64 k = (u64)blockIdx.x * THREADS + threadIdx.x;
    if (k >= n) return;
    u64 row = k / len;
    I at[2];
    locate(rows, (I)row, at);
    i64 to = (i64)at[1] + (i64)(k - row * len) * step;
    if (wanted) ((i64*)out)[to] = indices[k]; else ((S*)out)[to] = values[k];
}

// Where values would be inserted into an ascending array.
extern "C" __global__ void __launch_bounds__(THREADS) search(
    const __grid_constant__ Nest<I, 2> nest, u64 n, const S* sorted, i64 step, u32 len, u32 right,
    const S* values, i64* out) {
    u64 k = (u64)blockIdx.x * THREADS + threadIdx.x;
    if (k >= n) return;
    I at[2];
    locate(nest, (I)k, at);
    out[at[1]] = rank(sorted, step, len, values[at[0]], right, false);
}
