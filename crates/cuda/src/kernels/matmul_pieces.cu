// Sums of products that were cut along k: the pieces lie as dense matrices, and are added in order.
// Declared before, with `matmul.cu`: S.

// Few pieces are added by a thread, many by 8 warps together.
template <u32 SHARE> FN void add_pieces(const Nest<u64, 3>& batch, const Product& p, const S* partial, S* c) {
    const u32 EACH = 256 / SHARE;
    u64 number = (u64)blockIdx.x * EACH + threadIdx.x % EACH, each = (u64)p.m * p.n;
    S sum = sum_pieces<SHARE>(partial + blockIdx.y * p.pieces * each + number, each, p.pieces, number < each);
    if (number >= each || threadIdx.x >= EACH) return;
    u64 at[3];
    locate(batch, (u64)(p.first + blockIdx.y), at);
    c[at[2] + number / p.n * p.c.row + number % p.n * p.c.column] = sum;
}
#define PIECES(name, SHARE) \
    extern "C" __global__ void __launch_bounds__(256) name( \
        const __grid_constant__ Nest<u64, 3> batch, const Product p, const S* partial, S* c) { \
        add_pieces<SHARE>(batch, p, partial, c); \
    }
PIECES(few_pieces, 1)
PIECES(many_pieces, 8)
