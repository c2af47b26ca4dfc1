"""Corners of the standard's functions: axes of size zero, integers of any size, empty complex
arrays, a device scope that is never left. Each was wrong once."""

import math
import random
import subprocess
import sys

import numpy as np
import pytest

import tilework as tw

HUGE = [2**63, -(2**63) - 1, 2**80, -(2**80)]


def test_masks_without_elements(device: tw.device) -> None:
    """An axis of size zero in a mask selects nothing from an axis of any size, as in NumPy."""
    n = np.arange(6).reshape(2, 3)
    x = tw.asarray(n, copy=True)
    for shape in [(0,), (0, 3), (2, 0), (0, 0), (2, 3)]:
        mask = np.zeros(shape, bool)
        found = x[tw.asarray(mask)]
        assert found.shape == n[mask].shape
        x[tw.asarray(mask)] = 7
    assert x.tolist() == n.tolist()
    for shape in [(1,), (1, 0), (0, 5), (5, 0), (2, 3, 0)]:
        with pytest.raises(IndexError, match="index"):
            x[tw.zeros(shape, dtype="bool")]


@pytest.mark.parametrize("k", [*HUGE, 2**63 - 1, -(2**63), 5, -5])
def test_diagonals_far_off(device: tw.device, k: int) -> None:
    x = tw.ones((2, 3))
    assert not tw.any(tw.eye(2, 3, k=k))
    assert tw.tril(x, k=k).tolist() == (x * (k > 0)).tolist()
    assert tw.triu(x, k=k).tolist() == (x * (k < 0)).tolist()
    with pytest.raises(TypeError):
        tw.eye(2, 3, k=1.5)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_parts_of_nothing(device: tw.device, dtype: str) -> None:
    for shape in [(0,), (0, 3), (3, 0)]:
        z = tw.zeros(shape, dtype=dtype)
        assert z.imag.shape == z.real.shape == shape and z.imag.dtype == z.real.dtype
    assert tw.ones(4, dtype=dtype)[4:].imag.shape == (0,)
    assert tw.linspace(0, 1j, 0, dtype=dtype).shape == (0,)


def test_ranges_of_uint64(device: tw.device) -> None:
    top = 2**64 - 1
    for bounds in [(0, 0, 2**63), (0, top, 2**62), (2**63, 2**63 + 5, 2), (top, 2**63, -(2**61))]:
        assert tw.arange(*bounds, dtype="uint64").tolist() == list(range(*bounds))
    assert tw.arange(0, 3, 2**63).tolist() == [0]
    for bounds in [(2**63, 2**63 + 2), (0, top, 2**62), (0, 2**64)]:
        with pytest.raises((ValueError, OverflowError, MemoryError), match="arange"):
            tw.arange(*bounds)


def test_more_differences_than_elements(device: tw.device) -> None:
    for n in (np.arange(5.0), np.ones((3, 4)), np.ones((3, 0)), np.ones((0, 3)), np.ones(4, dtype=bool)):
        for times in (1, 3, 4, 5, 9):
            for axis in range(n.ndim):
                ours, theirs = tw.diff(tw.asarray(n), n=times, axis=axis), np.diff(n, n=times, axis=axis)
                assert ours.shape == theirs.shape and ours.dtype == theirs.dtype
                assert ours.tolist() == theirs.tolist()
    assert tw.diff(tw.ones(5), n=10**9).shape == (0,)
    assert tw.diff(tw.ones((5, 2)), n=10**18, axis=0).shape == (0, 2)


def test_differences_of_order_zero(device: tw.device) -> None:
    x = tw.asarray([1, 4, 9])
    assert tw.diff(x, n=0, prepend=x, append=x).tolist() == [1, 4, 9]
    assert tw.diff(x, n=1, prepend=tw.asarray([0])).tolist() == [1, 3, 5]


def test_signs_of_complex_zeros(device: tw.device) -> None:
    """Where the standard names the sign: +0 of expm1, and the sign of b in tanh at infinity."""
    for dtype in ("complex64", "complex128"):
        found = tw.expm1(tw.asarray([0j, complex(-0.0, 0.0)], dtype=dtype))
        assert not np.signbit(np.asarray(found).real).any()
        b = np.asarray([0.5, 1, 2, 3, 100, 1e300 if dtype == "complex128" else 1e30])
        z = tw.tanh(tw.asarray(np.concatenate([np.inf + 1j * b, np.inf - 1j * b]), dtype=dtype))
        assert np.signbit(np.asarray(z).imag).tolist() == [False] * 6 + [True] * 6


def test_exit_inside_of_a_scope() -> None:
    """A program may end where a device scope is open."""
    program = "import tilework as tw; tw.device('reference').__enter__(); print(tw.zeros(2).device)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, "reference", "")


def test_lengths(device: tw.device) -> None:
    calls = [lambda: tw.eye(-1), lambda: tw.eye(2, -3), lambda: tw.zeros((2, -3))]
    calls += [lambda: tw.linspace(0, 1, -2), lambda: tw.diff(tw.ones(3), n=-1)]
    for call in calls:
        with pytest.raises(ValueError, match="is not a length"):
            call()


def test_casts_of_complex_numbers(device: tw.device) -> None:
    """The standard's function does not drop a part; NumPy's method does."""
    z = tw.asarray([1 + 2j, 0j])
    for dtype in ("float32", "float64", "int8", "uint64"):
        with pytest.raises(TypeError, match="real"):
            tw.astype(z, dtype)
        assert z.astype(dtype).tolist() == [1, 0]
    assert tw.astype(z, "bool").tolist() == [True, False]
    assert tw.astype(z, "complex64").dtype == "complex64"
    assert tw.astype(tw.imag(z), "int8").tolist() == [2, 0]


def test_margins_are_numbers_pairs_or_lists_of_them(device: tw.device) -> None:
    n = np.arange(6).reshape(2, 3)
    for widths in (1, [2], (1, 2), [1, 2], [[1, 2], [0, 1]], ((1, 2), (0, 1)), [(1, 1)], [[1], [2]], np.array([[1, 0], [0, 2]])):
        assert tw.pad(tw.asarray(n), widths).tolist() == np.pad(n, widths).tolist()
    for wrong in ([1, 2, 3], [[1, 2, 3], [0, 1]], "a", [[]]):
        with pytest.raises((TypeError, ValueError)):
            tw.pad(tw.asarray(n), wrong)


def test_margins_have_a_number_each(device: tw.device) -> None:
    n = np.arange(6.0).reshape(2, 3)
    for values in (7, [7], (7, 8), [[1, 2], [3, 4]], [(1, 1)], [[1], [2]], (np.nan, np.inf), np.array([[1, 0], [0, 2]]), np.array([[1], [2]]), np.float32(3)):
        for widths in (1, (0, 2), ((1, 2), (0, 1)), 0):
            found, wanted = (m.pad(x, widths, constant_values=values) for m, x in ((tw, tw.asarray(n)), (np, n)))
            np.testing.assert_array_equal(np.asarray(found.to_device("cpu")), wanted)
    assert tw.pad(tw.asarray([1], dtype="int8"), 1, constant_values=(2, 3)).dtype == tw.int8
    for wrong in ([1, 2, 3], [[1, 2], [3, 4], [5, 6]], "a", [[]], [None, 1]):
        with pytest.raises((TypeError, ValueError), match="pad"):
            tw.pad(tw.asarray(n), 1, constant_values=wrong)


def test_numbers_before_and_behind_differences(device: tw.device) -> None:
    n = np.arange(12.0).reshape(3, 4) ** 2
    for axis in (0, 1, -1):
        for edges in ({"prepend": 0}, {"append": 5.0}, {"prepend": 1, "append": 2}):
            assert tw.diff(tw.asarray(n), axis=axis, **edges).tolist() == np.diff(n, axis=axis, **edges).tolist()
    with pytest.raises(tw.AxisError, match="diff"):
        tw.diff(tw.asarray(n), axis=2, prepend=0)


def test_seeds_and_ranges_of_streams(device: tw.device) -> None:
    streams = [tw.random.default_rng(seed) for seed in np.random.SeedSequence(3).spawn(2)]
    again = tw.random.default_rng(np.random.SeedSequence(3).spawn(2)[0])
    first = [stream.random(3).tolist() for stream in (*streams, again)]
    assert first[0] == first[2] != first[1]
    for low, high in ((1, 0), (tw.asarray([0.0, 2.0]), 1)):
        with pytest.raises(ValueError, match="less than low"):
            tw.random.default_rng(1).uniform(low, high)
    assert tw.random.default_rng(1).uniform(2, 2) == 2


def test_least_numbers_beside_huge_ones(device: tw.device) -> None:
    """Half of the least number is zero, and zero times infinity is not a number."""
    least, huge = 5e-324, 1.7e308
    for function, z in ((tw.sinh, complex(huge, least)), (tw.cosh, complex(huge, least)), (tw.sin, complex(least, huge))):
        parts = function(tw.asarray(z)).item()
        assert abs(parts.real) == abs(parts.imag) == np.inf, (function, parts)
    # The exponential lifts the least number back among those with all their digits.
    lifted = least * math.exp(700) * math.exp(45) / 2
    assert math.isclose(tw.sinh(tw.asarray(complex(745, least))).item().imag, lifted, rel_tol=1e-12)


def test_imaginary_parts_of_real_numbers_are_not_written(device: tw.device) -> None:
    x = tw.ones((2, 3), dtype="float32")
    assert x.imag.tolist() == [[0] * 3] * 2 and x.imag.dtype == tw.float32
    with pytest.raises(ValueError):
        x.imag[0] = 5


def test_an_element_is_a_copy_and_a_view_is_asked_for(device: tw.device) -> None:
    x = tw.arange(4)
    x[0], x[3] = x[3], x[0]
    assert x.tolist() == [3, 1, 2, 0]
    old, kept = x[0], list(x)
    x[0] = 7
    x[1] += 5
    assert (old.item(), [k.item() for k in kept], x.tolist()) == (3, [3, 1, 2, 0], [7, 6, 2, 0])
    m = tw.eye(3)
    pivot, flat, np_index = m[1, 1], m.flat[0], m[np.int64(2), 2]
    m[...] = 5
    assert pivot.item() == flat.item() == np_index.item() == 1 and next(m.flat).item() == 5
    view = m[1, 1, ...]
    view += 1
    row = m[1]
    row[0] = 9
    assert m[1].tolist() == [9, 6, 5] and not tw.shares_memory(m[0, 0], m) and tw.shares_memory(m[0, 0, ...], m)
    order = list(range(50))
    shuffled = tw.asarray(order)
    random.Random(3).shuffle(shuffled)
    assert sorted(shuffled.tolist()) == order and shuffled.tolist() != order


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_powers_that_are_shorter_operations_keep_their_special_values(dtype: str) -> None:
    values = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-40, -3.0, 7.0], dtype=dtype)
    with np.errstate(all="ignore"):
        for exponent in (2, 2.0, -1, -1.0, 0.5):
            expected = np.power(values, np.full_like(values, exponent))
            got = np.asarray(tw.asarray(values) ** exponent)
            np.testing.assert_allclose(got, expected, rtol=1e-6, atol=0)
            assert np.array_equal(np.signbit(got[:4]), np.signbit(expected[:4]))
    with pytest.raises(ValueError, match="negative"):
        tw.asarray([2, 4]) ** -1


DTYPES = ["bool", "int8", "uint8", "int64", "uint64", "float16", "bfloat16", "float32", "complex64"]


@pytest.mark.parametrize("dtype", DTYPES)
def test_an_element_is_written_as_a_view_is(device: tw.device, dtype: str) -> None:
    """One element takes a way of its own."""

    def written(key: object, value: object) -> object:
        x = tw.zeros((2, 3), dtype=dtype)
        try:
            x[key] = value
        except (OverflowError, TypeError, ValueError) as error:
            return type(error), str(error)
        return x.tolist()

    for value in [0, 1, -1, 300, 1.9, -2.5, math.inf, math.nan, True, 1j, *HUGE, None, "1"]:
        assert repr(written((1, -2), value)) == repr(written((slice(1, 2), slice(1, 2)), value))
        # What is no plain number goes the long way.
        if isinstance(value, float):
            assert repr(written((1, -2), value)) == repr(written((1, np.int64(1)), value))


def test_elements_that_cannot_be_written(host: tw.device) -> None:
    x = tw.zeros((2, 3))
    for key in [(2, 0), (0, -4), (0, 0, 0), (2**70, 0)]:
        with pytest.raises(IndexError):
            x[key] = 1.0
    with pytest.raises(TypeError):
        del x[0, 0]
    fixed = tw.asarray(memoryview(b"abc"))
    with pytest.raises(ValueError, match="read-only"):
        fixed[0] = 1
    assert bytes(fixed.tolist()) == b"abc" and not tw.any(x)
    one = tw.array(1.5)
    one[()] = 2
    assert one.item() == 2.0


def test_arrays_are_written_to_elements_and_views(device: tw.device) -> None:
    x = tw.asarray([0.0, 1.0, 2.0, 3.0, 4.0])
    x[0] = x[4]
    x[1] += 0.5
    x[-1] = tw.asarray(7, dtype="int8")
    assert x.tolist() == [4.0, 1.5, 2.0, 3.0, 7.0]
    x[1:4] = x[0:3]
    assert x.tolist() == [4.0, 4.0, 1.5, 2.0, 7.0]
    x[1:] = x[:1]
    x[2] = tw.asarray([[5.0]])
    assert x.tolist() == [4.0, 4.0, 5.0, 4.0, 4.0]
    for key, shape in [(0, (2,)), (slice(0, 3), (2,)), (slice(0, 3), (1, 2))]:
        with pytest.raises(ValueError, match="set"):
            x[key] = tw.zeros(shape)
    with pytest.raises(IndexError):
        x[5] = x[0]
    assert x.tolist() == [4.0, 4.0, 5.0, 4.0, 4.0]
