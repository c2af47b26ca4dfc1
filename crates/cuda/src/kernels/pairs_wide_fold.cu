// Sums, logarithms of sums and the like, for `pairs_wide.cu`: a thread folds the values of its pairs. Four
// lanes have a state each of every row, which are joined in order at the end.

static_assert(INDICES == 0, "only filters look for indices");

// Four lanes' states of a row, joined in order; all four get the whole.
FN void join_lanes(State& s) {
    State joined;
    joined.init();
    EACH(q, 4) {
        A values[VALUES];
        int from = threadIdx.x % 32 / 4 * 4 + q;
        EACH(k, VALUES) values[k] = __shfl_sync(~0u, s.value(k), from);
        joined.take(values, nullptr);
    }
    s = joined;
}

// The state of a thread's row r: a result, or what goes on and is merged.
FN void put_state(const State& s, int r, const Own& own, const Shape& shape, const u64 (&at)[OPERANDS],
    const Output& values, const Output& indices, const Partial& partial, const Wide& w) {
    i64 i = own.first + r * 8;
    if (threadIdx.x % 4 != 0 || i >= shape.m) return;
    if (shape.ranges == 1 && !w.goes_on && w.ends) {
        give(s, shape, at, i, shape.start + own.begin, values, indices);
        return;
    }
    A found[VALUES], *held = partial.values + state_at(shape, own.range, i) * VALUES;
    EACH(k, VALUES) found[k] = s.value(k);
    Merged all;
    all.init();
    if (w.goes_on) all.take(held, nullptr);
    all.take(found, nullptr);
    ALONG(k, VALUES) held[k] = all.value(k);
}

// A tile's pairs; `here` of its columns are there.
FN void fold_tile(const Once& p, const OfI (&x)[2], const Tile& tile, const f32 (&sum)[PLACES],
    const f32 (&cross)[PLACES], State (&s)[2]) {
    bool left[2] = {true, true};
    // Twice where exponents left their range with weights beside them, which seldom happens.
    if (tile.here >= COLUMNS) LOOP(again, WEIGHTS > 0 ? 2 : 1) {
        EACH(r, 2) s[r].begin(0);
        EACH(g, OWN / GROUP) {
            OfJ own[GROUP];
            EACH(u, GROUP / 2) {
                Pack<OfJ, 2> two = *(const Pack<OfJ, 2>*)(tile.y + column_of(g * GROUP + u * 2));
                own[u * 2] = two.at[0];
                own[u * 2 + 1] = two.at[1];
            }
            EACH(r, 2) {
                T square[GROUP];
                EACH(u, GROUP) square[u] = square_of(sum, cross, r, g * GROUP + u, tile.factor, x[r].norm, own[u].norm);
                fold<GROUP>(p, x[r], own, square, s[r], tile.j);
            }
        }
        EACH(r, 2) left[r] = s[r].strays();
        if (!left[0] && !left[1]) return;
        if (WEIGHTS > 0 && again == 0) EACH(r, 2) if (!left[r]) s[r].back();
    }
    // In a loop, so that the code of a pair is there once, for which products are chosen among registers.
    LOOP(c, OWN) {
        const OfJ* own = tile.y + column_of(c);
        EACH(r, 2) {
            T one[1] = {0};
            T norm = column_of(c) < tile.here ? own->norm : (T)0;
            f32 of_sum = sum[0], of_cross = cross[0];
            EACH(q, OWN) {
                const int place = q / 2 * 4 + r * 2 + q % 2;
                of_sum = q == c ? sum[place] : of_sum;
                of_cross = q == c ? cross[place] : of_cross;
            }
            one[0] = square_from(of_sum, of_cross, tile.factor, x[r].norm, norm);
            if (left[r] && column_of(c) < tile.here) fold<1>(p, x[r], own, one, s[r], tile.j);
        }
    }
}

struct Kept {
    enum { BYTES = 0 };
    State s[2];

    METHOD void init(const Own&, const Shape&, const Partial&, const Choice&, const Wide&, void*) {
        EACH(r, 2) s[r].init();
    }
    METHOD void take(const Once& p, const Own& own, const Tile& tile, const f32 (&sum)[PLACES],
        const f32 (&cross)[PLACES]) {
        fold_tile(p, own.x, tile, sum, cross, s);
    }
    // A thread has OWN pairs of a row in a tile.
    METHOD void carry(u32 tiles) {
        if (tiles % (64 / OWN) == 0) EACH(r, 2) s[r].carry(tiles / (64 / OWN));
    }
    METHOD void end(const Inputs& in, const u64 (&at)[OPERANDS], const Own& own, const Shape& shape,
        const Output& values, const Output& indices, const Partial& partial, const Choice& choice, const Wide& w) {
        LOOP(r, 2) {
            State one = s[0];
            OfI x = own.x[0];
            if (r) { one = s[1]; x = own.x[1]; }
            join_lanes(one);
            Once nothing; // that would be asked for
            complete(in, at, nothing, r ? own.row[1] : own.row[0], x, one);
            // Perhaps before they were scaled, as the other form's are not.
            give_up(choice, SCALED && overflows(one));
            put_state(one, r, own, shape, at, values, indices, partial, w);
        }
    }
};
