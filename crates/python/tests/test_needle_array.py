"""`tilework.needle.NDArray` against NumPy: fields, views, indexing, assignment, arithmetic."""

from __future__ import annotations

import copy
import operator
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilework.needle as nd

DEVICES = [device for device in nd.all_devices() if device.enabled()]
rng = np.random.default_rng(21)


@pytest.fixture(params=DEVICES, ids=str)
def device(request: pytest.FixtureRequest) -> Any:
    return request.param


def counted(device: Any, *shape: int) -> tuple[nd.NDArray, Any]:
    values = np.arange(np.prod(shape, dtype=int), dtype=np.float32).reshape(shape)
    return nd.array(values, device=device), values


def check_view(view: nd.NDArray, base: nd.NDArray, wanted: Any) -> None:
    """Values and strides are NumPy's, and the buffer is the base's."""
    np.testing.assert_array_equal(view.numpy(), wanted)
    assert view.strides == tuple(stride // 4 for stride in wanted.strides)
    assert view._handle is base._handle and view._handle.ptr() == base._handle.ptr()
    dense = view.compact()
    assert dense.is_compact()
    np.testing.assert_array_equal(dense.numpy(), wanted)


# Construction and fields


def test_fields(device: Any) -> None:
    a, _ = counted(device, 2, 3)
    assert a.shape == a._shape == (2, 3)
    assert a.strides == a._strides == (3, 1)
    assert (a._offset, a._device, a._handle.size) == (0, device, 6)
    assert (a.dtype, a.ndim, a.size, a.device) == ("float32", 2, 6, device)
    assert isinstance(a._handle, device.Array)


def test_make(device: Any) -> None:
    a, values = counted(device, 3, 4)
    plain = nd.NDArray.make([3, 4], device=device)
    assert plain.shape == (3, 4) and plain.is_compact() and plain._handle is not a._handle
    b = nd.NDArray.make((2, 2), strides=[4, 1], device=device, handle=a._handle, offset=5)
    assert b.strides == (4, 1)
    np.testing.assert_array_equal(b.numpy(), values[1:, 1:3])
    assert nd.NDArray.make((2,)).device == nd.default_device()
    assert nd.NDArray.make((), device=device)._handle.size == 1
    # No check at the time; but nobody reads outside of the buffer.
    outside = nd.NDArray.make((9, 9), device=device, handle=a._handle)
    for use in (outside.numpy, outside.compact, outside.exp, lambda: outside + outside):
        with pytest.raises(ValueError):
            use()


def test_compact_strides() -> None:
    assert nd.NDArray.compact_strides((2, 3, 4)) == (12, 4, 1)
    assert nd.NDArray.compact_strides([5]) == (1,)
    assert nd.NDArray.compact_strides(()) == ()


def test_subclass(device: Any) -> None:
    class Slices(nd.NDArray):
        def __getitem__(self, idxs: Any) -> Any:
            return self.shape, tuple(self.process_slice(s, i) for i, s in enumerate(idxs))

    a, _ = counted(device, 4, 5)
    made = Slices(a)
    assert type(made) is Slices and made.device == device
    assert made[1:3, ::2] == ((4, 5), (slice(1, 3, 1), slice(0, 5, 2)))
    assert type(made + 1) is nd.NDArray is type(Slices.make((2,)))
    made[1:3, ::2] = 7
    assert (made.numpy()[1:3, ::2] == 7).all()
    assert type(Slices(np.ones(2))) is Slices


def test_attributes_can_be_assigned(device: Any) -> None:
    a, values = counted(device, 3, 4)
    a.label = "mine"  # type: ignore[attr-defined]
    view = a.as_strided((3, 4), (-4, 1))
    view._offset = 8
    np.testing.assert_array_equal(view.compact().numpy(), values[::-1])
    a._shape, a._strides = (4, 3), (3, 1)
    np.testing.assert_array_equal(a.numpy(), values.reshape(4, 3))


def test_copy_keeps_bits(device: Any) -> None:
    values = np.array([[-0.0, 0.0], [np.nan, -np.inf]], np.float32)
    a = nd.array(values, device=device)
    for other in (nd.NDArray(a), nd.array(a.permute((1, 0))).permute((1, 0))):
        assert other._handle is not a._handle
        assert other.compact().numpy().tobytes() == values.tobytes()


def test_copies_and_pickles(device: Any) -> None:
    a, values = counted(device, 3, 4)
    part = a[1:, ::2]
    for other in (copy.deepcopy(part), pickle.loads(pickle.dumps(part))):
        np.testing.assert_array_equal(other.numpy(), values[1:, ::2])
        assert other.device == device and other._handle is not a._handle
    b, c = pickle.loads(pickle.dumps((a, part)))
    assert b._handle is c._handle
    assert copy.copy(a)._handle is a._handle


def test_text(device: Any) -> None:
    a, values = counted(device, 2, 3)
    assert str(a) == str(values)
    assert repr(a) == f"NDArray({values}, device={device})"


def test_moving(device: Any) -> None:
    a, values = counted(device, 2, 3)
    assert a.to(device) is a
    assert a.astype("float32") is a
    for other in DEVICES:
        b = a.permute((1, 0)).to(other)
        assert b.device == other
        np.testing.assert_array_equal(b.numpy(), values.T)


def test_numpy_is_a_copy(device: Any) -> None:
    a, values = counted(device, 2, 3)
    for view in (a, a.permute((1, 0)), a[0:1, :].broadcast_to((4, 3))):
        seen = view.numpy()
        assert seen.dtype == np.float32
        seen[...] = -1
    np.testing.assert_array_equal(a.numpy(), values)


def test_fill(device: Any) -> None:
    a, values = counted(device, 4, 5)
    a[1:3, ::2].fill(9)
    values[1:3, ::2] = 9
    np.testing.assert_array_equal(a.numpy(), values)
    address = a._handle.ptr()
    a.fill(2.5)
    assert (a.numpy() == 2.5).all() and a._handle.ptr() == address
    with pytest.raises(TypeError):
        a.fill("x")


def test_manners(device: Any) -> None:
    a, values = counted(device, 3)
    assert bool(a) and bool(nd.array([0.0], device=device)) and bool(nd.empty((0,), device=device))
    with pytest.raises(TypeError):
        hash(a)
    items: list[nd.NDArray] = list(a)  # type: ignore[call-overload]
    assert [item.numpy().tolist() for item in items] == [[0], [1], [2]]
    assert 2 in a and 7 not in a and 1 not in nd.empty((0,), device=device)
    np.testing.assert_array_equal(np.asarray(a), values)
    assert np.asarray(a, dtype=np.float64).dtype == np.float64
    with pytest.raises(TypeError):
        values + a
    with pytest.raises(TypeError):
        a + values


# Views


def test_is_compact(device: Any) -> None:
    a, _ = counted(device, 4, 5)
    assert a.is_compact() and a.compact() is a
    for view in (a[1:3, :], a.permute((1, 0)), a[:, ::2]):
        assert not view.is_compact() and view.compact() is not view
    one, _ = counted(device, 1, 5)
    assert not one.permute((1, 0)).is_compact()
    assert not one.broadcast_to((1, 5)).is_compact()


VIEWS: list[tuple[tuple[int, ...], Callable[[Any], Any], Callable[[Any], Any]]] = [
    ((4, 4), lambda x: x.permute((1, 0)), lambda x: x.transpose(1, 0)),
    ((4, 1, 4), lambda x: x.broadcast_to((4, 5, 4)), lambda x: np.broadcast_to(x, (4, 5, 4))),
    ((1, 3, 4), lambda x: x.broadcast_to((6, 3, 4)), lambda x: np.broadcast_to(x, (6, 3, 4))),
    ((3, 4), lambda x: x.broadcast_to((2, 3, 4)), lambda x: np.broadcast_to(x, (2, 3, 4))),
    ((), lambda x: x.broadcast_to((2, 2)), lambda x: np.broadcast_to(x, (2, 2))),
    ((4, 3), lambda x: x.reshape((2, 2, 3)), lambda x: x.reshape(2, 2, 3)),
    ((4, 3), lambda x: x.reshape((2, -1)), lambda x: x.reshape(2, -1)),
    ((4, 3), lambda x: x.reshape([-1]), lambda x: x.reshape(-1)),
    ((4, 3), lambda x: x.flat, lambda x: x.reshape(-1)),
    ((1, 1), lambda x: x.reshape(()), lambda x: x.reshape(())),
    ((16, 16), lambda x: x.reshape((2, 4, 2, 2, 2, 2, 2)), lambda x: x.reshape(2, 4, *[2] * 5)),
    ((2, 4, 2, 2, 2, 2, 2), lambda x: x.reshape((16, 16)), lambda x: x.reshape(16, 16)),
    ((3, 5, 4), lambda x: x.permute((2, 0, 1)), lambda x: x.transpose(2, 0, 1)),
    ((3, 5, 4), lambda x: x.permute((-1, 0, -2)), lambda x: x.transpose(2, 0, 1)),
    ((8, 8), lambda x: x[4:, 4:], lambda x: x[4:, 4:]),
    ((7, 8), lambda x: x.permute((1, 0))[3:7, 2:5], lambda x: x.T[3:7, 2:5]),
    ((6, 8), lambda x: x[1:6:2, ::3].permute((1, 0)), lambda x: x[1:6:2, ::3].T),
    ((6, 8), lambda x: x[2:, 3:][1:, ::2], lambda x: x[2:, 3:][1:, ::2]),
    (
        (6, 8),
        lambda x: x[2:3, 3:].broadcast_to((4, 5)),
        lambda x: np.broadcast_to(x[2:3, 3:], (4, 5)),
    ),
    ((5, 5), lambda x: x[-2:, :-1], lambda x: x[-2:, :-1]),
    ((5, 5), lambda x: x[-100:3, 2:100], lambda x: x[-100:3, 2:100]),
    ((5, 5), lambda x: x[-1, 2], lambda x: x[-1:, 2:3]),
    ((5, 5), lambda x: x[np.int64(3), 0:2], lambda x: x[3:4, 0:2]),
    ((5,), lambda x: x[4], lambda x: x[4:5]),
    ((), lambda x: x[()], lambda x: x[()].reshape(())),
    ((2, 4, 2, 2, 2, 2), lambda x: x[:, 1:3, 0, :, 1, :], lambda x: x[:, 1:3, :1, :, 1:, :]),
    (
        (6, 6),
        lambda x: x[1:, 1:].as_strided((2, 2, 3), (12, 6, 1)),
        lambda x: np.lib.stride_tricks.as_strided(x[1:, 1:], (2, 2, 3), (48, 24, 4)),
    ),
]


@pytest.mark.parametrize("shape, ours, theirs", VIEWS)
def test_views(device: Any, shape: Any, ours: Any, theirs: Any) -> None:
    a, values = counted(device, *shape)
    wanted = theirs(values)
    view = ours(a)
    np.testing.assert_array_equal(view.numpy(), wanted)
    assert view._handle is a._handle and view.shape == wanted.shape
    # NumPy leaves strides of axes of length 1 to chance.
    for length, stride, own in zip(wanted.shape, wanted.strides, view.strides, strict=True):
        assert length == 1 or own == stride // 4
    dense = view.compact()
    assert dense.is_compact()
    np.testing.assert_array_equal(dense.numpy(), wanted)


def test_strides_that_are_graded(device: Any) -> None:
    a, _ = counted(device, 4, 4)
    assert (a[1, 0].shape, a[1, 0].strides) == ((1, 1), (4, 1))
    assert a[1:2, :].broadcast_to((3, 4)).strides == (0, 1)
    assert a.sum(axis=1).strides == (1,) and counted(device, 4)[0].sum(axis=0).strides == ()
    check_view(a.permute((1, 0)), a, np.arange(16, dtype=np.float32).reshape(4, 4).T)


def test_view_errors(device: Any) -> None:
    a, _ = counted(device, 4, 6)
    for shape in ((4, 7), (5, -1), (-1, -1), (-4, -6), (0, -1)):
        with pytest.raises(ValueError):
            a.reshape(shape)
    for part in (a[1:3, :], a.permute((1, 0))):
        with pytest.raises(ValueError):
            part.reshape((part.size,))
        with pytest.raises(ValueError):
            part.flat  # noqa: B018
    for target in ((4, 7), (8, 6), (6,), (4, 1), (6, 4), (4, -6)):
        with pytest.raises(AssertionError):
            a.broadcast_to(target)
    for axes in ((0,), (0, 0), (0, 1, 2), (0, 2), (0, -2)):
        with pytest.raises(AssertionError):
            a.permute(axes)
    with pytest.raises(AssertionError):
        a.as_strided((2, 2), (1,))


def test_zero_sizes(device: Any) -> None:
    a, _ = counted(device, 0, 3)
    assert a.numpy().shape == (0, 3) and a.is_compact()
    assert (a + a).shape == (0, 3) and (a * 2).exp().shape == (0, 3)
    assert a.permute((1, 0)).compact().shape == (3, 0)
    assert a.reshape((3, 0)).shape == (3, 0) and nd.NDArray(a).shape == (0, 3)
    assert a.sum().numpy().tolist() == [0]
    assert a.sum(axis=0).numpy().tolist() == [0, 0, 0] and a.sum(axis=1).shape == (0,)
    assert a.max(axis=1).shape == (0,)
    for axis in (0, None):
        with pytest.raises(ValueError):
            a.max(axis=axis)
    assert (a.permute((1, 0)) @ a).numpy().tolist() == [[0] * 3] * 3
    assert a.flip((0, 1)).shape == (0, 3) and a.pad(((1, 0), (0, 0))).numpy().tolist() == [[0] * 3]


def test_rank_zero(device: Any) -> None:
    a = nd.array(3.5, device=device)
    assert (a.shape, a.strides, a.size, a.ndim) == ((), (), 1, 0)
    assert (a + a).numpy() == 7 and (a * 2 - 1).exp().shape == ()
    a[()] = 5
    assert a[()].numpy() == 5
    a[()] = nd.array([[6.0]], device=device)
    assert a.numpy() == 6 and a.sum().numpy().tolist() == [6] and a.max().shape == (1,)
    assert a.flat.shape == (1,) and a.permute(()).shape == () and a.compact() is a
    a.fill(1)
    assert a.numpy() == 1 and nd.array(a).shape == () and a.broadcast_to((2,)).strides == (0,)


# Indexing


def test_process_slice(device: Any) -> None:
    a, _ = counted(device, 7, 1)
    for sl in (slice(None), slice(-3, None), slice(1, -1, 2), slice(2, 50), slice(-50, 3, 4)):
        seen = a.process_slice(sl, 0)
        assert None not in (seen.start, seen.stop, seen.step) and min(seen.start, seen.stop) >= 0
        assert list(range(7))[seen] == list(range(7))[sl]
    for sl in (slice(3, 3), slice(4, 2), slice(None, None, -1), slice(0, 5, 0), slice(9, 12)):
        with pytest.raises(AssertionError):
            a.process_slice(sl, 0)
    with pytest.raises(TypeError):
        a.process_slice(slice(0.5, 2), 0)


def test_index_errors(device: Any) -> None:
    a, _ = counted(device, 4, 6)
    everything = slice(None)
    for wrong in (0, (0,), (0, 0, 0), everything, ..., None, (), [0, 1], (0, slice(2, 2))):
        with pytest.raises(AssertionError):
            a[wrong]
        with pytest.raises(AssertionError):
            a[wrong] = 1
    for kind in (1.5, "1", None, ..., True, np.bool_(True), [0], np.array([0, 1]), 1j):
        with pytest.raises(TypeError):
            a[kind, 0]
    for outside in ((4, 0), (-5, 0), (0, 6), (0, -7), (10, everything)):
        with pytest.raises(IndexError):
            a[outside]
        with pytest.raises(IndexError):
            a[outside] = 1


# Assignment

REGIONS = [
    (slice(None), slice(None), slice(None)),
    (slice(0, 2), slice(1, 4), slice(None)),
    (slice(None, None, 2), slice(1, 5, 3), slice(2, 6, 2)),
    (1, slice(None), 5),
    (-1, slice(-2, None), slice(None, -1)),
    (1, 2, 3),
]


@pytest.mark.parametrize("region", REGIONS)
def test_setitem(device: Any, region: Any) -> None:
    a, values = counted(device, 4, 5, 6)
    address, strides = a._handle.ptr(), a.strides
    a[region] = 2.5
    values[region] = 2.5
    np.testing.assert_array_equal(a.numpy(), values)
    shape = a[region].shape
    fresh = rng.standard_normal(shape).astype(np.float32)
    a[region] = nd.array(fresh, device=device)
    values[region] = fresh.reshape(values[region].shape)
    np.testing.assert_array_equal(a.numpy(), values)
    # Elements are taken in row-major order, whatever the shape.
    a[region] = nd.array(fresh[::-1].reshape(-1), device=device)
    values[region] = fresh[::-1].reshape(values[region].shape)
    np.testing.assert_array_equal(a.numpy(), values)
    assert (a._handle.ptr(), a.strides) == (address, strides)


def test_setitem_through_views(device: Any) -> None:
    a, values = counted(device, 4, 5)
    a.permute((1, 0))[1:3, 2:][:, 0] = nd.array([-1, -2], device=device)
    values.T[1:3, 2:][:, 0] = (-1, -2)
    a.flat[7] += 100
    values.reshape(-1)[7] += 100
    a[1:, :] = a[:-1, :]
    values[1:, :] = values[:-1, :].copy()
    np.testing.assert_array_equal(a.numpy(), values)
    square, numbers = counted(device, 3, 3)
    square.permute((1, 0))[:, :] = square
    np.testing.assert_array_equal(square.numpy(), numbers.T)
    wide = a[0:1, :].broadcast_to((3, 5))
    wide[1:2, 0] = 42
    assert a.numpy()[0, 0] == 42
    wide[:, 1] = 43
    assert a.numpy()[0, 1] == 43


def test_setitem_errors(device: Any) -> None:
    a, values = counted(device, 4, 5)
    with pytest.raises(AssertionError):
        a[0:2, 0:2] = nd.array([1, 2], device=device)
    with pytest.raises(AssertionError):
        a[0:2, 0:2] = nd.array([1], device=device)
    for wrong in (np.ones((2, 2)), "x", None, 1j, [1, 2, 3, 4]):
        with pytest.raises(TypeError):
            a[0:2, 0:2] = wrong
    for other in DEVICES:
        if other != device:
            with pytest.raises(TypeError):
                a[0:1, 0:1] = nd.array([1], device=other)
    np.testing.assert_array_equal(a.numpy(), values)


# The two operands of assignment and arithmetic may be any views


def test_operators_on_views(device: Any) -> None:
    a, values = counted(device, 6, 6)
    x, u = a[1:5, ::2].permute((1, 0)), values[1:5, ::2].T
    y, v = a[0:1, 1:5].broadcast_to((3, 4)), np.broadcast_to(values[0:1, 1:5], (3, 4))
    for function in (operator.add, operator.sub, operator.mul, operator.truediv, operator.gt):
        result = function(x, y)
        assert result.is_compact() and result._handle is not a._handle
        np.testing.assert_allclose(result.numpy(), function(u, v), rtol=1e-6)
