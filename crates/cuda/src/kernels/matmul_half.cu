// Products of half types on tensor cores, summed in float32. A block of 8 warps computes 128 x 128
// of the result; a warp 64 x 32. Declared before, with `matmul.cu`: S, the half type; HALF, its name
// in instructions.

#define SIDE 128
#define DEEP 32

// A tile of an operand in shared memory, as it lies in global memory: either SIDE rows of DEEP
// elements along the sum, or DEEP rows of SIDE elements. Rows are padded by 16 bytes, so that eight
// of them lie in different banks.
struct HalfTile {
    u16 words[SIDE * (DEEP + 8)];

    FN int stride(bool along) { return along ? DEEP + 8 : SIDE + 8; }
    __device__ __forceinline__ u16* at(int row, int depth, bool along) {
        return words + (along ? row * stride(true) + depth : depth * stride(false) + row);
    }
};

// What a thread brings of a tile: two runs of 8 elements.
struct HalfOwn {
    Pack<u16, 8> runs[2];

    FN void place(int q, bool along, int& row, int& depth) {
        int run = q * 256 + threadIdx.x;
        row = along ? run / (DEEP / 8) : run % (SIDE / 8) * 8;
        depth = along ? run % (DEEP / 8) * 8 : run / (SIDE / 8);
    }
    // `whole` says that runs are contiguous and aligned; those that cross an edge are not.
    __device__ __forceinline__ void fetch(
        const u16* from, i64 step, i64 deep, bool along, bool whole, int rows, int depths) {
#pragma unroll
        for (int q = 0; q < 2; q++) {
            int row, depth;
            place(q, along, row, depth);
            int inside = along ? (row < rows ? depths - depth : 0) : (depth < depths ? rows - row : 0);
            const u16* at = from + row * step + depth * deep;
            if (whole && inside >= 8) {
                runs[q] = *(const Pack<u16, 8>*)at;
            } else {
#pragma unroll
                for (int k = 0; k < 8; k++) runs[q].at[k] = k < inside ? at[k * (along ? deep : step)] : 0;
            }
        }
    }
    __device__ __forceinline__ void keep(HalfTile& to, bool along) {
#pragma unroll
        for (int q = 0; q < 2; q++) {
            int row, depth;
            place(q, along, row, depth);
            *(Pack<u16, 8>*)to.at(row, depth, along) = runs[q];
        }
    }
};

// Four 8 x 8 matrices of a tile, turned as they are wanted.
FN void load_matrices(u32 (&r)[4], const u16* from, bool turned) {
    u32 address = (u32)__cvta_generic_to_shared(from);
    if (turned) {
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
            : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(address));
    } else {
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
            : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(address));
    }
}
FN void multiply(f32 (&c)[4], const u32 (&a)[4], u32 b0, u32 b1) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32." HALF "." HALF ".f32 "
        "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

extern "C" __global__ void __launch_bounds__(256) tensor(
    const __grid_constant__ Nest<u64, 3> batch, const Product p, const u16* a, const u16* b, S* c) {
    __shared__ __align__(16) HalfTile left, right;
    u64 start[3];
    locate(batch, (u64)(p.first + blockIdx.y), start);
    u32 row, column;
    tile_of<8>(blockIdx.x, (p.m + SIDE - 1) / SIDE, (p.n + SIDE - 1) / SIDE, row, column);
    row *= SIDE;
    column *= SIDE;
    const u16* from_a = a + start[0] + row * p.a.row;
    const u16* from_b = b + start[1] + column * p.b.column;
    bool a_along = p.a.column == 1, b_along = p.b.row == 1 && p.b.column != 1;
    i64 a_rows = a_along ? p.a.row : p.a.column, b_rows = b_along ? p.b.column : p.b.row;
    bool a_whole = (a_along || p.a.row == 1) && (u64)from_a % 16 == 0 && a_rows % 8 == 0;
    bool b_whole = (b_along || p.b.column == 1) && (u64)from_b % 16 == 0 && b_rows % 8 == 0;
    int rows = p.m - row, columns = p.n - column;
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, y = warp / 4 * 64, x = warp % 4 * 32;
    int eight = lane / 8, in_eight = lane % 8;

    f32 sum[4][4][4];
#pragma unroll
    for (int i = 0; i < 64; i++) sum[i / 16][i / 4 % 4][i % 4] = 0;
    HalfOwn next_a, next_b;
    next_a.fetch(from_a, p.a.row, p.a.column, a_along, a_whole, rows, p.k);
    next_b.fetch(from_b, p.b.column, p.b.row, b_along, b_whole, columns, p.k);
    for (u32 k = 0; k < p.k; k += DEEP) {
        next_a.keep(left, a_along);
        next_b.keep(right, b_along);
        __syncthreads();
        if (k + DEEP < p.k) {
            from_a += DEEP * p.a.column;
            from_b += DEEP * p.b.row;
            next_a.fetch(from_a, p.a.row, p.a.column, a_along, a_whole, rows, p.k - k - DEEP);
            next_b.fetch(from_b, p.b.column, p.b.row, b_along, b_whole, columns, p.k - k - DEEP);
        }
#pragma unroll
        for (int d = 0; d < DEEP; d += 16) {
            u32 u[4][4], v[2][4];
#pragma unroll
            for (int i = 0; i < 4; i++) {
                int r = y + i * 16 + eight % 2 * 8, e = d + eight / 2 * 8;
                load_matrices(u[i], a_along ? left.at(r + in_eight, e, true) : left.at(r, e + in_eight, false), !a_along);
            }
#pragma unroll
            for (int j = 0; j < 2; j++) {
                int r = x + j * 16 + eight / 2 * 8, e = d + eight % 2 * 8;
                load_matrices(v[j], b_along ? right.at(r + in_eight, e, true) : right.at(r, e + in_eight, false), !b_along);
            }
#pragma unroll
            for (int i = 0; i < 4; i++)
#pragma unroll
                for (int j = 0; j < 4; j++) multiply(sum[i][j], u[i], v[j / 2][j % 2 * 2], v[j / 2][j % 2 * 2 + 1]);
        }
        __syncthreads();
    }
    S* to = c + start[2];
#pragma unroll
    for (int i = 0; i < 4; i++)
#pragma unroll
        for (int j = 0; j < 4; j++)
#pragma unroll
            for (int e = 0; e < 4; e++) {
                u32 r = row + y + i * 16 + lane / 4 + e / 2 * 8, q = column + x + j * 8 + lane % 4 * 2 + e % 2;
                if (r < p.m && q < p.n) to[r * p.c.row + q * p.c.column] = leave(sum[i][j][e]);
            }
}
