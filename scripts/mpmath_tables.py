"""Reference values of elementary functions, correctly rounded to float64.

Run by hand (needs mpmath from PyPI, gmpy2 makes it fast): `python3 scripts/mpmath_tables.py`.
Writes data/mpmath/<function>.txt, one line a point: `inputbits[,inputbits] resultbits` in hex,
after a comment line. `mpmath_tables.py FOLDER FACTOR` writes larger tables elsewhere (the tests
read those when TILEWORK_MPMATH names the folder). The output is checked in; the tests of the vector
mathematics and of the backends read it. Points are drawn from a fixed seed, so a second run writes
the same files.
"""
import math
import os
import random
import struct
import sys

from mpmath import mp, mpf

# Enough for the sine of the largest double and for 1 - x^2 of the smallest.
mp.prec = 2600
INF, NAN = math.inf, math.nan
TINY, MIN, MAX = 5e-324, 2.2250738585072014e-308, 1.7976931348623157e308


def bits(x):
    if x != x:
        return 0x7FF8000000000000
    return struct.unpack("<Q", struct.pack("<d", x))[0]


def from_bits(b):
    return struct.unpack("<d", struct.pack("<Q", b))[0]


def round_to_double(v, zero_sign=0.0):
    """The nearest double of an mpf, halves to even, subnormals rounded once."""
    if isinstance(v, float):
        return v
    sign, man, exp, _ = v._mpf_
    if not man:
        return math.copysign(0.0, zero_sign) if mp.isfinite(v) else float(v)
    man = int(man)
    drop = max(man.bit_length() - 53, -1074 - exp)
    if drop > 0:
        whole, rest = man >> drop, man & ((1 << drop) - 1)
        half = 1 << (drop - 1)
        man = whole + (rest > half or (rest == half and whole & 1))
        exp += drop
    if man.bit_length() + exp > 1024:
        r = INF
    else:
        r = math.ldexp(man, exp)
    return -r if sign else r


# What a function is where it has no plain value: zeros (kept for their sign), infinities, poles.
def real(f, at_inf=NAN, at_minus_inf=NAN, domain=lambda x: True, poles=None, keep_zero=True):
    def g(x):
        if x != x:
            return NAN
        if poles and x in poles:
            return poles[x]
        if x == INF:
            return at_inf
        if x == -INF:
            return at_minus_inf
        if not domain(x):
            return NAN
        if x == 0 and keep_zero:
            return x
        return round_to_double(f(mpf(x)), x)

    return g


def no_zero(f, **k):
    return real(f, keep_zero=False, **k)


def atan2(y, x):
    try:
        if x != x or y != y or math.isinf(x) or math.isinf(y) or x == 0 or y == 0:
            return math.atan2(y, x)
    except ValueError:
        return NAN
    return round_to_double(mp.atan2(mpf(y), mpf(x)), y)


def hypot(a, b):
    if math.isinf(a) or math.isinf(b):
        return INF
    if a != a or b != b:
        return NAN
    return round_to_double(mp.sqrt(mpf(a) ** 2 + mpf(b) ** 2))


def power(x, y):
    if x == 1 or y == 0:
        return 1.0
    if x != x or y != y:
        return NAN
    special = x == 0 or math.isinf(x) or math.isinf(y)
    if special:
        if x == 0 and y < 0 and not math.isinf(y):
            odd = y == int(y) and int(y) % 2 == 1
            return math.copysign(INF, x) if odd else INF
        if x == 0 and y == -INF:
            return INF
        return math.pow(x, y)
    if x < 0:
        if y != math.floor(y):
            return NAN
        odd = int(y) % 2 == 1
        r = power(-x, y)
        return -r if odd else r
    t = mpf(y) * mp.log(mpf(x))
    if t > 800:
        return INF
    if t < -800:
        return 0.0
    if y == int(y) and abs(y) < 64:
        return round_to_double(mpf(x) ** int(y))
    return round_to_double(mp.exp(t))


def logaddexp(a, b):
    if a != a or b != b:
        return NAN
    if math.isinf(a) or math.isinf(b):
        return max(a, b) + 0.0
    hi, lo = max(a, b), min(a, b)
    return round_to_double(mpf(hi) + mp.log1p(mp.exp(max(mpf(lo) - mpf(hi), mpf(-1500)))))


def sigmoid(x):
    if x < -800:
        return 0.0
    return round_to_double(1 / (1 + mp.exp(-mpf(max(min(x, 800), -800)))))


def limited(f, lo, hi):
    """exp-like functions, saturated before mpmath spends time on them."""
    return lambda x: f(max(min(x, mpf(hi)), mpf(lo)))


def cbrt(x):
    return mp.sign(x) * mp.cbrt(abs(x))


RANDOM = random.Random(20261115)
FACTOR = int(sys.argv[2]) if len(sys.argv) > 2 else 1


def signs(values):
    return [s * v for v in values for s in (1.0, -1.0)]


def spread(n, lo=-1074, hi=1023, both=True):
    """Exponents spread evenly, mantissas at random."""
    out = []
    n *= FACTOR
    for i in range(n):
        e = lo + (hi - lo) * (i + RANDOM.random()) / n
        v = min(math.ldexp(1 + RANDOM.random(), int(math.floor(e))), MAX)
        out.append(v if not both or RANDOM.random() < 0.5 else -v)
    return out


def uniform(n, a, b):
    return [RANDOM.uniform(a, b) for _ in range(n * FACTOR)]


def near(points, n=4):
    """The doubles around some points."""
    out = []
    for p in points:
        b = bits(p)
        out += [from_bits(max(b + d, 0)) for d in range(-n, n + 1)]
    return [x for x in out if x == x]


SPECIAL = signs([0.0, TINY, 3 * TINY, MIN, MIN * (1 - 2**-52), 1.0, MAX, INF]) + [NAN]
EXPS = SPECIAL + spread(150, -60, 9) + uniform(150, -745, 710)
LOGS = SPECIAL + spread(200, both=False) + uniform(120, 0.5, 2) + near([1.0, 0.75, 1.5, 0.5, 2.0, 1000.0, 10.0, 8.0])
TURNS = near([k * math.pi / 4 for k in (1, 2, 3, 4, 5, 6, 7, 8, 11, 22, 355, 710, 104348, 312689, 5419351)], 2)
TRIG = SPECIAL + spread(120, -40, 30) + spread(120, 20, 1023) + uniform(100, -10, 10) + uniform(60, -1e5, 1e5) + TURNS + near([134217728.0, 6381956970095103.0 * 2.0**797], 2)
UNIT = SPECIAL + spread(120, -60, -1) + uniform(150, -1, 1) + near([0.5, -0.5, 1.0, -1.0], 3) + [1.5, -2.0] + [math.copysign(1 - 2.0**-k, s) for k in range(2, 53, 2) for s in (1, -1)]
WIDE = SPECIAL + spread(250) + uniform(120, -10, 10) + near([0.41421356237309503, 2.414213562373095, 1.0, -1.0, 0.5], 2)
MORE = [1.0 + 2.0**-k for k in range(1, 53, 3)]


def pairs(values, n):
    return [(RANDOM.choice(values), RANDOM.choice(values)) for _ in range(n * FACTOR)]


CORNERS = [0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 3.0, -3.0, 0.5, -0.5, INF, -INF, NAN, TINY, -TINY, MAX, -MAX]
ALL_CORNERS = [(a, b) for a in CORNERS for b in CORNERS]


def power_points():
    out = list(ALL_CORNERS)
    for _ in range(200 * FACTOR):
        # Results over the whole range of exponents: choose the result, then the exponent.
        x = math.ldexp(1 + RANDOM.random(), RANDOM.randint(-40, 40))
        if RANDOM.random() < 0.2:
            x = 1 + RANDOM.uniform(-1e-3, 1e-3)
        t = RANDOM.uniform(-744, 709)
        if x != 1.0:
            out.append((x, t / math.log(x)))
    out += [(-RANDOM.uniform(0.1, 9), float(RANDOM.randint(-60, 60))) for _ in range(40)]
    out += [(RANDOM.uniform(0.1, 9), float(RANDOM.randint(-9, 9))) for _ in range(30)]
    out += [(v, RANDOM.uniform(-1, 1)) for v in spread(40, both=False)]
    return out


FUNCTIONS = {
    "exp": (no_zero(limited(mp.exp, -800, 800), at_inf=INF, at_minus_inf=0.0), EXPS),
    "exp2": (no_zero(limited(lambda x: mpf(2) ** x, -1100, 1100), at_inf=INF, at_minus_inf=0.0), EXPS + uniform(60, -1075, 1024) + [float(k) for k in range(-8, 9)]),
    "expm1": (real(limited(mp.expm1, -800, 800), INF, -1.0), EXPS + spread(60, -40, 1)),
    "log": (real(mp.log, INF, domain=lambda x: x >= 0, poles={0.0: -INF}), LOGS),
    "log2": (real(lambda x: mp.log(x) / mp.log(2), INF, domain=lambda x: x >= 0, poles={0.0: -INF}), LOGS + [2.0**k for k in range(-30, 31, 3)]),
    "log10": (real(mp.log10, INF, domain=lambda x: x >= 0, poles={0.0: -INF}), LOGS + [10.0**k for k in range(-5, 23)]),
    "log1p": (real(mp.log1p, INF, domain=lambda x: x >= -1, poles={-1.0: -INF}), SPECIAL + spread(200, -60, 1023, False) + uniform(150, -1, 1) + [-x for x in spread(60, -60, -1, False)] + near([0.5, -0.25, -0.5, -1.0])),
    "sin": (real(mp.sin), TRIG),
    "cos": (no_zero(mp.cos), TRIG),
    "tan": (real(mp.tan), TRIG),
    "sinh": (real(limited(mp.sinh, -800, 800), INF, -INF), EXPS + spread(100, -30, 3) + near([710.4758600739439, 710.0], 2)),
    "cosh": (no_zero(limited(mp.cosh, -800, 800), at_inf=INF, at_minus_inf=INF), EXPS + spread(60, -30, 3) + near([710.4758600739439], 2)),
    "tanh": (real(limited(mp.tanh, -60, 60), 1.0, -1.0), SPECIAL + spread(250, -60, 5) + uniform(100, -20, 20)),
    "sigmoid": (no_zero(lambda x: sigmoid(float(x)), at_inf=1.0, at_minus_inf=0.0), SPECIAL + spread(150, -60, 9) + uniform(100, -745, 40) + uniform(100, -5, 5)),
    "asin": (real(mp.asin, domain=lambda x: abs(x) <= 1), UNIT),
    "acos": (no_zero(mp.acos, domain=lambda x: abs(x) <= 1), UNIT),
    "atan": (real(mp.atan, round_to_double(mp.pi / 2), -round_to_double(mp.pi / 2)), WIDE),
    "asinh": (real(mp.asinh, INF, -INF), WIDE + spread(80, -30, 5)),
    "acosh": (no_zero(mp.acosh, at_inf=INF, domain=lambda x: x >= 1), SPECIAL + spread(200, 0, 1023, False) + uniform(120, 1, 4) + MORE + near([1.0, 2.0])),
    "atanh": (real(mp.atanh, domain=lambda x: abs(x) <= 1, poles={1.0: INF, -1.0: -INF}), UNIT + near([0.2, 0.1428571], 2)),
    "erf": (real(limited(mp.erf, -30, 30), 1.0, -1.0), SPECIAL + spread(200, -60, 3) + uniform(200, -6.5, 6.5) + near([1.0, 6.0], 3)),
    "sqrt": (real(mp.sqrt, INF, domain=lambda x: x >= 0), SPECIAL + spread(300, both=False)),
    "rsqrt": (real(lambda x: 1 / mp.sqrt(x), 0.0, domain=lambda x: x >= 0, poles={0.0: INF}), [x for x in SPECIAL if bits(x) != bits(-0.0)] + spread(300, both=False)),
    "cbrt": (real(cbrt, INF, -INF), SPECIAL + spread(350) + near([8.0, 27.0, -1.0], 2)),
    "atan2": (atan2, ALL_CORNERS + pairs(spread(200), 100) + pairs(spread(200, -3, 3), 150) + list(zip(spread(60, -1000, -10), spread(60, 0, 60)))),
    "hypot": (hypot, ALL_CORNERS + pairs(spread(200), 60) + list(zip(spread(120, 500, 1022), spread(120, 500, 1022))) + list(zip(spread(60, -1074, -900), spread(60, -1074, -900))) + pairs(spread(200, -3, 3), 100)),
    "pow": (power, power_points()),
    "logaddexp": (logaddexp, ALL_CORNERS + pairs(uniform(200, -40, 40), 150) + pairs(spread(200, -30, 10), 100)),
    "xlogx": (no_zero(lambda x: x * mp.log(x), at_inf=INF, domain=lambda x: x >= 0, poles={0.0: 0.0}), LOGS),
    "sinxdivx": (no_zero(lambda x: mp.sin(x) / x, poles={0.0: 1.0}), TRIG),
}


def single(x):
    """The nearest float32 as a double; too large ones are left as they are."""
    try:
        return struct.unpack("<f", struct.pack("<f", x))[0]
    except OverflowError:
        return x


def with_singles(points):
    """Every fifth point again where float32 has it, so that float32 can be tested too."""
    return points + [tuple(map(single, p)) if isinstance(p, tuple) else single(p) for p in points[::5]]


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    folder = sys.argv[1] if len(sys.argv) > 1 else os.path.join(here, "..", "data", "mpmath")
    os.makedirs(folder, exist_ok=True)
    for name, (f, points) in FUNCTIONS.items():
        lines, seen = [], set()
        for p in with_singles(points):
            args = p if isinstance(p, tuple) else (p,)
            key = ",".join(f"{bits(a):016x}" for a in args)
            if key not in seen:
                seen.add(key)
                lines.append(f"{key} {bits(f(*args)):016x}\n")
        with open(os.path.join(folder, name + ".txt"), "w") as out:
            out.write(f"# {name}: inputs and the correctly rounded result, bits of float64; by scripts/mpmath_tables.py\n")
            out.writelines(lines)
        print(name, len(lines))


main()
