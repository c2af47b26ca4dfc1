// Parts of a call on Hopper's tensor cores: where a piece of rows and a panel of j have what was made
// ready for them, and the centre that points are taken about. The head of `pairs_wide.cu` tells the walk
// and what is declared before.

#define SIDE 64                         // rows of a tile
#define TILE_BYTES (SIDE * DEPTHS * 4)  // a head and a tail of every number
#define HEADS 8192                      // bytes of heads before their tails, where DEPTHS is 64
#define TAIL 2048.f

struct Wide {
    u8* rows;            // tiles of this piece's rows: of 64 rows, of DEPTHS of D
    u8* columns;         // the same of this panel's j
    OfJ* of_columns;
    T* row_norms;        // c |x|^2
    u8* right;           // tiles of this panel's right-hand sides
    const f32* centre;   // of this batch
    u32 depth, deep;     // D, and tiles along it
    f32 error, least;    // of a square: relative to the sum of the largest norms, and at least
    u32 goes_on, ends;   // whether panels came before, and whether this is the last
};

// A component of a point, about the centre.
FN f32 coordinate(const Inputs& in, const u64 (&at)[OPERANDS], const Wide& w, bool left, i64 row, int d) {
    const int k = left ? POINT_X : POINT_Y;
    const Input& from = in.at[k];
    return ((const f32*)from.base)[(i64)at[k] + row * from.row + d * from.component] - w.centre[d];
}

// About the mean of the j, of a thousand of them: any centre is right, a good one keeps norms small.
// A block has 32 components.
extern "C" __global__ void __launch_bounds__(256) centre(
    const __grid_constant__ Nest<u64, OPERANDS> batches, const __grid_constant__ Inputs in,
    const __grid_constant__ Shape shape, f32* to, u32 depth) {
    __shared__ f32 sums[8][32];
    u64 at[OPERANDS];
    locate(batches, (u64)0, at);
    const Input& y = in.at[POINT_Y];
    int lane = threadIdx.x % 32, turn = threadIdx.x / 32, d = blockIdx.x * 32 + lane;
    i64 step = (shape.n + 1023) / 1024;
    f32 sum = 0;
    for (i64 j = turn * step; d < depth && j < shape.n; j += 8 * step) {
        sum += ((const f32*)y.base)[(i64)at[POINT_Y] + j * y.row + d * y.component];
    }
    sums[turn][lane] = sum;
    __syncthreads();
    if (turn > 0 || d >= depth) return;
#pragma unroll
    for (int k = 1; k < 8; k++) sum += sums[k][lane];
    to[d] = sum / (f32)((shape.n + step - 1) / step);
}

// The power of two that brings points of one side below 2^10: heads have all of their bits then
// wherever they count.
FN f64 into_range(const Choice& choice, int side, f64 scale) {
    f64 square = __longlong_as_double(choice.measured[side]) / fabs(scale);
    int exponent = square > 0 && square < 1e70 ? ilogb(square) / 2 : 0;
    return exp2((f64)(9 - (exponent < -100 ? -100 : exponent)));
}
