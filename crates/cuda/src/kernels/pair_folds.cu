// States of reductions over pairs, after the rows of the ops crate's `pair_fold.rs`. Declared
// before: T, what the formula computes in; A, what is accumulated in; DIM, KEPT and WEIGHTS, the
// numbers that states are made of; LONG, the longest vector whose loops are unrolled; FEW, the most
// ranks that registers hold. A state takes values of pairs in the order of j, or the plain
// arrays of another state whose pairs come later (`take`), and tells its numbers (`value`, `index`).

template <class V> FN V infinity() { return (V)__int_as_float(0x7f800000); }
template <class V> FN V not_a_number() { return (V)__int_as_float(0x7fffffff); }
// The largest finite number.
FN f32 greatest(f32) { return __int_as_float(0x7f7fffff); }
FN f64 greatest(f64) { return __longlong_as_double(0x7fefffffffffffffll); }

// Sums in runs of 64, of runs of 64 and so on, so that rounding errors grow with the logarithm of
// the count.
template <int N> struct Cascade {
    A run[N], runs[N], many[N], most[N];
    METHOD void init() { ALONG(k, N) run[k] = runs[k] = many[k] = most[k] = 0; }
    METHOD void add(int k, A v) { run[k] += v; }
    METHOD void add(int k, A v, A factor) { run[k] = fma(v, factor, run[k]); }
    METHOD void carry(u32 count) {
        ALONG(k, N) { runs[k] += run[k]; run[k] = 0; }
        if (count % 64 != 0) return;
        ALONG(k, N) { many[k] += runs[k]; runs[k] = 0; }
        if (count % 4096 != 0) return;
        ALONG(k, N) { most[k] += many[k]; many[k] = 0; }
    }
    METHOD void scale(A factor) {
        ALONG(k, N) { run[k] *= factor; runs[k] *= factor; many[k] *= factor; most[k] *= factor; }
    }
    METHOD A total(int k) const { return most[k] + (many[k] + (runs[k] + run[k])); }
};

// Sums with what every addition lost.
template <int N> struct Kahan {
    A sum[N], lost[N];
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
    METHOD A total(int k) const { return sum[k] - lost[k]; }
};

// What states without indices share.
struct WithoutIndices {
    METHOD i64 index(int, i64) const { return -1; }
};

template <class Sums> struct Added : WithoutIndices {
    Sums sums;
    METHOD void init() { sums.init(); }
    METHOD void add(int k, A v) { sums.add(k, v); }
    METHOD void add(int k, A v, A factor) { sums.add(k, v, factor); }
    METHOD void carry(u32 count) { sums.carry(count); }
    METHOD void take(const A* values, const i64*) { ALONG(k, DIM) sums.add(k, values[k]); }
    METHOD A value(int k) const { return sums.total(k); }
};

// How many are not zero.
struct Counted : Added<Cascade<DIM> > {
    template <int G> METHOD void steps(const T (&v)[G][DIM], const T (&)[G][WEIGHTS + 1], i32) {
        ALONG(k, DIM) EACH(u, G) sums.add(k, v[u][k] != 0 ? (A)1 : (A)0);
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

// The best of each component and where it is; X is an index.
template <bool LARGEST, class X> struct Best {
    A held[DIM];
    X at[DIM];
    METHOD void init() { ALONG(k, DIM) { held[k] = not_a_number<A>(); at[k] = -1; } }
    METHOD void put(int k, A v, X j) {
        if (!holds<LARGEST>(held[k], v) && v == v) { held[k] = v; at[k] = j; }
    }
    template <int G> METHOD void steps(const T (&v)[G][DIM], const T (&)[G][WEIGHTS + 1], i32 j) {
        ALONG(k, DIM) {
            A best = v[0][k];
            EACH(u, G) best = nearer<LARGEST>(best, v[u][k]);
            if (!holds<LARGEST>(held[k], best)) { EACH(u, G) put(k, v[u][k], j + u); }
        }
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
template <bool LARGEST, class X> struct Ranked {
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
        ALONG(c, DIM) {
            A best = v[0][c];
            EACH(u, G) best = nearer<LARGEST>(best, v[u][c]);
            if (!holds<LARGEST>(held[(KEPT - 1) * DIM + c], best)) { EACH(u, G) put(c, v[u][c], j + u); }
        }
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

// The largest exponent m, the sum of exp(F - m) and of its products with the weights. Sums are
// scaled by `shift`, which is m unless there is none yet; exponents up to `limit` need no new one.
// `lifted` is the shift as `exp_below` takes it, rounded: what that costs is made good at the end.
template <class Sums> struct Shifted : WithoutIndices {
    A shift, lifted, limit, moved; // `moved` is what all exponents lack of their part outside
    Sums sums;
    METHOD void init() {
        shift = lifted = moved = 0;
        limit = -infinity<A>();
        sums.init();
    }
    METHOD A largest() const { return shift != shift || limit != -infinity<A>() ? shift : limit; }
    METHOD A factor(A v) const { return v == infinity<A>() ? (A)1 : exp_below(v, lifted); }
    METHOD void raise(A v) {
        A m = largest();
        if (v <= m || m != m) return;
        // NaN wins, and stays; an infinite exponent leaves nothing of finite ones.
        sums.scale(m == -infinity<A>() ? (A)1 : unlifted_exp(lifted - lift_shift(v)));
        if (v != v) sums.scale(v);
        shift = v;
        lifted = lift_shift(v);
        limit = v != v ? -infinity<A>() : v == infinity<A>() ? greatest(v) : v;
    }
    template <int G> METHOD void steps(const T (&v)[G][DIM], const T (&w)[G][WEIGHTS + 1], i32) {
        bool low = true;
        EACH(u, G) low = low && (A)v[u][0] <= limit;
        A e[G];
        // Where pairs come in groups, all lanes of a warp are here: one way for all costs less than two.
        if (G > 1 ? __all_sync(~0u, low) : low) {
            EACH(u, G) e[u] = exp_below(v[u][0], lifted);
        } else {
            A top = v[0][0];
            EACH(u, G) top = v[u][0] <= top || top != top ? top : (A)v[u][0];
            raise(top);
            EACH(u, G) e[u] = factor(v[u][0]);
        }
        EACH(u, G) sums.add(0, e[u]);
        ALONG(k, WEIGHTS) EACH(u, G) sums.add(1 + k, w[u][k], e[u]);
    }
    METHOD void carry(u32 count) { sums.carry(count); }
    METHOD void take(const A* values, const i64*) {
        if (values[0] == -infinity<A>()) return;
        raise(values[0]);
        A e = factor(values[0]);
        ALONG(k, 1 + WEIGHTS) sums.add(k, values[1 + k] * e);
    }
    METHOD A value(int k) const {
        return k == 0 ? largest() + moved : sums.total(k - 1) * (isfinite(shift) ? lift_error(shift, lifted) : (A)1);
    }
};
