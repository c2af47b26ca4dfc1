// The functions that every source may name, on real numbers; those that few do are in `functions.cu`.

using ::exp; using ::expm1; using ::log; using ::log1p; using ::log2;
using ::sin; using ::cos; using ::asin; using ::acos; using ::atan;
using ::tanh; using ::asinh; using ::cbrt; using ::erf; using ::sqrt; using ::rsqrt;
using ::floor; using ::ceil; using ::trunc; using ::rint; using ::round; using ::fma;

FN f32 abs(f32 a) { return ::fabsf(a); }
FN f64 abs(f64 a) { return ::fabs(a); }
FN f32 copysign(f32 a, f32 b) { return ::copysignf(a, b); }
FN f64 copysign(f64 a, f64 b) { return ::copysign(a, b); }
FN f32 nextafter(f32 a, f32 b) { return ::nextafterf(a, b); }
FN f64 nextafter(f64 a, f64 b) { return ::nextafter(a, b); }
FN f32 normal_or_zero(f32 a) { return ::fabsf(a) < 1.17549435e-38f ? 0 : a; }
FN f64 normal_or_zero(f64 a) { return ::fabs(a) < 2.2250738585072014e-308 ? 0 : a; }
FN bool signbit(f32 a) { return __float_as_int(a) < 0; }
FN bool signbit(f64 a) { return __double_as_longlong(a) < 0; }
#define REAL(T)                                                                                    \
    FN bool isnan(T a) { return a != a; }                                                          \
    FN bool isfinite(T a) { return a - a == 0; }                                                   \
    FN bool isinf(T a) { return a == a && a - a != 0; }                                            \
    FN T sign(T a) { return a > 0 ? (T)1 : a < 0 ? (T)-1 : a == 0 ? (T)0 : a; }                    \
    FN T reciprocal(T a) { return 1 / a; }                                                         \
    FN T maximum(T a, T b) { return a > b || a != a ? a : b; }                                     \
    FN T minimum(T a, T b) { return a < b || a != a ? a : b; }                                     \
    FN T clip(T a, T low, T high) {                                                                \
        T up = a < low || low != low ? low : a;                                                    \
        return up > high || high != high ? high : up;                                              \
    }                                                                                              \
    FN T conj(T a) { return a; }                                                                   \
    FN T real(T a) { return a; }                                                                   \
    FN T imag(T) { return 0; }                                                                     \
    FN bool precedes(T a, T b) { return a < b; }                                                   \
    FN bool is_true(T a) { return a != 0; }
REAL(f32)
REAL(f64)
