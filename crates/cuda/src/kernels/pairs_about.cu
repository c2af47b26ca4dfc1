// The centre that the points of an expanded square are taken about, where threads compute it: near the middle of the j
// of a batch. Any would be right, and a good one keeps norms small. Declared before: POINT, the components of a point;
// `sample`, one of them of a j; ERROR and ERROR_ABOUT, what bounds the error of a square in units of the largest norm, about
// the origin and about another centre, for which numbers are rounded once more.

#define FINDERS 8 // threads that find a component
#define MOST_WARPS 8

FN T middle(T a, T b, T c) { return fmax(fmin(a, b), fmin(fmax(a, b), c)); }

// All blocks of a call find the same bits. A component is the mean of the middle ones of every three samples, so that
// single points far away do not count, nor numbers that are none; and 0 where that is near, beside how far these are
// apart, or is all that can be had.
FN void find_centre(const Inputs& in, const u64 (&at)[OPERANDS], Once& p, const Shape& shape) {
    __shared__ T centre[POINT + MOST_WARPS];
    bool moved = false;
#pragma unroll 1
    for (u32 from = 0; from < POINT; from += blockDim.x / FINDERS) {
        u32 own = from + threadIdx.x / FINDERS, k = own < POINT ? own : POINT - 1;
        T some[6], sum = 0, squares = 0;
        // Multiples of the golden ratio: spread evenly, and in step with nothing.
        EACH(q, 6) {
            u64 turn = (threadIdx.x % FINDERS * 6 + q + 1) * 0x9e3779b97f4a7c15ull;
            some[q] = sample(in, at, p, (i64)__umul64hi(turn, (u64)shape.n), k);
        }
        EACH(q, 2) {
            T one = middle(some[3 * q], some[3 * q + 1], some[3 * q + 2]);
            sum += one;
            squares = fma(one, one, squares);
        }
        for (int q = FINDERS / 2; q > 0; q /= 2) {
            sum += __shfl_xor_sync(~0u, sum, q);
            squares += __shfl_xor_sync(~0u, squares, q);
        }
        // Squared, more than the variance of what it is the mean of: less could be chance, and the origin costs no rounding.
        T mean = sum / (2 * FINDERS);
        bool far = 2 * mean * sum > squares;
        if (threadIdx.x % FINDERS == 0 && own < POINT) centre[own] = far ? mean : 0;
        moved = moved || far;
    }
    p.centre = centre;
    // Behind the centre, for each warp by itself: loops over pairs need their registers.
    T share = __syncthreads_or(moved) ? (T)ERROR / ERROR_ABOUT : 1;
    if (threadIdx.x % 32 == 0) centre[POINT + threadIdx.x / 32] = share;
    __syncwarp();
}

// What of the limit of norms there is about this centre.
FN T share(const Once& p) { return p.centre[POINT + threadIdx.x / 32]; }
