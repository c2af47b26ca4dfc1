// Pairs
// [types
typedef f32 T;
typedef f32 A;
typedef f32 R;
enum { DIM = 4, KEPT = 1, WEIGHTS = 0, VALUES = 4, INDICES = 4, WIDTH = 4, OPERANDS = 5, LONG = 64, AT_A_TIME = 4, FEW = 16, IN_REGISTERS = 8, LANES = 1, THREADS = 128, ROWS = 6, SLICES = 1, TILE = 128, GROUP = 1, AHEAD = 1, CHOOSES = 0, SCALED = 0, RESIDENT_BLOCKS = 0 };
struct Input { const void* base; i64 row, component; };
struct Inputs { Input at[3]; u64 numbers[1]; };
// [pair_math.cu
enum { BINARY = 1, BOUNDED = 0 };
// [pair_folds.cu
typedef Best<true, i32> State;
typedef Best<true, i64> Merged;
template <class S> FN A result(const S& s, int k, A count) { return s.value(k); }
struct Once { };
struct OfI { f32 s0[3]; };
struct alignas(16) OfJ { f32 s1[3]; f32 s2[2]; };
static_assert(sizeof(OfJ) == 32, "as room is made for it");
FN void once(const Inputs& in, const u64 (&at)[OPERANDS], Once& p) {
}
FN void of_i(const Inputs& in, const u64 (&at)[OPERANDS], const Once& p, i64 i, OfI& x) {
    ALONG(k, 3) x.s0[k] = ((const f32*)in.at[0].base)[(i64)at[0] + i * in.at[0].row + k * in.at[0].component];
}
FN void of_j(const Inputs& in, const u64 (&at)[OPERANDS], const Once& p, i64 j, OfJ& y) {
    ALONG(k, 3) y.s1[k] = ((const f32*)in.at[1].base)[(i64)at[1] + j * in.at[1].row + k * in.at[1].component];
    ALONG(k, 2) y.s2[k] = ((const f32*)in.at[2].base)[(i64)at[2] + j * in.at[2].row + k * in.at[2].component];
}
FN void bring_long(const Inputs& in, const u64 (&at)[OPERANDS], i64 j, int count, OfJ* tile) {
}
template <int G> FN void fold(const Once& p, const OfI& x, const OfJ* y, State& s, i32 j) {
    f32 s3[G][6]; 
    ALONG(k, 3) EACH(u, G) { s3[u][k + 0] = x.s0[k + 0]; }
    ALONG(k, 3) EACH(u, G) { s3[u][k + 3] = y[u * LANES].s1[k + 0]; }
    f32 s4[G][6]; 
    EACH(l0, 3) EACH(r0, 2) { const int to = ((0) * 3 + l0) * 2 + r0; EACH(u, G) s4[u][to] = 0; EACH(u, G) s4[u][to] = fma(widen(x.s0[0 + l0 * 1]), widen(y[u * LANES].s2[0 + r0 * 1]), s4[u][to]); }
    f32 s5[G][4]; 
    EACH(l0, 2) EACH(r1, 2) { const int to = ((0) * 2 + l0) * 2 + r1; EACH(u, G) s5[u][to] = 0; EACH(o0, 3) EACH(u, G) s5[u][to] = fma(widen(s3[u][0 + l0 * 3 + o0 * 1]), widen(s4[u][0 + o0 * 2 + r1 * 1]), s5[u][to]); }
    T v[G][DIM], w[G][WEIGHTS + 1];
    ALONG(k, 4) EACH(u, G) { v[u][k] = widen(s5[u][k]); }
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
enum { DIM = 4, KEPT = 1, WEIGHTS = 0, VALUES = 4, INDICES = 4, WIDTH = 4, OPERANDS = 5, LONG = 64, AT_A_TIME = 4, FEW = 16, IN_REGISTERS = 8, LANES = 1, THREADS = 128, APART = 0 };
// [pair_math.cu
enum { BINARY = 1, BOUNDED = 0 };
// [pair_folds.cu
typedef Best<true, i32> State;
typedef Best<true, i64> Merged;
template <class S> FN A result(const S& s, int k, A count) { return s.value(k); }
// [pairs_ends.cu
// [pairs_merge.cu

}
