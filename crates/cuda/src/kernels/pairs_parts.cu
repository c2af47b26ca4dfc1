// Parts of a call on Hopper's tensor cores: where a piece of rows and a panel of j of each batch have what was
// made ready for them. The head of `pairs_wide.cu` tells the walk and what is declared before.

#define SIDE 64                         // rows of a tile
#define TILE_BYTES (SIDE * DEPTHS * 4)  // a head and a tail of every number
#define HEADS 8192                      // bytes of heads before their tails, where DEPTHS is 64
#define TAIL 2048.f

struct Wide {
    u8* rows;            // tiles of a piece's rows: of 64 rows, of DEPTHS of D
    u8* columns;         // the same of a panel's j
    OfJ* of_columns;
    T* row_norms;        // c |x|^2
    u8* right;           // tiles of a panel's right-hand sides
    const f32* centre;   // of all batches
    u32 row_count, column_count; // of a piece and of a panel, as they lie here batch after batch
    u32 depth, deep;     // D, and tiles along it
    f32 error, least;    // of a square: relative to the sum of the largest norms, and at least
    // What counts against the limit of norms: the norm; the squares of tails and of rests; the largest square of the
    // first 16 components of every sum; squares, for each later sum in the tensor core that they are in; the norm again,
    // where points are moved.
    f32 of_norm, of_split, of_largest, of_later, of_centre;
    u32 goes_on, ends;   // whether panels came before, and whether this is the last
    // Of right-hand sides, whose numbers are in no text, so that one serves all of them that need as many columns:
    u32 dim, first;      // the result's components that columns stand for, and the first of them
    u32 from, alike;     // its components that are differences
    u32 sides;           // numbers of a j

    // What batch number k of those that are worked on together has, which is number `batch` of all.
    METHOD Wide of(u32 k, u32 batch) const {
        Wide own = *this;
        const i64 rows_before = (i64)k * row_count, columns_before = (i64)k * column_count;
        own.rows += rows_before / SIDE * deep * TILE_BYTES;
        own.columns += columns_before / SIDE * deep * TILE_BYTES;
        own.of_columns += columns_before;
        own.row_norms += rows_before;
        own.right += columns_before * (RIGHT * 8);
        own.centre += (i64)batch * depth;
        return own;
    }
};
static_assert(sizeof(Wide) == 120, "as the host writes it");

// The state of row i of a block's batch in a range, among those of all batches that are worked on together.
FN i64 state_at(const Shape& shape, u32 range, i64 i) {
    return ((i64)range * shape.batches + blockIdx.z) * shape.m + i;
}

// The points of one side.
struct Points {
    const Stored* base;
    i64 row, component;
    const f32* centre;

    FN Points of(const Inputs& in, const u64 (&at)[OPERANDS], const Wide& w, bool left) {
        const Input& from = left ? in.at[POINT_X] : in.at[POINT_Y];
        Points points = {(const Stored*)from.base + (left ? at[POINT_X] : at[POINT_Y]), from.row, from.component, w.centre};
        return points;
    }
    // Component d of point i, about the centre.
    METHOD f32 at(i64 i, int d) const { return widen(base[i * row + d * component]) - centre[d]; }
};

// The exponent of the power of two that brings points of one side below 2^10: heads have all of their bits then
// wherever they count. Of exponents alone, since functions of numbers take long to compile.
FN int into_range(const Choice& choice, int side, f64 scale) {
    const u64 measured = choice.measured[side];
    // At most, of the largest square.
    int exponent = (int)(measured >> 52) - (int)((u64)__double_as_longlong(fabs(scale)) >> 52);
    exponent = measured > 0 && exponent < 232 ? exponent >> 1 : 0;
    return 9 - (exponent < -100 ? -100 : exponent);
}
FN f64 power_of_two(int exponent) { return __longlong_as_double((i64)(1023 + exponent) << 52); }
