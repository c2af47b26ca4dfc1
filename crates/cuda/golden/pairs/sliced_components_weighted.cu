// Pairs
// [types
typedef f32 T;
typedef f32 A;
typedef f32 R;
typedef f32 Stored;
enum { DIM = 56, KEPT = 1, WEIGHTS = 0, VALUES = 56, INDICES = 0, WIDTH = 56, OPERANDS = 5, LONG = 64, AT_A_TIME = 4, FEW = 16, IN_REGISTERS = 8, LANES = 1, THREADS = 384, ROWS = 2, SLICES = 1, TILE = 64, GROUP = 2, AHEAD = 0, CHOOSES = 0, SCALED = 1, RESIDENT_BLOCKS = 0, GROUPS = 2, COLUMNS = 64, STAGES = 3, STAGE_BYTES = 46080, KEPT_BYTES = 28672, RESIDENT = 1, DEPTHS = 64, SHALLOW = 1, PARTS = 3, LEAVE = 16, OUTSIDE = 1, PRODUCT = 0, POINT_X = 1, POINT_Y = 2, RIGHT = 56, WAITING = 6, EIGHT = 8, DIFFERS = 0 };
struct Input { const void* base; i64 row, component; };
struct Inputs { Input at[3]; u64 numbers[1]; };
// [hopper.cu
// [pair_math.cu
enum { BINARY = 1, BOUNDED = 0 };
// [pair_folds.cu
typedef Added<Cascade<DIM> > State;
typedef Added<Cascade<DIM> > Merged;
template <class S> FN A result(const S& s, int k, A count) { return s.value(k); }
FN f32 op_subtract_f32(f32 a, f32 b) { return (f32)(a - b); }
FN f32 op_multiply_f32(f32 a, f32 b) { return (f32)(a * b); }
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
FN f64 scale(const Once& p) { return (f64)__uint_as_float(3216550459u); }
template <int G> FN void weigh(const Once& p, const OfI& x, const OfJ* y, const T (&square)[G], T (&w)[G]) {
    f32 s6[G][1]; 
    EACH(u, G) s6[u][0] = square[u];
    f32 s7[G][1]; 
    ALONG(k, 1) EACH(u, G) { s7[u][k] = narrow<f32>(op_exp2_pair_f32(widen(s6[u][0]))); }
    EACH(u, G) { const int k = 0; w[u] = widen(s7[u][0]); }
}
FN T of_row(const OfI& x) { return 1; }
namespace right {
struct Once { };
struct OfI { };
struct alignas(8) OfJ { u8 rest[8]; };
static_assert(sizeof(OfJ) == 8, "as room is made for it");
FN void once(const Inputs& in, const u64 (&at)[OPERANDS], Once& p) {
}
FN void of_i(const Inputs& in, const u64 (&at)[OPERANDS], const Once& p, i64 i, OfI& x) {
}
FN void of_j(const Inputs& in, const u64 (&at)[OPERANDS], const Once& p, i64 j, OfJ& y) {
}
FN f32 side(const Inputs& in, const u64 (&at)[OPERANDS], const Once& p, i64 j, const OfJ& y, u32 k) { return ((const f32*)in.at[0].base)[(i64)at[0] + j * in.at[0].row + k * in.at[0].component]; }
}
FN void multiply_right(f32 (&d)[28], const u32 (&heads)[4][4], const u32 (&tails)[4][4], u64 b, u64 tails_b) {
    asm volatile("{ .reg .pred none, all; setp.ne.b32 none, 0, 0; setp.eq.b32 all, 0, 0;"
        "wgmma.mma_async.sync.aligned.m64n56k8.f32.tf32.tf32 {%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27}, {%28,%29,%30,%31}, %60, none, 1, 1;"
        "wgmma.mma_async.sync.aligned.m64n56k8.f32.tf32.tf32 {%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27}, {%32,%33,%34,%35}, %61, all, 1, 1;"
        "wgmma.mma_async.sync.aligned.m64n56k8.f32.tf32.tf32 {%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27}, {%36,%37,%38,%39}, %62, all, 1, 1;"
        "wgmma.mma_async.sync.aligned.m64n56k8.f32.tf32.tf32 {%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27}, {%40,%41,%42,%43}, %63, all, 1, 1;"
        "wgmma.mma_async.sync.aligned.m64n56k8.f32.tf32.tf32 {%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27}, {%44,%45,%46,%47}, %64, all, 1, 1;"
        "wgmma.mma_async.sync.aligned.m64n56k8.f32.tf32.tf32 {%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27}, {%48,%49,%50,%51}, %65, all, 1, 1;"
        "wgmma.mma_async.sync.aligned.m64n56k8.f32.tf32.tf32 {%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27}, {%52,%53,%54,%55}, %66, all, 1, 1;"
        "wgmma.mma_async.sync.aligned.m64n56k8.f32.tf32.tf32 {%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27}, {%56,%57,%58,%59}, %67, all, 1, 1;"
        "wgmma.mma_async.sync.aligned.m64n56k8.f32.tf32.tf32 {%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27}, {%44,%45,%46,%47}, %60, all, 1, 1;"
        "wgmma.mma_async.sync.aligned.m64n56k8.f32.tf32.tf32 {%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27}, {%48,%49,%50,%51}, %61, all, 1, 1;"
        "wgmma.mma_async.sync.aligned.m64n56k8.f32.tf32.tf32 {%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27}, {%52,%53,%54,%55}, %62, all, 1, 1;"
        "wgmma.mma_async.sync.aligned.m64n56k8.f32.tf32.tf32 {%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27}, {%56,%57,%58,%59}, %63, all, 1, 1;"
        "}"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27])
        : "r"(tails[0][0]), "r"(tails[0][1]), "r"(tails[0][2]), "r"(tails[0][3]), "r"(tails[1][0]), "r"(tails[1][1]), "r"(tails[1][2]), "r"(tails[1][3]), "r"(tails[2][0]), "r"(tails[2][1]), "r"(tails[2][2]), "r"(tails[2][3]), "r"(tails[3][0]), "r"(tails[3][1]), "r"(tails[3][2]), "r"(tails[3][3]), "r"(heads[0][0]), "r"(heads[0][1]), "r"(heads[0][2]), "r"(heads[0][3]), "r"(heads[1][0]), "r"(heads[1][1]), "r"(heads[1][2]), "r"(heads[1][3]), "r"(heads[2][0]), "r"(heads[2][1]), "r"(heads[2][2]), "r"(heads[2][3]), "r"(heads[3][0]), "r"(heads[3][1]), "r"(heads[3][2]), "r"(heads[3][3]), "l"(b + 0), "l"(b + 2), "l"(b + 4), "l"(b + 6), "l"(tails_b + 0), "l"(tails_b + 2), "l"(tails_b + 4), "l"(tails_b + 6));
}
// [pairs_ends.cu
// [pairs_parts.cu
// [pairs_tiles.cu
// [pairs_wide_right.cu
// [pairs_wide.cu

}
// Merge
// [types
typedef f32 T;
typedef f32 A;
typedef f32 R;
enum { DIM = 1, KEPT = 1, WEIGHTS = 0, VALUES = 1, INDICES = 0, WIDTH = 1, OPERANDS = 5, LONG = 64, AT_A_TIME = 4, FEW = 16, IN_REGISTERS = 8, LANES = 1, THREADS = 128, APART = 1 };
// [pair_math.cu
enum { BINARY = 1, BOUNDED = 0 };
// [pair_folds.cu
typedef Added<Cascade<DIM> > State;
typedef Added<Cascade<DIM> > Merged;
template <class S> FN A result(const S& s, int k, A count) { return s.value(k); }
// [pairs_ends.cu
// [pairs_merge.cu

}
