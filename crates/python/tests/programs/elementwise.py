"""Steps on elements: two operands of any dtypes, one operand, casts and choices."""

from collections.abc import Callable

import numpy as np

import tilework as tw
from comparison import WIDER, close, same_bits, same_values
from programs.machine import COMPLEX, DTYPES, FLOATS, INTEGERS, Machine, Pair

SCALARS = [0, 1, -1, 2, 3, 7, 100, 300, -200, 2**40, 0.5, -2.0, 1e-3, 3.25, True, False, 1j, 2 - 1j]
SMALL = [0, 1, 2, 0.5, True, 1j]

ARITHMETIC = [
    "add",
    "subtract",
    "multiply",
    "divide",
    "floor_divide",
    "remainder",
    "maximum",
    "minimum",
]
BITS = ["bitwise_and", "bitwise_or", "bitwise_xor"]
COMPARISONS = ["equal", "not_equal", "less", "less_equal", "greater", "greater_equal"]
LOGIC = ["logical_and", "logical_or", "logical_xor"]


def operand(machine: Machine, beside: Pair, numbers: list = SCALARS) -> tuple[str, object, object]:
    """Another operand: a number of Python, or an array that may or may not broadcast."""
    if machine.chance(3):
        number = machine.choice(numbers)
        return repr(number), number, number
    shape = beside.theirs.shape
    fits = [pair for pair in machine.pairs if machine.together(pair.theirs.shape, shape)]
    if fits and not machine.chance(25):
        pair = machine.choice(fits)
    else:
        pair = machine.pick(lambda pair: machine.together(pair.theirs.shape, shape) is not False)
    return pair.name, pair.ours, pair.theirs


def rounded(name: str, x: object, y: object) -> Callable[[tw.Array, np.ndarray], None]:
    """How far a result of two operands may be off: nothing but for complex products, whose parts
    are sums of two products, and for the quotients made of them.
    """

    def check(ours: tw.Array, theirs: np.ndarray) -> None:
        if theirs.dtype.kind != "c" or name not in ("multiply", "divide"):
            return same_values(ours, theirs)
        wide = WIDER[theirs.dtype.name]
        with np.errstate(all="ignore"):
            exact = getattr(np, name)(np.asarray(x).astype(wide), np.asarray(y).astype(wide))
            # Each part: three roundings, or six and a scaling where there is a quotient.
            bound = (2 if name == "multiply" else 6) * np.finfo(theirs.dtype).eps * np.abs(exact)
            finite = np.isfinite(exact)
            close(ours, theirs, np.where(finite, exact, np.asarray(ours)), bound)

    return check


def binary(machine: Machine) -> None:
    a = machine.pick()
    name = machine.choice([*ARITHMETIC, *ARITHMETIC, *BITS, *COMPARISONS, *LOGIC])
    text, ours, theirs = operand(machine, a)
    if name == "subtract" and a.dtype == "bool":
        # NumPy refuses to subtract bools; here they are integers.
        return
    if machine.chance(4):
        x, y, label = (ours, theirs), (a.ours, a.theirs), f"{name}({text}, {a.name})"
    else:
        x, y, label = (a.ours, a.theirs), (ours, theirs), f"{name}({a.name}, {text})"
    if name in ("floor_divide", "remainder") and not quotient_is_clear(x[1], y[1]):
        return
    machine.fresh(
        label,
        lambda: getattr(tw, name)(x[0], y[0]),
        lambda: getattr(np, name)(x[1], y[1]),
        rounded(name, x[1], y[1]),
        # Shapes that do not fit may hide dtypes that do not.
        also=()
        if machine.together(np.shape(x[1]), np.shape(y[1])) is not None
        else (TypeError, ValueError),
    )


def quotient_is_clear(x: object, y: object) -> bool:
    """Whether NumPy's floor division is defined and exact enough to be compared: not for infinite
    operands, where it and the standard differ, nor for float16, where it rounds twice.
    """
    for side in (x, y):
        side = np.asarray(side)
        if side.dtype.kind in "fc" and not np.isfinite(side).all():
            return False
    return np.result_type(x, y) != np.float16


def power(machine: Machine) -> None:
    a = machine.pick(lambda pair: pair.dtype in INTEGERS)
    exponent = machine.between(0, 5)
    machine.fresh(f"{a.name} ** {exponent}", lambda: a.ours**exponent, lambda: a.theirs**exponent)


def shift(machine: Machine) -> None:
    a = machine.pick(lambda pair: pair.dtype in INTEGERS)
    name, amount = machine.choice(["left", "right"]), machine.between(0, 70)
    name = f"bitwise_{name}_shift"
    machine.fresh(
        f"{name}({a.name}, {amount})",
        lambda: getattr(tw, name)(a.ours, amount),
        lambda: getattr(np, name)(a.theirs, amount),
    )


EXACT = [
    "negative",
    "positive",
    "abs",
    "square",
    "logical_not",
    "isnan",
    "isfinite",
    "isinf",
    "bitwise_invert",
]
WHOLE = ["floor", "ceil", "trunc", "round", "sign", "sqrt", "conj"]
# Vector mathematics promises two units in the last place.
CURVES = [
    "exp",
    "expm1",
    "log",
    "log1p",
    "log2",
    "log10",
    "sin",
    "cos",
    "tan",
    "tanh",
    "atan",
    "asinh",
    "exp2",
]


def unary(machine: Machine) -> None:
    a = machine.pick()
    name = machine.choice([*EXACT, *WHOLE])
    if a.dtype == "bool" and name in ("negative", "positive", "square", *WHOLE):
        # NumPy refuses signs of bools, and rounds them to one dtype or another.
        return
    check = same_values
    if a.dtype in COMPLEX and name in ("abs", "square", "sign", "sqrt"):

        def check(ours: tw.Array, theirs: np.ndarray) -> None:
            exact = getattr(np, name)(a.theirs.astype(WIDER[a.dtype]))
            close(ours, theirs, exact, 4 * np.finfo(theirs.dtype).eps * np.abs(exact))

    machine.fresh(
        f"{name}({a.name})",
        lambda: getattr(tw, name)(a.ours),
        lambda: getattr(np, name)(a.theirs),
        check,
    )


def plane(machine: Machine) -> None:
    """Functions of two floats: exact ones, and curves that promise two units in the last place."""
    a = machine.pick(lambda pair: pair.dtype in FLOATS)
    fits = lambda pair: (
        pair.dtype == a.dtype and machine.together(pair.theirs.shape, a.theirs.shape)
    )
    b = machine.pick(fits)
    name = machine.choice(["copysign", "nextafter", "hypot", "atan2"])
    if name == "nextafter" and a.dtype == "float16":
        # What depends on the last bit cannot be computed in float32.
        return

    def check(ours: tw.Array, theirs: np.ndarray) -> None:
        if name in ("copysign", "nextafter"):
            return same_bits(ours, theirs)
        with np.errstate(all="ignore"):
            wide = WIDER[a.dtype]
            exact = np.asarray(getattr(np, name)(a.theirs.astype(wide), b.theirs.astype(wide)))
            close(ours, theirs, exact, 2 * np.finfo(theirs.dtype).eps * np.abs(exact))

    machine.fresh(
        f"{name}({a.name}, {b.name})",
        lambda: getattr(tw, name)(a.ours, b.ours),
        lambda: getattr(np, name)(a.theirs, b.theirs),
        check,
    )


def curve(machine: Machine) -> None:
    a = machine.pick(lambda pair: pair.dtype in FLOATS)
    name = machine.choice(CURVES)

    def check(ours: tw.Array, theirs: np.ndarray) -> None:
        with np.errstate(all="ignore"):
            exact = getattr(np, name)(a.theirs.astype(WIDER[a.dtype]))
            ulp = np.spacing(np.abs(exact).astype(theirs.dtype)).astype(exact.dtype)
            ulp = np.where(np.isfinite(ulp), ulp, 0)
            # Half types are computed in float32 and rounded once more.
            close(ours, theirs, exact, (0.01 if a.dtype == "float16" else 2) * ulp)

    machine.fresh(
        f"{name}({a.name})",
        lambda: getattr(tw, name)(a.ours),
        lambda: getattr(np, name)(a.theirs),
        check,
    )


def choose(machine: Machine) -> None:
    mask = machine.pick(lambda pair: pair.dtype == "bool")
    text, x, x_np = operand(machine, mask, SMALL)
    other = machine.pick(lambda pair: machine.together(pair.theirs.shape, mask.theirs.shape))
    machine.fresh(
        f"where({mask.name}, {text}, {other.name})",
        lambda: tw.where(mask.ours, x, other.ours),
        lambda: np.where(mask.theirs, x_np, other.theirs),
        same_bits,
    )


def cast(machine: Machine) -> None:
    a, dtype = machine.pick(), machine.choice(DTYPES)
    kind, to = a.theirs.dtype.kind, np.dtype(dtype).kind
    if kind == "c" and to != "c":
        return
    if kind == "f" and to in "iu":
        # Out of range is defined here and not in NumPy.
        info = np.iinfo(dtype)
        limit = min(float(info.max) / 2, 1e4)
        if not (np.isfinite(a.theirs).all() and (np.abs(a.theirs) < limit).all()):
            return
        if info.min == 0 and (a.theirs <= -1).any():
            return
    machine.fresh(
        f"{a.name}.astype({dtype})",
        lambda: a.ours.astype(dtype),
        lambda: a.theirs.astype(dtype),
        same_bits,
    )


def clip(machine: Machine) -> None:
    a = machine.pick(lambda pair: pair.theirs.dtype.kind in "iuf")
    low, high = machine.between(0, 3), machine.between(2, 9)
    machine.fresh(
        f"clip({a.name}, {low}, {high})",
        lambda: tw.clip(a.ours, low, high),
        lambda: np.clip(a.theirs, low, high),
    )


OPERATIONS = [binary, binary, binary, binary, power, shift, unary, plane, curve, choose, cast, clip]
