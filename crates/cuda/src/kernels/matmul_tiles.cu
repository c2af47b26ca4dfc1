// Tiles of operands that are split into TF32 heads and tails, as Hopper's tensor cores read them. Declared
// before: `hopper.cu`.

#define SIDE 64         // rows of a tile
#define DEPTHS 32       // of k in a tile: 128 bytes
#define HEADS 8192      // bytes of a tile's heads; tails follow

struct Split {
    u32 rows, tiles;    // tiles of the left operand's rows, and with the right one's columns
    u32 deep;           // tiles along k, an even number
};

FN void add_to(f32 (&sum)[32], const f32 (&x)[32]) {
#pragma unroll
    for (int i = 0; i < 32; i++) sum[i] += x[i];
}
// d + a b, or a b, of 64 x 8 by 8 x 64; a from registers.
FN void multiply_kept(f32 (&d)[32], const u32 (&a)[4], u64 b, bool add) {
    asm volatile("{ .reg .pred add; setp.ne.b32 add, %37, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n64k8.f32.tf32.tf32 {" PLACES_32 "}, {%32,%33,%34,%35}, %36, add, 1, 1; }"
        : KEPT_32(d, 0) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"((int)add));
}
