// Elements picked and placed by arrays of indices. Declared before: S, the element; K, how many
// arrays of indices there are. Operands of a nest: the array that is walked, the arrays of indices,
// and the indexed array along its other axes.

#define THREADS 256

struct Axes { I strides[K], sizes[K]; };
struct Arrays { const i64* at[K]; };

// Where the indices of element n lead: as a position along the indexed axes, and as a number.
FN void resolve(const Axes& axes, const Arrays& indices, const I (&at)[K + 2], I& position, u64& slot) {
    position = at[K + 1];
    slot = 0;
#pragma unroll
    for (int k = 0; k < K; k++) {
        I index = (I)indices.at[k][at[k + 1]];
        position += index * axes.strides[k];
        slot = slot * axes.sizes[k] + index;
    }
}

extern "C" __global__ void __launch_bounds__(THREADS) gather(
    const __grid_constant__ Nest<I, K + 2> nest, const Axes axes, const Arrays indices, I n,
    const S* source, S* out) {
    I number = (I)blockIdx.x * THREADS + threadIdx.x, at[K + 2], position;
    u64 slot;
    if (number >= n) return;
    locate(nest, number, at);
    resolve(axes, indices, at, position, slot);
    out[at[0]] = source[position];
}

// Of several writes to one place the last stays: first each place learns the number of the last
// index that leads to it, then only that one writes. `each` elements belong to one index.
extern "C" __global__ void __launch_bounds__(THREADS) claim(
    const __grid_constant__ Nest<I, K + 2> nest, const Axes axes, const Arrays indices, I n, I each,
    u64* last) {
    I number = (I)blockIdx.x * THREADS + threadIdx.x, at[K + 2], position;
    u64 slot;
    if (number >= n) return;
    locate(nest, number * each, at);
    resolve(axes, indices, at, position, slot);
    atomicMax(last + slot, (u64)number + 1);
}

extern "C" __global__ void __launch_bounds__(THREADS) scatter(
    const __grid_constant__ Nest<I, K + 2> nest, const Axes axes, const Arrays indices, I n, I each,
    const S* source, S* target, const u64* last) {
    I number = (I)blockIdx.x * THREADS + threadIdx.x, at[K + 2], position;
    u64 slot;
    if (number >= n) return;
    locate(nest, number, at);
    resolve(axes, indices, at, position, slot);
    if (last[slot] == (u64)(number / each) + 1) target[position] = source[at[0]];
}
