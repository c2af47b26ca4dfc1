// Reductions over pairs of points on Hopper's tensor cores: what a formula does with
// c |x - y|^2 = c |x|^2 + c |y|^2 - 2c <x, y>, the inner products coming from products of tiles.
//
// The walk of a part of a call (a batch, or several that are small; a piece of the rows, a panel of the j): `centre`
// takes a mean of the j, and `measure_wide` the largest norms about it, once for whole batches; `split` writes
// points, centred and scaled by a power of two, as float16 heads and tails (23 bits; tails are scaled
// up by 2^11) in tiles of 64 x DEPTHS as the tensor cores read them, with what a formula needs of each
// j beside them; `wide` multiplies heads by heads, and crosswise heads by tails into a second sum, leaves
// the tensor core every LEAVE of D, since it rounds towards zero, and has the pairs taken; `merge` joins
// ranges, whose states go on from panel to panel. Where points are narrow (DEPTHS 0) there are no tiles
// of them, and threads compute squares as in `pairs.cu`. Nothing depends on the order of threads.
//
// What is done with the pairs of a tile is `Kept`, of which there are three: `pairs_wide_fold.cu` folds
// them, `pairs_wide_sift.cu` looks for the smallest squares, and `pairs_wide_right.cu` multiplies them,
// as weights, by right-hand sides. A thread has two rows and a quarter of a tile's columns.
//
// Declared before, with `hopper.cu`, `pairs_ends.cu` and `pairs_parts.cu`: GROUPS, groups
// of four warps that have 64 rows each; COLUMNS of a tile; STAGES; STAGE_BYTES of shared memory for each, and KEPT_BYTES
// behind them for `Kept`, as the launch asks for; RESIDENT, whether all tiles of a group's rows stay in shared memory; DEPTHS, 64, 32 or 0; LEAVE; SHALLOW (D <= DEPTHS); PARTS of LEAVE in a tile;
// GROUP, pairs that are folded together; OUTSIDE (the part of |x|^2 is applied after all pairs, or by the
// filter); RIGHT, the columns of right-hand sides; POINT_X and POINT_Y, the numbers of the points' inputs, and `Stored`, what
// these have in memory;
// the sections `Once`, `OfI`, `OfJ`, `once`, `of_i`, `of_j` as in `pairs.cu`, but that where DEPTHS > 0
// neither holds a point, and `norm` of the last two is filled here; PRODUCT, that c is -1/2 of what an inner product
// is multiplied by, and norms and the centre are 0; `scale(p)`, which is c; `fold<G>(p, x,
// y, square, s, j)`, which takes the squares of G pairs, or `weigh<G>(p, x, y, square, w)`; `complete`.

// GROUPS tiles of rows against a range of j; the last group brings the tiles.
extern "C" __global__ void __launch_bounds__(128 * (GROUPS + 1), 1) wide(
    const __grid_constant__ Nest<u64, OPERANDS> batches, const __grid_constant__ Inputs in,
    const __grid_constant__ Shape shape, const Output values, const Output indices,
    const Partial partial, const Choice choice, const __grid_constant__ Wide of_all) {
    // Some block may give up meanwhile: all threads of a block are told the same.
    if (!__syncthreads_and(is_chosen(choice))) return;
    extern __shared__ unsigned char memory[];
    __shared__ __align__(8) u64 barriers[2 * STAGES + 1];
    u32 resident = shared_address(barriers + 2 * STAGES);
    if (threadIdx.x == 0) barrier_init(resident, 1);
    Ring<STAGES> ring = Ring<STAGES>::make(barriers, 128 * GROUPS);
    const u32 deep = SHALLOW ? 1 : of_all.deep;
    u32 base = (shared_address(memory) + 1023) & ~1023u;
    u32 first_stage = base + (RESIDENT ? GROUPS * deep * TILE_BYTES : 0);
    u32 group = threadIdx.x / 128;
    const u32 batch = shape.first_batch + blockIdx.z;
    const Wide w = of_all.of(blockIdx.z, batch);
    Own own;
    own.range = blockIdx.y;
    own.begin = own.range * shape.range;
    i64 end = own.begin + shape.range;
    if (end > shape.n) end = shape.n;
    i32 count = end > own.begin ? (i32)(end - own.begin) : 0;
    u32 tiles = (u32)(count + COLUMNS - 1) / COLUMNS;
    if (group == GROUPS) {
        fewer_registers<GROUPS == 6 ? 24 : 40>();
        if (threadIdx.x % 128 != 0) return;
        const u8* rows = w.rows + (i64)blockIdx.x * GROUPS * deep * TILE_BYTES;
        const u8* columns = w.columns + own.begin / SIDE * deep * TILE_BYTES;
        const u8* right = w.right + own.begin * (RIGHT * 8);
        const OfJ* of_columns = w.of_columns + own.begin;
        if (RESIDENT && DEPTHS > 0) {
            barrier_expect(resident, GROUPS * deep * TILE_BYTES);
            bulk_copy(base, rows, GROUPS * deep * TILE_BYTES, resident);
        }
        u32 step = 0;
        for (u32 tile = 0; tile < tiles; tile++) {
#pragma unroll 1
            for (u32 k = 0; k < deep; k++, step++) {
                u32 to = first_stage + step % STAGES * STAGE;
                u32 more = k + 1 == deep ? RIGHT_BYTES + COLUMNS * sizeof(OfJ) : 0;
                u32 barrier = ring.fill(step, ROW_BYTES + COLUMN_BYTES + more, true);
                if (!RESIDENT) {
#pragma unroll
                    for (int g = 0; g < GROUPS; g++) {
                        bulk_copy(to, rows + ((i64)g * deep + k) * TILE_BYTES, TILE_BYTES, barrier);
                        to += TILE_BYTES;
                    }
                }
#pragma unroll
                for (int q = 0; DEPTHS > 0 && q < COLUMNS / SIDE; q++) {
                    const u8* from = columns + ((i64)(tile * (COLUMNS / SIDE) + q) * deep + k) * TILE_BYTES;
                    bulk_copy(to + q * HEADS, from, HEADS, barrier);
                    if (DEPTHS == 64) bulk_copy(to + COLUMN_BYTES / 2 + q * HEADS, from + HEADS, HEADS, barrier);
                }
                to += COLUMN_BYTES;
                if (more && RIGHT > 0) bulk_copy(to, right + (i64)tile * RIGHT_BYTES, RIGHT_BYTES, barrier);
                if (more) bulk_copy(to + RIGHT_BYTES, of_columns + tile * COLUMNS, COLUMNS * sizeof(OfJ), barrier);
            }
        }
        return;
    }
    static_assert(STAGE == STAGE_BYTES && (int)Kept::BYTES == KEPT_BYTES, "as the launch asks for");
    static_assert(GROUPS == 2 || GROUPS == 3 || GROUPS == 4 || GROUPS == 6, "whose registers are known");
    more_registers<GROUPS == 2 ? 232 : GROUPS == 3 ? 152 : GROUPS == 4 ? 104 : 80>();
    u64 at[OPERANDS];
    locate(batches, batch, at);
    Once p;
    once(in, at, p);
    own.first = ((i64)blockIdx.x * GROUPS + group) * SIDE + threadIdx.x / 32 % 4 * 16 + threadIdx.x % 32 / 4;
    EACH(r, 2) {
        own.row[r] = own.first + r * 8 < shape.m ? own.first + r * 8 : shape.m - 1;
        of_i(in, at, p, own.row[r], own.x[r]);
        if (DEPTHS > 0) own.x[r].norm = w.row_norms[own.row[r]];
    }
    Kept kept;
    kept.init(own, shape, partial, choice, w, memory + (first_stage + STAGES * STAGE - shared_address(memory)));
    Tile tile;
    tile.factor = 0;
    if (DEPTHS > 0) {
        int ranges = into_range(choice, 0, scale(p)) + into_range(choice, 1, scale(p));
        tile.factor = (f32)(-2 * scale(p) * power_of_two(-ranges));
    }
    if (RESIDENT && DEPTHS > 0) barrier_wait(resident, 0);
    u32 step = 0;
    for (u32 number = 0; number < tiles; number++) {
        // The first products overwrite what these hold: registers are free while a tile is folded.
        f32 heads[PLACES], cross[PLACES], sum[PLACES];
        EACH(i, PLACES) sum[i] = 0;
#pragma unroll 1
        for (u32 k = 0; k < deep; k++, step++) {
            u32 stage = first_stage + step % STAGES * STAGE;
            u32 left = RESIDENT ? base + (group * deep + k) * TILE_BYTES : stage + group * TILE_BYTES;
            u64 a = describe(left, 1024, 16), b = describe(stage + ROW_BYTES, 1024, 16);
            ring.take(step);
#pragma unroll
            for (int part = 0; part < PARTS; part++) {
                const int along = LEAVE * 2 >> 4;
                multiply_part(heads, cross, a + part * along, b + part * along, part == 0);
                group_wait<0>();
                // Cross products leave with the last heads of a tile; of one tile they are added where pairs are taken.
                const bool leaves = !SHALLOW && part == PARTS - 1;
                EACH(i, PLACES) sum[i] += leaves ? fma(cross[i], 1 / TAIL, heads[i]) : heads[i];
            }
            if (k + 1 < deep) leave_stage(ring, step);
        }
        tile.right = first_stage + (step - 1) % STAGES * STAGE + ROW_BYTES + COLUMN_BYTES;
        tile.y = (const OfJ*)(memory + (tile.right + RIGHT_BYTES - shared_address(memory)));
        tile.j = number * COLUMNS;
        tile.here = count - tile.j;
        kept.take(p, own, tile, sum, cross);
        leave_stage(ring, step - 1);
        kept.carry(number + 1);
    }
    // Anew, so that it needs no registers meanwhile.
    locate(batches, batch, at);
    kept.end(in, at, own, shape, values, indices, partial, choice, w);
}
