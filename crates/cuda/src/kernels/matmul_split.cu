// float32 products on Hopper's tensor cores. Each operand is split beforehand into TF32 heads and
// tails, in tiles as the tensor cores read them, so that one thread brings a tile by a single copy.
// Heads times heads are summed over 16 of k and then in float32, since the tensor core rounds
// towards zero; that sum is added to a second one every 512. The cross products, which are small,
// have a sum of their own. Declared before, with `matmul.cu`, `matmul_heads.cu`, `hopper.cu` and `matmul_tiles.cu`: S, f32; GROUPS, groups
// of four warps in a block, each with 64 x 64 of the result; STAGES; SPLITS for the kernel that splits,
// which is compiled beside the other one.

#define STAGE ((GROUPS + 1) * 2 * HEADS)

#ifdef SPLITS
// One tile of one operand for each block: along k, over the tiles, over the batches. Says which hold
// wild numbers.
extern "C" __global__ void __launch_bounds__(256) split(
    const __grid_constant__ Nest<u64, 3> batch, const Product p, const Split s, const S* a, const S* b,
    f32* out, u8* marks) {
    __shared__ f32 own[SIDE][DEPTHS + 1];
    u32 tile = blockIdx.y, k = blockIdx.x * DEPTHS;
    bool left = tile < s.rows;
    u64 at[3];
    locate(batch, (u64)(p.first + blockIdx.z), at);
    u32 row = (left ? tile : tile - s.rows) * SIDE, rows = left ? p.m : p.n;
    i64 step = left ? p.a.row : p.b.column, deep = left ? p.a.column : p.b.row;
    const S* from = (left ? a + at[0] : b + at[1]) + row * step + k * deep;
    bool wild = false;
#pragma unroll
    for (int q = 0; q < SIDE * DEPTHS / 256; q++) {
        u32 number = q * 256 + threadIdx.x;
        u32 r = deep == 1 ? number / DEPTHS : number % SIDE, d = deep == 1 ? number % DEPTHS : number / SIDE;
        f32 x = row + r < rows && k + d < p.k ? from[r * step + d * deep] : 0;
        wild |= is_wild(x);
        own[r][d] = x;
    }
    wild = __syncthreads_or(wild);
    u64 number = ((u64)blockIdx.z * s.tiles + tile) * s.deep + blockIdx.x;
    if (threadIdx.x == 0) marks[number] = wild;
    f32* to = out + number * (2 * SIDE * DEPTHS);
#pragma unroll
    for (int q = 0; q < SIDE * DEPTHS / 4 / 256; q++) {
        u32 chunk = q * 256 + threadIdx.x, r = chunk / 8, d = (chunk % 8 ^ r % 8) * 4;
        Pack<f32, 4> heads, tails;
#pragma unroll
        for (int e = 0; e < 4; e++) {
            f32 x = own[r][d + e];
            heads.at[e] = __uint_as_float(head(x));
            tails.at[e] = __uint_as_float(head(x - heads.at[e]));
        }
        ((Pack<f32, 4>*)to)[chunk] = heads;
        ((Pack<f32, 4>*)to)[SIDE * DEPTHS / 4 + chunk] = tails;
    }
}
#else
// d + a b, or a b, of 64 x 8 by 8 x 64.
FN void multiply_tiles(f32 (&d)[32], u64 a, u64 b, bool add) {
    asm volatile("{ .reg .pred add; setp.ne.b32 add, %34, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n64k8.f32.tf32.tf32 {" PLACES_32 "}, %32, %33, add, 1, 1; }"
        : KEPT_32(d, 0) : "l"(a), "l"(b), "r"((int)add));
}
// The products of half a tile's depth: heads anew, cross products added.
FN void multiply_half(f32 (&sum)[32], f32 (&cross)[32], u32 left, u32 right, int half) {
    u64 a = describe(left, 1024, 16) + half * 4, b = describe(right, 1024, 16) + half * 4;
    const u64 tails = HEADS >> 4;
    group_begin();
#pragma unroll
    for (int k = 0; k < 2; k++) {
        multiply_tiles(sum, a + 2 * k, b + 2 * k, k > 0);
        multiply_tiles(cross, a + 2 * k, b + tails + 2 * k, true);
        multiply_tiles(cross, a + tails + 2 * k, b + 2 * k, true);
    }
    group_end();
}
// Of two groups, waits for the turn that the other one passes on; the barrier of the block is another.
FN void turn_wait(u32 group) { asm volatile("bar.sync %0, 256;" ::"r"(1 + group) : "memory"); }
FN void turn_pass(u32 group) { asm volatile("bar.arrive %0, 256;" ::"r"(2 - group) : "memory"); }

// GROUPS tiles of rows by one of columns, and then each so many-th of them. The last group brings the
// tiles, and runs ahead to those of the next result. Where sums are short, the others take turns: while
// one multiplies, the other writes.
extern "C" __global__ void __launch_bounds__(128 * (GROUPS + 1), 1) product(
    const __grid_constant__ Nest<u64, 3> batch, const Product p, const Split s, const f32* tiles, S* c) {
    extern __shared__ unsigned char memory[];
    __shared__ __align__(8) u64 barriers[2 * STAGES];
    Ring<STAGES> ring = Ring<STAGES>::make(barriers, GROUPS);
    u32 base = (shared_address(memory) + 1023) & ~1023u;
    u32 rows = s.rows / GROUPS, columns = s.tiles - s.rows, stage = 0, group = threadIdx.x / 128;
    if (group == GROUPS) {
        fewer_registers();
        // A lane for each tile of a stage: those of the rows, and that of the columns.
        u32 lane = threadIdx.x % 128;
        for (u32 number = blockIdx.x; lane <= GROUPS && number < rows * columns; number += gridDim.x) {
            u32 down, column;
            tile_of<8>(number, rows, columns, down, column);
            u64 tile = (u64)blockIdx.y * s.tiles + (lane < GROUPS ? down * GROUPS + lane : s.rows + column);
            const char* from = (const char*)tiles + tile * s.deep * (2 * HEADS);
            for (u32 k = 0; k < s.deep; k++, stage++) {
                u32 barrier = ring.fill(stage, STAGE, lane == 0);
                bulk_copy(base + stage % STAGES * STAGE + lane * 2 * HEADS, from + k * 2 * HEADS, 2 * HEADS, barrier);
            }
        }
        return;
    }
    more_registers<GROUPS == 2 ? 232 : 152>();
    u64 at[3];
    locate(batch, (u64)(p.first + blockIdx.y), at);
    bool pairs = p.c.column == 1 && p.c.row % 2 == 0 && (u64)(c + at[2]) % 8 == 0;
    bool turns = GROUPS == 2 && 2 * s.deep <= STAGES;
    for (u32 number = blockIdx.x; number < rows * columns; number += gridDim.x) {
        u32 down, column;
        tile_of<8>(number, rows, columns, down, column);
        if (turns && (group == 1 || number != blockIdx.x)) turn_wait(group);
        f32 even[32], odd[32], cross[32], sum[32], total[32];
#pragma unroll
        for (int i = 0; i < 32; i++) even[i] = odd[i] = cross[i] = sum[i] = total[i] = 0;
        // Two tiles at a time, in halves: while one half is multiplied, the sum of the half before is
        // added.
        for (u32 k = 0; k < s.deep; k += 2, stage += 2) {
            u32 left = base + group * 2 * HEADS, right = base + GROUPS * 2 * HEADS;
            u32 first = stage % STAGES * STAGE, second = (stage + 1) % STAGES * STAGE;
            ring.take(stage);
            multiply_half(even, cross, left + first, right + first, 0);
            multiply_half(odd, cross, left + first, right + first, 1);
            group_wait<1>();
            add_to(sum, even);
            ring.take(stage + 1);
            multiply_half(even, cross, left + second, right + second, 0);
            group_wait<1>();
            ring.leave(stage);
            add_to(sum, odd);
            multiply_half(odd, cross, left + second, right + second, 1);
            group_wait<1>();
            add_to(sum, even);
            group_wait<0>();
            ring.leave(stage + 1);
            add_to(sum, odd);
            if (k % 16 == 14) {
                add_to(total, sum);
#pragma unroll
                for (int i = 0; i < 32; i++) sum[i] = 0;
            }
        }
        if (turns) turn_pass(group);
        add_to(total, sum);
        add_to(total, cross);

        u32 row = (down * GROUPS + group) * SIDE + threadIdx.x / 32 % 4 * 16 + threadIdx.x % 32 / 4;
        column = column * SIDE + threadIdx.x % 4 * 2;
        S* first = c + at[2] + row * p.c.row + column * p.c.column;
        if (pairs && row + 8 < p.m && column + 57 < p.n) {
            i64 down = 8 * p.c.row;
            // Large results are not read again soon, so they are the first to leave the cache.
#pragma unroll
            for (int i = 0; i < 32; i += 2)
                asm volatile("st.global.cs.v2.f32 [%0], {%1, %2};"
                    ::"l"(first + (i / 2 % 2 ? down : 0) + i / 4 * 8), "f"(total[i]), "f"(total[i + 1]) : "memory");
            continue;
        }
#pragma unroll
        for (int i = 0; i < 32; i += 2) {
            u32 y = i / 2 % 2 * 8, x = i / 4 * 8;
            S* to = first + y * p.c.row + x * p.c.column;
            if (row + y >= p.m || column + x >= p.n) continue;
            to[0] = total[i];
            if (column + x + 1 < p.n) to[p.c.column] = total[i + 1];
        }
    }
}
#endif
