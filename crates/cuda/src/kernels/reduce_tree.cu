// How threads of a block merge their states. Declared before: F, the fold.

#define THREADS 256

typedef F::State State;

// The state of the lane that is so many above.
FN State lane_above(State s, u32 lanes) {
    u32 words[(sizeof(State) + 3) / 4];
    memcpy(words, &s, sizeof(State));
#pragma unroll
    for (int k = 0; k < (int)((sizeof(State) + 3) / 4); k++) words[k] = __shfl_down_sync(~0u, words[k], lanes);
    memcpy(&s, words, sizeof(State));
    return s;
}
// The state of `lanes` lanes that are `step` apart, in the first of them: neighbours, or of other warps. A
// block has T threads.
template <int T> FN State tree(State s, u32 lane, u32 lanes, u32 step) {
    __shared__ __align__(16) unsigned char memory[T * sizeof(State)];
    State* states = (State*)memory;
    if (step == 1) {
        for (u32 d = min(lanes, 32) / 2; d > 0; d /= 2) s = F::merge(s, lane_above(s, d));
        if (lanes <= 32) return s;
        states[threadIdx.x] = s;
        __syncthreads();
        if (lane >= 32) return s;
        // Warps become lanes.
        s = lane < lanes / 32 ? states[threadIdx.x + lane * 31] : F::init();
        for (u32 d = lanes / 64; d > 0; d /= 2) s = F::merge(s, lane_above(s, d));
        return s;
    }
    states[threadIdx.x] = s;
    __syncthreads();
    for (u32 d = 1; lane == 0 && d < lanes; d++) s = F::merge(s, states[threadIdx.x + d * step]);
    return s;
}
