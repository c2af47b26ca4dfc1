// The KEPT best of a number where they are many, after `pair_folds.cu`. A team, the LANES threads of a warp, owns
// rows together: each thread takes every LANES-th j of them. What is better than the last that is kept waits,
// one for each thread, until no more fit; then those that wait are sorted and joined with the kept ones, which
// lie in order over the registers of the team: place k is number k / LANES of thread k % LANES.

template <bool LARGEST, class X, bool FOLLOWS = false> struct Team : Steady {
    FN constexpr int whole(int n) { return n <= 1 ? 1 : 2 * whole((n + 1) / 2); }
    enum { HELD = whole((KEPT + LANES - 1) / LANES) };
    enum : X { NONE = (X)(~0ull >> (65 - 8 * sizeof(X))) };
    A held[HELD], gate; // The last that is kept; NaN while there are fewer.
    X at[HELD];
    A waits;
    X waits_at;
    u32 waiting;
    i32 limit; // From there on there are no j.
    A floor;   // Where ranks of another slice were before: those here come after it, and equal ones after its index.
    i32 floor_at;
    FN u32 lane() { return threadIdx.x % LANES; }
    FN A worst() { return LARGEST ? -infinity<A>() : infinity<A>(); }
    // Equal values are in the order of their indices, and empty places behind all.
    FN bool before(A a, X i, A b, X j) { return (LARGEST ? a > b : a < b) || (a == b && i < j); }
    METHOD void begin(i32 end) { limit = end; }
    template <class P> METHOD void follow(const P& partial, i64 row, i64 first) {
        if (!FOLLOWS) return;
        i64 at = partial.last_at[row], here = at - 2 - first;
        const i64 most = 0x7fffffff;
        floor = at == 0 ? -worst() : at == 1 ? worst() : partial.last[row];
        floor_at = at == 1 || here > most ? (i32)most : here < 0 ? -1 : (i32)here;
    }
    METHOD bool comes(A v, i32 j) const {
        return !FOLLOWS || (LARGEST ? v < floor : v > floor) || (v == floor && j > floor_at);
    }
    template <class P> METHOD void leave(const P& partial, i64 row, i64 first) const {
        if (!partial.last) return;
        EACH(k, HELD) if (k * LANES + lane() == partial.place) {
            partial.last[row] = held[k];
            partial.last_at[row] = at[k] == NONE ? 1 : first + at[k] + 2;
        }
    }
    METHOD void init() {
        EACH(k, HELD) { held[k] = worst(); at[k] = NONE; }
        gate = not_a_number<A>();
        waiting = 0;
    }
    // Of this number and that of the thread `stride` away, the better one or the worse one.
    FN void exchange(A& v, X& j, u32 stride, bool better) {
        A other = __shfl_xor_sync(~0u, v, stride);
        X there = __shfl_xor_sync(~0u, j, stride);
        bool takes = before(other, there, v, j) == better;
        v = takes ? other : v;
        j = takes ? there : j;
    }
    METHOD void put(int k, A v, X j) {
        bool takes = before(v, j, held[k], at[k]);
        held[k] = takes ? v : held[k];
        at[k] = takes ? j : at[k];
    }
    // Puts in order what first gets better and then worse.
    METHOD void straighten() {
        PRAGMA(unroll) for (int step = HELD / 2; step > 0; step /= 2) {
            EACH(k, HELD) if ((k & step) == 0) {
                A v = held[k];
                X j = at[k];
                put(k, held[k + step], at[k + step]);
                bool moved = at[k] != j;
                held[k + step] = moved ? v : held[k + step];
                at[k + step] = moved ? j : at[k + step];
            }
        }
        PRAGMA(unroll 1) for (u32 stride = LANES / 2; stride > 0; stride /= 2) {
            EACH(k, HELD) exchange(held[k], at[k], stride, (lane() & stride) == 0);
        }
    }
    METHOD void settle() {
        A v = lane() < waiting ? waits : worst();
        X j = lane() < waiting ? waits_at : NONE;
        // The best comes last, to meet the last places.
        PRAGMA(unroll 1) for (u32 size = 2; size <= LANES; size *= 2) {
            PRAGMA(unroll 1) for (u32 stride = size / 2; stride > 0; stride /= 2) {
                exchange(v, j, stride, ((lane() & stride) == 0) != ((lane() & size) == 0));
            }
        }
        put(HELD - 1, v, j);
        straighten();
        A last = __shfl_sync(~0u, held[(KEPT - 1) / LANES], (KEPT - 1) % LANES);
        X where = __shfl_sync(~0u, at[(KEPT - 1) / LANES], (KEPT - 1) % LANES);
        gate = where == NONE ? not_a_number<A>() : last;
        waiting = 0;
    }
    template <int G> METHOD void steps(const T (&v)[G][DIM], const T (&)[G][WEIGHTS + 1], i32 j) {
        A best = FOLLOWS ? worst() : (A)v[0][0];
        EACH(u, G) best = comes(v[u][0], j + u * LANES) ? nearer<LARGEST>(best, v[u][0]) : best;
        if (!__any_sync(~0u, !holds<LARGEST>(gate, best))) return;
        __shared__ A values[THREADS];
        __shared__ X places[THREADS];
        LOOP(u, G) {
            A here = v[0][0];
            EACH(q, G) here = q == u ? (A)v[q][0] : here;
            bool passes = j + u * LANES < limit && here == here && !holds<LARGEST>(gate, here) && comes(here, j + u * LANES);
            u32 all = __ballot_sync(~0u, passes), count = __popc(all);
            if (count == 0) continue;
            if (waiting + count > LANES) settle();
            u32 to = waiting + __popc(all & ((1u << lane()) - 1)), first = threadIdx.x - lane();
            if (passes) { values[first + to] = here; places[first + to] = j + u * LANES; }
            __syncwarp();
            bool mine = lane() >= waiting && lane() < waiting + count;
            waits = mine ? values[threadIdx.x] : waits;
            waits_at = mine ? places[threadIdx.x] : waits_at;
            __syncwarp();
            waiting += count;
        }
    }
    METHOD void carry(u32) {}
    METHOD void end() { if (waiting > 0) settle(); }
    // What another team kept, in order.
    METHOD void take(const A* values, const i64* indices) {
        EACH(k, HELD) {
            int from = LANES * HELD - 1 - (k * LANES + (int)lane());
            bool there = from < KEPT && indices[from] >= 0;
            put(k, there ? values[from] : worst(), there ? (X)indices[from] : NONE);
        }
        straighten();
    }
    // Of places that are this thread's.
    METHOD A value(int k) const { return held[(u32)k / LANES]; }
    METHOD i64 index(int k, i64 first) const {
        X j = at[(u32)k / LANES];
        return j != NONE ? first + j : -1;
    }
};
