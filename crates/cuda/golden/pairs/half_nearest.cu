// Pairs
// [types
typedef f32 T;
typedef f32 A;
typedef bf16 R;
enum { DIM = 1, KEPT = 10, WEIGHTS = 0, VALUES = 10, INDICES = 10, WIDTH = 10, OPERANDS = 4, LONG = 64, AT_A_TIME = 4, FEW = 16, IN_REGISTERS = 8, LANES = 1, THREADS = 128, ROWS = 1, SLICES = 1, TILE = 32, GROUP = 4, AHEAD = 0, CHOOSES = 0, SCALED = 0, RESIDENT_BLOCKS = 0, LENGTHS = 1, LENGTHS_AT = 0, PASSES = 1, DEPTHS = 32, CHUNK_BYTES = 64 };
struct Input { const void* base; i64 row, component; };
struct Inputs { Input at[2]; u64 numbers[1]; };
#define DEPTH(k) ((u32)in.numbers[LENGTHS_AT + (k)])
// [pair_math.cu
enum { BINARY = 1, BOUNDED = 0 };
// [pair_folds.cu
typedef Ranked<false, i32> State;
typedef Ranked<false, i64> Merged;
template <class S> FN A result(const S& s, int k, A count) { return s.value(k); }
FN f32 op_subtract_f32(f32 a, f32 b) { return (f32)(a - b); }
struct Once { };
struct OfI { };
struct alignas(16) OfJ { };
static_assert(sizeof(OfJ) == 16, "as room is made for it");
FN void once(const Inputs& in, const u64 (&at)[OPERANDS], Once& p) {
}
FN void of_i(const Inputs& in, const u64 (&at)[OPERANDS], const Once& p, i64 i, OfI& x) {
}
FN void of_j(const Inputs& in, const u64 (&at)[OPERANDS], const Once& p, i64 j, const T* sums, OfJ& y) {
}
FN void bring_long(const Inputs& in, const u64 (&at)[OPERANDS], i64 j, int count, OfJ* tile) {
}
struct Numbers { T at[1]; METHOD void init() { at[0] = 0; } };
template <int N> struct Components { T at[N]; };
template <int G> FN void fold(const Once& p, const OfI& x, const OfJ* y, const Numbers (&numbers)[G], State& s, i32 j) {
    f32 s5[G][1]; 
    EACH(u, G) s5[u][0] = numbers[u].at[0];
    T v[G][DIM], w[G][WEIGHTS + 1];
    ALONG(k, 1) EACH(u, G) { v[u][k] = widen(s5[u][0]); }
    s.template steps<G>(v, w, j);
}
FN void complete(const Inputs& in, const u64 (&at)[OPERANDS], const Once& p, i64 i, const OfI& x, State& s) {
}
FN bool overflows(const State&) { return false; }
FN void prepare() {}
enum { VECTORS_I = 1, VECTORS_J = 1, VECTORS_ONCE = 1, SUMS_OF_J = 0, OF_ROWS = 0, SCALED_J = 0, VANISHES = 1 };
FN u32 depth_of(const Inputs& in, int pass) { if (pass == 0) { return DEPTH(0); } return 0; }
FN T long_i(const Inputs& in, const u64 (&at)[OPERANDS], const Once& p, const OfI& x, i64 i, u32 k, int pass, int which) { if (pass == 0) { if (which == 0) { f32 e2 = cast<f32>(widen(((const bf16*)in.at[0].base)[(i64)at[0] + i * in.at[0].row + k * in.at[0].component])); return widen(e2); }  } return 0; }
FN T long_j(const Inputs& in, const u64 (&at)[OPERANDS], const Once& p, const OfJ& y, i64 j, u32 k, int pass, int which) { if (pass == 0) { if (which == 0) { f32 e3 = cast<f32>(widen(((const bf16*)in.at[1].base)[(i64)at[1] + j * in.at[1].row + k * in.at[1].component])); return widen(e3); }  } return 0; }
FN T long_once(const Inputs& in, const u64 (&at)[OPERANDS], const Once& p, u32 k, int pass, int which) { if (pass == 0) {  } return 0; }
FN void sum_of_j(const Inputs& in, const u64 (&at)[OPERANDS], const Once& p, i64 j, u32 k, int length, T (&sums)[SUMS_OF_J + 1]) { }
FN void fold_along(const Once& p, const OfI& x, const OfJ& y, const Components<VECTORS_I>& a, const Components<VECTORS_J>& b, const Components<VECTORS_ONCE>& c, Numbers& numbers, int pass) { if (pass == 0) { f32 e4 = narrow<f32>(op_subtract_f32(widen(a.at[0]), widen(b.at[0]))); numbers.at[0] = fma(widen(e4), widen(e4), numbers.at[0]);  } }
// [pairs_ends.cu
// [pairs_origin.cu
// [pairs_chunks.cu
// [pairs_long.cu
// [pairs.cu

}
// Merge
// [types
typedef f32 T;
typedef f32 A;
typedef bf16 R;
enum { DIM = 1, KEPT = 10, WEIGHTS = 0, VALUES = 10, INDICES = 10, WIDTH = 10, OPERANDS = 4, LONG = 64, AT_A_TIME = 4, FEW = 16, IN_REGISTERS = 8, LANES = 1, THREADS = 128, APART = 0 };
// [pair_math.cu
enum { BINARY = 1, BOUNDED = 0 };
// [pair_folds.cu
typedef Ranked<false, i32> State;
typedef Ranked<false, i64> Merged;
template <class S> FN A result(const S& s, int k, A count) { return s.value(k); }
// [pairs_ends.cu
// [pairs_merge.cu

}
