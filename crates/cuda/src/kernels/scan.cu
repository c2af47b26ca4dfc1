// Running reductions along one axis. A row is cut into pieces of whole tiles; the pieces are reduced
// first, their states summed up, and then each is scanned from what comes before it. Declared
// before: S, R, F.

#define THREADS 256
#define WARPS (THREADS / 32)
#define EACH 8
#define TILE (THREADS * EACH)

typedef F::State State;

struct Shape {
    I rows, count;      // rows, and elements of each
    I piece;            // elements of a piece: whole tiles
    u32 pieces;
    i64 from, to;       // steps along the axis
};

// The state of the lane that is so many below.
FN State lane_below(State s, u32 lanes) {
    u32 words[(sizeof(State) + 3) / 4];
    memcpy(words, &s, sizeof(State));
#pragma unroll
    for (int k = 0; k < (int)((sizeof(State) + 3) / 4); k++) words[k] = __shfl_up_sync(~0u, words[k], lanes);
    memcpy(&s, words, sizeof(State));
    return s;
}

// The state of all threads before this one; `total` is that of all.
FN State before(State s, State& total) {
    __shared__ __align__(16) unsigned char memory[WARPS * sizeof(State)];
    State* warps = (State*)memory;
    u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32;
#pragma unroll
    for (int d = 1; d < 32; d *= 2) {
        State left = lane_below(s, d);
        if (lane >= d) s = F::merge(left, s);
    }
    __syncthreads();
    if (lane == 31) warps[warp] = s;
    __syncthreads();
    State left = lane_below(s, 1), result = F::init();
    total = F::init();
#pragma unroll
    for (int w = 0; w < WARPS; w++) {
        if (w == warp) result = total;
        total = F::merge(total, warps[w]);
    }
    return lane > 0 ? F::merge(result, left) : result;
}

// The elements of this thread in a tile, of which the first `count` are there.
FN int own_elements(const S* row, const Shape& shape, I first, I end, V (&x)[EACH]) {
    I begin = first + threadIdx.x * EACH;
    int count = begin >= end ? 0 : (int)min(end - begin, (I)EACH);
    const S* from = row + (i64)begin * shape.from;
    Pack<S, EACH> own;
    if (count == EACH && shape.from == 1 && (u64)from % alignof(Pack<S, EACH>) == 0) {
        own = *(const Pack<S, EACH>*)from;
    } else {
#pragma unroll
        for (int k = 0; k < EACH; k++) if (k < count) own.at[k] = from[k * shape.from];
    }
#pragma unroll
    for (int k = 0; k < EACH; k++) if (k < count) x[k] = enter(own.at[k]);
    return count;
}

// The state of each piece.
extern "C" __global__ void __launch_bounds__(THREADS) totals(
    const __grid_constant__ Nest<I, 2> rows, const Shape shape, const S* in, State* partial) {
    I at[2], begin = (I)blockIdx.y * shape.piece, end = begin + shape.piece;
    if (end > shape.count) end = shape.count;
    locate(rows, (I)blockIdx.x, at);
    State sum = F::init(), total;
    for (I first = begin; first < end; first += TILE) {
        V x[EACH];
        int count = own_elements(in + (i64)at[0], shape, first, end, x);
        sum = F::merge(sum, Several<F>::of(x, count, Runs<EACH>{(i64)(first + threadIdx.x * EACH), 0}));
    }
    before(sum, total);
    if (threadIdx.x == 0) partial[(u64)blockIdx.x * shape.pieces + blockIdx.y] = total;
}

// Of the pieces of a row, each state becomes that of all pieces before it; by one block a row.
extern "C" __global__ void __launch_bounds__(THREADS) carries(const Shape shape, State* partial) {
    State* own = partial + (u64)blockIdx.x * shape.pieces;
    State carry = F::init(), total;
    for (u32 first = 0; first < shape.pieces; first += THREADS) {
        u32 piece = first + threadIdx.x;
        State s = F::merge(carry, before(piece < shape.pieces ? own[piece] : F::init(), total));
        if (piece < shape.pieces) own[piece] = s;
        carry = F::merge(carry, total);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS) scan(
    const __grid_constant__ Nest<I, 2> rows, const Shape shape, const S* in, R* out, const State* partial) {
    I at[2], begin = (I)blockIdx.y * shape.piece, end = begin + shape.piece;
    if (end > shape.count) end = shape.count;
    locate(rows, (I)blockIdx.x, at);
    State carry = shape.pieces > 1 ? partial[(u64)blockIdx.x * shape.pieces + blockIdx.y] : F::init();
    for (I first = begin; first < end; first += TILE) {
        V x[EACH];
        I own = first + threadIdx.x * EACH;
        int count = own_elements(in + (i64)at[0], shape, first, end, x);
        State total, s = F::merge(carry, before(Several<F>::of(x, count, Runs<EACH>{(i64)own, 0}), total));
        carry = F::merge(carry, total);
        Pack<R, EACH> y;
#pragma unroll
        for (int k = 0; k < EACH; k++) {
            if (k >= count) continue;
            s = F::step(s, x[k], (i64)(own + k));
            y.at[k] = leave(F::finish(s, (f64)(own + k + 1), 0));
        }
        R* to = out + (i64)at[1] + (i64)own * shape.to;
        if (count == EACH && shape.to == 1 && (u64)to % alignof(Pack<R, EACH>) == 0) {
            *(Pack<R, EACH>*)to = y;
        } else {
#pragma unroll
            for (int k = 0; k < EACH; k++) if (k < count) to[k * shape.to] = y.at[k];
        }
    }
}
