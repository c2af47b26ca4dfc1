// How threads go over a range of j where pairs are few: tile by tile, one pair after the other, so that there is
// little to compile. Part of `pairs.cu`, whose head tells the rest. Rows of i are in shared memory: vectors are loops.

enum { CHOICES = 0 };
struct Kept {
    OfI x[ROWS];
    T pad[1 + sizeof(OfI) / sizeof(T) % 2]; // An odd length, so that rows begin in different banks.
};
#define OWN_ROWS(x) __shared__ Kept kept[THREADS]; OfI (&x)[ROWS] = kept[threadIdx.x].x

FN bool go_over(const Inputs& in, const u64 (&at)[OPERANDS], const Once& p, const Shape&, const Stretch& own,
    const OfI (&x)[ROWS], State (&s)[ROWS], const Choice&) {
    __shared__ OfJ tile[TILE];
    const int lane = LANES > 1 ? threadIdx.x % LANES : 0;
    u32 runs = 0;
#pragma unroll 1
    for (i32 j = 0; j < own.count; j += TILE) {
        int here = own.count - j < TILE ? own.count - j : TILE;
        __syncthreads();
        bring_long(in, at, own.begin + j, here, tile);
        __syncthreads();
#pragma unroll 1
        for (int t = threadIdx.x; t < here; t += THREADS) of_j(in, at, p, own.begin + j + t, tile[t]);
        __syncthreads();
        s[0].begin(j + here);
#pragma unroll 1
        for (int k = lane; k - lane < here; k += LANES) fold<1>(p, x[0], tile + k, s[0], j + k);
        s[0].carry(++runs);
    }
    return true;
}
