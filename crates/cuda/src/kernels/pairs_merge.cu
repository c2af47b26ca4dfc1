// Joins the states of a row's ranges, after `reduce` or `wide`. Declared before, with `pairs_ends.cu`: the
// state, with wide indices (`Merged`). Nothing here depends on the formula, only on what is folded. Components that
// have nothing to do with each other are merged APART: each is a row of its own.

// How many components are merged apart, and for a division by that.
struct Apart { u64 count, magic, shift; };

// The states of a row's ranges, in order: each of `lanes` threads joins neighbours, some of which it reads at
// once, and then what the lanes have is joined.
#define AT_ONCE (VALUES + INDICES == 1 ? 8 : VALUES + 2 * INDICES <= 4 ? 4 : 1)
// Ranks come from the card's memory as they are, and from other lanes by way of shared memory.
FN void join(const Shape& shape, const Partial& partial, i64 row, i64 rows, Merged& s) {
    u32 lane = threadIdx.x & (shape.lanes - 1), share = (shape.ranges + shape.lanes - 1) / shape.lanes;
    u32 from = lane * share, to = from + share < shape.ranges ? from + share : shape.ranges;
    if constexpr (RANKS) {
        for (u32 k = from; row < rows && k < to; k++) {
            i64 at = k * rows + row;
            s.take(partial.values + at * VALUES, partial.indices + at * INDICES);
        }
    } else for (u32 k = from; row < rows && k < to; k += AT_ONCE) {
        A found[AT_ONCE][VALUES];
        i64 where[AT_ONCE][INDICES + 1];
        EACH(u, AT_ONCE) if (k + u < to) {
            i64 at = (k + u) * rows + row;
            ALONG(v, VALUES) found[u][v] = partial.values[at * VALUES + v];
            ALONG(v, INDICES) where[u][v] = partial.indices[at * INDICES + v];
        }
        // Unrolled, so that what is found stays in registers.
        EACH(u, AT_ONCE) if (k + u < to) {
            s.take(found[u], where[u]);
            s.carry(k + u - from + 1);
        }
    }
    if (shape.lanes == 1) return;
    Merged joined;
    joined.init();
    if constexpr (RANKS) {
        __shared__ A found[THREADS][VALUES];
        __shared__ i64 where[THREADS][INDICES + 1];
        ALONG(v, VALUES) found[threadIdx.x][v] = s.value(v);
        ALONG(v, INDICES) where[threadIdx.x][v] = s.index(v, 0);
        __syncwarp();
        LOOP(q, shape.lanes) {
            int of = threadIdx.x / shape.lanes * shape.lanes + q;
            joined.take(found[of], where[of]);
        }
    } else LOOP(q, shape.lanes) {
        A found[VALUES];
        i64 where[INDICES + 1];
        int of = threadIdx.x % 32 / shape.lanes * shape.lanes + q;
        ALONG(v, VALUES) found[v] = __shfl_sync(~0u, s.value(v), of);
        ALONG(v, INDICES) where[v] = __shfl_sync(~0u, s.index(v, 0), of);
        joined.take(found, where);
    }
    s = joined;
}

extern "C" __global__ void __launch_bounds__(THREADS) merge(
    const __grid_constant__ Nest<u64, OPERANDS> batches, const __grid_constant__ Shape shape,
    const Output values, const Output indices, const Partial partial, const Choice choice, const Apart apart) {
    if (!is_chosen(choice)) return;
    i64 thread = (i64)blockIdx.x * THREADS + threadIdx.x, rows = shape.m * shape.batches * (APART ? apart.count : 1);
    // Lanes are a power of two.
    i64 row = thread >> (__ffs(shape.lanes) - 1);
    Merged s;
    s.init();
    if constexpr (LANES > 1) {
        // A team takes each state as a whole.
        for (u32 k = 0; row < rows && k < shape.ranges; k++) {
            i64 at = k * rows + row;
            s.take(partial.values + at * VALUES, partial.indices + at * INDICES);
        }
    } else {
        join(shape, partial, row, rows, s);
    }
    if (row >= rows || (LANES == 1 && thread % shape.lanes != 0)) return;
    u64 at[OPERANDS];
    auto over = [](i64 number, u64 magic, u64 shift) { return (i64)(__umul64hi((u64)number, magic) + (u64)number >> shift); };
    i64 whole = APART ? over(row, apart.magic, apart.shift) : row, batch = over(whole, shape.magic, shape.shift);
    locate(batches, shape.first_batch + (u32)batch, at);
    at[OPERANDS - 2] += APART ? (row - whole * (i64)apart.count) * values.component : 0;
    give(s, shape, at, whole - batch * shape.m, 0, values, indices);
    s.leave(partial, row, 0);
}
