// What every kernel begins with: the types as they lie in memory, the values that they compute in,
// and casts. The meanings are those of the ops crate's `scalar.rs`; there are no headers.

namespace tw {

typedef signed char i8;
typedef short i16;
typedef int i32;
typedef long long i64;
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef float f32;
typedef double f64;

#define FN static __device__ __forceinline__

// Types that only lie in memory: any byte but zero is true, and halves compute in float32.
struct b8 { u8 byte; };
struct f16 { u16 bits; };
struct bf16 { u16 bits; };

template <class T> struct alignas(2 * sizeof(T)) complex { T re, im; };
typedef complex<f32> c64;
typedef complex<f64> c128;

// Several elements that move together.
template <class T, int N> struct alignas(sizeof(T) * N < 16 ? sizeof(T) * N : 16) Pack { T at[N]; };

template <class T> FN complex<T> make(T re, T im) { complex<T> z = {re, im}; return z; }

// From memory to the value that is computed with.
template <class T> FN T widen(T x) { return x; }
FN bool widen(b8 x) { return x.byte != 0; }
FN f32 widen(f16 x) {
    f32 y;
    asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x.bits));
    return y;
}
FN f32 widen(bf16 x) { return __uint_as_float((u32)x.bits << 16); }

// From the value to memory, rounding once.
template <class S> struct Narrow { template <class V> FN S of(V x) { return x; } };
template <> struct Narrow<b8> { FN b8 of(bool x) { b8 y = {(u8)x}; return y; } };
template <> struct Narrow<f16> {
    FN f16 of(f32 x) {
        f16 y;
        asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y.bits) : "f"(x));
        return y;
    }
};
template <> struct Narrow<bf16> {
    FN bf16 of(f32 x) {
        u32 bits = __float_as_uint(x);
        bool nan = x != x;
        // To the nearest, ties to the even one; a NaN keeps its upper part and stays one.
        bf16 y = {(u16)(nan ? bits >> 16 | 0x40 : (bits + 0x7fff + (bits >> 16 & 1)) >> 16)};
        return y;
    }
};
template <class S, class V> FN S narrow(V x) { return Narrow<S>::of(x); }

// The widest number of a kind: casts begin with one of these five.
FN u64 lift(bool x) { return x; }
FN u64 lift(u8 x) { return x; }
FN u64 lift(u16 x) { return x; }
FN u64 lift(u32 x) { return x; }
FN u64 lift(u64 x) { return x; }
FN i64 lift(i8 x) { return x; }
FN i64 lift(i16 x) { return x; }
FN i64 lift(i32 x) { return x; }
FN i64 lift(i64 x) { return x; }
FN f32 lift(f32 x) { return x; }
FN f64 lift(f64 x) { return x; }
FN c128 lift(c64 x) { return make<f64>(x.re, x.im); }
FN c128 lift(c128 x) { return x; }

// A double in single precision that rounds further as if it were rounded once: where bits are
// lost, the last one kept is set.
FN f32 round_to_odd(f64 x) {
    f32 near = (f32)x;
    if ((f64)near == x || x != x) return near;
    bool away = fabs((f64)near) > fabs(x);
    return __uint_as_float((__float_as_uint(near) - away) | 1);
}

// Truncated, held inside of the type; NaN is zero.
template <class I, class F> FN I truncate(F x) {
    const bool negative = (I)-1 < (I)1;
    const u64 top = (u64)1 << (8 * sizeof(I) - 1);
    const F limit = negative ? (F)top : (F)top * 2;
    const I most = negative ? (I)(top - 1) : (I)-1, least = negative ? (I)top : (I)0;
    if (x != x) return 0;
    return x >= limit ? most : x <= (negative ? -limit : (F)0) ? least : (I)x;
}

template <class S> struct Cast { // integers
    FN S of(u64 x) { return (S)x; }
    FN S of(i64 x) { return (S)x; }
    FN S of(f32 x) { return truncate<S>(x); }
    FN S of(f64 x) { return truncate<S>(x); }
    FN S of(c128 x) { return truncate<S>(x.re); }
};
template <> struct Cast<b8> {
    template <class V> FN b8 of(V x) { return narrow<b8>(x != 0); }
    FN b8 of(c128 x) { return narrow<b8>(x.re != 0 || x.im != 0); }
};
template <class S> struct RealCast {
    template <class V> FN S of(V x) { return (S)x; }
    FN S of(c128 x) { return (S)x.re; }
};
template <> struct Cast<f32> : RealCast<f32> {};
template <> struct Cast<f64> : RealCast<f64> {};
template <class S> struct HalfCast {
    FN S of(u64 x) { return of((f64)x); }
    FN S of(i64 x) { return of((f64)x); }
    FN S of(f32 x) { return narrow<S>(x); }
    FN S of(f64 x) { return narrow<S>(round_to_odd(x)); }
    FN S of(c128 x) { return of(x.re); }
};
template <> struct Cast<f16> : HalfCast<f16> {};
template <> struct Cast<bf16> : HalfCast<bf16> {};
template <class T> struct Cast<complex<T> > {
    template <class V> FN complex<T> of(V x) { return make((T)x, (T)0); }
    FN complex<T> of(c128 x) { return make((T)x.re, (T)x.im); }
};
template <class S, class V> FN S cast(V x) { return Cast<S>::of(lift(x)); }

// Division by a number that is known before the launch: for n < 2^31, the quotient of n and `by` is
// (umulhi(n, magic) + n) >> shift.
template <class I> struct Division { I by; u32 magic, shift; };
template <class I> FN u32 quotient(u32 n, Division<I> d) { return (__umulhi(n, d.magic) + n) >> d.shift; }
FN u64 quotient(u64 n, Division<u64> d) { return n / d.by; }

// Loops over several operands at once, outermost first; at most AXES. Strides wrap, so that they may
// be negative.
template <class I, int N> struct Nest {
    u32 axes;
    Division<I> sizes[AXES];
    I strides[AXES][N];
    I offsets[N];
};
// Where the first element of each operand lies, and element number n, which may have 32 bits where strides need 64:
// a division of 64 takes longer, and its compiler too.
template <class I, int N> FN void begin(const Nest<I, N>& nest, I (&at)[N]) {
#pragma unroll
    for (int k = 0; k < N; k++) at[k] = nest.offsets[k];
}
template <class I, class Number, int N> FN void locate(const Nest<I, N>& nest, Number n, I (&at)[N]) {
    begin(nest, at);
#pragma unroll 1
    for (int axis = nest.axes - 1; axis > 0; axis--) {
        Number rest = quotient(n, nest.sizes[axis]);
        I index = n - rest * (Number)nest.sizes[axis].by;
        n = rest;
#pragma unroll
        for (int k = 0; k < N; k++) at[k] += index * nest.strides[axis][k];
    }
#pragma unroll
    for (int k = 0; k < N; k++) at[k] += n * nest.strides[0][k];
}
