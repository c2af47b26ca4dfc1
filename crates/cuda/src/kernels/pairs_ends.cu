// What all kernels of reductions over pairs share: the numbers of a call, the choice between forms, and
// how results leave. Declared before: the state, and `result`.

struct Shape {
    i64 m, n;          // rows of i of a batch, and of j
    i64 range;         // j of a range
    i64 start;         // the index of the first j
    u32 blocks;        // blocks of i of a batch
    u32 ranges;
    u32 lanes;         // threads that merge a row
    u32 batches;
    u32 first_batch;
    u32 first, first_range; // the first block and range of this launch
    u32 unused;        // up to a whole word
    u64 magic, shift; // for a division by m
};
struct Output { void* base; i64 row, component; };
// States of ranges; and where ranks are taken slice by slice, the one that the next come after, of each row: number
// `place` of a slice, and where it is, counted from 2. There is none before the first (0), nor after the last of all (1).
struct Partial { A* values; i64* indices; A* last; i64* last_at; u64 place; };
// Which of two forms works, up to what limit of norms squares may be expanded, and whether this is the form
// that is expanded. Either one form does all, by the largest norms, as bits, with whether the expanded one gave up; or each block
// of the expanded form looks at its own norms, tells whether it refused, and blocks of the other do what
// was refused, `parts` of them for one. Nothing of both where there is no choice.
struct Choice { const u64* measured; u32* refused; f64 limit; u32 expanded, parts; };
static_assert(sizeof(Shape) == 80 && sizeof(Partial) == 40 && sizeof(Choice) == 32, "as the host writes them");

FN bool is_chosen(const Choice& choice) {
    if (!choice.measured) return true;
    // NaN is above every limit.
    f64 x = __longlong_as_double(choice.measured[0]), y = __longlong_as_double(choice.measured[1]);
    bool expanded = x <= choice.limit && y <= choice.limit && !choice.measured[2];
    return expanded == (choice.expanded != 0);
}

// Has the other form do all of the work, where something is wrong that nobody could know before.
FN void give_up(const Choice& choice, bool wrong) {
    if (wrong && choice.measured) atomicMax((u64*)choice.measured + 2, (u64)1);
}

// Whether a state is ranks in registers. It takes others in a loop, from memory: what a loop reads of registers would be
// put to local memory, which is set aside for all threads that a card could have.
#define RANKS (INDICES > 1 && VALUES <= FEW)

// What a thread goes over: its first row of i, the first j and how many, and its slice of the block's ranges.
struct Stretch { i64 first, begin; i32 count; u32 slice; };
#define RUN (LANES > 1 ? TILE : 64)

// Of n places of a state, those that are this thread's: all, or a share of its team's.
#define SHARE(n) (((n) + LANES - 1) / LANES)
FN int place(int q) { return LANES > 1 ? q * LANES + threadIdx.x % LANES : q; }

// The results of a row, or its state where states are asked for.
template <class S> FN void give(const S& s, const Shape& shape, const u64 (&at)[OPERANDS], i64 i,
    i64 first, const Output& values, const Output& indices) {
    if (values.base) {
        ALONG(q, SHARE(WIDTH)) if (place(q) < WIDTH) {
            const int k = place(q);
            i64 to = (i64)at[OPERANDS - 2] + i * values.row + k * values.component;
            ((R*)values.base)[to] = cast<R>(result(s, k, (A)shape.n));
        }
    }
    if (indices.base) {
        ALONG(q, SHARE(INDICES)) if (place(q) < INDICES) {
            const int k = place(q);
            i64 to = (i64)at[OPERANDS - 1] + i * indices.row + k * indices.component;
            ((i64*)indices.base)[to] = s.index(k, first);
        }
    }
}
