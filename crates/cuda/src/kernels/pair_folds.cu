// States of reductions over pairs, after the rows of the ops crate's `pair_fold.rs`. Declared
// before: T, what the formula computes in; A, what is accumulated in; DIM, KEPT and WEIGHTS, the
// numbers that states are made of; LONG, the longest vector whose loops are unrolled, and AT_A_TIME, how
// many components the loops along longer ones take at a time; FEW, the most ranks that registers hold, and IN_REGISTERS,
// the most sums whose levels they do; BINARY and BOUNDED, what is known of exponents. A state takes values of pairs in
// the order of j, or the plain arrays of another state whose pairs come later (`take`), and tells its numbers (`value`, `index`).

template <class V> FN V infinity() { return (V)__int_as_float(0x7f800000); }
// Whether a number is zero, or so far from the ends of its range that products and sums with it stay inside.
FN bool is_tame(f32 v) { return v == 0 || (::fabsf(v) >= 0x1p-90f && ::fabsf(v) <= 0x1p50f); }

// Sums in runs of 64, of runs of 64 and so on, so that rounding errors grow with the logarithm of
// the count. Of many sums, the levels that are seldom looked at stay in memory: there are better uses for registers.
// That is shared memory where these states are a thread's rows, of which there are OWNED, for local memory is set aside
// for all threads that a card could have.
template <int N, bool MANY, int OWNED> struct Seldom {
    A at[2][N];
    METHOD void own(int) {}
    METHOD A get(int level, int k) const { return at[level][k]; }
    METHOD void set(int level, int k, A v) { at[level][k] = v; }
};
template <int N> struct Seldom<N, true, 0> {
    volatile A at[2][N];
    METHOD void own(int) {}
    METHOD A get(int level, int k) const { return at[level][k]; }
    METHOD void set(int level, int k, A v) { at[level][k] = v; }
};
template <int N, int OWNED> struct Seldom<N, true, OWNED> {
    int row;
    FN volatile A* all() {
        SHARED_ROOM(A, memory, OWNED * 2 * N * THREADS, 0);
        return memory;
    }
    METHOD volatile A& at(int level, int k) const { return all()[((row * 2 + level) * N + k) * THREADS + threadIdx.x]; }
    METHOD void own(int r) { row = r; }
    METHOD A get(int level, int k) const { return at(level, k); }
    METHOD void set(int level, int k, A v) { at(level, k) = v; }
};
template <int N, int OWNED = 0> struct Cascade {
    A run[N], runs[N];
    Seldom<N, (N > IN_REGISTERS), OWNED> seldom;
    METHOD A many(int k) const { return seldom.get(0, k); }
    METHOD A most(int k) const { return seldom.get(1, k); }
    METHOD void many(int k, A v) { seldom.set(0, k, v); }
    METHOD void most(int k, A v) { seldom.set(1, k, v); }
    METHOD void own(int r) { seldom.own(r); }
    METHOD void init() { ALONG(k, N) { run[k] = runs[k] = 0; many(k, 0); most(k, 0); } }
    METHOD void add(int k, A v) { run[k] += v; }
    METHOD void add(int k, A v, A factor) { run[k] = fma(v, factor, run[k]); }
    METHOD void carry(u32 count) {
        ALONG(k, N) { runs[k] += run[k]; run[k] = 0; }
        if (count % 64 != 0) return;
        ALONG(k, N) { many(k, many(k) + runs[k]); runs[k] = 0; }
        if (count % 4096 != 0) return;
        ALONG(k, N) { most(k, most(k) + many(k)); many(k, 0); }
    }
    METHOD void scale(A factor) {
        ALONG(k, N) { run[k] *= factor; runs[k] *= factor; many(k, many(k) * factor); most(k, most(k) * factor); }
    }
    struct Mark { A run[N]; };
    METHOD Mark mark() const { Mark m; ALONG(k, N) m.run[k] = run[k]; return m; }
    METHOD void back(const Mark& m) { ALONG(k, N) run[k] = m.run[k]; }
    METHOD void become(int k, A v) { run[k] = v; runs[k] = 0; many(k, 0); most(k, 0); }
    METHOD A total(int k) const { return most(k) + (many(k) + (runs[k] + run[k])); }
};

// Sums with what every addition lost.
template <int N> struct Kahan {
    A sum[N], lost[N];
    METHOD void own(int) {}
    METHOD void init() { ALONG(k, N) sum[k] = lost[k] = 0; }
    METHOD void add(int k, A v) {
        A exact = v - lost[k], next = sum[k] + exact;
        // Nothing is lost of what is not finite.
        lost[k] = isfinite(next) ? (next - sum[k]) - exact : (A)0;
        sum[k] = next;
    }
    METHOD void add(int k, A v, A factor) { add(k, v * factor); }
    METHOD void carry(u32) {}
    METHOD void scale(A factor) { ALONG(k, N) { sum[k] *= factor; lost[k] *= factor; } }
    struct Mark { A sum[N], lost[N]; };
    METHOD Mark mark() const { Mark m; ALONG(k, N) { m.sum[k] = sum[k]; m.lost[k] = lost[k]; } return m; }
    METHOD void back(const Mark& m) { ALONG(k, N) { sum[k] = m.sum[k]; lost[k] = m.lost[k]; } }
    METHOD A total(int k) const { return sum[k] - lost[k]; }
};

// What states share that take pairs for good, however many come together: nothing is to be kept of what they
// were before (`begin`, with the end of those j), nothing to be taken again, and nothing left to do after the last (`end`);
// nor do they need to know which of a thread's rows they are of (`own`), or what came before in other slices (`follow`,
// `leave`).
struct Steady {
    METHOD void own(int) {}
    template <class P> METHOD void follow(const P&, i64, i64) {}
    template <class P> METHOD void leave(const P&, i64, i64) const {}
    METHOD void begin(i32) {}
    METHOD void end() {}
    METHOD bool strays() { return false; }
    METHOD void back() {}
};

// What states without indices share.
struct WithoutIndices : Steady {
    METHOD i64 index(int, i64) const { return -1; }
};

template <class Sums> struct Added : WithoutIndices {
    Sums sums;
    METHOD void own(int r) { sums.own(r); }
    METHOD void init() { sums.init(); }
    METHOD void add(int k, A v) { sums.add(k, v); }
    METHOD void add(int k, A v, A factor) { sums.add(k, v, factor); }
    METHOD void carry(u32 count) { sums.carry(count); }
    METHOD void take(const A* values, const i64*) { ALONG(k, DIM) sums.add(k, values[k]); }
    METHOD A value(int k) const { return sums.total(k); }
};

// How many are not zero.
template <int OWNED> struct Counted : Added<Cascade<DIM, OWNED> > {
    template <int G> METHOD void steps(const T (&v)[G][DIM], const T (&)[G][WEIGHTS + 1], i32) {
        ALONG(k, DIM) EACH(u, G) this->sums.add(k, v[u][k] != 0 ? (A)1 : (A)0);
    }
};

// One number for each component, by an operation.
template <class Operation> struct Plain : WithoutIndices {
    A held[DIM];
    METHOD void init() { ALONG(k, DIM) held[k] = Operation::neutral(); }
    template <int G> METHOD void steps(const T (&v)[G][DIM], const T (&)[G][WEIGHTS + 1], i32) {
        ALONG(k, DIM) EACH(u, G) held[k] = Operation::of(held[k], (A)v[u][k]);
    }
    METHOD void carry(u32) {}
    METHOD void take(const A* values, const i64*) {
        ALONG(k, DIM) held[k] = Operation::of(held[k], values[k]);
    }
    METHOD A value(int k) const { return held[k]; }
};
struct Multiplied { FN A neutral() { return 1; } FN A of(A a, A b) { return a * b; } };
struct AnyTrue { FN A neutral() { return 0; } FN A of(A a, A b) { return a != 0 || b != 0 ? 1 : 0; } };
struct AllTrue { FN A neutral() { return 1; } FN A of(A a, A b) { return a != 0 && b != 0 ? 1 : 0; } };

// Whether a value is not worse than one that is held; false where one of them is NaN, which a
// place holds until it is taken.
template <bool LARGEST> FN bool holds(A held, A v) { return LARGEST ? held >= v : held <= v; }
template <bool LARGEST> FN A nearer(A a, A b) { return LARGEST ? fmax(a, b) : fmin(a, b); }

// Whether component k of some value of a group may be better than the one that is held; none is where this says no.
template <bool LARGEST, int G> FN bool may_be_better(f32 held, const T (&v)[G][DIM], int k) {
    A best = v[0][k];
    EACH(u, G) best = nearer<LARGEST>(best, v[u][k]);
    return !holds<LARGEST>(held, best);
}
// Of doubles the upper halves are compared, for which there are more units. Taken for numbers in single precision they are
// in the same order, but from 2^1017 on for infinite or NaN. Nothing is asked of the rest here: compilers would have those
// comparisons done for every group, and whoever puts a value in its place asks for himself.
FN f32 upper_half(f64 v) { return __int_as_float(__double2hiint(v)); }
template <bool LARGEST, int G> FN bool may_be_better(f64 held, const T (&v)[G][DIM], int k) {
    bool may = false;
    EACH(u, G) may |= !(LARGEST ? upper_half(v[u][k]) < upper_half(held) : upper_half(v[u][k]) > upper_half(held));
    return may;
}

// The best of each component and where it is; X is an index.
template <bool LARGEST, class X> struct Best : Steady {
    A held[DIM];
    X at[DIM];
    METHOD void init() { ALONG(k, DIM) { held[k] = not_a_number<A>(); at[k] = -1; } }
    METHOD void put(int k, A v, X j) {
        if (!holds<LARGEST>(held[k], v) && v == v) { held[k] = v; at[k] = j; }
    }
    template <int G> METHOD void steps(const T (&v)[G][DIM], const T (&)[G][WEIGHTS + 1], i32 j) {
        ALONG(k, DIM) if (may_be_better<LARGEST>(held[k], v, k)) { EACH(u, G) put(k, v[u][k], j + u); }
    }
    METHOD void carry(u32) {}
    METHOD void take(const A* values, const i64* indices) {
        ALONG(k, DIM) if (indices[k] >= 0) put(k, values[k], (X)indices[k]);
    }
    METHOD A value(int k) const {
        return at[k] >= 0 ? held[k] : LARGEST ? -infinity<A>() : infinity<A>();
    }
    METHOD i64 index(int k, i64 first) const { return at[k] >= 0 ? first + at[k] : -1; }
};

// The KEPT best of each component in order, and where they are.
template <bool LARGEST, class X> struct Ranked : Steady {
    A held[KEPT * DIM];
    X at[KEPT * DIM];
    METHOD void init() {
        ALONG(k, KEPT * DIM) { held[k] = not_a_number<A>(); at[k] = -1; }
    }
    // Values come in the order of their indices, so that equal ones stay behind those held.
    METHOD void put(int c, A v, X j) {
        if (holds<LARGEST>(held[(KEPT - 1) * DIM + c], v) || v != v) return;
        if (KEPT * DIM <= FEW) {
            // Every place by itself, so that all stay in registers: from the last one up, each
            // takes what is before it, the new value, or nothing.
            EACH(up, KEPT) {
                const int k = KEPT - 1 - up, here = k * DIM + c, before = k > 0 ? here - DIM : c;
                bool moves = k > 0 && !holds<LARGEST>(held[before], v);
                bool takes = !holds<LARGEST>(held[here], v);
                held[here] = moves ? held[before] : takes ? v : held[here];
                at[here] = moves ? at[before] : takes ? j : at[here];
            }
            return;
        }
        int k = KEPT - 1;
        for (; k > 0 && !holds<LARGEST>(held[(k - 1) * DIM + c], v); k--) {
            held[k * DIM + c] = held[(k - 1) * DIM + c];
            at[k * DIM + c] = at[(k - 1) * DIM + c];
        }
        held[k * DIM + c] = v;
        at[k * DIM + c] = j;
    }
    template <int G> METHOD void steps(const T (&v)[G][DIM], const T (&)[G][WEIGHTS + 1], i32 j) {
        ALONG(c, DIM) if (may_be_better<LARGEST>(held[(KEPT - 1) * DIM + c], v, c)) { EACH(u, G) put(c, v[u][c], j + u); }
    }
    METHOD void carry(u32) {}
    METHOD void take(const A* values, const i64* indices) {
        LOOP(k, KEPT) {
            EACH(c, DIM) if (indices[k * DIM + c] >= 0) put(c, values[k * DIM + c], (X)indices[k * DIM + c]);
        }
    }
    METHOD A value(int k) const {
        return at[k] >= 0 ? held[k] : LARGEST ? -infinity<A>() : infinity<A>();
    }
    METHOD i64 index(int k, i64 first) const { return at[k] >= 0 ? first + at[k] : -1; }
};

// The largest exponent m, the sum of exp(F - m) and of its products with the weights. Sums are about `shift`,
// which is set a little above m, so that a new one is seldom needed. Groups of pairs are taken as if none were:
// only after many of them it is looked whether m went above the limit. If it did not go far, sums are scaled;
// else, and always with weights, whose products could have overflowed, the pairs are taken again (`strays`), about their own m
// unless that is infinite, when a look at each of them is needed. Further above, shifts would be left less often, but exponents
// are rounded where they are.
//
// Where exponentials are powers of two (BINARY), so are shifts, and one product and sum, rounded once, is all that a pair needs. By
// so much as a shift is rounded, all pairs of a row are moved alike: up to m of 2^30 by no more than 64, so that powers
// and 64 of them stay in range. Beyond, float32 has so few numbers that others leave nothing beside the largest: the shift is m itself, and
// the slope 1, by which differences are exact. Of an infinite m the limit is below it, so that pairs are looked at one by one. Where
// exponents are squares of points that are looked at (BOUNDED) there are none beyond, and the slope is a constant.
#define AHEAD_OF_TOP ((A)4)
#define NOT_FAR ((A)60)
#define SLOPE ((A)(BINARY ? 1.44269504f : 1.f))
FN bool is_beyond_shifts(A top) { return !BOUNDED && ::fabs(top) >= (BINARY ? (A)(1 << 30) : infinity<A>()); }
FN A power(A v) { return BINARY ? (A)op_exp2_pair_f32((f32)v) : exp(v); }
template <class Sums> struct Shifted : WithoutIndices {
    A top, shift, slope, limit, moved; // `moved` is what all exponents lack of their part outside
    A before;                          // m, and sums, as they were
    typename Sums::Mark held;
    Sums sums;
    METHOD void own(int r) { sums.own(r); }
    METHOD void init() {
        top = limit = -infinity<A>();
        shift = moved = 0;
        slope = SLOPE;
        sums.init();
    }
    METHOD void begin(i32) { before = top; held = sums.mark(); }
    METHOD bool strays() {
        if (top <= limit) return false;
        if (WEIGHTS == 0 && is_near() && top - limit <= NOT_FAR && !is_beyond_shifts(top)) {
            raise();
            return false;
        }
        sums.back(held);
        if (top == infinity<A>()) top = before;
        else raise();
        return true;
    }
    // What is taken again although it did not stray.
    METHOD void back() { sums.back(held); }
    // Whether there is something, about a shift that others are near to.
    METHOD bool is_near() const { return limit != -infinity<A>() && slope == SLOPE; }
    METHOD void raise() {
        if (shift == infinity<A>()) return;
        const bool far = is_beyond_shifts(top);
        A next = far ? top : (top + AHEAD_OF_TOP) * SLOPE;
        sums.scale(far || !is_near() ? (A)0 : power(shift - next));
        shift = next;
        slope = far ? (A)1 : SLOPE;
        limit = !far ? top + AHEAD_OF_TOP : top == infinity<A>() ? -top : top;
    }
    // What exp(v - shift) is a power by.
    METHOD A exponent(A v) const { return BINARY ? fma(v, slope, -shift) : v - shift; }
    METHOD A factor(A v) {
        top = fmax(top, v);
        if (!(top <= limit)) raise();
        return v == infinity<A>() ? (A)1 : power(exponent(v));
    }
    template <int G> METHOD void steps(const T (&v)[G][DIM], const T (&w)[G][WEIGHTS + 1], i32) {
        // NaN is never the largest, but its exponential is NaN, and so are all sums from there on.
        A e[G];
        EACH(u, G) {
            if (G > 1) top = fmax(top, (A)v[u][0]);
            e[u] = G > 1 ? power(exponent(v[u][0])) : factor(v[u][0]);
        }
        EACH(u, G) sums.add(0, e[u]);
        ALONG(k, WEIGHTS) EACH(u, G) sums.add(1 + k, w[u][k], e[u]);
    }
    METHOD void carry(u32 count) { sums.carry(count); }
    METHOD void take(const A* values, const i64*) {
        // Of pairs that are all masked nothing counts, but a NaN among their sums stays one.
        A e = values[0] == -infinity<A>() ? (A)0 : factor(values[0]);
        ALONG(k, 1 + WEIGHTS) sums.add(k, values[1 + k] * e);
    }
    METHOD A value(int k) const {
        A sum = sums.total(k > 0 ? k - 1 : 0);
        if (k == 0) return sum != sum ? sum : top + moved;
        return isfinite(top) ? sum * power(-exponent(top)) : sum;
    }
};
