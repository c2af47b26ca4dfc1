"""How arrays lie in memory: orders, flags, flat and reinterpretation, against NumPy."""

import itertools

import numpy as np
import pytest

import tilework as tw
from conftest import SEED


def arrays(device: tw.device) -> list[tuple[tw.Array, np.ndarray]]:
    """Arrays that lie in different ways, ours and NumPy's alike."""
    n = np.arange(120, dtype=np.int32).reshape(2, 3, 4, 5)
    x = tw.asarray(n, device=device, copy=True)
    keys = [
        (0, 0),
        (0, slice(None), 1),
        (slice(None), slice(None, None, 2), slice(1, 3)),
        (1, slice(0), 2),
        (0, 0, 0, 0, ...),
    ]
    pairs = [(x, n), *((x[key], n[key]) for key in keys)]
    pairs += [(a.T, b.T) for a, b in pairs]
    return [*pairs, (x.transpose(2, 0, 3, 1), n.transpose(2, 0, 3, 1))]


def equal(ours: tw.Array, theirs: np.ndarray) -> None:
    assert ours.shape == theirs.shape and ours.dtype == theirs.dtype
    np.testing.assert_array_equal(np.asarray(ours), theirs)


@pytest.mark.parametrize("order", ["C", "F", "A", "K"])
def test_orders(device: tw.device, order: str) -> None:
    for x, n in arrays(device):
        equal(x.ravel(order), n.ravel(order))
        equal(x.flatten(order=order), n.flatten(order))
        assert not tw.shares_memory(x.flatten(order), x)
        for ours, theirs in [
            (x.copy(order), n.copy(order)),
            (x.astype(tw.float64, order), n.astype(np.float64, order)),
            (tw.array(x, order=order), np.array(n, order=order)),
            (tw.asarray(x, order=order), np.asarray(n, order=order)),
        ]:
            equal(ours, theirs)
            flags = theirs.flags
            found = (ours.flags.c_contiguous, ours.flags.f_contiguous)
            assert found == (flags.c_contiguous, flags.f_contiguous)
        if n.size == 120 and order != "K":
            for shape in [(6, 20), (5, 4, 3, 2), (-1, 8)]:
                equal(x.reshape(shape, order=order), n.reshape(shape, order=order))
                equal(tw.reshape(x, shape, order=order), np.reshape(n, shape, order=order))


def test_an_order_that_is_there_is_not_copied(device: tw.device) -> None:
    x = tw.zeros((2, 3), device=device)
    assert tw.shares_memory(tw.asarray(x, order="C"), x)
    assert tw.shares_memory(tw.asarray(x.T, order="F"), x)
    assert not tw.shares_memory(tw.asarray(x, order="F"), x)
    assert tw.shares_memory(x.astype(x.dtype, copy=False), x)
    assert tw.shares_memory(x.T.reshape((6,), order="F", copy=False), x)
    with pytest.raises(ValueError, match="copy"):
        tw.asarray(x, order="F", copy=False)
    with pytest.raises(ValueError, match="copy"):
        x.reshape((6,), order="F", copy=False)
    for wrong in ["", "Z", "CF"]:
        with pytest.raises(ValueError, match="order"):
            x.copy(wrong)
    with pytest.raises(ValueError, match="order"):
        x.reshape((6,), order="K")


def test_flags(device: tw.device) -> None:
    for x, n in arrays(device):
        for name in ["c_contiguous", "f_contiguous", "contiguous", "forc", "fnc", "aligned"]:
            assert getattr(x.flags, name) == getattr(n.flags, name), name
        for name in ["C_CONTIGUOUS", "F", "WRITEABLE", "A"]:
            assert x.flags[name] == n.flags[name]
    fixed = np.zeros(3)
    fixed.setflags(write=False)
    held = tw.asarray(fixed, device="cpu")
    assert not held.flags.writeable and not held.flags.owndata
    assert "  WRITEABLE : True" in repr(tw.zeros(2).flags)
    with pytest.raises(KeyError):
        tw.zeros(2).flags["COLOUR"]
    with pytest.raises(AttributeError):
        tw.zeros(2).flags.writeable = False  # type: ignore[misc]


def test_views_own_no_memory(device: tw.device) -> None:
    n, x = np.zeros((2, 3)), tw.zeros((2, 3))
    pairs = [(x, n), (x.T, n.T), (x[::-1], n[::-1]), (x[1:], n[1:]), (x[:1], n[:1]), (x[:, :2], n[:, :2])]
    pairs += [(x.copy(), n.copy()), (x + 1, n + 1), (tw.broadcast_to(x, (4, 2, 3)), np.broadcast_to(n, (4, 2, 3)))]
    pairs += [(tw.zeros((0, 3)), np.zeros((0, 3))), (tw.zeros(()), np.zeros(()))]
    for ours, theirs in pairs:
        assert ours.flags.owndata == theirs.flags.owndata


def test_flat(device: tw.device) -> None:
    rng = np.random.default_rng(SEED)
    for x, n in arrays(device):
        assert len(x.flat) == len(n.flat)
        assert [int(element) for element in x.flat] == [int(element) for element in n.flat]
        keys = [slice(None, None, 3), slice(5, 1, -1), ...]
        if n.size > 3:
            keys += [2, -1, np.array([0, 3, -2]), rng.random(n.size) < 0.3]
        for key in keys:
            np.testing.assert_array_equal(np.asarray(x.flat[key]), n.flat[key])
            x.flat[key] = 7
            n.flat[key] = 7
            equal(x, n)
    x = tw.zeros((2, 3), device=device)
    x.T.flat = [1, 2, 3, 4, 5, 6]
    assert x.tolist() == [[1, 3, 5], [2, 4, 6]]
    part = x.flat[1:3]
    part.fill(0)
    assert x.tolist() == [[1, 3, 5], [2, 4, 6]]
    for wrong in [6, -7]:
        with pytest.raises(IndexError, match="out of bounds"):
            x.flat[wrong]


def test_views_as_another_dtype(device: tw.device) -> None:
    names = ["int8", "uint16", "float32", "int64", "complex128", "bool"]
    n = np.arange(96, dtype=np.uint8).reshape(6, 16)
    for rows, first, second in itertools.product([1, 2], names, names):
        a = n.view(first)[::rows]
        x = tw.asarray(n, device=device, copy=True).view(first)[::rows]
        ours, theirs = x.view(second), a.view(second)
        assert ours.strides == theirs.strides and tw.shares_memory(ours, x)
        equal(ours.view(tw.uint8), theirs.view(np.uint8))
    x = tw.zeros((3, 4), dtype=tw.int32, device=device)
    assert tw.shares_memory(x.view(), x) and x.view("float32").dtype == tw.float32
    for wrong in [x.T, x[:, ::2], x[:, 1:], x[0, 0]]:
        with pytest.raises(ValueError, match="view"):
            wrong.view(tw.int64)
