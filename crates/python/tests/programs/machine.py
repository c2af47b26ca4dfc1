"""The machine that programs run on: pairs of arrays, choices, and the three ways to take a step."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

import tilework as tw
from comparison import same_bits, same_values

INTEGERS = "int8 int16 int32 int64 uint8 uint16 uint32 uint64".split()
FLOATS = "float16 float32 float64".split()
COMPLEX = "complex64 complex128".split()
DTYPES = ["bool", *INTEGERS, *FLOATS, *COMPLEX]

MOST_AXES = 5


@dataclass(frozen=True)
class Size:
    """How large arrays are: the lengths of one axis, and the most elements of all."""

    lengths: tuple[int, ...]
    most: int


# Around the widths of vectors; and beyond what one thread does alone.
SMALL = Size((7, 8, 9, 15, 16, 17, 31, 33, 64, 65), 600)
LARGE = Size((1000, 4096, 4097, 10_001, 30_000), 120_000)
# Larger numbers are not computed with again: what overflows is a test of its own.
LARGEST = {"float16": 64.0, "float32": 1e6, "float64": 1e6, "complex64": 1e6, "complex128": 1e6}

KINDS = (TypeError, OverflowError, IndexError, ValueError, ZeroDivisionError)


@dataclass
class Pair:
    """An array on both sides. `folded`: several indices may reach one element, so writing to it
    depends on the order."""

    name: str
    ours: tw.Array
    theirs: np.ndarray
    folded: bool = False

    @property
    def dtype(self) -> str:
        return self.theirs.dtype.name


class Machine:
    """The live arrays, and what was done so far. `below(n)` chooses a number from 0 to n - 1, and
    `create` adds an array where a step finds none that fits."""

    def __init__(
        self, below: Callable[[int], int], create: Callable, log: list[str], size: Size
    ) -> None:
        self.below = below
        self.create = create
        self.size = size
        self.log = log
        self.pairs: list[Pair] = []

    # Choices.

    def between(self, low: int, high: int) -> int:
        return low + self.below(high - low + 1)

    def choice(self, options: list) -> object:
        return options[self.below(len(options))]

    def chance(self, one_in: int) -> bool:
        return self.below(one_in) == 1

    def pick(self, fits: Callable[[Pair], bool] = lambda pair: True) -> Pair:
        """A live array that fits; a new one where there is none."""
        found = [pair for pair in self.pairs if fits(pair)]
        while not found:
            self.create(self)
            found = [pair for pair in self.pairs[-1:] if fits(pair)]
        return self.choice(found)

    def together(self, a: tuple[int, ...], b: tuple[int, ...]) -> bool | None:
        """Whether two shapes broadcast to one that is not much too large; None if they do not
        broadcast."""
        try:
            return bool(np.prod(np.broadcast_shapes(a, b), dtype=int) <= 8 * self.size.most)
        except ValueError:
            return None

    def axis(self, pair: Pair) -> int:
        return self.between(-pair.theirs.ndim, pair.theirs.ndim - 1)

    # What happens.

    def say(self, text: str) -> None:
        self.log.append(text)

    def keep(self, text: str, ours: tw.Array, theirs: np.ndarray, folded: bool = False) -> None:
        """A new live array, if it is not too large."""
        name = f"v{len(self.log)}"
        self.say(f"{name} = {text}  # {theirs.dtype} {theirs.shape}")
        if theirs.ndim <= MOST_AXES and theirs.size <= self.size.most:
            self.pairs.append(Pair(name, ours, theirs, folded))
        if len(self.pairs) > 12:
            del self.pairs[0]

    def both(self, text: str, ours: Callable, theirs: Callable, also: tuple = ()) -> tuple | None:
        """The results of both sides; None if both refuse, by the same kind of exception or `also`
        by another."""
        self.say(f"try {text}")
        with np.errstate(all="ignore"):
            expected, refusal = attempt(theirs)
        found, error = attempt(ours)
        if refusal is None and error is None:
            return found, expected
        if refusal is None:
            raise AssertionError(f"NumPy can do it, tilework cannot: {error!r}") from error
        assert error is not None, f"tilework does it, NumPy raises {refusal!r}"
        # Where shape and dtype are both wrong, either may be said first.
        kinds = tuple(kind for kind in KINDS if isinstance(refusal, kind) or kind in also)
        assert isinstance(error, kinds), f"{error!r} is not {refusal!r}"
        self.log[-1] = f"{text} raises {type(refusal).__name__}"
        return None

    def view(
        self, text: str, ours: Callable, theirs: Callable, source: Pair, folded: bool = False
    ) -> None:
        """Something that shares memory on our side where it does on the other."""
        if (done := self.both(text, ours, theirs)) is None:
            return
        found, expected = done
        same_bits(found, expected)
        if expected.size and expected.ndim:
            shared = np.shares_memory(expected, source.theirs)
            # A reshape need not copy where NumPy does; it must never share less.
            assert tw.shares_memory(found, source.ours) == shared
        self.log.pop()
        self.keep(text, found, expected, folded or source.folded)

    def fresh(
        self,
        text: str,
        ours: Callable,
        theirs: Callable,
        check: Callable = same_values,
        also: tuple = (),
    ) -> None:
        """A new array on both sides, held together by `check`."""
        if (done := self.both(text, ours, theirs, also)) is None:
            return
        found, expected = done
        expected = np.asarray(expected)
        check(found, expected)
        self.log.pop()
        copied = np.array(np.asarray(found), order="C")
        if not found.is_contiguous:
            found = found.copy()
        limit = LARGEST.get(copied.dtype.name)
        if limit is not None and copied.size:
            finite = np.abs(copied[np.isfinite(copied)])
            if finite.size and finite.max() > limit:
                self.say(f"{text}  # large numbers, dropped")
                return
        self.keep(text, found, copied)

    def write(
        self,
        text: str,
        target: Pair,
        ours: Callable,
        theirs: Callable,
        check: Callable = same_values,
    ) -> None:
        """A write to `target`; all live arrays are compared after it."""
        if self.both(text, ours, theirs, also=(TypeError, ValueError)) is not None:
            self.log[-1] = text
            check(target.ours, target.theirs)
            target.theirs[...] = np.array(np.asarray(target.ours))
        for pair in self.pairs:
            same_bits(pair.ours, pair.theirs)
        if (limit := LARGEST.get(target.dtype)) is not None:
            finite = np.abs(target.theirs[np.isfinite(target.theirs)])
            if finite.size and finite.max() > limit:
                target.ours[...] = 1
                target.theirs[...] = 1


def attempt(work: Callable[[], object]) -> tuple[object, Exception | None]:
    try:
        return work(), None
    except KINDS as error:
        return None, error
