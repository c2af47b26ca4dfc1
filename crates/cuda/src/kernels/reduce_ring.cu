// Reductions of one long run of elements to one result, on Hopper: a block for each multiprocessor, whose tiles
// the copy engine brings into a ring in shared memory, and whose last block merges the states of all. Which block takes
// which tile depends on the card and on its load; so this is for folds that come to the same in any order. A block's
// tiles come in order. Declared before,
// with `folds.cu`, `hopper.cu` and `reduce_tree.cu`: S, the input's element; R, the result's; F, the fold.

#define STAGES 8
#define CHUNK 16384         // bytes of a tile
#define SHARE 16            // one of so many rounds of tiles is for whoever has time
#define STAYS (16 << 20)    // of the first so many bytes the cache gives up what it likes, of all others those first
#define NONE ~0u            // instead of a tile's number, behind the last
#define TILE (CHUNK / (int)sizeof(S))
#define RUN (16 / (int)sizeof(S))
#define RUNS (CHUNK / 16 / THREADS)

// Tells of a block's state, and whether all others have done so before.
FN bool is_last(State all, State* partial, u32* counter) {
    __shared__ bool last;
    if (threadIdx.x == 0) {
        partial[blockIdx.x] = all;
        u32 before;
        // Zero, or what a meeting place is filled with, counts down from the number of blocks, and ends as zero.
        asm volatile("atom.dec.acq_rel.gpu.global.u32 %0, [%1], %2;" : "=r"(before) : "l"(counter), "r"(gridDim.x - 1) : "memory");
        last = before == 1 || gridDim.x == 1;
    }
    __syncthreads();
    return last;
}

extern "C" __global__ void __launch_bounds__(THREADS + 32) ring(u32 count, const S* in, R* out, State* partial, u32* counter) {
    extern __shared__ __align__(128) unsigned char memory[];
    __shared__ u64 barriers[2 * STAGES];
    __shared__ u32 numbers[STAGES];
    u32* claims = counter + 1;
    auto ring = Ring<STAGES>::make(barriers, THREADS / 32);
    u32 tiles = count / TILE, k = 0;
    if (threadIdx.x >= THREADS) {
        // One thread of a warp of its own; the block's barriers do not wait for those that have left.
        if (threadIdx.x > THREADS) return;
        u32 rounds = tiles / gridDim.x, fixed = rounds < SHARE ? ~0u : (rounds - rounds / SHARE) * gridDim.x;
        u32 next = blockIdx.x, claimed = 0;
        for (bool more = true; more; k++) {
            u32 tile = next < fixed ? next : fixed + claimed;
            next += gridDim.x;
            // Asked for before it is needed. The counter holds all bits before the first.
            if (next >= fixed) claimed = atomicAdd(claims, 1) + 1;
            more = tile < tiles;
            u32 barrier = ring.fill(k, 0, false);
            numbers[k % STAGES] = more ? tile : NONE;
            barrier_expect(barrier, more ? CHUNK : 0);
            if (more) bulk_copy(shared_address(memory) + k % STAGES * CHUNK, in + (u64)tile * TILE, CHUNK, barrier, tile >= STAYS / CHUNK);
        }
        return;
    }
    State sum = F::init();
    for (;; k++) {
        ring.take(k);
        u32 tile = numbers[k % STAGES];
        if (tile == NONE) break;
        Pack<S, RUN> own[RUNS];
        const Pack<S, RUN>* from = (const Pack<S, RUN>*)(memory + k % STAGES * CHUNK) + threadIdx.x;
#pragma unroll
        for (int run = 0; run < RUNS; run++) own[run] = from[run * THREADS];
        __syncwarp();
        if (threadIdx.x % 32 == 0) barrier_arrive(ring.empty + k % STAGES * 8);
        V x[RUNS * RUN];
#pragma unroll
        for (int e = 0; e < RUNS * RUN; e++) x[e] = enter(own[e / RUN].at[e % RUN]);
        Runs<RUN> at = {(i64)tile * TILE + threadIdx.x * RUN, THREADS * RUN};
        Several<F>::into(sum, x, RUNS * RUN, at);
    }
    // What is left is less than a tile.
    for (u32 number = tiles * TILE + threadIdx.x; blockIdx.x == gridDim.x - 1 && number < count; number += THREADS) {
        V x[1] = {enter(in[number])};
        Runs<1> at = {(i64)number, 1};
        Several<F>::into(sum, x, 1, at);
    }
    if (!is_last(tree<THREADS>(sum, threadIdx.x, THREADS, 1), partial, counter)) return;
    sum = F::init();
    for (u32 block = threadIdx.x; block < gridDim.x; block += THREADS) sum = F::merge(sum, partial[block]);
    sum = tree<THREADS>(sum, threadIdx.x, THREADS, 1);
    if (threadIdx.x > 0) return;
    *out = leave(F::finish(sum, (f64)count, 0));
    *claims = ~0u;
}
