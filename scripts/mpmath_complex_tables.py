"""Write data/complex/<function>.txt: values of the complex functions by mpmath, rounded to doubles.

    python -m pip install mpmath && python scripts/mpmath_complex_tables.py

A line is `re im -> re im` (for two operands `re im re im -> re im`), each number the sixteen hex
digits of a double. Lines beginning with # are comments. Arguments on a branch cut carry the sign of
their zero; mpmath has no signed zero, so there the argument is moved off the cut by a distance far
below a double's resolution, to the side that the sign says. Points are drawn from a fixed seed, so
the output is the same at each run.
"""

import math
import random
import struct
import sys
from pathlib import Path

import mpmath
from mpmath import mp, mpc, mpf

# Enough for exp of 1e308 cis(1e308): its angle alone has 1024 bits before the point.
mp.prec = 2600

OFF_CUT = mpf(2) ** -2400
POINTS = 170


def bits(x):
    return struct.pack(">d", x).hex()


def rounded(x):
    """The double nearest to x, with infinities and subnormals as IEEE has them."""
    if x == 0:
        return 0.0
    sign, man, exp, bc = x._mpf_
    if not man:
        return float(x)
    top = exp + bc - 1
    if top > 1024:
        return -math.inf if sign else math.inf
    lowest = max(top - 52, -1074)
    shift = lowest - exp
    value = int(man)
    if shift > 0:
        if shift > bc + 2:
            value = 0
        else:
            half = 1 << (shift - 1)
            rest = value & ((1 << shift) - 1)
            value >>= shift
            if rest > half or (rest == half and value & 1):
                value += 1
    else:
        value <<= -shift
    try:
        result = math.ldexp(value, lowest)
    except OverflowError:
        result = math.inf
    return -result if sign else result


def number(re, im):
    """An exact argument; zeros are nudged to the side of their sign."""
    nudge = lambda x: mpf(x) if x != 0 else OFF_CUT * math.copysign(1, x)
    return mpc(nudge(re), nudge(im))


def part(x):
    """A part as a double; what came only from the nudge is a zero of its sign."""
    return math.copysign(rounded(x), 1 if x >= 0 else -1)


def sigmoid(z):
    return 1 / (1 + mpmath.exp(-z))


def sign(z):
    return z / abs(z)


UNARY = {
    "exp": mpmath.exp,
    "exp2": lambda z: mpmath.exp(z * mpmath.log(2)),
    "expm1": lambda z: mpmath.exp(z) - 1,
    "log": mpmath.log,
    "log2": lambda z: mpmath.log(z) / mpmath.log(2),
    "log10": lambda z: mpmath.log(z) / mpmath.log(10),
    "log1p": lambda z: mpmath.log(1 + z),
    "sqrt": mpmath.sqrt,
    "rsqrt": lambda z: 1 / mpmath.sqrt(z),
    "sin": mpmath.sin,
    "cos": mpmath.cos,
    "tan": mpmath.tan,
    "sinh": mpmath.sinh,
    "cosh": mpmath.cosh,
    "tanh": mpmath.tanh,
    "asin": mpmath.asin,
    "acos": mpmath.acos,
    "atan": mpmath.atan,
    "asinh": mpmath.asinh,
    "acosh": mpmath.acosh,
    "atanh": mpmath.atanh,
    "reciprocal": lambda z: 1 / z,
    "sigmoid": sigmoid,
    "sign": sign,
}

# Functions that overflow at huge arguments in these parts; for exp2, whose angle is a product with
# log(2), huge imaginary parts are also beyond what is promised.
GROWING = {
    "exp": (True, False),
    "exp2": (True, True),
    "expm1": (True, False),
    "sinh": (True, False),
    "cosh": (True, False),
    "sin": (False, True),
    "cos": (False, True),
}

# Centres of difficulty: branch points, zeros, poles, and the unit circle.
CENTRES = {
    "exp": [(0, 0), (709, 0.5), (-745, 1)],
    "exp2": [(0, 0), (1023, 0.5), (-1070, 1)],
    "expm1": [(0, 0), (0, 2 * math.pi), (0, math.pi), (0.5, math.acos(math.exp(-0.5)))],
    "log": [(1, 0), (-1, 0), (0, 1), (0.6, 0.8)],
    "log2": [(1, 0), (-1, 0), (0, 1), (0.6, 0.8)],
    "log10": [(1, 0), (-1, 0), (0, 1), (0.6, 0.8)],
    "log1p": [(0, 0), (-1, 0), (-2, 0), (-0.4, 0.8), (-0.5, math.sqrt(0.75))],
    "sqrt": [(-1, 0), (1, 0)],
    "rsqrt": [(-1, 0), (1, 0)],
    "sin": [(math.pi, 0), (math.pi / 2, 0), (0, 0)],
    "cos": [(math.pi, 0), (math.pi / 2, 0), (0, 0)],
    "tan": [(math.pi, 0), (math.pi / 2, 0), (0, 0), (0, 20)],
    "sinh": [(0, math.pi), (0, math.pi / 2), (0, 0), (709, 1)],
    "cosh": [(0, math.pi), (0, math.pi / 2), (0, 0), (709, 1)],
    "tanh": [(0, math.pi), (0, math.pi / 2), (0, 0), (22, 1)],
    "asin": [(1, 0), (-1, 0), (0, 1)],
    "acos": [(1, 0), (-1, 0), (0, 1)],
    "atan": [(0, 1), (0, -1), (1, 0)],
    "asinh": [(0, 1), (0, -1), (1, 0)],
    "acosh": [(1, 0), (-1, 0), (0, 1)],
    "atanh": [(1, 0), (-1, 0), (0, 1)],
    "sigmoid": [(0, math.pi), (0, 0), (-40, 1)],
}

# Where the value is infinite, and the special-case tables have a word.
POLES = {"atanh": ((1, 0), (-1, 0)), "atan": ((0, 1), (0, -1)), "log1p": ((-1, 0),)}

TINY, SMALL, HUGE = 5e-324, 1e-310, 1.7e308


def power(rng, low, high):
    return rng.choice((-1, 1)) * 10 ** rng.uniform(low, high)


def axis_points():
    """Both sides of each axis, where the cuts and the signs of zeros are."""
    points = []
    for x in (0.25, 1.0, 1.5, 40.0):
        for s in (1, -1):
            for zero in (0.0, -0.0):
                points += [(s * x, zero), (zero, s * x)]
    return points


def unary_points(name):
    rng = random.Random("tilework " + name)
    points = axis_points()
    grows = GROWING.get(name, (False, False))
    wide = lambda growing, low, high: power(rng, low, min(high, 2.7) if growing else high)
    for size in (TINY, SMALL, 1e-200, 1e-20, 1e20, 1e160, HUGE):
        for a, b in ((size, size), (-size, size / 3 or size), (size, 1.0), (-1.0, size), (0.5, -size)):
            points.append((math.copysign(700.0, a) if grows[0] and abs(a) > 1e3 else a,
                           math.copysign(700.0, b) if grows[1] and abs(b) > 1e3 else b))
    for x, y in CENTRES.get(name, []):
        for reach in (1e-300, 1e-17, 1e-12, 1e-8, 1e-3, 0.1):
            points.append((x + power(rng, -1, 0) * reach, y + power(rng, -1, 0) * reach))
    while len(points) < POINTS * 3 // 4:
        points.append((power(rng, -2, 1.2), power(rng, -2, 1.2)))
    while len(points) < POINTS:
        points.append((wide(grows[0], -30, 30), wide(grows[1], -30, 30)))
    return [p for p in points if p != (0, 0) and p not in POLES.get(name, ())]


def value(function, *operands):
    result = mpc(function(*operands))
    return part(result.real), part(result.imag)


def pow_points():
    rng = random.Random("tilework pow")
    points = []
    for n in (2, 3, 5, 7, 10, 31, 100, 257, 1000):
        for s in (1, -1):
            radius = 2.0 ** (rng.uniform(-900, 900) / n)
            angle = rng.uniform(-math.pi, math.pi)
            points.append((radius * math.cos(angle), radius * math.sin(angle), float(s * n), 0.0))
    for w in (0.5, -0.5, 1 / 3, 2.5, -7.25):
        for zero in (0.0, -0.0):
            points += [(-2.0, zero, w, 0.0), (3.0, zero, w, 0.0)]
    for _ in range(60):
        points.append(tuple(power(rng, -1.5, 1) for _ in range(4)))
    for _ in range(40):
        # Large exponents of numbers near the unit circle, and large logarithms.
        angle = rng.uniform(-math.pi, math.pi)
        points.append((math.cos(angle), math.sin(angle), power(rng, 1, 4), power(rng, -3, 1.5)))
        points.append((power(rng, -150, 150), power(rng, -150, 150), rng.uniform(-2, 2), power(rng, -3, 1)))
    return points


def div_points():
    rng = random.Random("tilework div")
    points = []
    for _ in range(60):
        points.append(tuple(power(rng, -2, 2) for _ in range(4)))
    for _ in range(50):
        points.append(tuple(power(rng, -300, 300) for _ in range(4)))
    for low, high in ((-320, -300), (300, 308), (-308, 308)):
        for _ in range(15):
            points.append(tuple(power(rng, low, high) for _ in range(4)))
    points += [(1.0, 1.0, 1.0, 2.0 ** 1023), (1.0, 1.0, 2.0 ** -1023, 2.0 ** -1023),
               (2.0 ** 1023, 2.0 ** -1023, 2.0 ** 677, 2.0 ** -677), (2.0 ** 1023, 2.0 ** 1023, 1.0, 1.0),
               (2.0 ** 1020, 2.0 ** -844, 2.0 ** 656, 2.0 ** -780), (2.0 ** -71, 2.0 ** 1021, 2.0 ** 1001, 2.0 ** -323),
               (2.0 ** -347, 2.0 ** -54, 2.0 ** -1037, 2.0 ** -1058), (2.0 ** -1074, 2.0 ** -1074, 2.0 ** -1073, 2.0 ** -1074),
               (2.0 ** 1015, 2.0 ** -989, 2.0 ** 1023, 2.0 ** 1023), (2.0 ** -622, 2.0 ** -1071, 2.0 ** -343, 2.0 ** -798)]
    return points


def write(folder, name, rows, operands):
    sides = " ".join(["re im"] * operands)
    lines = [f"# {name}: mpmath {mpmath.__version__} at {mp.prec} bits, {len(rows)} rows",
             f"# {sides} -> re im, each the bits of a double; see scripts/mpmath_complex_tables.py"]
    for arguments, parts in rows:
        lines.append(" ".join(map(bits, arguments)) + " -> " + " ".join(map(bits, parts)))
    (folder / f"{name}.txt").write_text("\n".join(lines) + "\n")


def main():
    folder = Path(__file__).resolve().parent.parent / "data" / "complex"
    folder.mkdir(parents=True, exist_ok=True)
    total = 0
    tables = [(name, f, [(p,) for p in unary_points(name)]) for name, f in UNARY.items()]
    tables.append(("pow", lambda z, w: mpmath.exp(w * mpmath.log(z)), [(p[:2], p[2:]) for p in pow_points()]))
    tables.append(("div", lambda z, w: z / w, [(p[:2], p[2:]) for p in div_points()]))
    only = set(sys.argv[1:])
    for name, function, points in tables:
        if only and name not in only:
            continue
        rows = []
        for operands in points:
            # Cuts are those of the first operand, so a zero in the second is just that.
            numbers = [number(*operands[0])] + [mpc(*p) for p in operands[1:]]
            parts = value(function, *numbers)
            rows.append(([x for p in operands for x in p], parts))
        write(folder, name, rows, len(points[0]))
        total += len(rows)
        print(f"{name}: {len(rows)}")
    print(f"{total} rows")


if __name__ == "__main__":
    main()
