// The smallest and the K smallest of a square itself, for `pairs_wide.cu`: the square of a tile is a
// filter. A lane keeps the nearest of its columns by their squares; at the end these are computed anew by
// the direct form (`exact`), so that values and indices are its own. Where one that was left out could
// have been needed, a thread says so, and the direct plan does the work.

template <class V> FN V nearest_of_four(V v) {
    v = fmin(v, __shfl_xor_sync(~0u, v, 1));
    return fmin(v, __shfl_xor_sync(~0u, v, 2));
}

template <class V> FN V farthest_of_four(V v) {
    v = fmax(v, __shfl_xor_sync(~0u, v, 1));
    return fmax(v, __shfl_xor_sync(~0u, v, 2));
}

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
FN void sift(const Tile& tile, const f32 (&sum)[PLACES], const f32 (&cross)[PLACES], T doubt, T (&reach)[2],
    Found (&found)[2]) {
    T square[2][OWN];
    EACH(g, OWN / 2) {
        Pack<OfJ, 2> two = *(const Pack<OfJ, 2>*)(tile.y + column_of(g * 2));
        EACH(r, 2) EACH(e, 2) square[r][g * 2 + e] = square_of(sum, cross, r, g * 2 + e, tile.factor, 0, two.at[e].norm);
    }
    if (tile.here < COLUMNS) {
        EACH(c, OWN) EACH(r, 2) square[r][c] = column_of(c) < tile.here ? square[r][c] : infinity<T>();
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
        i32 at_j = tile.j + column_of(next % OWN);
        found[0].put(next < OWN ? v : infinity<T>(), at_j);
        found[1].put(next < OWN ? infinity<T>() : v, at_j);
    }
    EACH(r, 2) reach[r] = fmin(reach[r], found[r].limit() + doubt);
}

struct Kept {
    T bound, reach[2];
    Found found[2];

    METHOD void init(const Own& own, const Shape& shape, const Partial& partial, const Choice& choice,
        const Wide& w, void*) {
        f64 norms = __longlong_as_double(choice.measured[0]) + __longlong_as_double(choice.measured[1]);
        bound = (T)(w.error * norms) + w.least;
        EACH(r, 2) {
            found[r].init();
            // The last of the panels before.
            i64 last = (own.range * shape.m + own.row[r]) * VALUES + KEPT - 1;
            bool known = w.goes_on && partial.indices[last] >= 0;
            reach[r] = known ? partial.values[last] - own.x[r].norm + bound : infinity<T>();
        }
    }
    METHOD void take(const Once&, const Own&, const Tile& tile, const f32 (&sum)[PLACES], const f32 (&cross)[PLACES]) {
        sift(tile, sum, cross, 2 * bound, reach, found);
    }
    METHOD void carry(u32) {}
    METHOD void end(const Inputs& in, const u64 (&at)[OPERANDS], const Own& own, const Shape& shape,
        const Output& values, const Output& indices, const Partial& partial, const Choice& choice, const Wide& w) {
        EACH(r, 2) {
            State s;
            s.init();
            // By the way of memory, so that the code is there once.
            i32 places[FOUND];
            EACH(k, FOUND) places[k] = found[r].at[k];
            LOOP(k, FOUND) {
                if (places[k] >= 0) put_in_order(s, exact(in, at, own.row[r], own.begin + places[k], w.depth), places[k]);
            }
            join_lanes(s);
            bool full = s.at[KEPT - 1] >= 0, cut = found[r].at[FOUND - 1] >= 0;
            T farthest = found[r].square[FOUND - 1] + own.x[r].norm;
            if (cut && (!full || !(farthest > s.held[KEPT - 1] + bound))) atomicMax((u64*)choice.measured + 2, (u64)1);
            put_state(s, r, own, shape, at, values, indices, partial, w);
        }
    }
};
