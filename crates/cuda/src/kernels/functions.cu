// Functions on real numbers that few rows name, after `real.cu`: a source has them where it names one. Where the driver's own
// function would miss the row's tolerance, single precision is computed in double, or by steps of our own where these are as fast as
// memory.

FN f64 tan(f64 a) { return ::tan(a); }
FN f32 tan(f32 a) { return (f32)::tan((f64)a); }
FN f64 atan2(f64 a, f64 b) { return ::atan2(a, b); }
FN f32 atan2(f32 a, f32 b) { return (f32)::atan2((f64)a, (f64)b); }
// The driver's own has infinity for the largest results.
FN f64 hypot(f64 a, f64 b) {
    f64 most = ::fmax(::fabs(a), ::fabs(b)), least = ::fmin(::fabs(a), ::fabs(b));
    bool large = most > 4.49423283715579e307; // 2^1022
    if (large && least < most * 0x1p-28) return most;
    f64 scale = large ? 0.25 : 1;
    return ::hypot(a * scale, b * scale) * (large ? 4 : 1);
}
FN f32 hypot(f32 a, f32 b) { return (f32)::hypot((f64)a, (f64)b); }
FN f64 acosh(f64 a) { return a < 1 ? (a - a) / (a - a) : ::acosh(a); }
FN f32 acosh(f32 a) { return (f32)acosh((f64)a); }
// log1p(2 a / (1 - a)) / 2, and the derivative's share of what difference and quotient lost.
FN f64 atanh(f64 a) {
    f64 size = ::fabs(a), rest = 1 - size, q = 2 * size / rest;
    f64 lost = (fma(-q, rest, 2 * size) - q * ((1 - rest) - size)) * (f64)__fdividef(1, (f32)(1 + size));
    return ::copysign(0.5 * (size < 1 ? log1p(q) + lost : log1p(q)), a);
}
FN f32 atanh(f32 a) {
    // The quick quotient of two huge numbers is 0; beyond 1 the logarithm is to be that of a negative number.
    f32 size = ::fabsf(a), rest = 1 - size, q = size > 1 ? -2 : __fdividef(2 * size, rest);
    f32 lost = __fdividef(fma(-q, rest, 2 * size) - q * ((1 - rest) - size), 1 + size);
    return ::copysignf(0.5f * (size < 1 ? log1p(q) + lost : log1p(q)), a);
}

// y 2^k for |k| up to 252, also where 2^k itself is out of range.
FN f32 by_power_of_two(f32 y, i32 k) {
    i32 half = k >> 1;
    return y * __int_as_float((half + 127) << 23) * __int_as_float((k - half + 127) << 23);
}
// The polynomials of single precision are ours: minimax fits of what is left of the first terms.
FN f64 exp2(f64 a) { return ::exp2(a); }
FN f32 exp2(f32 a) {
    a = a > 129 ? 129 : a < -160 ? -160 : a;
    f32 whole = rint(a), r = a - whole;
    f32 q = fma(fma(fma(fma(1.5471831e-4f, r, 1.3390438e-3f), r, 9.6180225e-3f), r, 5.5503618e-2f), r, 0.24022651f);
    // log(2) in two parts.
    f32 rest = fma(r, 0.693147181f, fma(r * r, q, r * -1.9046542e-9f));
    return by_power_of_two(1 + rest, (i32)whole);
}
// exp(size) / 2 as a sum, for size >= 0.
FN void half_exp(f32 size, f32& high, f32& low) {
    size = size > 90 ? 90 : size;
    f32 whole = rint(size * 1.44269504f);
    f32 r = fma(-whole, 1.4286068e-6f, fma(-whole, 0.69314575f, size));
    f32 q = fma(fma(fma(fma(1.3950625e-3f, r, 8.3689708e-3f), r, 4.1666202e-2f), r, 0.16666518f), r, 0.5f);
    f32 rest = fma(r * r, q, r), sum = 1 + rest;
    high = by_power_of_two(sum, (i32)whole - 1);
    low = by_power_of_two(rest - (sum - 1), (i32)whole - 1);
}
FN f64 sinh(f64 a) { return ::sinh(a); }
FN f32 sinh(f32 a) {
    f32 size = ::fabsf(a), square = size * size, high, low;
    f32 q = fma(fma(fma(2.8174400e-6f, square, 1.9836066e-4f), square, 8.3333505e-3f), square, 0.16666667f);
    half_exp(size, high, low);
    return ::copysignf(size < 1 ? fma(size * square, q, size) : (high - __fdividef(0.25f, high)) + low, a);
}
FN f64 cosh(f64 a) { return ::cosh(a); }
FN f32 cosh(f32 a) {
    f32 high, low;
    half_exp(::fabsf(a), high, low);
    return high + (__fdividef(0.25f, high) + low);
}
// Of 2^k (1 + f), f from 1 / sqrt(2) - 1 to sqrt(2) - 1. Constants are in two parts, of which the first times k is exact.
FN f64 log10(f64 a) { return ::log10(a); }
FN f32 log10(f32 a) {
    const u32 least = 0x00800000, infinity = 0x7f800000;
    f32 k = 0;
    // Few are not normal and positive.
    if (__float_as_uint(a) - least >= infinity - least) {
        if (!(a > 0) || __float_as_uint(a) == infinity) return a == 0 ? -__uint_as_float(infinity) : a < 0 ? (a - a) / (a - a) : a;
        a *= 8388608.0f;
        k = -23;
    }
    i32 bits = __float_as_int(a), whole = (bits - 0x3f3504f3) >> 23;
    f32 f = __int_as_float(bits - (whole << 23)) - 1;
    f32 q = fma(fma(fma(fma(-7.825125e-2f, f, 0.13006967f), f, -0.13209139f), f, 0.14163172f), f, -0.1661108f);
    q = fma(fma(fma(fma(q, f, 0.20003028f), f, -0.25001526f), f, 0.33333308f), f, -0.49999988f);
    k += (f32)whole;
    f32 first = k * 0.3010254f, next = f * 0.4342945f, sum = first + next;
    f32 rest = fma(k, 4.605039e-6f, fma(f * f * q, 0.4342945f, fma(f, -1.010305e-8f, fma(f, 0.4342945f, -next))));
    return sum + ((next - (sum - first)) + rest);
}
FN f32 pow(f32 a, f32 b) { return (f32)::pow((f64)a, (f64)b); }
FN f64 pow(f64 a, f64 b) { return ::pow(a, b); }

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

#define FUNCTIONS(T)                                                                               \
    FN T floor_divide(T a, T b) { T q, r; floor_divmod(a, b, q, r); return q; }                    \
    FN T remainder(T a, T b) { T q, r; floor_divmod(a, b, q, r); return r; }                       \
    FN T logaddexp(T a, T b) {                                                                     \
        f64 x = a, y = b;                                                                          \
        return x == y ? x + 0.693147180559945309417                                                \
            : x > y ? x + log1p(exp(y - x)) : y + log1p(exp(x - y));                               \
    }
FUNCTIONS(f32)
FUNCTIONS(f64)

FN f32 sigmoid(f32 a) {
    f64 small = exp(-fabs((f64)a));
    return a < 0 ? small / (1 + small) : 1 / (1 + small);
}
// With what sum and quotient lost.
FN f64 sigmoid(f64 a) {
    f64 small = exp(-fabs(a)), sum = 1 + small, above = a < 0 ? small : 1, q = above / sum;
    return fma(fma(-q, sum, above) - q * (small - (sum - 1)), (f64)__fdividef(1, (f32)sum), q);
}
