// Reductions: `lanes` threads share an output and merge their states in a tree. Which lane takes
// which element depends on the sizes alone, so that a result never depends on the load or on where
// its data lie. Declared before: S, the input's element; R, the result's; F, the fold.

#define THREADS 256
// Elements that a lane takes at once; their state is merged into its sum, so that rounding errors
// grow slowly. Neighbours come in runs of 16 bytes.
#define GROUP 8
#define RUN (sizeof(S) < 2 ? 8 : 16 / (int)sizeof(S))

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

// What a lane sees of a piece: runs of W elements.
template <int W> FN State lane_of(
    const Nest<I, 1>& reduced, const Shape& shape, const S* in, u32 lane, I begin, I end) {
    State sum = F::init();
    bool contiguous = W > 1 && reduced.axes == 1 && reduced.strides[0][0] == 1;
    for (I first = begin + lane * W; first < end; first += shape.lanes * GROUP) {
        V x[GROUP];
        int count = 0;
#pragma unroll
        for (int run = 0; run < GROUP; run += W) {
            I number = first + run * shape.lanes;
            const S* from = in + reduced.offsets[0] + number;
            if (contiguous && number + W <= end && (u64)from % alignof(Pack<S, W>) == 0) {
                Pack<S, W> own = *(const Pack<S, W>*)from;
#pragma unroll
                for (int e = 0; e < W; e++) x[run + e] = enter(own.at[e]);
                count += W;
                continue;
            }
#pragma unroll
            for (int e = 0; e < W; e++) {
                if (number + e >= end) continue;
                I at[1];
                locate(reduced, number + e, at);
                x[run + e] = enter(in[at[0]]);
                count++;
            }
        }
        Runs<W> at = {(i64)first, (i64)shape.lanes * W};
        sum = F::merge(sum, Several<F>::of(x, count, at));
    }
    return sum;
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
    if (!alive) end = begin;
    State sum = shape.across ? lane_of<1>(reduced, shape, in + at[0], lane, begin, end)
                             : lane_of<RUN>(reduced, shape, in + at[0], lane, begin, end);
    sum = tree(sum, lane, shape.lanes, shape.across ? group : 1);
    if (!alive || lane != 0) return;
    if (shape.pieces == 1) {
        out[at[1]] = leave(F::finish(sum, (f64)shape.count, correction));
    } else {
        partial[output * shape.pieces + blockIdx.y] = sum;
    }
}

// The pieces of an output, merged by `lanes` threads of a block.
extern "C" __global__ void __launch_bounds__(THREADS) finish(
    const __grid_constant__ Nest<I, 2> kept, const Shape shape, u32 lanes, f64 correction, R* out,
    const State* partial) {
    u32 lane = threadIdx.x % lanes;
    I output = (I)blockIdx.x * (THREADS / lanes) + threadIdx.x / lanes, at[2];
    State sum = F::init();
    if (output < shape.outputs) {
        for (u32 k = lane; k < shape.pieces; k += lanes) {
            sum = F::merge(sum, partial[output * shape.pieces + k]);
        }
    }
    sum = tree(sum, lane, lanes, 1);
    if (lane != 0 || output >= shape.outputs) return;
    locate(kept, output, at);
    out[at[1]] = leave(F::finish(sum, (f64)shape.count, correction));
}
