// Pairs
// [types
typedef f32 T;
typedef f32 A;
typedef f32 R;
enum { DIM = 1, KEPT = 1, WEIGHTS = 0, VALUES = 2, INDICES = 0, WIDTH = 1, OPERANDS = 6, LONG = 64, AT_A_TIME = 4, FEW = 16, IN_REGISTERS = 8, LANES = 1, THREADS = 128, ROWS = 4, SLICES = 1, TILE = 128, GROUP = 8, AHEAD = 1, CHOOSES = 1, SCALED = 0, RESIDENT_BLOCKS = 5 };
struct Input { const void* base; i64 row, component; };
struct Inputs { Input at[4]; u64 numbers[1]; };
// [pair_math.cu
enum { BINARY = 1, BOUNDED = 0 };
// [pair_folds.cu
typedef Shifted<Cascade<1 + WEIGHTS> > State;
typedef Shifted<Cascade<1 + WEIGHTS> > Merged;
template <class S> FN A result(const S& s, int k, A count) { return s.value(0) + log(s.value(1 + k)); }
FN f32 op_subtract_f32(f32 a, f32 b) { return (f32)(a - b); }
FN f32 op_multiply_f32(f32 a, f32 b) { return (f32)(a * b); }
struct Once { f32 s2[1]; };
struct OfI { T product[3]; T norm; };
struct alignas(16) OfJ { f32 s1[3]; f32 s4[1]; T norm; };
static_assert(sizeof(OfJ) == 32, "as room is made for it");
FN void once(const Inputs& in, const u64 (&at)[OPERANDS], Once& p) {
    ALONG(k, 1) p.s2[k] = ((const f32*)in.at[2].base)[(i64)at[2] + k * in.at[2].component];
}
FN void of_i(const Inputs& in, const u64 (&at)[OPERANDS], const Once& p, i64 i, OfI& x) {
    f32 s0[3]; 
    ALONG(k, 3) s0[k] = ((const f32*)in.at[0].base)[(i64)at[0] + i * in.at[0].row + k * in.at[0].component];
    SquaredNorm<T> norm;
    ALONG(k, 3) norm.add(widen(s0[k]));
    x.norm = norm.times((f64)p.s2[0]);
    ALONG(k, 3) x.product[k] = -2 * p.s2[0] * widen(s0[k]);
}
FN void of_j(const Inputs& in, const u64 (&at)[OPERANDS], const Once& p, i64 j, OfJ& y) {
    ALONG(k, 3) y.s1[k] = ((const f32*)in.at[1].base)[(i64)at[1] + j * in.at[1].row + k * in.at[1].component];
    f32 s3[2]; 
    ALONG(k, 2) s3[k] = ((const f32*)in.at[3].base)[(i64)at[3] + j * in.at[3].row + k * in.at[3].component];
    ALONG(k, 1) { y.s4[k + 0] = s3[k + 0]; }
    SquaredNorm<T> norm;
    ALONG(k, 3) norm.add(widen(y.s1[k]));
    y.norm = norm.times((f64)p.s2[0]);
}
FN void bring_long(const Inputs& in, const u64 (&at)[OPERANDS], i64 j, int count, OfJ* tile) {
}
template <int G> FN void fold(const Once& p, const OfI& x, const OfJ* y, State& s, i32 j) {
    f32 s7[G][1]; 
    EACH(u, G) s7[u][0] = y[u * LANES].norm;
    ALONG(k, 3) EACH(u, G) { s7[u][0] = fma(x.product[k], widen(y[u * LANES].s1[k]), s7[u][0]); }
    f32 s8[G][1]; 
    ALONG(k, 1) EACH(u, G) { s8[u][k] = narrow<f32>(op_subtract_f32(widen(y[u * LANES].s4[0]), widen(s7[u][0]))); }
    T v[G][DIM], w[G][WEIGHTS + 1];
    ALONG(k, 1) EACH(u, G) { v[u][k] = widen(s8[u][0]); }
    s.template steps<G>(v, w, j);
}
FN void complete(const Inputs& in, const u64 (&at)[OPERANDS], const Once& p, i64 i, const OfI& x, State& s) {
    s.moved = -x.norm;
}
FN bool overflows(const State&) { return false; }
FN void prepare() {}
// [pairs_ends.cu
// [pairs_origin.cu
// [pairs_short.cu
// [pairs.cu

}
// Merge
// [types
typedef f32 T;
typedef f32 A;
typedef f32 R;
enum { DIM = 1, KEPT = 1, WEIGHTS = 0, VALUES = 2, INDICES = 0, WIDTH = 1, OPERANDS = 6, LONG = 64, AT_A_TIME = 4, FEW = 16, IN_REGISTERS = 8, LANES = 1, THREADS = 128, APART = 0 };
// [pair_math.cu
enum { BINARY = 1, BOUNDED = 0 };
// [pair_folds.cu
typedef Shifted<Cascade<1 + WEIGHTS> > State;
typedef Shifted<Cascade<1 + WEIGHTS> > Merged;
template <class S> FN A result(const S& s, int k, A count) { return s.value(0) + log(s.value(1 + k)); }
// [pairs_ends.cu
// [pairs_merge.cu

}
