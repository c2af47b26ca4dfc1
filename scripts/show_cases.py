"""Writes crates/tilework/tests/data/show.txt: arrays and what NumPy prints for them.

Run with NumPy 2.4 or later from the repository's root: python scripts/show_cases.py
Each case is a line `case DTYPE SHAPE DATA OPTIONS`, then `str N` and N lines, `repr N` and N lines.
DATA is `arange` or the little-endian bytes in hexadecimal; SHAPE is lengths with commas or `-`.
"""

import pathlib
import sys

import numpy as np

OUT = pathlib.Path(__file__).parent.parent / "crates/tilework/tests/data/show.txt"
lines = []


def block(name, text):
    rows = text.split("\n")
    lines.append(f"{name} {len(rows)}")
    lines.extend(rows)


def case(array, generated=False, **options):
    array = np.asarray(array)
    shape = ",".join(map(str, array.shape)) or "-"
    data = "arange" if generated else (array.tobytes().hex() or "-")
    words = " ".join(f"{key}={value}" for key, value in options.items())
    lines.append(f"case {array.dtype} {shape} {data} {words}".rstrip())
    with np.printoptions(**options):
        block("str", str(array))
        block("repr", repr(array))


def arange(*shape, dtype="int64", **options):
    case(np.arange(np.prod(shape)).astype(dtype).reshape(shape), generated=True, **options)


FLOATS = ["float16", "float32", "float64"]
INTS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
inf, nan = np.inf, np.nan

# Integers and bools.
for dtype in INTS:
    info = np.iinfo(dtype)
    case(np.array([1, 2, 30], dtype))
    case(np.array([[info.min, 0], [7, info.max]], dtype))
    case(np.array(5, dtype))
case(np.array([True, False]))
case(np.array([[True, True], [False, True]]))
case(np.array(True))
case(np.array(False))
case(np.array([-1, 10, -100], "int64"), sign="+")
case(np.array([1, 10, 100], "int64"), sign=" ")
case(np.array([-1, 10, 100], "int64"), sign=" ")

# Floats: notation, alignment, special values.
VALUES = [
    [1.0, 2.0, 3.0],
    [1.5, 22.25, -3.0],
    [0.1, 0.2, 0.3],
    [1 / 3, 2 / 3, 1.0],
    [1.1, 1e-2, 1e-1],
    [1e-5, 1.0],
    [1e-4, 1e-3],
    [9.9e-5, 1e-3],
    [0.0, -0.0],
    [0.0, 1e-6],
    [999.0, 1.0],
    [1000.0, 1.0],
    [1001.0, 1.0],
    [12345.678, 99.0],
    [nan, 1.0],
    [nan, -1.25, inf],
    [-inf, 1.0],
    [inf],
    [nan],
    [-inf, nan],
    [1e-3, nan, inf, 1.0],
    [nan, 1e-5],
    [-inf, 1e-5, 123.0],
    [3.141592653589793, 2.718281828459045],
    [-0.5, 0.25, 1e-4],
    [100.0, 200.5],
    [0.1 + 0.2, 0.3],
    [9.5367431640625e-07],
    [5.9604645e-08, 1.0],
]
for dtype in FLOATS:
    for values in VALUES:
        with np.errstate(over="ignore"):
            case(np.array(values, dtype))
for values in [[1e8, 1.0], [99999999.0, 1e6], [1e10], [1e300, 1e-300], [5e-324], [2.0**-44, 1.0],
               [123456789.123, 1.0], [1.7976931348623157e308, 1.0], [1e22, 1e23], [1e-9, 1e5],
               [0.999999999, 1.0], [0.9999999999, 9.5]]:
    case(np.array(values, "float64"))
for values in [[1e6, 1e5], [999999.0, 999998.5], [1e10, 1.0], [3.4028235e38, 1e-45], [16777216.0],
               [1.1, 1e-5], [0.1, 1e7], [2.0**-100, 2.0**100]]:
    case(np.array(values, "float32"))
case(np.array([65504.0, 6e-8], "float16"))
case(np.array([999.5, 1.0], "float16"))

# Options.
third = np.array([1 / 3, 2 / 3, 100.0])
for precision in [0, 1, 3, 8, 12, 20]:
    case(third, precision=precision)
    case(third * 1e-7, precision=precision)
case(np.array([0.5, 1.5, 2.5, 3.5]), precision=0)
case(np.array([0.125, 0.375, 0.625]), precision=2)
case(np.array([1e-9, 1.0]), suppress=True)
case(np.array([4e-9, 6e-9, 1.0]), suppress=True)
case(np.array([5e-9, 1.5e-8, 1e7]), suppress=True)
case(np.array([1e-30, 1e9]), suppress=True)
case(np.array([12345.678, 1e-3]), suppress=True, precision=3)
for mode in ["fixed", "unique", "maxprec", "maxprec_equal"]:
    case(third, floatmode=mode)
    case(third.astype("float32"), floatmode=mode)
    case(np.array([1e-10, 0.1, 1.0]), floatmode=mode)
    case(np.array([1e-10, 0.1, 1.0], "float32"), floatmode=mode, precision=4)
    case(np.array([1 + 1j / 3, 2.5 - 1e-3j]), floatmode=mode)
    case(np.array([nan, 1.0, inf]), floatmode=mode)
for sign in ["+", " "]:
    case(third, sign=sign)
    case(-third, sign=sign)
    case(np.array([nan, -inf, 1.0]), sign=sign)
    case(np.array([nan, inf]), sign=sign)
    case(np.array([1 + 2j, -1.5 - 2j]), sign=sign)

# Complex.
for dtype in ["complex64", "complex128"]:
    case(np.array([1 + 2j, -3.5 + 0.25j], dtype))
    case(np.array([1e-8 + 1j, 1 + 1e10j], dtype))
    case(np.array([complex(nan, inf), complex(-inf, 0), 1j], dtype))
    case(np.array([[1j, 0], [0, -1j]], dtype))
    case(np.array([1 / 3 + 2j / 3], dtype))

# No axes: str is the number alone.
for dtype in FLOATS:
    for value in [0.0, -0.0, 1.0, 0.1, 1 / 3, 1e-4, 9.9e-5, 1234.5, nan, inf, -inf]:
        case(np.array(value, dtype))
for value in [1e15, 1e16, 123456789012345678.0, 5e-324, 1e300]:
    case(np.array(value))
for value in [1e6, 16777216.0, 1e15, 1e16, 3.4e38]:
    case(np.array(value, "float32"))
case(np.array(65504.0, "float16"))
for value in [1 + 2j, 1j, -1j, complex(-0.0, 1), 0j, 1.5 - 2.25j, complex(nan, inf), complex(0, nan),
              1e20 + 1e-20j, 1e6 + 1e15j, complex(-inf, -inf)]:
    case(np.array(value, "complex128"))
    case(np.array(value, "complex64"))

# No elements.
for shape in [(0,), (0, 3), (3, 0), (2, 0, 4)]:
    case(np.zeros(shape, "float32"))
    case(np.zeros(shape, "int64"))

# Lines and axes.
arange(30)
arange(60, dtype="float32")
arange(2, 3)
arange(2, 3, dtype="float32")
arange(2, 3, 4)
arange(2, 2, 2, 2)
arange(1, 1, 1, 1, 1)
arange(3, 40)
arange(2, 40, dtype="float64")
arange(4, 250)
arange(1000)
arange(1001)
arange(1001, dtype="float32")
arange(2000, dtype="float64")
arange(40, 40)
arange(7, 200)
arange(6, 200)
arange(2, 600)
arange(600, 2)
arange(12, 12, 12)
arange(12, 12, 12, dtype="uint8")
arange(8, 3, 8, 8)
arange(1100, dtype="complex64")
arange(100, linewidth=40)
arange(100, linewidth=3)
arange(3, 5, linewidth=12, dtype="float32")
arange(10, threshold=5)
arange(10, threshold=5, edgeitems=1)
arange(9, 9, threshold=5, edgeitems=2)
arange(10, threshold=9, edgeitems=5)
arange(11, threshold=9, edgeitems=5)
arange(5, threshold=0)
arange(8, dtype="float16", linewidth=20)
case(np.array([1.123456789, 2.0, 3.0] * 9))
case(np.array([[1.123456789, -2.0], [3e-3, 44.0]]))
case(np.array([1e-10, 1.0] * 12))
case(np.array([1 + 1j, 2.25 - 3j] * 8))
case(np.array([1 / 3] * 7, "float32"))
case(np.array([1 / 3] * 5, "float32"))
case(np.array([True, False] * 20))

OUT.write_text("\n".join(lines) + "\n")
print(sum(line.startswith("case ") for line in lines), "cases by NumPy", np.__version__, file=sys.stderr)
