// How threads go over a range of j whose vectors are long: TILE of them at once. Part of `pairs.cu`, whose head tells the
// rest; declared before is what `pairs_chunks.cu` names and has, and `fold` with the numbers of pairs.
//
// DEEP components of the block's rows and of a tile's j are in shared memory at a time, and a thread folds them to the
// numbers of 8 rows by TILE / 8 j, as products of matrices are made. These numbers, of which a pair may have several, go by way
// of shared memory to the threads that own the rows, which fold them.

static_assert(LANES == 1 && ROWS == 1, "a thread owns a row");
enum { CHOICES = 1, DEEP = CHUNK_BYTES / sizeof(T), HEIGHT = 8, WIDE_BY = TILE / HEIGHT, OF_PAIR = sizeof(Numbers) / sizeof(T) };
// Components of rows that are asked for before the first is waited for: of several passes all would need local memory.
enum { AT_ONCE = PASSES == 1 ? DEEP : DEEP > 4 ? DEEP / 4 : 1 };
#define OWN_ROWS(x) OfI x[ROWS]

// Longer by one read of a thread, so that what neighbours write is in different banks.
#define BESIDE (16 / (int)sizeof(T))
struct Chunks {
    alignas(16) T rows[2][DEEP][VECTORS_I][THREADS + BESIDE];
    alignas(16) T columns[2][DEEP][VECTORS_J][TILE + BESIDE];
};
union Shared {
    Chunks chunks;
    alignas(16) T numbers[TILE][OF_PAIR][THREADS];
    METHOD Numbers get(int j, int row) const {
        Numbers own;
        EACH(q, OF_PAIR) own.at[q] = numbers[j][q][row];
        return own;
    }
    METHOD void set(int j, int row, const Numbers& own) { EACH(q, OF_PAIR) numbers[j][q][row] = own.at[q]; }
};

// A thread's part of so many rows, or j, is in two halves of four, or as many as there are: neighbours have neighbouring ones.
template <int ALL, int OWN> FN int own_place(int which, int k) {
    const int half = OWN < 8 ? OWN : 4;
    return k / half * (ALL / (OWN / half)) + which * half + k % half;
}
template <int ALL, int N, int V, int ROOM> FN void take_own(Components<V> (&own)[N], const T (&from)[V][ROOM], int which) {
    const int half = N < 8 ? N : 4;
    EACH(v, V) EACH(q, N / half) {
        Pack<T, half> some = *(const Pack<T, half>*)(from[v] + own_place<ALL, N>(which, q * half));
        EACH(e, half) own[q * half + e].at[v] = some.at[e];
    }
}

FN bool go_over(const Inputs& in, const u64 (&at)[OPERANDS], const Once& p, const Shape& shape, const Stretch& own,
    const OfI (&x)[ROWS], State (&s)[ROWS], const Choice&) {
    __shared__ OfJ tile[TILE];
    __shared__ Shared shared;
    __shared__ Components<VECTORS_ONCE> of_once[2][DEEP];
    // What other threads need of a row.
    __shared__ OfI of_rows[OF_ROWS ? THREADS : 1];
    Chunks& chunks = shared.chunks;
    const i64 last = shape.m - 1, first = own.first - threadIdx.x;
    const int high = threadIdx.x % (THREADS / HEIGHT), wide = threadIdx.x / (THREADS / HEIGHT);
    if (OF_ROWS) of_rows[threadIdx.x] = x[0];
    u32 runs = 0, turn = 0;
    for (i32 j = 0; j < own.count; j += TILE) {
        int here = own.count - j < TILE ? own.count - j : TILE, whole = here - here % GROUP;
        Numbers numbers[HEIGHT][WIDE_BY];
        EACH(r, HEIGHT) EACH(u, WIDE_BY) numbers[r][u].init();
        __syncthreads();
        bring(in, at, p, own.begin + j, here, tile);
        EACH(pass, PASSES) {
            const u32 depth = depth_of(in, pass);
#pragma unroll 1
            for (u32 d = 0; d < depth; d += DEEP, turn ^= 1) {
                const int k = threadIdx.x % DEEP, turns = THREADS / DEEP, from = threadIdx.x / DEEP;
                const bool there = d + k < depth;
                // All are asked for before the first is waited for, so none is left out: beyond an end there is another.
                const u32 at_k = there ? d + k : 0;
                // Where vectors share a chunk it has so few components that there are more threads than a tile needs.
                const int each_j = (TILE + turns - 1) / turns;
                T of_j[each_j][VECTORS_J];
                EACH(q, each_j) {
                    const int t = from + q * turns < here ? from + q * turns : here - 1;
                    EACH(v, VECTORS_J) of_j[q][v] = long_j(in, at, p, tile[t], own.begin + j + t, at_k, pass, v);
                }
                Components<VECTORS_ONCE> one;
                EACH(v, VECTORS_ONCE) one.at[v] = there && threadIdx.x < DEEP ? long_once(in, at, p, at_k, pass, v) : (T)0;
                PRAGMA(unroll 1) for (int some = 0; some < DEEP; some += AT_ONCE) {
                    T of_i[AT_ONCE][VECTORS_I];
                    EACH(q, AT_ONCE) EACH(v, VECTORS_I) {
                        const int r = from + (some + q) * turns;
                        const i64 i = first + r < last ? first + r : last;
                        of_i[q][v] = long_i(in, at, p, of_rows[OF_ROWS ? r : 0], i, at_k, pass, v);
                    }
                    EACH(q, AT_ONCE) EACH(v, VECTORS_I) {
                        chunks.rows[turn][k][v][from + (some + q) * turns] = there ? of_i[q][v] : (T)0;
                    }
                }
                EACH(q, each_j) EACH(v, VECTORS_J) if (TILE % turns == 0 || from + q * turns < TILE) {
                    chunks.columns[turn][k][v][from + q * turns] = there ? of_j[q][v] : (T)0;
                }
                if (threadIdx.x < DEEP) of_once[turn][k] = one;
                // The chunk before is read by nobody any more when all are here, so that two are enough.
                __syncthreads();
                const int end = VANISHES || depth - d > DEEP ? DEEP : depth - d;
                PRAGMA(unroll (GROUP > 1 ? 4 : 1)) for (int c = 0; c < end; c++) {
                    Components<VECTORS_I> a[HEIGHT];
                    Components<VECTORS_J> b[WIDE_BY];
                    take_own<THREADS>(a, chunks.rows[turn][c], high);
                    take_own<TILE>(b, chunks.columns[turn][c], wide);
                    Components<VECTORS_ONCE> w = of_once[turn][c];
                    EACH(r, HEIGHT) EACH(u, WIDE_BY) {
                        const int row = own_place<THREADS, HEIGHT>(high, r), column = own_place<TILE, WIDE_BY>(wide, u);
                        fold_along(p, of_rows[OF_ROWS ? row : 0], tile[column], a[r], b[u], w, numbers[r][u], pass);
                    }
                }
            }
        }
        __syncthreads();
        EACH(u, WIDE_BY) EACH(r, HEIGHT) {
            shared.set(own_place<TILE, WIDE_BY>(wide, u), own_place<THREADS, HEIGHT>(high, r), numbers[r][u]);
        }
        __syncthreads();
        s[0].begin(0);
#pragma unroll 1
        for (int k = 0; k < whole; k += GROUP) {
            Numbers some[GROUP];
            EACH(u, GROUP) some[u] = shared.get(k + u, threadIdx.x);
            fold<GROUP>(p, x[0], tile + k, some, s[0], j + k);
        }
        int left = GROUP > 1 && s[0].strays() ? 0 : whole;
#pragma unroll 1
        for (int k = left; k < here; k++) {
            Numbers one[1] = {shared.get(k, threadIdx.x)};
            fold<1>(p, x[0], tile + k, one, s[0], j + k);
        }
        if ((j + TILE) % RUN == 0 || j + TILE >= own.count) {
            runs++;
            s[0].carry(runs);
        }
    }
    return true;
}
