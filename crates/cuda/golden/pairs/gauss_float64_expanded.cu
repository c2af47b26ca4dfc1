// Pairs
// [types
typedef f64 T;
typedef f64 A;
typedef f64 R;
enum { DIM = 2, KEPT = 1, WEIGHTS = 0, VALUES = 2, INDICES = 0, WIDTH = 2, OPERANDS = 6, LONG = 64, AT_A_TIME = 4, FEW = 16, IN_REGISTERS = 8, LANES = 1, THREADS = 128, ROWS = 4, SLICES = 1, TILE = 128, GROUP = 4, AHEAD = 1, CHOOSES = 1, SCALED = 1, RESIDENT_BLOCKS = 0 };
struct Input { const void* base; i64 row, component; };
struct Inputs { Input at[4]; u64 numbers[1]; };
// [pair_math.cu
enum { BINARY = 0, BOUNDED = 0 };
// [pair_folds.cu
typedef Added<Cascade<DIM> > State;
typedef Added<Cascade<DIM> > Merged;
template <class S> FN A result(const S& s, int k, A count) { return s.value(k) / count; }
FN f64 op_subtract_f64(f64 a, f64 b) { return (f64)(a - b); }
FN f64 op_multiply_f64(f64 a, f64 b) { return (f64)(a * b); }
struct Once { f64 s7[1]; };
struct OfI { T product[3]; T norm; };
struct alignas(16) OfJ { f64 s1[3]; f64 s3[2]; T norm; };
static_assert(sizeof(OfJ) == 48, "as room is made for it");
FN void once(const Inputs& in, const u64 (&at)[OPERANDS], Once& p) {
    f64 s2[1]; 
    ALONG(k, 1) s2[k] = ((const f64*)in.at[2].base)[(i64)at[2] + k * in.at[2].component];
    ALONG(k, 1) { p.s7[k] = narrow<f64>(op_multiply_f64(widen(__longlong_as_double((long long)13832548176875979518ull)), widen(s2[0]))); }
}
FN void of_i(const Inputs& in, const u64 (&at)[OPERANDS], const Once& p, i64 i, OfI& x) {
    f64 s0[3]; 
    ALONG(k, 3) s0[k] = ((const f64*)in.at[0].base)[(i64)at[0] + i * in.at[0].row + k * in.at[0].component];
    SquaredNorm<T> norm;
    ALONG(k, 3) norm.add(widen(s0[k]));
    x.norm = norm.times((f64)p.s7[0]);
    ALONG(k, 3) x.product[k] = -2 * p.s7[0] * widen(s0[k]);
}
FN void of_j(const Inputs& in, const u64 (&at)[OPERANDS], const Once& p, i64 j, OfJ& y) {
    ALONG(k, 3) y.s1[k] = ((const f64*)in.at[1].base)[(i64)at[1] + j * in.at[1].row + k * in.at[1].component];
    ALONG(k, 2) y.s3[k] = ((const f64*)in.at[3].base)[(i64)at[3] + j * in.at[3].row + k * in.at[3].component];
    SquaredNorm<T> norm;
    ALONG(k, 3) norm.add(widen(y.s1[k]));
    y.norm = norm.times((f64)p.s7[0]);
}
FN void bring_long(const Inputs& in, const u64 (&at)[OPERANDS], i64 j, int count, OfJ* tile) {
}
template <int G> FN void fold(const Once& p, const OfI& x, const OfJ* y, State& s, i32 j) {
    f64 s8[G][1]; 
    EACH(u, G) s8[u][0] = y[u * LANES].norm;
    ALONG(k, 3) EACH(u, G) { s8[u][0] = fma(x.product[k], widen(y[u * LANES].s1[k]), s8[u][0]); }
    f64 s9[G][1]; 
    ALONG(k, 1) EACH(u, G) { s9[u][k] = narrow<f64>(exp2_of_pair(widen(s8[u][0]))); }
    ALONG(k, 2) EACH(u, G) { s.add(0 + k, widen(s9[u][0]), widen(y[u * LANES].s3[k])); }
}
FN void complete(const Inputs& in, const u64 (&at)[OPERANDS], const Once& p, i64 i, const OfI& x, State& s) {
    s.sums.scale(op_exp2_pair_f64(x.norm));
}
FN bool overflows(const State& s) {
    bool wild = false;
    ALONG(k, DIM) wild |= !(fabs(s.value(k)) < infinity<A>());
    return wild;
}
FN void prepare() { bring_roots(THREADS); }
// [pairs_ends.cu
// [pairs_origin.cu
// [pairs_short.cu
// [pairs.cu

}
// Merge
// [types
typedef f64 T;
typedef f64 A;
typedef f64 R;
enum { DIM = 2, KEPT = 1, WEIGHTS = 0, VALUES = 2, INDICES = 0, WIDTH = 2, OPERANDS = 6, LONG = 64, AT_A_TIME = 4, FEW = 16, IN_REGISTERS = 8, LANES = 1, THREADS = 128, APART = 0 };
// [pair_math.cu
enum { BINARY = 0, BOUNDED = 0 };
// [pair_folds.cu
typedef Added<Cascade<DIM> > State;
typedef Added<Cascade<DIM> > Merged;
template <class S> FN A result(const S& s, int k, A count) { return s.value(k) / count; }
// [pairs_ends.cu
// [pairs_merge.cu

}
