"""Every function of the array API standard against array-api-strict: result dtype, shape, values.

Each line of `CALLS` is an expression over a namespace `xp`, arrays `x`, `y` and a mask; it is
evaluated for both libraries over the dtypes that the standard permits and over shapes from no axes to
empty ones. Where the strict library raises for a value or a shape, so must we. A test at the end holds
the list against the standard's names, so that none is left out.

Floats may differ by both libraries' own rounding: four units in the last place for NumPy's vector
mathematics, two for ours, and a little more where a sum or a complex number is made of several.
"""

import re
import warnings
from collections.abc import Iterator

import array_api_strict as strict
import numpy as np
import pytest

import tilework as tw
from test_namespace import FUNCTIONS

strict.set_array_api_strict_flags(api_version="2025.12")

SIGNED = "int8 int16 int32 int64".split()
UNSIGNED = "uint8 uint16 uint32 uint64".split()
FLOAT = "float32 float64".split()
COMPLEX = "complex64 complex128".split()
INTEGER = SIGNED + UNSIGNED
REAL = INTEGER + FLOAT
KINDS = {
    "bool": ["bool"], "integer": INTEGER, "bits": ["bool"] + INTEGER, "float": FLOAT,
    "complex": COMPLEX, "floating": FLOAT + COMPLEX, "real": REAL, "numeric": REAL + COMPLEX,
    "all": ["bool"] + REAL + COMPLEX, "real or bool": ["bool"] + REAL,
}  # fmt: skip

# kind; least number of axes of x; expressions.
CALLS = """
numeric 0   xp.abs(x) | xp.negative(x) | xp.positive(x) | xp.square(x) | xp.sign(x) | abs(x) | -x | +x
numeric 0   xp.isnan(x) | xp.isfinite(x) | xp.isinf(x) | xp.round(x) | xp.conj(x) | xp.real(x)
complex 0   xp.imag(x)
real 0      xp.floor(x) | xp.ceil(x) | xp.trunc(x) | xp.clip(x, 0, 3) | xp.clip(x, xp.min(x)) | xp.clip(x)
real 0      xp.clip(x, min=None, max=xp.max(x)) | xp.clip(x, xp.min(y), xp.max(y))
floating 0  xp.sqrt(x) | xp.exp(x) | xp.expm1(x) | xp.log(x) | xp.log1p(x) | xp.log2(x) | xp.log10(x)
floating 0  xp.sin(x) | xp.cos(x) | xp.tan(x) | xp.sinh(x) | xp.cosh(x) | xp.tanh(x) | xp.reciprocal(x)
floating 0  xp.asin(x) | xp.acos(x) | xp.atan(x) | xp.asinh(x) | xp.acosh(x) | xp.atanh(x)
float 0     xp.signbit(x) | xp.copysign(x, y) | xp.hypot(x, y) | xp.atan2(x, y) | xp.logaddexp(x, y) | xp.nextafter(x, y)
numeric 0   xp.add(x, y) | xp.subtract(x, y) | xp.multiply(x, y) | x + y | x - y | x * y | x + 1 | 2 * x
floating 0  xp.divide(x, y) | x / y | 2.0 / x | x * 1.5 | xp.pow(x, 2) | x ** y | 1.5 + x
real 0      xp.floor_divide(x, y) | xp.remainder(x, y) | x // y | x % y | xp.maximum(x, y) | xp.minimum(x, y)
integer 0   xp.pow(abs(x), xp.astype(y > 0, x.dtype)) | x ** 2
all 0       xp.equal(x, y) | xp.not_equal(x, y) | x == y | x != y
real 0      xp.less(x, y) | xp.less_equal(x, y) | xp.greater(x, y) | xp.greater_equal(x, y) | x < y | x >= 1
bool 0      xp.logical_and(x, y) | xp.logical_or(x, y) | xp.logical_xor(x, y) | xp.logical_not(x) | x & y | x == True
bits 0      xp.bitwise_and(x, y) | xp.bitwise_or(x, y) | xp.bitwise_xor(x, y) | xp.bitwise_invert(x) | ~x | x | y
integer 0   xp.bitwise_left_shift(x, 2) | xp.bitwise_right_shift(x, 1) | x << 1 | x >> 3 | x ^ 5
all 0       xp.where(mask, x, y) | xp.where(mask, x, 1 if x.dtype != xp.bool else True) | xp.astype(x, xp.complex128)
real 0      xp.astype(x, xp.bool) | xp.astype(x, xp.float32) | xp.astype(xp.clip(x, 0, 9), xp.uint8) | xp.astype(x, x.dtype, copy=False)
numeric 0   xp.sum(x) | xp.prod(x) | xp.sum(x, keepdims=True) | xp.sum(x, axis=()) | xp.sum(x, dtype=x.dtype)
numeric 1   xp.sum(x, axis=0) | xp.prod(x, axis=-1, keepdims=True) | xp.cumulative_sum(x, axis=-1) | xp.cumulative_prod(x, axis=0)
numeric 1   xp.cumulative_sum(x, axis=0, include_initial=True) | xp.cumulative_prod(x, axis=-1, include_initial=True, dtype=x.dtype)
numeric 2   xp.sum(x, axis=(0, -1)) | xp.prod(x, axis=(1, 0), keepdims=True)
floating 0  xp.mean(x) | xp.mean(x, keepdims=True)
floating 1  xp.mean(x, axis=0)
float 0     xp.can_cast(x, xp.float64) | xp.var(x) | xp.std(x, keepdims=True)
float 1     xp.var(x, axis=0) | xp.std(x, axis=-1, correction=1.0) | xp.var(x, axis=0, correction=0.5)
real 0      xp.max(x) | xp.min(x, keepdims=True)
real 1      xp.max(x, axis=0) | xp.min(x, axis=-1) | xp.argmax(x) | xp.argmin(x, keepdims=True) | xp.argmax(x, axis=0) | xp.argmin(x, axis=-1, keepdims=True)
all 0       xp.all(x) | xp.any(x) | xp.all(x, keepdims=True) | xp.count_nonzero(x) | xp.count_nonzero(x, keepdims=True)
all 1       xp.all(x, axis=0) | xp.any(x, axis=-1, keepdims=True) | xp.count_nonzero(x, axis=0) | xp.nonzero(x)
real 1      xp.sort(x) | xp.sort(x, axis=0, descending=True) | xp.argsort(x, axis=0) | xp.argsort(x, descending=True) | xp.sort(x, stable=False)
real 1      xp.searchsorted(xp.sort(xp.reshape(x, (-1,))), x) | xp.searchsorted(xp.sort(xp.reshape(x, (-1,))), y, side='right')
real 1      xp.searchsorted(xp.reshape(x, (-1,)), y, sorter=xp.argsort(xp.reshape(x, (-1,))))
all 0       xp.unique_values(x) | xp.unique_counts(x) | xp.unique_inverse(x) | xp.unique_all(x)
integer 0   xp.isin(x, y)
numeric 1   xp.diff(x) | xp.diff(x, axis=0, n=2) | xp.diff(x, prepend=x, append=x) | xp.diff(x, n=0)
all 1       xp.take(x, xp.asarray([0, 0]), axis=0) | xp.take(x, xp.asarray([], dtype=xp.int64), axis=-1) | xp.take_along_axis(x, xp.zeros(x.shape, dtype=xp.int64))
all 1       xp.take_along_axis(x, xp.zeros(x.shape, dtype=xp.int64), axis=0) | xp.repeat(x, 2) | xp.repeat(x, 3, axis=0) | xp.repeat(x, xp.asarray(2), axis=-1)
all 0       xp.reshape(x, (-1,)) | xp.reshape(x, x.shape, copy=True) | xp.expand_dims(x, axis=0) | xp.expand_dims(x, axis=-1) | xp.squeeze(xp.expand_dims(x, axis=0), axis=0)
all 0       xp.broadcast_to(x, (2, *x.shape)) | xp.broadcast_arrays(x, y) | xp.flip(x) | xp.roll(x, 1) | xp.roll(x, -2) | xp.permute_dims(x, tuple(range(x.ndim))[::-1])
all 0       xp.tile(x, (2,)) | xp.tile(x, (2, 1, 3)) | xp.tile(x, ()) | xp.stack([x, x]) | xp.stack((x, x), axis=-1) | xp.meshgrid(xp.reshape(x, (-1,)), xp.reshape(y, (-1,)))
all 1       xp.concat([x, x]) | xp.concat((x, x), axis=-1) | xp.concat([x, y], axis=None) | xp.flip(x, axis=0) | xp.roll(x, 1, axis=0) | xp.unstack(x) | xp.unstack(x, axis=-1)
all 1       xp.moveaxis(x, 0, -1) | x[0, ...] | x[..., ::-1] | x[None, ...] | x[mask] | x[x == x]
all 2       xp.moveaxis(x, (0, 1), (1, 0)) | xp.roll(x, (1, 2), axis=(0, 1)) | xp.flip(x, axis=(0, 1)) | xp.matrix_transpose(x) | x.mT | xp.squeeze(xp.expand_dims(xp.expand_dims(x, axis=0), axis=0), axis=(0, 1))
all 2       xp.tril(x) | xp.triu(x) | xp.tril(x, k=-1) | xp.triu(x, k=1) | x[xp.asarray([0]), xp.asarray([0])] if x.ndim == 2 else 0 | x[0, xp.asarray([0, 0])] if x.ndim == 2 else 0
numeric 1   xp.vecdot(x, x) | xp.vecdot(x, x, axis=-1) | xp.tensordot(x, x, axes=0) | xp.tensordot(x, x, axes=((0,), (0,)))
numeric 2   xp.matmul(x, x.mT) | x @ x.mT | xp.tensordot(x, x, axes=2) | xp.tensordot(x, x.mT, axes=1) | xp.matmul(x, x[0, :])
all 0       xp.zeros_like(x) | xp.ones_like(x) | xp.full_like(x, 1 if x.dtype != xp.bool else True) | xp.empty_like(x).shape | xp.zeros_like(x, dtype=xp.int8) | xp.asarray(x, copy=True)
all 0       xp.result_type(x, y) | xp.isdtype(x.dtype, 'numeric') | xp.isdtype(x.dtype, ('bool', 'real floating'))
all 0       x.shape | x.ndim | x.size | xp.broadcast_shapes(x.shape, (1, 1)) | xp.asarray(x, dtype=x.dtype) | xp.from_dlpack(x)
""".strip().split("\n")

# Expressions without arrays.
CREATIONS = """
xp.arange(5) | xp.arange(2, 9, 3) | xp.arange(5, 2, -1) | xp.arange(0.0, 1.0, 0.25) | xp.arange(3, dtype=xp.float32) | xp.arange(-3) | xp.arange(4.0)
xp.arange(0, stop=3) | xp.arange(0, 10, step=4) | xp.arange(1, 2, 0.1, dtype=xp.float32) | xp.arange(5, 5) | xp.arange(10, 0, -3, dtype=xp.int8)
xp.linspace(0, 1, 5) | xp.linspace(0, 1, 5, endpoint=False) | xp.linspace(0.0, 2.0, 1) | xp.linspace(0, 1, 0) | xp.linspace(1, 0, 3, dtype=xp.float32)
xp.linspace(0, 1 + 1j, 3) | xp.linspace(-3, 7, 11) | xp.linspace(0, 1, num=2)
xp.eye(3) | xp.eye(2, 3, k=1) | xp.eye(3, k=-1, dtype=xp.int8) | xp.eye(0) | xp.eye(2, 2, k=9, dtype=xp.bool)
xp.zeros(3) | xp.zeros((2, 3), dtype=xp.bool) | xp.zeros(()) | xp.zeros((0, 2)) | xp.ones((2,), dtype=xp.complex64) | xp.ones(3) | xp.empty((2, 3)).dtype
xp.full((2,), 3) | xp.full((), 1.5) | xp.full(2, True) | xp.full((2,), 1j) | xp.full((2, 2), 7, dtype=xp.uint8) | xp.full((1,), 2, dtype=xp.float32)
xp.asarray(1) | xp.asarray(1.0) | xp.asarray(1j) | xp.asarray(True) | xp.asarray([[1, 2], [3, 4]]) | xp.asarray([1, 2.0]) | xp.asarray([], dtype=xp.int8) | xp.asarray([1, 2], dtype=xp.complex64)
xp.finfo(xp.float32).bits | xp.finfo(xp.float32).eps | xp.finfo(xp.float64).max | xp.finfo(xp.complex64).smallest_normal | xp.finfo(xp.float32).min | xp.finfo(xp.complex128).dtype
xp.iinfo(xp.int8).min | xp.iinfo(xp.uint64).max | xp.iinfo(xp.int32).bits | xp.iinfo(xp.int16).dtype
xp.isdtype(xp.float32, 'real floating') | xp.isdtype(xp.bool, 'bool') | xp.isdtype(xp.int8, xp.int8) | xp.isdtype(xp.uint8, 'signed integer') | xp.isdtype(xp.int8, 'integral')
xp.can_cast(xp.int8, xp.int16) | xp.can_cast(xp.int16, xp.int8) | xp.can_cast(xp.float32, xp.float64) | xp.can_cast(xp.bool, xp.bool)
xp.result_type(xp.int8, xp.uint8) | xp.result_type(xp.float32, xp.complex64) | xp.result_type(xp.int8, 1) | xp.result_type(xp.float32, 1.0) | xp.result_type(xp.uint8, xp.uint32)
xp.broadcast_shapes((2, 1), (3,)) | xp.broadcast_shapes() | xp.broadcast_shapes((1, 5), (4, 1), (1,)) | xp.broadcast_shapes((2,), (3,))
xp.meshgrid(xp.arange(2), xp.arange(3)) | xp.meshgrid(xp.arange(2), xp.arange(3), indexing='ij') | xp.meshgrid() | xp.meshgrid(xp.asarray(3))
xp.e | xp.pi | xp.inf | xp.newaxis | xp.__array_api_version__
""".strip().split("\n")

SHAPES = [(), (4,), (1,), (2, 3), (0,), (3, 1, 2), (2, 0), (17,)]


def values(dtype: str, shape: tuple[int, ...], seed: int) -> np.ndarray:
    """A few small numbers, the same for both libraries."""
    rng = np.random.default_rng(seed)
    if dtype == "bool":
        return rng.random(shape) < 0.5
    if dtype in UNSIGNED:
        return rng.integers(0, 6, shape).astype(dtype)
    if dtype in SIGNED:
        return rng.integers(-5, 6, shape).astype(dtype)
    numbers = np.round(rng.normal(scale=2, size=shape), 2)
    if dtype in COMPLEX:
        numbers = numbers + 1j * np.round(rng.normal(size=shape), 2)
    return np.asarray(numbers, dtype=dtype)


def expressions() -> Iterator[tuple[str, int, str]]:
    for line in CALLS:
        kind, axes, rest = re.match(r"(\D+?) (\d) +(.*)", line).groups()
        # A vertical bar between spaces parts expressions; `x | y` is one of them.
        for expression in rest.replace("x | y", "x.__or__(y)").split(" | "):
            yield kind, int(axes), expression


def evaluated(expression: str, xp: object, **arrays: np.ndarray) -> object:
    scope = {name: xp.asarray(array, copy=True) for name, array in arrays.items()}
    return eval(expression, {"xp": xp}, scope)


def compare(ours: object, theirs: object) -> None:
    """The same kind of thing with the same content."""
    if isinstance(theirs, tuple | list):
        assert isinstance(ours, tuple) and len(ours) == len(theirs)
        assert getattr(ours, "_fields", None) == getattr(theirs, "_fields", None)
        for a, b in zip(ours, theirs):
            compare(a, b)
    elif isinstance(theirs, strict._array_object.Array):
        assert isinstance(ours, tw.Array)
        a, b = np.asarray(ours), np.asarray(theirs)
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        if a.dtype.kind in "fc":
            close_to(a, b)
        else:
            np.testing.assert_array_equal(a, b)
    elif isinstance(theirs, strict._dtypes.DType):
        assert isinstance(ours, tw.dtype) and ours == theirs._np_dtype
    else:
        assert type(ours) is type(theirs) and (ours == theirs or ours != ours)


def close_to(a: np.ndarray, b: np.ndarray) -> None:
    eps = np.finfo(a.dtype).eps
    if a.dtype.kind == "f":
        return np.testing.assert_allclose(a, b, rtol=12 * eps, atol=40 * eps)
    # A part of a complex number is as exact as the number is large.
    for x, y in ((a.real, b.real), (a.imag, b.imag)):
        np.testing.assert_array_equal(np.isnan(x), np.isnan(y))
        with np.errstate(invalid="ignore"):
            good = (np.abs(x - y) <= 24 * eps * (1 + np.abs(b))) | (x == y) | np.isnan(y)
        assert good.all(), (a[~good], b[~good])


def check(expression: str, **arrays: np.ndarray) -> bool:
    """Whether the expression has a value; it is the same, or neither has one."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            theirs = evaluated(expression, strict, **arrays)
        except (ValueError, IndexError, OverflowError, ZeroDivisionError):
            with pytest.raises((ValueError, IndexError, OverflowError)):
                evaluated(expression, tw, **arrays)
            return False
        compare(evaluated(expression, tw, **arrays), theirs)
    return True


@pytest.mark.parametrize("kind, axes, expression", list(expressions()))
def test_expression(device: tw.device, kind: str, axes: int, expression: str) -> None:
    done = 0
    for number, dtype in enumerate(KINDS[kind]):
        for shape in SHAPES:
            if len(shape) < axes:
                continue
            x = values(dtype, shape, number)
            y = values(dtype, shape[-1:], number + 50)
            done += check(expression, x=x, y=y, mask=x != values(dtype, shape, 99))
    assert done, "no case has a value"


@pytest.mark.parametrize("expression", [e for line in CREATIONS for e in line.split(" | ")])
def test_creation(device: tw.device, expression: str) -> None:
    check(expression)


MIXED = [(a, b) for kind in (INTEGER, FLOAT, COMPLEX) for a in kind for b in kind]
MIXED = [p for p in MIXED if not (set(p) & set(SIGNED) and "uint64" in p)]
MIXED += [(a, b) for a in FLOAT for b in COMPLEX]


@pytest.mark.parametrize(
    "expression", ["x + y", "x == y", "xp.where(x == x, x, y)", "xp.concat([x, y])"]
)
def test_mixed_dtypes(expression: str) -> None:
    for left, right in MIXED:
        x, y = values(left, (3,), 1), values(right, (3,), 2)
        assert check(expression, x=x, y=y) and check(expression, x=y, y=x)


def test_devices_of_results() -> None:
    """`device=` is where a result is made, for every device there is."""
    for source in tw.devices():
        x = tw.asarray([1, 2, 3], device=source)
        assert tw.zeros_like(x).device == (x + 1).device == x[1:].device == source
        for target in tw.devices():
            moved = [
                x.to_device(target), tw.astype(x, tw.float32, device=target), tw.asarray(x, device=target),
                tw.from_dlpack(x, device=target), tw.empty_like(x, device=target), tw.eye(2, device=target),
                tw.full(3, 1, device=target), tw.arange(3, device=target), tw.linspace(0, 1, 3, device=target),
            ]  # fmt: skip
            assert [y.device for y in moved] == [target] * len(moved)
            assert moved[0].tolist() == moved[1].tolist() == moved[3].tolist() == [1, 2, 3]
        info = tw.__array_namespace_info__()
        assert info.default_dtypes(device=source)["indexing"] == tw.int64
        for name, dtype in info.dtypes(device=source, kind="numeric").items():
            assert tw.empty(1, dtype=dtype, device=source).dtype == name


def test_isin_inverted(device: tw.device) -> None:
    """The strict library takes `invert` and forgets it; NumPy does not."""
    for dtype in KINDS["all"]:
        x, y = values(dtype, (2, 5), 1), values(dtype, (3,), 2)
        found = tw.isin(tw.asarray(x), tw.asarray(y), invert=True)
        np.testing.assert_array_equal(np.asarray(found), np.isin(x, y, invert=True))


def test_no_function_is_left_out() -> None:
    called = set(re.findall(r"xp\.(\w+)\(", " ".join(CALLS + CREATIONS)))
    assert {line.split("(")[0] for line in FUNCTIONS} <= called
