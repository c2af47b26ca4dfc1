// Reductions over pairs. A thread owns ROWS of i in registers; the block goes over its range of j (`go_over`).
// With one range the results are written at once; with several, states go to a buffer. Where there are fewer
// rows than a block has threads for, it takes SLICES ranges at once, with threads for all rows each. Where a state
// is large, LANES threads own rows together, as a team. Declared
// before, with `pairs_ends.cu`: the sections of the formula (`Once`, `OfI`, `OfJ`, `once`, `of_i`, `of_j`,
// `bring_long`, `fold`, `complete`; SCALED, whether sums are scaled at their end, with `overflows`), the centre of its points (`find_centre`, `about`, `share`), what pairs need in shared memory (`prepare`), the state (`State`), and `go_over`, of short or of
// long vectors, by threads or by teams, or of few pairs, with where rows are (`OWN_ROWS`) and whether there may be another form (`CHOICES`).

extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT_BLOCKS) reduce(
    const __grid_constant__ Nest<u64, OPERANDS> batches, const __grid_constant__ Inputs in,
    const __grid_constant__ Shape shape, const Output values, const Output indices,
    const Partial partial, const Choice choice) {
    // Some block may give up meanwhile: all threads of a block are told the same.
    if (CHOICES && choice.measured && !__syncthreads_and(is_chosen(choice))) return;
    u32 block = shape.first + blockIdx.x, batch = block / shape.blocks;
    u32* refused = choice.refused;
    if (CHOICES && refused) {
        u32 all = shape.batches * shape.blocks / choice.parts;
        refused += (u64)(shape.first_range + blockIdx.y) * all + block / choice.parts;
        if (!CHOOSES && !*refused) return;
        // Before all threads meet, of which any may write another number at its end.
        if (CHOOSES && threadIdx.x == 0) *refused = 0;
    }
    prepare();
    u64 at[OPERANDS];
    u32 range = (shape.first_range + blockIdx.y) * SLICES;
    locate(batches, batch, at);
    Once p;
    once(in, at, p);
    Stretch own = {(i64)(block % shape.blocks) * (THREADS / LANES * ROWS) + threadIdx.x / LANES, 0, 0, 0};
    u32 wide = THREADS / LANES;
    if (SLICES > 1) {
        // Threads for all rows; those beyond the last slice, or the last range, have no row and no j.
        wide = ((u32)shape.m + ROWS - 1) / ROWS;
        u32 slice = threadIdx.x / wide;
        own.slice = slice < SLICES ? slice : SLICES - 1;
        range += own.slice;
        own.first = slice < SLICES && range < shape.ranges ? threadIdx.x - slice * wide : shape.m;
    }
    OWN_ROWS(x);
    State s[ROWS];
    EACH(r, ROWS) {
        i64 i = own.first + r * wide;
        of_i(in, at, p, i < shape.m ? i : shape.m - 1, x[r]);
        s[r].own(r);
        s[r].init();
    }
    // While rows are waited for.
    find_centre(in, at, p, shape);
    EACH(r, ROWS) about(p, x[r]);
    own.begin = range * shape.range;
    i64 end = own.begin + shape.range;
    if (end > shape.n) end = shape.n;
    EACH(r, ROWS) {
        i64 i = own.first + r * wide;
        s[r].follow(partial, (i64)batch * shape.m + (i < shape.m ? i : shape.m - 1), shape.start + own.begin);
    }
    own.count = SLICES == 1 || own.first < shape.m ? (i32)(end - own.begin) : 0;
    bool done = go_over(in, at, p, shape, own, x, s, choice);
    if (!done) {
        if (CHOOSES && refused && threadIdx.x == 0) *refused = 1;
        return;
    }
    // Anew, so that it needs no registers meanwhile.
    locate(batches, batch, at);
    bool wild = false;
    EACH(r, ROWS) {
        i64 i = own.first + r * wide;
        s[r].end();
        complete(in, at, p, i < shape.m ? i : shape.m - 1, x[r], s[r]);
        wild |= SCALED && overflows(s[r]);
        if (i < shape.m) {
            if (shape.ranges == 1) {
                give(s[r], shape, at, i, shape.start + own.begin, values, indices);
                s[r].leave(partial, (i64)batch * shape.m + i, shape.start + own.begin);
            } else {
                i64 row = ((i64)range * shape.batches + batch) * shape.m + i;
                ALONG(q, SHARE(VALUES)) if (place(q) < VALUES) partial.values[row * VALUES + place(q)] = s[r].value(place(q));
                ALONG(q, SHARE(INDICES)) if (place(q) < INDICES) {
                    partial.indices[row * INDICES + place(q)] = s[r].index(place(q), shape.start + own.begin);
                }
            }
        }
    }
    // Perhaps before they were scaled, as the other form's sums are not: that writes all rows of the block again. Asked here,
    // the loops over pairs are not slower for it.
    if (SCALED && wild) {
        if (CHOOSES && refused) *refused = 1;
        else give_up(choice, true);
    }
}
