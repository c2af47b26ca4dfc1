// Pairs
// [types
#define ASKS
typedef f32 T;
typedef f32 A;
typedef f32 R;
enum { DIM = 36, KEPT = 1, WEIGHTS = 0, VALUES = 36, INDICES = 0, WIDTH = 36, OPERANDS = 9, LONG = 64, AT_A_TIME = 4, FEW = 16, IN_REGISTERS = 8, LANES = 1, THREADS = 128, ROWS = 1, SLICES = 1, TILE = 16, GROUP = 1, AHEAD = 0, CHOOSES = 0, SCALED = 0, RESIDENT_BLOCKS = 1, LENGTHS = 2, LENGTHS_AT = 0, PASSES = 2, DEPTHS = 32, CHUNK_BYTES = 64, TILES_AT = 37888 };
struct Input { const void* base; i64 row, component; };
struct Inputs { Input at[7]; u64 numbers[2]; };
#define DEPTH(k) ((u32)in.numbers[LENGTHS_AT + (k)])
// [pair_math.cu
enum { BINARY = 1, BOUNDED = 0 };
// [pair_folds.cu
typedef Added<Cascade<DIM, ROWS> > State;
typedef Added<Cascade<DIM> > Merged;
template <class S> FN A result(const S& s, int k, A count) { return s.value(k); }
FN f32 op_subtract_f32(f32 a, f32 b) { return (f32)(a - b); }
FN f32 op_multiply_f32(f32 a, f32 b) { return (f32)(a * b); }
struct Once { f32 s11[1]; f32 s16[1]; };
struct OfI { f32 s5[36]; };
struct alignas(16) OfJ { f32 s6[36]; };
static_assert(sizeof(OfJ) == 144, "as room is made for it");
FN void once(const Inputs& in, const u64 (&at)[OPERANDS], Once& p) {
    f32 s0[1]; 
    ALONG(k, 1) s0[k] = ((const f32*)in.at[0].base)[(i64)at[0] + k * in.at[0].component];
    ALONG(k, 1) { p.s11[k] = narrow<f32>(op_multiply_f32(widen(__uint_as_float(3216550459u)), widen(s0[0]))); }
    ALONG(k, 1) { p.s16[k] = narrow<f32>(op_multiply_f32(widen(__uint_as_float(3221225472u)), widen(s0[0]))); }
}
FN void of_i(const Inputs& in, const u64 (&at)[OPERANDS], const Once& p, i64 i, OfI& x) {
    ALONG(k, 36) x.s5[k] = ((const f32*)in.at[5].base)[(i64)at[5] + i * in.at[5].row + k * in.at[5].component];
}
FN void of_j(const Inputs& in, const u64 (&at)[OPERANDS], const Once& p, i64 j, const T* sums, OfJ& y) {
    SOME_ALONG(k, 36) y.s6[k] = ((const f32*)in.at[6].base)[(i64)at[6] + j * in.at[6].row + k * in.at[6].component];
}
FN void bring_long(const Inputs& in, const u64 (&at)[OPERANDS], i64 j, int count, OfJ* tile) {
}
struct Numbers { T at[2]; METHOD void init() { at[0] = 0; at[1] = 0; } };
template <int N> struct Components { T at[N]; };
template <int G> FN void fold(const Once& p, const OfI& x, const OfJ* y, const Numbers (&numbers)[G], State& s, i32 j) {
    f32 s8[G][1]; 
    EACH(u, G) s8[u][0] = numbers[u].at[0];
    f32 s9[G][1]; 
    EACH(u, G) s9[u][0] = numbers[u].at[1];
    f32 s12[G][1]; 
    ALONG(k, 1) EACH(u, G) { s12[u][k] = narrow<f32>(op_multiply_f32(widen(s9[u][0]), widen(p.s11[0]))); }
    f32 s13[G][1]; 
    ALONG(k, 1) EACH(u, G) { s13[u][k] = narrow<f32>(op_exp2_pair_f32(widen(s12[u][0]))); }
    f32 s14[G][1]; 
    ALONG(k, 1) EACH(u, G) { s14[u][k] = narrow<f32>(op_multiply_f32(widen(s8[u][0]), widen(s13[u][0]))); }
    f32 s17[G][1]; 
    ALONG(k, 1) EACH(u, G) { s17[u][k] = narrow<f32>(op_multiply_f32(widen(s14[u][0]), widen(p.s16[0]))); }
    f32 s18[G][36]; 
    ALONG(k, 36) EACH(u, G) { s18[u][k] = narrow<f32>(op_subtract_f32(widen(x.s5[k]), widen(y[u * LANES].s6[k]))); }
    ALONG(k, 36) EACH(u, G) { s.add(0 + k, widen(s18[u][k]), widen(s17[u][0])); }
}
FN void complete(const Inputs& in, const u64 (&at)[OPERANDS], const Once& p, i64 i, const OfI& x, State& s) {
}
FN bool overflows(const State&) { return false; }
FN void prepare() {}
enum { VECTORS_I = 1, VECTORS_J = 1, VECTORS_ONCE = 1, SUMS_OF_J = 0, OF_ROWS = 0, SCALED_J = 0, VANISHES = 1 };
FN u32 depth_of(const Inputs& in, int pass) { if (pass == 0) { return DEPTH(0); } if (pass == 1) { return DEPTH(1); } return 0; }
FN T long_i(const Inputs& in, const u64 (&at)[OPERANDS], const Once& p, const OfI& x, i64 i, u32 k, int pass, int which) { if (pass == 0) { if (which == 0) { return widen(((const f32*)in.at[3].base)[(i64)at[3] + i * in.at[3].row + k * in.at[3].component]); }  } if (pass == 1) { if (which == 0) { return widen(((const f32*)in.at[1].base)[(i64)at[1] + i * in.at[1].row + k * in.at[1].component]); }  } return 0; }
FN T long_j(const Inputs& in, const u64 (&at)[OPERANDS], const Once& p, const OfJ& y, i64 j, u32 k, int pass, int which) { if (pass == 0) { if (which == 0) { return widen(((const f32*)in.at[4].base)[(i64)at[4] + j * in.at[4].row + k * in.at[4].component]); }  } if (pass == 1) { if (which == 0) { return widen(((const f32*)in.at[2].base)[(i64)at[2] + j * in.at[2].row + k * in.at[2].component]); }  } return 0; }
FN T long_once(const Inputs& in, const u64 (&at)[OPERANDS], const Once& p, u32 k, int pass, int which) { if (pass == 0) {  } if (pass == 1) {  } return 0; }
FN void sum_of_j(const Inputs& in, const u64 (&at)[OPERANDS], const Once& p, i64 j, u32 k, int length, T (&sums)[SUMS_OF_J + 1]) { }
FN void fold_along(const Once& p, const OfI& x, const OfJ& y, const Components<VECTORS_I>& a, const Components<VECTORS_J>& b, const Components<VECTORS_ONCE>& c, Numbers& numbers, int pass) { if (pass == 0) { numbers.at[0] = fma(widen(a.at[0]), widen(b.at[0]), numbers.at[0]);  } if (pass == 1) { f32 e7 = narrow<f32>(op_subtract_f32(widen(a.at[0]), widen(b.at[0]))); numbers.at[1] = fma(widen(e7), widen(e7), numbers.at[1]);  } }
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
typedef f32 R;
enum { DIM = 1, KEPT = 1, WEIGHTS = 0, VALUES = 1, INDICES = 0, WIDTH = 1, OPERANDS = 9, LONG = 64, AT_A_TIME = 4, FEW = 16, IN_REGISTERS = 8, LANES = 1, THREADS = 128, APART = 1 };
// [pair_math.cu
enum { BINARY = 1, BOUNDED = 0 };
// [pair_folds.cu
typedef Added<Cascade<DIM> > State;
typedef Added<Cascade<DIM> > Merged;
template <class S> FN A result(const S& s, int k, A count) { return s.value(k); }
// [pairs_ends.cu
// [pairs_merge.cu

}
