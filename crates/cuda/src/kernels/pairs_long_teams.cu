// How teams go over a range of j whose vectors are long: TILE of them at once, with components of the block's rows in shared
// memory too. A thread has every LANES-th j of a tile, for all rows of its team. Part of `pairs.cu`, whose head tells the
// rest; declared before is what `pairs_chunks.cu` names and has.

static_assert(TILE == GROUP * LANES, "a team folds a tile at once");
enum { CHOICES = 1, TEAMS = THREADS / LANES };
#define OWN_ROWS(x) OfI x[ROWS]

// Four components of one of the vectors.
template <int V> FN void take_four(Components<V> (&own)[4], int v, const T* from) {
    Pack<T, 4> four = *(const Pack<T, 4>*)from;
    EACH(e, 4) own[e].at[v] = four.at[e];
}

FN bool go_over(const Inputs& in, const u64 (&at)[OPERANDS], const Once& p, const Shape& shape, const Stretch& own,
    const OfI (&x)[ROWS], State (&s)[ROWS], const Choice&) {
    __shared__ OfJ tile[TILE];
    // Longer by one read of a thread, so that those of neighbours are in different banks.
    __shared__ alignas(16) T chunks[2][TILE][VECTORS_J * DEPTHS + 16 / sizeof(T)];
    __shared__ alignas(16) T rows[2][ROWS * TEAMS][VECTORS_I][DEPTHS];
    // What others need of a row.
    __shared__ OfI of_rows[OF_ROWS ? ROWS * TEAMS : 1];
    const u32 lane = threadIdx.x % LANES, team = threadIdx.x / LANES;
    const i64 first = own.first - team;
    if (OF_ROWS && lane == 0) EACH(r, ROWS) of_rows[r * TEAMS + team] = x[r];
    u32 runs = 0, turn = 0;
    for (i32 j = 0; j < own.count; j += TILE) {
        int here = own.count - j < TILE ? own.count - j : TILE;
        Numbers numbers[ROWS][GROUP];
        EACH(r, ROWS) EACH(u, GROUP) numbers[r][u].init();
        __syncthreads();
        bring(in, at, p, own.begin + j, here, tile);
        EACH(pass, PASSES) {
            const u32 depth = depth_of(in, pass);
#pragma unroll 1
            for (u32 d = 0; d < depth; d += DEPTHS, turn ^= 1) {
                const u32 c = threadIdx.x % DEPTHS;
                const bool there = d + c < depth;
                for (int t = threadIdx.x / DEPTHS; t < TILE; t += THREADS / DEPTHS) {
                    EACH(v, VECTORS_J) {
                        const bool has = there && t < here;
                        chunks[turn][t][v * DEPTHS + c] =
                            has ? long_j(in, at, p, tile[t], own.begin + j + t, d + c, pass, v) : (T)0;
                    }
                }
                for (int r = threadIdx.x / DEPTHS; r < ROWS * TEAMS; r += THREADS / DEPTHS) {
                    i64 i = first + r < shape.m ? first + r : shape.m - 1;
                    EACH(v, VECTORS_I) {
                        rows[turn][r][v][c] = there ? long_i(in, at, p, of_rows[OF_ROWS ? r : 0], i, d + c, pass, v) : (T)0;
                    }
                }
                // The chunk before is read by nobody any more when all are here, so that two are enough.
                __syncthreads();
                PRAGMA(unroll 2) for (int c = 0; c < DEPTHS; c += 4) {
                    Components<VECTORS_I> a[ROWS][4];
                    Components<VECTORS_ONCE> w[4];
                    EACH(e, 4) EACH(v, VECTORS_ONCE) {
                        w[e].at[v] = d + c + e < depth ? long_once(in, at, p, d + c + e, pass, v) : (T)0;
                    }
                    EACH(r, ROWS) EACH(v, VECTORS_I) take_four(a[r], v, &rows[turn][r * TEAMS + team][v][c]);
                    EACH(u, GROUP) {
                        Components<VECTORS_J> b[4];
                        EACH(v, VECTORS_J) take_four(b, v, &chunks[turn][u * LANES + lane][v * DEPTHS + c]);
                        EACH(e, 4) EACH(r, ROWS) if (VANISHES || d + c + e < depth) {
                            fold_along(p, x[r], tile[u * LANES + lane], a[r][e], b[e], w[e], numbers[r][u], pass);
                        }
                    }
                }
            }
        }
        runs++;
        EACH(r, ROWS) {
            s[r].begin(j + here);
            fold<GROUP>(p, x[r], tile + lane, numbers[r], s[r], j + lane);
            s[r].carry(runs);
        }
    }
    return true;
}
