// The functions that rows name, on bool, integers and real numbers. Single precision is computed in
// double where the driver's own function would miss the row's tolerance.

using ::exp; using ::exp2; using ::expm1; using ::log; using ::log1p; using ::log2; using ::log10;
using ::sin; using ::cos; using ::asin; using ::acos; using ::atan; using ::sinh; using ::cosh;
using ::tanh; using ::asinh; using ::atanh; using ::cbrt; using ::erf; using ::sqrt; using ::rsqrt;
using ::floor; using ::ceil; using ::trunc; using ::rint; using ::round; using ::fma;

FN f64 tan(f64 a) { return ::tan(a); }
FN f32 tan(f32 a) { return (f32)::tan((f64)a); }
FN f64 atan2(f64 a, f64 b) { return ::atan2(a, b); }
FN f32 atan2(f32 a, f32 b) { return (f32)::atan2((f64)a, (f64)b); }
FN f64 hypot(f64 a, f64 b) { return ::hypot(a, b); }
FN f32 hypot(f32 a, f32 b) { return (f32)::hypot((f64)a, (f64)b); }
FN f64 acosh(f64 a) { return a < 1 ? (a - a) / (a - a) : ::acosh(a); }
FN f32 acosh(f32 a) { return (f32)acosh((f64)a); }

FN f32 abs(f32 a) { return ::fabsf(a); }
FN f64 abs(f64 a) { return ::fabs(a); }
FN f32 copysign(f32 a, f32 b) { return ::copysignf(a, b); }
FN f64 copysign(f64 a, f64 b) { return ::copysign(a, b); }
FN f32 nextafter(f32 a, f32 b) { return ::nextafterf(a, b); }
FN f64 nextafter(f64 a, f64 b) { return ::nextafter(a, b); }
FN f32 pow(f32 a, f32 b) { return (f32)::pow((f64)a, (f64)b); }
FN f64 pow(f64 a, f64 b) { return ::pow(a, b); }
FN f32 normal_or_zero(f32 a) { return ::fabsf(a) < 1.17549435e-38f ? 0 : a; }
FN f64 normal_or_zero(f64 a) { return ::fabs(a) < 2.2250738585072014e-308 ? 0 : a; }
FN bool signbit(f32 a) { return __float_as_int(a) < 0; }
FN bool signbit(f64 a) { return __double_as_longlong(a) < 0; }
FN f32 remains(f32 a, f32 b) { return ::fmodf(a, b); }
FN f64 remains(f64 a, f64 b) { return ::fmod(a, b); }

// Quotient and remainder of floored division.
template <class T> FN void floor_divmod(T a, T b, T& quotient, T& modulus) {
    T rest = remains(a, b);
    quotient = a / b;
    modulus = rest;
    if (b == 0) return;
    T ratio = quotient;
    // Exact but for rounding of the quotient, since the rest is exact.
    quotient = (a - rest) / b;
    if (rest == 0) {
        modulus = copysign((T)0, b);
    } else if ((b < 0) != (rest < 0)) {
        modulus += b;
        quotient -= 1;
    }
    if (quotient == 0) {
        quotient = copysign((T)0, ratio);
        return;
    }
    // The rounded quotient may lie on either side of the integer it stands for.
    T down = floor(quotient);
    quotient = quotient - down > (T)0.5 ? down + 1 : down;
}

#define REAL(T)                                                                                    \
    FN bool isnan(T a) { return a != a; }                                                          \
    FN bool isfinite(T a) { return a - a == 0; }                                                   \
    FN bool isinf(T a) { return a == a && a - a != 0; }                                            \
    FN T floor_divide(T a, T b) { T q, r; floor_divmod(a, b, q, r); return q; }                    \
    FN T remainder(T a, T b) { T q, r; floor_divmod(a, b, q, r); return r; }                       \
    FN T sign(T a) { return a > 0 ? (T)1 : a < 0 ? (T)-1 : a == 0 ? (T)0 : a; }                    \
    FN T reciprocal(T a) { return 1 / a; }                                                         \
    FN T maximum(T a, T b) { return a > b || a != a ? a : b; }                                     \
    FN T minimum(T a, T b) { return a < b || a != a ? a : b; }                                     \
    FN T clip(T a, T low, T high) {                                                                \
        T up = a < low || low != low ? low : a;                                                    \
        return up > high || high != high ? high : up;                                              \
    }                                                                                              \
    FN T logaddexp(T a, T b) {                                                                     \
        f64 x = a, y = b;                                                                          \
        return x == y ? x + 0.693147180559945309417                                                \
            : x > y ? x + log1p(exp(y - x)) : y + log1p(exp(x - y));                               \
    }                                                                                              \
    FN T sigmoid(T a) {                                                                            \
        f64 small = exp(-fabs((f64)a));                                                            \
        return a < 0 ? small / (1 + small) : 1 / (1 + small);                                      \
    }                                                                                              \
    FN T conj(T a) { return a; }                                                                   \
    FN T real(T a) { return a; }                                                                   \
    FN T imag(T) { return 0; }                                                                     \
    FN bool precedes(T a, T b) { return a < b; }                                                   \
    FN bool is_true(T a) { return a != 0; }
REAL(f32)
REAL(f64)

// Integers wrap, so they are added and multiplied as unsigned words.
#define INTEGER(T, U)                                                                              \
    FN bool isnan(T) { return false; }                                                             \
    FN bool isinf(T) { return false; }                                                             \
    FN bool isfinite(T) { return true; }                                                           \
    FN bool signbit(T a) { return a < (T)0; }                                                      \
    FN T abs(T a) { return a < (T)0 ? (T)(0 - (U)a) : a; }                                         \
    FN T sign(T a) { return (T)((a > (T)0) - (a < (T)0)); }                                        \
    FN T fma(T a, T b, T c) { return (T)((U)a * (U)b + (U)c); }                                    \
    FN T maximum(T a, T b) { return a > b ? a : b; }                                               \
    FN T minimum(T a, T b) { return a < b ? a : b; }                                               \
    FN T clip(T a, T low, T high) { T up = a < low ? low : a; return up > high ? high : up; }      \
    FN T floor(T a) { return a; }                                                                  \
    FN T ceil(T a) { return a; }                                                                   \
    FN T trunc(T a) { return a; }                                                                  \
    FN T rint(T a) { return a; }                                                                   \
    FN T round(T a) { return a; }                                                                  \
    FN T invert(T a) { return (T)~a; }                                                             \
    FN T conj(T a) { return a; }                                                                   \
    FN T real(T a) { return a; }                                                                   \
    FN T imag(T) { return 0; }                                                                     \
    FN bool precedes(T a, T b) { return a < b; }                                                   \
    FN bool is_true(T a) { return a != 0; }                                                        \
    FN T floor_divide(T a, T b) {                                                                  \
        if (b == 0) return 0;                                                                      \
        if (b == (T)-1 && (T)-1 < (T)0) return (T)(0 - (U)a);                                      \
        T q = (T)(a / b);                                                                          \
        return (T)(a % b) != 0 && (a < (T)0) != (b < (T)0) ? (T)(q - 1) : q;                       \
    }                                                                                              \
    FN T remainder(T a, T b) {                                                                     \
        if (b == 0 || (b == (T)-1 && (T)-1 < (T)0)) return 0;                                      \
        T rest = (T)(a % b);                                                                       \
        return rest != 0 && (rest < (T)0) != (b < (T)0) ? (T)(rest + b) : rest;                    \
    }                                                                                              \
    FN T shift_left(T a, T b) { return (u64)b < 8 * sizeof(T) ? (T)((U)a << (U)b) : (T)0; }        \
    FN T shift_right(T a, T b) {                                                                   \
        return (u64)b < 8 * sizeof(T) ? (T)(a >> b) : a < (T)0 ? (T)-1 : (T)0;                     \
    }                                                                                              \
    FN T pow(T a, T b) {                                                                           \
        if (b < (T)0) {                                                                            \
            /* The true value lies in (-1, 1) unless the base is 1 or -1. */                       \
            return a == 1 ? (T)1 : a == (T)-1 ? (b & 1 ? a : (T)1) : (T)0;                         \
        }                                                                                          \
        U base = (U)a, result = 1;                                                                 \
        for (T left = b; left > 0; left >>= 1) {                                                   \
            if (left & 1) result *= base;                                                          \
            base *= base;                                                                          \
        }                                                                                          \
        return (T)result;                                                                          \
    }
INTEGER(i8, u32)
INTEGER(i16, u32)
INTEGER(i32, u32)
INTEGER(i64, u64)
INTEGER(u8, u32)
INTEGER(u16, u32)
INTEGER(u32, u32)
INTEGER(u64, u64)

FN bool abs(bool a) { return a; }
FN bool maximum(bool a, bool b) { return a | b; }
FN bool minimum(bool a, bool b) { return a & b; }
FN bool invert(bool a) { return !a; }
FN bool conj(bool a) { return a; }
FN bool real(bool a) { return a; }
FN bool imag(bool) { return false; }
FN bool isnan(bool) { return false; }
FN bool isinf(bool) { return false; }
FN bool isfinite(bool) { return true; }
FN bool precedes(bool a, bool b) { return !a & b; }
FN bool is_true(bool a) { return a; }
