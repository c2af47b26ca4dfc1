// Random numbers: element number k is a function of the key and k alone. Declared before: R, the
// element; `draw`, which makes one of four words.

FN u64 bits(const u32 (&w)[4]) { return w[0] | (u64)w[1] << 32; }
// Multiples of 2^-BITS below 1.
template <int BITS> FN f32 uniform(const u32 (&w)[4]) { return (f32)(w[0] >> (32 - BITS)) * (1.0f / (1 << BITS)); }
FN f64 uniform_f64(const u32 (&w)[4]) { return (f64)(bits(w) >> 11) * (1.0 / 9007199254740992); }
FN f64 box_muller(f64 radius, f64 angle) { return sqrt(-2 * log(radius)) * cos(6.283185307179586477 * angle); }
FN f64 normal_f64(const u32 (&w)[4]) {
    const f64 scale = 1.0 / 9007199254740992;
    return box_muller(((f64)(bits(w) >> 11) + 1) * scale, (f64)((w[2] | (u64)w[3] << 32) >> 11) * scale);
}
FN f32 normal_f32(const u32 (&w)[4]) {
    const f64 scale = 1.0 / 4294967296;
    return (f32)box_muller(((f64)w[0] + 1) * scale, (f64)w[1] * scale);
}
// The span times a fraction of 128 bits.
FN i64 integer(const u32 (&w)[4], i64 low, u64 span) {
    u64 high = bits(w), more = w[2] | (u64)w[3] << 32;
    u64 below = high * span, sum = below + __umul64hi(more, span);
    u64 offset = span == 0 ? high : __umul64hi(high, span) + (sum < below);
    return (i64)((u64)low + offset);
}

// Ten rounds of Philox 4x32.
FN void philox(u32 (&w)[4], u32 key0, u32 key1) {
#pragma unroll
    for (int round = 0; round < 10; round++) {
        u64 a = (u64)0xD2511F53u * w[0], b = (u64)0xCD9E8D57u * w[2];
        u32 w1 = w[1], w3 = w[3];
        w[0] = (u32)(b >> 32) ^ w1 ^ key0;
        w[1] = (u32)b;
        w[2] = (u32)(a >> 32) ^ w3 ^ key1;
        w[3] = (u32)a;
        key0 += 0x9E3779B9u;
        key1 += 0xBB67AE85u;
    }
}
