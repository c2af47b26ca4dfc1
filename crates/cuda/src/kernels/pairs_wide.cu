// Reductions over pairs of wide points on Hopper's tensor cores: what a formula does with
// c |x - y|^2 = c |x|^2 + c |y|^2 - 2c <x, y>, the inner products coming from products of tiles.
//
// The walk of a call: `measure_wide` takes the norms of all points, in float64, and the largest;
// `split` writes points, scaled by a power of two, as float16 heads and tails (22 bits; tails are
// scaled up by 2^11) in tiles of 64 x 64 as the tensor cores read them, with what a formula needs of
// each j beside them; `wide` multiplies heads by heads, and crosswise heads by tails into a second
// sum, leaves the tensor core every 64 of D, since it rounds towards zero, and folds; `merge` joins
// ranges. A thread has two rows and a quarter of a tile's columns, so four lanes have a state each of
// every row, which are joined in order at the end. Nothing depends on the order of threads.
//
// Sums, logarithms of sums and the like fold the values of pairs (FILTER 0). The smallest and the K
// smallest of a square itself (FILTER 1) take it as a filter: a pair whose square is within `bound` of
// what is needed is computed anew by the direct form (`exact`), so that values and indices are its own.
//
// How a plan chooses it (`pairs/plan.rs`, `pairs/square.rs`):
// - the card is of capability 9.0, T is f32, accuracy is not strict, and there is a `Square` whose x
//   and y have 32 components or more: its limit of `LONG` falls for this form. With `FILTER` also a
//   square that is itself what `Smallest` takes, DIM 1, K up to FEW;
// - m n D is 1e10 or more: a call of fewer is done before points are split;
// - the limit of the norms is that of `Square::limit` with 3 D replaced by what this form loses, in
//   units of roundoff of the largest norm: 24 by heads and tails, 2 for every 64 of D, and what the
//   tensor core truncates. That it truncates each of 17 numbers at every 16 of D gives 84, which is too
//   careful for standard normal points at D = 64; what it does is to be found with numbers of one
//   sign. For FILTER the limit is any number whose square is finite, and `error` is
//   (2 D + 3 D / 64 + 128) 2^-24, the direct form's own included;
// - tilings, measured on an H200: D <= 64: GROUPS 2, COLUMNS 128, STAGES 4 for sums, GROUPS 4, COLUMNS
//   64, STAGES 4 for all else, GROUP 4, x RESIDENT (GROUPS D / 64 tiles of 16 KiB), which also serves
//   up to D = 192 with fewer groups and stages; wider: GROUPS 2, COLUMNS 128, STAGES 3, x coming with
//   y. Two tiles in flight for a group gain nothing, and ptxas gives up on more;
// - ranges such that blocks x ranges is little less than a multiple of the multiprocessors, one block
//   being on each; a range is a multiple of COLUMNS;
// - scratch of 4 bytes a component: rows of i in pieces (as `Job::piece`) and j in panels of whole
//   ranges, each split and reduced before the next, within the 512 MiB of products. A launch has one
//   batch.
//
// Arguments beyond those of `reduce`: `Wide`; `Choice::measured` is always there, since it says how
// points are scaled. Shared memory: (RESIDENT ? GROUPS deep 16 KiB : 0) + STAGES STAGE + 1024 bytes.
// Threads: 128 (GROUPS + 1).
//
// Declared before, with `hopper.cu` and `pairs_ends.cu`: GROUPS, COLUMNS, STAGES, RESIDENT, FILTER,
// GROUP (pairs that are folded together), SHALLOW (D <= 64), OUTSIDE (the part of |x|^2 is applied
// after all pairs, or by the filter), DEPTH (D); the sections `Once`, `OfI`, `OfJ` (alignas(8) at least), `once`, `of_i`,
// `of_j` as in `pairs.cu`, but that neither holds a point, and `norm` of the last two is filled here;
// `scale(p)`, which is c; `point_x(in, at, p, i, d)` and `point_y`, a component of a point;
// `fold<G>(p, x, y, square, s, j)`, which takes the squares of G pairs; for a filter, instead,
// `exact(in, at, p, i, j)`; `complete`.

#define SIDE 64             // rows of a tile
#define HALF_TILE 8192      // bytes of a tile's heads; tails follow
#define WHOLE_TILE 16384
#define PLACES (COLUMNS / 2)
#define OWN (COLUMNS / 4)   // columns of a thread
#define COLUMN_BYTES (COLUMNS * 256)
#define ROW_BYTES (RESIDENT ? 0 : GROUPS * WHOLE_TILE)
#define STAGE ((ROW_BYTES + COLUMN_BYTES + COLUMNS * (int)sizeof(OfJ) + 1023) / 1024 * 1024)
#define TAIL 2048.f

struct Wide {
    u8* rows;            // tiles of this launch's rows: of 64 rows, of 64 of D
    u8* columns;         // the same of this launch's j
    OfJ* of_columns;
    T *row_norms, *column_norms; // c |x|^2 and c |y|^2 of all rows of the batch
    u32 deep;            // tiles along D
    u32 range;           // the first range of this launch
    f32 error;           // of a square, relative to the sum of the largest norms
    u32 unused;
};

// The norms of a batch's points, a warp for each, and the largest, as in `measure`.
extern "C" __global__ void __launch_bounds__(256) measure_wide(
    const __grid_constant__ Nest<u64, OPERANDS> batches, const __grid_constant__ Inputs in,
    const __grid_constant__ Shape shape, const Wide w, u64* measured) {
    u64 at[OPERANDS];
    locate(batches, (u64)(shape.first / shape.blocks), at);
    Once p;
    once(in, at, p);
    u32 lane = threadIdx.x % 32;
    u64 most[2] = {0, 0};
    i64 first = (i64)blockIdx.x * 8 + threadIdx.x / 32, step = (i64)gridDim.x * 8;
    for (i64 k = first; k < shape.m + shape.n; k += step) {
        bool left = k < shape.m;
        i64 row = left ? k : k - shape.m;
        f64 norm = 0;
        for (int d = lane; d < DEPTH; d += 32) {
            f64 v = left ? point_x(in, at, p, row, d) : point_y(in, at, p, row, d);
            norm = fma(v, v, norm);
        }
#pragma unroll
        for (int q = 16; q > 0; q /= 2) norm += __shfl_xor_sync(~0u, norm, q);
        norm *= scale(p);
        if (lane == 0) (left ? w.row_norms : w.column_norms)[row] = (T)norm;
        u64 bits = (u64)__double_as_longlong(fabs(norm));
        if (left) most[0] = most[0] > bits ? most[0] : bits;
        else most[1] = most[1] > bits ? most[1] : bits;
    }
    if (lane < 2) atomicMax(&measured[lane], lane == 0 ? most[0] : most[1]);
}

// The power of two that brings points of one side below 2^10: heads have all of their bits then
// wherever they count.
FN f64 into_range(const Choice& choice, int side, f64 scale) {
    f64 square = __longlong_as_double(choice.measured[side]) / fabs(scale);
    int exponent = square > 0 && square < 1e70 ? ilogb(square) / 2 : 0;
    return exp2((f64)(9 - (exponent < -100 ? -100 : exponent)));
}

// One tile of 64 x 64 for each block: along D, and over the launch's rows, or over its j. Zeros beyond
// the edges.
extern "C" __global__ void __launch_bounds__(256) split(
    const __grid_constant__ Nest<u64, OPERANDS> batches, const __grid_constant__ Inputs in,
    const __grid_constant__ Shape shape, const Wide w, const Choice choice, u32 left) {
    if (!is_chosen(choice)) return;
    u64 at[OPERANDS];
    locate(batches, (u64)(shape.first / shape.blocks), at);
    Once p;
    once(in, at, p);
    i64 begin = left ? (i64)(shape.first % shape.blocks) * (GROUPS * SIDE) : w.range * shape.range;
    i64 row = begin + (i64)blockIdx.y * SIDE, rows = left ? shape.m : shape.n;
    int depth = blockIdx.x * SIDE;
    f32 factor = (f32)into_range(choice, left ? 0 : 1, scale(p));
    u8* to = (left ? w.rows : w.columns) + ((i64)blockIdx.y * w.deep + blockIdx.x) * WHOLE_TILE;
#pragma unroll
    for (int q = 0; q < 2; q++) {
        // Eight lanes read a row of the tile, 16 bytes of each copy for every lane.
        u32 chunk = q * 256 + threadIdx.x, r = chunk / 8, d = depth + chunk % 8 * 8;
        Pack<f16, 8> heads, tails;
#pragma unroll
        for (int e = 0; e < 8; e++) {
            bool inside = row + r < rows && d + e < DEPTH;
            f32 v = 0;
            if (inside) v = left ? point_x(in, at, p, row + r, d + e) : point_y(in, at, p, row + r, d + e);
            v *= factor;
            heads.at[e] = narrow<f16>(v);
            tails.at[e] = narrow<f16>((v - widen(heads.at[e])) * TAIL);
        }
        u32 place = (r * 8 + (chunk % 8 ^ r % 8)) * 16;
        *(Pack<f16, 8>*)(to + place) = heads;
        *(Pack<f16, 8>*)(to + HALF_TILE + place) = tails;
    }
    if (left || blockIdx.x > 0 || threadIdx.x >= SIDE) return;
    OfJ y = {};
    i64 j = row + threadIdx.x;
    if (j < rows) {
        of_j(in, at, p, j, y);
        y.norm = w.column_norms[j];
    }
    w.of_columns[(i64)blockIdx.y * SIDE + threadIdx.x] = y;
}

#define PLACES_64 PLACES_32 "," \
    PLACES_8(32, 33, 34, 35, 36, 37, 38, 39) "," PLACES_8(40, 41, 42, 43, 44, 45, 46, 47) "," \
    PLACES_8(48, 49, 50, 51, 52, 53, 54, 55) "," PLACES_8(56, 57, 58, 59, 60, 61, 62, 63)
// d + a b, or a b, of 64 x 16 by 16 x 64 or 16 x 128.
FN void multiply_tiles(f32 (&d)[32], u64 a, u64 b, bool add) {
    asm volatile("{ .reg .pred add; setp.ne.b32 add, %34, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {" PLACES_32 "}, %32, %33, add, 1, 1, 0, 0; }"
        : KEPT_32(d, 0) : "l"(a), "l"(b), "r"((int)add));
}
FN void multiply_tiles(f32 (&d)[64], u64 a, u64 b, bool add) {
    asm volatile("{ .reg .pred add; setp.ne.b32 add, %66, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {" PLACES_64 "}, %64, %65, add, 1, 1, 0, 0; }"
        : KEPT_32(d, 0), KEPT_32(d, 32) : "l"(a), "l"(b), "r"((int)add));
}

// The products of 64 of D: heads anew, cross products added unless they are the first.
FN void multiply_chunk(f32 (&heads)[PLACES], f32 (&cross)[PLACES], u64 a, u64 b, bool first) {
    const u64 tails_a = HALF_TILE >> 4, tails_b = COLUMN_BYTES / 2 >> 4;
    group_begin();
#pragma unroll
    for (int q = 0; q < 4; q++) {
        multiply_tiles(heads, a + 2 * q, b + 2 * q, q > 0);
        multiply_tiles(cross, a + 2 * q, b + tails_b + 2 * q, q > 0 || !first);
        multiply_tiles(cross, a + tails_a + 2 * q, b + 2 * q, true);
    }
    group_end();
}

// Every warp says for itself that it is done with a stage, since it has read it by itself, too.
FN void leave_stage(const Ring<STAGES>& ring, u32 k) {
    __syncwarp();
    if (threadIdx.x % 32 == 0) barrier_arrive(ring.empty + 8 * (k % STAGES));
}

// The column of a tile in a thread's place number c.
FN int column_of(int c) { return c / 2 * 8 + threadIdx.x % 4 * 2 + c % 2; }
// c |y|^2 - 2c <x, y> of a thread's row r and column c, and c |x|^2 if it belongs there.
FN T square_of(const f32 (&sum)[PLACES], const f32 (&cross)[PLACES], int r, int c, f32 factor, T x, T y) {
    int place = c / 2 * 4 + r * 2 + c % 2;
    return fma(fma(cross[place], 1 / TAIL, sum[place]), factor, OUTSIDE ? y : x + y);
}

template <class V> FN V nearest_of_four(V v) {
    v = fmin(v, __shfl_xor_sync(~0u, v, 1));
    return fmin(v, __shfl_xor_sync(~0u, v, 2));
}

template <class V> FN V farthest_of_four(V v) {
    v = fmax(v, __shfl_xor_sync(~0u, v, 1));
    return fmax(v, __shfl_xor_sync(~0u, v, 2));
}

#if FILTER
// The smallest of four lanes' states in order, first index first; all four get them.
FN void join_lanes(State& s) {
    State joined;
    EACH(k, KEPT) {
        A v = s.held[0];
        i32 at = s.at[0];
        EACH(q, 2) {
            A other = __shfl_xor_sync(~0u, v, q + 1);
            i32 there = __shfl_xor_sync(~0u, at, q + 1);
            bool takes = there >= 0 && (at < 0 || other < v || (other == v && there < at));
            v = takes ? other : v;
            at = takes ? there : at;
        }
        if (at == s.at[0]) {
            EACH(q, KEPT - 1) { s.held[q] = s.held[q + 1]; s.at[q] = s.at[q + 1]; }
            s.at[KEPT - 1] = -1;
        }
        joined.held[k] = v;
        joined.at[k] = at;
    }
    s = joined;
}

// What a filter knows of two rows: no needed value is above `limit`, so no square without its part of
// |x|^2 above `reach`.
struct Sieve {
    T limit[2], reach[2], bound;
    METHOD void init(T of) {
        bound = of;
        EACH(r, 2) limit[r] = reach[r] = infinity<T>();
    }
    METHOD void lower(int r, T to, const OfI& x) {
        limit[r] = fmin(limit[r], to);
        reach[r] = limit[r] - x.norm + bound;
    }
};

FN void sift(const Inputs& in, const u64 (&at)[OPERANDS], const Once& p, const OfI (&x)[2],
    const OfJ* y, const f32 (&sum)[PLACES], const f32 (&cross)[PLACES], f32 factor, const i64 (&row)[2],
    i64 begin, i32 j, i32 here, Sieve& sieve, State (&s)[2]) {
    T square[2][OWN], nearest[2];
    EACH(g, OWN / 2) {
        Pack<OfJ, 2> two = *(const Pack<OfJ, 2>*)(y + column_of(g * 2));
        EACH(r, 2) EACH(e, 2) square[r][g * 2 + e] = square_of(sum, cross, r, g * 2 + e, factor, 0, two.at[e].norm);
    }
    if (here < COLUMNS) {
        EACH(c, OWN) EACH(r, 2) square[r][c] = column_of(c) < here ? square[r][c] : infinity<T>();
    }
    bool near = false;
    EACH(r, 2) {
        nearest[r] = square[r][0];
        EACH(c, OWN) nearest[r] = fmin(nearest[r], square[r][c]);
        near = near || nearest[r] <= sieve.reach[r];
    }
    if (!__any_sync(~0u, near)) return;
    u64 left = 0;
    EACH(r, 2) {
        // The nearest one's own value is no farther than this.
        if (KEPT == 1) sieve.lower(r, nearest_of_four(nearest[r]) + x[r].norm + sieve.bound, x[r]);
        EACH(c, OWN) left |= (u64)(column_of(c) < here && square[r][c] <= sieve.reach[r]) << (r * OWN + c);
    }
    // Lanes take their candidates one by one, in the order of j, together.
    while (__any_sync(~0u, left != 0)) {
        if (left == 0) continue;
        int next = __ffsll(left) - 1, r = next / OWN;
        i32 at_j = j + column_of(next % OWN);
        left &= left - 1;
        T v = exact(in, at, p, r == 0 ? row[0] : row[1], begin + at_j);
        if (r == 0) s[0].put(0, v, at_j);
        else s[1].put(0, v, at_j);
    }
    // One lane's last is as far as the row's at least; and so is the farthest of the lanes' own
    // quarters, which are KEPT together.
    const int quarter = (KEPT + 3) / 4 - 1;
    EACH(r, 2) {
        T last = s[r].at[KEPT - 1] >= 0 ? s[r].held[KEPT - 1] : infinity<T>();
        T some = s[r].at[quarter] >= 0 ? s[r].held[quarter] : infinity<T>();
        sieve.lower(r, fmin(nearest_of_four(last), farthest_of_four(some)), x[r]);
    }
}
#else
// Four lanes' states of a row, joined in order; all four get the whole.
FN void join_lanes(State& s) {
    State joined;
    joined.init();
    EACH(q, 4) {
        A values[VALUES];
        i64 indices[INDICES + 1];
        int from = threadIdx.x % 32 / 4 * 4 + q;
        EACH(k, VALUES) values[k] = __shfl_sync(~0u, s.value(k), from);
        EACH(k, INDICES) indices[k] = __shfl_sync(~0u, s.index(k, 0), from);
        joined.take(values, indices);
    }
    s = joined;
}

// A tile's pairs; `here` of its columns are there.
FN void fold_tile(const Once& p, const OfI (&x)[2], const OfJ* y, const f32 (&sum)[PLACES],
    const f32 (&cross)[PLACES], f32 factor, i32 j, i32 here, State (&s)[2]) {
    if (here >= COLUMNS) {
        EACH(g, OWN / GROUP) {
            OfJ own[GROUP];
            EACH(u, GROUP / 2) {
                Pack<OfJ, 2> two = *(const Pack<OfJ, 2>*)(y + column_of(g * GROUP + u * 2));
                own[u * 2] = two.at[0];
                own[u * 2 + 1] = two.at[1];
            }
            EACH(r, 2) {
                T square[GROUP];
                EACH(u, GROUP) square[u] = square_of(sum, cross, r, g * GROUP + u, factor, x[r].norm, own[u].norm);
                fold<GROUP>(p, x[r], own, square, s[r], j);
            }
        }
        return;
    }
    EACH(c, OWN) {
        if (column_of(c) < here) {
            const OfJ* own = y + column_of(c);
            EACH(r, 2) {
                T square[1] = {square_of(sum, cross, r, c, factor, x[r].norm, own->norm)};
                fold<1>(p, x[r], own, square, s[r], j);
            }
        }
    }
}
#endif

// GROUPS tiles of rows against a range of j; the last group brings the tiles.
extern "C" __global__ void __launch_bounds__(128 * (GROUPS + 1), 1) wide(
    const __grid_constant__ Nest<u64, OPERANDS> batches, const __grid_constant__ Inputs in,
    const __grid_constant__ Shape shape, const Output values, const Output indices,
    const Partial partial, const Choice choice, const __grid_constant__ Wide w) {
    if (!is_chosen(choice)) return;
    extern __shared__ unsigned char memory[];
    __shared__ __align__(8) u64 barriers[2 * STAGES + 1];
    u32 resident = shared_address(barriers + 2 * STAGES);
    if (threadIdx.x == 0) barrier_init(resident, 1);
    Ring<STAGES> ring = Ring<STAGES>::make(barriers, 4 * GROUPS);
    u32 base = (shared_address(memory) + 1023) & ~1023u;
    u32 first_stage = base + (RESIDENT ? GROUPS * w.deep * WHOLE_TILE : 0);
    u32 range = w.range + blockIdx.y, group = threadIdx.x / 128;
    i64 begin = range * shape.range, end = begin + shape.range;
    if (end > shape.n) end = shape.n;
    i32 count = (i32)(end - begin);
    u32 tiles = (u32)(count + COLUMNS - 1) / COLUMNS;
    if (group == GROUPS) {
        fewer_registers();
        if (threadIdx.x % 128 != 0) return;
        const u8* rows = w.rows + (i64)blockIdx.x * GROUPS * w.deep * WHOLE_TILE;
        i64 first = blockIdx.y * shape.range;
        const u8* columns = w.columns + first / SIDE * w.deep * WHOLE_TILE;
        const OfJ* of_columns = w.of_columns + first;
        if (RESIDENT) {
            barrier_expect(resident, GROUPS * w.deep * WHOLE_TILE);
            bulk_copy(base, rows, GROUPS * w.deep * WHOLE_TILE, resident);
        }
        u32 step = 0;
        for (u32 tile = 0; tile < tiles; tile++) {
#pragma unroll 1
            for (u32 k = 0; k < w.deep; k++, step++) {
                u32 to = first_stage + step % STAGES * STAGE;
                u32 more = k + 1 == w.deep ? COLUMNS * sizeof(OfJ) : 0;
                u32 barrier = ring.fill(step, ROW_BYTES + COLUMN_BYTES + more, true);
                if (!RESIDENT) {
#pragma unroll
                    for (int g = 0; g < GROUPS; g++) {
                        bulk_copy(to, rows + ((i64)g * w.deep + k) * WHOLE_TILE, WHOLE_TILE, barrier);
                        to += WHOLE_TILE;
                    }
                }
#pragma unroll
                for (int q = 0; q < COLUMNS / SIDE; q++) {
                    const u8* from = columns + ((i64)(tile * (COLUMNS / SIDE) + q) * w.deep + k) * WHOLE_TILE;
                    bulk_copy(to + q * HALF_TILE, from, HALF_TILE, barrier);
                    bulk_copy(to + COLUMN_BYTES / 2 + q * HALF_TILE, from + HALF_TILE, HALF_TILE, barrier);
                }
                if (more) bulk_copy(to + COLUMN_BYTES, of_columns + tile * COLUMNS, more, barrier);
            }
        }
        return;
    }
    more_registers<GROUPS == 2 ? 232 : GROUPS == 3 ? 152 : 104>();
    u64 at[OPERANDS];
    u32 block = shape.first + blockIdx.x, batch = block / shape.blocks;
    locate(batches, (u64)batch, at);
    Once p;
    once(in, at, p);
    i64 own = ((i64)(block % shape.blocks) * GROUPS + group) * SIDE + threadIdx.x / 32 % 4 * 16 + threadIdx.x % 32 / 4;
    i64 row[2];
    OfI x[2];
    State s[2];
    EACH(r, 2) {
        row[r] = own + r * 8 < shape.m ? own + r * 8 : shape.m - 1;
        of_i(in, at, p, row[r], x[r]);
        x[r].norm = w.row_norms[row[r]];
        s[r].init();
    }
    f32 factor = (f32)(-2 * scale(p) / (into_range(choice, 0, scale(p)) * into_range(choice, 1, scale(p))));
#if FILTER
    Sieve sieve;
    f64 norms = __longlong_as_double(choice.measured[0]) + __longlong_as_double(choice.measured[1]);
    sieve.init((T)(w.error * norms));
#endif
    if (RESIDENT) barrier_wait(resident, 0);
    u32 runs = 0;
    // What is done with the products of a tile, whose last stage is number `step`.
    auto finish = [&](u32 tile, u32 step, const f32 (&whole)[PLACES], const f32 (&cross)[PLACES]) {
        u32 of_columns = first_stage + step % STAGES * STAGE + ROW_BYTES + COLUMN_BYTES;
        const OfJ* y = (const OfJ*)(memory + (of_columns - shared_address(memory)));
        i32 j = tile * COLUMNS, here = count - j;
#if FILTER
        sift(in, at, p, x, y, whole, cross, factor, row, begin, j, here, sieve, s);
#else
        fold_tile(p, x, y, whole, cross, factor, j, here, s);
#endif
        leave_stage(ring, step);
        if (tile % (64 / OWN) == 64 / OWN - 1) {
            runs++;
            EACH(r, 2) s[r].carry(runs);
        }
    };
    auto multiply = [&](u32 step, u32 k, f32 (&heads)[PLACES], f32 (&cross)[PLACES]) {
        u32 stage = first_stage + step % STAGES * STAGE;
        u32 left = RESIDENT ? base + (group * w.deep + k) * WHOLE_TILE : stage + group * WHOLE_TILE;
        ring.take(step);
        multiply_chunk(heads, cross, describe(left, 1024, 16), describe(stage + ROW_BYTES, 1024, 16), k == 0);
    };
    f32 heads[PLACES], cross[PLACES];
    EACH(i, PLACES) heads[i] = cross[i] = 0;
    if (SHALLOW) {
        for (u32 tile = 0; tile < tiles; tile++) {
            multiply(tile, 0, heads, cross);
            group_wait<0>();
            finish(tile, tile, heads, cross);
        }
    } else {
        f32 sum[PLACES];
        u32 step = 0;
        for (u32 tile = 0; tile < tiles; tile++) {
            EACH(i, PLACES) sum[i] = 0;
#pragma unroll 1
            for (u32 k = 0; k < w.deep; k++, step++) {
                multiply(step, k, heads, cross);
                group_wait<0>();
                if (k + 1 < w.deep) leave_stage(ring, step);
                EACH(i, PLACES) sum[i] += heads[i];
            }
            finish(tile, step - 1, sum, cross);
        }
    }
    EACH(r, 2) {
        join_lanes(s[r]);
        complete(s[r], x[r]);
        i64 i = own + r * 8;
        if (threadIdx.x % 4 == 0 && i < shape.m) {
            if (shape.ranges == 1) {
                give(s[r], shape, at, i, shape.start + begin, values, indices);
            } else {
                i64 to = ((i64)range * shape.batches + batch) * shape.m + i;
                ALONG(k, VALUES) partial.values[to * VALUES + k] = s[r].value(k);
                ALONG(k, INDICES) partial.indices[to * INDICES + k] = s[r].index(k, shape.start + begin);
            }
        }
    }
}
