// The core of `matmul_async.cu` for large float32 products by fused steps. Of each depth a thread reads 8 rows and 16
// columns for 128 steps, and the next depth's while it does them. Where its registers come to lie decides the
// speed: the order of the steps, and which threads share rows, are those that wait least for each other.

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
#pragma unroll
        for (int i = 0; i < 8; i++)
#pragma unroll
            for (int j = 0; j < 16; j += 4) to.put(row(i), column(j), *(Pack<S, 4>*)&sum[i][j]);
    }
};

PRODUCT(Wide)
