// The centre that points are taken about. The head of `pairs_wide.cu` tells the walk and what is declared
// before.

// About the mean of the j, of a thousand of them: any centre is right, a good one keeps norms small. A component is 0
// where that is near, beside how far these are apart, since points that are not moved are not rounded.
// A block has 32 components, a layer of blocks a batch.
#define NEAR 8 // times its square, less than the variance
extern "C" __global__ void __launch_bounds__(256) centre(
    const __grid_constant__ Nest<u64, OPERANDS> batches, const __grid_constant__ Inputs in,
    const __grid_constant__ Shape shape, f32* to, u32 depth) {
    __shared__ f64 sums[8][32], squares[8][32];
    u64 at[OPERANDS];
    locate(batches, blockIdx.z, at);
    to += (i64)blockIdx.z * depth;
    const Input& y = in.at[POINT_Y];
    int lane = threadIdx.x % 32, turn = threadIdx.x / 32, d = blockIdx.x * 32 + lane;
    i64 step = (shape.n + 1023) / 1024;
    // In float64, where no square leaves the range.
    f64 sum = 0, square = 0;
    for (i64 j = turn * step; d < depth && j < shape.n; j += 8 * step) {
        f64 v = widen(((const Stored*)y.base)[(i64)at[POINT_Y] + j * y.row + d * y.component]);
        sum += v;
        square = fma(v, v, square);
    }
    sums[turn][lane] = sum;
    squares[turn][lane] = square;
    __syncthreads();
    if (turn > 0 || d >= depth) return;
#pragma unroll
    for (int k = 1; k < 8; k++) {
        sum += sums[k][lane];
        square += squares[k][lane];
    }
    f64 mean = sum / (f64)((shape.n + step - 1) / step);
    // Inner products are about the origin.
    to[d] = !PRODUCT && (1 + NEAR) * mean * sum > square ? (f32)mean : 0;
}
