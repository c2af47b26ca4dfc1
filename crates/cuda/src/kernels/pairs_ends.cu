// What all kernels of reductions over pairs share: the numbers of a call, the choice between forms,
// how results leave, and `merge`, which joins the states of a row's ranges in order. Declared before:
// the state (`State`, and `Merged` with wide indices), and `result`.

struct Shape {
    i64 m, n;          // rows of i of a batch, and of j
    i64 range;         // j of a range
    i64 start;         // the index of the first j
    u32 blocks;        // blocks of i of a batch
    u32 ranges;
    u32 lanes;         // threads that merge a row
    u32 batches;
    u32 first, first_range; // the first block and range of this launch
};
struct Output { void* base; i64 row, component; };
struct Partial { A* values; i64* indices; };
// The largest norms, as bits, with whether a filter gave up, and the limit up to which the expanded
// square may be used; none where there is no choice.
struct Choice { const u64* measured; f64 limit; };

FN bool is_chosen(const Choice& choice) {
    if (!choice.measured) return true;
    // NaN is above every limit.
    f64 x = __longlong_as_double(choice.measured[0]), y = __longlong_as_double(choice.measured[1]);
    bool expanded = x <= choice.limit && y <= choice.limit && !choice.measured[2];
    return expanded == (EXPANDED != 0);
}

// The results of a row, or its state where states are asked for.
template <class S> FN void give(const S& s, const Shape& shape, const u64 (&at)[OPERANDS], i64 i,
    i64 first, const Output& values, const Output& indices) {
    if (values.base) {
        ALONG(k, WIDTH) {
            i64 to = (i64)at[OPERANDS - 2] + i * values.row + k * values.component;
            ((R*)values.base)[to] = cast<R>(result(s, k, (A)shape.n));
        }
    }
    if (indices.base) {
        ALONG(k, INDICES) {
            i64 to = (i64)at[OPERANDS - 1] + i * indices.row + k * indices.component;
            ((i64*)indices.base)[to] = s.index(k, first);
        }
    }
}

// The states of a row's ranges, in order: each of `lanes` threads joins neighbours, some of which it reads at
// once, and then what the lanes have is joined.
#define AT_ONCE (VALUES + 2 * INDICES <= 4 ? 8 : 1)
extern "C" __global__ void __launch_bounds__(128) merge(
    const __grid_constant__ Nest<u64, OPERANDS> batches, const __grid_constant__ Shape shape,
    const Output values, const Output indices, const Partial partial, const Choice choice) {
    if (!is_chosen(choice)) return;
    i64 thread = (i64)blockIdx.x * 128 + threadIdx.x, rows = shape.m * shape.batches;
    i64 row = thread / shape.lanes;
    u32 lane = thread % shape.lanes, share = (shape.ranges + shape.lanes - 1) / shape.lanes;
    bool alive = row < rows;
    Merged s;
    s.init();
    u32 from = lane * share, to = from + share < shape.ranges ? from + share : shape.ranges;
    for (u32 k = from; alive && k < to; k += AT_ONCE) {
        A found[AT_ONCE][VALUES];
        i64 where[AT_ONCE][INDICES + 1];
        EACH(u, AT_ONCE) if (k + u < to) {
            i64 at = (k + u) * rows + row;
            ALONG(v, VALUES) found[u][v] = partial.values[at * VALUES + v];
            ALONG(v, INDICES) where[u][v] = partial.indices[at * INDICES + v];
        }
        LOOP(u, AT_ONCE) if (k + u < to) {
            s.take(found[u], where[u]);
            s.carry(k + u - from + 1);
        }
    }
    if (shape.lanes > 1) {
        Merged joined;
        joined.init();
        LOOP(q, shape.lanes) {
            A found[VALUES];
            i64 where[INDICES + 1];
            int of = threadIdx.x % 32 / shape.lanes * shape.lanes + q;
            ALONG(v, VALUES) found[v] = __shfl_sync(~0u, s.value(v), of);
            ALONG(v, INDICES) where[v] = __shfl_sync(~0u, s.index(v, 0), of);
            joined.take(found, where);
        }
        s = joined;
    }
    if (!alive || lane != 0) return;
    u64 at[OPERANDS];
    locate(batches, (u64)(row / shape.m), at);
    give(s, shape, at, row % shape.m, 0, values, indices);
}
