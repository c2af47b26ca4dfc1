// Pairs
// [types
// [folds.cu
typedef f32 T;
typedef f32 A;
typedef f32 R;
enum { DIM = 1, KEPT = 20, WEIGHTS = 0, VALUES = 20, INDICES = 20, WIDTH = 20, OPERANDS = 6, LONG = 64, AT_A_TIME = 4, FEW = 16, IN_REGISTERS = 8, LANES = 32, THREADS = 128, ROWS = 2, SLICES = 1, TILE = 64, GROUP = 2, AHEAD = 0, CHOOSES = 0, SCALED = 0, RESIDENT_BLOCKS = 0, LENGTHS = 1, LENGTHS_AT = 0, PASSES = 1, DEPTHS = 32, CHUNK_BYTES = 64 };
struct Input { const void* base; i64 row, component; };
struct Inputs { Input at[4]; u64 numbers[1]; };
#define DEPTH(k) ((u32)in.numbers[LENGTHS_AT + (k)])
// [pair_math.cu
enum { BINARY = 1, BOUNDED = 0 };
// [pair_folds.cu
// [pair_teams.cu
typedef Team<false, i32> State;
typedef Team<false, i64> Merged;
template <class S> FN A result(const S& s, int k, A count) { return s.value(k); }
FN f32 op_add_f32(f32 a, f32 b) { return (f32)(a + b); }
FN f32 op_subtract_f32(f32 a, f32 b) { return (f32)(a - b); }
FN f32 op_multiply_f32(f32 a, f32 b) { return (f32)(a * b); }
FN f32 op_fma_f32(f32 a, f32 b, f32 c) { return (f32)(fma(a, b, c)); }
FN f32 op_abs_f32(f32 a) { return (f32)(abs(a)); }
FN f32 op_sqrt_flat_f32(f32 a) { return (f32)(sqrt(a)); }
struct Once { f32 s1[1]; };
struct OfI { f32 s5[1]; };
struct alignas(16) OfJ { };
static_assert(sizeof(OfJ) == 16, "as room is made for it");
FN void once(const Inputs& in, const u64 (&at)[OPERANDS], Once& p) {
    ALONG(k, 1) p.s1[k] = ((const f32*)in.at[1].base)[(i64)at[1] + k * in.at[1].component];
}
FN void of_i(const Inputs& in, const u64 (&at)[OPERANDS], const Once& p, i64 i, OfI& x) {
    f32 s0[3]; 
    ALONG(k, 3) s0[k] = ((const f32*)in.at[0].base)[(i64)at[0] + i * in.at[0].row + k * in.at[0].component];
    f32 s4[1]; 
    s4[0] = 0;
    ALONG(k, 3) { s4[0] = fma(widen(s0[k]), widen(s0[k]), s4[0]); }
    ALONG(k, 1) { x.s5[k] = narrow<f32>(op_sqrt_flat_f32(widen(s4[0]))); }
}
FN void of_j(const Inputs& in, const u64 (&at)[OPERANDS], const Once& p, i64 j, const T* sums, OfJ& y) {
}
FN void bring_long(const Inputs& in, const u64 (&at)[OPERANDS], i64 j, int count, OfJ* tile) {
}
struct Numbers { T at[2]; METHOD void init() { at[0] = Min<T>::init(); at[1] = Max<T>::init(); } };
template <int N> struct Components { T at[N]; };
template <int G> FN void fold(const Once& p, const OfI& x, const OfJ* y, const Numbers (&numbers)[G], State& s, i32 j) {
    f32 s8[G][1]; 
    EACH(u, G) s8[u][0] = numbers[u].at[0];
    f32 s11[G][1]; 
    EACH(u, G) s11[u][0] = numbers[u].at[1];
    f32 s12[G][1]; 
    ALONG(k, 1) EACH(u, G) { s12[u][k] = narrow<f32>(op_fma_f32(widen(s8[u][0]), widen(p.s1[0]), widen(s11[u][0]))); }
    T v[G][DIM], w[G][WEIGHTS + 1];
    ALONG(k, 1) EACH(u, G) { v[u][k] = widen(s12[u][0]); }
    s.template steps<G>(v, w, j);
}
FN void complete(const Inputs& in, const u64 (&at)[OPERANDS], const Once& p, i64 i, const OfI& x, State& s) {
}
FN bool overflows(const State&) { return false; }
FN void prepare() {}
enum { VECTORS_I = 1, VECTORS_J = 1, VECTORS_ONCE = 1, SUMS_OF_J = 0, OF_ROWS = 1, SCALED_J = 0, VANISHES = 0 };
FN u32 depth_of(const Inputs& in, int pass) { if (pass == 0) { return DEPTH(0); } return 0; }
FN T long_i(const Inputs& in, const u64 (&at)[OPERANDS], const Once& p, const OfI& x, i64 i, u32 k, int pass, int which) { if (pass == 0) { if (which == 0) { f32 e6 = narrow<f32>(op_multiply_f32(widen(((const f32*)in.at[2].base)[(i64)at[2] + i * in.at[2].row + k * in.at[2].component]), widen(x.s5[0]))); return widen(e6); }  } return 0; }
FN T long_j(const Inputs& in, const u64 (&at)[OPERANDS], const Once& p, const OfJ& y, i64 j, u32 k, int pass, int which) { if (pass == 0) { if (which == 0) { return widen(((const f32*)in.at[3].base)[(i64)at[3] + j * in.at[3].row + k * in.at[3].component]); }  } return 0; }
FN T long_once(const Inputs& in, const u64 (&at)[OPERANDS], const Once& p, u32 k, int pass, int which) { if (pass == 0) {  } return 0; }
FN void sum_of_j(const Inputs& in, const u64 (&at)[OPERANDS], const Once& p, i64 j, u32 k, int length, T (&sums)[SUMS_OF_J + 1]) { }
FN void fold_along(const Once& p, const OfI& x, const OfJ& y, const Components<VECTORS_I>& a, const Components<VECTORS_J>& b, const Components<VECTORS_ONCE>& c, Numbers& numbers, int pass) { if (pass == 0) { f32 e7 = narrow<f32>(op_add_f32(widen(a.at[0]), widen(b.at[0]))); f32 e9 = narrow<f32>(op_subtract_f32(widen(a.at[0]), widen(b.at[0]))); f32 e10 = narrow<f32>(op_abs_f32(widen(e9))); numbers.at[0] = Min<T>::step(numbers.at[0], widen(e7), 0); numbers.at[1] = Max<T>::step(numbers.at[1], widen(e10), 0);  } }
// [pairs_ends.cu
// [pairs_origin.cu
// [pairs_chunks.cu
// [pairs_long_teams.cu
// [pairs.cu

}
