// The running reductions of `scan.cu` for many tiles that lie side by side, on Hopper: a block for each
// multiprocessor, whose tiles go round a ring in shared memory. The copy engine brings them, and one warp listens to
// what those before them come to; eight say what tiles come to that have arrived, and eight others finish those for
// which all is known. Tiles are taken by number, and a block waits only for lower numbers, which blocks have that run
// already. States are merged as in `scan.cu`, bit for bit.

#define STAGES 6
#define AHEAD 6     // groups that are asked for at once

// What tiles of a row come to, of one warp that is asked for one tile after the other. It hears tiles alone and puts
// groups and fields together itself: who says what a group comes to would first have to hear of others.
struct Past {
    I row;
    u32 group;                      // the next group that it hears of
    State groups, fields, before;   // each lane's group of the field; its field, of 32; and all its fields before those

    FN Past make(I row) {
        Past past = {row, 0, F::init(), F::init(), F::init()};
        return past;
    }
    __device__ __forceinline__ void count(u32 number, State total) {
        u32 lane = threadIdx.x % 32, field = number / 32;
        if (lane == number % 32) groups = total;
        if (number % 32 < 31) return;
        State all = F::merge(warp_total(lane < 31 ? groups : F::init()), total);
        if (lane == field % 32) fields = all;
        if (field % 32 == 31) before = field < 32 ? fields : F::merge(before, fields);
    }
    __device__ __forceinline__ State until(const Slots& slots, const Shape& shape, u32 tile) {
        u32 lane = threadIdx.x % 32, end = tile / 32;
        u64 tiles = (u64)row * shape.tiles + lane;
        auto of_near = slots.ask(tiles + end * 32, lane < tile % 32);
        while (group < end) {
            Slots::Asked asked[AHEAD];
            State totals[AHEAD];
#pragma unroll
            for (int q = 0; q < AHEAD; q++) asked[q] = slots.ask(tiles + (group + q) * 32, group + q < end);
#pragma unroll
            for (int q = 0; q < AHEAD; q++) {
                State s = slots.hear(asked[q]);
                totals[q] = F::merge(warp_total(lane < 31 ? s : F::init()), shuffled(s, 31));
            }
#pragma unroll
            for (int q = 0; q < AHEAD; q++) if (group + q < end) count(group + q, totals[q]);
            group = min(group + AHEAD, end);
        }
        u32 field = end / 32;
        State near = warp_total(slots.hear(of_near));
        State further = warp_total(lane < end % 32 ? groups : F::init());
        State far = lane < field % 32 ? fields : F::init();
        if (field >= 32) far = field % 32 > 0 ? F::merge(before, far) : before;
        return F::merge(F::merge(warp_total(far), further), near);
    }
};

// Which tile a number stands for, and where its row begins.
struct Item {
    I row, at[2];
    u32 tile;

    FN Item make(const Nest<I, 2>& rows, const Shape& shape, u32 number) {
        Item item;
        item.row = number / shape.tiles;
        item.tile = number % shape.tiles;
        locate(rows, item.row, item.at);
        return item;
    }
};

// Of a part that is whole, which most are, nothing has to be asked.
template <bool WHOLE> FN State total_of(Part part) {
    if (WHOLE) part.whole = true;
    return part.total();
}
template <bool WHOLE> FN void finish(Part part, R* row, i64 step, const State* states, u32 told, u32 phase) {
    if (WHOLE) part.whole = true;
    State left[ROUNDS], carry = F::init();
    // What is not whole has been brought by others, when it is known what it comes to.
    if (!WHOLE) barrier_wait(told, phase);
    part.add_up(left);
    if (WHOLE) barrier_wait(told, phase);
    for (u32 w = 0; w < threadIdx.x / 32 % WARPS; w++) carry = F::merge(carry, states[w]);
    part.write(row, step, left, F::merge(states[WARPS], carry));
}

extern "C" __global__ void __launch_bounds__(2 * THREADS + 64, 1) ring(
    const __grid_constant__ Nest<I, 2> rows, const Shape shape, const S* in, R* out, const Slots slots, u32* next) {
    extern __shared__ __align__(128) unsigned char memory[];
    typedef Part::Own Kept[THREADS * ROUNDS];
    Kept* kept = (Kept*)memory;
    // Of each stage: what the warps come to, and what comes before.
    __shared__ __align__(16) unsigned char spoken[STAGES][(WARPS + 1) * sizeof(State)];
    __shared__ u32 numbers[STAGES];
    // When a stage's bytes are there, when they are needed no more, and when it is known what it comes to and
    // what comes before.
    __shared__ __align__(8) u64 barriers[3 * STAGES];
    u32 full = shared_address(barriers), empty = full + 8 * STAGES, told = empty + 8 * STAGES;
    u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32, all = (u32)shape.rows * shape.tiles;
    if (threadIdx.x == 0) {
        for (int s = 0; s < STAGES; s++) {
            barrier_init(full + 8 * s, 1);
            barrier_init(empty + 8 * s, THREADS);
            barrier_init(told + 8 * s, 2);
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();

    // Numbers are exchanged by atomic steps: what orders them is a chain of barriers, which racecheck does not follow.
    auto number_of = [&](u32 s) { return __shfl_sync(~0u, lane == 0 ? atomicOr(&numbers[s], 0u) : 0, 0); };
    auto is_whole = [&](const Item& item) { return (I)(item.tile + 1) * TILE <= shape.count; };
    if (warp == 2 * WARPS) {
        if (lane > 0) return;
        u32 number = atomicAdd(next, 1);
        for (u32 k = 0;; k++) {
            u32 s = k % STAGES;
            if (k >= STAGES) barrier_wait(empty + 8 * s, (k / STAGES - 1) & 1);
            atomicExch(&numbers[s], number);
            Item item = Item::make(rows, shape, min(number, all - 1));
            if (number < all && is_whole(item)) {
                barrier_expect(full + 8 * s, sizeof(Kept));
                bulk_copy(shared_address(kept[s]), in + (i64)item.at[0] + (i64)item.tile * TILE, sizeof(Kept), full + 8 * s);
            } else {
                barrier_arrive(full + 8 * s);
            }
            if (number >= all) return;
            number = atomicAdd(next, 1);
        }
    }
    if (warp == 2 * WARPS + 1) {
        Past past = Past::make(0);
        for (u32 k = 0;; k++) {
            u32 s = k % STAGES;
            barrier_wait(full + 8 * s, k / STAGES & 1);
            u32 number = number_of(s);
            if (number >= all) return;
            I row = number / shape.tiles;
            if (row != past.row) past = Past::make(row);
            State far = past.until(slots, shape, number % shape.tiles);
            if (lane == 0) {
                ((State*)spoken[s])[WARPS] = far;
                barrier_arrive(told + 8 * s);
            }
        }
    }
    auto part_of = [&](const Item& item, u32 s) {
        Part part = {kept[s] + warp % WARPS * (ROUNDS * 32), (I)item.tile * TILE + warp % WARPS * (SPAN * ROUNDS), shape.count, is_whole(item)};
        return part;
    };
    for (u32 k = 0;; k++) {
        u32 s = k % STAGES, phase = k / STAGES & 1;
        State* states = (State*)spoken[s];
        barrier_wait(full + 8 * s, phase);
        u32 number = number_of(s);
        if (number >= all) return;
        Item item = Item::make(rows, shape, number);
        Part part = part_of(item, s);
        if (warp < WARPS) {
            if (!part.whole) part.fetch(in + (i64)item.at[0], 1);
            State sum = part.whole ? total_of<true>(part) : total_of<false>(part);
            if (lane == 0) states[warp] = sum;
            asm volatile("bar.sync 1, %0;" ::"n"(THREADS) : "memory");
            if (threadIdx.x == 0) {
                sum = F::init();
#pragma unroll
                for (int w = 0; w < WARPS; w++) sum = F::merge(sum, states[w]);
                slots.say(number, sum);
                barrier_arrive(told + 8 * s);
            }
        } else {
            R* row = out + (i64)item.at[1];
            if (part.whole) finish<true>(part, row, shape.to, states, told + 8 * s, phase);
            else finish<false>(part, row, shape.to, states, told + 8 * s, phase);
            // The copy engine writes there next.
            asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
            barrier_arrive(empty + 8 * s);
        }
    }
}
