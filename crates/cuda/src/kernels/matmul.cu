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

// The sum of pieces that lie so far apart, one element for each lane of 8 warps: each warp adds every
// eighth in order, the first adds theirs. The result is the first warp's.
FN A sum_pieces(const A* from, u64 apart, u32 pieces, bool there) {
    __shared__ __align__(16) unsigned char memory[256 * sizeof(A)];
    A* sums = (A*)memory;
    A sum = A{};
    if (there) {
#pragma unroll 16
        for (u32 piece = threadIdx.x / 32; piece < pieces; piece += 8) sum = both(sum, from[piece * apart]);
    }
    sums[threadIdx.x] = sum;
    __syncthreads();
    for (int warp = 1; warp < 8 && threadIdx.x < 32; warp++) sum = both(sum, sums[warp * 32 + threadIdx.x]);
    return sum;
}
