// Running reductions along one axis. A row is cut into pieces of whole tiles; the pieces are reduced
// first, their states summed up, and then each is scanned from what comes before it. Declared
// before: S, R, F.

#define THREADS 256
#define EACH 8
#define TILE (THREADS * EACH)

typedef F::State State;

struct Shape {
    I rows, count;      // rows, and elements of each
    I piece;            // elements of a piece: whole tiles
    u32 pieces;         // at most THREADS
    i64 from, to;       // steps along the axis
};

// The states of the threads so far, this one's included; `total` is that of all.
FN State through(State s, State& total) {
    __shared__ __align__(16) unsigned char memory[THREADS * sizeof(State)];
    State* states = (State*)memory;
    states[threadIdx.x] = s;
    for (u32 d = 1; d < THREADS; d *= 2) {
        __syncthreads();
        State left = threadIdx.x >= d ? states[threadIdx.x - d] : F::init();
        __syncthreads();
        if (threadIdx.x >= d) states[threadIdx.x] = F::merge(left, states[threadIdx.x]);
    }
    __syncthreads();
    State result = states[threadIdx.x];
    total = states[THREADS - 1];
    __syncthreads();
    return result;
}

// The state of all threads before this one.
FN State before(State s, State& total) {
    __shared__ __align__(16) unsigned char memory[THREADS * sizeof(State)];
    State* states = (State*)memory;
    states[threadIdx.x] = through(s, total);
    __syncthreads();
    State result = threadIdx.x > 0 ? states[threadIdx.x - 1] : F::init();
    __syncthreads();
    return result;
}

// The state of each piece.
extern "C" __global__ void __launch_bounds__(THREADS) totals(
    const __grid_constant__ Nest<I, 2> rows, const Shape shape, const S* in, State* partial) {
    I at[2], begin = (I)blockIdx.y * shape.piece, end = begin + shape.piece;
    if (end > shape.count) end = shape.count;
    locate(rows, (I)blockIdx.x, at);
    State sum = F::init(), total;
    for (I first = begin; first < end; first += TILE) {
        State s = F::init();
        for (int k = 0; k < EACH; k++) {
            I r = first + threadIdx.x * EACH + k;
            if (r < end) s = F::step(s, enter(in[(i64)at[0] + (i64)r * shape.from]), (i64)r);
        }
        through(s, total);
        sum = F::merge(sum, total);
    }
    if (threadIdx.x == 0) partial[(u64)blockIdx.x * shape.pieces + blockIdx.y] = sum;
}

// Of the pieces of a row, each state becomes that of all pieces before it; by one block a row.
extern "C" __global__ void __launch_bounds__(THREADS) carries(const Shape shape, State* partial) {
    State* own = partial + (u64)blockIdx.x * shape.pieces + threadIdx.x;
    State s = threadIdx.x < shape.pieces ? *own : F::init(), total;
    s = before(s, total);
    if (threadIdx.x < shape.pieces) *own = s;
}

extern "C" __global__ void __launch_bounds__(THREADS) scan(
    const __grid_constant__ Nest<I, 2> rows, const Shape shape, const S* in, R* out, const State* partial) {
    I at[2], begin = (I)blockIdx.y * shape.piece, end = begin + shape.piece;
    if (end > shape.count) end = shape.count;
    locate(rows, (I)blockIdx.x, at);
    State carry = shape.pieces > 1 ? partial[(u64)blockIdx.x * shape.pieces + blockIdx.y] : F::init();
    for (I first = begin; first < end; first += TILE) {
        State s = F::init(), total;
        S x[EACH];
#pragma unroll
        for (int k = 0; k < EACH; k++) {
            I r = first + threadIdx.x * EACH + k;
            if (r >= end) continue;
            x[k] = in[(i64)at[0] + (i64)r * shape.from];
            s = F::step(s, enter(x[k]), (i64)r);
        }
        s = F::merge(carry, before(s, total));
        carry = F::merge(carry, total);
#pragma unroll
        for (int k = 0; k < EACH; k++) {
            I r = first + threadIdx.x * EACH + k;
            if (r >= end) continue;
            s = F::step(s, enter(x[k]), (i64)r);
            out[(i64)at[1] + (i64)r * shape.to] = leave(F::finish(s, (f64)(r + 1), 0));
        }
    }
}
