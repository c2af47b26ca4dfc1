// Reductions as states: init, step, merge, finish, after the rows of the ops crate's `fold.rs`.
// Here merge is commutative too, since lanes of a block do not hold neighbours: where the order of
// elements matters, the state knows its element's number.

FN f32 plus(f32 a, f32 b) { return a + b; }
FN f64 plus(f64 a, f64 b) { return a + b; }
FN i64 plus(i64 a, i64 b) { return (i64)((u64)a + (u64)b); }
FN u64 plus(u64 a, u64 b) { return a + b; }
FN f32 times(f32 a, f32 b) { return a * b; }
FN f64 times(f64 a, f64 b) { return a * b; }
FN i64 times(i64 a, i64 b) { return (i64)((u64)a * (u64)b); }
FN u64 times(u64 a, u64 b) { return a * b; }
template <class T> FN T over(T a, f64 n) { return a / (T)n; }
template <class T> FN complex<T> plus(complex<T> a, complex<T> b) { return make(a.re + b.re, a.im + b.im); }
template <class T> FN complex<T> times(complex<T> a, complex<T> b) {
    return make(a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re);
}
template <class T> FN complex<T> over(complex<T> a, f64 n) { return make(a.re / (T)n, a.im / (T)n); }
template <class T> struct Number { FN T of(int x) { return (T)x; } };
template <class T> struct Number<complex<T> > { FN complex<T> of(int x) { return make((T)x, (T)0); } };

template <class V> struct Sum {
    typedef V State;
    FN State init() { return Number<V>::of(0); }
    FN State step(State s, V x, i64) { return plus(s, x); }
    FN State merge(State a, State b) { return plus(a, b); }
    FN V finish(State s, f64, f64) { return s; }
};
template <class V> struct Mean : Sum<V> {
    FN V finish(V s, f64 n, f64) { return over(s, n); }
};
template <class V> struct Norm : Sum<V> {
    FN V step(V s, V x, i64) { return plus(s, times(x, x)); }
    FN V finish(V s, f64, f64) { return (V)sqrt((f64)s); }
};
template <class V> struct Prod {
    typedef V State;
    FN State init() { return Number<V>::of(1); }
    FN State step(State s, V x, i64) { return times(s, x); }
    FN State merge(State a, State b) { return times(a, b); }
    FN V finish(State s, f64, f64) { return s; }
};
// The first of the most extreme elements, or the first NaN. Elements come to `step` in order. All
// conditions are evaluated, since threads of a warp would seldom agree on a branch.
template <class V> struct Found { V value; i64 at; };
template <class V, bool LARGEST> struct Extreme {
    typedef Found<V> State;
    FN bool beats(V a, V b) { return (LARGEST ? precedes(b, a) : precedes(a, b)) | (isnan(a) & !isnan(b)); }
    FN State init() { State s = {Number<V>::of(0), -1}; return s; }
    FN State step(State s, V x, i64 i) {
        bool better = (s.at < 0) | beats(x, s.value);
        State next = {better ? x : s.value, better ? i : s.at};
        return next;
    }
    FN State merge(State a, State b) {
        bool first = beats(a.value, b.value) | (!beats(b.value, a.value) & (a.at < b.at));
        bool left = (b.at < 0) | ((a.at >= 0) & first);
        State s = {left ? a.value : b.value, left ? a.at : b.at};
        return s;
    }
};
// The least and the most that a value can be.
template <class V> struct Bounds { // integers
    FN V least() { return (V)-1 < (V)1 ? (V)((u64)1 << (8 * sizeof(V) - 1)) : (V)0; }
    FN V most() { return (V)~least(); }
};
template <> struct Bounds<bool> { FN bool least() { return false; } FN bool most() { return true; } };
template <> struct Bounds<f32> { FN f32 least() { return -most(); } FN f32 most() { return __uint_as_float(0x7f800000); } };
template <> struct Bounds<f64> {
    FN f64 least() { return -most(); }
    FN f64 most() { return __longlong_as_double(0x7ff0000000000000ll); }
};
template <class T> struct Bounds<complex<T> > {
    FN complex<T> least() { return make(Bounds<T>::least(), Bounds<T>::least()); }
    FN complex<T> most() { return make(Bounds<T>::most(), Bounds<T>::most()); }
};
// The extreme of two; NaN if one is.
template <bool LARGEST, class V> FN V extreme(V a, V b) { return Extreme<V, LARGEST>::beats(b, a) ? b : a; }
template <bool LARGEST> FN f32 extreme(f32 a, f32 b) {
    f32 c;
    if (LARGEST) asm("max.NaN.f32 %0, %1, %2;" : "=f"(c) : "f"(a), "f"(b));
    else asm("min.NaN.f32 %0, %1, %2;" : "=f"(c) : "f"(a), "f"(b));
    return c;
}
template <class V, bool LARGEST> struct Outermost {
    typedef V State;
    FN State init() { return LARGEST ? Bounds<V>::least() : Bounds<V>::most(); }
    FN State step(State s, V x, i64) { return extreme<LARGEST>(s, x); }
    FN State merge(State a, State b) { return extreme<LARGEST>(a, b); }
    FN V finish(State s, f64, f64) { return s; }
};
template <class V> struct Max : Outermost<V, true> {};
template <class V> struct Min : Outermost<V, false> {};
template <class V> struct ArgMax : Extreme<V, true> { FN i64 finish(Found<V> s, f64, f64) { return s.at; } };
template <class V> struct ArgMin : Extreme<V, false> { FN i64 finish(Found<V> s, f64, f64) { return s.at; } };
template <class V> struct Any {
    typedef bool State;
    FN State init() { return false; }
    FN State step(State s, V x, i64) { return s || is_true(x); }
    FN State merge(State a, State b) { return a || b; }
    FN bool finish(State s, f64, f64) { return s; }
};
template <class V> struct All {
    typedef bool State;
    FN State init() { return true; }
    FN State step(State s, V x, i64) { return s && is_true(x); }
    FN State merge(State a, State b) { return a && b; }
    FN bool finish(State s, f64, f64) { return s; }
};
template <class V> struct CountNonzero {
    typedef i64 State;
    FN State init() { return 0; }
    FN State step(State s, V x, i64) { return s + is_true(x); }
    FN State merge(State a, State b) { return a + b; }
    FN i64 finish(State s, f64, f64) { return s; }
};
struct Moments { f64 count, mean, squares; };
template <class V> struct Var {
    typedef Moments State;
    FN State init() { State s = {0, 0, 0}; return s; }
    FN State step(State s, V x, i64) {
        // The variance of anything that is not finite is NaN.
        State one = {1, (f64)x, (f64)x - (f64)x};
        return merge(s, one);
    }
    FN State merge(State a, State b) {
        if (a.count == 0 || b.count == 0) return a.count == 0 ? b : a;
        f64 count = a.count + b.count, distance = b.mean - a.mean, share = b.count * __drcp_rn(count);
        State s = {count, a.mean + distance * share,
            a.squares + b.squares + distance * distance * (a.count * share)};
        return s;
    }
    FN V finish(State s, f64, f64 correction) {
        f64 degrees = s.count - correction;
        return (V)(degrees > 0 ? s.squares / degrees : __longlong_as_double(0x7ff8000000000000ll));
    }
};
// Which of an output's elements a thread takes at once: runs of W neighbours, `apart` from each other.
template <int W> struct Runs {
    i64 first, apart;
    __device__ __forceinline__ i64 number(int k) const { return first + k / W * apart + k % W; }
};
// Several elements at once, of which the first `count` are there: for most folds step by step.
template <class F> struct Several {
    template <class V, int N, int W> FN typename F::State of(const V (&x)[N], int count, Runs<W> at) {
        typename F::State s = F::init();
#pragma unroll
        for (int k = 0; k < N; k++) if (k < count) s = F::step(s, x[k], at.number(k));
        return s;
    }
    // Merged into what was there before.
    template <class V, int N, int W> FN void into(typename F::State& sum, const V (&x)[N], int count, Runs<W> at) {
        sum = F::merge(sum, of(x, count, at));
    }
};
// The more extreme of two, of which a NaN is the most.
template <bool LARGEST, class V> FN V further(V a, V b) { return Extreme<V, LARGEST>::beats(b, a) ? b : a; }
template <bool LARGEST> FN f32 further(f32 a, f32 b) {
    if (LARGEST) asm("max.NaN.f32 %0, %0, %1;" : "+f"(a) : "f"(b));
    else asm("min.NaN.f32 %0, %0, %1;" : "+f"(a) : "f"(b));
    return a;
}
// The best of them, and then its number: elements come in order, and few groups have a better one.
template <class V, bool LARGEST> struct SeveralExtremes {
    template <int N, int W> FN void into(Found<V>& sum, const V (&x)[N], int count, Runs<W> at) {
        V top = x[0];
#pragma unroll
        for (int k = 1; k < N; k++) top = k < count ? further<LARGEST>(top, x[k]) : top;
        if ((count > 0) & ((sum.at < 0) | Extreme<V, LARGEST>::beats(top, sum.value)))
            sum = Extreme<V, LARGEST>::merge(sum, of(x, count, at));
    }
    template <int N, int W> FN Found<V> of(const V (&x)[N], int count, Runs<W> at) {
        V best = x[0];
        int found = 0;
#pragma unroll
        for (int k = 1; k < N; k++) {
            bool better = (k < count) & Extreme<V, LARGEST>::beats(x[k], best);
            best = better ? x[k] : best;
            found = better ? k : found;
        }
        Found<V> s = {best, count > 0 ? at.number(found) : -1};
        return s;
    }
};
template <class V> struct Several<ArgMax<V> > : SeveralExtremes<V, true> {};
template <class V> struct Several<ArgMin<V> > : SeveralExtremes<V, false> {};
// The mean first, and then the squares around it, without a division for each.
template <class V> struct Several<Var<V> > {
    template <int N, int W> FN Moments of(const V (&x)[N], int count, Runs<W>) {
        f64 wide[N], sum = 0, squares = 0;
#pragma unroll
        for (int k = 0; k < N; k++) wide[k] = k < count ? (f64)x[k] : 0;
#pragma unroll
        for (int k = 0; k < N / 2; k++) sum += wide[k] + wide[N - 1 - k];
        f64 mean = count == N ? sum * (1.0 / N) : sum / count;
#pragma unroll
        for (int k = 0; k < N / 2; k++) {
            f64 one = k < count ? wide[k] - mean : 0, other = N - 1 - k < count ? wide[N - 1 - k] - mean : 0;
            squares += fma(one, one, other * other);
        }
        Moments s = {(f64)count, mean, squares};
        return s;
    }
    template <int N, int W> FN void into(Moments& sum, const V (&x)[N], int count, Runs<W> at) {
        sum = Var<V>::merge(sum, of(x, count, at));
    }
};
struct ScaledSum { f64 max, sum; };
template <class V> struct LogSumExp {
    typedef ScaledSum State;
    FN f64 lowest() { return __longlong_as_double(0xfff0000000000000ll); }
    FN State init() { State s = {lowest(), 0}; return s; }
    FN State step(State s, V x, i64) { State one = {(f64)x, 1}; return merge(s, one); }
    FN State merge(State a, State b) {
        bool swap = !(b.max >= a.max || b.max != b.max);
        State low = swap ? b : a, high = swap ? a : b;
        if (low.sum == 0 || low.max == lowest()) return high.max == lowest() ? init() : high;
        f64 scale = low.max == high.max ? 1 : exp(low.max - high.max);
        State s = {high.max, high.sum + low.sum * scale};
        return s;
    }
    FN V finish(State s, f64, f64) { return (V)(s.max + log(s.sum)); }
};
