// Products of any elements: a block computes a tile of the result from tiles of the operands in
// shared memory, a thread a patch of it in registers; the next tiles are on their way while one is
// computed. Declared before, with `matmul.cu`: S, A; LARGE where elements have at most 4 bytes.

#define DEPTH 16

// A tile of ROWS x DEPTH elements, where ROWS runs along the result and DEPTH along the sum.
template <int ROWS, int T> struct Tile {
    static const int EACH = ROWS * DEPTH / T;
    S own[EACH];

    // Where element number q of this thread lies in the tile: neighbours along the smaller step.
    FN void place(int q, bool along, int& row, int& depth) {
        int number = q * T + threadIdx.x;
        row = along ? number / DEPTH : number % ROWS;
        depth = along ? number % DEPTH : number / ROWS;
    }
    __device__ __forceinline__ void fetch(const S* from, i64 step, i64 deep, bool along, u32 rows, u32 depths) {
#pragma unroll
        for (int q = 0; q < EACH; q++) {
            int row, depth;
            place(q, along, row, depth);
            own[q] = row < rows && depth < depths ? from[row * step + depth * deep] : S{};
        }
    }
    __device__ __forceinline__ void keep(A (*to)[ROWS + 4], bool along) {
#pragma unroll
        for (int q = 0; q < EACH; q++) {
            int row, depth;
            place(q, along, row, depth);
            to[depth][row] = (A)widen(own[q]);
        }
    }
};

// A patch of P x P, in groups of 4 rows and columns, by each of T threads.
template <int P> FN void product(
    const Nest<u64, 3>& batch, const Product& p, const S* a, const S* b, S* c) {
    const int ROWS = 16 * P, T = 256, G = P / 4;
    __shared__ __align__(16) unsigned char memory[2 * DEPTH * (ROWS + 4) * sizeof(A)];
    A (*left)[ROWS + 4] = (A (*)[ROWS + 4])memory;
    A (*right)[ROWS + 4] = left + DEPTH;

    u64 at[3];
    locate(batch, (u64)(p.first + blockIdx.y), at);
    u32 row, column;
    tile_of<8>(blockIdx.x, (p.m + ROWS - 1) / ROWS, (p.n + ROWS - 1) / ROWS, row, column);
    row *= ROWS;
    column *= ROWS;
    const S* from_a = a + at[0] + row * p.a.row;
    const S* from_b = b + at[1] + column * p.b.column;
    bool a_along = p.a.column == 1, b_along = p.b.row == 1 && p.b.column != 1;
    u32 rows = p.m - row, columns = p.n - column;
    int y = threadIdx.x / 16 * 4, x = threadIdx.x % 16 * 4;

    A sum[P][P];
#pragma unroll
    for (int i = 0; i < P; i++)
#pragma unroll
        for (int j = 0; j < P; j++) sum[i][j] = A{};
    Tile<ROWS, T> next_a, next_b;
    next_a.fetch(from_a, p.a.row, p.a.column, a_along, rows, p.k);
    next_b.fetch(from_b, p.b.column, p.b.row, b_along, columns, p.k);
    for (u32 k = 0; k < p.k; k += DEPTH) {
        next_a.keep(left, a_along);
        next_b.keep(right, b_along);
        __syncthreads();
        if (k + DEPTH < p.k) {
            from_a += DEPTH * p.a.column;
            from_b += DEPTH * p.b.row;
            next_a.fetch(from_a, p.a.row, p.a.column, a_along, rows, p.k - k - DEPTH);
            next_b.fetch(from_b, p.b.column, p.b.row, b_along, columns, p.k - k - DEPTH);
        }
#pragma unroll
        for (int d = 0; d < DEPTH; d++) {
            Pack<A, 4> u[G], v[G];
#pragma unroll
            for (int g = 0; g < G; g++) {
                u[g] = *(Pack<A, 4>*)&left[d][g * 64 + y];
                v[g] = *(Pack<A, 4>*)&right[d][g * 64 + x];
            }
#pragma unroll
            for (int i = 0; i < P; i++)
#pragma unroll
                for (int j = 0; j < P; j++) sum[i][j] = mac(u[i / 4].at[i % 4], v[j / 4].at[j % 4], sum[i][j]);
        }
        __syncthreads();
    }
    S* to = c + at[2];
#pragma unroll
    for (int i = 0; i < P; i++)
#pragma unroll
        for (int j = 0; j < P; j++) {
            u32 r = row + i / 4 * 64 + y + i % 4, q = column + j / 4 * 64 + x + j % 4;
            if (r < p.m && q < p.n) to[r * p.c.row + q * p.c.column] = leave(sum[i][j]);
        }
}

extern "C" __global__ void __launch_bounds__(256) small(
    const __grid_constant__ Nest<u64, 3> batch, const Product p, const S* a, const S* b, S* c) {
    product<4>(batch, p, a, b, c);
}
#ifdef LARGE
extern "C" __global__ void __launch_bounds__(256) large(
    const __grid_constant__ Nest<u64, 3> batch, const Product p, const S* a, const S* b, S* c) {
    product<8>(batch, p, a, b, c);
}
#endif

// The textbook's tiles: arrays [rows][columns][t][t], one thread for each element of the result.
struct Tiles { u64 rows, columns, inner, t; i64 a[4], b[4], c[4]; };
extern "C" __global__ void __launch_bounds__(256) tiles(const Tiles p, const S* a, const S* b, S* c) {
    u64 number = (u64)blockIdx.x * 256 + threadIdx.x;
    u64 j = number % p.t, i = number / p.t % p.t, tile = number / p.t / p.t;
    u64 column = tile % p.columns, row = tile / p.columns;
    if (row >= p.rows) return;
    A sum = A{};
    for (u64 block = 0; block < p.inner; block++) {
        for (u64 k = 0; k < p.t; k++) {
            S x = a[(i64)row * p.a[0] + (i64)block * p.a[1] + (i64)i * p.a[2] + (i64)k * p.a[3]];
            S y = b[(i64)block * p.b[0] + (i64)column * p.b[1] + (i64)k * p.b[2] + (i64)j * p.b[3]];
            sum = mac((A)widen(x), (A)widen(y), sum);
        }
    }
    c[(i64)row * p.c[0] + (i64)column * p.c[1] + (i64)i * p.c[2] + (i64)j * p.c[3]] = leave(sum);
}
