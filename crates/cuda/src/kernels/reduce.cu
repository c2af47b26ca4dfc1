// Reductions: `lanes` threads share an output and merge their states in a tree. Which lane takes
// which element depends on the sizes alone, so that a result never depends on the load or on where
// its data lie. Declared before: S, the input's element; R, the result's; F, the fold; ACROSS, 0 or
// the neighbouring outputs that a thread has where neighbouring threads have such, not elements; LOOPS,
// 1 where elements lie along one loop, 0 where nobody knows; and `reduce_tree.cu`.

#define FINISHERS 1024
// Elements that a lane takes at once; their state is merged into its sum, so that rounding errors
// grow slowly. Neighbours come in runs of 16 bytes.
#define GROUP 8
#define RUN (sizeof(S) < 2 ? 8 : 16 / (int)sizeof(S))
// Groups that are on their way at once where a lane has runs: more where each takes long to merge.
#define AHEAD (sizeof(F::State) > 16 ? 4 : 2)

struct Shape {
    I outputs, count;   // outputs, and elements of each
    I piece;            // elements of a piece of them
    u32 pieces;
    u32 lanes;          // a power of two
};

FN bool is_one_loop(const Nest<I, 1>& reduced) { return LOOPS == 1 || reduced.axes == 1; }
// Where an element lies: one loop needs no division, which would be most of the code.
FN void find(const Nest<I, 1>& reduced, I number, I (&at)[1]) {
    if (LOOPS == 1) at[0] = reduced.offsets[0] + number * reduced.strides[0][0];
    else locate(reduced, number, at);
}

// What a lane sees of a piece: runs of W elements, in groups. Along one loop several whole groups
// are fetched before the first is used; `whole` says that runs can be fetched as one.
template <int W> FN State lane_of(
    const Nest<I, 1>& reduced, const Shape& shape, const S* in, u32 lane, I begin, I end) {
    const int GROUPS = W > 1 ? AHEAD : 1, RUNS = GROUPS * GROUP / W;
    State sum = F::init();
    I first = begin + lane * W, apart = shape.lanes * W, step = shape.lanes * GROUP;
    I stride = reduced.strides[0][0], offset = reduced.offsets[0];
    bool whole = W == 1 || (stride == 1 && (u64)(in + offset + begin) % alignof(Pack<S, W>) == 0);
    if (is_one_loop(reduced) && whole) {
        for (; first + (RUNS - 1) * apart + W <= end; first += GROUPS * step) {
            Pack<S, W> own[RUNS];
#pragma unroll
            for (int run = 0; run < RUNS; run++) {
                I at = offset + (first + run * apart) * stride;
                own[run] = *(const Pack<S, W>*)(in + at);
            }
#pragma unroll
            for (int group = 0; group < GROUPS; group++) {
                V x[GROUP];
#pragma unroll
                for (int e = 0; e < GROUP; e++) x[e] = enter(own[(group * GROUP + e) / W].at[e % W]);
                Runs<W> at = {(i64)(first + group * step), (i64)apart};
                Several<F>::into(sum, x, GROUP, at);
            }
        }
    }
    for (; first < end; first += step) {
        V x[GROUP];
        int count = 0;
#pragma unroll
        for (int e = 0; e < GROUP; e++) {
            I number = first + e / W * apart + e % W;
            if (number >= end) continue;
            I at[1];
            find(reduced, number, at);
            x[e] = enter(in[at[0]]);
            count++;
        }
        Runs<W> at = {(i64)first, (i64)apart};
        Several<F>::into(sum, x, count, at);
    }
    return sum;
}
// A group of elements for each of W neighbouring outputs, which lie together: all of it along one loop,
// or what is there before the end.
template <int W, bool ALL> FN void group_across(
    const Nest<I, 1>& reduced, const S* in, I first, I apart, I end, State (&sum)[W]) {
    Pack<S, W> own[GROUP];
    int count = 0;
#pragma unroll
    for (int e = 0; e < GROUP; e++) {
        I number = first + e * apart, at[1] = {reduced.offsets[0] + number * reduced.strides[0][0]};
        if (!ALL && number >= end) continue;
        if (!ALL) find(reduced, number, at);
        own[e] = *(const Pack<S, W>*)(in + at[0]);
        count++;
    }
#pragma unroll
    for (int w = 0; w < W; w++) {
        V x[GROUP];
#pragma unroll
        for (int e = 0; e < GROUP; e++) if (e < count) x[e] = enter(own[e].at[w]);
        Runs<1> at = {(i64)first, (i64)apart};
        Several<F>::into(sum[w], x, count, at);
    }
}
// What a lane sees of a piece for each of W outputs.
template <int W> FN void lane_across(
    const Nest<I, 1>& reduced, const Shape& shape, const S* in, u32 lane, I begin, I end, State (&sum)[W]) {
    I first = begin + lane, apart = shape.lanes, step = apart * GROUP;
    for (; is_one_loop(reduced) && first + (GROUP - 1) * apart < end; first += step)
        group_across<W, true>(reduced, in, first, apart, end, sum);
    for (; first < end; first += step) group_across<W, false>(reduced, in, first, apart, end, sum);
}

extern "C" __global__ void __launch_bounds__(THREADS) reduce(
    const __grid_constant__ Nest<I, 2> kept, const __grid_constant__ Nest<I, 1> reduced,
    const Shape shape, f64 correction, const S* in, R* out, State* partial) {
    const int W = ACROSS ? ACROSS : 1;
    u32 group = THREADS / shape.lanes;
    u32 lane = ACROSS ? threadIdx.x / group : threadIdx.x % shape.lanes;
    u32 own = ACROSS ? threadIdx.x % group : threadIdx.x / shape.lanes;
    I output = ((I)blockIdx.x * group + own) * W;
    bool alive = output < shape.outputs;
    I at[2], begin = (I)blockIdx.y * shape.piece, end = begin + shape.piece;
    if (end > shape.count) end = shape.count;
    locate(kept, alive ? output : 0, at);
    if (!alive) end = begin;
    State sum[W];
#pragma unroll
    for (int w = 0; w < W; w++) sum[w] = F::init();
    if (ACROSS) lane_across<W>(reduced, shape, in + at[0], lane, begin, end, sum);
    else sum[0] = lane_of<RUN>(reduced, shape, in + at[0], lane, begin, end);
#pragma unroll
    for (int w = 0; w < W; w++) {
        if (w > 0) __syncthreads();
        State all = tree<THREADS>(sum[w], lane, shape.lanes, ACROSS ? group : 1);
        if (!alive || lane != 0) continue;
        if (shape.pieces == 1) {
            if (w > 0) locate(kept, output + w, at);
            out[at[1]] = leave(F::finish(all, (f64)shape.count, correction));
        } else {
            partial[(output + w) * shape.pieces + blockIdx.y] = all;
        }
    }
}

// The pieces of an output, merged by `lanes` threads of a block.
extern "C" __global__ void __launch_bounds__(FINISHERS) finish(
    const __grid_constant__ Nest<I, 2> kept, const Shape shape, u32 lanes, f64 correction, R* out,
    const State* partial) {
    u32 lane = threadIdx.x % lanes;
    I output = (I)blockIdx.x * (FINISHERS / lanes) + threadIdx.x / lanes, at[2];
    State sum = F::init();
    if (output < shape.outputs) {
        // Several on their way at once.
        const int FEW = 8;
        const State* from = partial + output * shape.pieces;
        for (u32 first = lane; first < shape.pieces; first += FEW * lanes) {
            State some[FEW];
#pragma unroll
            for (int q = 0; q < FEW; q++) some[q] = first + q * lanes < shape.pieces ? from[first + q * lanes] : F::init();
#pragma unroll
            for (int q = 0; q < FEW; q++) sum = F::merge(sum, some[q]);
        }
    }
    sum = tree<FINISHERS>(sum, lane, lanes, 1);
    if (lane != 0 || output >= shape.outputs) return;
    locate(kept, output, at);
    out[at[1]] = leave(F::finish(sum, (f64)shape.count, correction));
}
