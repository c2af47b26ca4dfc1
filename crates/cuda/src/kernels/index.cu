// Elements picked and placed by arrays of indices. Declared before: S, the element; K, how many
// arrays of indices there are. Operands of a nest: the array that is walked, the arrays of indices,
// and the indexed array along its other axes.

#define THREADS 256

struct Axes { I strides[K], sizes[K]; };
struct Arrays { const i64* at[K]; };

// Where the indices of element n lead: as a position along the indexed axes, and as a number. False
// if one of them is outside of its axis; then `outside` holds such a one, and the array's number.
FN bool resolve(const Axes& axes, const Arrays& indices, const I (&at)[K + 2], I& position, u64& slot,
                u64* outside) {
    position = at[K + 1];
    slot = 0;
#pragma unroll
    for (int k = 0; k < K; k++) {
        i64 index = indices.at[k][at[k + 1]];
        u64 place = (u64)index + (index < 0 ? (u64)axes.sizes[k] : 0);
        if (place >= (u64)axes.sizes[k]) {
            if (atomicCAS(outside, 0ull, k + 1ull) == 0) outside[1] = (u64)index;
            return false;
        }
        position += (I)place * axes.strides[k];
        slot = slot * axes.sizes[k] + place;
    }
    return true;
}

extern "C" __global__ void __launch_bounds__(THREADS) gather(
    const __grid_constant__ Nest<I, K + 2> nest, const Axes axes, const Arrays indices, I n,
    const S* source, S* out, u64* outside) {
    I number = (I)blockIdx.x * THREADS + threadIdx.x, at[K + 2], position;
    u64 slot;
    if (number >= n) return;
    locate(nest, number, at);
    if (resolve(axes, indices, at, position, slot, outside)) out[at[0]] = source[position];
}

// Where the number of the last index that leads to a place is kept: there is one for each place, or,
// of a few among many, a table of pairs that are found by their place; `mask` is its length less one.
// It is longer than there are indices.
FN u64* last_of(u64* last, u64 mask, u64 slot) {
    if (!mask) return last + slot;
    for (u64 k = slot * 0x9e3779b97f4a7c15ull >> 20;; k++) {
        u64* pair = last + 2 * (k & mask);
        u64 found = *(volatile u64*)pair;
        if (found == 0) found = atomicCAS(pair, 0ull, slot + 1);
        if (found == 0 || found == slot + 1) return pair + 1;
    }
}

// Of several writes to one place the last stays: first each place learns the number of the last
// index that leads to it, then only that one writes. `each` elements belong to one index.
extern "C" __global__ void __launch_bounds__(THREADS) claim(
    const __grid_constant__ Nest<I, K + 2> nest, const Axes axes, const Arrays indices, I n, I each,
    u64* last, u64 mask, u64* outside) {
    I number = (I)blockIdx.x * THREADS + threadIdx.x, at[K + 2], position;
    u64 slot;
    if (number >= n) return;
    locate(nest, number * each, at);
    if (resolve(axes, indices, at, position, slot, outside))
        atomicMax(last_of(last, mask, slot), (u64)number + 1);
}

extern "C" __global__ void __launch_bounds__(THREADS) scatter(
    const __grid_constant__ Nest<I, K + 2> nest, const Axes axes, const Arrays indices, I n, I each,
    const S* source, S* target, u64* last, u64 mask, u64* outside) {
    I number = (I)blockIdx.x * THREADS + threadIdx.x, at[K + 2], position;
    u64 slot;
    if (number >= n) return;
    locate(nest, number, at);
    if (!resolve(axes, indices, at, position, slot, outside)) return;
    if (*last_of(last, mask, slot) == (u64)(number / each) + 1) target[position] = source[at[0]];
}
