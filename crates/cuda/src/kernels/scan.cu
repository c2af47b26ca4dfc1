// Running reductions along one axis, in one pass: a block has a tile of a row, says what it comes to,
// and learns from others what all tiles before it come to. 32 tiles make a group and 32 groups a field,
// and the last tile of each says what it comes to as well, so that nobody waits for a chain of others;
// how the states are merged depends on the sizes alone. A block waits only for blocks of lower numbers,
// which devices begin first. Tiles lie in shared memory while they wait, so that a multiprocessor has
// many of them: what is on its way is what the speed depends on. Rows that a warp can hold have one
// each. Declared before: S, R, F; EACH, neighbours that a lane has; KIND, which kernel this is for: TILES, a tile
// for each block; SHORT, rows of a warp; RING, that of `scan_ring.cu`.

#define THREADS 256
#define WARPS (THREADS / 32)
#define ROUNDS 8                    // times that a lane has neighbours
#define SPAN (32 * EACH)            // of a warp in a round
#define TILE (THREADS * EACH * ROUNDS)
#define BLOCKS 6                    // on a multiprocessor
#define TILES 0
#define SHORT 1
#define RING 2
// From one round of a warp to the next where tiles are kept: beside those of other warps, or as they lie in memory.
#define APART (KIND == RING ? 32 : THREADS)

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
    // Of a warp, each lane's slot if it wants one: asks, and later waits for the answer, so that several
    // questions are on their way at once.
    struct Asked {
        u64 slot, answer;
        bool wanted;
    };
    __device__ __forceinline__ u64 look(u64 slot) const {
        u64 both;
        u32 there;
        if (WORDS) {
            asm volatile("ld.relaxed.gpu.u64 %0, [%1];" : "=l"(both) : "l"(word(slot)) : "memory");
            return both;
        }
        asm volatile("ld.acquire.gpu.u32 %0, [%1];" : "=r"(there) : "l"(marks + slot) : "memory");
        return there;
    }
    __device__ __forceinline__ Asked ask(u64 slot, bool wanted) const {
        Asked asked = {slot, 0, wanted};
        if (wanted) asked.answer = look(slot);
        return asked;
    }
    __device__ __forceinline__ State hear(Asked asked) const {
        State s = F::init();
        while (!__all_sync(~0u, !asked.wanted | (u32)asked.answer != 0)) {
            if (asked.wanted && (u32)asked.answer == 0) asked.answer = look(asked.slot);
        }
        if (asked.wanted && WORDS) memcpy(&s, (u32*)&asked.answer + 1, sizeof(State));
        if (asked.wanted && !WORDS) s = states[asked.slot];
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

// What all tiles of the row before this one come to; by one warp. `own` is what this one comes to, which
// has been said.
FN State look_back(const Slots& slots, const Shape& shape, I row, u32 tile, State own) {
    u32 lane = threadIdx.x % 32, groups = (shape.tiles + 31) / 32, fields = (groups + 31) / 32;
    u32 group = tile / 32, field = group / 32;
    u64 tiles = (u64)row * shape.tiles, in_groups = (u64)shape.rows * shape.tiles + (u64)row * groups;
    u64 in_fields = (u64)shape.rows * (shape.tiles + groups) + (u64)row * fields;
    auto of_tiles = slots.ask(tiles + group * 32 + lane, lane < tile % 32);
    auto of_groups = slots.ask(in_groups + field * 32 + lane, lane < group % 32);
    auto of_fields = slots.ask(in_fields + lane, lane < field);
    State near = warp_total(slots.hear(of_tiles));
    own = F::merge(near, own);
    if (lane == 0 && tile % 32 == 31) slots.say(in_groups + group, own);
    State further = warp_total(slots.hear(of_groups));
    if (lane == 0 && tile % 1024 == 1023) slots.say(in_fields + field, F::merge(further, own));
    State far = slots.hear(of_fields);
    for (u32 first = 32; first < field; first += 32) {
        far = F::merge(far, slots.hear(slots.ask(in_fields + first + lane, first + lane < field)));
    }
    return F::merge(F::merge(warp_total(far), further), near);
}

// A warp's part of a row: in each round EACH neighbours of each lane.
struct Part {
    typedef Pack<S, EACH> Own;
    Own* kept;          // the warp's first round; the next one's is APART further
    I begin, count;     // its first element, and where the row ends
    bool whole;         // all of them are there

    FN u32 lane() { return threadIdx.x % 32; }
    __device__ __forceinline__ Own& own(int r) const { return kept[r * APART + lane()]; }
    __device__ __forceinline__ I place(int r, int e) const { return begin + r * SPAN + lane() * EACH + e; }
    __device__ __forceinline__ bool has(int r, int e) const { return whole || place(r, e) < count; }
    // Whether nothing is left for a round.
    __device__ __forceinline__ bool over(int r) const { return !whole && begin + r * SPAN >= count; }

    // Lanes bring what they have; where that cannot be brought at once, neighbours bring neighbours.
    __device__ __forceinline__ void fetch(const S* row, i64 step) const {
        const S* from = row + (i64)begin * step;
        if (whole && step == 1 && (u64)from % alignof(Own) == 0) {
#pragma unroll
            for (int r = 0; r < ROUNDS; r++) copy(own(r), *(const Own*)(from + r * SPAN + lane() * EACH));
        } else {
#pragma unroll
            for (int r = 0; r < ROUNDS; r++) {
                if (over(r)) break;
#pragma unroll
                for (int e = 0; e < EACH; e++) {
                    u32 k = e * 32 + lane();
                    if (whole || begin + r * SPAN + k < count)
                        copy(((S*)(kept + r * APART))[k], from[(i64)(r * SPAN + k) * step]);
                }
            }
        }
        asm volatile("cp.async.wait_all;" ::: "memory");
        __syncwarp();
    }
    template <class T> FN void copy(T& to, const T& from) {
        const int BYTES = sizeof(T) % 4 == 0 ? sizeof(T) : 4;
        u32 address = (u32)__cvta_generic_to_shared(&to);
        if (sizeof(T) % 4 != 0) to = from;
        else if (BYTES == 16) asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(address), "l"(&from) : "memory");
        else asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(address), "l"(&from), "n"(BYTES) : "memory");
    }
    // What the warp comes to.
    __device__ __forceinline__ State total() const {
        State sum = F::init();
#pragma unroll
        for (int r = 0; r < ROUNDS; r++) {
            if (over(r)) break;
            State s = F::init();
            Own x = own(r);
#pragma unroll
            for (int e = 0; e < EACH; e++) if (has(r, e)) s = F::step(s, enter(x.at[e]), (i64)place(r, e));
            sum = F::merge(sum, s);
        }
        return warp_total(sum);
    }
    // What comes before each round of a lane, in its warp.
    __device__ __forceinline__ void add_up(State (&left)[ROUNDS]) const {
        State sum = F::init();
#pragma unroll
        for (int r = 0; r < ROUNDS; r++) {
            if (over(r)) break;
            State s = F::init(), total;
            Own x = own(r);
#pragma unroll
            for (int e = 0; e < EACH; e++) if (has(r, e)) s = F::step(s, enter(x.at[e]), (i64)place(r, e));
            left[r] = F::merge(sum, before(s, total));
            sum = F::merge(sum, total);
        }
    }
    // Results are not read again soon, so they are the first to leave the cache.
    FN void put(R* to, const Pack<R, EACH>& y) {
        if (sizeof(y) != 16) {
            *(Pack<R, EACH>*)to = y;
            return;
        }
        u32 words[4];
        memcpy(words, &y, min(sizeof(y), sizeof(words)));
        asm volatile("st.global.cs.v4.u32 [%0], {%1, %2, %3, %4};"
            ::"l"(to), "r"(words[0]), "r"(words[1]), "r"(words[2]), "r"(words[3]) : "memory");
    }
    // Lanes write what they have, or put it where neighbours find it that write neighbours.
    __device__ __forceinline__ void write(R* row, i64 step, const State (&left)[ROUNDS], State carry) const {
        const bool ALIKE = sizeof(R) == sizeof(S);
        R* to = row + (i64)begin * step;
        bool runs = whole && step == 1 && (u64)to % alignof(Pack<R, EACH>) == 0;
#pragma unroll
        for (int r = 0; r < ROUNDS; r++) {
            if (over(r)) break;
            State s = F::merge(carry, left[r]);
            Own x = own(r);
            Pack<R, EACH> y;
#pragma unroll
            for (int e = 0; e < EACH; e++) {
                if (!has(r, e)) continue;
                s = F::step(s, enter(x.at[e]), (i64)place(r, e));
                y.at[e] = leave(F::finish(s, (f64)(place(r, e) + 1), 0));
            }
            if (runs) {
                put(to + r * SPAN + lane() * EACH, y);
            } else if (ALIKE) {
                memcpy(&own(r), &y, sizeof(Own));
            } else {
#pragma unroll
                for (int e = 0; e < EACH; e++)
                    if (has(r, e)) to[(i64)(r * SPAN + lane() * EACH + e) * step] = y.at[e];
            }
        }
        if (runs || !ALIKE) return;
        __syncwarp();
#pragma unroll
        for (int r = 0; r < ROUNDS; r++) {
            if (over(r)) break;
#pragma unroll
            for (int e = 0; e < EACH; e++) {
                u32 k = e * 32 + lane();
                if (whole || begin + r * SPAN + k < count)
                    to[(i64)(r * SPAN + k) * step] = ((const R*)(kept + r * APART))[k];
            }
        }
    }
};

#if KIND == SHORT
// Short rows: each has a warp.
extern "C" __global__ void __launch_bounds__(THREADS) short_rows(
    const __grid_constant__ Nest<I, 2> rows, const Shape shape, const S* in, R* out) {
    __shared__ Part::Own kept[ROUNDS * THREADS];
    u32 warp = threadIdx.x / 32;
    I at[2], row = (I)blockIdx.x * WARPS + warp;
    if (row >= shape.rows) return;
    locate(rows, row, at);
    Part part = {kept + warp * 32, 0, shape.count, shape.count == SPAN * ROUNDS};
    State left[ROUNDS];
    part.fetch(in + (i64)at[0], shape.from);
    part.add_up(left);
    part.write(out + (i64)at[1], shape.to, left, F::init());
}
#elif KIND == TILES
extern "C" __global__ void __launch_bounds__(THREADS, sizeof(State) > 4 ? 1 : BLOCKS) scan(
    const __grid_constant__ Nest<I, 2> rows, const Shape shape, const S* in, R* out, const Slots slots) {
    __shared__ Part::Own kept[ROUNDS * THREADS];
    __shared__ __align__(16) unsigned char memory[(WARPS + 1) * sizeof(State)];
    State* states = (State*)memory;
    u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32, tile = blockIdx.x % shape.tiles;
    I at[2], row = blockIdx.x / shape.tiles;
    locate(rows, row, at);
    Part part = {kept + warp * 32, (I)tile * TILE + warp * (SPAN * ROUNDS), shape.count,
        (I)(tile + 1) * TILE <= shape.count};
    State left[ROUNDS];
    part.fetch(in + (i64)at[0], shape.from);
    // What the tile comes to first, since others wait for that.
    State sum = part.total();
    if (lane == 0) states[warp] = sum;
    __syncthreads();
    State carry = F::init();
    sum = F::init();
#pragma unroll
    for (int w = 0; w < WARPS; w++) {
        if (w == warp) carry = sum;
        sum = F::merge(sum, states[w]);
    }
    if (shape.tiles > 1 && threadIdx.x == 0) slots.say((u64)row * shape.tiles + tile, sum);
    part.add_up(left);
    if (shape.tiles > 1) {
        if (warp == 0) {
            State far = look_back(slots, shape, row, tile, sum);
            if (lane == 0) states[WARPS] = far;
        }
        __syncthreads();
        carry = F::merge(states[WARPS], carry);
    }
    part.write(out + (i64)at[1], shape.to, left, carry);
}
#endif
