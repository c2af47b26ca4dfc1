// Products of half types on Hopper's tensor cores, summed in float32. Tiles come by the copy engine,
// which reads zeros beyond the edges. A block computes 128 x 256: two groups of four warps with 64 x
// 256 each, and a third that brings the tiles. Declared before, with `matmul.cu` and `hopper.cu`: S,
// the half type; HALF, its name in instructions; ACROSS_A and ACROSS_B, 1 where neighbours of an
// operand lie along the result and not along the sum; STAGES.

#define ROWS 128
#define COLUMNS 256
#define DEPTHS 64       // of k in a stage: 128 bytes
#define LEFT (ROWS * 128)
#define STAGE ((ROWS + COLUMNS) * 128)

// What the copy engine knows of an operand; made by the driver.
struct alignas(64) TensorMap { u64 words[16]; };

// 64 elements by `rows` rows of an operand, from (x, y) of matrix z on.
FN void tensor_copy(u32 to, const TensorMap& map, int x, int y, int z, u32 barrier) {
    asm volatile(
        "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4}], [%5];"
        ::"r"(to), "l"(&map), "r"(x), "r"(y), "r"(z), "r"(barrier) : "memory");
}
#define PLACES_128 PLACES_32 "," \
    PLACES_8(32, 33, 34, 35, 36, 37, 38, 39) "," PLACES_8(40, 41, 42, 43, 44, 45, 46, 47) "," \
    PLACES_8(48, 49, 50, 51, 52, 53, 54, 55) "," PLACES_8(56, 57, 58, 59, 60, 61, 62, 63) "," \
    PLACES_8(64, 65, 66, 67, 68, 69, 70, 71) "," PLACES_8(72, 73, 74, 75, 76, 77, 78, 79) "," \
    PLACES_8(80, 81, 82, 83, 84, 85, 86, 87) "," PLACES_8(88, 89, 90, 91, 92, 93, 94, 95) "," \
    PLACES_8(96, 97, 98, 99, 100, 101, 102, 103) "," PLACES_8(104, 105, 106, 107, 108, 109, 110, 111) "," \
    PLACES_8(112, 113, 114, 115, 116, 117, 118, 119) "," PLACES_8(120, 121, 122, 123, 124, 125, 126, 127)
// d + a b of 64 x 16 by 16 x 256.
FN void multiply_tiles(f32 (&d)[128], u64 a, u64 b) {
    asm volatile("wgmma.mma_async.sync.aligned.m64n256k16.f32." HALF "." HALF " {" PLACES_128 "}, %128, %129, 1, 1, 1, %130, %131;"
        : KEPT_32(d, 0), KEPT_32(d, 32), KEPT_32(d, 64), KEPT_32(d, 96)
        : "l"(a), "l"(b), "n"(ACROSS_A), "n"(ACROSS_B));
}

extern "C" __global__ void __launch_bounds__(384, 1) hopper(
    const __grid_constant__ Nest<u64, 3> batch, const Product p, const __grid_constant__ TensorMap a,
    const __grid_constant__ TensorMap b, u32 moves, S* c) {
    extern __shared__ unsigned char memory[];
    __shared__ __align__(8) u64 barriers[2 * STAGES];
    Ring<STAGES> ring = Ring<STAGES>::make(barriers, 2);
    u32 base = (shared_address(memory) + 1023) & ~1023u;
    u32 row, column;
    tile_of<16>(blockIdx.x, (p.m + ROWS - 1) / ROWS, (p.n + COLUMNS - 1) / COLUMNS, row, column);
    row *= ROWS;
    column *= COLUMNS;
    u32 steps = (p.k + DEPTHS - 1) / DEPTHS, group = threadIdx.x / 128;
    // Which matrix: operands that move (bits 0 and 1) lie from the first batch of all on (bits 2 and 3), or
    // from the first of this launch.
    u32 number_a = moves & 1 ? (moves & 4 ? p.first : 0) + blockIdx.y : 0;
    u32 number_b = moves & 2 ? (moves & 8 ? p.first : 0) + blockIdx.y : 0;
    if (group == 2) {
        fewer_registers();
        if (threadIdx.x % 128 == 0) {
            for (u32 step = 0; step < steps; step++) {
                u32 barrier = ring.fill(step, STAGE, true), to = base + step % STAGES * STAGE, k = step * DEPTHS;
#pragma unroll
                for (int q = 0; q < ROWS / 64; q++) {
                    int r = row + q * 64;
                    tensor_copy(to + q * 8192, a, ACROSS_A ? r : k, ACROSS_A ? k : r, number_a, barrier);
                }
#pragma unroll
                for (int q = 0; q < COLUMNS / 64; q++) {
                    int r = column + q * 64;
                    tensor_copy(to + LEFT + q * 8192, b, ACROSS_B ? r : k, ACROSS_B ? k : r, number_b, barrier);
                }
            }
        }
        return;
    }
    more_registers<232>();
    f32 sum[128];
#pragma unroll
    for (int i = 0; i < 128; i++) sum[i] = 0;
    for (u32 step = 0; step < steps; step++) {
        u32 stage = base + step % STAGES * STAGE;
        // From one 16 of k to the next: two groups of eight rows, or 32 bytes along them.
        u64 left = describe(stage + group * 8192, 1024, 8192), right = describe(stage + LEFT, 1024, 8192);
        ring.take(step);
        group_begin();
#pragma unroll
        for (int k = 0; k < DEPTHS / 16; k++)
            multiply_tiles(sum, left + k * (ACROSS_A ? 2048 >> 4 : 2), right + k * (ACROSS_B ? 2048 >> 4 : 2));
        group_end();
        // The stage before is done with when no more than this one's products are on their way.
        group_wait<1>();
        if (step > 0) ring.leave(step - 1);
    }
    group_wait<0>();
    u64 at[3];
    locate(batch, (u64)(p.first + blockIdx.y), at);
    row += group * 64 + threadIdx.x / 32 % 4 * 16 + threadIdx.x % 32 / 4;
    column += threadIdx.x % 4 * 2;
    bool pairs = p.c.column == 1 && ((u64)(c + at[2]) & 3) == 0 && p.c.row % 2 == 0;
#pragma unroll
    for (int i = 0; i < 128; i += 2) {
        u32 y = row + i / 2 % 2 * 8, x = column + i / 4 * 8;
        if (y >= p.m || x >= p.n) continue;
        S* to = c + at[2] + y * p.c.row + x * p.c.column;
        Pack<S, 2> pair = {{leave(sum[i]), leave(sum[i + 1])}};
        if (pairs && x + 1 < p.n) {
            *(Pack<S, 2>*)to = pair;
        } else {
            to[0] = pair.at[0];
            if (x + 1 < p.n) to[p.c.column] = pair.at[1];
        }
    }
}
