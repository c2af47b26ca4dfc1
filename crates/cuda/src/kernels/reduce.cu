// Reductions: `lanes` threads share an output and merge their states in a tree. Which lane takes
// which element depends on the sizes alone, so that a result never depends on the load or on where
// its data lie. Declared before: S, the input's element; R, the result's; F, the fold.

#define THREADS 256
// Steps until a lane's state is merged into its sum, so that rounding errors grow slowly.
#define GROUP 8

typedef F::State State;

struct Shape {
    I outputs, count;   // outputs, and elements of each
    I piece;            // elements of a piece of them
    u32 pieces;
    u32 lanes;          // a power of two
    u32 across;         // whether neighbouring threads have neighbouring outputs, not elements
};

FN State tree(State s, u32 lane, u32 lanes, u32 step) {
    __shared__ __align__(16) unsigned char memory[THREADS * sizeof(State)];
    State* states = (State*)memory;
    states[threadIdx.x] = s;
    for (u32 d = lanes / 2; d > 0; d /= 2) {
        __syncthreads();
        if (lane < d) states[threadIdx.x] = F::merge(states[threadIdx.x], states[threadIdx.x + d * step]);
    }
    return states[threadIdx.x];
}

extern "C" __global__ void __launch_bounds__(THREADS) reduce(
    const __grid_constant__ Nest<I, 2> kept, const __grid_constant__ Nest<I, 1> reduced,
    const Shape shape, f64 correction, const S* in, R* out, State* partial) {
    u32 group = THREADS / shape.lanes;
    u32 lane = shape.across ? threadIdx.x / group : threadIdx.x % shape.lanes;
    u32 own = shape.across ? threadIdx.x % group : threadIdx.x / shape.lanes;
    I output = (I)blockIdx.x * group + own;
    bool alive = output < shape.outputs;
    I at[2], begin = (I)blockIdx.y * shape.piece, end = begin + shape.piece;
    if (end > shape.count) end = shape.count;
    locate(kept, alive ? output : 0, at);
    State sum = F::init();
    if (alive) {
        for (I first = begin + lane; first < end; first += shape.lanes * GROUP) {
            State s = F::init();
            S x[GROUP];
#pragma unroll
            for (int k = 0; k < GROUP; k++) {
                I r = first + k * shape.lanes, from[1];
                if (r < end) {
                    locate(reduced, r, from);
                    x[k] = in[at[0] + from[0]];
                }
            }
#pragma unroll
            for (int k = 0; k < GROUP; k++) {
                I r = first + k * shape.lanes;
                if (r < end) s = F::step(s, enter(x[k]), (i64)r);
            }
            sum = F::merge(sum, s);
        }
    }
    sum = tree(sum, lane, shape.lanes, shape.across ? group : 1);
    if (!alive || lane != 0) return;
    if (shape.pieces == 1) {
        out[at[1]] = leave(F::finish(sum, (f64)shape.count, correction));
    } else {
        partial[output * shape.pieces + blockIdx.y] = sum;
    }
}

// The pieces of an output, merged by one block.
extern "C" __global__ void __launch_bounds__(THREADS) finish(
    const __grid_constant__ Nest<I, 2> kept, const Shape shape, f64 correction, R* out,
    const State* partial) {
    I output = blockIdx.x, at[2];
    State sum = F::init();
    for (u32 k = threadIdx.x; k < shape.pieces; k += THREADS) {
        sum = F::merge(sum, partial[output * shape.pieces + k]);
    }
    sum = tree(sum, threadIdx.x, THREADS, 1);
    if (threadIdx.x != 0) return;
    locate(kept, output, at);
    out[at[1]] = leave(F::finish(sum, (f64)shape.count, correction));
}
