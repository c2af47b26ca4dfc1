// Reductions over pairs of wide points on Hopper's tensor cores: what a formula does with
// c |x - y|^2 = c |x|^2 + c |y|^2 - 2c <x, y>, the inner products coming from products of tiles.
//
// The walk of a part of a call (one batch, a piece of its rows, a panel of its j): `centre` takes a
// mean of the j, and `measure_wide` the largest norms about it, once for a whole batch; `split` writes
// points, centred and scaled by a power of two, as float16 heads and tails (23 bits; tails are scaled
// up by 2^11) in tiles of 64 x DEPTHS as the tensor cores read them, with what a formula needs of each
// j beside them; `wide` multiplies heads by heads, and crosswise heads by tails into a second sum, leaves
// the tensor core every LEAVE of D, since it rounds towards zero, and folds; `merge` joins ranges, whose
// states go on from panel to panel. A thread has two rows and a quarter of a tile's columns, so four
// lanes have a state each of every row, which are joined in order at the end. Nothing depends on the
// order of threads.
//
// Sums, logarithms of sums and the like fold the values of pairs (FILTER 0). The smallest and the K
// smallest of a square itself (FILTER 1) take it as a filter: a pair whose square is within `bound` of
// what is needed is computed anew by the direct form (`exact`), so that values and indices are its own.
// Where more pairs pass than that pays for, a group says so, and the direct plan does the work.
//
// Declared before, with `hopper.cu`, `pairs_ends.cu` and `pairs_split.cu`: GROUPS, groups of four warps that have 64 rows
// each; COLUMNS of a tile; STAGES; RESIDENT, whether all tiles of a group's rows stay in shared memory;
// FILTER; DEPTHS, 64 or 32; LEAVE; SHALLOW (D <= DEPTHS); PARTS of LEAVE in a tile; GROUP, pairs that are folded together; OUTSIDE (the part of |x|^2 is
// applied after all pairs, or by the filter); POINT_X and POINT_Y, the numbers of the points' inputs; the
// sections `Once`, `OfI`, `OfJ`, `once`, `of_i`, `of_j` as in `pairs.cu`, but that neither holds a point,
// and `norm` of the last two is filled here; `scale(p)`, which is c; `fold<G>(p, x, y, square, s, j)`,
// which takes the squares of G pairs; `complete`.

#define PLACES (COLUMNS / 2)
#define OWN (COLUMNS / 4)   // columns of a thread
#define COLUMN_BYTES (COLUMNS * DEPTHS * 4)
#define ROW_BYTES (RESIDENT ? 0 : GROUPS * TILE_BYTES)
#define STAGE ((ROW_BYTES + COLUMN_BYTES + COLUMNS * (int)sizeof(OfJ) + 1023) / 1024 * 1024)
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

// The products of LEAVE of D: heads anew, cross products added unless they are the first.
FN void multiply_part(f32 (&heads)[PLACES], f32 (&cross)[PLACES], u64 a, u64 b, bool first) {
    const u64 tails_a = (DEPTHS == 64 ? HEADS : 64) >> 4, tails_b = (DEPTHS == 64 ? COLUMN_BYTES / 2 : 64) >> 4;
    group_begin();
#pragma unroll
    for (int q = 0; q < LEAVE / 16; q++) {
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
// The square by the direct form.
FN T exact(const Inputs& in, const u64 (&at)[OPERANDS], i64 i, i64 j, u32 depth) {
    const Input &x = in.at[POINT_X], &y = in.at[POINT_Y];
    const f32* from = (const f32*)x.base + ((i64)at[POINT_X] + i * x.row);
    const f32* to = (const f32*)y.base + ((i64)at[POINT_Y] + j * y.row);
    T sum = 0;
#pragma unroll 16
    for (u32 d = 0; d < depth; d++) {
        T e = from[d * x.component] - to[d * y.component];
        sum = fma(e, e, sum);
    }
    return sum;
}

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

// What a lane has found of a row: the nearest of its columns by their squares, which lack the part of
// |x|^2, and two more than are asked for, so that what is left out is almost never needed.
#define FOUND (KEPT + 2)
struct Found {
    T square[FOUND];
    i32 at[FOUND];
    METHOD void init() { EACH(k, FOUND) { square[k] = infinity<T>(); at[k] = -1; } }
    METHOD void put(T v, i32 j) {
        EACH(up, FOUND) {
            const int k = FOUND - 1 - up, before = k > 0 ? k - 1 : 0;
            bool moves = k > 0 && v < square[before], takes = v < square[k];
            square[k] = moves ? square[before] : takes ? v : square[k];
            at[k] = moves ? at[before] : takes ? j : at[k];
        }
    }
    // No square above this is among the KEPT smallest of four lanes, if it were exact: one lane's last
    // is as far as the row's at least; and so is the farthest of the lanes' own quarters, which are
    // KEPT together.
    METHOD T limit() const {
        const int quarter = (KEPT + 3) / 4 - 1;
        return fmin(nearest_of_four(square[KEPT - 1]), farthest_of_four(square[quarter]));
    }
};

// A value for its place among those held, first index first.
FN void put_in_order(State& s, T v, i32 j) {
    EACH(up, KEPT) {
        const int k = KEPT - 1 - up, before = k > 0 ? k - 1 : 0;
        bool moves = k > 0 && (s.at[before] < 0 || v < s.held[before] || (v == s.held[before] && j < s.at[before]));
        bool takes = s.at[k] < 0 || v < s.held[k] || (v == s.held[k] && j < s.at[k]);
        s.held[k] = moves ? s.held[before] : takes ? v : s.held[k];
        s.at[k] = moves ? s.at[before] : takes ? j : s.at[k];
    }
}

// The squares of a tile that may be among the smallest of two rows go to what is found; `doubt` is
// twice what a square may be wrong by.
FN void sift(const OfJ* y, const f32 (&sum)[PLACES], const f32 (&cross)[PLACES], f32 factor, i32 j, i32 here,
    T doubt, T (&reach)[2], Found (&found)[2]) {
    T square[2][OWN];
    EACH(g, OWN / 2) {
        Pack<OfJ, 2> two = *(const Pack<OfJ, 2>*)(y + column_of(g * 2));
        EACH(r, 2) EACH(e, 2) square[r][g * 2 + e] = square_of(sum, cross, r, g * 2 + e, factor, 0, two.at[e].norm);
    }
    if (here < COLUMNS) {
        EACH(c, OWN) EACH(r, 2) square[r][c] = column_of(c) < here ? square[r][c] : infinity<T>();
    }
    bool near = false;
    EACH(r, 2) {
        T nearest = square[r][0];
        EACH(c, OWN) nearest = fmin(nearest, square[r][c]);
        near = near || (nearest <= reach[r] && nearest < found[r].square[FOUND - 1]);
    }
    if (!__any_sync(~0u, near)) return;
    u64 left = 0;
    EACH(r, 2) EACH(c, OWN) {
        bool passes = square[r][c] <= reach[r] && square[r][c] < found[r].square[FOUND - 1];
        left |= (u64)passes << (r * OWN + c);
    }
    // Lanes take their candidates one by one, together.
    while (__any_sync(~0u, left != 0)) {
        int next = left ? __ffsll(left) - 1 : -1;
        left &= left - 1;
        T v = infinity<T>();
        EACH(r, 2) EACH(c, OWN) v = next == r * OWN + c ? square[r][c] : v;
        i32 at_j = j + column_of(next % OWN);
        found[0].put(next < OWN ? v : infinity<T>(), at_j);
        found[1].put(next < OWN ? infinity<T>() : v, at_j);
    }
    EACH(r, 2) reach[r] = fmin(reach[r], found[r].limit() + doubt);
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
    // By the way of memory, so that the code of a pair is there once.
    T square[OWN][2];
    EACH(c, OWN) EACH(r, 2) square[c][r] = square_of(sum, cross, r, c, factor, x[r].norm, column_of(c) < here ? y[column_of(c)].norm : (T)0);
    LOOP(c, OWN) {
        const OfJ* own = y + column_of(c);
        EACH(r, 2) {
            T one[1] = {square[c][r]};
            if (column_of(c) < here) fold<1>(p, x[r], own, one, s[r], j);
        }
    }
}
#endif

// GROUPS tiles of rows against a range of j; the last group brings the tiles.
extern "C" __global__ void __launch_bounds__(128 * (GROUPS + 1), 1) wide(
    const __grid_constant__ Nest<u64, OPERANDS> batches, const __grid_constant__ Inputs in,
    const __grid_constant__ Shape shape, const Output values, const Output indices,
    const Partial partial, const Choice choice, const __grid_constant__ Wide w) {
    // A filter may give up meanwhile: all threads of a block are told the same.
    if (!__syncthreads_and(is_chosen(choice))) return;
    extern __shared__ unsigned char memory[];
    __shared__ __align__(8) u64 barriers[2 * STAGES + 1];
    u32 resident = shared_address(barriers + 2 * STAGES);
    if (threadIdx.x == 0) barrier_init(resident, 1);
    Ring<STAGES> ring = Ring<STAGES>::make(barriers, 4 * GROUPS);
    const u32 deep = SHALLOW ? 1 : w.deep;
    u32 base = (shared_address(memory) + 1023) & ~1023u;
    u32 first_stage = base + (RESIDENT ? GROUPS * deep * TILE_BYTES : 0);
    u32 range = blockIdx.y, group = threadIdx.x / 128;
    i64 begin = range * shape.range, end = begin + shape.range;
    if (end > shape.n) end = shape.n;
    i32 count = end > begin ? (i32)(end - begin) : 0;
    u32 tiles = (u32)(count + COLUMNS - 1) / COLUMNS;
    if (group == GROUPS) {
        fewer_registers();
        if (threadIdx.x % 128 != 0) return;
        const u8* rows = w.rows + (i64)blockIdx.x * GROUPS * deep * TILE_BYTES;
        const u8* columns = w.columns + begin / SIDE * deep * TILE_BYTES;
        const OfJ* of_columns = w.of_columns + begin;
        if (RESIDENT) {
            barrier_expect(resident, GROUPS * deep * TILE_BYTES);
            bulk_copy(base, rows, GROUPS * deep * TILE_BYTES, resident);
        }
        u32 step = 0;
        for (u32 tile = 0; tile < tiles; tile++) {
#pragma unroll 1
            for (u32 k = 0; k < deep; k++, step++) {
                u32 to = first_stage + step % STAGES * STAGE;
                u32 more = k + 1 == deep ? COLUMNS * sizeof(OfJ) : 0;
                u32 barrier = ring.fill(step, ROW_BYTES + COLUMN_BYTES + more, true);
                if (!RESIDENT) {
#pragma unroll
                    for (int g = 0; g < GROUPS; g++) {
                        bulk_copy(to, rows + ((i64)g * deep + k) * TILE_BYTES, TILE_BYTES, barrier);
                        to += TILE_BYTES;
                    }
                }
#pragma unroll
                for (int q = 0; q < COLUMNS / SIDE; q++) {
                    const u8* from = columns + ((i64)(tile * (COLUMNS / SIDE) + q) * deep + k) * TILE_BYTES;
                    bulk_copy(to + q * HEADS, from, HEADS, barrier);
                    if (DEPTHS == 64) bulk_copy(to + COLUMN_BYTES / 2 + q * HEADS, from + HEADS, HEADS, barrier);
                }
                if (more) bulk_copy(to + COLUMN_BYTES, of_columns + tile * COLUMNS, more, barrier);
            }
        }
        return;
    }
    more_registers<GROUPS == 2 ? 232 : GROUPS == 3 ? 152 : 104>();
    u64 at[OPERANDS];
    locate(batches, (u64)0, at);
    Once p;
    once(in, at, p);
    i64 own = ((i64)blockIdx.x * GROUPS + group) * SIDE + threadIdx.x / 32 % 4 * 16 + threadIdx.x % 32 / 4;
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
    f64 norms = __longlong_as_double(choice.measured[0]) + __longlong_as_double(choice.measured[1]);
    T bound = (T)(w.error * norms) + w.least, reach[2];
    Found found[2];
    EACH(r, 2) {
        found[r].init();
        // The last of the panels before.
        i64 last = (range * shape.m + row[r]) * VALUES + KEPT - 1;
        bool known = w.goes_on && partial.indices[last] >= 0;
        reach[r] = known ? partial.values[last] - x[r].norm + bound : infinity<T>();
    }
#endif
    if (RESIDENT) barrier_wait(resident, 0);
    u32 step = 0;
    for (u32 tile = 0; tile < tiles; tile++) {
        // The first products overwrite what these hold: registers are free while a tile is folded.
        f32 heads[PLACES], cross[PLACES], sum[PLACES];
        EACH(i, PLACES) sum[i] = 0;
#pragma unroll 1
        for (u32 k = 0; k < deep; k++, step++) {
            u32 stage = first_stage + step % STAGES * STAGE;
            u32 left = RESIDENT ? base + (group * deep + k) * TILE_BYTES : stage + group * TILE_BYTES;
            u64 a = describe(left, 1024, 16), b = describe(stage + ROW_BYTES, 1024, 16);
            ring.take(step);
#pragma unroll
            for (int part = 0; part < PARTS; part++) {
                const int along = LEAVE * 2 >> 4;
                multiply_part(heads, cross, a + part * along, b + part * along, part == 0 && k == 0);
                group_wait<0>();
                EACH(i, PLACES) sum[i] += heads[i];
            }
            if (k + 1 < deep) leave_stage(ring, step);
        }
        u32 of_columns = first_stage + (step - 1) % STAGES * STAGE + ROW_BYTES + COLUMN_BYTES;
        const OfJ* y = (const OfJ*)(memory + (of_columns - shared_address(memory)));
        i32 j = tile * COLUMNS, here = count - j;
#if FILTER
        sift(y, sum, cross, factor, j, here, 2 * bound, reach, found);
#else
        fold_tile(p, x, y, sum, cross, factor, j, here, s);
#endif
        leave_stage(ring, step - 1);
        if (tile % (64 / OWN) == 64 / OWN - 1) {
            EACH(r, 2) s[r].carry(tile / (64 / OWN) + 1);
        }
    }
#if FILTER
    // What was found by the direct form; where a lane may have left out what is needed, all is done
    // anew.
    EACH(r, 2) {
        // By the way of memory, so that the code is there once.
        i32 places[FOUND];
        EACH(k, FOUND) places[k] = found[r].at[k];
        LOOP(k, FOUND) {
            if (places[k] >= 0) put_in_order(s[r], exact(in, at, row[r], begin + places[k], w.depth), places[k]);
        }
    }
#endif
    EACH(r, 2) {
        join_lanes(s[r]);
#if FILTER
        bool full = s[r].at[KEPT - 1] >= 0, cut = found[r].at[FOUND - 1] >= 0;
        T farthest = found[r].square[FOUND - 1] + x[r].norm;
        if (cut && (!full || !(farthest > s[r].held[KEPT - 1] + bound))) atomicMax((u64*)choice.measured + 2, (u64)1);
#endif
        complete(s[r], x[r]);
        i64 i = own + r * 8;
        if (threadIdx.x % 4 == 0 && i < shape.m) {
            if (shape.ranges == 1 && !w.goes_on && w.ends) {
                give(s[r], shape, at, i, shape.start + begin, values, indices);
            } else {
                i64 to = range * shape.m + i;
                A found[VALUES];
                i64 where[INDICES + 1];
                EACH(k, VALUES) found[k] = s[r].value(k);
                EACH(k, INDICES) where[k] = s[r].index(k, shape.start + begin);
                Merged all;
                all.init();
                if (w.goes_on) all.take(partial.values + to * VALUES, partial.indices + to * INDICES);
                all.take(found, where);
                ALONG(k, VALUES) partial.values[to * VALUES + k] = all.value(k);
                ALONG(k, INDICES) partial.indices[to * INDICES + k] = all.index(k, 0);
            }
        }
    }
}
