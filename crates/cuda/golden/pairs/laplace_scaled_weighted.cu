// Pairs
// [types
// [folds.cu
typedef f32 T;
typedef f32 A;
typedef f32 R;
typedef f32 Stored;
enum { DIM = 40, KEPT = 1, WEIGHTS = 0, VALUES = 40, INDICES = 0, WIDTH = 40, OPERANDS = 6, LONG = 64, AT_A_TIME = 4, FEW = 16, IN_REGISTERS = 8, LANES = 1, THREADS = 384, ROWS = 2, SLICES = 1, TILE = 64, GROUP = 2, AHEAD = 0, CHOOSES = 0, SCALED = 0, RESIDENT_BLOCKS = 0, GROUPS = 2, COLUMNS = 64, STAGES = 4, STAGE_BYTES = 21504, KEPT_BYTES = 20480, RESIDENT = 1, DEPTHS = 0, SHALLOW = 1, PARTS = 0, LEAVE = 64, OUTSIDE = 0, PRODUCT = 0, POINT_X = 0, POINT_Y = 0, RIGHT = 40, WAITING = 6, EIGHT = 8, DIFFERS = 0 };
struct Input { const void* base; i64 row, component; };
struct Inputs { Input at[4]; u64 numbers[1]; };
// [hopper.cu
// [pair_math.cu
enum { BINARY = 1, BOUNDED = 0 };
// [pair_folds.cu
typedef Added<Cascade<DIM> > State;
typedef Added<Cascade<DIM> > Merged;
template <class S> FN A result(const S& s, int k, A count) { return s.value(k) / count; }
FN f32 op_subtract_f32(f32 a, f32 b) { return (f32)(a - b); }
FN f32 op_multiply_f32(f32 a, f32 b) { return (f32)(a * b); }
struct Once { };
struct OfI { f32 s0[3]; T norm; };
struct alignas(8) OfJ { f32 s1[3]; T norm; };
static_assert(sizeof(OfJ) == 16, "as room is made for it");
FN void once(const Inputs& in, const u64 (&at)[OPERANDS], Once& p) {
}
FN void of_i(const Inputs& in, const u64 (&at)[OPERANDS], const Once& p, i64 i, OfI& x) {
    ALONG(k, 3) x.s0[k] = ((const f32*)in.at[0].base)[(i64)at[0] + i * in.at[0].row + k * in.at[0].component];
}
FN void of_j(const Inputs& in, const u64 (&at)[OPERANDS], const Once& p, i64 j, OfJ& y) {
    ALONG(k, 3) y.s1[k] = ((const f32*)in.at[1].base)[(i64)at[1] + j * in.at[1].row + k * in.at[1].component];
}
FN f64 scale(const Once& p) { return 1; }
template <int G> FN void weigh(const Once& p, const OfI& x, const OfJ* y, const T (&square)[G], T (&w)[G]) {
    f32 s6[G][1]; 
    EACH(u, G) s6[u][0] = 0;
    ALONG(k, 3) EACH(u, G) { f32 e5 = narrow<f32>(op_subtract_f32(widen(x.s0[k]), widen(y[u * LANES].s1[k]))); s6[u][0] = fma(widen(e5), widen(e5), s6[u][0]); }
    f32 s7[G][1]; 
    ALONG(k, 1) EACH(u, G) { s7[u][k] = narrow<f32>(root_of_exponent(widen(s6[u][0]))); }
    f32 s8[G][1]; 
    ALONG(k, 1) EACH(u, G) { s8[u][k] = narrow<f32>(op_multiply_f32(widen(__uint_as_float(3216550459u)), widen(s7[u][0]))); }
    f32 s9[G][1]; 
    ALONG(k, 1) EACH(u, G) { s9[u][k] = narrow<f32>(op_exp2_pair_f32(widen(s8[u][0]))); }
    EACH(u, G) { const int k = 0; w[u] = widen(s9[u][0]); }
}
FN T of_row(const OfI& x) { return 1; }
namespace right {
FN f32 op_multiply_f32(f32 a, f32 b) { return (f32)(a * b); }
struct Once { };
struct OfI { };
struct alignas(8) OfJ { f32 s5[40]; };
static_assert(sizeof(OfJ) == 160, "as room is made for it");
FN void once(const Inputs& in, const u64 (&at)[OPERANDS], Once& p) {
}
FN void of_i(const Inputs& in, const u64 (&at)[OPERANDS], const Once& p, i64 i, OfI& x) {
}
FN void of_j(const Inputs& in, const u64 (&at)[OPERANDS], const Once& p, i64 j, OfJ& y) {
    f32 s2[2]; 
    ALONG(k, 2) s2[k] = ((const f32*)in.at[2].base)[(i64)at[2] + j * in.at[2].row + k * in.at[2].component];
    f32 s3[40]; 
    ALONG(k, 40) s3[k] = ((const f32*)in.at[3].base)[(i64)at[3] + j * in.at[3].row + k * in.at[3].component];
    f32 s4[1]; 
    Sum<f32>::State t4;
    t4 = Sum<f32>::init();
    ALONG(k, 2) { t4 = Sum<f32>::step(t4, widen(s2[k]), k); }
    s4[0] = narrow<f32>(Sum<f32>::finish(t4, 2, 0));
    ALONG(k, 40) { y.s5[k] = narrow<f32>(op_multiply_f32(widen(s3[k]), widen(s4[0]))); }
}
FN f32 side(const Inputs& in, const u64 (&at)[OPERANDS], const Once& p, i64 j, const OfJ& y, u32 k) { return y.s5[k]; }
}
FN void multiply_right(f32 (&d)[20], const u32 (&heads)[4][4], const u32 (&tails)[4][4], u64 b, u64 tails_b) {
    asm volatile("{ .reg .pred none, all; setp.ne.b32 none, 0, 0; setp.eq.b32 all, 0, 0;"
        "wgmma.mma_async.sync.aligned.m64n40k8.f32.tf32.tf32 {%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19}, {%20,%21,%22,%23}, %52, none, 1, 1;"
        "wgmma.mma_async.sync.aligned.m64n40k8.f32.tf32.tf32 {%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19}, {%24,%25,%26,%27}, %53, all, 1, 1;"
        "wgmma.mma_async.sync.aligned.m64n40k8.f32.tf32.tf32 {%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19}, {%28,%29,%30,%31}, %54, all, 1, 1;"
        "wgmma.mma_async.sync.aligned.m64n40k8.f32.tf32.tf32 {%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19}, {%32,%33,%34,%35}, %55, all, 1, 1;"
        "wgmma.mma_async.sync.aligned.m64n40k8.f32.tf32.tf32 {%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19}, {%36,%37,%38,%39}, %56, all, 1, 1;"
        "wgmma.mma_async.sync.aligned.m64n40k8.f32.tf32.tf32 {%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19}, {%40,%41,%42,%43}, %57, all, 1, 1;"
        "wgmma.mma_async.sync.aligned.m64n40k8.f32.tf32.tf32 {%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19}, {%44,%45,%46,%47}, %58, all, 1, 1;"
        "wgmma.mma_async.sync.aligned.m64n40k8.f32.tf32.tf32 {%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19}, {%48,%49,%50,%51}, %59, all, 1, 1;"
        "wgmma.mma_async.sync.aligned.m64n40k8.f32.tf32.tf32 {%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19}, {%36,%37,%38,%39}, %52, all, 1, 1;"
        "wgmma.mma_async.sync.aligned.m64n40k8.f32.tf32.tf32 {%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19}, {%40,%41,%42,%43}, %53, all, 1, 1;"
        "wgmma.mma_async.sync.aligned.m64n40k8.f32.tf32.tf32 {%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19}, {%44,%45,%46,%47}, %54, all, 1, 1;"
        "wgmma.mma_async.sync.aligned.m64n40k8.f32.tf32.tf32 {%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19}, {%48,%49,%50,%51}, %55, all, 1, 1;"
        "}"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19])
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
enum { DIM = 1, KEPT = 1, WEIGHTS = 0, VALUES = 1, INDICES = 0, WIDTH = 1, OPERANDS = 6, LONG = 64, AT_A_TIME = 4, FEW = 16, IN_REGISTERS = 8, LANES = 1, THREADS = 128, APART = 1 };
// [pair_math.cu
enum { BINARY = 1, BOUNDED = 0 };
// [pair_folds.cu
typedef Added<Cascade<DIM> > State;
typedef Added<Cascade<DIM> > Merged;
template <class S> FN A result(const S& s, int k, A count) { return s.value(k) / count; }
// [pairs_ends.cu
// [pairs_merge.cu

}
