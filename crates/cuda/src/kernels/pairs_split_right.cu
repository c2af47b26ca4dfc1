// Right-hand sides made ready for `pairs_wide_right.cu`, whose head tells what is declared before.

#define SIDE_BYTES (RIGHT * 256) // of 32 of j

// What of a number the tensor core reads, to the nearest.
FN f32 rounded_head(f32 x) { return __uint_as_float((__float_as_uint(x) + 0x1000) & 0xffffe000); }

// A warp has 32 of j, a layer of blocks a batch. Numbers whose heads and tails could leave the range of float32 are left to the
// direct form.
extern "C" __global__ void __launch_bounds__(128) split_right(
    const __grid_constant__ Nest<u64, OPERANDS> batches, const __grid_constant__ Inputs in,
    const __grid_constant__ Shape shape, const Wide of_all, const Choice choice, u32 tiles) {
    if (!is_chosen(choice)) return;
    u32 tile = blockIdx.x * 4 + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (tile >= tiles) return;
    const u32 batch = shape.first_batch + blockIdx.z;
    const Wide w = of_all.of(blockIdx.z, batch);
    u64 at[OPERANDS];
    locate(batches, batch, at);
    i64 j = (i64)tile * 32 + lane;
    bool inside = j < shape.n;
    if (DEPTHS == 0) {
        Once p;
        once(in, at, p);
        OfJ y = {};
        of_j(in, at, p, inside ? j : shape.n - 1, y);
        w.of_columns[j] = y;
    }
    right::Once p;
    right::once(in, at, p);
    // In shared memory: local memory would be set aside for all threads that a card could have.
    struct Held { right::OfJ of; u64 apart; }; // such that neighbours begin in other banks
    __shared__ Held held[128];
    right::OfJ& y = held[threadIdx.x].of;
    if (inside) right::of_j(in, at, p, j, y);
    auto side = [&](u32 k) { return right::side(in, at, p, j, y, k); };
    // A thread of the product has columns 2t and 2t + 1 of eight, where the tensor core reads t and t + 4.
    u32 place = lane / 8 * 8 + lane % 8 / 2 + lane % 2 * 4;
    u8* to = w.right + (i64)tile * SIDE_BYTES + place % 4 * 4;
    bool wild = false;
#pragma unroll 8
    for (u32 k = 0; k < RIGHT; k++) {
        f32 v = 0;
        const u32 of = k + w.first;
        if (!inside) v = 0;
        else if (k >= w.dim) v = DIFFERS && k == w.dim ? side(w.sides - 1) : 0;
        else if (!DIFFERS || of < w.from) v = side(of);
        else if (of >= w.from + w.alike) v = side(of - w.alike);
        else v = side(w.sides - 1) * Points::of(in, at, w, false).at(j, of - w.from);
        wild = wild || !is_tame(v);
        f32 head = rounded_head(v);
        u8* here = to + k * 128 + (place / 4 ^ k % 8) * 16;
        *(f32*)here = head;
        *(f32*)(here + SIDE_BYTES / 2) = rounded_head(v - head);
    }
    give_up(choice, wild);
}
