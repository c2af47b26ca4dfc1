"""Elements drawn over whole dtypes, as conformance suites of the standard draw them.

Random bits make subnormals, huge numbers, infinities, NaN and the ends of integers as likely as any
other. Mathematics is held against wider precision; creation and order against their definitions.
"""

import math

import numpy as np
import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st
from hypothesis.extra.array_api import make_strategies_namespace

import tilework as tw
from comparison import WIDER, close, same_bits, same_values
from conftest import SEED

INTEGERS = "int8 int16 int32 int64 uint8 uint16 uint32 uint64".split()
FLOATS = ["float32", "float64"]

xps = make_strategies_namespace(tw, api_version="2024.12")


def quick(examples: int) -> settings:
    return settings(
        max_examples=examples, deadline=None, database=None, suppress_health_check=list(HealthCheck)
    )


def bits(dtype: str, count: int = 4000) -> np.ndarray:
    """Random bits as elements, with a few special ones at the front."""
    rng = np.random.default_rng(SEED)
    found = rng.integers(0, 256, count * np.dtype(dtype).itemsize, dtype=np.uint8).view(dtype)
    if dtype in FLOATS:
        info = np.finfo(dtype)
        special = [
            0,
            -0.0,
            1,
            -1,
            np.inf,
            -np.inf,
            np.nan,
            info.max,
            info.min,
            info.tiny,
            info.smallest_subnormal,
        ]
    else:
        info = np.iinfo(dtype)
        special = [info.min, info.max, 0, 1]
    found[: len(special)] = special
    return found


UNARY = """exp expm1 exp2 log log1p log2 log10 sin cos tan sinh cosh tanh asin acos atan asinh acosh atanh sqrt
cbrt""".split()


@pytest.mark.parametrize("name", UNARY)
@pytest.mark.parametrize("dtype", FLOATS)
def test_mathematics(device: tw.device, name: str, dtype: str) -> None:
    """Two units in the last place over the whole range."""
    x = bits(dtype)
    with np.errstate(all="ignore"):
        exact = getattr(np, name)(x.astype(WIDER[dtype]))
        near = np.abs(exact) < np.finfo(dtype).max
        ulp = np.spacing(np.where(near, np.abs(exact), 1).astype(dtype)).astype(exact.dtype)
        close(getattr(tw, name)(tw.asarray(x, copy=True)), x, exact, 2 * ulp)


EXACT = [
    "add",
    "subtract",
    "multiply",
    "divide",
    "copysign",
    "nextafter",
    "maximum",
    "minimum",
    "equal",
    "less",
]


@pytest.mark.parametrize("name", EXACT)
@pytest.mark.parametrize("dtype", FLOATS)
def test_exact_functions(device: tw.device, name: str, dtype: str) -> None:
    x = bits(dtype)
    y = np.roll(x[::-1], 7)
    with np.errstate(all="ignore"):
        same_values(getattr(tw, name)(tw.asarray(x), tw.asarray(y)), getattr(np, name)(x, y))


@pytest.mark.parametrize("name", ["floor_divide", "remainder"])
@pytest.mark.parametrize("dtype", FLOATS)
def test_quotients(device: tw.device, name: str, dtype: str) -> None:
    """Python's own `//` and `%`, where the quotient has digits after the point."""
    x, y = bits(dtype), np.abs(np.roll(bits(dtype), 3))
    keep = np.isfinite(x) & np.isfinite(y) & (y > 0)
    with np.errstate(all="ignore"):
        keep &= np.abs(x / y) < 1e6
    x, y = x[keep], y[keep]
    assert x.size > 100
    found = np.asarray(getattr(tw, name)(tw.asarray(x), tw.asarray(y)))
    op = (lambda a, b: a // b) if name == "floor_divide" else (lambda a, b: a % b)
    expected = np.asarray([op(float(a), float(b)) for a, b in zip(x, y)])
    # The remainder of float32 operands is exact in float64 and rounded once.
    np.testing.assert_allclose(found, expected, rtol=np.finfo(dtype).eps)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers(device: tw.device, dtype: str) -> None:
    x, y = bits(dtype), np.roll(bits(dtype), 3)
    a, b = tw.asarray(x), tw.asarray(y)
    with np.errstate(all="ignore"):
        for name in (
            "add",
            "subtract",
            "multiply",
            "floor_divide",
            "remainder",
            "bitwise_and",
            "less",
            "maximum",
        ):
            same_values(getattr(tw, name)(a, b), getattr(np, name)(x, y))
        for name in ("negative", "abs", "square", "sign", "bitwise_invert", "isfinite"):
            same_values(getattr(tw, name)(a), getattr(np, name)(x))
    same_values(tw.sort(a), np.sort(x))
    same_values(tw.argsort(a), np.argsort(x, stable=True))
    same_values(tw.argsort(a, descending=True), descending(x))
    same_values(tw.unique_values(a), np.unique(x))
    same_values(tw.sum(a), np.sum(x))
    same_values(tw.cumulative_sum(a), np.cumulative_sum(x))


def descending(x: np.ndarray) -> np.ndarray:
    """Stable also downwards: equal elements keep their order."""
    return np.asarray(sorted(range(len(x)), key=lambda i: x[i], reverse=True))


@pytest.mark.parametrize("dtype", FLOATS)
def test_order_of_floats(device: tw.device, dtype: str) -> None:
    x = bits(dtype)
    same_values(tw.sort(tw.asarray(x)), np.sort(x))
    same_values(tw.argsort(tw.asarray(x)), np.argsort(x, stable=True))
    finite = x[~np.isnan(x)]
    same_values(tw.argsort(tw.asarray(finite), descending=True), descending(finite))
    same_values(tw.argmax(tw.asarray(x)), np.argmax(x))
    same_values(tw.argmin(tw.asarray(finite)), np.argmin(finite))
    found = tw.unique_all(tw.asarray(np.concatenate([x, x[::-1]])))
    values = np.asarray(found.values)
    assert np.isnan(values).sum() == 2 * np.isnan(x).sum(), "every NaN is different"
    same_values(found.values[found.inverse_indices], np.concatenate([x, x[::-1]]))
    assert (np.asarray(found.counts)[np.isnan(values)] == 1).all()
    zeros = tw.unique_values(tw.asarray([0.0, -0.0], dtype=dtype))
    assert zeros.tolist() == [0.0], "zeros of both signs are one"


@seed(SEED)
@quick(150)
@given(
    st.integers(-1000, 1000) | st.floats(-1000, 1000),
    st.none() | st.integers(-1000, 1000) | st.floats(-1000, 1000),
    st.integers(-50, 50).filter(bool) | st.floats(-50, 50).filter(lambda x: abs(x) > 0.05),
)
def test_arange(start: float, stop: float | None, step: float) -> None:
    x = tw.arange(start, step=step) if stop is None else tw.arange(start, stop, step)
    low, high = (0, start) if stop is None else (start, stop)
    whole = all(isinstance(value, int) for value in (low, high, step))
    assert x.dtype == (tw.int64 if whole else tw.float64)
    if whole:
        assert x.tolist() == list(range(low, high, step))
    else:
        assert abs(x.size - max(math.ceil((high - low) / step), 0)) <= 1
        np.testing.assert_allclose(
            np.asarray(x), low + step * np.arange(x.size), rtol=1e-12, atol=1e-9
        )


@seed(SEED)
@quick(150)
@given(
    st.floats(-1e300, 1e300) | st.integers(-(10**15), 10**15),
    st.floats(-1e300, 1e300) | st.integers(-(10**15), 10**15),
    st.integers(0, 40),
    st.booleans(),
)
def test_linspace(start: float, stop: float, num: int, endpoint: bool) -> None:
    x = tw.linspace(start, stop, num, endpoint=endpoint)
    assert x.shape == (num,) and x.dtype == tw.float64
    if num > 0:
        assert x[0].item() == start
    if num > 1 and endpoint:
        assert x[-1].item() == stop
    if not endpoint:
        longer = tw.linspace(start, stop, num + 1)
        np.testing.assert_allclose(
            np.asarray(x), np.asarray(longer)[:-1], rtol=1e-12, atol=1e-12 * abs(stop - start)
        )
    if num > 1:
        np.testing.assert_allclose(
            np.asarray(x),
            np.linspace(start, stop, num, endpoint),
            rtol=1e-12,
            atol=1e-12 * abs(stop - start),
        )


@seed(SEED)
@quick(150)
@given(st.data())
def test_indices(data: st.DataObject) -> None:
    """What hypothesis calls an index of the standard, to read and to write."""
    dtype = data.draw(xps.scalar_dtypes())
    x = data.draw(xps.arrays(dtype, xps.array_shapes(min_dims=0, max_dims=4, min_side=0)))
    key = data.draw(xps.indices(x.shape))
    n = np.array(np.asarray(x))
    same_bits(x[key], np.asarray(n[key]))
    value = data.draw(xps.from_dtype(dtype))
    x[key] = value
    n[key] = value
    same_bits(x, n)
    mask = data.draw(xps.arrays(tw.bool, x.shape))
    same_bits(x[mask], n[np.asarray(mask)])
    x[mask] = value
    n[np.asarray(mask)] = value
    same_bits(x, n)


@seed(SEED)
@quick(100)
@given(st.data())
def test_masks_of_another_shape(data: st.DataObject) -> None:
    x = data.draw(xps.arrays(xps.real_dtypes(), xps.array_shapes(min_dims=1, max_dims=3)))
    key = data.draw(xps.arrays(tw.bool, xps.array_shapes(min_dims=0, max_dims=3, min_side=0)))
    if key.ndim > x.ndim or any(k not in (n, 0) for k, n in zip(key.shape, x.shape)):
        with pytest.raises(IndexError):
            x[key]
    elif key.shape == x.shape[: key.ndim]:
        same_bits(x[key], np.asarray(x)[np.asarray(key)])


@pytest.mark.parametrize("dtype", ["bool", *INTEGERS, *FLOATS, "complex64", "complex128"])
def test_scalars(device: tw.device, dtype: str) -> None:
    """Python's numbers come back as they went in."""
    kind = np.dtype(dtype).kind
    ends = {"b": [False, True], "f": [0.0, -1.5, math.inf], "c": [0j, 1 - 2j]}
    values = ends.get(kind) or [int(np.iinfo(dtype).min), int(np.iinfo(dtype).max), 1]
    for value in values:
        x = tw.asarray(value, dtype=dtype)
        assert type(x.item()) is type(value) and x.item() == value and x.tolist() == value
        assert tw.full((2,), value, dtype=dtype).tolist() == [value, value]
        assert bool(x) is bool(value)
        if kind in "biu":
            assert int(x) == value and float(x) == float(value)
        if kind in "iu":
            assert type(x.__index__()) is int and type(x.__int__()) is int
        if kind == "f":
            assert type(x.__float__()) is float
        assert complex(x) == complex(value)
