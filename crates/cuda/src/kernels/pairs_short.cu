// How threads go over a range of j whose vectors are short: tile by tile in shared memory, in groups of GROUP
// that are computed together. Part of `pairs.cu`, whose head tells the rest.

enum { CHOICES = 1 };
#define OWN_ROWS(x) OfI x[ROWS]

// The j of place t in the tiles of all slices, where that is one of `count` that each has from j on.
FN bool is_there(const Shape& shape, int t, i64 j, i32 count) {
    if (SLICES == 1) return t < count && t < TILE;
    return t < SLICES * TILE && t % TILE < count && j + t / TILE * shape.range + t % TILE < shape.n;
}
FN i64 at_place(const Shape& shape, int t, i64 j) {
    return SLICES == 1 ? j + t : j + t / TILE * shape.range + t % TILE;
}

// Whether a point is too far from the centre for a square that is expanded, or for exponentials that are normal numbers.
template <class Of> FN bool is_far(const Of& it, T limit) {
    if constexpr (CHOOSES != 0) return !(fabs(it.norm) <= limit);
    return false;
}

// A tile of j comes in two steps, so that memory is waited for behind arithmetic. Short vectors
// come to registers (`bring`) and go to the tile when the one before is done with (`put`); long ones
// are brought to the tile by all threads together, and completed there: of one slice only.
FN void bring(const Inputs& in, const u64 (&at)[OPERANDS], const Once& p, const Shape& shape, i64 j, i32 count,
    OfJ* tile, OfJ (&next)[AHEAD + 1]) {
    if (AHEAD == 0) bring_long(in, at, j, count < TILE ? count : TILE, tile);
    EACH(q, AHEAD) {
        int t = threadIdx.x + q * THREADS;
        if (is_there(shape, t, j, count)) of_j(in, at, p, at_place(shape, t, j), next[q]);
    }
}
FN void put(const Inputs& in, const u64 (&at)[OPERANDS], const Once& p, const Shape& shape, i64 j, i32 count,
    OfJ* tile, OfJ (&next)[AHEAD + 1], const Choice& choice, bool& far) {
    const T limit = (T)choice.limit * share(p);
    EACH(q, AHEAD) {
        int t = threadIdx.x + q * THREADS;
        if (is_there(shape, t, j, count)) {
            tile[t] = next[q];
            far |= is_far(next[q], limit);
        }
    }
    if (AHEAD > 0) return;
    __syncthreads();
    for (int t = threadIdx.x; t < count && t < TILE; t += THREADS) {
        of_j(in, at, p, j + t, tile[t]);
        far |= is_far(tile[t], limit);
    }
}

template <int G> FN void sweep(const Once& p, const OfI (&x)[ROWS], const OfJ* tile, int from, int to,
    State (&s)[ROWS], i32 j) {
    const int lane = LANES > 1 ? threadIdx.x % LANES : 0;
#pragma unroll 1
    for (int k = from; k < to; k += G * LANES) {
        EACH(r, ROWS) fold<G>(p, x[r], tile + k + lane, s[r], j + k + lane);
    }
}

// False where the block left off at points that are too far.
FN bool go_over(const Inputs& in, const u64 (&at)[OPERANDS], const Once& p, const Shape& shape, const Stretch& own,
    const OfI (&x)[ROWS], State (&s)[ROWS], const Choice& choice) {
    typedef OfJ Tiles[SLICES * TILE];
    SHARED_ROOM(Tiles, tiles, 2, TILES_AT);
    // All threads bring tiles, as far as the first slice goes, which has as many j as any.
    i64 begin = own.begin;
    i32 count = own.count;
    if (SLICES > 1) {
        begin -= own.slice * shape.range;
        count = (i32)(shape.n - begin < shape.range ? shape.n - begin : shape.range);
    }
    // Not a pointer to its tile: with one, the compiler keeps fewer pairs at work.
    const u32 skip = SLICES > 1 ? own.slice * TILE : 0;
    u32 runs = 0;
    OfJ next[AHEAD + 1];
    const T limit = (T)choice.limit * share(p);
    bool far = false;
    EACH(r, ROWS) far |= is_far(x[r], limit);
    if (count > 0) {
        bring(in, at, p, shape, begin, count, tiles[0], next);
        put(in, at, p, shape, begin, count, tiles[0], next, choice, far);
    }
    for (i32 j = 0, turn = 0; j < count; j += TILE, turn ^= 1) {
        if constexpr (CHOOSES != 0) {
            // All say the same; asked once more, the compiler knows it, and counts the loop in registers of a warp.
            if (__any_sync(~0u, __syncthreads_or(far))) return false;
            far = false;
        } else {
            __syncthreads();
        }
        i32 left = (SLICES > 1 ? own.count : count) - j, after = count - j - TILE, here = left < TILE ? left : TILE;
        if (after > 0) bring(in, at, p, shape, begin + j + TILE, after, tiles[turn ^ 1], next);
#pragma unroll 1
        for (int from = 0; from < here; from += RUN) {
            // A team goes on to a whole group, and leaves out what is beyond the end.
            int to = from + RUN < here ? from + RUN : here, whole = LANES > 1 ? to : to - (to - from) % GROUP;
            EACH(r, ROWS) s[r].begin(j + to);
            sweep<GROUP>(p, x, tiles[turn] + skip, from, whole, s, j);
            EACH(r, ROWS) {
                if (GROUP > 1 && s[r].strays()) LOOP(k, whole - from) fold<1>(p, x[r], tiles[turn] + skip + from + k, s[r], j + from + k);
            }
            sweep<1>(p, x, tiles[turn] + skip, whole, to, s, j);
            runs++;
            EACH(r, ROWS) s[r].carry(runs);
        }
        if (after > 0) put(in, at, p, shape, begin + j + TILE, after, tiles[turn ^ 1], next, choice, far);
    }
    return true;
}
