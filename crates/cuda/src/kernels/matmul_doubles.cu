// The core of `matmul_async.cu` for float64 on tensor cores, 16 x 8 of the result and 8 of k at a time; 4
// warps of 64 x 32. Which row, column or depth of a tile stands for which of an instruction is chosen such
// that what a thread needs lies in pairs: two rows (columns) where tiles lie across, two depths where they
// lie along.

template <class Tile> struct Pairs;
template <int SIDE, int PAD> struct Pairs<Across<SIDE, PAD> > {
    // Of a row and the next one, two depths.
    FN void take(const Across<SIDE, PAD>& tile, int row, int depth, f64 (&one)[2], f64 (&next)[2]) {
#pragma unroll
        for (int h = 0; h < 2; h++) {
            Pack<f64, 2> both = *(Pack<f64, 2>*)&tile.at[depth + h][row];
            one[h] = both.at[0];
            next[h] = both.at[1];
        }
    }
};
template <int SIDE, int PAD> struct Pairs<Along<SIDE, PAD> > {
    FN void take(const Along<SIDE, PAD>& tile, int row, int depth, f64 (&one)[2], f64 (&next)[2]) {
        *(Pack<f64, 2>*)one = *(Pack<f64, 2>*)&tile.at[row][depth];
        *(Pack<f64, 2>*)next = *(Pack<f64, 2>*)&tile.at[row + 1][depth];
    }
};

// An operand that lies across stands for the instruction's rows if there is one, since then no
// register has to be moved: the tall one.
struct Doubles {
    static const bool TURNED = ALONG_A && !ALONG_B;  // the tall operand is the right one
    static const int TALL = 128, FLAT = 64, HIGH = TURNED ? FLAT : TALL, WIDE = TURNED ? TALL : FLAT;
    static const int THREADS = 128, TOGETHER = 2;
    static const bool MENDS = false, wild = false, AHEAD = false;
    typedef Lying<ALONG_A, HIGH, 2, 4>::Tile Left;
    typedef Lying<ALONG_B, WIDE, 2, 4>::Tile Right;
    f64 sum[4][4][4];

    FN int y() { return threadIdx.x / 64 * 64 + threadIdx.x % 32 / 4 * 2; }
    FN int x() { return threadIdx.x / 32 % 2 * 32; }
    FN int t() { return threadIdx.x % 4; }
    __device__ __forceinline__ void clear() {
#pragma unroll
        for (int q = 0; q < 64; q++) sum[q / 16][q / 4 % 4][q % 4] = 0;
    }
    // a and b by depths, 4 of which make an instruction with those of the other threads; the next row
    // is 8 further.
    FN void mma(f64 (&c)[4], const f64 (&a)[2], const f64 (&next)[2], const f64 (&b)[2]) {
#pragma unroll
        for (int h = 0; h < 2; h++) {
#if __CUDA_ARCH__ >= 900
            asm("mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
                : "+d"(c[0]), "+d"(c[1]), "+d"(c[2]), "+d"(c[3]) : "d"(a[h]), "d"(next[h]), "d"(b[h]));
#else
            asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1}, {%2}, {%3}, {%0,%1};"
                : "+d"(c[0]), "+d"(c[1]) : "d"(a[h]), "d"(b[h]));
            asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1}, {%2}, {%3}, {%0,%1};"
                : "+d"(c[2]), "+d"(c[3]) : "d"(next[h]), "d"(b[h]));
#endif
        }
    }
    template <class Tall, class Flat> __device__ __forceinline__ void multiply(const Tall& tall, const Flat& flat) {
        int g = threadIdx.x % 32 / 4;
#pragma unroll
        for (int half = 0; half < 2; half++) {
            int depth = half * 8 + t() * 2;
            alignas(16) f64 v[4][2];
            Pairs<Flat>::take(flat, x() + 2 * g, depth, v[0], v[1]);
            Pairs<Flat>::take(flat, x() + 16 + 2 * g, depth, v[2], v[3]);
#pragma unroll
            for (int i = 0; i < 4; i++) {
                alignas(16) f64 u[2], next[2];
                Pairs<Tall>::take(tall, y() + i * 16, depth, u, next);
#pragma unroll
                for (int j = 0; j < 4; j++) mma(sum[i][j], u, next, v[j]);
            }
        }
    }
    template <class How> __device__ __forceinline__ void step(const Left& left, const Right& right, int, How) {
        if (TURNED) multiply(right, left);
        else multiply(left, right);
    }
    __device__ __forceinline__ void each(const Results& to) {
#pragma unroll
        for (int q = 0; q < 32; q++) {
            int i = q / 8, j = q / 2 % 4, e = q % 2;
            if (TURNED) {
                Pack<f64, 2> run = {sum[i][j][e], sum[i][j][e + 2]};
                to.put(x() + j / 2 * 16 + t() * 4 + e * 2 + j % 2, y() + i * 16, run);
            } else if (j % 2 == 0) {
                Pack<f64, 4> run = {sum[i][j][2 * e], sum[i][j + 1][2 * e], sum[i][j][2 * e + 1], sum[i][j + 1][2 * e + 1]};
                to.put(y() + i * 16 + e, x() + j / 2 * 16 + t() * 4, run);
            }
        }
    }
};

PRODUCT(Doubles)
