// float32 numbers as TF32 heads and tails, in bits.

FN u32 head(u32 x) { return (x + 0x1000) & 0xffffe000; }
FN u32 head(f32 x) { return head(__float_as_uint(x)); }
// What is left of a number; the tensor core does not look at the last bits.
FN u32 tail(f32 x, u32 head) { return __float_as_uint(x - __uint_as_float(head)) + 0x1000; }
// Splits are exact, and products neither overflow nor underflow, for other numbers, and for zero.
FN bool is_wild(u32 x) {
    const u32 least = (127 - 50) << 23, most = (127 + 50) << 23;
    u32 size = x & 0x7fffffff;
    return size - least > most - least && size != 0;
}
FN bool is_wild(f32 x) { return is_wild(__float_as_uint(x)); }
