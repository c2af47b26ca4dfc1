// How threads go over a range of j whose vectors are long: TILE of them at once. Part of `pairs.cu`, whose head tells the
// rest; declared before is what `pairs_chunks.cu` names and has, and `fold` with the numbers of pairs.

static_assert(LANES == 1, "threads own rows each for itself");
enum { CHOICES = 1 };
#define OWN_ROWS(x) OfI x[ROWS]

FN bool go_over(const Inputs& in, const u64 (&at)[OPERANDS], const Once& p, const Shape& shape, const Stretch& own,
    const OfI (&x)[ROWS], State (&s)[ROWS], const Choice&) {
    __shared__ OfJ tile[TILE];
    __shared__ T chunks[2][TILE][DEPTHS];
    __shared__ T numbers[TILE][ROWS * THREADS];
    const u32 depth = DEPTH;
    i64 i[ROWS];
    EACH(r, ROWS) i[r] = own.first + r * THREADS < shape.m ? own.first + r * THREADS : shape.m - 1;
    u32 runs = 0, turn = 0;
    for (i32 j = 0; j < own.count; j += TILE) {
        int here = own.count - j < TILE ? own.count - j : TILE, whole = here - here % GROUP;
        T sums[ROWS][TILE];
        EACH(r, ROWS) EACH(u, TILE) sums[r][u] = 0;
        __syncthreads();
        bring(in, at, p, own.begin + j, here, tile);
#pragma unroll 1
        for (u32 d = 0; d < depth; d += DEPTHS, turn ^= 1) {
            for (int e = threadIdx.x; e < TILE * DEPTHS; e += THREADS) {
                u32 t = e / DEPTHS, k = d + e % DEPTHS;
                chunks[turn][t][e % DEPTHS] = t < here && k < depth ? long_j(in, at, p, tile[t], own.begin + j + t, k) : (T)0;
            }
            // The chunk before is read by nobody any more when all are here, so that two are enough.
            __syncthreads();
            PRAGMA(unroll (GROUP > 1 ? 2 : 1)) for (int c = 0; c < DEPTHS; c += 4) {
                T a[ROWS][4], w[4];
                EACH(e, 4) w[e] = d + c + e < depth ? long_once(in, at, p, d + c + e) : (T)0;
                EACH(r, ROWS) EACH(e, 4) a[r][e] = d + c + e < depth ? long_i(in, at, p, x[r], i[r], d + c + e) : (T)0;
                EACH(u, TILE) {
                    Pack<T, 4> b = *(const Pack<T, 4>*)&chunks[turn][u][c];
                    EACH(e, 4) EACH(r, ROWS) if (VANISHES || d + c + e < depth) {
                        along(p, x[r], tile[u], a[r][e], b.at[e], w[e], sums[r][u]);
                    }
                }
            }
        }
        // By way of memory, so that the folds below are loops. Nobody else looks there.
        EACH(r, ROWS) EACH(u, TILE) numbers[u][r * THREADS + threadIdx.x] = sums[r][u];
        EACH(r, ROWS) {
            const T* of_row = &numbers[0][r * THREADS + threadIdx.x];
            s[r].begin(0);
#pragma unroll 1
            for (int k = 0; k < whole; k += GROUP) {
                T square[GROUP];
                EACH(u, GROUP) square[u] = of_row[(k + u) * (ROWS * THREADS)];
                fold<GROUP>(p, x[r], tile + k, square, s[r], j + k);
            }
            int from = GROUP > 1 && s[r].strays() ? 0 : whole;
#pragma unroll 1
            for (int k = from; k < here; k++) {
                T square[1] = {of_row[k * (ROWS * THREADS)]};
                fold<1>(p, x[r], tile + k, square, s[r], j + k);
            }
        }
        if ((j + TILE) % RUN == 0 || j + TILE >= own.count) {
            runs++;
            EACH(r, ROWS) s[r].carry(runs);
        }
    }
    return true;
}
