// Pairs
// [types
#define ASKS
typedef f32 T;
typedef f32 A;
typedef f16 R;
enum { DIM = 42, KEPT = 1, WEIGHTS = 0, VALUES = 42, INDICES = 0, WIDTH = 42, OPERANDS = 5, LONG = 64, AT_A_TIME = 4, FEW = 16, IN_REGISTERS = 8, LANES = 1, THREADS = 128, ROWS = 1, SLICES = 1, TILE = 116, GROUP = 1, AHEAD = 0, CHOOSES = 0, SCALED = 0, RESIDENT_BLOCKS = 1, TILES_AT = 44032 };
struct Input { const void* base; i64 row, component; };
struct Inputs { Input at[3]; u64 numbers[1]; };
// [pair_math.cu
enum { BINARY = 1, BOUNDED = 0 };
// [pair_folds.cu
typedef Added<Cascade<DIM, ROWS> > State;
typedef Added<Cascade<DIM> > Merged;
template <class S> FN A result(const S& s, int k, A count) { return s.value(k) / count; }
FN f32 op_subtract_f32(f32 a, f32 b) { return (f32)(a - b); }
FN f32 op_multiply_f32(f32 a, f32 b) { return (f32)(a * b); }
struct Once { };
struct OfI { f32 s4[40]; };
struct alignas(16) OfJ { f32 s3[2]; f32 s5[40]; f32 s14[1]; };
static_assert(sizeof(OfJ) == 176, "as room is made for it");
FN void once(const Inputs& in, const u64 (&at)[OPERANDS], Once& p) {
}
FN void of_i(const Inputs& in, const u64 (&at)[OPERANDS], const Once& p, i64 i, OfI& x) {
    f16 s1[40]; 
    ALONG(k, 40) s1[k] = ((const f16*)in.at[1].base)[(i64)at[1] + i * in.at[1].row + k * in.at[1].component];
    ALONG(k, 40) { x.s4[k] = cast<f32>(widen(s1[k])); }
}
FN void of_j(const Inputs& in, const u64 (&at)[OPERANDS], const Once& p, i64 j, OfJ& y) {
    f16 s0[2]; 
    ALONG(k, 2) s0[k] = ((const f16*)in.at[0].base)[(i64)at[0] + j * in.at[0].row + k * in.at[0].component];
    f16 s2[40]; 
    ALONG(k, 40) s2[k] = ((const f16*)in.at[2].base)[(i64)at[2] + j * in.at[2].row + k * in.at[2].component];
    ALONG(k, 2) { y.s3[k] = cast<f32>(widen(s0[k])); }
    ALONG(k, 40) { y.s5[k] = cast<f32>(widen(s2[k])); }
    f32 s13[1]; 
    s13[0] = 0;
    ALONG(k, 2) { s13[0] = fma(widen(y.s3[k]), widen(y.s3[k]), s13[0]); }
    ALONG(k, 1) { y.s14[k] = narrow<f32>(op_multiply_f32(widen(__uint_as_float(3221225472u)), widen(s13[0]))); }
}
FN void bring_long(const Inputs& in, const u64 (&at)[OPERANDS], i64 j, int count, OfJ* tile) {
}
template <int G> FN void fold(const Once& p, const OfI& x, const OfJ* y, State& s, i32 j) {
    f32 s7[G][40]; 
    ALONG(k, 40) EACH(u, G) { s7[u][k] = narrow<f32>(op_subtract_f32(widen(x.s4[k]), widen(y[u * LANES].s5[k]))); }
    f32 s8[G][1]; 
    EACH(u, G) s8[u][0] = 0;
    ALONG(k, 40) EACH(u, G) { s8[u][0] = fma(widen(s7[u][k]), widen(s7[u][k]), s8[u][0]); }
    f32 s9[G][1]; 
    ALONG(k, 1) EACH(u, G) { s9[u][k] = narrow<f32>(op_multiply_f32(widen(__uint_as_float(3216550459u)), widen(s8[u][0]))); }
    f32 s10[G][1]; 
    ALONG(k, 1) EACH(u, G) { s10[u][k] = narrow<f32>(op_exp2_pair_f32(widen(s9[u][0]))); }
    f32 s15[G][1]; 
    ALONG(k, 1) EACH(u, G) { s15[u][k] = narrow<f32>(op_multiply_f32(widen(s10[u][0]), widen(y[u * LANES].s14[0]))); }
    ALONG(k, 2) EACH(u, G) { s.add(0 + k, widen(s10[u][0]), widen(y[u * LANES].s3[k])); }
    ALONG(k, 40) EACH(u, G) { s.add(2 + k, widen(s7[u][k]), widen(s15[u][0])); }
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
enum { DIM = 1, KEPT = 1, WEIGHTS = 0, VALUES = 1, INDICES = 0, WIDTH = 1, OPERANDS = 5, LONG = 64, AT_A_TIME = 4, FEW = 16, IN_REGISTERS = 8, LANES = 1, THREADS = 128, APART = 1 };
// [pair_math.cu
enum { BINARY = 1, BOUNDED = 0 };
// [pair_folds.cu
typedef Added<Cascade<DIM> > State;
typedef Added<Cascade<DIM> > Merged;
template <class S> FN A result(const S& s, int k, A count) { return s.value(k) / count; }
// [pairs_ends.cu
// [pairs_merge.cu

}
