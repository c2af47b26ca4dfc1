// What all ways to take pairs share on Hopper's tensor cores: the products of tiles, and a thread's places in
// them. The head of `pairs_wide.cu` tells the walk and what is declared before.

#define PLACES (COLUMNS / 2)
#define OWN (COLUMNS / 4)   // columns of a thread
#define COLUMN_BYTES (COLUMNS * DEPTHS * 4)
#define ROW_BYTES (RESIDENT ? 0 : GROUPS * TILE_BYTES)
#define RIGHT_BYTES (COLUMNS * RIGHT * 8)
#define STAGE ((ROW_BYTES + COLUMN_BYTES + RIGHT_BYTES + COLUMNS * (int)sizeof(OfJ) + 1023) / 1024 * 1024)
#define PLACES_64 PLACES_32 "," \
    PLACES_8(32, 33, 34, 35, 36, 37, 38, 39) "," PLACES_8(40, 41, 42, 43, 44, 45, 46, 47) "," \
    PLACES_8(48, 49, 50, 51, 52, 53, 54, 55) "," PLACES_8(56, 57, 58, 59, 60, 61, 62, 63)
// d + a b, or a b, of 64 x 16 by 16 x 64 or 16 x 128.
FN void multiply_tiles(f32 (&d)[32], u64 a, u64 b, bool add) {
    asm volatile("{ .reg .pred add; setp.ne.b32 add, %34, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {" PLACES_32 "}, %32, %33, add, 1, 1, 0, 0; }"
        : KEPT_32(d, 0) : "l"(a), "l"(b), "r"((int)add));
}
FN void multiply_tiles(f32 (&d)[64], u64 a, u64 b, bool add) {
    asm volatile("{ .reg .pred add; setp.ne.b32 add, %66, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {" PLACES_64 "}, %64, %65, add, 1, 1, 0, 0; }"
        : KEPT_32(d, 0), KEPT_32(d, 32) : "l"(a), "l"(b), "r"((int)add));
}

// The products of LEAVE of D: heads anew, cross products added unless they are the first.
FN void multiply_part(f32 (&heads)[PLACES], f32 (&cross)[PLACES], u64 a, u64 b, bool first) {
    const u64 tails_a = (DEPTHS == 64 ? HEADS : 64) >> 4, tails_b = (DEPTHS == 64 ? COLUMN_BYTES / 2 : 64) >> 4;
    group_begin();
#pragma unroll
    for (int q = 0; q < LEAVE / 16; q++) {
        multiply_tiles(heads, a + 2 * q, b + 2 * q, q > 0);
        multiply_tiles(cross, a + 2 * q, b + tails_b + 2 * q, q > 0 || !first);
        multiply_tiles(cross, a + tails_a + 2 * q, b + 2 * q, true);
    }
    group_end();
}

// Every thread says for itself that it is done with a stage, since it has read it by itself, too. One lane could for its
// warp, and would save gradients of ten components a tenth of their time, and all else nothing; but tools that look for
// races do not see that the others have read it before.
FN void leave_stage(const Ring<STAGES>& ring, u32 k) { barrier_arrive(ring.empty + 8 * (k % STAGES)); }

// What a thread has: two rows of i, of which the second is 8 further, and a range of j.
struct Own {
    i64 first, row[2]; // `row` stays inside of the piece
    i64 begin;
    u32 range;
    OfI x[2];
};

// What a thread reads of a tile: what belongs to its j, the first of which is number j of the range;
// how many are there; and where right-hand sides lie.
struct Tile {
    const OfJ* y;
    i32 j, here;
    u32 right;
    f32 factor; // from products of tiles to -2c <x, y>
};

// The column of a tile in a thread's place number c.
FN int column_of(int c) { return c / 2 * 8 + threadIdx.x % 4 * 2 + c % 2; }
// c |y|^2 - 2c <x, y> of a thread's row r and column c, and c |x|^2 if it belongs there; of inner products no norm.
FN T square_from(f32 sum, f32 cross, f32 factor, T x, T y) {
    return fma(SHALLOW ? fma(cross, 1 / TAIL, sum) : sum, factor, PRODUCT ? (T)0 : OUTSIDE ? y : x + y);
}
FN T square_of(const f32 (&sum)[PLACES], const f32 (&cross)[PLACES], int r, int c, f32 factor, T x, T y) {
    int place = c / 2 * 4 + r * 2 + c % 2;
    return square_from(sum[place], cross[place], factor, x, y);
}
