// Pairs
// [types
typedef f32 T;
typedef f32 A;
typedef f32 R;
enum { DIM = 1, KEPT = 1, WEIGHTS = 0, VALUES = 1, INDICES = 1, WIDTH = 1, OPERANDS = 4, LONG = 16, AT_A_TIME = 16, FEW = 16, IN_REGISTERS = 8, LANES = 1, THREADS = 32, ROWS = 1, SLICES = 1, TILE = 64, GROUP = 1, AHEAD = 0, CHOOSES = 0, SCALED = 0, RESIDENT_BLOCKS = 0 };
struct Input { const void* base; i64 row, component; };
struct Inputs { Input at[2]; u64 numbers[1]; };
// [pair_math.cu
enum { BINARY = 1, BOUNDED = 0 };
// [pair_folds.cu
typedef Best<false, i32> State;
typedef Best<false, i64> Merged;
template <class S> FN A result(const S& s, int k, A count) { return s.value(k); }
FN f32 op_subtract_f32(f32 a, f32 b) { return (f32)(a - b); }
struct Once { };
struct OfI { f32 s0[3]; };
struct alignas(16) OfJ { f32 s1[3]; };
static_assert(sizeof(OfJ) == 16, "as room is made for it");
FN void once(const Inputs& in, const u64 (&at)[OPERANDS], Once& p) {
}
FN void of_i(const Inputs& in, const u64 (&at)[OPERANDS], const Once& p, i64 i, OfI& x) {
    ALONG(k, 3) x.s0[k] = ((const f32*)in.at[0].base)[(i64)at[0] + i * in.at[0].row + k * in.at[0].component];
}
FN void of_j(const Inputs& in, const u64 (&at)[OPERANDS], const Once& p, i64 j, OfJ& y) {
    ALONG(k, 3) y.s1[k] = ((const f32*)in.at[1].base)[(i64)at[1] + j * in.at[1].row + k * in.at[1].component];
}
FN void bring_long(const Inputs& in, const u64 (&at)[OPERANDS], i64 j, int count, OfJ* tile) {
}
template <int G> FN void fold(const Once& p, const OfI& x, const OfJ* y, State& s, i32 j) {
    f32 s3[G][1]; 
    EACH(u, G) s3[u][0] = 0;
    ALONG(k, 3) EACH(u, G) { f32 e2 = narrow<f32>(op_subtract_f32(widen(x.s0[k]), widen(y[u * LANES].s1[k]))); s3[u][0] = fma(widen(e2), widen(e2), s3[u][0]); }
    T v[G][DIM], w[G][WEIGHTS + 1];
    ALONG(k, 1) EACH(u, G) { v[u][k] = widen(s3[u][0]); }
    s.template steps<G>(v, w, j);
}
FN void complete(const Inputs& in, const u64 (&at)[OPERANDS], const Once& p, i64 i, const OfI& x, State& s) {
}
FN bool overflows(const State&) { return false; }
FN void prepare() {}
// [pairs_ends.cu
// [pairs_origin.cu
// [pairs_few.cu
// [pairs.cu

}
// Merge
// [types
typedef f32 T;
typedef f32 A;
typedef f32 R;
enum { DIM = 1, KEPT = 1, WEIGHTS = 0, VALUES = 1, INDICES = 1, WIDTH = 1, OPERANDS = 4, LONG = 64, AT_A_TIME = 4, FEW = 16, IN_REGISTERS = 8, LANES = 1, THREADS = 128, APART = 0 };
// [pair_math.cu
enum { BINARY = 1, BOUNDED = 0 };
// [pair_folds.cu
typedef Best<false, i32> State;
typedef Best<false, i64> Merged;
template <class S> FN A result(const S& s, int k, A count) { return s.value(k); }
// [pairs_ends.cu
// [pairs_merge.cu

}
