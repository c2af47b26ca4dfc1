// What every kernel begins with in place of CUDA's own declarations: the built-in variables and functions, and one
// function for each PTX instruction that is emulated, to which `compiler.cpp` turns inline assembly. No header is
// included, as NVRTC has none, so that kernels are read quickly and cannot use what a card does not have. The last
// line opens a namespace without a name: two kernels' libraries in one process share nothing.

#include "machine.h"

extern "C" {
__attribute__((visibility("hidden"))) emulated::Machine emulated_machine;
__attribute__((visibility("hidden"))) extern unsigned char __start_emulated_shared[], __stop_emulated_shared[];
// What `driver.cpp` finds in the library.
emulated::Machine* emulated_door_machine = &emulated_machine;
unsigned char* emulated_door_shared[2] = {__start_emulated_shared, __stop_emulated_shared};
// Shared memory whose size is said by a launch.
__attribute__((aligned(128))) unsigned char emulated_door_dynamic[emulated::MOST_DYNAMIC];
}
#define threadIdx (emulated_machine.thread)
#define blockIdx (emulated_machine.block)
#define blockDim (emulated_machine.threads)
#define gridDim (emulated_machine.blocks)
#define warpSize 32

// `__shared__` and `__global__` are words that `compiler.cpp` replaces.
#define __device__
#define __host__
#define __constant__
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __grid_constant__
#define __align__(n) __attribute__((aligned(n)))
// As an attribute, since g++ wants `alignas` before `static`.
#define alignas(n) __attribute__((aligned(n)))

typedef __SIZE_TYPE__ size_t;
typedef unsigned long long emulated_u64;

// Numbers as bits.
template <class To, class From> static inline To emulated_bits(From from) {
    static_assert(sizeof(To) == sizeof(From), "of one size");
    To to;
    __builtin_memcpy(&to, &from, sizeof(to));
    return to;
}
static inline unsigned __float_as_uint(float x) { return emulated_bits<unsigned>(x); }
static inline int __float_as_int(float x) { return emulated_bits<int>(x); }
static inline float __uint_as_float(unsigned x) { return emulated_bits<float>(x); }
static inline float __int_as_float(int x) { return emulated_bits<float>(x); }
static inline long long __double_as_longlong(double x) { return emulated_bits<long long>(x); }
static inline double __longlong_as_double(long long x) { return emulated_bits<double>(x); }
static inline int __double2loint(double x) { return (int)__double_as_longlong(x); }
static inline int __double2hiint(double x) { return (int)(__double_as_longlong(x) >> 32); }
static inline double __hiloint2double(int high, int low) {
    return __longlong_as_double((long long)((emulated_u64)(unsigned)high << 32 | (unsigned)low));
}

// Integers.
static inline int __popc(unsigned x) { return __builtin_popcount(x); }
static inline int __popcll(emulated_u64 x) { return __builtin_popcountll(x); }
static inline int __ffs(int x) { return __builtin_ffs(x); }
static inline int __clz(int x) { return x == 0 ? 32 : __builtin_clz(x); }
static inline int __clzll(long long x) { return x == 0 ? 64 : __builtin_clzll(x); }
static inline unsigned __brev(unsigned x) {
    unsigned y = 0;
    for (int k = 0; k < 32; k++) y |= (x >> k & 1) << (31 - k);
    return y;
}
static inline unsigned __umulhi(unsigned a, unsigned b) { return (unsigned)((emulated_u64)a * b >> 32); }
static inline emulated_u64 __umul64hi(emulated_u64 a, emulated_u64 b) {
    return (emulated_u64)((unsigned __int128)a * b >> 64);
}
#define EMULATED_BOTH(T) \
    static inline T min(T a, T b) { return b < a ? b : a; } \
    static inline T max(T a, T b) { return a < b ? b : a; }
EMULATED_BOTH(int) EMULATED_BOTH(unsigned) EMULATED_BOTH(long) EMULATED_BOTH(unsigned long)
EMULATED_BOTH(long long) EMULATED_BOTH(emulated_u64)
static inline unsigned min(unsigned a, int b) { return min(a, (unsigned)b); }
static inline unsigned min(int a, unsigned b) { return min((unsigned)a, b); }
static inline unsigned max(unsigned a, int b) { return max(a, (unsigned)b); }
static inline unsigned max(int a, unsigned b) { return max((unsigned)a, b); }

// Mathematics: the names of C for both types.
#define EMULATED_1(name) \
    extern "C" double name(double) noexcept; extern "C" float name##f(float) noexcept; \
    static inline float name(float x) { return __builtin_##name##f(x); }
#define EMULATED_2(name) \
    extern "C" double name(double, double) noexcept; extern "C" float name##f(float, float) noexcept; \
    static inline float name(float x, float y) { return __builtin_##name##f(x, y); }
EMULATED_1(exp) EMULATED_1(exp2) EMULATED_1(expm1) EMULATED_1(log) EMULATED_1(log1p) EMULATED_1(log2) EMULATED_1(log10)
EMULATED_1(sin) EMULATED_1(cos) EMULATED_1(tan) EMULATED_1(asin) EMULATED_1(acos) EMULATED_1(atan)
EMULATED_1(sinh) EMULATED_1(cosh) EMULATED_1(tanh) EMULATED_1(asinh) EMULATED_1(acosh) EMULATED_1(atanh)
EMULATED_1(cbrt) EMULATED_1(erf) EMULATED_1(erfc) EMULATED_1(lgamma) EMULATED_1(tgamma) EMULATED_1(sqrt)
EMULATED_1(floor) EMULATED_1(ceil) EMULATED_1(trunc) EMULATED_1(rint) EMULATED_1(round) EMULATED_1(fabs)
EMULATED_2(atan2) EMULATED_2(hypot) EMULATED_2(pow) EMULATED_2(fmod) EMULATED_2(remainder) EMULATED_2(copysign)
EMULATED_2(nextafter) EMULATED_2(fmin) EMULATED_2(fmax)
static inline double fma(double a, double b, double c) { return __builtin_fma(a, b, c); }
static inline float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
static inline float fmaf(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
static inline double ldexp(double x, int n) { return __builtin_ldexp(x, n); }
static inline float ldexp(float x, int n) { return __builtin_ldexpf(x, n); }
static inline double scalbn(double x, int n) { return __builtin_scalbn(x, n); }
static inline float scalbn(float x, int n) { return __builtin_scalbnf(x, n); }
static inline int ilogb(double x) { return __builtin_ilogb(x); }
static inline int ilogb(float x) { return __builtin_ilogbf(x); }
static inline double rsqrt(double x) { return 1 / __builtin_sqrt(x); }
static inline float rsqrt(float x) { return (float)(1 / __builtin_sqrt((double)x)); }
static inline void sincos(double x, double* s, double* c) { *s = __builtin_sin(x); *c = __builtin_cos(x); }
static inline void sincos(float x, float* s, float* c) { *s = __builtin_sinf(x); *c = __builtin_cosf(x); }
static inline bool isnan(double x) { return __builtin_isnan(x); }
static inline bool isinf(double x) { return __builtin_isinf(x); }
static inline bool isfinite(double x) { return __builtin_isfinite(x); }
static inline double __drcp_rn(double x) { return 1 / x; }
// A card's quick quotient is zero where the divisor is above 2^126.
static inline float __fdividef(float a, float b) {
    float size = __builtin_fabsf(b);
    return size > 0x1p126f && size < __builtin_inff() ? a * 0 : a / b;
}
extern "C" void* memcpy(void*, const void*, size_t) noexcept;
extern "C" void* memset(void*, int, size_t) noexcept;

// Threads that meet.
static inline void __syncthreads() { emulated_machine.barrier(false); }
static inline int __syncthreads_or(int word) { return emulated_machine.barrier(word != 0) != 0; }
static inline int __syncthreads_and(int word) { return emulated_machine.barrier(word == 0) == 0; }
static inline int __syncthreads_count(int word) { return (int)emulated_machine.barrier(word != 0); }
static inline void __threadfence() {}
static inline void __threadfence_block() {}
static inline emulated_u64 emulated_meet(emulated::Meeting what, unsigned mask, emulated_u64 value, unsigned lane = 0) {
    return emulated_machine.meet(what, mask, value, lane);
}
static inline void __syncwarp(unsigned mask = ~0u) { emulated_meet(emulated::SYNC, mask, 0); }
static inline int __any_sync(unsigned mask, int word) { return (int)emulated_meet(emulated::ANY, mask, word != 0); }
static inline int __all_sync(unsigned mask, int word) { return (int)emulated_meet(emulated::ALL, mask, word != 0); }
static inline unsigned __ballot_sync(unsigned mask, int word) {
    return (unsigned)emulated_meet(emulated::BALLOT, mask, word != 0);
}
static inline unsigned __reduce_or_sync(unsigned mask, unsigned x) { return (unsigned)emulated_meet(emulated::REDUCE_OR, mask, x); }
static inline unsigned __reduce_and_sync(unsigned mask, unsigned x) { return (unsigned)emulated_meet(emulated::REDUCE_AND, mask, x); }
static inline unsigned __reduce_add_sync(unsigned mask, unsigned x) { return (unsigned)emulated_meet(emulated::REDUCE_ADD, mask, x); }
static inline unsigned __reduce_max_sync(unsigned mask, unsigned x) { return (unsigned)emulated_meet(emulated::REDUCE_MAX, mask, x); }
static inline unsigned __reduce_min_sync(unsigned mask, unsigned x) { return (unsigned)emulated_meet(emulated::REDUCE_MIN, mask, x); }
// Of a lane that is outside of the section, a thread's own value.
template <class T> static inline T emulated_shuffle(unsigned mask, T value, unsigned lane) {
    static_assert(sizeof(T) == 4 || sizeof(T) == 8, "what a card can shuffle");
    emulated_u64 word = 0;
    __builtin_memcpy(&word, &value, sizeof(T));
    word = emulated_meet(emulated::SHUFFLE, mask, word, lane);
    __builtin_memcpy(&value, &word, sizeof(T));
    return value;
}
template <class T> static inline T __shfl_sync(unsigned mask, T value, int from, int width = 32) {
    unsigned own = threadIdx.x % 32;
    return emulated_shuffle(mask, value, own / width * width + (unsigned)from % width);
}
template <class T> static inline T __shfl_xor_sync(unsigned mask, T value, int bits, int width = 32) {
    unsigned own = threadIdx.x % 32, from = own ^ bits;
    return emulated_shuffle(mask, value, from / width <= own / width ? from : own);
}
template <class T> static inline T __shfl_down_sync(unsigned mask, T value, unsigned by, int width = 32) {
    unsigned own = threadIdx.x % 32, from = own + by;
    return emulated_shuffle(mask, value, from / width == own / width ? from : own);
}
template <class T> static inline T __shfl_up_sync(unsigned mask, T value, unsigned by, int width = 32) {
    unsigned own = threadIdx.x % 32;
    return emulated_shuffle(mask, value, own % width >= by ? own - by : own);
}

// One thread runs at a time, so that every step is atomic.
template <class T, class V> static inline T atomicAdd(T* at, V v) { T old = *at; *at = old + v; return old; }
template <class T, class V> static inline T atomicSub(T* at, V v) { T old = *at; *at = old - v; return old; }
template <class T, class V> static inline T atomicMax(T* at, V v) { T old = *at; if (old < (T)v) *at = v; return old; }
template <class T, class V> static inline T atomicMin(T* at, V v) { T old = *at; if ((T)v < old) *at = v; return old; }
template <class T, class V> static inline T atomicOr(T* at, V v) { T old = *at; *at = old | v; return old; }
template <class T, class V> static inline T atomicAnd(T* at, V v) { T old = *at; *at = old & v; return old; }
template <class T, class V> static inline T atomicExch(T* at, V v) { T old = *at; *at = v; return old; }
template <class T, class V, class W> static inline T atomicCAS(T* at, V expected, W v) {
    T old = *at;
    if (old == (T)expected) *at = v;
    return old;
}
template <class T> static inline T __ldg(const T* at) { return *at; }

// Addresses in shared memory are counted from its beginning, so that 32 bits are enough for them, and the 18 that tensor
// cores know: first what kernels declare, then what launches ask for.
static inline size_t emulated_declared() { return (__stop_emulated_shared - __start_emulated_shared + 127) / 128 * 128; }
static inline unsigned char* emulated_shared_at(unsigned at) {
    return at < emulated_declared() ? __start_emulated_shared + at : emulated_door_dynamic + (at - emulated_declared());
}
static inline size_t __cvta_generic_to_shared(const void* p) {
    const unsigned char* at = (const unsigned char*)p;
    bool declared = at >= __start_emulated_shared && at < __stop_emulated_shared;
    return declared ? at - __start_emulated_shared : emulated_declared() + (at - emulated_door_dynamic);
}

// PTX: the operands in the order of the instruction. What a card only approximates is computed as well as it can be.
static inline float emulated_flush(float x) { return __builtin_fabsf(x) < 0x1p-126f ? __builtin_copysignf(0, x) : x; }
static inline void ptx_ex2_approx_ftz_f32(float& y, float a) { y = emulated_flush(__builtin_exp2f(emulated_flush(a))); }
static inline void ptx_rcp_approx_f32(float& y, float a) { y = 1 / a; }
static inline void ptx_rsqrt_approx_f32(float& y, float a) { y = rsqrt(a); }
static inline void ptx_sqrt_approx_f32(float& y, float a) { y = __builtin_sqrtf(a); }
static inline void ptx_sqrt_approx_ftz_f32(float& y, float a) { y = emulated_flush(__builtin_sqrtf(emulated_flush(a))); }
// Of numbers that are not, the card's own NaN; of zeros, the minus is below.
static inline void ptx_max_NaN_f32(float& y, float a, float b) {
    if (a != a || b != b) y = __int_as_float(0x7fffffff);
    else y = a > b || (a == b && !__builtin_signbit(a)) ? a : b;
}
static inline void ptx_min_NaN_f32(float& y, float a, float b) {
    if (a != a || b != b) y = __int_as_float(0x7fffffff);
    else y = a < b || (a == b && __builtin_signbit(a)) ? a : b;
}
typedef short emulated_8_halves __attribute__((vector_size(16)));
typedef float emulated_4_floats __attribute__((vector_size(16)));
static inline void ptx_cvt_f32_f16(float& y, unsigned short x) {
    y = __builtin_ia32_vcvtph2ps((emulated_8_halves){(short)x})[0];
}
static inline void ptx_cvt_rn_f16_f32(unsigned short& y, float x) {
    y = x != x ? 0x7fff : (unsigned short)__builtin_ia32_vcvtps2ph((emulated_4_floats){x}, 0)[0];
}
template <class T> static inline void ptx_atom_dec_acq_rel_gpu_global_u32(unsigned& old, T* at, unsigned most) {
    old = *at;
    *at = old == 0 || old > most ? most : old - 1;
}
template <class T> static inline void ptx_st_relaxed_gpu_u64(T* at, emulated_u64 x) { memcpy(at, &x, 8); }
template <class T> static inline void ptx_ld_relaxed_gpu_u64(emulated_u64& x, const T* at) { memcpy(&x, at, 8); }
template <class T> static inline void ptx_st_release_gpu_u32(T* at, unsigned x) { memcpy(at, &x, 4); }
template <class T> static inline void ptx_ld_acquire_gpu_u32(unsigned& x, const T* at) { memcpy(&x, at, 4); }
template <class T> static inline void ptx_st_global_cs_v4_u32(T* at, unsigned a, unsigned b, unsigned c, unsigned d) {
    unsigned all[4] = {a, b, c, d};
    memcpy(at, all, 16);
}
static inline void ptx_cp_async_wait_all() {}
static inline void ptx_cp_async_commit_group() {}
static inline void ptx_cp_async_wait_group(int) {}
// Of the bytes, those that are inside come from memory, and the others are zeros.
static inline void ptx_cp_async_cg_shared_global(unsigned to, const void* from, int bytes, int inside) {
    memset(emulated_shared_at(to), 0, bytes);
    memcpy(emulated_shared_at(to), from, inside);
}
static inline void ptx_cp_async_ca_shared_global(unsigned to, const void* from, int bytes, int inside) {
    ptx_cp_async_cg_shared_global(to, from, bytes, inside);
}
static inline void ptx_cp_async_cg_shared_global(unsigned to, const void* from, int bytes) {
    memcpy(emulated_shared_at(to), from, bytes);
}
static inline void ptx_cp_async_ca_shared_global(unsigned to, const void* from, int bytes) {
    memcpy(emulated_shared_at(to), from, bytes);
}

// Products of small matrices by a warp. Of c and a, lane 4 g + t has row g, or every eighth after it; of b, column g.
// Sums are rounded once, which a tensor core does not do.
struct emulated_operands { const void *a, *b; };
static emulated_operands emulated_posted[1024];
// What the lanes bring, while `f` looks at it.
template <class F> static inline void emulated_together(const void* a, const void* b, F f) {
    emulated_posted[threadIdx.x] = {a, b};
    __syncwarp();
    f(emulated_posted + threadIdx.x / 32 * 32, threadIdx.x % 32 / 4, threadIdx.x % 4);
    __syncwarp();
}
static inline void ptx_mma_sync_aligned_m8n8k4_row_col_f64_f64_f64_f64(double& d0, double& d1, double a, double b, double c0, double c1) {
    double c[2] = {c0, c1};
    emulated_together(&a, &b, [&](emulated_operands* all, int g, int t) {
        for (int e = 0; e < 2; e++) for (int k = 0; k < 4; k++) {
            c[e] = fma(*(const double*)all[4 * g + k].a, *(const double*)all[4 * (2 * t + e) + k].b, c[e]);
        }
    });
    d0 = c[0], d1 = c[1];
}
// 16 rows, 8 columns: a register of a or b holds WIDE numbers, which `read` finds.
template <int WIDE, class Read> static inline void emulated_mma(float (&c)[4], const unsigned (&a)[4], const unsigned (&b)[2], Read read) {
    double sum[4] = {c[0], c[1], c[2], c[3]};
    emulated_together(a, b, [&](emulated_operands* all, int g, int t) {
        for (int e = 0; e < 4; e++) for (int q = 0; q < 2; q++) for (int k = 0; k < 4; k++) for (int w = 0; w < WIDE; w++) {
            unsigned left = ((const unsigned*)all[4 * g + k].a)[2 * q + e / 2];
            unsigned right = ((const unsigned*)all[4 * (2 * t + e % 2) + k].b)[q];
            sum[e] += (double)read(left, w) * read(right, w);
        }
    });
    for (int e = 0; e < 4; e++) c[e] = (float)sum[e];
}
// The bits of a number that a tensor core does not look at are left out.
static inline float emulated_tf32(unsigned bits, int) { return __uint_as_float(bits & 0xffffe000u); }
static inline float emulated_f16(unsigned bits, int w) { float y; ptx_cvt_f32_f16(y, (unsigned short)(bits >> 16 * w)); return y; }
static inline float emulated_bf16(unsigned bits, int w) { return __uint_as_float(bits >> 16 * w << 16); }
#define EMULATED_MMA(name, wide, read) \
    static inline void name(float& d0, float& d1, float& d2, float& d3, unsigned a0, unsigned a1, unsigned a2, unsigned a3, \
        unsigned b0, unsigned b1, float c0, float c1, float c2, float c3) { \
        float c[4] = {c0, c1, c2, c3}; \
        const unsigned a[4] = {a0, a1, a2, a3}, b[2] = {b0, b1}; \
        emulated_mma<wide>(c, a, b, read); \
        d0 = c[0], d1 = c[1], d2 = c[2], d3 = c[3]; \
    }
EMULATED_MMA(ptx_mma_sync_aligned_m16n8k8_row_col_f32_tf32_tf32_f32, 1, emulated_tf32)
EMULATED_MMA(ptx_mma_sync_aligned_m16n8k16_row_col_f32_f16_f16_f32, 2, emulated_f16)
EMULATED_MMA(ptx_mma_sync_aligned_m16n8k16_row_col_f32_bf16_bf16_f32, 2, emulated_bf16)
// Four matrices of 8 rows of 16 bytes: lane 8 m + r says where row r of matrix m is.
template <bool ACROSS> static inline void emulated_ldmatrix(unsigned& r0, unsigned& r1, unsigned& r2, unsigned& r3, unsigned at) {
    unsigned* to[4] = {&r0, &r1, &r2, &r3};
    unsigned found[4];
    const unsigned char* own = emulated_shared_at(at);
    emulated_together(own, nullptr, [&](emulated_operands* all, int g, int t) {
        for (int m = 0; m < 4; m++) {
            unsigned short pair[2];
            for (int e = 0; e < 2; e++) {
                int row = ACROSS ? 2 * t + e : g, column = ACROSS ? g : 2 * t + e;
                pair[e] = ((const unsigned short*)all[8 * m + row].a)[column];
            }
            found[m] = pair[0] | (unsigned)pair[1] << 16;
        }
    });
    for (int m = 0; m < 4; m++) *to[m] = found[m];
}
static inline void ptx_ldmatrix_sync_aligned_m8n8_x4_shared_b16(unsigned& r0, unsigned& r1, unsigned& r2, unsigned& r3, unsigned at) {
    emulated_ldmatrix<false>(r0, r1, r2, r3, at);
}
static inline void ptx_ldmatrix_sync_aligned_m8n8_x4_trans_shared_b16(unsigned& r0, unsigned& r1, unsigned& r2, unsigned& r3, unsigned at) {
    emulated_ldmatrix<true>(r0, r1, r2, r3, at);
}

// Barriers that count bytes.
static const int _ = 0; // where an instruction gives what nobody wants
static inline emulated::Counter& emulated_counter(unsigned at) {
    emulated::Counter& counter = *(emulated::Counter*)emulated_shared_at(at);
    if (at % 8 != 0) emulated_machine.refuse("a barrier lies at no multiple of 8 bytes");
    if (counter.missing == 0xffff) emulated_machine.refuse("a barrier was not initialized");
    return counter;
}
static inline void ptx_mbarrier_init_shared__cta_b64(unsigned at, unsigned count) {
    *(emulated::Counter*)emulated_shared_at(at) = {0, count, count, 0};
}
static inline void ptx_fence_mbarrier_init_release_cluster() {}
static inline void ptx_mbarrier_arrive_shared__cta_b64(int, unsigned at) {
    emulated::Counter& counter = emulated_counter(at);
    if (counter.missing == 0) emulated_machine.refuse("more threads arrive than a barrier waits for");
    counter.missing--;
    emulated::next_phase(counter);
}
static inline void ptx_mbarrier_arrive_expect_tx_shared__cta_b64(int, unsigned at, unsigned bytes) {
    emulated_counter(at).bytes += (int)bytes;
    ptx_mbarrier_arrive_shared__cta_b64(0, at);
}
static inline void ptx_mbarrier_try_wait_parity_shared__cta_b64(bool& done, unsigned at, unsigned phase) {
    emulated_machine.await(&emulated_counter(at), phase);
    done = true;
}
static inline void ptx_cp_async_bulk_shared__cluster_global_mbarrier__complete_tx__bytes(
    unsigned to, const void* from, unsigned bytes, unsigned at) {
    if (to % 16 != 0 || (size_t)from % 16 != 0 || bytes % 16 != 0) emulated_machine.refuse("bytes are copied that are no multiple of 16");
    emulated_machine.copy(emulated_shared_at(to), from, bytes, &emulated_counter(at));
}
static inline void ptx_setp_ne_b32(bool& p, unsigned a, unsigned b) { p = a != b; }
static inline void ptx_setp_eq_b32(bool& p, unsigned a, unsigned b) { p = a == b; }
static inline void ptx_setp_le_f32(bool& p, float a, float b) { p = a <= b; }
static inline void ptx_add_s32(unsigned& sum, unsigned a, unsigned b) { sum = a + b; }
static inline void ptx_st_shared_f32(unsigned at, float x) { memcpy(emulated_shared_at(at), &x, 4); }
static inline void ptx_st_shared_b32(unsigned at, unsigned x) { memcpy(emulated_shared_at(at), &x, 4); }

// Products of tiles of shared memory by a group of four warps. They are done when they are asked for, though others have
// their turns before: that all threads of the group are there, and what happens until products are waited for, is not
// checked.
static inline void ptx_wgmma_fence_sync_aligned() { emulated_machine.step_aside(); }
static inline void ptx_wgmma_commit_group_sync_aligned() {}
static inline void ptx_wgmma_wait_group_sync_aligned(int) {}
static inline void ptx_setmaxnreg_dec_sync_aligned_u32(int) {}
static inline void ptx_setmaxnreg_inc_sync_aligned_u32(int) {}
// The 32 bytes of a row from where a descriptor begins, which lie in two chunks of 16: chunks of eight rows are permuted.
static inline void emulated_row_of_tile(emulated_u64 descriptor, int row, unsigned char (&to)[32]) {
    if (descriptor >> 62 != 1) emulated_machine.refuse("rows of a tile are not of 128 bytes");
    unsigned first = (unsigned)(descriptor & 0x3fff) << 4, groups = (unsigned)(descriptor >> 32 & 0x3fff) << 4;
    for (int half = 0; half < 2; half++) {
        unsigned at = first + row / 8 * groups + row % 8 * 128 + half * 16;
        memcpy(to + half * 16, emulated_shared_at(at ^ (at >> 7 & 7) << 4), 16);
    }
}
// What an operand is: a register of the sum, or a number.
struct emulated_operand {
    float* sum;
    emulated_u64 number;
    emulated_operand(float& own) : sum(&own), number(0) {}
    emulated_operand(emulated_u64 own) : sum(nullptr), number(own) {}
    emulated_operand(unsigned own) : sum(nullptr), number(own) {}
    emulated_operand(int own) : sum(nullptr), number((emulated_u64)own) {}
    emulated_operand(bool own) : sum(nullptr), number(own) {}
};
typedef double emulated_4_doubles __attribute__((vector_size(32)));
typedef float emulated_8_floats __attribute__((vector_size(32)));
// The numbers of a row of 32 bytes, in fours.
struct emulated_halves {
    enum { FOURS = 4 };
    static void read(const unsigned char* row, emulated_4_doubles* to) {
        for (int k = 0; k < 2; k++) {
            emulated_8_halves halves;
            memcpy(&halves, row + 16 * k, 16);
            emulated_8_floats x = __builtin_ia32_vcvtph2ps256(halves);
            to[2 * k] = __builtin_convertvector(__builtin_shufflevector(x, x, 0, 1, 2, 3), emulated_4_doubles);
            to[2 * k + 1] = __builtin_convertvector(__builtin_shufflevector(x, x, 4, 5, 6, 7), emulated_4_doubles);
        }
    }
};
struct emulated_tf32s {
    enum { FOURS = 2 };
    static void read(const unsigned char* row, emulated_4_doubles* to) {
        for (int k = 0; k < 8; k++) ((double*)to)[k] = emulated_tf32(((const unsigned*)row)[k], 0);
    }
};
// Rows g and g + 8 of a warp's 16, whose numbers are `left`, times COLUMNS rows of a tile: of the sum a thread has two
// columns of every eight.
template <int COLUMNS, class Kind> static inline void emulated_multiply_tile(
    const emulated_operand* sums, const emulated_4_doubles (&left)[2][Kind::FOURS], emulated_u64 right, bool add) {
    for (int c = 0; c < COLUMNS / 8; c++) for (int e = 0; e < 2; e++) {
        unsigned char row[32];
        emulated_4_doubles numbers[Kind::FOURS];
        emulated_row_of_tile(right, c * 8 + threadIdx.x % 4 * 2 + e, row);
        Kind::read(row, numbers);
        for (int r = 0; r < 2; r++) {
            float& own = *sums[c * 4 + r * 2 + e].sum;
            emulated_4_doubles sum = {add ? own : 0};
            for (int k = 0; k < Kind::FOURS; k++) sum += left[r][k] * numbers[k];
            own = (float)((sum[0] + sum[1]) + (sum[2] + sum[3]));
        }
    }
}
// Of float16, both from shared memory: the sums; the tiles; whether to add; and four that say that nothing is turned.
template <int COLUMNS, class... Operands> static inline void emulated_wgmma_half(Operands&... of) {
    emulated_operand all[] = {emulated_operand(of)...};
    const emulated_operand* rest = all + COLUMNS / 2;
    emulated_4_doubles left[2][emulated_halves::FOURS];
    for (int r = 0; r < 2; r++) {
        unsigned char row[32];
        emulated_row_of_tile(rest[0].number, threadIdx.x / 32 % 4 * 16 + threadIdx.x % 32 / 4 + r * 8, row);
        emulated_halves::read(row, left[r]);
    }
    emulated_multiply_tile<COLUMNS, emulated_halves>(all, left, rest[1].number, rest[2].number);
}
// Of TF32, the left one from registers: the sums; four numbers; the tile; whether to add; and what follows.
template <int COLUMNS, class... Operands> static inline void emulated_wgmma_tf32(Operands&... of) {
    emulated_operand all[] = {emulated_operand(of)...};
    const emulated_operand* rest = all + COLUMNS / 2;
    const unsigned a[4] = {(unsigned)rest[0].number, (unsigned)rest[1].number, (unsigned)rest[2].number, (unsigned)rest[3].number};
    emulated_4_doubles left[2][emulated_tf32s::FOURS];
    emulated_together(a, nullptr, [&](emulated_operands* lanes, int g, int) {
        for (int r = 0; r < 2; r++) for (int k = 0; k < 8; k++) {
            left[r][k / 4][k % 4] = emulated_tf32(((const unsigned*)lanes[4 * g + k % 4].a)[k / 4 * 2 + r], 0);
        }
    });
    emulated_multiply_tile<COLUMNS, emulated_tf32s>(all, left, rest[4].number, rest[5].number);
}
#define EMULATED_WGMMA(name, kind, columns) \
    template <class... Operands> static inline void name(Operands&&... of) { emulated_wgmma_##kind<columns>(of...); }
EMULATED_WGMMA(ptx_wgmma_mma_async_sync_aligned_m64n64k16_f32_f16_f16, half, 64)
EMULATED_WGMMA(ptx_wgmma_mma_async_sync_aligned_m64n128k16_f32_f16_f16, half, 128)
EMULATED_WGMMA(ptx_wgmma_mma_async_sync_aligned_m64n8k8_f32_tf32_tf32, tf32, 8)
EMULATED_WGMMA(ptx_wgmma_mma_async_sync_aligned_m64n16k8_f32_tf32_tf32, tf32, 16)
EMULATED_WGMMA(ptx_wgmma_mma_async_sync_aligned_m64n24k8_f32_tf32_tf32, tf32, 24)
EMULATED_WGMMA(ptx_wgmma_mma_async_sync_aligned_m64n32k8_f32_tf32_tf32, tf32, 32)
EMULATED_WGMMA(ptx_wgmma_mma_async_sync_aligned_m64n40k8_f32_tf32_tf32, tf32, 40)
EMULATED_WGMMA(ptx_wgmma_mma_async_sync_aligned_m64n48k8_f32_tf32_tf32, tf32, 48)
EMULATED_WGMMA(ptx_wgmma_mma_async_sync_aligned_m64n56k8_f32_tf32_tf32, tf32, 56)
EMULATED_WGMMA(ptx_wgmma_mma_async_sync_aligned_m64n64k8_f32_tf32_tf32, tf32, 64)
EMULATED_WGMMA(ptx_wgmma_mma_async_sync_aligned_m64n72k8_f32_tf32_tf32, tf32, 72)
EMULATED_WGMMA(ptx_wgmma_mma_async_sync_aligned_m64n80k8_f32_tf32_tf32, tf32, 80)
EMULATED_WGMMA(ptx_wgmma_mma_async_sync_aligned_m64n88k8_f32_tf32_tf32, tf32, 88)
EMULATED_WGMMA(ptx_wgmma_mma_async_sync_aligned_m64n96k8_f32_tf32_tf32, tf32, 96)
EMULATED_WGMMA(ptx_wgmma_mma_async_sync_aligned_m64n104k8_f32_tf32_tf32, tf32, 104)
EMULATED_WGMMA(ptx_wgmma_mma_async_sync_aligned_m64n112k8_f32_tf32_tf32, tf32, 112)
EMULATED_WGMMA(ptx_wgmma_mma_async_sync_aligned_m64n120k8_f32_tf32_tf32, tf32, 120)
EMULATED_WGMMA(ptx_wgmma_mma_async_sync_aligned_m64n128k8_f32_tf32_tf32, tf32, 128)

// A kernel with its arguments, each of which the machine has a pointer to.
template <class T> struct emulated_plain { typedef T type; };
template <class T> struct emulated_plain<const T> { typedef T type; };
template <class T> static inline T emulated_argument(void* from) {
    typename emulated_plain<T>::type to;
    __builtin_memcpy(&to, from, sizeof(to));
    return to;
}
template <int... K> struct emulated_places {};
template <class... P, int... K> static inline void emulated_call(void (*kernel)(P...), void** arguments, emulated_places<K...>) {
    kernel(emulated_argument<P>(arguments[K])...);
}
template <int N, int... K> struct emulated_count : emulated_count<N - 1, N - 1, K...> {};
template <int... K> struct emulated_count<0, K...> { typedef emulated_places<K...> type; };
template <class... P> static inline void emulated_run(void (*kernel)(P...), void** arguments) {
    emulated_call(kernel, arguments, typename emulated_count<sizeof...(P)>::type());
}

namespace {
