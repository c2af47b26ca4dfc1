// The centre that points are taken about. The head of `pairs_wide.cu` tells the walk and what is declared
// before.

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
