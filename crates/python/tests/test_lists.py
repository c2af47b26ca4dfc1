"""Arrays from lists: what numbers become together, elements among them, and lists that change meanwhile."""

import collections
import enum
import gc
import itertools

import numpy as np
import pytest

import tilework as tw


class Level(enum.IntEnum):
    """An integer of another class."""

    LOW = 1


class Third(float):
    """A float that says another number of itself; what it holds counts."""

    def __float__(self) -> float:
        return 99.0


class Ninth(np.float32):
    """An element of NumPy's that does so."""

    def __float__(self) -> float:
        return 99.0


NUMBERS = [1.5, 2, -3, True, 1 + 2j, 2**62, Level.LOW, np.float64(0.5)]
ELEMENTS = [np.float32(1.5), np.int8(-3), np.uint8(200), np.int64(-5), np.uint64(2**64 - 1), np.bool_(True)]


def same(ours: tw.Array, numpys: np.ndarray) -> None:
    """Same dtype, shape and elements."""
    assert (ours.dtype, ours.shape) == (numpys.dtype.name, numpys.shape)
    assert ours.tolist() == numpys.tolist()


@pytest.mark.parametrize("kind", [list, tuple])
def test_numbers_become_what_numpy_makes_of_them(device: tw.device, kind: type) -> None:
    for length in range(4):
        for numbers in itertools.product([*NUMBERS, *ELEMENTS], repeat=min(length, 2)):
            row = kind(numbers * (2 if length == 3 else 1))
            same(tw.array(row), np.array(row))
            same(tw.array([row, row]), np.array([row, row]))


def test_long_lists_that_change_their_kind(device: tw.device) -> None:
    for last in [*NUMBERS, *ELEMENTS]:
        for first in [[], [1.5] * 40, [7] * 40, [np.float32(1.5)] * 40, [np.int64(7)] * 40]:
            same(tw.array([*first, last]), np.array([*first, last]))
            same(tw.array([*first, last, *first]), np.array([*first, last, *first]))


def test_elements_of_ours(device: tw.device) -> None:
    x = tw.asarray([1.5, 2.5], dtype="float32")
    made = tw.array([x[0], x[1], x.sum()])
    assert made.dtype == tw.float32 and made.tolist() == [1.5, 2.5, 4.0]
    assert tw.array([x[0], 2]).dtype == tw.float64
    assert tw.array([[x[0], 1.0], [x[1], 2.0]]).tolist() == [[1.5, 1.0], [2.5, 2.0]]
    counts = tw.asarray([3, 4], dtype="uint8")
    assert tw.array([counts[0], counts[1]]).dtype == tw.uint8
    assert tw.array([x[0], tw.array(2j)]).tolist() == [1.5, 2j]
    x[0] = 7
    assert made.tolist() == [1.5, 2.5, 4.0]
    with tw.device("reference"):
        elsewhere = tw.array([1.0])[0]
    assert tw.array([elsewhere, 2.0]).tolist() == [1.0, 2.0]
    assert tw.array([elsewhere, 2.0]).device == device


def test_large_integers(device: tw.device) -> None:
    assert tw.array([2**63, 1]).dtype == tw.uint64
    assert tw.array([1, 2**64 - 1]).tolist() == [1, 2**64 - 1]
    assert tw.array([2**63, -1]).dtype == tw.float64
    assert tw.array([2**63, True, -1.5]).dtype == tw.float64
    assert tw.array([2**70, 1.5]).tolist() == [2.0**70, 1.5]
    for numbers in [[2**64], [1, 2**64], [-(2**63) - 1], [2**200, 1.5]]:
        with pytest.raises(OverflowError):
            tw.array(numbers)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64", "uint64"])
def test_numbers_must_fit_what_is_asked_for(device: tw.device, dtype: str) -> None:
    assert tw.array([1.9, 0.5, 3, True], dtype=dtype).tolist() == [1, 0, 3, 1]
    limits = tw.iinfo(dtype)
    for number in [limits.max + 1, limits.min - 1, 1e30, -1e30]:
        with pytest.raises(OverflowError, match="asarray"):
            tw.array([1, number], dtype=dtype)
    for number, error in [(float("nan"), ValueError), (1j, TypeError)]:
        with pytest.raises(error, match="asarray"):
            tw.array([1, number], dtype=dtype)
    # Elements are cast as an array of them is.
    assert tw.array([np.float64(-1.5), np.float64(2.5)], dtype="int8").tolist() == [-1, 2]
    assert tw.array([np.int64(300), 1], dtype="uint8").tolist() == [300 - 256, 1]
    assert tw.array([tw.array(300), 1], dtype="uint8").tolist() == [300 - 256, 1]
    assert tw.array([np.float32(1.5), np.int64(2**62 + 1)], dtype="int64").tolist() == [1, 2**62 + 1]
    with pytest.raises(OverflowError, match="asarray"):
        tw.array([np.int64(1), 300], dtype="uint8")


@pytest.mark.parametrize("dtype", ["bool", "float16", "bfloat16", "float32", "complex64", "complex128"])
def test_numbers_in_other_dtypes(device: tw.device, dtype: str) -> None:
    for numbers in [[0.0, 1.1, -2.0], [0, 3, -(2**62)], [0, 1.1, True], [np.float32(1.1), np.float32(0)]]:
        want = tw.asarray(np.array(numbers)).astype(dtype)
        made = tw.array(numbers, dtype=dtype)
        assert made.dtype == dtype and made.tolist() == want.tolist()


@pytest.mark.parametrize(
    "lists",
    [
        [1, [2]],
        [[1], 2],
        [[1, 2], [3]],
        [[1, 2], (3,)],
        [[], [1]],
        [[1], []],
        [[[1]], [1]],
        [np.float32(1), [2]],
        [[np.int64(1)], 2],
    ],
)
def test_ragged_lists(device: tw.device, lists: list[object]) -> None:
    with pytest.raises(ValueError, match="asarray"):
        tw.array(lists)


@pytest.mark.parametrize("other", [None, "a", object(), {}, np.str_("a")])
def test_what_is_no_number(device: tw.device, other: object) -> None:
    for lists in [[other], [1.0, other], [np.float32(1), other], [[1, 2], [3, other]]]:
        with pytest.raises((TypeError, ValueError)):
            tw.array(lists)


def test_other_sequences(device: tw.device) -> None:
    pair = collections.namedtuple("pair", "x y")
    for rows in [
        [pair(1, 2.5), pair(3, 4)],
        collections.deque([1, 2, 3]),
        range(5),
        [range(3), (1, 2, 3), [4, 5, 6.5]],
        [],
        (),
        [[], []],
    ]:
        same(tw.array(rows), np.array(rows))


def test_what_a_number_holds_counts(device: tw.device) -> None:
    assert tw.array([Third(0.25), 1.0]).tolist() == [0.25, 1.0]
    assert tw.array([Ninth(2.5), Ninth(1.5)]).tolist() == [2.5, 1.5]


class Changing(collections.abc.Sequence[float]):
    """A row that empties the list which it is in while it is read."""

    def __init__(self, around: list[object]) -> None:
        self.around = around

    def __len__(self) -> int:
        return 2

    def __getitem__(self, at: int) -> float:
        self.around.clear()
        gc.collect()
        return [1.5, 2.5][at]


def test_lists_that_change_while_they_are_read(device: tw.device) -> None:
    around: list[object] = []
    around += [Changing(around), *([float(k), 0.5] for k in range(100))]
    made = tw.array(around)
    assert not around
    assert made.tolist() == [[1.5, 2.5], *([float(k), 0.5] for k in range(100))]


class Growing:
    """What is no number, and adds to its list when it is asked for its dtype."""

    def __init__(self, around: list[object]) -> None:
        self.around = around

    @property
    def dtype(self) -> object:
        self.around[:] = [0.0] * 1000
        raise RuntimeError


def test_lists_that_grow_while_they_are_read(device: tw.device) -> None:
    around: list[object] = [1.0, 2.0]
    around += [Growing(around), 3.0]
    # It is no number: the list is read again for arrays, and is another by then.
    assert tw.array(around).tolist() == [0.0] * 1000


@pytest.mark.parametrize("value", [np.datetime64("2020-01-01"), np.timedelta64(5, "D"), np.bytes_(b"a"), np.str_("a")])
def test_dates_and_texts_of_numpy_are_no_numbers(value: np.generic) -> None:
    for given in (value, [value], [[value]], np.asarray([value])):
        with pytest.raises(TypeError, match="asarray|array"):
            tw.array(given)
    assert tw.array([np.uint8(7)]).tolist() == [7] and tw.array(np.uint8(7)).dtype == tw.uint8
