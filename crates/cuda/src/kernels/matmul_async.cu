// Products of elements that are computed with as they lie in memory: asynchronous copies bring tiles
// of the operands while earlier ones are multiplied. What a block computes is a Core: its sizes, how
// its tiles lie in shared memory, and how its threads share the work. Declared before, with
// `matmul.cu`: S, the element; STAGES, tiles that are on their way or in use; LARGE, 1 for the kernel
// with large tiles.

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

// One block's part of the product: of k, the piece that the third direction of the grid says. Where
// there are several, each goes to `partial`, as dense matrices.
template <class Core> FN void multiply_async(
    const Nest<u64, 3>& batch, const Product& p, const Marks& marks, const S* a, const S* b, S* c, S* partial) {
    const int SIDE = Core::SIDE, T = Core::THREADS;
    typedef typename Core::Left Left;
    typedef typename Core::Right Right;
    extern __shared__ __align__(16) unsigned char memory[];
    Left* left = (Left*)memory;
    Right* right = (Right*)(left + STAGES);
    u32 number = blockIdx.y, piece = blockIdx.z, row, column;
    tile_of<8>(blockIdx.x, (p.m + SIDE - 1) / SIDE, (p.n + SIDE - 1) / SIDE, row, column);
    row *= SIDE;
    column *= SIDE;
    if (marks.at && !is_marked(marks, number, row, SIDE, column, SIDE)) return;
    u64 at[3];
    locate(batch, (u64)(p.first + number), at);
    int begin = piece * p.piece, depths = min(p.k - begin, p.piece), steps = (depths + DEEP - 1) / DEEP;
    auto rows = Carrier<Left, SIDE, T>::make(a + at[0] + row * p.a.row, p.a.row, p.a.column, p.m - row, begin);
    auto columns =
        Carrier<Right, SIDE, T>::make(b + at[1] + column * p.b.column, p.b.column, p.b.row, p.n - column, begin);

    auto fetch = [&](int step) {
        if (step < steps) {
            rows.bring(left[step % STAGES], depths - step * DEEP);
            columns.bring(right[step % STAGES], depths - step * DEEP);
        }
        asm volatile("cp.async.commit_group;" ::: "memory");
    };
    Core core;
    core.clear();
#pragma unroll 1
    for (int step = 0; step < STAGES - 1; step++) fetch(step);
#pragma unroll 1
    for (int step = 0; step < steps; step++) {
        asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 2) : "memory");
        __syncthreads();
        fetch(step + STAGES - 1);
        core.step(left[step % STAGES], right[step % STAGES]);
    }
    bool whole = p.pieces == 1;
    S* to = whole ? c + at[2] : partial + ((u64)number * p.pieces + piece) * p.m * p.n;
    i64 down = whole ? p.c.row : p.n, across = whole ? p.c.column : 1;
    core.each([&](u32 i, u32 j, S x) {
        if (row + i < p.m && column + j < p.n) to[(row + i) * down + (column + j) * across] = x;
    });
}

// Fused steps: a patch of 8 x 8 by each thread, in groups of 4 rows and columns; a warp is 4 x 8
// threads.
template <int SIDE_> struct Patches {
    static const int SIDE = SIDE_, THREADS = SIDE * SIDE / 64, APART = SIDE / 2;
    static const int TOGETHER = SIDE == 64 ? 4 : 2;  // blocks on a multiprocessor, for the registers
    typedef Across<SIDE, 4> Left;
    typedef Across<SIDE, 4> Right;
    S sum[8][8];

    FN int y() { return threadIdx.x / 32 / (SIDE / 64) * 16 + threadIdx.x % 32 / 8 * 4; }
    FN int x() { return threadIdx.x / 32 % (SIDE / 64) * 32 + threadIdx.x % 8 * 4; }
    __device__ __forceinline__ void clear() {
#pragma unroll
        for (int q = 0; q < 64; q++) sum[q / 8][q % 8] = S{};
    }
    __device__ __forceinline__ void step(const Left& left, const Right& right) {
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
    template <class Put> __device__ __forceinline__ void each(Put put) {
#pragma unroll
        for (int q = 0; q < 64; q++) {
            int i = q / 8, j = q % 8;
            put(i / 4 * APART + y() + i % 4, j / 4 * APART + x() + j % 4, sum[i][j]);
        }
    }
};

#ifdef DOUBLES
// float64 on tensor cores, 16 x 8 of the result and 4 of k at a time; 8 warps of 64 x 32. Which row,
// column or depth of a tile stands for which of an instruction is chosen such that what a thread
// needs lies in pairs: two rows (columns) where tiles lie across, two depths where they lie along.
template <class Tile> struct Pairs;
template <int SIDE, int PAD> struct Pairs<Across<SIDE, PAD> > {
    // Of a row and the next one, the depths 2 t, 2 t + 1, 2 t + 8 and 2 t + 9.
    FN void take(const Across<SIDE, PAD>& tile, int row, int t, f64 (&one)[4], f64 (&next)[4]) {
#pragma unroll
        for (int h = 0; h < 4; h++) {
            Pack<f64, 2> both = *(Pack<f64, 2>*)&tile.at[2 * t + h % 2 + h / 2 * 8][row];
            one[h] = both.at[0];
            next[h] = both.at[1];
        }
    }
};
template <int SIDE, int PAD> struct Pairs<Along<SIDE, PAD> > {
    FN void take(const Along<SIDE, PAD>& tile, int row, int t, f64 (&one)[4], f64 (&next)[4]) {
#pragma unroll
        for (int h = 0; h < 4; h += 2) {
            Pack<f64, 2> first = *(Pack<f64, 2>*)&tile.at[row][2 * t + h / 2 * 8];
            Pack<f64, 2> second = *(Pack<f64, 2>*)&tile.at[row + 1][2 * t + h / 2 * 8];
            one[h] = first.at[0];
            one[h + 1] = first.at[1];
            next[h] = second.at[0];
            next[h + 1] = second.at[1];
        }
    }
};
template <bool ALONG, int SIDE> struct Lying { typedef Across<SIDE, 2> Tile; };
template <int SIDE> struct Lying<true, SIDE> { typedef Along<SIDE, 4> Tile; };

struct Doubles {
    static const int SIDE = 128, THREADS = 256, TOGETHER = 1;
    typedef Lying<ALONG_A, SIDE>::Tile Left;
    typedef Lying<ALONG_B, SIDE>::Tile Right;
    f64 sum[4][4][4];

    FN int y() { return threadIdx.x / 128 * 64 + threadIdx.x % 32 / 4 * 2; }
    FN int x() { return threadIdx.x / 32 % 4 * 32; }
    __device__ __forceinline__ void clear() {
#pragma unroll
        for (int q = 0; q < 64; q++) sum[q / 16][q / 4 % 4][q % 4] = 0;
    }
    // a and b by depths, 4 of which make an instruction with those of the other threads; the next row
    // is 8 further.
    FN void mma(f64 (&c)[4], const f64 (&a)[4], const f64 (&next)[4], const f64 (&b)[4]) {
#pragma unroll
        for (int h = 0; h < 4; h++) {
#if __CUDA_ARCH__ >= 900
            asm volatile("mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
                : "+d"(c[0]), "+d"(c[1]), "+d"(c[2]), "+d"(c[3]) : "d"(a[h]), "d"(next[h]), "d"(b[h]));
#else
            asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1}, {%2}, {%3}, {%0,%1};"
                : "+d"(c[0]), "+d"(c[1]) : "d"(a[h]), "d"(b[h]));
            asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1}, {%2}, {%3}, {%0,%1};"
                : "+d"(c[2]), "+d"(c[3]) : "d"(next[h]), "d"(b[h]));
#endif
        }
    }
    __device__ __forceinline__ void step(const Left& left, const Right& right) {
        int t = threadIdx.x % 4, g = threadIdx.x % 32 / 4;
        f64 v[4][4];
        Pairs<Right>::take(right, x() + 2 * g, t, v[0], v[1]);
        Pairs<Right>::take(right, x() + 16 + 2 * g, t, v[2], v[3]);
#pragma unroll
        for (int i = 0; i < 4; i++) {
            f64 u[4], next[4];
            Pairs<Left>::take(left, y() + i * 16, t, u, next);
#pragma unroll
            for (int j = 0; j < 4; j++) mma(sum[i][j], u, next, v[j]);
        }
    }
    template <class Put> __device__ __forceinline__ void each(Put put) {
#pragma unroll
        for (int q = 0; q < 64; q++) {
            int i = q / 16, j = q / 4 % 4, e = q % 4;
            put(y() + i * 16 + e / 2, x() + j / 2 * 16 + (threadIdx.x % 4 * 2 + e % 2) * 2 + j % 2, sum[i][j][e]);
        }
    }
};
#endif

#define PRODUCT(name, Core) \
    extern "C" __global__ void __launch_bounds__(Core::THREADS, Core::TOGETHER) name( \
        const __grid_constant__ Nest<u64, 3> batch, const Product p, const Marks marks, const S* a, const S* b, \
        S* c, S* partial) { \
        multiply_async<Core>(batch, p, marks, a, b, c, partial); \
    }
#if !LARGE
PRODUCT(patches, Patches<64>)
#elif defined(DOUBLES)
PRODUCT(blocks, Doubles)
#else
PRODUCT(blocks, Patches<128>)
#endif

// The pieces of k of 32 elements, added in order by each of 8 warps, and then those.
extern "C" __global__ void __launch_bounds__(256) pieces(
    const __grid_constant__ Nest<u64, 3> batch, const Product p, const S* partial, S* c) {
    u64 number = (u64)blockIdx.x * 32 + threadIdx.x % 32, each = (u64)p.m * p.n;
    S sum = sum_pieces(partial + blockIdx.y * p.pieces * each + number, each, p.pieces, number < each);
    if (number >= each || threadIdx.x >= 32) return;
    u64 at[3];
    locate(batch, (u64)(p.first + blockIdx.y), at);
    c[at[2] + number / p.n * p.c.row + number % p.n * p.c.column] = sum;
}
