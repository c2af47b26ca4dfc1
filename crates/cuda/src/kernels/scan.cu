// Running reductions along one axis, in one pass: a block has a tile of a row in its registers, says
// what it comes to, and learns from others what all tiles before it come to. 32 tiles make a group and
// 32 groups a field, and the last tile of each says what it comes to as well, so that nobody waits for
// a chain of others; how the states are merged depends on the sizes alone. A block waits only for
// blocks of lower numbers, which devices begin first. Declared before: S, R, F; EACH, neighbours that
// a lane has.

#define THREADS 256
#define WARPS (THREADS / 32)
#define ROUNDS 8                    // times that a lane has neighbours
#define SPAN (32 * EACH)            // of a warp in a round
#define TILE (THREADS * EACH * ROUNDS)

typedef F::State State;

struct Shape {
    I rows, count;      // rows, and elements of each
    u32 tiles;          // of a row
    i64 from, to;       // steps along the axis
};

// What tiles, groups and fields come to, each with a mark that it is there: a word with both where
// that is enough.
struct Slots {
    State* states;
    u32* marks;

    static const bool WORDS = sizeof(State) == 4;
    __device__ __forceinline__ u64* word(u64 slot) const { return (u64*)states + slot; }
    __device__ __forceinline__ void say(u64 slot, State s) const {
        if (WORDS) {
            u64 both = 1;
            memcpy((u32*)&both + 1, &s, sizeof(State));
            asm volatile("st.relaxed.gpu.u64 [%0], %1;" ::"l"(word(slot)), "l"(both) : "memory");
        } else {
            states[slot] = s;
            asm volatile("st.release.gpu.u32 [%0], 1;" ::"l"(marks + slot) : "memory");
        }
    }
    // Of a warp, each lane's slot if it wants one.
    __device__ __forceinline__ State hear(u64 slot, bool wanted) const {
        State s = F::init();
        u64 both = 0;
        u32 there = !wanted;
        while (!__all_sync(~0u, there)) {
            if (there) continue;
            if (WORDS) asm volatile("ld.relaxed.gpu.u64 %0, [%1];" : "=l"(both) : "l"(word(slot)) : "memory");
            else asm volatile("ld.acquire.gpu.u32 %0, [%1];" : "=r"(there) : "l"(marks + slot) : "memory");
            if (WORDS) there = (u32)both;
        }
        if (wanted && WORDS) memcpy(&s, (u32*)&both + 1, sizeof(State));
        if (wanted && !WORDS) s = states[slot];
        return s;
    }
};

FN State shuffled(State s, u32 lane) {
    u32 words[(sizeof(State) + 3) / 4];
    memcpy(words, &s, sizeof(State));
#pragma unroll
    for (int k = 0; k < (int)((sizeof(State) + 3) / 4); k++) words[k] = __shfl_sync(~0u, words[k], lane);
    memcpy(&s, words, sizeof(State));
    return s;
}
// The state of a warp's lanes, in every lane.
FN State warp_total(State s) {
    u32 lane = threadIdx.x % 32;
#pragma unroll
    for (int d = 16; d > 0; d /= 2) s = F::merge(s, shuffled(s, lane + d));
    return shuffled(s, 0);
}
// The state of the lanes before each one; `total` is that of all.
FN State before(State s, State& total) {
    u32 lane = threadIdx.x % 32;
#pragma unroll
    for (int d = 1; d < 32; d *= 2) {
        State left = shuffled(s, lane - d);
        if (lane >= d) s = F::merge(left, s);
    }
    total = shuffled(s, 31);
    State left = shuffled(s, lane - 1);
    return lane > 0 ? left : F::init();
}

// What all tiles of the row before this one come to; by one warp. `own` is what this one comes to.
FN State look_back(const Slots& slots, const Shape& shape, I row, u32 tile, State own) {
    u32 lane = threadIdx.x % 32, groups = (shape.tiles + 31) / 32, fields = (groups + 31) / 32;
    u32 group = tile / 32, field = group / 32;
    u64 tiles = (u64)row * shape.tiles, in_groups = (u64)shape.rows * shape.tiles + (u64)row * groups;
    u64 in_fields = (u64)shape.rows * (shape.tiles + groups) + (u64)row * fields;
    if (lane == 0) slots.say(tiles + tile, own);
    State near = warp_total(slots.hear(tiles + group * 32 + lane, lane < tile % 32));
    own = F::merge(near, own);
    if (lane == 0 && tile % 32 == 31) slots.say(in_groups + group, own);
    State further = warp_total(slots.hear(in_groups + field * 32 + lane, lane < group % 32));
    if (lane == 0 && tile % 1024 == 1023) slots.say(in_fields + field, F::merge(further, own));
    State far = F::init();
    for (u32 first = 0; first < field; first += 32) {
        far = F::merge(far, slots.hear(in_fields + first + lane, first + lane < field));
    }
    return F::merge(F::merge(warp_total(far), further), near);
}

extern "C" __global__ void __launch_bounds__(THREADS, sizeof(V) > 4 ? 1 : 3) scan(
    const __grid_constant__ Nest<I, 2> rows, const Shape shape, const S* in, R* out, const Slots slots) {
    __shared__ __align__(16) unsigned char memory[(WARPS + 1) * sizeof(State)];
    State* states = (State*)memory;
    u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32, tile = blockIdx.x % shape.tiles;
    I at[2], row = blockIdx.x / shape.tiles;
    locate(rows, row, at);
    I begin = (I)tile * TILE + warp * (SPAN * ROUNDS) + lane * EACH;
    const S* from = in + (i64)at[0] + (i64)begin * shape.from;
    R* to = out + (i64)at[1] + (i64)begin * shape.to;
    bool whole = (I)(tile + 1) * TILE <= shape.count;
    auto has = [&](int r, int e) { return whole || begin + r * SPAN + e < shape.count; };

    Pack<S, EACH> own[ROUNDS];
    if (whole && shape.from == 1 && (u64)from % alignof(Pack<S, EACH>) == 0) {
#pragma unroll
        for (int r = 0; r < ROUNDS; r++) own[r] = *(const Pack<S, EACH>*)(from + r * SPAN);
    } else {
#pragma unroll
        for (int q = 0; q < ROUNDS * EACH; q++) {
            int r = q / EACH, e = q % EACH;
            if (has(r, e)) own[r].at[e] = from[(i64)(r * SPAN + e) * shape.from];
        }
    }
    // What comes before each round of a lane, in its warp.
    V x[ROUNDS][EACH];
    State left[ROUNDS], sum = F::init();
#pragma unroll
    for (int r = 0; r < ROUNDS; r++) {
        State s = F::init(), total;
#pragma unroll
        for (int e = 0; e < EACH; e++) {
            if (!has(r, e)) continue;
            x[r][e] = enter(own[r].at[e]);
            s = F::step(s, x[r][e], (i64)(begin + r * SPAN + e));
        }
        left[r] = F::merge(sum, before(s, total));
        sum = F::merge(sum, total);
    }
    if (lane == 0) states[warp] = sum;
    __syncthreads();
    State carry = F::init();
    sum = F::init();
#pragma unroll
    for (int w = 0; w < WARPS; w++) {
        if (w == warp) carry = sum;
        sum = F::merge(sum, states[w]);
    }
    if (shape.tiles > 1) {
        if (warp == 0) {
            State far = look_back(slots, shape, row, tile, sum);
            if (lane == 0) states[WARPS] = far;
        }
        __syncthreads();
        carry = F::merge(states[WARPS], carry);
    }
#pragma unroll
    for (int r = 0; r < ROUNDS; r++) {
        State s = F::merge(carry, left[r]);
        Pack<R, EACH> y;
#pragma unroll
        for (int e = 0; e < EACH; e++) {
            if (!has(r, e)) continue;
            I place = begin + r * SPAN + e;
            s = F::step(s, x[r][e], (i64)place);
            y.at[e] = leave(F::finish(s, (f64)(place + 1), 0));
        }
        R* first = to + (i64)(r * SPAN) * shape.to;
        if (whole && shape.to == 1 && (u64)first % alignof(Pack<R, EACH>) == 0) {
            *(Pack<R, EACH>*)first = y;
        } else {
#pragma unroll
            for (int e = 0; e < EACH; e++) if (has(r, e)) first[e * shape.to] = y.at[e];
        }
    }
}
