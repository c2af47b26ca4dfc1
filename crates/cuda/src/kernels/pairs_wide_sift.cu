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
// |x|^2, and two more than are asked for, so that what is left out is almost never needed. It is looked at
// seldom, and so lies in memory meanwhile (`Kept`).
#define FOUND (KEPT + 2)
struct Found {
    T square[FOUND];
    i32 at[FOUND];
    METHOD void read(const volatile Found& from) { EACH(k, FOUND) { square[k] = from.square[k]; at[k] = from.at[k]; } }
    METHOD void write(volatile Found& to) const { EACH(k, FOUND) { to.square[k] = square[k]; to.at[k] = at[k]; } }
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

// What waits to be put in its place: squares and where they are, those of the first row from the beginning of
// the room, those of the second from its end. A warp puts one of each after another, as many as its fullest
// lane has, so that it pays to wait until a lane has more than WAITING; EIGHT more may come before that is
// looked at.
#define ROOM (WAITING + EIGHT)
struct Waiting {
    T* square; // this thread's, at a distance of all threads that sift
    i32* at;
    i32 count[2];
    METHOD void init(void* memory) {
        square = (T*)memory + threadIdx.x;
        at = (i32*)(square + ROOM * 128 * GROUPS);
        count[0] = count[1] = 0;
    }
    METHOD bool is_full() const { return count[0] + count[1] > WAITING; }
    METHOD i32 place(int r, i32 k) const { return (r ? ROOM - 1 - k : k) * (128 * GROUPS); }
    METHOD void add(int r, T v, i32 j) {
        i32 to = place(r, r ? count[1] : count[0]);
        square[to] = v;
        at[to] = j;
        count[0] += !r;
        count[1] += r;
    }
};

struct Kept {
    // What a square may be wrong by; what may be among the smallest of a row; and what of that a lane
    // would keep.
    T bound, reach[2], gate[2];
    // In memory, and so apart from what stays in registers.
    typedef volatile Found Aside[2];
    volatile Found* found;
    Waiting waiting;

    METHOD void init(const Own& own, const Shape& shape, const Partial& partial, const Choice& choice,
        const Wide& w, Aside& aside, void* memory) {
        found = aside;
        waiting.init(memory);
        f64 norms = __longlong_as_double(choice.measured[0]) + __longlong_as_double(choice.measured[1]);
        bound = (T)(w.error * norms) + w.least;
        EACH(r, 2) {
            LOOP(k, FOUND) { found[r].square[k] = infinity<T>(); found[r].at[k] = -1; }
            // The last of the panels before.
            i64 last = (own.range * shape.m + own.row[r]) * VALUES + KEPT - 1;
            bool known = w.goes_on && partial.indices[last] >= 0;
            gate[r] = reach[r] = known ? partial.values[last] - own.x[r].norm + bound : infinity<T>();
        }
    }
    // Puts what waits in its place.
    METHOD void settle() {
        LOOP(r, 2) {
            Found mine;
            mine.read(found[r]);
            i32 count = r ? waiting.count[1] : waiting.count[0];
            i32 most = __reduce_max_sync(~0u, count);
            LOOP(k, most) {
                i32 from = waiting.place(r, k < count ? k : 0);
                mine.put(k < count ? waiting.square[from] : infinity<T>(), waiting.at[from]);
            }
            mine.write(found[r]);
            T all = fmin(r ? reach[1] : reach[0], mine.limit() + 2 * bound), own = fmin(all, mine.square[FOUND - 1]);
            reach[0] = r ? reach[0] : all;
            gate[0] = r ? gate[0] : own;
            reach[1] = r ? all : reach[1];
            gate[1] = r ? own : gate[1];
        }
        waiting.count[0] = waiting.count[1] = 0;
    }
    METHOD void take(const Once&, const Own&, const Tile& tile, const f32 (&sum)[PLACES], const f32 (&cross)[PLACES]) {
        // Eight columns of a row, and of the other, in turn.
        T square[OWN / 4][EIGHT], least[OWN / 4];
        EACH(q, OWN / 8) EACH(g, EIGHT / 2) {
            const int c = q * EIGHT + g * 2;
            Pack<OfJ, 2> two = *(const Pack<OfJ, 2>*)(tile.y + column_of(c));
            EACH(r, 2) EACH(e, 2) square[q * 2 + r][g * 2 + e] = square_of(sum, cross, r, c + e, tile.factor, 0, two.at[e].norm);
        }
        if (tile.here < COLUMNS) {
            EACH(q, OWN / 4) EACH(c, EIGHT) square[q][c] = column_of(q / 2 * EIGHT + c) < tile.here ? square[q][c] : infinity<T>();
        }
        EACH(q, OWN / 4) {
            least[q] = square[q][0];
            EACH(c, EIGHT) least[q] = fmin(least[q], square[q][c]);
        }
        bool near = false;
        EACH(r, 2) {
            T nearest = least[r];
            EACH(q, OWN / 8) nearest = fmin(nearest, least[q * 2 + r]);
            near = near || nearest <= gate[r];
        }
        if (!__any_sync(~0u, near)) return;
        u32 some = 0;
        EACH(q, OWN / 4) some |= (u32)(least[q] <= gate[q % 2]) << q;
        some = __reduce_or_sync(~0u, some);
        // Most often there is room. From where there is none, everything goes a longer way, by a loop that has
        // the code which makes room once.
        bool room = true;
        EACH(q, OWN / 4) if (some >> q & 1) {
            room = room && !__any_sync(~0u, waiting.is_full());
            if (room) {
                EACH(c, EIGHT) if (square[q][c] <= gate[q % 2]) waiting.add(q % 2, square[q][c], tile.j + column_of(q / 2 * EIGHT + c));
                some ^= 1u << q;
            }
        }
#pragma unroll 1
        for (; some; some &= some - 1) {
            if (__any_sync(~0u, waiting.is_full())) settle();
            const int here = __ffs(some) - 1, r = here % 2;
            T most = r ? gate[1] : gate[0];
            EACH(c, EIGHT) {
                T v = square[0][c];
                EACH(q, OWN / 4) v = q == here ? square[q][c] : v;
                if (v <= most) waiting.add(r, v, tile.j + column_of(here / 2 * EIGHT + c));
            }
        }
    }
    METHOD void carry(u32) {}
    METHOD void end(const Inputs& in, const u64 (&at)[OPERANDS], const Own& own, const Shape& shape,
        const Output& values, const Output& indices, const Partial& partial, const Choice& choice, const Wide& w) {
        settle();
        LOOP(r, 2) {
            State s;
            s.init();
            LOOP(k, FOUND) {
                i32 place = found[r].at[k];
                if (place >= 0) put_in_order(s, exact(in, at, r ? own.row[1] : own.row[0], own.begin + place, w.depth), place);
            }
            join_lanes(s);
            bool full = s.at[KEPT - 1] >= 0, cut = found[r].at[FOUND - 1] >= 0;
            T farthest = found[r].square[FOUND - 1] + (r ? own.x[1].norm : own.x[0].norm);
            if (cut && (!full || !(farthest > s.held[KEPT - 1] + bound))) atomicMax((u64*)choice.measured + 2, (u64)1);
            put_state(s, r, own, shape, at, values, indices, partial, w);
        }
    }
};
