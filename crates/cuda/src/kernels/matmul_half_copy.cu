// Operands of half types as Hopper's copy engine wants them: neighbours side by side, rows multiples of 16
// bytes apart. Declared before, with `matmul.cu`: S, the half type.

struct Copy {
    u64 inner, outer, pitch;    // neighbours, rows, and elements from one row to the next
    u64 which;                  // of the operands
    i64 steps[2];               // to the next neighbour and to the next row
};

// Neighbours, rows and batches are the grid's three directions.
extern "C" __global__ void __launch_bounds__(256) copy(
    const __grid_constant__ Nest<u64, 3> batch, const Product p, const Copy x, const S* from, S* to) {
    u64 at[3], inner = blockIdx.x * 256 + threadIdx.x;
    locate(batch, (u64)(p.first + blockIdx.z), at);
    from += x.which ? at[1] : at[0];
    to += blockIdx.z * x.outer * x.pitch;
    for (u64 outer = blockIdx.y; inner < x.inner && outer < x.outer; outer += gridDim.y)
        to[outer * x.pitch + inner] = from[(i64)inner * x.steps[0] + (i64)outer * x.steps[1]];
}
