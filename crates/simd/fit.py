"""Minimax polynomials for the vector mathematics of tilework-simd.

Run by hand (needs mpmath): `python3 crates/simd/fit.py > crates/simd/src/math/coef.rs`.
Each row below fits one function by Lawson's method in 300-bit arithmetic; the error printed
beside a table is the largest weighted error of the polynomial before it is evaluated in floats.
"""
import struct
import sys
from mpmath import mp, mpf, matrix, lu_solve, cos, pi, exp, log, sin, atan, asin, atanh, erf, erfc, sqrt, tan, tanh, chebyfit

mp.prec = 300


def minimax(f, a, b, degree, weight, fixed):
    """Coefficients c[0..degree] that nearly minimise max |weight * (sum c x^k - f)|, some fixed.

    Lawson's method: least squares on a grid, the weight of each point multiplied by its error
    again and again. Unlike the exchange it does not mind a basis that vanishes inside the interval.
    """
    a, b = mpf(a), mpf(b)
    first = len(fixed)
    free = degree + 1 - first
    count = 16 * free + 1
    grid = [(a + b) / 2 - (b - a) / 2 * cos(pi * (i + mpf("0.5")) / count) for i in range(count)]
    weights = [mpf(weight(x)) for x in grid]
    value = [w * (f(x) - sum(c * x**k for k, c in enumerate(fixed))) for x, w in zip(grid, weights)]
    rows = [[w * x ** (first + k) for k in range(free)] for x, w in zip(grid, weights)]
    lawson = [mpf(1) / count] * count
    best = None
    for _ in range(40):
        lhs = matrix(free, free)
        rhs = matrix(free, 1)
        for i in range(free):
            scaled = [l * r[i] for l, r in zip(lawson, rows)]
            rhs[i] = mp.fdot(scaled, value)
            for j in range(i + 1):
                lhs[i, j] = lhs[j, i] = mp.fdot(scaled, [r[j] for r in rows])
        c = list(lu_solve(lhs, rhs))
        error = [abs(v - mp.fdot(c, r)) for v, r in zip(value, rows)]
        worst = max(error)
        if best is None or worst < best[1]:
            best = (c, worst)
        lawson = [l * e for l, e in zip(lawson, error)]
        total = sum(lawson)
        lawson = [l / total for l in lawson]
    return list(fixed) + best[0], best[1]


def to_float(x):
    """Nearest double of an mpf."""
    return float(mpf(x))


def to_single(x):
    return struct.unpack("f", struct.pack("f", float(x)))[0]


def fit(name, doc, f, a, b, degree, weight=lambda x: 1, single=False, fixed=()):
    fixed = [mpf(c) for c in fixed]
    c, error = minimax(f, a, b, degree, weight, fixed)
    rounder = to_single if single else to_float
    if single:
        # Round one coefficient, fit the rest again: the error of rounding is taken up by the others.
        for k in range(len(fixed), degree + 1):
            c[k] = mpf(rounder(c[k]))
            if k < degree:
                c, error = minimax(f, a, b, degree, weight, c[: k + 1])
    else:
        c = [mpf(rounder(x)) for x in c]
    c = [float(x) for x in c[len(fixed):]]
    print(f"{name}: {float(log(error, 2)):.1f} bits", file=sys.stderr)
    print(f"/// {doc} Weighted error 2^{float(log(error, 2)):.1f}.")
    print(f"pub(crate) const {name}: [f64; {len(c)}] = [")
    for x in c:
        print(f"    {x!r},")
    print("];")


def series(g, terms=40):
    """f(z) that is safe at z = 0: g(z) away from it, a tiny shift at it."""
    return lambda z: g(mpf(z) if abs(z) > mpf(10) ** -25 else mpf(10) ** -25)


def const_dd(name, doc, x, bits=53):
    """A constant as a head of `bits` bits and a tail."""
    from mpmath import floor, frexp, ldexp, nint
    m, e = frexp(x)
    head = ldexp(nint(ldexp(m, bits)), e - bits)
    tail = to_float(x - head)
    print(f"/// {doc}")
    print(f"pub(crate) const {name}: (f64, f64) = ({float(head)!r}, {tail!r});")


def split(x, bits):
    """The multiple of 2^-bits next to `x`, and what is left."""
    head = mp.nint(x * mpf(2) ** bits) / mpf(2) ** bits
    return float(head), float(x - head)


def table(name, doc, entry):
    """Sixteen values for mantissas around j / 16, in the order of the lowest bits of j."""
    print(f"/// {doc}")
    print(f"pub(crate) const {name}: [f64; 16] = [")
    for k in range(16):
        j = k if k >= 12 else k + 16
        # There is no mantissa for 25, 26 and 27.
        print(f"    {entry(min(j, 24))!r},")
    print("];")


def inverse(j):
    """16 / j to so few bits that a mantissa times it, less 1, is a float."""
    unit = 16 if j < 16 else 32
    return float(mp.nint(mpf(16) / j * unit) / unit)


def logarithms():
    """What pow looks up, and the polynomials of what is left."""
    table("INVERSE", "About 16 / j with so few bits that m * INVERSE - 1 is exact for m next to j / 16, j = 12 to 24.", inverse)
    table("LOG_HEAD", "-log of [`INVERSE`] to 42 bits, so that the sum with an exponent times ln 2 is exact.", lambda j: split(-log(mpf(inverse(j))), 42)[0])
    table("LOG_TAIL", "What [`LOG_HEAD`] lacks.", lambda j: split(-log(mpf(inverse(j))), 42)[1])
    fit("LOG_REST", "(log(1 + r) - r + r^2 / 2) / r^3, |r| <= 0.055.", lambda r: (log(1 + r) - r + r**2 / 2) / r**3 if abs(r) > mpf(10) ** -12 else mpf(1) / 3 - r / 4, "-0.055", "0.055", 9, lambda r: max(abs(r), mpf("0.002")) ** 2)
    table("W_INVERSE", "16 / j, for `f32` results.", lambda j: 16 / j)
    table("W_LOG2", "-log2 of [`W_INVERSE`].", lambda j: float(-log(mpf(16 / j), 2)) + 0.0)
    fit("W_LOG2_REST", "log2(1 + r) / r, -1/26 <= r <= 1/24, for `f32` results.", series(lambda r: log(1 + r, 2) / r), "-0.0385", "0.0417", 5)


def error_function():
    """Polynomials around the multiples of a width, as one table a power.

    The first interval ends where erf is 1/4, so that no constant is rounded more coarsely than the
    results around it; and of all widths near by this one has first constants that are almost floats.
    """
    width, rows, worst = mpf(0.4507000000000161), [], 0
    for n in range(16):
        middle, ends = n * width, [-width / 2 - mpf("1e-4"), width / 2 + mpf("1e-4")]
        if n == 0:
            # The odd powers alone: small results are as accurate as large ones.
            c, error = chebyfit(lambda t: erf(t) / t if t else 2 / sqrt(pi), ends, 13, error=True)
            c = [mpf(0)] + [x if k % 2 == 0 else mpf(0) for k, x in enumerate(c[::-1])]
        else:
            c, error = chebyfit(lambda t: erf(middle + t), ends, 14, error=True)
            c, error = c[::-1], error / erf(middle - width / 2)
        rows.append(c)
        worst = max(worst, error)
    print("/// The middles of the intervals of [`ERF`] are multiples of this.")
    print(f"pub(crate) const ERF_WIDTH: f64 = {float(width)!r};")
    print("/// erf(x) in x - n ERF_WIDTH, no more than half of it, for n = 0 to 15: the even powers, then")
    print(f"/// the odd ones, each from the lowest. Relative error 2^{float(log(worst, 2)):.1f}.")
    print("#[rustfmt::skip]")
    print("pub(crate) const ERF: &[[[f64; 16]; 7]; 2] = &[")
    for odd in range(2):
        print("    [")
        for k in range(odd, 14, 2):
            print("        [")
            for n in range(0, 16, 4):
                print("            " + ", ".join(repr(float(c[k])) for c in rows[n : n + 4]) + ",")
            print("        ],")
        print("    ],")
    print("];")


def main():
    half = log(2) / 2 * mpf("1.001")
    print("//! Polynomial coefficients and split constants, written by `fit.py`; lowest power first.")
    print("//!")
    print("//! Assumes nothing; read by the other files of `math`. Do not edit, change the script.")
    print()
    print("// Digits beyond the nearest value do no harm, and some constants resemble well-known ones.")
    print("#![allow(clippy::excessive_precision, clippy::approx_constant, clippy::unreadable_literal)]")
    print()
    const_dd("LN2", "ln 2; the head has 42 bits, so a product with an exponent is exact.", log(2), 42)
    const_dd("LN2_F32", "ln 2 for `f32`; the head has 15 bits.", log(2), 15)
    const_dd("LOG2E", "1 / ln 2.", 1 / log(2))
    const_dd("LOG10E", "1 / ln 10.", 1 / log(10))
    const_dd("LOG10_2", "log10 2; the head has 42 bits.", log(2) / log(10), 42)
    const_dd("THIRD", "1 / 3.", mpf(1) / 3)
    const_dd("PI", "pi.", pi)
    const_dd("HALF_PI", "pi / 2.", pi / 2)
    parts = [to_single(pi / 2)]
    parts.append(to_single(pi / 2 - parts[0]))
    parts.append(to_single(pi / 2 - parts[0] - mpf(parts[1])))
    print("/// pi / 2 as three `f32`.")
    print(f"pub(crate) const HALF_PI_F32: [f64; 3] = {parts!r};")
    const_dd("QUARTER_PI", "pi / 4.", pi / 4)
    const_dd("TWO_OVER_SQRT_PI", "2 / sqrt(pi).", 2 / sqrt(pi))
    a, b = mpf(float(pi / 2)), 0
    b = mpf(float(pi / 2 - a))
    print("/// pi / 2 beyond its pair.")
    print(f"pub(crate) const HALF_PI_TAIL: f64 = {float(pi / 2 - a - b)!r};")
    mp.prec = 1400
    words = int(mp.floor(2 / mp.pi * mpf(2) ** 1280))
    print("/// The first 1280 bits of 2 / pi.")
    print("pub(crate) const TWO_OVER_PI: [u64; 20] = [")
    for i in range(20):
        print(f"    0x{(words >> (64 * (19 - i))) & (2**64 - 1):016x},")
    print("];")
    mp.prec = 300

    fit("EXP", "(e^r - 1 - r) / r^2, |r| <= ln 2 / 2.", series(lambda r: (exp(r) - 1 - r) / r**2), -half, half, 9, lambda r: max(abs(r), mpf("0.03")) ** 2)
    fit("EXP2", "(2^r - 1) / r, |r| <= 1/2.", series(lambda r: (mpf(2) ** r - 1) / r), "-0.5", "0.5", 10, lambda r: max(abs(r), mpf("0.03")))
    at = lambda z: atanh(sqrt(z)) / sqrt(z)
    fit("ATANH", "(atanh(s) / s - 1 - z / 3) / z^2, z = s^2, |s| <= 0.202.", lambda z: ((at(z) - 1) / z - mpf(1) / 3) / z if z > mpf(10) ** -12 else mpf(1) / 5 + z / 7, 0, "0.0409", 7, lambda z: max(z, mpf("0.002")) ** 2)
    quarter2 = (pi / 4 * mpf("1.001")) ** 2
    fit("SIN", "(sin(r) - r) / r^3 in r^2, |r| <= pi/4.", lambda z: (sin(sqrt(z)) / sqrt(z) - 1) / z if z > mpf(10) ** -15 else -mpf(1) / 6 + z / 120, 0, quarter2, 5, lambda z: max(z, mpf("0.01")))
    half2 = (pi / 2 * mpf("1.0001")) ** 2
    fit("SIN_HALF", "(sin(r) - r) / r^3 in r^2, |r| <= pi/2.", lambda z: (sin(sqrt(z)) / sqrt(z) - 1) / z if z > mpf(10) ** -15 else -mpf(1) / 6 + z / 120, 0, half2, 7, lambda z: max(z, mpf("0.01")))
    fit("COS", "(cos(r) - 1 + r^2 / 2) / r^4 in r^2, |r| <= pi/4.", lambda z: (cos(sqrt(z)) - 1 + z / 2) / z**2 if z > mpf(10) ** -12 else mpf(1) / 24 - z / 720, 0, quarter2, 5, lambda z: max(z, mpf("0.01")) ** 2)
    fit("ASIN", "(asin(t) - t) / t^3 in t^2, |t| <= 1/2.", lambda z: (asin(sqrt(z)) / sqrt(z) - 1) / z if z > mpf(10) ** -15 else mpf(1) / 6 + 3 * z / 40, 0, "0.2501", 12, lambda z: max(z, mpf("0.01")))
    fit("ATAN", "(atan(t) - t) / t^3 in t^2, |t| <= tan(pi/8).", lambda z: (atan(sqrt(z)) / sqrt(z) - 1) / z if z > mpf(10) ** -15 else -mpf(1) / 3 + z / 5, 0, "0.1717", 10, lambda z: max(z, mpf("0.005")))
    spi = 2 / sqrt(pi)
    error_function()
    third = mpf(1) / 3
    fit("CBRT", "m^(-1/3), 3/8 <= m <= 3.", lambda m: m ** -third, "0.375", "3", 6, lambda m: m**third)

    fit("W_EXP", "(e^r - 1) / r, |r| <= ln 2 / 2, for `f32` results.", series(lambda r: (exp(r) - 1) / r), -half, half, 6)
    fit("W_LOG", "(log(1 + f) / f - 1) / f, -1/4 <= f <= 1/2, for `f32` results.", series(lambda f: (log(1 + f) / f - 1) / f), "-0.2501", "0.5001", 10, lambda f: max(abs(f), mpf("0.05")))
    fit("W_SIN", "(sin(r) - r) / r^3 in r^2, |r| <= pi/2, for `f32` results.", lambda z: (sin(sqrt(z)) / sqrt(z) - 1) / z if z > mpf(10) ** -15 else -mpf(1) / 6 + z / 120, 0, half2, 4, lambda z: max(z, mpf("0.01")))
    fit("W_TAN", "(tan(r) - r) / r^3 in r^2, |r| <= pi/4, for `f32` results.", lambda z: (tan(sqrt(z)) / sqrt(z) - 1) / z if z > mpf(10) ** -15 else third + 2 * z / 15, 0, quarter2, 7, lambda z: max(z, mpf("0.01")))
    fit("W_ASIN", "(asin(t) - t) / t^3 in t^2, |t| <= 1/2, for `f32` results.", lambda z: (asin(sqrt(z)) / sqrt(z) - 1) / z if z > mpf(10) ** -15 else mpf(1) / 6 + 3 * z / 40, 0, "0.2501", 6, lambda z: max(z, mpf("0.01")))
    fit("W_ATAN", "(atan(t) - t) / t^3 in t^2, |t| <= 1, for `f32` results.", lambda z: (atan(sqrt(z)) / sqrt(z) - 1) / z if z > mpf(10) ** -15 else -third + z / 5, 0, "1.0001", 10, lambda z: max(z, mpf("0.01")))

    fit("S_EXP", "(e^r - 1 - r) / r^2, |r| <= ln 2 / 2, in `f32`.", series(lambda r: (exp(r) - 1 - r) / r**2), -half, half, 4, lambda r: max(abs(r), mpf("0.05")) ** 2, True)
    fit("S_EXP2", "(2^r - 1) / r, |r| <= 1/2, in `f32`.", series(lambda r: (mpf(2) ** r - 1) / r), "-0.5", "0.5", 5, lambda r: max(abs(r), mpf("0.05")), True)
    fit("S_EXP2_UNIT", "2^f, 0 <= f < 1, in `f32`; 1 at 0.", lambda f: mpf(2) ** f, 0, 1, 6, lambda f: mpf(2) ** -f, True, [1])
    fit("EXP2_UNIT", "2^f, 0 <= f < 1; 1 at 0.", lambda f: mpf(2) ** f, 0, 1, 11, lambda f: mpf(2) ** -f, False, [1])
    fit("S_LOG", "(log(1 + f) / f - 1) / f, -1/4 <= f <= 1/2, in `f32`.", series(lambda f: (log(1 + f) / f - 1) / f), "-0.2501", "0.5001", 8, lambda f: max(abs(f), mpf("0.05")), True)
    fit("S_SIN", "(sin(r) - r) / r^3 in r^2, |r| <= pi/4, in `f32`.", lambda z: (sin(sqrt(z)) / sqrt(z) - 1) / z if z > mpf(10) ** -15 else -mpf(1) / 6 + z / 120, 0, (pi / 4 * mpf("1.005")) ** 2, 2, lambda z: max(z, mpf("0.01")), True)
    fit("S_COS", "(cos(r) - 1) / r^2 in r^2, |r| <= pi/4, in `f32`.", lambda z: (cos(sqrt(z)) - 1) / z if z > mpf(10) ** -15 else z / 24 - mpf(1) / 2, 0, (pi / 4 * mpf("1.005")) ** 2, 3, lambda z: max(z, mpf("0.01")), True)
    fit("S_TANH", "(tanh(x) / x - 1) / x^2 in x^2, |x| <= 0.549, in `f32`.", lambda z: (tanh(sqrt(z)) / sqrt(z) - 1) / z if z > mpf(10) ** -15 else 2 * z / 15 - third, 0, "0.3021", 4, lambda z: max(z, mpf("0.005")), True)
    fit("S_ERF", "(erf(x) / x - 2 / sqrt(pi)) / x^2 in x^2, |x| <= 1, in `f32`.", lambda z: (erf(sqrt(z)) / sqrt(z) - spi) / z if z > mpf(10) ** -15 else spi * (-third + z / 10), 0, "1.001", 5, lambda z: max(z, mpf("0.01")), True)
    fit("S_ERFC", "log2(erfc(x)) in x - 2, 1 <= x <= 4, in `f32`.", lambda t: log(erfc(t + 2), 2), "-1.001", "2", 7, lambda t: erfc(t + 2), True)
    logarithms()


main()
