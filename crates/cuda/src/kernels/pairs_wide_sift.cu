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

// The square of a pair of each lane by the direct form. Neighbours read neighbouring components, SOME of two pairs at once,
// and what these differ by goes to the lane that sums it by way of `room`, SOME rows of 32 at a distance of STRIDE, in which
// nobody waits for a bank. All lanes of a warp have to be here.
enum { SOME = 16, STRIDE = 128 * GROUPS };
FN T exact(const Inputs& in, const u64 (&at)[OPERANDS], i64 i, i64 j, u32 depth, T* room) {
    const Input &x = in.at[POINT_X], &y = in.at[POINT_Y];
    const u32 lane = threadIdx.x % 32, part = lane % SOME, first = lane - part;
    const i64 from = (i64)at[POINT_X] + i * x.row, to = (i64)at[POINT_Y] + j * y.row;
    T sum = 0;
#pragma unroll 1
    for (u32 d = 0; d < depth; d += SOME) {
        const u32 own = d + part < depth ? d + part : 0;
#pragma unroll 8
        for (u32 c = 0; c < SOME; c++) {
            const i64 its = __shfl_sync(~0u, from, first + c), other = __shfl_sync(~0u, to, first + c);
            room[part * STRIDE + (lane + c) % 32] =
                widen(((const Stored*)x.base)[its + own * x.component]) - widen(((const Stored*)y.base)[other + own * y.component]);
        }
        __syncwarp();
        const u32 here = depth - d < SOME ? depth - d : SOME;
#pragma unroll 4
        for (u32 e = 0; e < here; e++) {
            const T v = room[e * STRIDE + (lane + e) % 32];
            sum = fma(v, v, sum);
        }
        __syncwarp();
    }
    return sum;
}

// Whether one of two numbers is the smaller one, or as small and first; of none, at -1, the number is infinite.
FN bool comes_before(T v, u32 at, T other, u32 there) { return v < other || (v == other && at < there); }

// What a lane has found of a row: the nearest of its columns by their squares, which lack the part of
// |x|^2, and two more than are asked for, so that what is left out is almost never needed. It is looked at
// seldom, and so lies in shared memory meanwhile.
#define FOUND (KEPT + 2)
#define QUARTER ((KEPT + 3) / 4)
struct Aside {
    T* first; // this thread's, at a distance of all threads that sift
    METHOD T& square(int k) const { return first[k * STRIDE]; }
    METHOD i32& at(int k) const { return ((i32*)first)[(FOUND + k) * STRIDE]; }
};
struct Found {
    T square[FOUND];
    i32 at[FOUND];
    METHOD void read(Aside from) { EACH(k, FOUND) { square[k] = from.square(k); at[k] = from.at(k); } }
    METHOD void write(Aside to) const { EACH(k, FOUND) { to.square(k) = square[k]; to.at(k) = at[k]; } }
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
        return fmin(nearest_of_four(square[KEPT - 1]), farthest_of_four(square[QUARTER - 1]));
    }
};

// Puts v at `to` in shared memory, and a number APART bytes behind it, and goes on by STEP, where v is at most `most`. One
// statement: with a branch for each number compilers take an eighth longer for all of the kernel.
template <int APART, int STEP> FN void put_if_at_most(u32& to, f32 v, f32 most, i32 number) {
    asm volatile("{ .reg .pred puts; setp.le.f32 puts, %1, %2; @puts st.shared.f32 [%0], %1; "
        "@puts st.shared.b32 [%0 + %4], %3; @puts add.s32 %0, %0, %5; }"
        : "+r"(to) : "f"(v), "f"(most), "r"(number), "n"(APART), "n"(STEP) : "memory");
}

// What waits to be put in its place: squares and where they are, those of the first row from the beginning of
// the room, those of the second from its end. A warp puts one of each after another, as many as its fullest
// lane has, so that it pays to wait until a lane has more than WAITING; EIGHT more may come before that is
// looked at.
#define ROOM (WAITING + EIGHT)
static_assert(2 * ROOM >= SOME, "room for what `exact` hands on, when nothing waits any more");
struct Waiting {
    enum { PLACE = STRIDE * (int)sizeof(T), LAST = (ROOM - 1) * PLACE };
    T* square; // this thread's, at a distance of all threads that sift
    i32* at;
    u32 next[2]; // where the next one of a row goes, in shared memory
    METHOD void init(void* memory) {
        square = (T*)memory + threadIdx.x;
        at = (i32*)(square + ROOM * STRIDE);
        clear();
    }
    METHOD void clear() {
        next[0] = shared_address(square);
        next[1] = next[0] + LAST;
    }
    // More than WAITING wait: fewer than EIGHT places are left.
    METHOD bool is_full() const { return (i32)(next[1] - next[0]) < (EIGHT - 1) * PLACE; }
    METHOD i32 count(int r) const {
        const u32 first = shared_address(square);
        return (i32)(r ? first + LAST - next[1] : next[0] - first) / PLACE;
    }
    METHOD i32 place(int r, i32 k) const { return (r ? ROOM - 1 - k : k) * STRIDE; }
    METHOD void add(int r, T v, T most, i32 j) {
        if (r) put_if_at_most<ROOM * PLACE, -PLACE>(next[1], v, most, j);
        else put_if_at_most<ROOM * PLACE, PLACE>(next[0], v, most, j);
    }
};

struct Kept {
    // What waits and what was found, of both rows of all threads that sift.
    enum { BYTES = (2 * ROOM + 2 * 2 * FOUND) * STRIDE * (int)sizeof(T) };
    // What a square may be wrong by; what may be among the smallest of a row; and what of that a lane
    // would keep.
    T bound, reach[2], gate[2];
    Waiting waiting;
    // What was found of row r, behind what waits.
    METHOD Aside found(int r) const { return {waiting.square + (2 * ROOM + r * 2 * FOUND) * STRIDE}; }

    METHOD void init(const Own& own, const Shape& shape, const Partial& partial, const Choice& choice,
        const Wide& w, void* memory) {
        waiting.init(memory);
        f64 norms = __longlong_as_double(choice.measured[0]) + __longlong_as_double(choice.measured[1]);
        bound = (T)(w.error * norms) + w.least;
        EACH(r, 2) {
            LOOP(k, FOUND) { found(r).square(k) = infinity<T>(); found(r).at(k) = -1; }
            // The last of the panels before.
            i64 last = state_at(shape, own.range, own.row[r]) * VALUES + KEPT - 1;
            bool known = w.goes_on && partial.indices[last] >= 0;
            gate[r] = reach[r] = known ? partial.values[last] - own.x[r].norm + bound : infinity<T>();
        }
    }
    // Puts what waits in its place.
    METHOD void settle() {
        LOOP(r, 2) {
            Found mine;
            mine.read(found(r));
            const i32 count = waiting.count(r);
            i32 most = __reduce_max_sync(~0u, count);
            LOOP(k, most) {
                i32 from = waiting.place(r, k < count ? k : 0);
                mine.put(k < count ? waiting.square[from] : infinity<T>(), waiting.at[from]);
            }
            mine.write(found(r));
            T all = fmin(r ? reach[1] : reach[0], mine.limit() + 2 * bound), own = fmin(all, mine.square[FOUND - 1]);
            reach[0] = r ? reach[0] : all;
            gate[0] = r ? gate[0] : own;
            reach[1] = r ? all : reach[1];
            gate[1] = r ? own : gate[1];
        }
        waiting.clear();
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
        // Most often there is room at once. Where there is none, what waits is put in its place, and the columns that are
        // left go the same way again.
#pragma unroll 1
        while (true) {
            bool room = true;
            EACH(q, OWN / 4) if (some >> q & 1) {
                room = room && !__any_sync(~0u, waiting.is_full());
                if (room) {
                    EACH(c, EIGHT) waiting.add(q % 2, square[q][c], gate[q % 2], tile.j + column_of(q / 2 * EIGHT + c));
                    some ^= 1u << q;
                }
            }
            if (!some) break;
            settle();
        }
    }
    METHOD void carry(u32) {}
    METHOD void end(const Inputs& in, const u64 (&at)[OPERANDS], const Own& own, const Shape& shape,
        const Output& values, const Output& indices, const Partial& partial, const Choice& choice, const Wide& w) {
        settle();
        LOOP(r, 2) {
            // Beyond its last, a lane may have left something out.
            const bool cut = found(r).at(FOUND - 1) >= 0;
            const T farthest = found(r).square(FOUND - 1) + (r ? own.x[1].norm : own.x[0].norm);
            put_in_order(found(r), in, at, r ? own.row[1] : own.row[0], own.begin, w.depth, r ? reach[1] : reach[0]);
            const T last = put_joined(found(r), own.first + r * 8, own, shape, at, values, indices, partial, w);
            give_up(choice, cut && own.first + r * 8 < shape.m && !(farthest > last + bound));
        }
    }
    // What a lane has found, in the order of the direct form, which is almost the one that it has, up to what may be among
    // the smallest of its row.
    METHOD void put_in_order(Aside mine, const Inputs& in, const u64 (&at)[OPERANDS], i64 row, i64 begin,
        u32 depth, T most) {
        int count = 0;
        LOOP(k, FOUND) {
            const bool needed = mine.at(k) >= 0 && mine.square(k) <= most;
            count += needed;
            if (!needed) mine.at(k) = -1;
        }
        const int all = __reduce_max_sync(~0u, count);
        // What waited is in its place, in all lanes: its room is free.
        __syncwarp();
        LOOP(k, all) {
            const i32 place = mine.at(k);
            const T v = exact(in, at, row, begin + (place < 0 ? 0 : place), depth, waiting.square - threadIdx.x % 32);
            if (place < 0) continue;
            int to = k;
#pragma unroll 1
            for (; to > 0 && comes_before(v, place, mine.square(to - 1), mine.at(to - 1)); to--) {
                mine.square(to) = mine.square(to - 1);
                mine.at(to) = mine.at(to - 1);
            }
            mine.square(to) = v;
            mine.at(to) = place;
        }
    }
    // Joins what four lanes have of row i, and what panels before had, whose j come first: each lane gives every
    // fourth of the smallest. The last of them, which is infinite where there are fewer.
    METHOD T put_joined(Aside mine, i64 i, const Own& own, const Shape& shape, const u64 (&at)[OPERANDS],
        const Output& values, const Output& indices, const Partial& partial, const Wide& w) {
        const i64 to = state_at(shape, own.range, i < shape.m ? i : shape.m - 1) * KEPT;
        const int lane = threadIdx.x % 4;
        T held[QUARTER], v = 0;
        i64 where[QUARTER];
        int next = 0, before = 0;
        LOOP(k, KEPT) {
            const i32 own_at = mine.at(next);
            i32 best = own_at;
            v = own_at < 0 ? infinity<T>() : mine.square(next);
            EACH(q, 2) {
                const T other = __shfl_xor_sync(~0u, v, q + 1);
                const i32 there = __shfl_xor_sync(~0u, best, q + 1);
                const bool takes = comes_before(other, there, v, best);
                v = takes ? other : v;
                best = takes ? there : best;
            }
            i64 j = best < 0 ? -1 : shape.start + own.begin + best;
            const i64 earlier = w.goes_on ? partial.indices[to + before] : -1;
            const T was = earlier < 0 ? infinity<T>() : partial.values[to + before];
            if (earlier >= 0 && !(v < was)) {
                v = was;
                j = earlier;
                before++;
            } else {
                next += best == own_at;
            }
            EACH(q, QUARTER) {
                held[q] = k == q * 4 + lane ? v : held[q];
                where[q] = k == q * 4 + lane ? j : where[q];
            }
        }
        // Nobody writes what another has yet to read.
        __syncwarp();
        const bool ends = shape.ranges == 1 && !w.goes_on && w.ends;
        EACH(q, QUARTER) {
            const int k = q * 4 + lane;
            if (i >= shape.m || k >= KEPT) continue;
            if (!ends) {
                partial.values[to + k] = held[q];
                partial.indices[to + k] = where[q];
            }
            if (ends && values.base) ((R*)values.base)[(i64)at[OPERANDS - 2] + i * values.row + k * values.component] = cast<R>(held[q]);
            if (ends && indices.base) ((i64*)indices.base)[(i64)at[OPERANDS - 1] + i * indices.row + k * indices.component] = where[q];
        }
        return v;
    }
};
