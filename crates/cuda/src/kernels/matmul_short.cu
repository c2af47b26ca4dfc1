// float32 products of short sums on Hopper's tensor cores: k of at most two tiles, split beforehand as for
// `matmul_split.cu`, whose sums these are. A group of four warps keeps its 64 rows of the left operand in
// registers, heads and tails, while tiles of columns pass by in shared memory: what moves is what such
// products take their time for. Results leave through shared memory. Declared before, with `matmul.cu`,
// `matmul_tiles.cu` and `hopper.cu`: S, f32; GROUPS, groups of a block; STAGES.

#define DEEP 2                          // tiles of k
#define STAGE (DEEP * 2 * HEADS)
#define WIDE (SIDE + 8)                 // of a row of results in shared memory, so that banks differ

// A group's rows: of each 8 of k what a thread has.
struct Kept {
    u32 heads[DEEP * 4][4], tails[DEEP * 4][4];

    __device__ __forceinline__ void bring(const u32* tiles) {
        u32 lane = threadIdx.x % 32, row = threadIdx.x % 128 / 32 * 16 + lane / 4;
#pragma unroll
        for (int q = 0; q < DEEP * 4; q++)
#pragma unroll
            for (int e = 0; e < 4; e++) {
                u32 r = row + e % 2 * 8, chunk = q % 4 * 2 + e / 2;
                const u32* from = tiles + q / 4 * (2 * HEADS / 4) + r * DEPTHS + (chunk ^ r % 8) * 4 + lane % 4;
                heads[q][e] = from[0];
                tails[q][e] = from[HEADS / 4];
            }
    }
    // The products of a quarter of k: heads anew, cross products added.
    __device__ __forceinline__ void multiply(f32 (&some)[32], f32 (&cross)[32], u32 right, int quarter) const {
        u64 b = describe(right + quarter / 2 * 2 * HEADS, 1024, 16) + quarter % 2 * 4;
        const u64 beyond = HEADS >> 4;
        group_begin();
#pragma unroll
        for (int k = 0; k < 2; k++) {
            multiply_kept(some, heads[quarter * 2 + k], b + 2 * k, k > 0);
            multiply_kept(cross, heads[quarter * 2 + k], b + beyond + 2 * k, quarter > 0 || k > 0);
            multiply_kept(cross, tails[quarter * 2 + k], b + 2 * k, true);
        }
        group_end();
    }
};
FN void meet(u32 group) { asm volatile("bar.sync %0, 128;" ::"r"(1 + group) : "memory"); }

// A group's results go to their places, in rows of 256 bytes.
FN void leave(const Product& p, const f32* tile, S* c, u32 row, u32 column, bool runs) {
    u32 own = threadIdx.x % 128;
    if (runs && row + SIDE <= p.m && column + SIDE <= p.n) {
        S* to = c + (i64)(row + own / 16) * p.c.row + column + own % 16 * 4;
#pragma unroll
        for (int q = 0; q < SIDE / 8; q++) {
            *(Pack<f32, 4>*)(to + q * 8 * p.c.row) = *(const Pack<f32, 4>*)(tile + (q * 8 + own / 16) * WIDE + own % 16 * 4);
        }
        return;
    }
#pragma unroll 4
    for (u32 q = own; q < SIDE * SIDE; q += 128) {
        u32 y = row + q / SIDE, x = column + q % SIDE;
        if (y < p.m && x < p.n) c[y * p.c.row + x * p.c.column] = tile[q / SIDE * WIDE + q % SIDE];
    }
}

// Each block has neighbouring results, row by row of tiles. The last group brings the tiles of columns.
extern "C" __global__ void __launch_bounds__(128 * (GROUPS + 1), 1) short_sums(
    const __grid_constant__ Nest<u64, 3> batch, const Product p, const Split s, const f32* tiles, S* c) {
    extern __shared__ unsigned char memory[];
    __shared__ __align__(8) u64 barriers[2 * STAGES];
    Ring<STAGES> ring = Ring<STAGES>::make(barriers, GROUPS);
    u32 base = (shared_address(memory) + 1023) & ~1023u, group = threadIdx.x / 128, own = threadIdx.x % 128;
    u32 rows = s.rows / GROUPS, columns = s.tiles - s.rows, stage = 0;
    u32 first = (u64)rows * columns * blockIdx.x / gridDim.x, end = (u64)rows * columns * (blockIdx.x + 1) / gridDim.x;
    tiles += (u64)blockIdx.y * s.tiles * (STAGE / 4);
    if (group == GROUPS) {
        fewer_registers();
        for (u32 number = first; own == 0 && number < end; number++, stage++) {
            u32 barrier = ring.fill(stage, STAGE, true);
            bulk_copy(base + stage % STAGES * STAGE, tiles + (u64)(s.rows + number % columns) * (STAGE / 4), STAGE, barrier);
        }
        return;
    }
    more_registers<232>();
    u64 at[3];
    locate(batch, (u64)(p.first + blockIdx.y), at);
    c += at[2];
    bool runs = p.c.column == 1 && p.c.row % 4 == 0 && (u64)c % 16 == 0;
    f32* leaving = (f32*)(memory + (base - shared_address(memory)) + STAGES * STAGE) + group * (SIDE * WIDE);
    Kept kept;
    u32 row = ~0u;
    for (u32 number = first; number < end; number++, stage++) {
        u32 next = (number / columns * GROUPS + group) * SIDE, right = base + stage % STAGES * STAGE;
        u32 column = number % columns * SIDE;
        if (next != row) kept.bring((const u32*)tiles + (u64)(next / SIDE) * (STAGE / 4));
        row = next;
        f32 even[32], odd[32], cross[32], sum[32];
#pragma unroll
        for (int i = 0; i < 32; i++) even[i] = odd[i] = cross[i] = sum[i] = 0;
        ring.take(stage);
        // While a quarter is multiplied, the sum of that before is added; while one group's results leave,
        // the other multiplies.
        kept.multiply(even, cross, right, 0);
        kept.multiply(odd, cross, right, 1);
        group_wait<1>();
        add_to(sum, even);
        kept.multiply(even, cross, right, 2);
        group_wait<1>();
        add_to(sum, odd);
        kept.multiply(odd, cross, right, 3);
        group_wait<1>();
        add_to(sum, even);
        group_wait<0>();
        ring.leave(stage);
        add_to(sum, odd);
        add_to(sum, cross);
        meet(group);
#pragma unroll
        for (int i = 0; i < 32; i += 2) {
            u32 y = own / 32 * 16 + own % 32 / 4 + i / 2 % 2 * 8, x = own % 4 * 2 + i / 4 * 8;
            *(Pack<f32, 2>*)(leaving + y * WIDE + x) = {sum[i], sum[i + 1]};
        }
        meet(group);
        leave(p, leaving, c, row, column, runs);
    }
}
