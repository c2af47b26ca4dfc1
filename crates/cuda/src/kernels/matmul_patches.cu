// The core of `matmul_async.cu` for what tensor cores do not do: fused steps. Declared before: SIDES, rows
// and columns of the result that a block has.

// What a thread has of a tile: 4 rows (columns) and 4 that are half a tile further. Those of the N
// threads beside each other lie such that they are read at once: 4 by 4 where tiles lie across, one by one
// where they lie along.
template <class Tile, int N> struct Fours;
template <int SIDE, int PAD, int N> struct Fours<Across<SIDE, PAD>, N> {
    FN int place(int thread, int i) { return i / 4 * (SIDE / 2) + thread * 4 + i % 4; }
    // At 4 depths.
    FN void take(const Across<SIDE, PAD>& tile, int first, int thread, int depth, S (&x)[4][8]) {
#pragma unroll
        for (int q = 0; q < 8; q++)
            *(Pack<S, 4>*)&x[q / 2][q % 2 * 4] = *(Pack<S, 4>*)&tile.at[depth + q / 2][first + place(thread, q % 2 * 4)];
    }
};
template <int SIDE, int PAD, int N> struct Fours<Along<SIDE, PAD>, N> {
    FN int place(int thread, int i) { return i / 4 * (SIDE / 2) + i % 4 * N + thread; }
    FN void take(const Along<SIDE, PAD>& tile, int first, int thread, int depth, S (&x)[4][8]) {
#pragma unroll
        for (int i = 0; i < 8; i++) {
            Pack<S, 4> four = *(Pack<S, 4>*)&tile.at[first + place(thread, i)][depth];
#pragma unroll
            for (int d = 0; d < 4; d++) x[d][i] = four.at[d];
        }
    }
};

// A patch of 8 x 8 by each thread; a warp is 4 x 8 threads.
struct Patches {
    static const int SIDE = SIDES, HIGH = SIDE, WIDE = SIDE, THREADS = SIDE * SIDE / 64;
    static const int TOGETHER = SIDE == 64 ? 4 : 2;  // blocks on a multiprocessor, for the registers
    static const bool MENDS = false, wild = false, AHEAD = false;
    typedef Lying<ALONG_A, SIDE, 4, 4>::Tile Left;
    typedef Lying<ALONG_B, SIDE, 4, 4>::Tile Right;
    typedef Fours<Left, 4> Rows;
    typedef Fours<Right, 8> Columns;
    alignas(16) S sum[8][8];

    FN int warp_y() { return threadIdx.x / 32 / (SIDE / 64) * 16; }
    FN int warp_x() { return threadIdx.x / 32 % (SIDE / 64) * 32; }
    FN int y() { return threadIdx.x % 32 / 8; }
    FN int x() { return threadIdx.x % 8; }
    __device__ __forceinline__ void clear() {
#pragma unroll
        for (int q = 0; q < 64; q++) sum[q / 8][q % 8] = S{};
    }
    template <class How> __device__ __forceinline__ void step(const Left& left, const Right& right, int, How) {
#pragma unroll
        for (int d = 0; d < DEEP; d += 4) {
            alignas(16) S u[4][8], v[4][8];
            Rows::take(left, warp_y(), y(), d, u);
            Columns::take(right, warp_x(), x(), d, v);
#pragma unroll
            for (int q = 0; q < 4 * 64; q++) {
                S& own = sum[q / 8 % 8][q % 8];
                own = mac(u[q / 64][q / 8 % 8], v[q / 64][q % 8], own);
            }
        }
    }
    __device__ __forceinline__ void each(const Results& to) {
#pragma unroll
        for (int q = 0; q < 64; q++) {
            int i = q / 8, j = q % 8, row = warp_y() + Rows::place(y(), i), column = warp_x() + Columns::place(x(), j);
            if (Right::ALONG) to.put(row, column, *(Pack<S, 1>*)&sum[i][j]);
            else if (j % 4 == 0) to.put(row, column, *(Pack<S, 4>*)&sum[i][j]);
        }
    }
};

PRODUCT(Patches)
