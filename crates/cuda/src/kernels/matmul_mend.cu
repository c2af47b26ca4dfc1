// Mends products of `matmul_split.cu`: tiles of the result that marked numbers enter are computed anew by
// fused steps, in the order of k. A block finds out which of its tiles need that; most need nothing. Short
// of text rather than of time, since it is compiled with every product that is split. Declared before, with
// `matmul.cu`: S, f32.

#define SIDE 128        // rows and columns of a tile; a thread has 8 x 8 of them
#define DEEP 16         // of k that are brought at once
#define STAGES 3
#define THREADS 256

// Which tiles of 64 rows and columns hold what the tensor cores would get wrong: a mark for each 32
// of k, those of the rows first.
struct Marks {
    const u8* at;
    u32 rows, tiles;    // tiles of rows, and of rows and columns together
    u32 deep;           // marks of a tile
};
FN bool is_marked(const Marks& marks, u32 batch, u32 row, u32 column) {
    const u8* all = marks.at + (u64)batch * marks.tiles * marks.deep;
    u32 last_row = min((row + SIDE - 1) / 64, marks.rows - 1);
    u32 last_column = min((column + SIDE - 1) / 64, marks.tiles - marks.rows - 1);
    const u8* of_rows = all + (u64)(row / 64) * marks.deep;
    const u8* of_columns = all + (u64)(marks.rows + column / 64) * marks.deep;
    bool found = false;
    for (u32 k = threadIdx.x; k < (last_row - row / 64 + 1) * marks.deep; k += THREADS) found |= of_rows[k];
    for (u32 k = threadIdx.x; k < (last_column - column / 64 + 1) * marks.deep; k += THREADS) found |= of_columns[k];
    return __syncthreads_or(found);
}

typedef S Tile[DEEP][SIDE + 4];
// Brings a tile, of which so many rows (columns) and depths are there; zeros for the others.
FN void bring(Tile& to, const S* from, i64 step, i64 deep, u32 rows, u32 depths) {
#pragma unroll 4
    for (u32 number = threadIdx.x; number < SIDE * DEEP; number += THREADS) {
        u32 row = deep == 1 ? number / DEEP : number % SIDE, depth = deep == 1 ? number % DEEP : number / SIDE;
        bool there = row < rows && depth < depths;
        const S* place = there ? from + row * step + depth * deep : from;
        asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;"
            ::"r"((u32)__cvta_generic_to_shared(&to[depth][row])), "l"(place), "r"(there ? 4 : 0) : "memory");
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, 2) mend(
    const __grid_constant__ Nest<u64, 3> batch, const Product p, const Marks marks, const S* a, const S* b, S* c) {
    extern __shared__ __align__(16) unsigned char memory[];
    Tile* left = (Tile*)memory;
    Tile* right = left + STAGES;
    u32 rows = (p.m + SIDE - 1) / SIDE, columns = (p.n + SIDE - 1) / SIDE;
    u32 y = threadIdx.x / 16 * 4, x = threadIdx.x % 16 * 4;
    u64 at[3];
    locate(batch, (u64)(p.first + blockIdx.y), at);
#pragma unroll 1
    for (u32 tile = blockIdx.x; tile < rows * columns; tile += gridDim.x) {
        u32 row, column;
        tile_of<8>(tile, rows, columns, row, column);
        row *= SIDE;
        column *= SIDE;
        if (!is_marked(marks, blockIdx.y, row, column)) continue;
        const S* of_a = a + at[0] + row * p.a.row;
        const S* of_b = b + at[1] + column * p.b.column;
        S sum[8][8];
#pragma unroll
        for (int q = 0; q < 64; q++) sum[q / 8][q % 8] = 0;
        int steps = (p.k + DEEP - 1) / DEEP;
#pragma unroll 1
        for (int step = 1 - STAGES; step < steps; step++) {
            asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 2) : "memory");
            __syncthreads();
            int next = step + STAGES - 1;
            if (next < steps) {
                bring(left[next % STAGES], of_a + next * DEEP * p.a.column, p.a.row, p.a.column, p.m - row, p.k - next * DEEP);
                bring(right[next % STAGES], of_b + next * DEEP * p.b.row, p.b.column, p.b.row, p.n - column, p.k - next * DEEP);
            }
            asm volatile("cp.async.commit_group;" ::: "memory");
            if (step < 0) continue;
#pragma unroll 2
            for (int d = 0; d < DEEP; d++) {
                Pack<S, 4> u[2], v[2];
#pragma unroll
                for (int g = 0; g < 2; g++) {
                    u[g] = *(Pack<S, 4>*)&left[step % STAGES][d][g * 64 + y];
                    v[g] = *(Pack<S, 4>*)&right[step % STAGES][d][g * 64 + x];
                }
#pragma unroll
                for (int q = 0; q < 64; q++) {
                    S& own = sum[q / 8][q % 8];
                    own = mac(u[q / 32].at[q / 8 % 4], v[q % 8 / 4].at[q % 4], own);
                }
            }
        }
        S* to = c + at[2];
#pragma unroll
        for (int q = 0; q < 64; q++) {
            u32 r = row + q / 32 * 64 + y + q / 8 % 4, e = column + q % 8 / 4 * 64 + x + q % 4;
            if (r < p.m && e < p.n) to[r * p.c.row + e * p.c.column] = sum[q / 8][q % 8];
        }
    }
}
