// Pairs
// [types
typedef f32 T;
typedef f32 A;
typedef f16 R;
enum { DIM = 3, KEPT = 1, WEIGHTS = 0, VALUES = 3, INDICES = 0, WIDTH = 3, OPERANDS = 5, LONG = 64, AT_A_TIME = 4, FEW = 16, IN_REGISTERS = 8, LANES = 1, THREADS = 128, ROWS = 6, SLICES = 1, TILE = 128, GROUP = 2, AHEAD = 1, CHOOSES = 0, SCALED = 0, RESIDENT_BLOCKS = 0 };
struct Input { const void* base; i64 row, component; };
struct Inputs { Input at[3]; u64 numbers[1]; };
// [pair_math.cu
enum { BINARY = 1, BOUNDED = 0 };
// [pair_folds.cu
typedef Added<Cascade<DIM> > State;
typedef Added<Cascade<DIM> > Merged;
template <class S> FN A result(const S& s, int k, A count) { return s.value(k); }
FN f32 op_subtract_f32(f32 a, f32 b) { return (f32)(a - b); }
FN f32 op_multiply_f32(f32 a, f32 b) { return (f32)(a * b); }
struct Once { };
struct OfI { f32 s3[3]; };
struct alignas(16) OfJ { f32 s4[3]; f32 s9[1]; };
static_assert(sizeof(OfJ) == 16, "as room is made for it");
FN void once(const Inputs& in, const u64 (&at)[OPERANDS], Once& p) {
}
FN void of_i(const Inputs& in, const u64 (&at)[OPERANDS], const Once& p, i64 i, OfI& x) {
    f16 s0[3]; 
    ALONG(k, 3) s0[k] = ((const f16*)in.at[0].base)[(i64)at[0] + i * in.at[0].row + k * in.at[0].component];
    ALONG(k, 3) { x.s3[k] = cast<f32>(widen(s0[k])); }
}
FN void of_j(const Inputs& in, const u64 (&at)[OPERANDS], const Once& p, i64 j, OfJ& y) {
    f16 s1[3]; 
    ALONG(k, 3) s1[k] = ((const f16*)in.at[1].base)[(i64)at[1] + j * in.at[1].row + k * in.at[1].component];
    f16 s2[2]; 
    ALONG(k, 2) s2[k] = ((const f16*)in.at[2].base)[(i64)at[2] + j * in.at[2].row + k * in.at[2].component];
    ALONG(k, 3) { y.s4[k] = cast<f32>(widen(s1[k])); }
    f32 s5[2]; 
    ALONG(k, 2) { s5[k] = cast<f32>(widen(s2[k])); }
    f32 s8[1]; 
    s8[0] = 0;
    ALONG(k, 2) { s8[0] = fma(widen(s5[k]), widen(s5[k]), s8[0]); }
    ALONG(k, 1) { y.s9[k] = narrow<f32>(op_multiply_f32(widen(__uint_as_float(3221225472u)), widen(s8[0]))); }
}
FN void bring_long(const Inputs& in, const u64 (&at)[OPERANDS], i64 j, int count, OfJ* tile) {
}
template <int G> FN void fold(const Once& p, const OfI& x, const OfJ* y, State& s, i32 j) {
    f32 s6[G][3]; 
    ALONG(k, 3) EACH(u, G) { s6[u][k] = narrow<f32>(op_subtract_f32(widen(x.s3[k]), widen(y[u * LANES].s4[k]))); }
    f32 s11[G][1]; 
    EACH(u, G) s11[u][0] = 0;
    ALONG(k, 3) EACH(u, G) { s11[u][0] = fma(widen(s6[u][k]), widen(s6[u][k]), s11[u][0]); }
    f32 s12[G][1]; 
    ALONG(k, 1) EACH(u, G) { s12[u][k] = narrow<f32>(op_multiply_f32(widen(__uint_as_float(3216550459u)), widen(s11[u][0]))); }
    f32 s13[G][1]; 
    ALONG(k, 1) EACH(u, G) { s13[u][k] = narrow<f32>(op_exp2_pair_f32(widen(s12[u][0]))); }
    f32 s14[G][1]; 
    ALONG(k, 1) EACH(u, G) { s14[u][k] = narrow<f32>(op_multiply_f32(widen(y[u * LANES].s9[0]), widen(s13[u][0]))); }
    ALONG(k, 3) EACH(u, G) { s.add(0 + k, widen(s6[u][k]), widen(s14[u][0])); }
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
typedef f16 R;
enum { DIM = 3, KEPT = 1, WEIGHTS = 0, VALUES = 3, INDICES = 0, WIDTH = 3, OPERANDS = 5, LONG = 64, AT_A_TIME = 4, FEW = 16, IN_REGISTERS = 8, LANES = 1, THREADS = 128, APART = 0 };
// [pair_math.cu
enum { BINARY = 1, BOUNDED = 0 };
// [pair_folds.cu
typedef Added<Cascade<DIM> > State;
typedef Added<Cascade<DIM> > Merged;
template <class S> FN A result(const S& s, int k, A count) { return s.value(k); }
// [pairs_ends.cu
// [pairs_merge.cu

}
