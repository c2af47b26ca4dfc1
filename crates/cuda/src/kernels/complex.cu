// The functions that rows name, on complex numbers: those of the ops crate's `complex.rs`, in
// double precision; single precision is widened and rounded back.

#define NAN __longlong_as_double(0x7ff8000000000000ll)
#define INF __longlong_as_double(0x7ff0000000000000ll)
#define LN_2 0.693147180559945309417
#define LN_2_LOW 2.3190468138462996e-17
#define PI 3.14159265358979323846

// Above this, exp must be applied in steps, so that a small factor can bring the product back.
#define EXP_STEP 708.0

FN c128 c(f64 re, f64 im) { return make(re, im); }
FN c128 times_i(c128 z) { return c(-z.im, z.re); }
FN c128 over_i(c128 z) { return c(z.im, -z.re); }

template <class T> FN complex<T> operator+(complex<T> a, complex<T> b) { return make(a.re + b.re, a.im + b.im); }
template <class T> FN complex<T> operator-(complex<T> a, complex<T> b) { return make(a.re - b.re, a.im - b.im); }
template <class T> FN complex<T> operator*(complex<T> a, complex<T> b) {
    return make(a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re);
}
template <class T> FN complex<T> operator-(complex<T> a) { return make(-a.re, -a.im); }
template <class T> FN bool operator==(complex<T> a, complex<T> b) { return a.re == b.re && a.im == b.im; }
template <class T> FN bool operator!=(complex<T> a, complex<T> b) { return a.re != b.re || a.im != b.im; }
template <class T> FN bool operator==(complex<T> a, int b) { return a.re == b && a.im == 0; }
template <class T> FN bool operator!=(complex<T> a, int b) { return a.re != b || a.im != 0; }
template <class T> FN bool precedes(complex<T> a, complex<T> b) { return a.im == a.im && b.im == b.im && (a.re < b.re || (a.re == b.re && a.im < b.im)); }
template <class T> FN bool operator<(complex<T> a, complex<T> b) { return precedes(a, b); }
template <class T> FN bool operator>(complex<T> a, complex<T> b) { return precedes(b, a); }
template <class T> FN bool operator<=(complex<T> a, complex<T> b) { return precedes(a, b) || a == b; }
template <class T> FN bool operator>=(complex<T> a, complex<T> b) { return precedes(b, a) || a == b; }
template <class T> FN bool isnan(complex<T> a) { return isnan(a.re) || isnan(a.im); }
template <class T> FN bool isinf(complex<T> a) { return isinf(a.re) || isinf(a.im); }
template <class T> FN bool isfinite(complex<T> a) { return isfinite(a.re) && isfinite(a.im); }
template <class T> FN bool is_true(complex<T> a) { return a.re != 0 || a.im != 0; }
template <class T> FN complex<T> fma(complex<T> a, complex<T> b, complex<T> d) { return a * b + d; }
template <class T> FN complex<T> maximum(complex<T> a, complex<T> b) { return precedes(b, a) || isnan(a) ? a : b; }
template <class T> FN complex<T> minimum(complex<T> a, complex<T> b) { return precedes(a, b) || isnan(a) ? a : b; }
template <class T> FN complex<T> conj(complex<T> a) { return make(a.re, -a.im); }
template <class T> FN T real(complex<T> a) { return a.re; }
template <class T> FN T imag(complex<T> a) { return a.im; }
template <class T> FN complex<T> rint(complex<T> a) { return make(rint(a.re), rint(a.im)); }
template <class T> FN T abs(complex<T> a) { return (T)hypot((f64)a.re, (f64)a.im); }

// The sum and its rounding error, whatever the order of magnitudes.
FN f64 two_sum(f64 a, f64 b, f64& error) {
    f64 sum = a + b, part = sum - a;
    error = (a - (sum - part)) + (b - part);
    return sum;
}
// The product and its rounding error.
FN f64 two_product(f64 a, f64 b, f64& error) {
    f64 product = a * b;
    error = fma(a, b, -product);
    return product;
}
// a * b + d * e with an error of about one ulp, also when the products cancel.
FN f64 sum_of_products(f64 a, f64 b, f64 d, f64 e) {
    f64 error, product = two_product(d, e, error), sum = fma(a, b, product);
    return error == 0 ? sum : sum + error;
}
FN i32 exponent(f64 x) { return ilogb(x); }
FN c128 scale(c128 z, i32 by) { return c(scalbn(z.re, by), scalbn(z.im, by)); }
FN f64 larger(f64 a, f64 b) { return a > b ? a : b; }

// factor * exp(x) where the exponential alone may overflow or underflow.
FN f64 times_exp(f64 factor, f64 x) {
    f64 product = factor, rest = x;
    while (fabs(rest) > EXP_STEP && isfinite(product) && product != 0) {
        f64 step = copysign(EXP_STEP, rest);
        product *= exp(step);
        rest -= step;
    }
    return product * exp(rest);
}

// exp where one part is infinite or NaN, or the imaginary part zero; `of_real` is the exponential
// of the real part alone.
FN bool exp_special(c128 z, f64 of_real, c128& result) {
    if (z.im == 0) { result = c(of_real, z.im); return true; }
    if (isnan(z.re)) { result = c(NAN, NAN); return true; }
    if (!isfinite(z.im)) {
        result = z.re == -INF ? c(0, 0) : z.re == INF ? c(INF, NAN) : c(NAN, NAN);
        return true;
    }
    return false;
}
FN c128 exp(c128 z) {
    c128 special;
    if (exp_special(z, exp(z.re), special)) return special;
    f64 s, t;
    sincos(z.im, &s, &t);
    if (fabs(z.re) <= EXP_STEP || isinf(z.re)) return c(exp(z.re) * t, exp(z.re) * s);
    return c(times_exp(t, z.re), times_exp(s, z.re));
}
// The unit number at the angle high + low.
FN c128 cis(f64 high, f64 low) {
    f64 s, t, s_low, t_low;
    sincos(high, &s, &t);
    sincos(low, &s_low, &t_low);
    return c(t * t_low - s * s_low, s * t_low + t * s_low);
}
FN c128 exp2(c128 z) {
    c128 special;
    if (exp_special(z, exp2(z.re), special)) return special;
    // The angle is rounded to two doubles: one ulp of a large angle is visible in the result.
    f64 error, high = two_product(z.im, LN_2, error);
    c128 turn = cis(high, fma(z.im, LN_2_LOW, error));
    if (isinf(z.re)) return c(exp2(z.re) * turn.re, exp2(z.re) * turn.im);
    f64 whole = fmin(fmax(rint(z.re), -4000.0), 4000.0), modulus = exp2(z.re - whole);
    return scale(c(modulus * turn.re, modulus * turn.im), (i32)whole);
}
FN c128 expm1(c128 z) {
    f64 a = z.re, b = z.im, s, t;
    if (b == 0) return c(expm1(a) + 0.0, b);
    if (a == -INF) return c(-1, isfinite(b) ? 0 * sin(b) : 0.0);
    if (a > EXP_STEP || !isfinite(a) || !isfinite(b)) return exp(z);
    sincos(b, &s, &t);
    // exp(a) cos(b) - 1 = expm1(a) cos(b) + (cos(b) - 1), and the bracket is -2 sin(b/2)^2.
    f64 half = sin(0.5 * b);
    return c(sum_of_products(expm1(a), t, -2 * half, half), exp(a) * s);
}

// The logarithm of the modulus of a + bi to the base e, 2 or 10.
template <int BASE> FN f64 log_real(f64 x) { return BASE == 2 ? log2(x) : BASE == 10 ? log10(x) : log(x); }
#define OF_E(BASE) (BASE == 2 ? 1.44269504088896340736 : BASE == 10 ? 0.434294481903251827651 : 1.0)
#define OF_TWO(BASE) (BASE == 2 ? 1.0 : BASE == 10 ? 0.301029995663981195214 : LN_2)
template <int BASE> FN f64 log_modulus(f64 a, f64 b) {
    f64 large = larger(fabs(a), fabs(b)), small = fabs(a) > fabs(b) ? fabs(b) : fabs(a);
    f64 square = a * a + b * b;
    if (square >= 0.5 && square < 3) {
        // Near the unit circle the logarithm is that of 1 + x, and x = |z|^2 - 1 needs all its bits.
        f64 p_low, q_low, first, second;
        f64 p = two_product(large, large, p_low), q = two_product(small, small, q_low);
        f64 sum = two_sum(p, -1, first);
        sum = two_sum(sum, q, second);
        return 0.5 * log1p(sum + (first + second + p_low + q_low)) * OF_E(BASE);
    }
    i32 shift = large > 1e300 ? 60 : large < 1e-280 ? -120 : 0;
    if (shift == 0 || large == 0 || !isfinite(large)) return log_real<BASE>(hypot(a, b));
    c128 scaled = scale(c(a, b), -shift);
    return log_real<BASE>(hypot(scaled.re, scaled.im)) + shift * OF_TWO(BASE);
}
template <int BASE> FN c128 log_to(c128 z) {
    return c(log_modulus<BASE>(z.re, z.im), atan2(z.im, z.re) * OF_E(BASE));
}
FN c128 log(c128 z) { return log_to<0>(z); }
FN c128 log2(c128 z) { return log_to<2>(z); }
FN c128 log10(c128 z) { return log_to<10>(z); }
FN c128 log1p(c128 z) {
    f64 a = z.re, b = z.im, shifted = 1 + a, angle = atan2(b, shifted);
    f64 square = shifted * shifted + b * b;
    if (!(square >= 0.5 && square < 3)) return c(log_modulus<0>(shifted, b), angle);
    // |1 + z|^2 - 1 = 2a + a^2 + b^2, whose terms may cancel.
    f64 p_low, q_low, first, second;
    f64 p = two_product(a, a, p_low), q = two_product(b, b, q_low);
    f64 sum = two_sum(2 * a, p, first);
    sum = two_sum(sum, q, second);
    f64 low = first + second + p_low + q_low;
    return c(0.5 * log1p(low == 0 ? sum : sum + low), angle);
}
FN c128 sqrt(c128 z) {
    f64 a = z.re, b = z.im;
    if (isinf(b)) return c(INF, b);
    if (a == 0 && b == 0) return c(0, b);
    if (isinf(a)) {
        f64 other = isnan(b) ? NAN : 0.0;
        return a > 0 ? c(a, copysign(other, b)) : c(other, copysign(INF, b));
    }
    if (isnan(a) || isnan(b)) return c(NAN, NAN);
    // An even power of two is taken out and its root put back, both without rounding.
    f64 large = larger(fabs(a), fabs(b));
    i32 half = large >= 1e-290 && large < 1e300 ? 0 : exponent(large) / 2;
    c128 scaled = scale(z, -2 * half);
    f64 root = sqrt(0.5 * (fabs(scaled.re) + hypot(scaled.re, scaled.im)));
    f64 other = scaled.im / (2 * root);
    return scale(a >= 0 ? c(root, other) : c(fabs(other), copysign(root, b)), half);
}
FN c128 div_by_ratio(c128 z, c128 w) {
    if (fabs(w.re) >= fabs(w.im)) {
        if (w.re == 0 && w.im == 0) return c(z.re / fabs(w.re), z.im / fabs(w.re));
        f64 ratio = w.im / w.re, factor = 1 / (w.re + w.im * ratio);
        return c((z.re + z.im * ratio) * factor, (z.im - z.re * ratio) * factor);
    }
    f64 ratio = w.re / w.im, factor = 1 / (w.im + w.re * ratio);
    return c((z.re * ratio + z.im) * factor, (z.im * ratio - z.re) * factor);
}
FN c128 operator/(c128 z, c128 w) {
    f64 top = larger(fabs(z.re), fabs(z.im)), bottom = larger(fabs(w.re), fabs(w.im));
    if (!isfinite(z) || !isfinite(w) || top == 0 || bottom == 0) return div_by_ratio(z, w);
    // Both are brought to a largest part in [1, 2), so no square or product can overflow.
    i32 up = exponent(top), down = exponent(bottom);
    c128 n = scale(z, -up), d = scale(w, -down);
    f64 norm = d.re * d.re + d.im * d.im;
    f64 re = sum_of_products(n.re, d.re, n.im, d.im) / norm;
    f64 im = sum_of_products(n.im, d.re, -n.re, d.im) / norm;
    return scale(c(re, im), up - down);
}
FN c128 reciprocal(c128 z) {
    f64 large = larger(fabs(z.re), fabs(z.im));
    if (large == 0) return div_by_ratio(c(1, 0), z);
    if (!isfinite(z)) {
        bool lost = (isinf(z.re) && isinf(z.im)) || isnan(z.re) || isnan(z.im);
        return lost ? c(NAN, NAN) : c(copysign(0.0, z.re), -copysign(0.0, z.im));
    }
    i32 down = exponent(large);
    c128 d = scale(z, -down);
    f64 norm = d.re * d.re + d.im * d.im;
    return scale(c(d.re / norm, -d.im / norm), -down);
}
FN c128 rsqrt(c128 z) { return reciprocal(sqrt(z)); }
FN c128 sign(c128 z) {
    f64 large = larger(fabs(z.re), fabs(z.im));
    if (isnan(z) || (isinf(z.re) && isinf(z.im))) return c(NAN, NAN);
    if (large == 0) return c(0, 0);
    if (isinf(large)) return c(isinf(z.re) ? copysign(1.0, z.re) : 0.0, isinf(z.im) ? copysign(1.0, z.im) : 0.0);
    c128 scaled = scale(z, -exponent(large));
    f64 modulus = hypot(scaled.re, scaled.im);
    return c(scaled.re / modulus, scaled.im / modulus);
}
// factor * exp(x) / 2 where x is beyond EXP_STEP: halved behind the first step, since half of the least number is zero.
FN f64 times_half_exp(f64 factor, f64 x) { return times_exp(factor * exp((f64)EXP_STEP) * 0.5, x - EXP_STEP); }
FN c128 sinh(c128 z) {
    f64 a = z.re, b = z.im, s, t;
    if (b == 0) return c(sinh(a), b);
    if (!isfinite(b)) return a == 0 || isinf(a) ? c(a, NAN) : c(NAN, NAN);
    sincos(b, &s, &t);
    if (fabs(a) <= EXP_STEP || !isfinite(a)) return c(sinh(a) * t, cosh(a) * s);
    return c(times_half_exp(copysign(t, t * a), fabs(a)), times_half_exp(s, fabs(a)));
}
FN c128 cosh(c128 z) {
    f64 a = z.re, b = z.im, s, t;
    if (b == 0) return c(cosh(a), signbit(a) ? -b : b);
    if (!isfinite(b)) return a == 0 ? c(NAN, 0) : isinf(a) ? c(INF, NAN) : c(NAN, NAN);
    sincos(b, &s, &t);
    if (fabs(a) <= EXP_STEP || !isfinite(a)) return c(cosh(a) * t, sinh(a) * s);
    return c(times_half_exp(t, fabs(a)), times_half_exp(copysign(s, s * a), fabs(a)));
}
FN c128 tanh(c128 z) {
    f64 a = z.re, b = z.im, s, t;
    if (b == 0) return c(tanh(a), b);
    // The standard's zero has the sign of b, where C99's has that of sin(2b).
    if (isinf(a)) return c(copysign(1.0, a), isnan(b) ? 0.0 : copysign(0.0, b));
    if (!isfinite(b)) return c(a == 0 ? a : NAN, NAN);
    sincos(b, &s, &t);
    // The real part is 1 to all bits, and the squares below would overflow.
    if (fabs(a) > 22) return c(copysign(1.0, a), times_exp(s * t, -2 * fabs(a)) * 4);
    f64 h = sinh(a), modulus = h * h + t * t;
    return c(h * cosh(a) / modulus, s * t / modulus);
}
FN c128 sin(c128 z) { return over_i(sinh(times_i(z))); }
FN c128 cos(c128 z) { return cosh(times_i(z)); }
FN c128 tan(c128 z) { return over_i(tanh(times_i(z))); }

// The inverse sine and cosine of one number in the first quadrant, after Hull, Fairgrieve and Tang.
struct Arc { f64 opposite, adjacent, height; };
FN Arc arc_of(f64 opposite, f64 adjacent, f64 height) { Arc arc = {opposite, adjacent, height}; return arc; }
FN Arc arc(f64 x, f64 y) {
    f64 gap = fabs(x - 1);
    // asin(z) = -i log(2iz), up to a relative error of |z|^-2.
    if (larger(x, y) > 1e10) return arc_of(x, y, log_modulus<0>(x, y) + LN_2);
    // At the branch point itself; halves of the least numbers would be lost below.
    if (x == 1 && y < 1e-30) return arc_of(1, sqrt(y), sqrt(y));
    if (y <= 2.220446049250313e-16 * gap) {
        // So near the axis, first order in y is exact to all bits.
        f64 root = sqrt(gap * (x + 1));
        return x < 1 ? arc_of(x, root, y / root) : arc_of(root, y, log1p(gap + root));
    }
    f64 right = hypot(x + 1, y), left = hypot(gap, y), axis = 0.5 * (right + left);
    f64 from_right = y * (y / (right + (x + 1))), from_left = y * (y / (left + gap));
    f64 minus_1 = x < 1 ? 0.5 * (from_right + from_left) : 0.5 * (from_right + (left + gap));
    f64 minus_x = x < 1 ? 0.5 * (from_right + (left + gap)) : 0.5 * (from_right + from_left);
    f64 root = sqrt(minus_1 * (axis + 1));
    f64 height = axis < 1.5 ? log1p(minus_1 + root) : log(axis + root);
    return arc_of(x, sqrt(minus_x * (axis + x)), height);
}
FN c128 asinh(c128 z) {
    f64 a = z.re, b = z.im;
    if (isfinite(a) && isfinite(b)) {
        Arc p = arc(fabs(b), fabs(a));
        return c(copysign(p.height, a), copysign(atan2(p.opposite, p.adjacent), b));
    }
    if (isinf(a)) return c(a, isnan(b) ? NAN : copysign(isinf(b) ? PI / 4 : 0.0, b));
    if (isinf(b)) return c(copysign(INF, a), isnan(a) ? NAN : copysign(PI / 2, b));
    return c(NAN, b == 0 ? b : NAN);
}
FN c128 acos(c128 z) {
    f64 a = z.re, b = z.im;
    if (isfinite(a) && isfinite(b)) {
        Arc p = arc(fabs(a), fabs(b));
        return c(atan2(p.adjacent, copysign(p.opposite, a)), -copysign(p.height, b));
    }
    if (isinf(a)) {
        f64 height = -copysign(INF, b);
        if (isnan(b)) return c(NAN, INF);
        if (isinf(b)) return c(a > 0 ? PI / 4 : 3 * (PI / 4), height);
        return c(a > 0 ? 0.0 : PI, height);
    }
    if (isinf(b)) return c(isnan(a) ? NAN : PI / 2, -b);
    return c(a == 0 ? PI / 2 : NAN, NAN);
}
FN c128 acosh(c128 z) { c128 w = acos(z); return c(fabs(w.im), copysign(w.re, z.im)); }
FN c128 atanh(c128 z) {
    f64 a = z.re, b = z.im, x = fabs(a), y = fabs(b), re, im;
    if (isinf(x) || isinf(y)) return c(isnan(a) ? 0.0 : copysign(0.0, a), isnan(b) ? NAN : copysign(PI / 2, b));
    if (isnan(a) || isnan(b)) return c(a == 0 ? a : NAN, NAN);
    if (larger(x, y) > 1e150) {
        // pi i/2 + 1/z: squares would overflow, and nothing else is visible.
        f64 modulus = hypot(0.5 * x, 0.5 * y);
        re = 0.25 * x / modulus / modulus;
        im = PI / 2;
    } else if (x == 1 && y < 1e-150) {
        // Here the square of the distance to the pole would underflow.
        re = 0.5 * (LN_2 - log(y));
        im = 0.5 * atan2(y, 0.0);
    } else {
        f64 gap = x - 1;
        re = 0.25 * log1p(4 * x / (gap * gap + y * y));
        im = 0.5 * atan2(2 * y, (1 - x) * (1 + x) - y * y);
    }
    return c(copysign(re, a), copysign(im, b));
}
FN c128 asin(c128 z) { return over_i(asinh(times_i(z))); }
FN c128 atan(c128 z) { return over_i(atanh(times_i(z))); }

// 1 + exp(z) for a real part that is not positive, precise near its zeros.
FN c128 one_plus_exp(c128 z) {
    if (!isfinite(z)) { c128 w = exp(z); return c(1 + w.re, w.im); }
    f64 s, t, half = cos(0.5 * z.im);
    sincos(z.im, &s, &t);
    return c(sum_of_products(expm1(z.re), t, 2 * half, half), exp(z.re) * s);
}
FN c128 sigmoid(c128 z) {
    if (z.im == 0) {
        f64 small = exp(-fabs(z.re));
        return c((z.re < 0 ? small : 1.0) / (1 + small), z.im);
    }
    return z.re < 0 ? exp(z) / one_plus_exp(z) : reciprocal(one_plus_exp(-z));
}

// A real number as an unevaluated sum of two doubles, and a complex one of two of these: powers
// raise an error of the logarithm by the size of the exponent.
struct Twice { f64 high, low; };
FN Twice twice(f64 high, f64 low) { f64 error, sum = two_sum(high, low, error); Twice t = {sum, error}; return t; }
FN Twice operator+(Twice a, Twice b) {
    f64 error, sum = two_sum(a.high, b.high, error);
    return twice(sum, error + (a.low + b.low));
}
FN Twice operator*(Twice a, Twice b) {
    f64 error, product = two_product(a.high, b.high, error);
    return twice(product, error + (a.high * b.low + a.low * b.high));
}
FN Twice operator-(Twice a) { Twice t = {-a.high, -a.low}; return t; }
FN Twice over(Twice a, f64 d) {
    f64 q = a.high / d;
    return twice(q, (fma(-q, d, a.high) + a.low) / d);
}
FN Twice scaled(Twice a, i32 by) { Twice t = {scalbn(a.high, by), scalbn(a.low, by)}; return t; }
struct Wide { Twice re, im; };
FN Wide wide(c128 z) { Wide w = {{z.re, 0}, {z.im, 0}}; return w; }
FN Wide operator+(Wide a, Wide b) { Wide w = {a.re + b.re, a.im + b.im}; return w; }
FN Wide operator*(Wide a, Wide b) { Wide w = {a.re * b.re + -(a.im * b.im), a.re * b.im + a.im * b.re}; return w; }
FN Wide scaled(Wide a, i32 by) { Wide w = {scaled(a.re, by), scaled(a.im, by)}; return w; }
// The exponential for a modulus of at most 4: a short series at z/1024, squared ten times.
static __device__ __noinline__ Wide wide_exp(Wide z) {
    Wide one = wide(c(1, 0)), small = scaled(z, -10), sum = one;
#pragma unroll 1
    for (int k = 8; k > 0; k--) {
        Wide term = small * sum;
        Wide next = {over(term.re, k), over(term.im, k)};
        sum = one + next;
    }
#pragma unroll 1
    for (int k = 0; k < 10; k++) sum = sum * sum;
    return sum;
}
// The logarithm of a finite nonzero number: one Newton step from the one in double precision.
FN Wide wide_log(c128 z) {
    i32 shift = exponent(larger(fabs(z.re), fabs(z.im)));
    c128 near = scale(z, -shift), first = log(near);
    Wide ratio = wide(near) * wide_exp(wide(-first)) + wide(c(-1, 0));
    f64 error, high = two_product((f64)shift, LN_2, error);
    Wide sum = wide(first) + wide(c(ratio.re.high, ratio.im.high));
    sum.re = sum.re + twice(high, fma((f64)shift, LN_2_LOW, error));
    return sum;
}
FN Wide normal(Wide v, i32& e) {
    i32 shift = exponent(larger(fabs(v.re.high), fabs(v.im.high)));
    e += shift;
    return scaled(v, -shift);
}
// An integer power by squaring in two doubles, with the powers of two kept apart.
static __device__ __noinline__ c128 pow_repeated(c128 z, i32 n) {
    i32 base_exponent = 0, result_exponent = 0;
    Wide base = normal(wide(z), base_exponent), result = wide(c(1, 0));
    u32 rest = n < 0 ? 0u - (u32)n : (u32)n;
#pragma unroll 1
    while (true) {
        if (rest & 1) {
            result_exponent += base_exponent;
            result = normal(result * base, result_exponent);
        }
        rest >>= 1;
        if (rest == 0) break;
        base_exponent *= 2;
        base = normal(base * base, base_exponent);
    }
    c128 value = c(result.re.high, result.im.high);
    return n < 0 ? scale(reciprocal(value), -result_exponent) : scale(value, result_exponent);
}
FN f64 signum(f64 x) { return isnan(x) ? x : copysign(1.0, x); }
static __device__ __noinline__ c128 pow(c128 z, c128 w) {
    if (w.re == 0 && w.im == 0) return c(1, 0);
    if (z.re == 0 && z.im == 0) return w.re > 0 ? c(0, 0) : c(NAN, NAN);
    bool is_real = w.im == 0;
    if (is_real && w.re == 1) return z;
    if (!isfinite(z) || !isfinite(w)) {
        c128 l = log(z);
        return exp(is_real ? c(w.re * l.re, w.re * l.im) : w * l);
    }
    bool whole = is_real && trunc(w.re) == w.re;
    if (is_real && z.im == 0 && (whole || z.re > 0)) {
        // The zero takes the sign of the derivative, which is w z^(w-1).
        f64 slope = w.re * signum(z.re) * (fmod(w.re, 2.0) == 0 ? 1.0 : signum(z.re));
        return c(pow(z.re, w.re), z.im * signum(slope));
    }
    if (whole && fabs(w.re) <= 1024) return pow_repeated(z, (i32)w.re);
    Wide power = wide(w) * wide_log(z);
    c128 turn = cis(power.im.high, power.im.low);
    f64 re = times_exp(turn.re, power.re.high), im = times_exp(turn.im, power.re.high);
    f64 rest = power.re.low;
    return isfinite(rest) ? c(re + re * rest, im + im * rest) : c(re, im);
}

// Single precision by way of double.
#define LIFT(f) FN c64 f(c64 z) { c128 w = f(lift(z)); return make((f32)w.re, (f32)w.im); }
#define LIFT2(f) FN c64 f(c64 z, c64 w) { c128 v = f(lift(z), lift(w)); return make((f32)v.re, (f32)v.im); }
LIFT(exp) LIFT(exp2) LIFT(expm1) LIFT(log) LIFT(log2) LIFT(log10) LIFT(log1p) LIFT(sqrt) LIFT(rsqrt)
LIFT(reciprocal) LIFT(sign) LIFT(sinh) LIFT(cosh) LIFT(tanh) LIFT(sin) LIFT(cos) LIFT(tan) LIFT(asinh)
LIFT(acos) LIFT(acosh) LIFT(atanh) LIFT(asin) LIFT(atan) LIFT(sigmoid) LIFT2(operator/) LIFT2(pow)
