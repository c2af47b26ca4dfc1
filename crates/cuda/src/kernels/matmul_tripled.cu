// The core of `matmul_async.cu` for float32 on tensor cores of TF32: each number is a head and a tail, and
// heads times heads and the two cross products are summed over 8 of k, and then in float32, since the
// tensor core rounds towards zero. Where a block meets numbers for which the split is not exact, it begins
// anew with plain steps. 4 warps of 32 x 32. A thread's rows (columns) of a tile are slots, one in each 8;
// its depths are 2 t and 2 t + 1 of each 8. Where tiles lie across, the slots of four 8s lie side by side.

template <class Tile> struct Slots;
template <int SIDE, int PAD> struct Slots<Across<SIDE, PAD> > {
    static const int RUN_OF = 4;  // columns of the result that lie side by side in a thread
    // Lanes 0, 2, 1 and 3 of the result lie side by side, so that 32 bytes are written at once; in
    // this order, since reading takes the lanes two by two.
    FN int place(int slot, int lane) {
        return slot / 4 * 32 + lane / 4 * 16 + (lane / 2 % 2 ^ lane % 2 * 3) * 4 + slot % 4;
    }
    template <int N> FN void take(const Across<SIDE, PAD>& tile, int first, int group, int depth, u32 (&x)[N][2]) {
#pragma unroll
        for (int q = 0; q < N; q += 4)
#pragma unroll
            for (int h = 0; h < 2; h++) {
                Pack<u32, 4> four = *(Pack<u32, 4>*)&tile.at[depth + h][first + place(q, group)];
#pragma unroll
                for (int e = 0; e < 4; e++) x[q + e][h] = four.at[e];
            }
    }
};
template <int SIDE, int PAD> struct Slots<Along<SIDE, PAD> > {
    static const int RUN_OF = 2;
    FN int place(int slot, int lane) { return slot * 8 + lane; }
    template <int N> FN void take(const Along<SIDE, PAD>& tile, int first, int group, int depth, u32 (&x)[N][2]) {
#pragma unroll
        for (int q = 0; q < N; q++) {
            Pack<u32, 2> two = *(Pack<u32, 2>*)&tile.at[first + place(q, group)][depth];
            x[q][0] = two.at[0];
            x[q][1] = two.at[1];
        }
    }
};

struct Tripled {
    static const int SIDE = 64, DOWN = 32, BESIDE = 32, HIGH = SIDE, WIDE = SIDE;
    static const int THREADS = SIDE / DOWN * (SIDE / BESIDE) * 32;
    static const int TOGETHER = 3;  // blocks on a multiprocessor, for the registers
    static const int ROWS = DOWN / 8, COLUMNS = BESIDE / 8;  // slots
    static const bool MENDS = true, AHEAD = false;
    typedef Lying<ALONG_A, SIDE, 4, 8>::Tile Left;
    typedef Lying<ALONG_B, SIDE, 4, 8>::Tile Right;
    f32 sum[ROWS / 2][COLUMNS][4];
    bool wild = false;

    FN int down() { return threadIdx.x / 32 / (SIDE / BESIDE); }
    FN int aside() { return threadIdx.x / 32 % (SIDE / BESIDE); }
    FN int group() { return threadIdx.x % 32 / 4; }
    FN int fourth() { return threadIdx.x % 4; }
    __device__ __forceinline__ void clear() {
#pragma unroll
        for (int q = 0; q < ROWS * COLUMNS * 2; q++) sum[q / 4 / COLUMNS][q / 4 % COLUMNS][q % 4] = 0;
    }
    FN void mma(f32 (&c)[4], const u32 (&a)[2], const u32 (&next)[2], const u32 (&b)[2]) {
        asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
            : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
            : "r"(a[0]), "r"(next[0]), "r"(a[1]), "r"(next[1]), "r"(b[0]), "r"(b[1]));
    }
    // Numbers become heads; says whether one is wild, if asked.
    template <int N> FN bool part(u32 (&x)[N][2], u32 (&tails)[N][2], bool asked) {
        bool found = false;
        if (asked) {
#pragma unroll
            for (int q = 0; q < 2 * N; q++) found |= is_wild(x[q / 2][q % 2]);
        }
#pragma unroll
        for (int q = 0; q < 2 * N; q++) {
            u32 all = x[q / 2][q % 2];
            x[q / 2][q % 2] = head(all);
            tails[q / 2][q % 2] = tail(__uint_as_float(all), head(all));
        }
        return found;
    }
    __device__ __forceinline__ void step(const Left& left, const Right& right, int number, Quick) {
#pragma unroll
        for (int half = 0; half < DEEP / 8; half++) {
            u32 a[ROWS][2], b[COLUMNS][2], a_tails[ROWS][2], b_tails[COLUMNS][2];
            int depth = half * 8 + fourth() * 2, turn = number * (DEEP / 8) + half;
            Slots<Left>::take(left, down() * DOWN, group(), depth, a);
            Slots<Right>::take(right, aside() * BESIDE, group(), depth, b);
            // Warps that share rows or columns take turns in looking at them.
            wild |= part(a, a_tails, turn % (SIDE / BESIDE) == aside());
            wild |= part(b, b_tails, turn % (SIDE / DOWN) == down());
#pragma unroll
            for (int i = 0; i < ROWS / 2; i++)
#pragma unroll
                for (int j = 0; j < COLUMNS; j++) {
                    f32 of_8[4] = {0, 0, 0, 0};
                    mma(of_8, a_tails[2 * i], a_tails[2 * i + 1], b[j]);
                    mma(of_8, a[2 * i], a[2 * i + 1], b_tails[j]);
                    mma(of_8, a[2 * i], a[2 * i + 1], b[j]);
#pragma unroll
                    for (int e = 0; e < 4; e++) sum[i][j][e] += of_8[e];
                }
        }
    }
    FN int row(int slot) { return down() * DOWN + Slots<Left>::place(slot, group()); }
    FN int column(int slot, int e) { return aside() * BESIDE + Slots<Right>::place(slot, fourth() * 2 + e); }
    __device__ __forceinline__ void step(Left& left, Right& right, int, Plain) {
#pragma unroll 1
        for (int d = 0; d < DEEP; d++) {
            S v[COLUMNS][2];
#pragma unroll
            for (int j = 0; j < 2 * COLUMNS; j++) v[j / 2][j % 2] = *right.place(column(j / 2, j % 2), d);
#pragma unroll
            for (int q = 0; q < ROWS; q++) {
                S u = *left.place(row(q), d);
#pragma unroll
                for (int j = 0; j < 2 * COLUMNS; j++) {
                    S& own = sum[q / 2][j / 2][q % 2 * 2 + j % 2];
                    own = mac(u, v[j / 2][j % 2], own);
                }
            }
        }
    }
    __device__ __forceinline__ void each(const Results& to) {
#pragma unroll
        for (int q = 0; q < ROWS; q++)
            if (Slots<Right>::RUN_OF == 4) {
#pragma unroll
                for (int j = 0; j < COLUMNS; j += 4)
#pragma unroll
                    for (int e = 0; e < 2; e++) {
                        auto& own = sum[q / 2];
                        int at = q % 2 * 2 + e;
                        Pack<S, 4> run = {own[j][at], own[j + 1][at], own[j + 2][at], own[j + 3][at]};
                        to.put(row(q), column(j, e), run);
                    }
            } else {
#pragma unroll
                for (int j = 0; j < COLUMNS; j++) {
                    Pack<S, 2> run = {sum[q / 2][j][q % 2 * 2], sum[q / 2][j][q % 2 * 2 + 1]};
                    to.put(row(q), column(j, 0), run);
                }
            }
    }
};

PRODUCT(Tripled)
