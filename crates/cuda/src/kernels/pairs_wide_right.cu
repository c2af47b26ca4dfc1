// Weights of pairs times right-hand sides, for `pairs_wide.cu`: a sum whose components are all one number
// of the pair times numbers of j. Weights go from registers into a second product on the tensor cores,
// as TF32 heads and tails, by tiles of right-hand sides that `split_right` has made: RIGHT columns by 32 of
// j, heads and then tails. The products leave the tensor core every 32 of j, since it rounds towards zero:
// small ones first, so that only the last four roundings count. Of tails of weights it ignores the
// last two bits: to round them would take an instruction of each pair. Their sums are added up in runs of 64, as
// those of `Cascade` are, the second level in shared memory.
//
// Where it DIFFERS, `alike` components from `from` on are differences x_i - y_j times a number q_j: both points are
// taken about the centre, the column holds q y, and column `dim` the q, so that a result is x (sum of w q)
// minus its column. Where there are more components than columns, these are `dim` of them, from `first` on.
//
// Declared before, beside the rest: `right`, a name space with the sections of right-hand sides, of which `side`
// gives one; `of_row`, what results of a row are multiplied by; `multiply_right`, the product of 32 of j.

#define SIDE_BYTES (RIGHT * 256) // of 32 of j

struct Kept {
    enum { BYTES = RIGHT / 2 * 128 * GROUPS * (int)sizeof(f32) };
    f32 sum[RIGHT / 2];
    f32* total; // this thread's, at a distance of all threads that multiply

    METHOD void init(const Own&, const Shape&, const Partial&, const Choice&, const Wide&, void* memory) {
        total = (f32*)memory + threadIdx.x;
        EACH(i, RIGHT / 2) { sum[i] = 0; total[i * 128 * GROUPS] = 0; }
    }
    METHOD void take(const Once& p, const Own& own, const Tile& tile, const f32 (&products)[PLACES],
        const f32 (&cross)[PLACES]) {
        EACH(half, COLUMNS / 32) {
            u32 heads[4][4], tails[4][4];
            EACH(q, 4) {
                const int c = half * 8 + q * 2;
                Pack<OfJ, 2> two = *(const Pack<OfJ, 2>*)(tile.y + column_of(c));
                EACH(r, 2) {
                    T square[2] = {0, 0}, weight[2];
                    EACH(e, 2) if (DEPTHS > 0) {
                        square[e] = square_of(products, cross, r, c + e, tile.factor, own.x[r].norm, two.at[e].norm);
                    }
                    weigh<2>(p, own.x[r], two.at, square, weight);
                    EACH(e, 2) {
                        u32 head = __float_as_uint(weight[e]) & 0xffffe000;
                        heads[q][e * 2 + r] = head;
                        tails[q][e * 2 + r] = __float_as_uint(weight[e] - __uint_as_float(head));
                    }
                }
            }
            u64 b = describe(tile.right + half * SIDE_BYTES, 1024, 16);
            f32 product[RIGHT / 2];
            group_begin();
            multiply_right(product, heads, tails, b, b + (SIDE_BYTES / 2 >> 4));
            group_end();
            group_wait<0>();
            EACH(i, RIGHT / 2) sum[i] += product[i];
        }
    }
    METHOD void carry(u32 tiles) {
        if (tiles % (64 * 32 / COLUMNS) != 0) return;
        EACH(i, RIGHT / 2) { total[i * 128 * GROUPS] += sum[i]; sum[i] = 0; }
    }
    // Alone, as a state that a result is made of.
    struct One {
        A v;
        METHOD A value(int) const { return v; }
    };
    METHOD void end(const Inputs& in, const u64 (&at)[OPERANDS], const Own& own, const Shape& shape,
        const Output& values, const Output&, const Partial& partial, const Choice& choice, const Wide& w) {
        // From memory, so that a loop over columns can be one: unrolled it takes the compiler as long as all else.
        EACH(i, RIGHT / 2) total[i * 128 * GROUPS] += sum[i];
        // Infinite weights are not so in tails, and sums may overflow before they are scaled: the other form tells.
        bool wild = false;
        const bool at_once = shape.ranges == 1 && !w.goes_on && w.ends;
        const Points points = Points::of(in, at, w, true);
        // One row after the other, so that the code of a row is there once.
        LOOP(r, 2) {
            OfI x = own.x[0];
            if (r) x = own.x[1];
            const i64 own_row = r ? own.row[1] : own.row[0];
            const f32 whole = OUTSIDE ? op_exp2_pair_f32(x.norm) : 1.f, row = of_row(x);
            f32 q = 0;
            if (DIFFERS) {
                q = total[(w.dim / 8 * 4 + r * 2 + w.dim % 2) * 128 * GROUPS];
                q = __shfl_sync(~0u, q, threadIdx.x % 32 / 4 * 4 + w.dim % 8 / 2);
            }
            const i64 i = own.first + r * 8;
            A* states = partial.values + state_at(shape, own.range, own_row) * w.dim;
            // Of few columns some at once, of which each reads its point in any case, and from somewhere: one after the other,
            // and behind branches, all would wait for their own. Of many that is not felt, and takes compilers a tenth longer.
            PRAGMA(unroll (RIGHT <= 16 ? 3 : 1)) for (int c = 0; c < RIGHT / 4; c++) {
                const u32 k = column_of(c), apart = k + w.first - w.from;
                const bool counts = k < w.dim && i < shape.m;
                f32 v = total[(c / 2 * 4 + r * 2 + c % 2) * 128 * GROUPS];
                if (DIFFERS) {
                    const bool differs = apart < w.alike;
                    const f32 point = points.at(own_row, differs ? apart : 0);
                    v = differs ? fma(point, q, -v) : v;
                }
                One one = {v * whole * row};
                wild |= counts && !(fabsf(one.v) < infinity<f32>());
                if (at_once) {
                    i64 place = (i64)at[OPERANDS - 2] + i * values.row + k * values.component;
                    if (counts) ((R*)values.base)[place] = cast<R>(result(one, k, (A)shape.n));
                } else {
                    A* held = states + (k < w.dim ? k : 0);
                    const A all = w.goes_on ? *held + one.v : one.v;
                    if (counts) *held = all;
                }
            }
        }
        give_up(choice, wild);
    }
};
