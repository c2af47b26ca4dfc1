// Products of elements that are computed with as they lie in memory: asynchronous copies bring tiles
// of the operands while earlier ones are multiplied. What a block computes is a Core: its sizes, how
// its tiles lie in shared memory, and how its threads share the work. Declared before, with
// `matmul.cu`: S, the element; STAGES, tiles that are on their way or in use; and which core: DOUBLES or
// TRIPLED, with ALONG_A and ALONG_B, 1 if neighbours of an operand lie along the sum, or PATCHES of so
// many rows and columns.

#define DEEP 16
#define RUN (16 / (int)sizeof(S))

// Which tiles of 64 rows and columns hold what the tensor cores would get wrong: a mark for each 32
// of k, those of the rows first. A product that mends others skips the blocks without one.
struct Marks {
    const u8* at;       // none: every block is computed
    u32 rows, tiles;    // tiles of rows, and of rows and columns together
    u32 deep;           // marks of a tile
};
FN bool is_marked(const Marks& marks, u32 batch, u32 row, u32 rows, u32 column, u32 columns) {
    const u8* all = marks.at + (u64)batch * marks.tiles * marks.deep;
    u32 last_row = min((row + rows - 1) / 64, marks.rows - 1);
    u32 last_column = min((column + columns - 1) / 64, marks.tiles - marks.rows - 1);
    const u8* of_rows = all + (u64)(row / 64) * marks.deep;
    const u8* of_columns = all + (u64)(marks.rows + column / 64) * marks.deep;
    bool found = false;
    for (u32 k = threadIdx.x; k < (last_row - row / 64 + 1) * marks.deep; k += blockDim.x) found |= of_rows[k];
    for (u32 k = threadIdx.x; k < (last_column - column / 64 + 1) * marks.deep; k += blockDim.x)
        found |= of_columns[k];
    return __syncthreads_or(found);
}

// Copies of which the first `inside` bytes are read and the others zero.
template <int BYTES> FN void copy(S* to, const S* from, int inside) {
    u32 address = (u32)__cvta_generic_to_shared(to);
    if (BYTES == 16) {
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address), "l"(from), "r"(inside) : "memory");
    } else {
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;"
            ::"r"(address), "l"(from), "n"(BYTES), "r"(inside) : "memory");
    }
}

// Tiles in shared memory: neighbours along the result side by side, or along the sum.
template <int SIDE, int PAD> struct Across {
    static const bool ALONG = false;
    S at[DEEP][SIDE + PAD];
    __device__ __forceinline__ S* place(int row, int depth) { return &at[depth][row]; }
};
template <int SIDE, int PAD> struct Along {
    static const bool ALONG = true;
    S at[SIDE][DEEP + PAD];
    __device__ __forceinline__ S* place(int row, int depth) { return &at[row][depth]; }
};

// How a thread brings its part of an operand's tiles, one after the other. It has elements at a row
// and a depth and at equal distances from there, along one of them; or runs of 16 bytes, where those
// of global and of shared memory lie alike.
template <class Tile, int SIDE, int T> struct Carrier {
    const S* from;      // this thread's first element of the next tile
    i64 apart, turn;    // to its next element, and to the next tile
    int row, depth, rows;
    bool along, runs;

    FN Carrier make(const S* first, i64 step, i64 deep, u32 rows, u32 begin) {
        Carrier c;
        c.along = deep == 1;
        bool alike = c.along ? Tile::ALONG : step == 1 && !Tile::ALONG;
        c.runs = alike && (u64)first % 16 == 0 && (c.along ? step : deep) * sizeof(S) % 16 == 0 && begin % RUN == 0;
        int number = threadIdx.x * (c.runs ? RUN : 1);
        c.row = c.along ? number / DEEP : number % SIDE;
        c.depth = c.along ? number % DEEP : number / SIDE;
        int each = T * (c.runs ? RUN : 1);
        c.apart = c.along ? each / DEEP * step : each / SIDE * deep;
        c.from = first + c.row * step + (i64)(begin + c.depth) * deep;
        c.turn = DEEP * deep;
        c.rows = rows;
        return c;
    }
    // Brings the next tile, of which so many depths are there.
    __device__ __forceinline__ void bring(Tile& to, int depths) {
        if (runs && along) {
            int inside = min(max(depths - depth, 0), RUN) * (int)sizeof(S);
            carry<RUN, T * RUN / DEEP, 0>(to, depths, inside);
        } else if (runs) {
            int inside = min(max(rows - row, 0), RUN) * (int)sizeof(S);
            carry<RUN, 0, T * RUN / SIDE>(to, depths, inside);
        } else if (along) {
            carry<1, T / DEEP, 0>(to, depths, sizeof(S));
        } else {
            carry<1, 0, (T / SIDE > 0 ? T / SIDE : 1)>(to, depths, sizeof(S));
        }
        from += turn;
    }
    template <int WIDE, int ROWS, int DEPTHS> __device__ __forceinline__ void carry(Tile& to, int depths, int inside) {
#pragma unroll
        for (int q = 0; q < SIDE * DEEP / WIDE / T; q++) {
            int r = row + q * ROWS, d = depth + q * DEPTHS;
            copy<WIDE * sizeof(S)>(to.place(r, d), from + q * apart, r < rows && d < depths ? inside : 0);
        }
    }
};

// How tiles are multiplied: by the core's own means, or by plain steps where those would be wrong.
struct Quick {};
struct Plain {};

// Multiplies all tiles of a piece, one after the other. The operands begin with the block's rows and
// columns.
template <class Core, class How> FN void walk(
    Core& core, How how, const Product& p, const S* a, const S* b, u32 rows, u32 columns, u32 begin, int depths) {
    const int T = Core::THREADS;
    typedef typename Core::Left Left;
    typedef typename Core::Right Right;
    extern __shared__ __align__(16) unsigned char memory[];
    Left* left = (Left*)memory;
    Right* right = (Right*)(left + STAGES);
    int steps = (depths + DEEP - 1) / DEEP;
    auto of_rows = Carrier<Left, Core::HIGH, T>::make(a, p.a.row, p.a.column, rows, begin);
    auto of_columns = Carrier<Right, Core::WIDE, T>::make(b, p.b.column, p.b.row, columns, begin);
    auto fetch = [&](int step) {
        if (step < steps) {
            of_rows.bring(left[step % STAGES], depths - step * DEEP);
            of_columns.bring(right[step % STAGES], depths - step * DEEP);
        }
        asm volatile("cp.async.commit_group;" ::: "memory");
    };
    core.clear();
#pragma unroll 1
    for (int step = 0; step < STAGES - 1; step++) fetch(step);
#pragma unroll 1
    for (int step = 0; step < steps; step++) {
        asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 2) : "memory");
        __syncthreads();
        fetch(step + STAGES - 1);
        core.step(left[step % STAGES], right[step % STAGES], step, how);
    }
}

// Where a block's results go: neighbours of a row at once where they lie together.
struct Results {
    S* first;
    i64 down, across;
    u32 rows, columns;  // that are there
    bool aligned;

    template <int N> __device__ __forceinline__ void put(u32 i, u32 j, Pack<S, N> run) const {
        if (i >= rows) return;
        S* to = first + i * down + j * across;
        if (aligned && j + N <= columns) {
            *(Pack<S, N>*)to = run;
            return;
        }
#pragma unroll
        for (u32 e = 0; e < N; e++) if (j + e < columns) to[e * across] = run.at[e];
    }
};

// One tile of the product: of k, the piece that the third direction of the grid says. Where there are
// several, each goes to `partial`, as dense matrices. A block has several tiles only if they are marked
// or not, which all its threads find out together.
template <class Core> FN void multiply_async(
    u32 tile, const Nest<u64, 3>& batch, const Product& p, const Marks& marks, const S* a, const S* b, S* c,
    S* partial) {
    const int HIGH = Core::HIGH, WIDE = Core::WIDE;
    u32 number = blockIdx.y, piece = blockIdx.z, row, column;
    tile_of<8>(tile, (p.m + HIGH - 1) / HIGH, (p.n + WIDE - 1) / WIDE, row, column);
    row *= HIGH;
    column *= WIDE;
    if (marks.at && !is_marked(marks, number, row, HIGH, column, WIDE)) return;
    u64 at[3];
    locate(batch, (u64)(p.first + number), at);
    a += at[0] + row * p.a.row;
    b += at[1] + column * p.b.column;
    u32 rows = p.m - row, columns = p.n - column, begin = piece * p.piece, depths = min(p.k - begin, p.piece);
    Core core;
    walk(core, Quick(), p, a, b, rows, columns, begin, depths);
    if (Core::MENDS && __syncthreads_or(core.wild)) walk(core, Plain(), p, a, b, rows, columns, begin, depths);

    bool whole = p.pieces == 1;
    Results to = {c + at[2], p.c.row, p.c.column, rows, columns, false};
    if (!whole) to = {partial + ((u64)number * p.pieces + piece) * p.m * p.n, p.n, 1, rows, columns, false};
    to.first += row * to.down + column * to.across;
    to.aligned = to.across == 1 && (u64)to.first % 16 == 0 && to.down * sizeof(S) % 16 == 0;
    core.each(to);
}

// Fused steps: a patch of 8 x 8 by each thread, in groups of 4 rows and columns; a warp is 4 x 8
// threads.
template <int SIDE_> struct Patches {
    static const int SIDE = SIDE_, HIGH = SIDE, WIDE = SIDE, THREADS = SIDE * SIDE / 64, APART = SIDE / 2;
    static const int TOGETHER = SIDE == 64 ? 4 : 2;  // blocks on a multiprocessor, for the registers
    static const bool MENDS = false, wild = false;
    typedef Across<SIDE, 4> Left;
    typedef Across<SIDE, 4> Right;
    alignas(16) S sum[8][8];

    FN int y() { return threadIdx.x / 32 / (SIDE / 64) * 16 + threadIdx.x % 32 / 8 * 4; }
    FN int x() { return threadIdx.x / 32 % (SIDE / 64) * 32 + threadIdx.x % 8 * 4; }
    __device__ __forceinline__ void clear() {
#pragma unroll
        for (int q = 0; q < 64; q++) sum[q / 8][q % 8] = S{};
    }
    template <class How> __device__ __forceinline__ void step(const Left& left, const Right& right, int, How) {
#pragma unroll
        for (int d = 0; d < DEEP; d++) {
            Pack<S, 4> u[2], v[2];
#pragma unroll
            for (int g = 0; g < 2; g++) {
                u[g] = *(Pack<S, 4>*)&left.at[d][g * APART + y()];
                v[g] = *(Pack<S, 4>*)&right.at[d][g * APART + x()];
            }
#pragma unroll
            for (int q = 0; q < 64; q++) {
                int i = q / 8, j = q % 8;
                sum[i][j] = mac(u[i / 4].at[i % 4], v[j / 4].at[j % 4], sum[i][j]);
            }
        }
    }
    __device__ __forceinline__ void each(const Results& to) {
#pragma unroll
        for (int q = 0; q < 16; q++) {
            int i = q / 2, j = q % 2;
            to.put(i / 4 * APART + y() + i % 4, j * APART + x(), *(Pack<S, 4>*)&sum[i][j * 4]);
        }
    }
};

template <bool ALONG, int SIDE, int ACROSS_PAD, int ALONG_PAD> struct Lying { typedef Across<SIDE, ACROSS_PAD> Tile; };
template <int SIDE, int ACROSS_PAD, int ALONG_PAD> struct Lying<true, SIDE, ACROSS_PAD, ALONG_PAD> {
    typedef Along<SIDE, ALONG_PAD> Tile;
};

#ifdef TRIPLED
// float32 on tensor cores of TF32: each number is a head and a tail, and heads times heads and the two
// cross products are summed over 8 of k, and then in float32, since the tensor core rounds towards
// zero. Where a block meets numbers for which the split is not exact, it begins anew with plain steps.
// Warps of HIGH x WIDE. A thread's rows (columns) of a tile are slots, one in each 8; its depths are
// 2 t and 2 t + 1 of each 8. Where tiles lie across, the slots of four 8s lie side by side.
FN u32 head(u32 x) { return (x + 0x1000) & 0xffffe000; }
// Splits are exact, and products neither overflow nor underflow, for numbers of these sizes and zero.
FN bool is_wild(u32 x) {
    const u32 least = (127 - 50) << 23, most = (127 + 50) << 23;
    u32 size = x & 0x7fffffff;
    return size - least > most - least && size != 0;
}
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

template <int SIDE_, int DOWN, int BESIDE, int TOGETHER_> struct Tripled {
    static const int SIDE = SIDE_, HIGH = SIDE, WIDE = SIDE, THREADS = SIDE / DOWN * (SIDE / BESIDE) * 32;
    static const int TOGETHER = TOGETHER_;
    static const int ROWS = DOWN / 8, COLUMNS = BESIDE / 8;  // slots
    static const bool MENDS = true;
    typedef typename Lying<ALONG_A, SIDE, 4, 8>::Tile Left;
    typedef typename Lying<ALONG_B, SIDE, 4, 8>::Tile Right;
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
            // The tensor core does not look at the last bits.
            tails[q / 2][q % 2] = __float_as_uint(__uint_as_float(all) - __uint_as_float(head(all))) + 0x1000;
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
#endif

#ifdef DOUBLES
// float64 on tensor cores, 16 x 8 of the result and 8 of k at a time; 4 warps of 64 x 32. Which row,
// column or depth of a tile stands for which of an instruction is chosen such that what a thread
// needs lies in pairs: two rows (columns) where tiles lie across, two depths where they lie along.
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
    static const bool MENDS = false, wild = false;
    typedef typename Lying<ALONG_A, HIGH, 2, 4>::Tile Left;
    typedef typename Lying<ALONG_B, WIDE, 2, 4>::Tile Right;
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
#endif

#define PRODUCT(name, Core) \
    extern "C" __global__ void __launch_bounds__(Core::THREADS, Core::TOGETHER) name( \
        const __grid_constant__ Nest<u64, 3> batch, const Product p, const Marks marks, const S* a, const S* b, \
        S* c, S* partial) { \
        u32 tiles = (p.m + Core::HIGH - 1) / Core::HIGH * ((p.n + Core::WIDE - 1) / Core::WIDE); \
        for (u32 tile = blockIdx.x; tile < tiles; tile += gridDim.x) \
            multiply_async<Core>(tile, batch, p, marks, a, b, c, partial); \
    }
#ifdef DOUBLES
PRODUCT(blocks, Doubles)
#elif defined(TRIPLED)
typedef Tripled<64, 32, 32, 3> Small;
PRODUCT(blocks, Small)
#else
PRODUCT(blocks, Patches<PATCHES>)
#endif

// The pieces of k: few of them are added by a thread, many by 8 warps together.
template <u32 SHARE> FN void add_pieces(const Nest<u64, 3>& batch, const Product& p, const S* partial, S* c) {
    const u32 EACH = 256 / SHARE;
    u64 number = (u64)blockIdx.x * EACH + threadIdx.x % EACH, each = (u64)p.m * p.n;
    S sum = sum_pieces<SHARE>(partial + blockIdx.y * p.pieces * each + number, each, p.pieces, number < each);
    if (number >= each || threadIdx.x >= EACH) return;
    u64 at[3];
    locate(batch, (u64)(p.first + blockIdx.y), at);
    c[at[2] + number / p.n * p.c.row + number % p.n * p.c.column] = sum;
}
#define PIECES(name, SHARE) \
    extern "C" __global__ void __launch_bounds__(256) name( \
        const __grid_constant__ Nest<u64, 3> batch, const Product p, const S* partial, S* c) { \
        add_pieces<SHARE>(batch, p, partial, c); \
    }
PIECES(few_pieces, 1)
PIECES(many_pieces, 8)
