// Pairs
// [types
typedef f32 T;
typedef f32 A;
typedef f32 R;
enum { DIM = 100, KEPT = 1, WEIGHTS = 0, VALUES = 100, INDICES = 0, WIDTH = 100, OPERANDS = 5, LONG = 64, FEW = 16, LANES = 1, THREADS = 128, ROWS = 1, SLICES = 1, TILE = 49, GROUP = 4, AHEAD = 0, CHOOSES = 0, RESIDENT_BLOCKS = 0 };
struct Input { const void* base; i64 row, component; };
struct Inputs { Input at[3]; u64 numbers[1]; };
// [pair_math.cu
FN A exp_about(A v, A shift) { return op_exp2_pair_f32((v - shift) * 1.44269504f); }
// [pair_folds.cu
typedef Added<Cascade<DIM> > State;
typedef Added<Cascade<DIM> > Merged;
template <class S> FN A result(const S& s, int k, A count) { return s.value(k); }
FN f32 op_subtract_f32(f32 a, f32 b) { return (f32)(a - b); }
FN f32 op_multiply_f32(f32 a, f32 b) { return (f32)(a * b); }
struct Once { };
struct OfI { f32 s1[100]; };
struct alignas(16) OfJ { f32 s2[100]; f32 s6[1]; };
FN void once(const Inputs& in, const u64 (&at)[OPERANDS], Once& p) {
}
FN void of_i(const Inputs& in, const u64 (&at)[OPERANDS], const Once& p, i64 i, OfI& x) {
    ALONG(k, 100) x.s1[k] = ((const f32*)in.at[1].base)[(i64)at[1] + i * in.at[1].row + k * in.at[1].component];
}
FN void of_j(const Inputs& in, const u64 (&at)[OPERANDS], const Once& p, i64 j, OfJ& y) {
    f32 s0[2]; 
    ALONG(k, 2) s0[k] = ((const f32*)in.at[0].base)[(i64)at[0] + j * in.at[0].row + k * in.at[0].component];
    f32 s5[1]; 
    s5[0] = 0;
    ALONG(k, 2) { s5[0] = fma(widen(s0[k]), widen(s0[k]), s5[0]); }
    ALONG(k, 1) { y.s6[k] = narrow<f32>(op_multiply_f32(widen(__uint_as_float(3221225472u)), widen(s5[0]))); }
}
FN void bring_long(const Inputs& in, const u64 (&at)[OPERANDS], i64 j, int count, OfJ* tile) {
    for (int e = threadIdx.x; e < count * 100; e += THREADS) {
        int t = e / 100, c = e % 100;
        tile[t].s2[c] = ((const f32*)in.at[2].base)[(i64)at[2] + (j + t) * in.at[2].row + c * in.at[2].component];
    }
}
template <int G> FN void fold(const Once& p, const OfI& x, const OfJ* y, State& s, i32 j) {
    f32 s8[G][1]; 
    EACH(u, G) s8[u][0] = 0;
    ALONG(k, 100) EACH(u, G) { f32 e3 = narrow<f32>(op_subtract_f32(widen(x.s1[k]), widen(y[u * LANES].s2[k]))); s8[u][0] = fma(widen(e3), widen(e3), s8[u][0]); }
    f32 s9[G][1]; 
    ALONG(k, 1) EACH(u, G) { s9[u][k] = narrow<f32>(op_multiply_f32(widen(__uint_as_float(3216550459u)), widen(s8[u][0]))); }
    f32 s10[G][1]; 
    ALONG(k, 1) EACH(u, G) { s10[u][k] = narrow<f32>(op_exp2_pair_f32(widen(s9[u][0]))); }
    f32 s11[G][1]; 
    ALONG(k, 1) EACH(u, G) { s11[u][k] = narrow<f32>(op_multiply_f32(widen(y[u * LANES].s6[0]), widen(s10[u][0]))); }
    ALONG(k, 100) EACH(u, G) { f32 e3 = narrow<f32>(op_subtract_f32(widen(x.s1[k]), widen(y[u * LANES].s2[k]))); s.add(0 + k, widen(e3), widen(s11[u][0])); }
}
FN void complete(const Inputs& in, const u64 (&at)[OPERANDS], i64 i, const OfI& x, State& s) {
}
FN void prepare() {}
// [pairs_ends.cu
// [pairs_short.cu
// [pairs.cu

}
// Merge
// [types
typedef f32 T;
typedef f32 A;
typedef f32 R;
enum { DIM = 1, KEPT = 1, WEIGHTS = 0, VALUES = 1, INDICES = 0, WIDTH = 1, OPERANDS = 5, LONG = 64, FEW = 16, LANES = 1, THREADS = 128, APART = 100 };
// [pair_math.cu
FN A exp_about(A v, A shift) { return op_exp2_pair_f32((v - shift) * 1.44269504f); }
// [pair_folds.cu
typedef Added<Cascade<DIM> > State;
typedef Added<Cascade<DIM> > Merged;
template <class S> FN A result(const S& s, int k, A count) { return s.value(k); }
// [pairs_ends.cu
// [pairs_merge.cu

}
