// Pairs
// [types
// [folds.cu
typedef f32 T;
typedef f32 A;
typedef f32 R;
enum { DIM = 3, KEPT = 1, WEIGHTS = 0, VALUES = 3, INDICES = 0, WIDTH = 3, OPERANDS = 5, LONG = 64, AT_A_TIME = 4, FEW = 16, IN_REGISTERS = 8, LANES = 1, THREADS = 128, ROWS = 4, SLICES = 1, TILE = 128, GROUP = 2, AHEAD = 1, CHOOSES = 0, SCALED = 0, RESIDENT_BLOCKS = 0 };
struct Input { const void* base; i64 row, component; };
struct Inputs { Input at[3]; u64 numbers[1]; };
// [pair_math.cu
enum { BINARY = 1, BOUNDED = 0 };
// [pair_folds.cu
typedef Plain<Multiplied> State;
typedef Plain<Multiplied> Merged;
template <class S> FN A result(const S& s, int k, A count) { return s.value(k); }
FN f32 op_add_f32(f32 a, f32 b) { return (f32)(a + b); }
FN f32 op_multiply_f32(f32 a, f32 b) { return (f32)(a * b); }
FN f32 op_fma_f32(f32 a, f32 b, f32 c) { return (f32)(fma(a, b, c)); }
FN bool op_less_f32(f32 a, f32 b) { return (bool)(a < b); }
struct Once { f32 s2[1]; f32 s3[1]; };
struct OfI { f32 s0[3]; f32 s5[3]; };
struct alignas(16) OfJ { f32 s1[3]; f32 s9[1]; };
static_assert(sizeof(OfJ) == 16, "as room is made for it");
FN void once(const Inputs& in, const u64 (&at)[OPERANDS], Once& p) {
    ALONG(k, 1) p.s2[k] = ((const f32*)in.at[2].base)[(i64)at[2] + k * in.at[2].component];
    ALONG(k, 1) p.s3[k] = __uint_as_float((u32)in.numbers[0]);
}
FN void of_i(const Inputs& in, const u64 (&at)[OPERANDS], const Once& p, i64 i, OfI& x) {
    ALONG(k, 3) x.s0[k] = ((const f32*)in.at[0].base)[(i64)at[0] + i * in.at[0].row + k * in.at[0].component];
    ALONG(k, 3) { x.s5[k] = narrow<f32>(op_multiply_f32(widen(x.s0[k]), widen(p.s2[0]))); }
}
FN void of_j(const Inputs& in, const u64 (&at)[OPERANDS], const Once& p, i64 j, OfJ& y) {
    ALONG(k, 3) y.s1[k] = ((const f32*)in.at[1].base)[(i64)at[1] + j * in.at[1].row + k * in.at[1].component];
    i64 s8[1]; 
    ArgMin<f32>::State t8;
    t8 = ArgMin<f32>::init();
    ALONG(k, 3) { t8 = ArgMin<f32>::step(t8, widen(y.s1[k]), k); }
    s8[0] = narrow<i64>(ArgMin<f32>::finish(t8, 3, 0));
    ALONG(k, 1) { y.s9[k] = cast<f32>(widen(s8[0])); }
}
FN void bring_long(const Inputs& in, const u64 (&at)[OPERANDS], i64 j, int count, OfJ* tile) {
}
template <int G> FN void fold(const Once& p, const OfI& x, const OfJ* y, State& s, i32 j) {
    f32 s7[G][1]; 
    Max<f32>::State t7[G];
    EACH(u, G) t7[u] = Max<f32>::init();
    ALONG(k, 3) EACH(u, G) { f32 e6 = narrow<f32>(op_add_f32(widen(x.s0[k]), widen(y[u * LANES].s1[k]))); t7[u] = Max<f32>::step(t7[u], widen(e6), k); }
    EACH(u, G) s7[u][0] = narrow<f32>(Max<f32>::finish(t7[u], 3, 0));
    f32 s10[G][1]; 
    ALONG(k, 1) EACH(u, G) { s10[u][k] = narrow<f32>(op_add_f32(widen(s7[u][0]), widen(y[u * LANES].s9[0]))); }
    f32 s13[G][3]; 
    ALONG(k, 3) EACH(u, G) { b8 e4 = narrow<b8>(op_less_f32(widen(x.s0[k]), widen(y[u * LANES].s1[k]))); f32 e11 = widen(e4) ? x.s5[k] : s10[u][0]; s13[u][k] = narrow<f32>(op_fma_f32(widen(p.s3[0]), widen(e11), widen(__uint_as_float(1065353216u)))); }
    T v[G][DIM], w[G][WEIGHTS + 1];
    ALONG(k, 3) EACH(u, G) { v[u][k] = widen(s13[u][k]); }
    s.template steps<G>(v, w, j);
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
enum { DIM = 3, KEPT = 1, WEIGHTS = 0, VALUES = 3, INDICES = 0, WIDTH = 3, OPERANDS = 5, LONG = 64, AT_A_TIME = 4, FEW = 16, IN_REGISTERS = 8, LANES = 1, THREADS = 128, APART = 0 };
// [pair_math.cu
enum { BINARY = 1, BOUNDED = 0 };
// [pair_folds.cu
typedef Plain<Multiplied> State;
typedef Plain<Multiplied> Merged;
template <class S> FN A result(const S& s, int k, A count) { return s.value(k); }
// [pairs_ends.cu
// [pairs_merge.cu

}
