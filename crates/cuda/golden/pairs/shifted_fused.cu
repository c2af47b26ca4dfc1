// Pairs
// [types
typedef f32 T;
typedef f32 A;
typedef f32 R;
enum { DIM = 1, KEPT = 1, WEIGHTS = 0, VALUES = 2, INDICES = 0, WIDTH = 1, OPERANDS = 6, LONG = 64, AT_A_TIME = 4, FEW = 16, IN_REGISTERS = 8, LANES = 1, THREADS = 128, ROWS = 2, SLICES = 1, TILE = 116, GROUP = 1, AHEAD = 0, CHOOSES = 0, SCALED = 0, RESIDENT_BLOCKS = 0 };
struct Input { const void* base; i64 row, component; };
struct Inputs { Input at[4]; u64 numbers[1]; };
// [pair_math.cu
enum { BINARY = 1, BOUNDED = 0 };
// [pair_folds.cu
typedef Shifted<Cascade<1 + WEIGHTS> > State;
typedef Shifted<Cascade<1 + WEIGHTS> > Merged;
template <class S> FN A result(const S& s, int k, A count) { return s.value(0) + log(s.value(1 + k)); }
FN f32 op_subtract_f32(f32 a, f32 b) { return (f32)(a - b); }
FN f32 op_fma_f32(f32 a, f32 b, f32 c) { return (f32)(fma(a, b, c)); }
struct Once { f32 s0[1]; };
struct OfI { f32 s2[40]; };
struct alignas(16) OfJ { f32 s3[40]; f32 s6[1]; };
static_assert(sizeof(OfJ) == 176, "as room is made for it");
FN void once(const Inputs& in, const u64 (&at)[OPERANDS], Once& p) {
    ALONG(k, 1) p.s0[k] = ((const f32*)in.at[0].base)[(i64)at[0] + k * in.at[0].component];
}
FN void of_i(const Inputs& in, const u64 (&at)[OPERANDS], const Once& p, i64 i, OfI& x) {
    ALONG(k, 40) x.s2[k] = ((const f32*)in.at[2].base)[(i64)at[2] + i * in.at[2].row + k * in.at[2].component];
}
FN void of_j(const Inputs& in, const u64 (&at)[OPERANDS], const Once& p, i64 j, OfJ& y) {
    f32 s1[2]; 
    ALONG(k, 2) s1[k] = ((const f32*)in.at[1].base)[(i64)at[1] + j * in.at[1].row + k * in.at[1].component];
    SOME_ALONG(k, 40) y.s3[k] = ((const f32*)in.at[3].base)[(i64)at[3] + j * in.at[3].row + k * in.at[3].component];
    ALONG(k, 1) { y.s6[k + 0] = s1[k + 1]; }
}
FN void bring_long(const Inputs& in, const u64 (&at)[OPERANDS], i64 j, int count, OfJ* tile) {
}
template <int G> FN void fold(const Once& p, const OfI& x, const OfJ* y, State& s, i32 j) {
    f32 s5[G][1]; 
    EACH(u, G) s5[u][0] = 0;
    ALONG(k, 40) EACH(u, G) { f32 e4 = narrow<f32>(op_subtract_f32(widen(x.s2[k]), widen(y[u * LANES].s3[k]))); s5[u][0] = fma(widen(e4), widen(e4), s5[u][0]); }
    f32 s7[G][1]; 
    ALONG(k, 1) EACH(u, G) { s7[u][k] = narrow<f32>(op_fma_f32(widen(s5[u][0]), widen(p.s0[0]), widen(y[u * LANES].s6[0]))); }
    T v[G][DIM], w[G][WEIGHTS + 1];
    ALONG(k, 1) EACH(u, G) { v[u][k] = widen(s7[u][0]); }
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
