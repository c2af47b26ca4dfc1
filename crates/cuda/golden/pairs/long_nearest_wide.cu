// Pairs
// [types
typedef f32 T;
typedef f32 A;
typedef f32 R;
typedef f32 Stored;
enum { DIM = 1, KEPT = 1, WEIGHTS = 0, VALUES = 1, INDICES = 1, WIDTH = 1, OPERANDS = 4, LONG = 64, AT_A_TIME = 4, FEW = 16, IN_REGISTERS = 8, LANES = 1, THREADS = 384, ROWS = 2, SLICES = 1, TILE = 128, GROUP = 4, AHEAD = 0, CHOOSES = 0, SCALED = 0, RESIDENT_BLOCKS = 0, GROUPS = 2, COLUMNS = 128, STAGES = 3, STAGE_BYTES = 33792, KEPT_BYTES = 40960, RESIDENT = 1, DEPTHS = 64, SHALLOW = 0, PARTS = 1, LEAVE = 64, OUTSIDE = 1, PRODUCT = 0, POINT_X = 0, POINT_Y = 1, RIGHT = 0, WAITING = 6, EIGHT = 8, DIFFERS = 0 };
struct Input { const void* base; i64 row, component; };
struct Inputs { Input at[2]; u64 numbers[1]; };
// [hopper.cu
// [pair_math.cu
enum { BINARY = 1, BOUNDED = 0 };
// [pair_folds.cu
typedef Best<false, i32> State;
typedef Best<false, i64> Merged;
template <class S> FN A result(const S& s, int k, A count) { return s.value(k); }
FN f32 op_subtract_f32(f32 a, f32 b) { return (f32)(a - b); }
struct Once { };
struct OfI { T norm; };
struct alignas(8) OfJ { T norm; u8 rest[4]; };
static_assert(sizeof(OfJ) == 8, "as room is made for it");
FN void once(const Inputs& in, const u64 (&at)[OPERANDS], Once& p) {
}
FN void of_i(const Inputs& in, const u64 (&at)[OPERANDS], const Once& p, i64 i, OfI& x) {
}
FN void of_j(const Inputs& in, const u64 (&at)[OPERANDS], const Once& p, i64 j, OfJ& y) {
}
FN f64 scale(const Once& p) { return (f64)1; }
// [pairs_ends.cu
// [pairs_parts.cu
// [pairs_tiles.cu
// [pairs_wide_sift.cu
// [pairs_wide.cu

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
