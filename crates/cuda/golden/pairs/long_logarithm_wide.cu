// Pairs
// [types
typedef f32 T;
typedef f32 A;
typedef f32 R;
typedef f32 Stored;
enum { DIM = 1, KEPT = 1, WEIGHTS = 0, VALUES = 1, INDICES = 0, WIDTH = 1, OPERANDS = 5, LONG = 64, AT_A_TIME = 4, FEW = 16, IN_REGISTERS = 8, LANES = 1, THREADS = 384, ROWS = 2, SLICES = 1, TILE = 128, GROUP = 4, AHEAD = 0, CHOOSES = 0, SCALED = 1, RESIDENT_BLOCKS = 0, GROUPS = 2, COLUMNS = 128, STAGES = 4, STAGE_BYTES = 33792, KEPT_BYTES = 0, RESIDENT = 1, DEPTHS = 64, SHALLOW = 0, PARTS = 2, LEAVE = 32, OUTSIDE = 1, PRODUCT = 0, POINT_X = 1, POINT_Y = 2, RIGHT = 0, WAITING = 6, EIGHT = 8, DIFFERS = 0 };
struct Input { const void* base; i64 row, component; };
struct Inputs { Input at[3]; u64 numbers[1]; };
// [hopper.cu
// [pair_math.cu
enum { BINARY = 1, BOUNDED = 0 };
// [pair_folds.cu
typedef Added<Cascade<DIM> > State;
typedef Added<Cascade<DIM> > Merged;
template <class S> FN A result(const S& s, int k, A count) { return log(s.value(k)); }
FN f32 op_subtract_f32(f32 a, f32 b) { return (f32)(a - b); }
FN f32 op_multiply_f32(f32 a, f32 b) { return (f32)(a * b); }
FN f32 op_negative_f32(f32 a) { return (f32)(-a); }
struct Once { f32 s7[1]; };
struct OfI { T norm; };
struct alignas(8) OfJ { T norm; u8 rest[4]; };
static_assert(sizeof(OfJ) == 8, "as room is made for it");
FN void once(const Inputs& in, const u64 (&at)[OPERANDS], Once& p) {
    f32 s0[1]; 
    ALONG(k, 1) s0[k] = ((const f32*)in.at[0].base)[(i64)at[0] + k * in.at[0].component];
    f32 s5[1]; 
    ALONG(k, 1) { s5[k] = narrow<f32>(op_negative_f32(widen(s0[0]))); }
    ALONG(k, 1) { p.s7[k] = narrow<f32>(op_multiply_f32(widen(s5[0]), widen(__uint_as_float(1069066811u)))); }
}
FN void of_i(const Inputs& in, const u64 (&at)[OPERANDS], const Once& p, i64 i, OfI& x) {
}
FN void of_j(const Inputs& in, const u64 (&at)[OPERANDS], const Once& p, i64 j, OfJ& y) {
}
FN f64 scale(const Once& p) { return (f64)p.s7[0]; }
template <int G> FN void fold(const Once& p, const OfI& x, const OfJ* y, const T (&square)[G], State& s, i32 j) {
    f32 s8[G][1]; 
    EACH(u, G) s8[u][0] = square[u];
    f32 s9[G][1]; 
    ALONG(k, 1) EACH(u, G) { s9[u][k] = narrow<f32>(op_exp2_pair_f32(widen(s8[u][0]))); }
    ALONG(k, 1) EACH(u, G) { s.add(0 + k, widen(s9[u][0])); }
}
FN void complete(const Inputs& in, const u64 (&at)[OPERANDS], const Once& p, i64 i, const OfI& x, State& s) {
    s.sums.scale(op_exp2_pair_f32(x.norm));
}
FN bool overflows(const State& s) {
    bool wild = false;
    ALONG(k, DIM) wild |= !(fabs(s.value(k)) < infinity<A>());
    return wild;
}
FN void prepare() {}
// [pairs_ends.cu
// [pairs_parts.cu
// [pairs_tiles.cu
// [pairs_wide_fold.cu
// [pairs_wide.cu

}
// Merge
// [types
typedef f32 T;
typedef f32 A;
typedef f32 R;
enum { DIM = 1, KEPT = 1, WEIGHTS = 0, VALUES = 1, INDICES = 0, WIDTH = 1, OPERANDS = 5, LONG = 64, AT_A_TIME = 4, FEW = 16, IN_REGISTERS = 8, LANES = 1, THREADS = 128, APART = 0 };
// [pair_math.cu
enum { BINARY = 1, BOUNDED = 0 };
// [pair_folds.cu
typedef Added<Cascade<DIM> > State;
typedef Added<Cascade<DIM> > Merged;
template <class S> FN A result(const S& s, int k, A count) { return log(s.value(k)); }
// [pairs_ends.cu
// [pairs_merge.cu

}
