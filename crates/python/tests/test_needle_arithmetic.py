"""Arithmetic, comparisons, products and reductions of `tilework.needle.NDArray` against NumPy."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import pytest

import tilework.needle as nd

DEVICES = [device for device in nd.all_devices() if device.enabled()]
rng = np.random.default_rng(22)


@pytest.fixture(params=DEVICES, ids=str)
def device(request: pytest.FixtureRequest) -> Any:
    return request.param


def both(device: Any, *shape: int) -> tuple[nd.NDArray, Any]:
    values = rng.standard_normal(shape).astype(np.float32)
    return nd.array(values, device=device), values


ARITHMETIC = [operator.add, operator.sub, operator.mul, operator.truediv]
COMPARISONS = [operator.eq, operator.ne, operator.ge, operator.gt, operator.le, operator.lt]
SPECIAL = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 3.5], np.float32)


@pytest.mark.parametrize("shape", [(1, 1, 1), (4, 5, 6), (), (7,)])
@pytest.mark.parametrize("function", ARITHMETIC + COMPARISONS)
def test_two_arrays(device: Any, function: Any, shape: Any) -> None:
    (a, x), (b, y) = both(device, *shape), both(device, *shape)
    result = function(a, b)
    assert result.shape == shape and result.is_compact() and result.device == device
    np.testing.assert_allclose(result.numpy(), function(x, y).astype(np.float32), rtol=1e-6)


@pytest.mark.parametrize("function", ARITHMETIC + COMPARISONS)
def test_special_values(device: Any, function: Any) -> None:
    x, y = np.repeat(SPECIAL, 8), np.tile(SPECIAL, 8)
    a, b = nd.array(x, device=device), nd.array(y, device=device)
    with np.errstate(all="ignore"):
        wanted = function(x, y).astype(np.float32)
        np.testing.assert_array_equal(function(a, b).numpy(), wanted)
        for value in SPECIAL:
            for scalar in (float(value), value):
                wanted = function(SPECIAL, value).astype(np.float32)
                result = function(nd.array(SPECIAL, device=device), scalar)
                np.testing.assert_array_equal(result.numpy(), wanted)


NUMPYS = [np.float32(0.25), np.float64(0.1), np.uint8(200), np.int64(-3), np.array(2.0)]
NUMBERS = [2, -0.5, True, *NUMPYS]


@pytest.mark.parametrize("value", NUMBERS)
def test_numbers_on_either_side(device: Any, value: Any) -> None:
    a, x = both(device, 3, 4)
    rounded = np.float32(value)
    for function in [*ARITHMETIC, *COMPARISONS]:
        result = function(a, value)
        np.testing.assert_allclose(result.numpy(), function(x, rounded), rtol=1e-6, atol=1e-7)
        assert set(np.unique(result.numpy())) <= {0, 1} or function in ARITHMETIC
        if function is not operator.truediv:
            result = function(value, a)
            assert type(result) is nd.NDArray
            np.testing.assert_allclose(result.numpy(), function(rounded, x), rtol=1e-6, atol=1e-7)
    np.testing.assert_array_equal(a.maximum(value).numpy(), np.maximum(x, rounded))


def test_comparison_with_an_element_of_float64(device: Any) -> None:
    values = rng.standard_normal((5, 5))
    a = nd.array(values, device=device)
    assert (a == values[0, 1]).numpy()[0, 1] == 1
    assert (a >= values[0, 1]).numpy()[0, 1] == 1
    assert (a <= values[0, 1]).numpy()[0, 1] == 1
    assert (a < values[0, 1]).numpy()[0, 1] == 0
    assert (a > 50).numpy().sum() == 0 and (nd.full((2,), 10, device=device) == 10).numpy().all()


def test_unary(device: Any) -> None:
    a, x = both(device, 5, 5)
    np.testing.assert_array_equal((-a).numpy(), -x)
    for power in (2, 5.0, 0.5, -1, 0):
        with np.errstate(all="ignore"):
            np.testing.assert_allclose((a**power).numpy(), x ** np.float32(power), rtol=1e-5)
    positive = nd.array(np.abs(x), device=device)
    np.testing.assert_allclose(positive.log().numpy(), np.log(np.abs(x)), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(a.exp().numpy(), np.exp(x), rtol=1e-5)
    np.testing.assert_allclose(a.tanh().numpy(), np.tanh(x), rtol=1e-5)


def test_rebinding(device: Any) -> None:
    a, x = both(device, 3)
    b = a
    b += 1
    assert b is not a
    np.testing.assert_array_equal(a.numpy(), x)


def test_maximum_propagates_nan(device: Any) -> None:
    x, y = np.repeat(SPECIAL, 8), np.tile(SPECIAL, 8)
    a, b = nd.array(x, device=device), nd.array(y, device=device)
    np.testing.assert_array_equal(a.maximum(b).numpy(), np.maximum(x, y))
    np.testing.assert_array_equal(a.maximum(np.nan).numpy(), np.full(64, np.nan))
    square = nd.array([[np.nan, 1.0], [0.0, np.nan]], device=device)
    for axis in (0, 1, None):
        assert np.isnan(square.max(axis=axis).numpy()).all()


def test_operand_errors(device: Any) -> None:
    a, x = both(device, 3, 4)
    b, _ = both(device, 4, 3)
    column, _ = both(device, 3, 1)
    for function in [*ARITHMETIC, *COMPARISONS]:
        for other in (b, column):
            with pytest.raises(AssertionError):
                function(a, other)
        for wrong in ("1", None, 1j, [1], x):
            with pytest.raises(TypeError):
                function(a, wrong)
        for device2 in DEVICES:
            if device2 != device:
                with pytest.raises(TypeError):
                    function(a, nd.array(x, device=device2))
    with pytest.raises(AssertionError):
        a.maximum(b)
    for power in (a, "2", None, x):
        with pytest.raises(TypeError):
            a**power
    with pytest.raises(TypeError):
        1 / a  # type: ignore[operator]
    with pytest.raises(TypeError):
        2**a  # type: ignore[operator]


def test_ewise_or_scalar(device: Any) -> None:
    a, x = both(device, 2, 2)
    for other, value in ((a, x), (3, 3)):
        result = a.ewise_or_scalar(other, device.ewise_mul, device.scalar_mul)
        np.testing.assert_allclose(result.numpy(), x * value, rtol=1e-6)


# Products

SIZES = [(16, 16, 16), (8, 8, 8), (1, 2, 3), (3, 4, 5), (5, 4, 3), (16, 16, 32), (8, 16, 24)]


@pytest.mark.parametrize("m, n, p", SIZES)
def test_matmul(device: Any, m: int, n: int, p: int) -> None:
    x, y = rng.standard_normal((m, n)), rng.standard_normal((n, p))
    a, b = nd.array(x, device=device), nd.array(y, device=device)
    result = a @ b
    assert result.is_compact() and result.device == device
    np.testing.assert_allclose(result.numpy(), x @ y, rtol=1e-5, atol=1e-5)
    c, d = (nd.array(z.T, device=device).permute((1, 0)) for z in (x, y))
    np.testing.assert_array_equal((c @ d).numpy(), result.numpy())


@pytest.mark.parametrize("m, n, p", [(64, 64, 64), (72, 72, 72), (72, 73, 74), (128, 128, 128)])
def test_larger_matmul(m: int, n: int, p: int) -> None:
    x, y = rng.standard_normal((m, n)), rng.standard_normal((n, p))
    result = nd.array(x, device=nd.cpu()) @ nd.array(y, device=nd.cpu())
    np.testing.assert_allclose(result.numpy(), x @ y, rtol=1e-5, atol=1e-5)


def misses(device: Any, runs: int, size: int, inner: int) -> int:
    """How many of so many products leave the course's tolerance."""
    count = 0
    for _ in range(runs):
        x, y = rng.standard_normal((size, inner)), rng.standard_normal((inner, size))
        result = (nd.array(x, device=device) @ nd.array(y, device=device)).numpy()
        count += not np.allclose(result, x @ y, rtol=1e-5, atol=1e-5)
    return count


def test_matmul_holds_the_tolerance_every_time() -> None:
    # With sums in float32 about one run in a thousand misses it at this size.
    assert misses(nd.cpu(), 1000, 64, 128) == 0


def test_matmul_holds_the_tolerance_on_every_device(device: Any) -> None:
    assert misses(device, 1000, 6, 6) == 0


def test_matmul_errors(device: Any) -> None:
    a, x = both(device, 3, 4)
    line, _ = both(device, 4)
    cube, _ = both(device, 2, 4, 3)
    for other in (a, line, cube):
        with pytest.raises(AssertionError):
            a @ other
    for wrong in (x.T, 2, None):
        with pytest.raises(TypeError):
            a @ wrong
    with pytest.raises(TypeError):
        x.T @ a


# Reductions


@pytest.mark.parametrize("name", ["sum", "max"])
@pytest.mark.parametrize(
    "shape, axis",
    [
        ((10,), 0),
        ((4, 5, 6), 0),
        ((4, 5, 6), 1),
        ((4, 5, 6), 2),
        ((4, 5, 6), -1),
        ((4, 5, 6), -3),
        ((4, 5, 6), (1,)),
        ((4, 5, 6), [2]),
        ((4, 5, 6), (0, 2)),
        ((4, 5, 6), (2, 0)),
        ((4, 5, 6), (-1, 0)),
        ((4, 5, 6), (0, 1, 2)),
        ((4, 5, 6), np.int64(1)),
    ],
)
def test_reductions(device: Any, name: str, shape: Any, axis: Any) -> None:
    a, x = both(device, *shape)
    over = tuple(axis) if isinstance(axis, list) else axis
    for keep in (False, True):
        result = getattr(a, name)(axis=axis, keepdims=keep)
        wanted = getattr(x, name)(axis=over, keepdims=keep)
        assert result.shape == wanted.shape and result.is_compact()
        np.testing.assert_allclose(result.numpy(), wanted, rtol=1e-5, atol=1e-5)
    assert getattr(a, name)(axis=axis).shape == getattr(x, name)(axis=over).shape


@pytest.mark.parametrize("name", ["sum", "max"])
def test_reductions_of_everything(device: Any, name: str) -> None:
    a, x = both(device, 4, 5, 6)
    for view, values in ((a, x), (a.permute((2, 0, 1)), x), (a[1:, ::2, 1:4], x[1:, ::2, 1:4])):
        result = getattr(view, name)()
        assert result.shape == (1,)
        np.testing.assert_allclose(result.numpy()[0], getattr(values, name)(), rtol=1e-5, atol=1e-5)
        assert getattr(view, name)(keepdims=True).shape == (1, 1, 1)


@pytest.mark.parametrize("name", ["sum", "max"])
def test_reductions_of_views(device: Any, name: str) -> None:
    a, x = both(device, 6, 7)
    cases = [
        (a[2:, 1:], x[2:, 1:]),
        (a[2:, 1:].permute((1, 0)), x[2:, 1:].T),
        (a[3:4, ::2].broadcast_to((5, 4)), np.broadcast_to(x[3:4, ::2], (5, 4))),
    ]
    for view, values in cases:
        for axis in (0, 1, -1, (0, 1)):
            wanted = getattr(values, name)(axis=axis)
            result = getattr(view, name)(axis=axis)
            np.testing.assert_allclose(result.numpy(), wanted, rtol=1e-5, atol=1e-5)


def test_reduction_errors(device: Any) -> None:
    a, _ = both(device, 4, 5)
    for method in (a.sum, a.max):
        for axis in (2, -3, (0, 2)):
            with pytest.raises(IndexError):
                method(axis=axis)
        with pytest.raises(ValueError):
            method(axis=())
        with pytest.raises(ValueError):
            method(axis=(0, 0))
        with pytest.raises(TypeError):
            method(axis=1.5)  # type: ignore[arg-type]


def test_reduce_view_out(device: Any) -> None:
    a, _ = both(device, 4, 5, 6)
    view, out = a.reduce_view_out(1)
    assert view.shape == (4, 6, 5) and view._handle is a._handle and out.shape == (4, 6)
    view, out = a.reduce_view_out(1, keepdims=True)
    assert out.shape == (4, 1, 6) and out.is_compact()
    view, out = a.reduce_view_out(None)
    assert view.shape == (1, 1, 120) and out.shape == (1,)
    view, out = a.reduce_view_out((0, 2))
    assert view.shape == (5, 24) and out.shape == (5,)


# Later additions


@pytest.mark.parametrize("axes", [(0,), (1, 2), (0, 1, 2, 3), (3,), (-1, 0), (), 2])
def test_flip(device: Any, axes: Any) -> None:
    a, x = both(device, 2, 3, 4, 5)
    part = a[:, 1:, ::2, :].permute((3, 0, 1, 2))
    for view, values in ((a, x), (part, x[:, 1:, ::2].transpose(3, 0, 1, 2))):
        result = view.flip(axes)
        assert result.is_compact() and result._handle is not a._handle
        np.testing.assert_array_equal(result.numpy(), np.flip(values, axes))
    with pytest.raises(IndexError):
        a.flip((4,))
    with pytest.raises(ValueError):
        a.flip((0, -4))


@pytest.mark.parametrize(
    "pads", [((0, 0),) * 4, ((0, 0), (1, 2), (3, 0), (0, 1)), ((1, 1),) * 4, [[2, 0]] * 4]
)
def test_pad(device: Any, pads: Any) -> None:
    a, x = both(device, 2, 3, 1, 4)
    for view, values in ((a, x), (a.permute((3, 2, 1, 0)), x.transpose(3, 2, 1, 0))):
        result = view.pad(pads)
        assert result.is_compact() and result._handle is not a._handle
        np.testing.assert_array_equal(result.numpy(), np.pad(values, pads))
    wrongs: list[Any] = [((0, 0),) * 3, ((0, 0, 0),) * 4, ((0, -1),) * 4]
    for wrong in wrongs:
        with pytest.raises(AssertionError):
            a.pad(wrong)


def test_convolution_as_in_the_course(device: Any) -> None:
    a, x = both(device, 2, 6, 6, 3)
    w, k = both(device, 3, 3, 3, 4)
    n, h, s, c = a.strides
    windows = a.as_strided((2, 4, 4, 3, 3, 3), (n, h, s, h, s, c)).compact()
    result = (windows.reshape((-1, 27)) @ w.reshape((27, 4))).reshape((2, 4, 4, 4))
    wanted = np.zeros((2, 4, 4, 4))
    for i in range(3):
        for j in range(3):
            wanted += x[:, i : i + 4, j : j + 4].astype(np.float64) @ k[i, j]
    np.testing.assert_allclose(result.numpy(), wanted, rtol=1e-5, atol=1e-5)
