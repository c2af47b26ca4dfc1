// The core of `matmul_async.cu` for large float32 products by fused steps. Of each depth a thread reads 8 rows and 16
// columns for 128 steps, and the next depth's while it does them. A register file has two banks, for even and odd
// registers, each of which gives one a cycle: the order of the steps, and which threads share rows, are those
// for which steps wait least.

struct Wide {
    static const int HIGH = 128, WIDE = 128, THREADS = 128, TOGETHER = 2;
    static const bool MENDS = false, wild = false, AHEAD = true;
    typedef Across<HIGH, 4> Left;
    typedef Across<WIDE, 4> Right;
    alignas(16) S sum[8][16];

    // 2 x 2 warps; a warp is 8 x 4 threads, of which neighbours have two rows, and pairs of them the columns.
    FN int row(int i) {
        return threadIdx.x / 64 * 64 + i / 4 * 32 + (threadIdx.x % 32 / 8 * 2 + threadIdx.x % 2) * 4 + i % 4;
    }
    FN int column(int j) { return threadIdx.x / 32 % 2 * 64 + j / 4 * 16 + threadIdx.x / 2 % 4 * 4 + j % 4; }

    struct Depth {
        alignas(16) S rows[8], columns[16];

        __device__ __forceinline__ void take(const Left& left, const Right& right, int d) {
#pragma unroll
            for (int i = 0; i < 8; i += 4) *(Pack<S, 4>*)&rows[i] = *(Pack<S, 4>*)&left.at[d][row(i)];
#pragma unroll
            for (int j = 0; j < 16; j += 4) *(Pack<S, 4>*)&columns[j] = *(Pack<S, 4>*)&right.at[d][column(j)];
        }
    };
    __device__ __forceinline__ void clear() {
#pragma unroll
        for (int q = 0; q < 128; q++) sum[q / 16][q % 16] = S{};
    }
    // Along a row and back along the next.
    __device__ __forceinline__ void multiply(const Depth& depth) {
#pragma unroll
        for (int q = 0; q < 128; q++) {
            int i = q / 16, j = i % 2 ? 15 - q % 16 : q % 16;
            sum[i][j] = mac(depth.rows[i], depth.columns[j], sum[i][j]);
        }
    }
    __device__ __forceinline__ void each(const Results& to) {
        // Sums that are stored as they are have to lie four by four as columns do, each in the bank of its column,
        // for which its steps would wait; so something is done to them first, which is nothing: a block has rows.
        u32 nothing = to.rows == 0;
#pragma unroll
        for (int q = 0; q < 128; q++)
            sum[q / 16][q % 16] = __uint_as_float(__float_as_uint(sum[q / 16][q % 16]) ^ nothing);
#pragma unroll
        for (int i = 0; i < 8; i++)
#pragma unroll
            for (int j = 0; j < 16; j += 4) to.put(row(i), column(j), *(Pack<S, 4>*)&sum[i][j]);
    }
};

PRODUCT(Wide)

// Operands that lie along the sum, turned: neighbours of the result side by side, and zeros up to the pitch, since
// runs are read whole.
struct Turn {
    u64 rows, pitch;    // rows (columns) of the operand, and elements from one depth to the next
    u64 which;          // of the operands
    i64 step;           // from one row to the next
};
#define TURNS 64

extern "C" __global__ void __launch_bounds__(256) turn(
    const __grid_constant__ Nest<u64, 3> batch, const Product p, const Turn x, const S* from, S* to) {
    __shared__ S tile[TURNS][TURNS + 1];
    u32 deep = (p.k + TURNS - 1) / TURNS, depth = blockIdx.x % deep * TURNS;
    u64 at[3], row = (u64)(blockIdx.x / deep) * TURNS;
    locate(batch, (u64)(p.first + blockIdx.y), at);
    from += x.which ? at[1] : at[0];
    to += (u64)blockIdx.y * p.k * x.pitch;
    // All of a thread's elements are on their way at once.
    const u32 EACH = TURNS * TURNS / 256, APART = 256 / TURNS;
    u32 far = threadIdx.x / TURNS, near = threadIdx.x % TURNS;
    S own[EACH];
#pragma unroll
    for (u32 q = 0; q < EACH; q++) {
        u64 r = row + far + q * APART;
        own[q] = r < x.rows && depth + near < p.k ? from[(i64)r * x.step + depth + near] : S{};
    }
#pragma unroll
    for (u32 q = 0; q < EACH; q++) tile[far + q * APART][near] = own[q];
    __syncthreads();
#pragma unroll
    for (u32 q = 0; q < EACH; q++) {
        u32 d = depth + far + q * APART;
        if (row + near < x.pitch && d < p.k) to[d * x.pitch + row + near] = tile[near][far + q * APART];
    }
}
