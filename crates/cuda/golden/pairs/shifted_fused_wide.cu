// Pairs
// [types
typedef f32 T;
typedef f32 A;
typedef f32 R;
typedef f32 Stored;
enum { DIM = 1, KEPT = 1, WEIGHTS = 0, VALUES = 2, INDICES = 0, WIDTH = 1, OPERANDS = 6, LONG = 64, AT_A_TIME = 4, FEW = 16, IN_REGISTERS = 8, LANES = 1, THREADS = 512, ROWS = 2, SLICES = 1, TILE = 64, GROUP = 8, AHEAD = 0, CHOOSES = 0, SCALED = 0, RESIDENT_BLOCKS = 0, GROUPS = 3, COLUMNS = 64, STAGES = 4, STAGE_BYTES = 17408, KEPT_BYTES = 0, RESIDENT = 1, DEPTHS = 64, SHALLOW = 1, PARTS = 3, LEAVE = 16, OUTSIDE = 1, PRODUCT = 0, POINT_X = 2, POINT_Y = 3, RIGHT = 0, WAITING = 6, EIGHT = 8, DIFFERS = 0 };
struct Input { const void* base; i64 row, component; };
struct Inputs { Input at[4]; u64 numbers[1]; };
// [hopper.cu
// [pair_math.cu
enum { BINARY = 1, BOUNDED = 0 };
// [pair_folds.cu
typedef Shifted<Cascade<1 + WEIGHTS> > State;
typedef Shifted<Cascade<1 + WEIGHTS> > Merged;
template <class S> FN A result(const S& s, int k, A count) { return s.value(0) + log(s.value(1 + k)); }
FN f32 op_subtract_f32(f32 a, f32 b) { return (f32)(a - b); }
FN f32 op_fma_f32(f32 a, f32 b, f32 c) { return (f32)(fma(a, b, c)); }
struct Once { f32 s0[1]; };
struct OfI { T norm; };
struct alignas(8) OfJ { f32 s6[1]; T norm; };
static_assert(sizeof(OfJ) == 8, "as room is made for it");
FN void once(const Inputs& in, const u64 (&at)[OPERANDS], Once& p) {
    ALONG(k, 1) p.s0[k] = ((const f32*)in.at[0].base)[(i64)at[0] + k * in.at[0].component];
}
FN void of_i(const Inputs& in, const u64 (&at)[OPERANDS], const Once& p, i64 i, OfI& x) {
}
FN void of_j(const Inputs& in, const u64 (&at)[OPERANDS], const Once& p, i64 j, OfJ& y) {
    f32 s1[2]; 
    ALONG(k, 2) s1[k] = ((const f32*)in.at[1].base)[(i64)at[1] + j * in.at[1].row + k * in.at[1].component];
    ALONG(k, 1) { y.s6[k + 0] = s1[k + 1]; }
}
FN f64 scale(const Once& p) { return (f64)p.s0[0]; }
template <int G> FN void fold(const Once& p, const OfI& x, const OfJ* y, const T (&square)[G], State& s, i32 j) {
    f32 s7[G][1]; 
    EACH(u, G) s7[u][0] = square[u];
    EACH(u, G) s7[u][0] = s7[u][0] + widen(y[u * LANES].s6[0]);
    T v[G][DIM], w[G][WEIGHTS + 1];
    ALONG(k, 1) EACH(u, G) { v[u][k] = widen(s7[u][0]); }
    s.template steps<G>(v, w, j);
}
FN void complete(const Inputs& in, const u64 (&at)[OPERANDS], const Once& p, i64 i, const OfI& x, State& s) {
    s.moved = x.norm;
}
FN bool overflows(const State&) { return false; }
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
