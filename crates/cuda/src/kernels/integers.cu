// The functions that rows name, on integers and bool.
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
