// float32 products of few tiles and long sums on Hopper's tensor cores: a block has 64 x 64 of the result
// and a piece of k, whose tiles go round its groups of four warps. A group splits what it reads into heads
// and tails itself: of the left operand in registers, of the right one into shared memory, as the tensor
// cores read it. Sums are those of
// `matmul_split.cu`. Where a block meets numbers for which the split is not exact, it begins anew with plain
// steps. Integers take two cycles of a scheduler where floating point takes one, and splitting is most of the
// work: hence the ways below to do with few of them. Declared before, with `matmul.cu`, `matmul_heads.cu`, `hopper.cu`, `matmul_tiles.cu`
// and `matmul_meeting.cu`: S, f32; GROUPS; STAGES; TOGETHER, whether all blocks run at once and add the pieces themselves.

#define PITCH 40        // of a row of the left operand's tile
#define RAW_LEFT (SIDE * PITCH)
#define RAW (RAW_LEFT + DEPTHS * SIDE)

FN u32 own_thread() { return threadIdx.x % 128; }
// Of a group, its threads meet; of all, each group waits for its turn, and passes it on to the next.
FN void meet(u32 group) { asm volatile("bar.sync %0, 128;" ::"r"(1 + group) : "memory"); }
FN void turn_wait(u32 group) { asm volatile("bar.sync %0, 256;" ::"r"(1 + GROUPS + group) : "memory"); }
FN void turn_pass(u32 group) { asm volatile("bar.arrive %0, 256;" ::"r"(1 + GROUPS + (group + 1) % GROUPS) : "memory"); }
FN void copy_four(u32 to, const f32* from) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
}
FN void copy_one(f32* to, const f32* from, bool there) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;"
        ::"r"(shared_address(to)), "l"(from), "r"(there ? 4 : 0) : "memory");
}
// What a head leaves of a number: 12 bits, of which the tensor core cuts the last, to which rounding would do no better.
FN u32 rest(f32 x, u32 head) { return __float_as_uint(x - __uint_as_float(head)); }
// Adds to `tiny`, which is zero as long as no number is near enough to zero for a product to lose bits, but zero
// itself. Infinities, NaN and overflow show in the sums: at least in those with tails.
FN void note(f32 x, f32& tiny) {
    f32 s;
    asm("mul.sat.f32 %0, %1, 0f58800000;" : "=f"(s) : "f"(abs(x))); // 2^50
    tiny += fma(-s, s, s);
}
// An operand's part: rows (columns) of the result, and steps along them and along k. LEFT tiles lie along k,
// right ones along the result.
template <bool LEFT> struct Operand {
    static const int APART = 128 * 4 / (LEFT ? DEPTHS : SIDE); // rows of a tile from a thread's run to its next
    const f32* from;
    i64 step, deep;
    u32 rows;
    bool runs;
    // Where runs are: of this thread's first one in a tile, from that to its next, and where it goes.
    const f32* run;
    i64 apart;
    u32 to;

    FN Operand make(const f32* first, i64 step, i64 deep, u32 rows) {
        i64 beside = LEFT ? deep : step, apart = LEFT ? step : deep;
        bool runs = beside == 1 && apart % 4 == 0 && (u64)first % 16 == 0 && rows >= SIDE;
        u32 number = own_thread() * 4, row = LEFT ? number / DEPTHS : number % SIDE, depth = LEFT ? number % DEPTHS : number / SIDE;
        const f32* run = first + row * step + depth * deep;
        u32 to = (LEFT ? row * PITCH + depth : number) * 4;
        // Kept, not found anew for every tile.
        asm("" : "+l"(run), "+r"(to));
        Operand o = {first, step, deep, rows, runs, run, APART * apart, to};
        return o;
    }
    FN f32* place(f32* tile, int row, int depth) { return LEFT ? tile + row * PITCH + depth : tile + depth * SIDE + row; }
    __device__ __forceinline__ void bring(f32* tile, u32 begin, u32 depths) const {
        if (runs && depths >= DEPTHS) {
            const f32* here = run + begin * (LEFT ? 1 : deep);
            u32 there = shared_address(tile) + to;
#pragma unroll
            for (int q = 0; q < SIDE * DEPTHS / 4 / 128; q++) copy_four(there + q * APART * (LEFT ? PITCH : SIDE) * 4, here + q * apart);
            return;
        }
        const f32* here = from + begin * deep;
        bool along = deep == 1;
#pragma unroll 1
        for (int q = 0; q < SIDE * DEPTHS / 128; q++) {
            int number = q * 128 + own_thread();
            int row = along ? number / DEPTHS : number % SIDE, depth = along ? number % DEPTHS : number / SIDE;
            bool there = row < rows && depth < depths;
            copy_one(place(tile, row, depth), there ? here + row * step + depth * deep : from, there);
        }
    }
};

// Tiles of k go round the groups. They take turns at the tensor cores, so that one multiplies while others
// split, and the first adds what all of them come to.
extern "C" __global__ void __launch_bounds__(128 * GROUPS, 1) thin(
    const __grid_constant__ Nest<u64, 3> batch, const Product p, const f32* a, const f32* b, f32* partial, f32* c, u32* counter) {
    extern __shared__ unsigned char memory[];
    u32 group = __shfl_sync(~0u, threadIdx.x / 128, 0), own = own_thread(), lane = threadIdx.x % 32, warp = own / 32, row, column;
    u32 base = (shared_address(memory) + 1023) & ~1023u;
    f32* first = (f32*)(memory + (base - shared_address(memory)));
    unsigned char* split = (unsigned char*)first + group * 2 * HEADS;
    f32* raw = first + GROUPS * 2 * HEADS / 4 + group * STAGES * RAW;
    base += group * 2 * HEADS;
    tile_of<8>(blockIdx.x, (p.m + SIDE - 1) / SIDE, (p.n + SIDE - 1) / SIDE, row, column);
    row *= SIDE;
    column *= SIDE;
    u64 at[3];
    locate(batch, (u64)(p.first + blockIdx.y), at);
    u32 begin = blockIdx.z * p.piece, depths = min(p.k - begin, p.piece);
    a += at[0] + row * p.a.row + begin * p.a.column;
    b += at[1] + column * p.b.column + begin * p.b.row;
    auto left = Operand<true>::make(a, p.a.row, p.a.column, p.m - row);
    auto right = Operand<false>::make(b, p.b.column, p.b.row, p.n - column);
    int all = (depths + DEPTHS - 1) / DEPTHS, steps = (all - (int)group + GROUPS - 1) / GROUPS;

    f32 some[32], cross[32], sum[32];
#pragma unroll
    for (int i = 0; i < 32; i++) some[i] = cross[i] = sum[i] = 0;
    f32 tiny = 0;
    u64 heads = describe(base, 1024, 16), tails = heads + (HEADS >> 4);
    auto fetch = [&](int step) {
        if (step < steps) {
            u32 from = (step * GROUPS + group) * DEPTHS;
            f32* tile = raw + step % STAGES * RAW;
            left.bring(tile, from, depths - from);
            right.bring(tile + RAW_LEFT, from, depths - from);
        }
        asm volatile("cp.async.commit_group;" ::: "memory");
    };
    // The first tiles are asked for one after the other: all at once, they would all arrive late.
    if (group > 0) asm volatile("bar.sync %0, 256;" ::"r"(2 * GROUPS + group) : "memory");
    fetch(0);
    if (group + 1 < GROUPS) asm volatile("bar.arrive %0, 256;" ::"r"(2 * GROUPS + group + 1) : "memory");
#pragma unroll
    for (int step = 1; step < STAGES - 1; step++) fetch(step);
    if (group == GROUPS - 1) turn_pass(group);
#pragma unroll 1
    for (int step = 0; step < steps; step++) {
        asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 2) : "memory");
        meet(group);
        const f32* tile = raw + step % STAGES * RAW;
        // The right operand: of each 8 of k the even ones and then the odd ones, 4 at a time.
#pragma unroll
        for (int q = 0; q < 4; q++) {
            u32 n = own % SIDE, chunk = own / SIDE + 2 * q;
            const f32* from = tile + RAW_LEFT + (chunk / 2 * 8 + chunk % 2) * SIDE + n;
            Pack<u32, 4> h, t;
#pragma unroll
            for (int e = 0; e < 4; e++) {
                f32 x = from[2 * e * SIDE];
                note(x, tiny);
                h.at[e] = head(x);
                t.at[e] = rest(x, h.at[e]);
            }
            u32 to = n * 128 + (chunk ^ n % 8) * 16;
            *(Pack<u32, 4>*)(split + to) = h;
            *(Pack<u32, 4>*)(split + HEADS + to) = t;
        }
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        // Behind the fence: before it, all took longer.
        fetch(step + STAGES - 1);
        u32 h[4][4], t[4][4];
#pragma unroll
        for (int q = 0; q < 8; q++) {
            int block = q / 2, half = q % 2;
            Pack<f32, 2> x = *(const Pack<f32, 2>*)(tile + (warp * 16 + lane / 4 + half * 8) * PITCH + block * 8 + lane % 4 * 2);
#pragma unroll
            for (int e = 0; e < 2; e++) {
                note(x.at[e], tiny);
                h[block][e * 2 + half] = head(x.at[e]);
                t[block][e * 2 + half] = rest(x.at[e], h[block][e * 2 + half]);
            }
        }
        meet(group);
        turn_wait(group);
#pragma unroll
        for (int half = 0; half < 2; half++) {
            if (half > 0) add_to(sum, some);
            group_begin();
#pragma unroll
            for (int k = 0; k < 2; k++) {
                const int block = half * 2 + k;
                multiply_kept(some, h[block], heads + 2 * block, k > 0);
                multiply_kept(cross, h[block], tails + 2 * block, true);
                multiply_kept(cross, t[block], heads + 2 * block, true);
            }
            group_end();
            group_wait<0>();
        }
        turn_pass(group);
        add_to(sum, some);
    }
    add_to(sum, cross);
    u32 y = warp * 16 + lane / 4, x = lane % 4 * 2;
#pragma unroll
    for (int i = 0; i < 32; i++) tiny = fma(sum[i], 0.0f, tiny);
    if (__syncthreads_or(tiny != 0)) {
#pragma unroll
        for (int i = 0; i < 32; i++) sum[i] = 0;
#pragma unroll 1
        for (u32 k = group * DEPTHS; k < depths; k += k % DEPTHS == DEPTHS - 1 ? (GROUPS - 1) * DEPTHS + 1 : 1) {
#pragma unroll
            for (int i = 0; i < 32; i++) {
                u32 r = y + i / 2 % 2 * 8, n = x + i / 4 * 8 + i % 2;
                if (row + r < p.m && column + n < p.n)
                    sum[i] = mac(a[r * p.a.row + k * p.a.column], b[n * p.b.column + k * p.b.row], sum[i]);
            }
        }
    }
    // All have done with their tiles. The groups' sums, in fours of a thread.
    Pack<f32, 4>* fours = (Pack<f32, 4>*)first;
#pragma unroll
    for (int i = 0; i < 32; i += 4) fours[(group * 8 + i / 4) * 128 + own] = {sum[i], sum[i + 1], sum[i + 2], sum[i + 3]};
    __syncthreads();
    Slots slots = {partial + (u64)(blockIdx.y * gridDim.x + blockIdx.x) * p.pieces * (SIDE * SIDE), p.pieces};
    partial += ((u64)blockIdx.y * p.pieces + blockIdx.z) * p.m * p.n;
#pragma unroll
    for (u32 k = 0; k < (FOURS + 128 * GROUPS - 1) / (128 * GROUPS); k++) {
        u32 four = k * 128 * GROUPS + threadIdx.x;
        if (four >= FOURS) continue;
        Pack<f32, 4> all = fours[four];
#pragma unroll
        for (int g = 1; g < GROUPS; g++)
#pragma unroll
            for (int e = 0; e < 4; e++) all.at[e] += fours[g * FOURS + four].at[e];
        if (TOGETHER) {
            slots.put(four, blockIdx.z, all);
            continue;
        }
#pragma unroll
        for (int half = 0; half < 2; half++) {
            u32 r, n;
            place_of(four, 2 * half, r, n);
            r += row, n += column;
            f32* to = partial + (u64)r * p.n + n;
            if (r >= p.m || n >= p.n) continue;
            if (p.n % 2 == 0) *(Pack<f32, 2>*)to = {all.at[2 * half], all.at[2 * half + 1]};
            else {
                to[0] = all.at[2 * half];
                if (n + 1 < p.n) to[1] = all.at[2 * half + 1];
            }
        }
    }
    if (!TOGETHER) return;
    arrive(counter);
    f32* sums = first + GROUPS * SIDE * SIDE;
    for (u32 run = blockIdx.z; run < RUNS; run += p.pieces) {
        f32 all = slots.sum(run, sums);
        if (threadIdx.x >= 32) continue;
        u32 r, n;
        place_of(run * 8 + lane / 4, lane % 4, r, n);
        r += row, n += column;
        if (r < p.m && n < p.n) c[at[2] + r * p.c.row + n * p.c.column] = all;
    }
}
