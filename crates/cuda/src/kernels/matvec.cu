// Products of a matrix and a vector, at the speed of memory. The sum is cut into pieces that depend
// on the sizes alone; each goes to `partial`, and they are added in order. Declared before, with
// `matmul.cu`: S, the element; A, what is accumulated in.

#define RUN (16 / (int)sizeof(S) > 0 ? 16 / (int)sizeof(S) : 1)
#define WARPS 8

struct Vector {
    u32 rows, k;            // of the result, and of the sum
    u32 piece, pieces;      // of k
    u32 first;              // of the batches that the grid's last direction counts
    i64 row, deep;          // the matrix's steps along the result and along the sum
    i64 x, y;               // the vectors' steps
};

// Neighbours in memory, of which the first `inside` are there.
FN Pack<S, RUN> run_at(const S* from, i64 step, int inside, bool whole) {
    if (whole && inside >= RUN) return *(const Pack<S, RUN>*)from;
    Pack<S, RUN> x;
#pragma unroll
    for (int e = 0; e < RUN; e++) x.at[e] = e < inside ? from[e * step] : S{};
    return x;
}
FN void put(const Vector& v, S* y, A* partial, u32 row, A sum) {
    if (v.pieces == 1) {
        y[row * v.y] = leave(sum);
    } else {
        partial[((u64)blockIdx.z * v.pieces + blockIdx.y) * v.rows + row] = sum;
    }
}

// The sum runs along the memory: a warp for each row, 4 runs of each lane at a time.
extern "C" __global__ void __launch_bounds__(32 * WARPS) along(
    const __grid_constant__ Nest<u64, 3> batch, const Vector v, const S* matrix, const S* x, S* y, A* partial) {
    const int TIMES = 4;
    u64 at[3];
    locate(batch, (u64)(v.first + blockIdx.z), at);
    u32 row = blockIdx.x * WARPS + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (row >= v.rows) return;
    u32 begin = blockIdx.y * v.piece, end = min(begin + v.piece, v.k);
    const S* from = matrix + at[0] + row * v.row;
    bool whole = v.deep == 1 && (u64)from % 16 == 0;
    bool whole_x = v.x == 1 && (u64)(x + at[1]) % 16 == 0;
    A sum[TIMES];
#pragma unroll
    for (int q = 0; q < TIMES; q++) sum[q] = A{};
    for (u32 k = begin + lane * RUN; k < end; k += TIMES * 32 * RUN) {
        Pack<S, RUN> m[TIMES];
#pragma unroll
        for (int q = 0; q < TIMES; q++) {
            u32 first = k + q * 32 * RUN;
            m[q] = run_at(from + first * v.deep, v.deep, (int)end - (int)first, whole);
        }
#pragma unroll
        for (int q = 0; q < TIMES; q++) {
            u32 first = k + q * 32 * RUN;
            Pack<S, RUN> w = run_at(x + at[1] + first * v.x, v.x, (int)end - (int)first, whole_x);
#pragma unroll
            for (int e = 0; e < RUN; e++) sum[q] = mac((A)widen(m[q].at[e]), (A)widen(w.at[e]), sum[q]);
        }
    }
    __shared__ __align__(16) unsigned char memory[32 * WARPS * sizeof(A)];
    A* sums = (A*)memory + threadIdx.x / 32 * 32;
    A one = both(both(sum[0], sum[1]), both(sum[2], sum[3]));
    for (int d = 16; d > 0; d /= 2) {
        sums[lane] = one;
        __syncwarp();
        if (lane < d) one = both(one, sums[lane + d]);
        __syncwarp();
    }
    if (lane == 0) put(v, y + at[2], partial, row, one);
}

// The result runs along the memory: 8 lanes have a run of it each, 128 bytes of every row together, and
// share the sum with all others. So few columns for a block that most products need only one launch.
#define LANES 8
#define SLOTS 64
extern "C" __global__ void __launch_bounds__(LANES * SLOTS) across(
    const __grid_constant__ Nest<u64, 3> batch, const Vector v, const S* matrix, const S* x, S* y, A* partial) {
    const int TIMES = sizeof(S) < 4 ? 4 : 8;
    u64 at[3];
    locate(batch, (u64)(v.first + blockIdx.z), at);
    u32 lane = threadIdx.x % LANES, slot = threadIdx.x / LANES, row = (blockIdx.x * LANES + lane) * RUN;
    int inside = (int)v.rows - (int)row;
    u32 begin = blockIdx.y * v.piece, end = min(begin + v.piece, v.k);
    const S* from = matrix + at[0] + row * v.row;
    bool whole = v.row == 1 && (u64)from % 16 == 0 && v.deep * sizeof(S) % 16 == 0;
    A sum[RUN];
#pragma unroll
    for (int e = 0; e < RUN; e++) sum[e] = A{};
    for (u32 k = begin + slot; k < end; k += TIMES * SLOTS) {
        Pack<S, RUN> m[TIMES];
        S w[TIMES];
#pragma unroll
        for (int q = 0; q < TIMES; q++) {
            u32 at_k = k + q * SLOTS;
            m[q] = run_at(from + at_k * v.deep, v.row, at_k < end ? inside : 0, whole);
            w[q] = at_k < end ? x[at[1] + at_k * v.x] : S{};
        }
#pragma unroll
        for (int q = 0; q < TIMES; q++)
#pragma unroll
            for (int e = 0; e < RUN; e++) sum[e] = mac((A)widen(m[q].at[e]), (A)widen(w[q]), sum[e]);
    }
    __shared__ __align__(16) unsigned char memory[SLOTS * LANES * RUN * sizeof(A)];
    A(*sums)[LANES * RUN] = (A(*)[LANES * RUN])memory;
#pragma unroll
    for (int e = 0; e < RUN; e++) sums[slot][lane * RUN + e] = sum[e];
    __syncthreads();
    u32 place = blockIdx.x * LANES * RUN + threadIdx.x;
    if (threadIdx.x >= LANES * RUN || place >= v.rows) return;
    // Eight sums of eight, and these by pairs: a sum of all, one after the other, would round with all of it each time.
    const int SUMS = 8;
    A some[SUMS];
#pragma unroll
    for (int q = 0; q < SUMS; q++) some[q] = sums[q][threadIdx.x];
#pragma unroll
    for (int s = SUMS; s < SLOTS; s++) some[s % SUMS] = both(some[s % SUMS], sums[s][threadIdx.x]);
#pragma unroll
    for (int d = SUMS / 2; d > 0; d /= 2)
#pragma unroll
        for (int q = 0; q < d; q++) some[q] = both(some[q], some[q + d]);
    put(v, y + at[2], partial, place, some[0]);
}

// The pieces of the sum, added in order.
extern "C" __global__ void __launch_bounds__(256) join(
    const __grid_constant__ Nest<u64, 3> batch, const Vector v, S* y, const A* partial) {
    u32 row = blockIdx.x * 32 + threadIdx.x % 32;
    A sum = sum_pieces<8>(partial + (u64)blockIdx.z * v.pieces * v.rows + row, v.rows, v.pieces, row < v.rows);
    if (row >= v.rows || threadIdx.x >= 32) return;
    u64 at[3];
    locate(batch, (u64)(v.first + blockIdx.z), at);
    y[at[2] + row * v.y] = leave(sum);
}
