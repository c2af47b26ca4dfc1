// What kernels of long vectors share, by threads and by teams. Some components of a tile's vectors come to shared memory
// at once, in each of PASSES; their LENGTHS are arguments. Declared before, beside the sections: components of the vectors that
// pairs are made of in a pass, of which there may be several (`long_i`, `long_j`, `long_once`; VECTORS_I, VECTORS_J,
// VECTORS_ONCE), and how many there are (`depth_of`), whether those of j need its numbers (SCALED_J); what they are folded to,
// the numbers of a pair (`Numbers`, `fold_along`), whether that or `long_i` needs numbers of i (OF_ROWS), and whether zeros
// change nothing (VANISHES); and what else is summed along vectors of j, SUMS_OF_J numbers (`sum_of_j`, of those of one
// length).

// The numbers of a tile's j, beside their vectors. A warp sums along those of a j, so that neighbours read neighbours.
FN void bring(const Inputs& in, const u64 (&at)[OPERANDS], const Once& p, i64 first, int here, OfJ* tile) {
    __shared__ T of_vectors[TILE][SUMS_OF_J + 1];
    if constexpr (SUMS_OF_J > 0) {
        for (int t = threadIdx.x / 32; t < here; t += THREADS / 32) {
            T sums[SUMS_OF_J + 1];
            EACH(q, SUMS_OF_J) sums[q] = 0;
            EACH(length, LENGTHS) PRAGMA(unroll 4) for (u32 k = threadIdx.x % 32; k < DEPTH(length); k += 32) {
                sum_of_j(in, at, p, first + t, k, length, sums);
            }
            EACH(q, SUMS_OF_J) {
                EACH(h, 5) sums[q] += __shfl_xor_sync(~0u, sums[q], 16 >> h);
                if (threadIdx.x % 32 == 0) of_vectors[t][q] = sums[q];
            }
        }
        __syncthreads();
    }
    for (int t = threadIdx.x; t < here; t += THREADS) of_j(in, at, p, first + t, of_vectors[t], tile[t]);
    if constexpr (SCALED_J) __syncthreads();
}
