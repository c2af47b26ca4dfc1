// Pairs
// [types
// [folds.cu
typedef f32 T;
typedef f32 A;
typedef f32 R;
enum { DIM = 14, KEPT = 1, WEIGHTS = 0, VALUES = 14, INDICES = 0, WIDTH = 14, OPERANDS = 6, LONG = 64, AT_A_TIME = 4, FEW = 16, IN_REGISTERS = 8, LANES = 1, THREADS = 64, ROWS = 2, SLICES = 1, TILE = 64, GROUP = 2, AHEAD = 0, CHOOSES = 0, SCALED = 0, RESIDENT_BLOCKS = 0 };
struct Input { const void* base; i64 row, component; };
struct Inputs { Input at[4]; u64 numbers[1]; };
// [pair_math.cu
enum { BINARY = 1, BOUNDED = 0 };
// [pair_folds.cu
typedef Added<Cascade<DIM, ROWS> > State;
typedef Added<Cascade<DIM> > Merged;
template <class S> FN A result(const S& s, int k, A count) { return s.value(k) / count; }
FN f32 op_subtract_f32(f32 a, f32 b) { return (f32)(a - b); }
FN f32 op_multiply_f32(f32 a, f32 b) { return (f32)(a * b); }
struct Once { };
struct OfI { f32 s0[3]; };
struct alignas(16) OfJ { f32 s1[3]; f32 s11[14]; };
static_assert(sizeof(OfJ) == 80, "as room is made for it");
FN void once(const Inputs& in, const u64 (&at)[OPERANDS], Once& p) {
}
FN void of_i(const Inputs& in, const u64 (&at)[OPERANDS], const Once& p, i64 i, OfI& x) {
    ALONG(k, 3) x.s0[k] = ((const f32*)in.at[0].base)[(i64)at[0] + i * in.at[0].row + k * in.at[0].component];
}
FN void of_j(const Inputs& in, const u64 (&at)[OPERANDS], const Once& p, i64 j, OfJ& y) {
    ALONG(k, 3) y.s1[k] = ((const f32*)in.at[1].base)[(i64)at[1] + j * in.at[1].row + k * in.at[1].component];
    f32 s2[2]; 
    ALONG(k, 2) s2[k] = ((const f32*)in.at[2].base)[(i64)at[2] + j * in.at[2].row + k * in.at[2].component];
    f32 s3[14]; 
    ALONG(k, 14) s3[k] = ((const f32*)in.at[3].base)[(i64)at[3] + j * in.at[3].row + k * in.at[3].component];
    f32 s10[1]; 
    Sum<f32>::State t10;
    t10 = Sum<f32>::init();
    ALONG(k, 2) { t10 = Sum<f32>::step(t10, widen(s2[k]), k); }
    s10[0] = narrow<f32>(Sum<f32>::finish(t10, 2, 0));
    ALONG(k, 14) { y.s11[k] = narrow<f32>(op_multiply_f32(widen(s3[k]), widen(s10[0]))); }
}
FN void bring_long(const Inputs& in, const u64 (&at)[OPERANDS], i64 j, int count, OfJ* tile) {
}
template <int G> FN void fold(const Once& p, const OfI& x, const OfJ* y, State& s, i32 j) {
    f32 s6[G][1]; 
    EACH(u, G) s6[u][0] = 0;
    ALONG(k, 3) EACH(u, G) { f32 e5 = narrow<f32>(op_subtract_f32(widen(x.s0[k]), widen(y[u * LANES].s1[k]))); s6[u][0] = fma(widen(e5), widen(e5), s6[u][0]); }
    f32 s7[G][1]; 
    ALONG(k, 1) EACH(u, G) { s7[u][k] = narrow<f32>(root_of_exponent(widen(s6[u][0]))); }
    f32 s8[G][1]; 
    ALONG(k, 1) EACH(u, G) { s8[u][k] = narrow<f32>(op_multiply_f32(widen(__uint_as_float(3216550459u)), widen(s7[u][0]))); }
    f32 s9[G][1]; 
    ALONG(k, 1) EACH(u, G) { s9[u][k] = narrow<f32>(op_exp2_pair_f32(widen(s8[u][0]))); }
    ALONG(k, 14) EACH(u, G) { s.add(0 + k, widen(s9[u][0]), widen(y[u * LANES].s11[k])); }
}
FN void complete(const Inputs& in, const u64 (&at)[OPERANDS], const Once& p, i64 i, const OfI& x, State& s) {
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
enum { DIM = 1, KEPT = 1, WEIGHTS = 0, VALUES = 1, INDICES = 0, WIDTH = 1, OPERANDS = 6, LONG = 64, AT_A_TIME = 4, FEW = 16, IN_REGISTERS = 8, LANES = 1, THREADS = 128, APART = 1 };
// [pair_math.cu
enum { BINARY = 1, BOUNDED = 0 };
// [pair_folds.cu
typedef Added<Cascade<DIM> > State;
typedef Added<Cascade<DIM> > Merged;
template <class S> FN A result(const S& s, int k, A count) { return s.value(k) / count; }
// [pairs_ends.cu
// [pairs_merge.cu

}
