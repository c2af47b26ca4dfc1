// What products of matrices with any strides share. Declared before: S, the element; A, what is
// accumulated in.

FN f32 mac(f32 a, f32 b, f32 sum) { return fma(a, b, sum); }
FN f64 mac(f64 a, f64 b, f64 sum) { return fma(a, b, sum); }
FN u32 mac(u32 a, u32 b, u32 sum) { return a * b + sum; }
FN u64 mac(u64 a, u64 b, u64 sum) { return a * b + sum; }
FN bool mac(bool a, bool b, bool sum) { return sum || (a && b); }
template <class T> FN complex<T> mac(complex<T> a, complex<T> b, complex<T> sum) {
    return make(fma(a.re, b.re, fma(-a.im, b.im, sum.re)), fma(a.re, b.im, fma(a.im, b.re, sum.im)));
}
template <class T> FN T both(T a, T b) { return a + b; }
FN bool both(bool a, bool b) { return a || b; }
template <class T> FN complex<T> both(complex<T> a, complex<T> b) { return make(a.re + b.re, a.im + b.im); }

// One matrix in memory: steps along its rows and columns.
struct Matrix { i64 row, column; };

struct Product {
    u32 m, n, k;
    u32 piece, pieces;  // of k, where it is cut
    u32 first;          // of the batches that the grid's last direction counts
    Matrix a, b, c;
};

// The tile of the result that number n of a grid stands for. Blocks that run together share rows and
// columns: `HIGH` rows of tiles at a time.
template <int HIGH> FN void tile_of(u32 number, u32 rows, u32 columns, u32& row, u32& column) {
    u32 band = number / (HIGH * columns) * HIGH, in_band = number % (HIGH * columns);
    u32 high = min(rows - band, HIGH);
    row = band + in_band % high;
    column = in_band / high;
}

// The sum of pieces that lie so far apart. SHARE of the block's 8 warps have the same elements: each
// adds every SHARE-th piece in order, and the first adds theirs. The result is that one's.
template <u32 SHARE> FN A sum_pieces(const A* from, u64 apart, u32 pieces, bool there) {
    const u32 EACH = 256 / SHARE;
    __shared__ __align__(16) unsigned char memory[256 * sizeof(A)];
    A* sums = (A*)memory;
    A sum = A{};
    // Several on their way at once; none is as good as zero.
    const int AHEAD = SHARE > 1 ? 16 : 8;
    for (u32 first = threadIdx.x / EACH; there && first < pieces; first += SHARE * AHEAD) {
        A some[AHEAD];
#pragma unroll
        for (int q = 0; q < AHEAD; q++) {
            u32 piece = first + SHARE * q;
            some[q] = piece < pieces ? from[piece * apart] : A{};
        }
#pragma unroll
        for (int q = 0; q < AHEAD; q++) sum = both(sum, some[q]);
    }
    if (SHARE == 1) return sum;
    sums[threadIdx.x] = sum;
    __syncthreads();
    for (u32 other = 1; other < SHARE && threadIdx.x < EACH; other++) sum = both(sum, sums[other * EACH + threadIdx.x]);
    return sum;
}
