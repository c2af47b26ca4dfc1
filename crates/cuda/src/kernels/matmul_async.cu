// Products of elements that are computed with as they lie in memory: asynchronous copies bring tiles
// of the operands while earlier ones are multiplied. What a block computes is a Core, which the source
// that follows declares: its sizes, how its tiles lie in shared memory, and how its threads share the
// work. Declared before, with `matmul.cu`: S, the element; STAGES, tiles that are on their way or in use;
// DEEP, of k in a tile; ALONG_A and ALONG_B, 1 if neighbours of an operand lie along the sum.

#define RUN (16 / (int)sizeof(S))

// Copies of 16 bytes; of an element; and of any number, of which the first `inside` bytes are read and the
// others zero.
FN void copy_run(S* to, const S* from) {
    u32 address = (u32)__cvta_generic_to_shared(to);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(address), "l"(from) : "memory");
}
FN void copy_one(S* to, const S* from) {
    u32 address = (u32)__cvta_generic_to_shared(to);
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(address), "l"(from), "n"(sizeof(S)) : "memory");
}
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
    // Brings the next tile, of which so many depths are there. Inside of a matrix, where most tiles are,
    // nothing has to be asked: the copies share their warps' time with the products.
    __device__ __forceinline__ void bring(Tile& to, int depths) {
        if (runs && rows >= SIDE && depths >= DEEP) {
#pragma unroll
            for (int q = 0; q < SIDE * DEEP / RUN / T; q++) {
                const int APART = T * RUN;  // rows or depths, as the tile lies
                S* place = Tile::ALONG ? to.place(row + q * APART / DEEP, depth) : to.place(row, depth + q * APART / SIDE);
                copy_run(place, from + q * apart);
            }
        } else if (runs && along) {
            int inside = min(max(depths - depth, 0), RUN) * (int)sizeof(S);
            carry<RUN, T * RUN / DEEP, 0>(to, depths, inside);
        } else if (runs) {
            int inside = min(max(rows - row, 0), RUN) * (int)sizeof(S);
            carry<RUN, 0, T * RUN / SIDE>(to, depths, inside);
        } else if (along && rows >= SIDE && depths >= DEEP) {
#pragma unroll
            for (int q = 0; q < SIDE * DEEP / T; q++) copy_one(to.place(row + q * (T / DEEP), depth), from + q * apart);
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
    auto arrived = [] {
        asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 2) : "memory");
        __syncthreads();
    };
    core.clear();
#pragma unroll 1
    for (int step = 0; step < STAGES - 1; step++) fetch(step);
    if constexpr (Core::AHEAD) {
        // What a thread needs of a depth is on its way while it multiplies the one before.
        typename Core::Depth depth[2];
        arrived();
        depth[0].take(left[0], right[0], 0);
#pragma unroll 1
        for (int step = 0; step < steps; step++) {
            int now = step % STAGES, next = (step + 1) % STAGES;
#pragma unroll
            for (int d = 0; d < DEEP; d++) {
                if (d + 1 == DEEP) arrived();
                if (d + 1 == DEEP) depth[0].take(left[next], right[next], 0);
                else depth[(d + 1) % 2].take(left[now], right[now], d + 1);
                if (d == 0) fetch(step + STAGES - 1);
                core.multiply(depth[d % 2]);
            }
        }
    } else {
#pragma unroll 1
        for (int step = 0; step < steps; step++) {
            arrived();
            fetch(step + STAGES - 1);
            core.step(left[step % STAGES], right[step % STAGES], step, how);
        }
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
// several, each goes to `partial`, as dense matrices.
template <class Core> FN void multiply_async(
    const Nest<u64, 3>& batch, const Product& p, const S* a, const S* b, S* c, S* partial) {
    const int HIGH = Core::HIGH, WIDE = Core::WIDE;
    u32 number = blockIdx.y, piece = blockIdx.z, row, column;
    tile_of<8>(blockIdx.x, (p.m + HIGH - 1) / HIGH, (p.n + WIDE - 1) / WIDE, row, column);
    row *= HIGH;
    column *= WIDE;
    u64 at[3];
    locate(batch, (u64)(p.first + number), at);
    a += at[0] + row * p.a.row;
    b += at[1] + column * p.b.column;
    u32 rows = p.m - row, columns = p.n - column, begin = piece * p.piece, depths = min(p.k - begin, p.piece);
    Core core;
    walk(core, Quick(), p, a, b, rows, columns, begin, depths);
    if constexpr (Core::MENDS) {
        if (__syncthreads_or(core.wild)) walk(core, Plain(), p, a, b, rows, columns, begin, depths);
    }

    bool whole = p.pieces == 1;
    Results to = {c + at[2], p.c.row, p.c.column, rows, columns, false};
    if (!whole) to = {partial + ((u64)number * p.pieces + piece) * p.m * p.n, p.n, 1, rows, columns, false};
    to.first += row * to.down + column * to.across;
    to.aligned = to.across == 1 && (u64)to.first % 16 == 0 && to.down * sizeof(S) % 16 == 0;
    core.each(to);
}

template <bool ALONG, int SIDE, int ACROSS_PAD, int ALONG_PAD> struct Lying { typedef Across<SIDE, ACROSS_PAD> Tile; };
template <int SIDE, int ACROSS_PAD, int ALONG_PAD> struct Lying<true, SIDE, ACROSS_PAD, ALONG_PAD> {
    typedef Along<SIDE, ALONG_PAD> Tile;
};

#define PRODUCT(Core) \
    extern "C" __global__ void __launch_bounds__(Core::THREADS, Core::TOGETHER) blocks( \
        const __grid_constant__ Nest<u64, 3> batch, const Product p, const S* a, const S* b, S* c, S* partial) { \
        multiply_async<Core>(batch, p, a, b, c, partial); \
    }
