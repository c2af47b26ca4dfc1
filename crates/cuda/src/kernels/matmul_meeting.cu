// How blocks that all run at once add what each of them has of 64 x 64 results: a block gives all others a run
// of its sums each, through slots in memory, and adds what it is given in the order of the pieces. A slot without a
// number holds bits that no sum has, so that numbers need no flag and no order; whoever takes one leaves
// such bits behind, for the next launch. Declared before, with `matmul_tiles.cu`: GROUPS.

#define FOURS (SIDE * SIDE / 4) // results in fours, of which a thread has eight
#define RUNS (SIDE * SIDE / 32) // and in runs of 32
#define EMPTY 0xffffffffu       // a NaN that arithmetic never makes; what a meeting place is filled with

// The row and the column of a number of a four, as the tensor cores leave them.
FN void place_of(u32 four, u32 number, u32& row, u32& column) {
    u32 thread = four % 128;
    row = thread / 32 * 16 + thread % 32 / 4 + number / 2 * 8;
    column = four / 128 * 8 + thread % 4 * 2 + number % 2;
}
FN bool is_empty(const Pack<f32, 4>& x) {
    return (__float_as_uint(x.at[0]) == EMPTY) | (__float_as_uint(x.at[1]) == EMPTY) |
        (__float_as_uint(x.at[2]) == EMPTY) | (__float_as_uint(x.at[3]) == EMPTY);
}
// Says that this block has given, and waits until all have said so. That is a hint which nothing but speed
// depends on, and needs no fence: to look into the slots meanwhile would keep others from their operands. The counter is
// zero, or what a meeting place is filled with, before and after.
FN void arrive(u32* counter) {
    if (threadIdx.x == 0) {
        u32 seen, most = gridDim.x * gridDim.y * gridDim.z - 1;
        asm volatile("atom.dec.relaxed.gpu.global.u32 %0, [%1], %2;" : "=r"(seen) : "l"(counter), "r"(most) : "memory");
        if (seen != 1 && most > 0)
            do asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(counter) : "memory"); while (seen != 0);
    }
    __syncthreads();
}

// The slots of a tile: for each run a row of 32 for each piece.
struct Slots {
    f32* first;
    u32 pieces;

    __device__ __forceinline__ void put(u32 four, u32 piece, Pack<f32, 4> x) const {
#pragma unroll
        for (int e = 0; e < 4; e++) if (__float_as_uint(x.at[e]) == EMPTY) x.at[e] = __uint_as_float(0x7fffffff);
        asm volatile("st.relaxed.gpu.global.v4.f32 [%0], {%1, %2, %3, %4};"
            ::"l"(first + ((u64)(four / 8) * pieces + piece) * 32 + four % 8 * 4), "f"(x.at[0]), "f"(x.at[1]), "f"(x.at[2]), "f"(x.at[3]) : "memory");
    }
    FN Pack<f32, 4> look(const f32* from) {
        Pack<f32, 4> x;
        asm volatile("ld.relaxed.gpu.global.v4.f32 {%0, %1, %2, %3}, [%4];"
            : "=f"(x.at[0]), "=f"(x.at[1]), "=f"(x.at[2]), "=f"(x.at[3]) : "l"(from) : "memory");
        return x;
    }
    FN void clear(f32* at) {
        asm volatile("st.relaxed.gpu.global.v4.u32 [%0], {%1, %1, %1, %1};" ::"l"(at), "r"(EMPTY) : "memory");
    }
    // The sums of a run, one in each lane of the first warp. Eight lanes have a piece; `sums` is shared memory for a
    // run of each warp.
    __device__ __forceinline__ f32 sum(u32 run, f32* sums) const {
        const u32 ROUND = 16 * GROUPS, AHEAD = 3; // pieces at once, and how often before the first is used
        u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32;
        f32 total[4] = {};
#pragma unroll 1
        for (u32 piece = threadIdx.x / 8; piece < pieces; piece += ROUND * AHEAD) {
            f32* here = first + ((u64)run * pieces + piece) * 32 + lane % 8 * 4;
            Pack<f32, 4> given[AHEAD];
#pragma unroll
            for (int k = 0; k < AHEAD; k++) {
                given[k] = {0, 0, 0, 0};
                if (piece + k * ROUND < pieces) given[k] = look(here + k * ROUND * 32);
            }
#pragma unroll
            for (int k = 0; k < AHEAD; k++) {
                while (is_empty(given[k])) given[k] = look(here + k * ROUND * 32);
                if (piece + k * ROUND < pieces) clear(here + k * ROUND * 32);
#pragma unroll
                for (int e = 0; e < 4; e++) total[e] += given[k].at[e];
            }
        }
        __syncwarp();
#pragma unroll
        for (int e = 0; e < 4; e++) {
            total[e] += __shfl_down_sync(~0u, total[e], 16);
            total[e] += __shfl_down_sync(~0u, total[e], 8);
        }
        __syncthreads();
        if (lane < 8) *(Pack<f32, 4>*)(sums + warp * 32 + lane * 4) = {total[0], total[1], total[2], total[3]};
        __syncthreads();
        f32 all = 0;
        if (warp == 0)
#pragma unroll
            for (int k = 0; k < 4 * GROUPS; k++) all += sums[k * 32 + lane];
        return all;
    }
};
