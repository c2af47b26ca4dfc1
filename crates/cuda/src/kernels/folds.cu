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
// The first of the most extreme elements, or the first NaN.
template <class V> struct Found { V value; i64 at; };
template <class V, bool LARGEST> struct Extreme {
    typedef Found<V> State;
    FN State init() { State s = {Number<V>::of(0), -1}; return s; }
    FN State step(State s, V x, i64 i) { State next = {x, i}; return merge(s, next); }
    FN State merge(State a, State b) {
        if (a.at < 0 || b.at < 0) return a.at < 0 ? b : a;
        bool a_nan = isnan(a.value), b_nan = isnan(b.value);
        bool up = precedes(a.value, b.value), down = precedes(b.value, a.value);
        bool a_wins = a_nan || b_nan ? a_nan : LARGEST ? down : up;
        bool b_wins = a_nan || b_nan ? b_nan : LARGEST ? up : down;
        return a_wins != b_wins ? (a_wins ? a : b) : a.at < b.at ? a : b;
    }
    FN V finish(State s, f64, f64) { return s.value; }
};
template <class V> struct Max : Extreme<V, true> {};
template <class V> struct Min : Extreme<V, false> {};
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
        f64 count = a.count + b.count, distance = b.mean - a.mean;
        State s = {count, a.mean + distance * (b.count / count),
            a.squares + b.squares + distance * distance * (a.count * b.count / count)};
        return s;
    }
    FN V finish(State s, f64, f64 correction) {
        f64 degrees = s.count - correction;
        return (V)(degrees > 0 ? s.squares / degrees : __longlong_as_double(0x7ff8000000000000ll));
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
