// The indices of true elements in row-major order: blocks count theirs, the counts are summed up,
// and each block writes from its place on.

#define THREADS 256
#define EACH 8

FN bool element(const Nest<I, 1>& nest, const b8* in, I number, I n) {
    I at[1];
    if (number >= n) return false;
    locate(nest, number, at);
    return widen(in[at[0]]);
}

// The sum of one number of each thread before this one; the sum of all in `total`.
FN u32 before(u32 own, u32& total) {
    __shared__ u32 sums[THREADS];
    sums[threadIdx.x] = own;
    for (u32 d = 1; d < THREADS; d *= 2) {
        __syncthreads();
        u32 left = threadIdx.x >= d ? sums[threadIdx.x - d] : 0;
        __syncthreads();
        sums[threadIdx.x] += left;
    }
    __syncthreads();
    u32 through = sums[threadIdx.x];
    total = sums[THREADS - 1];
    __syncthreads();
    return through - own;
}

extern "C" __global__ void __launch_bounds__(THREADS) count(
    const __grid_constant__ Nest<I, 1> nest, I n, const b8* in, u64* counts) {
    u32 own = 0, total;
    I first = ((I)blockIdx.x * THREADS + threadIdx.x) * EACH;
#pragma unroll
    for (int k = 0; k < EACH; k++) own += element(nest, in, first + k, n);
    before(own, total);
    if (threadIdx.x == 0) counts[blockIdx.x] = total;
}

// Each count becomes the sum of those before it; by one block.
extern "C" __global__ void __launch_bounds__(THREADS) places(u64* counts, u64 blocks) {
    __shared__ u64 carry;
    if (threadIdx.x == 0) carry = 0;
    __syncthreads();
    for (u64 first = 0; first < blocks; first += THREADS) {
        u64 k = first + threadIdx.x;
        u32 own = k < blocks ? (u32)counts[k] : 0, total, sum = before(own, total);
        if (k < blocks) counts[k] = carry + sum;
        __syncthreads();
        if (threadIdx.x == 0) carry += total;
        __syncthreads();
    }
}

extern "C" __global__ void __launch_bounds__(THREADS) write(
    const __grid_constant__ Nest<I, 1> nest, const __grid_constant__ Nest<I, 1> shape, I n,
    const b8* in, const u64* places, i64* out, i64 rows, i64 row, i64 column) {
    bool found[EACH];
    u32 own = 0, total;
    I first = ((I)blockIdx.x * THREADS + threadIdx.x) * EACH;
#pragma unroll
    for (int k = 0; k < EACH; k++) own += found[k] = element(nest, in, first + k, n);
    i64 place = (i64)(places[blockIdx.x] + before(own, total));
#pragma unroll
    for (int k = 0; k < EACH; k++) {
        // None beyond the output: somebody may have changed the input since it was counted.
        if (!found[k] || place >= rows) continue;
        I rest = first + k;
        for (int axis = shape.axes - 1; axis >= 0; axis--) {
            I next = quotient(rest, shape.sizes[axis]);
            out[place * row + axis * column] = (i64)(rest - next * shape.sizes[axis].by);
            rest = next;
        }
        place++;
    }
}
