"""Threads of Python that meet at one block: nobody waits with the interpreter's lock, streams of random
numbers go on once, and long work lets others run however small its operands are."""

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

import tilework as tw

# One thread sorts `x`, long enough to ask for the interpreter's lock in between; another waits to write
# it; the main thread does what the test is about. Whoever waits with the lock stops all three.
MEETING = """
import sys, threading
import tilework as tw
tw.set_num_threads(1)

x = tw.sin(tw.arange(1 << 20, dtype=tw.float64)).reshape(-1, 1)
y = tw.ones((1, 1))
K = tw.Vi(x + 1.0) * tw.Vj(y)
seen = tw.Vi(x) * tw.Vj(y)
genred = tw.Genred("a * b", ["a = Vi(1)", "b = Vj(1)"], axis=1)
works = {
    "reduction": lambda: K.sum(axis=1, out=x),
    "product": lambda: K.matmul(y, out=x),
    "genred": lambda: genred(x + 1.0, y, out=x),
    "explain": lambda: seen.explain(axis=1),
    "genred explain": lambda: genred.explain(x, y),
    "bytes": lambda: x.tobytes(),
    "repr": lambda: repr(x),
}
work, over = works[sys.argv[1]], threading.Event()


def reads():
    for _ in range(3):
        tw.sort(tw.broadcast_to(x, (12, *x.shape)), axis=1)
    over.set()


def writes():
    while not over.is_set():
        x.__iadd__(0.0)


others = [threading.Thread(target=target) for target in (reads, writes)]
for other in others:
    other.start()
while not over.is_set():
    work()
for other in others:
    other.join()
print("done")
"""


@pytest.mark.parametrize(
    "work", ["reduction", "product", "genred", "explain", "genred explain", "bytes", "repr"]
)
def test_nobody_waits_with_the_lock(work: str) -> None:
    command = [sys.executable, "-c", MEETING, work]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr


@contextmanager
def written(block: Any) -> Iterator[None]:
    """Another thread that writes to a block all the time, without the interpreter's lock."""
    over = threading.Event()

    def writes() -> None:
        while not over.is_set():
            block.__iadd__(0.0)

    thread = threading.Thread(target=writes)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@pytest.mark.parametrize("draw", ["normal", "uniform", "choice", "probabilities", "permutation"])
def test_streams_do_not_depend_on_other_threads(draw: str) -> None:
    block = tw.zeros(1 << 22)
    part = block[:8]
    even = block[8:16]
    even += 0.125
    works: dict[str, Callable[[Any], Any]] = {
        "normal": lambda rng: rng.normal(part, 1.0),
        "uniform": lambda rng: rng.uniform(part, 1.0),
        "choice": lambda rng: rng.choice(part, 8),
        "probabilities": lambda rng: rng.choice(8, 8, p=even),
        "permutation": lambda rng: rng.permutation(part),
    }
    work, times = works[draw], 60
    alone = tw.random.default_rng(5)
    expected = [work(alone).tolist() for _ in range(times)]
    rng = tw.random.default_rng(5)
    with written(block):
        found = []
        for _ in range(times):
            # Into the middle of a write, which waits for the lock at its end.
            time.sleep(0.001)
            found.append(work(rng).tolist())
    assert rng.state == alone.state
    assert found == expected


@contextmanager
def ticking() -> Iterator[list[int]]:
    """A count that another thread raises whenever it has the interpreter's lock, which nobody takes away."""
    ticks, over = [0], threading.Event()

    def tick() -> None:
        while not over.is_set():
            ticks[0] += 1
            time.sleep(0)

    interval, thread = sys.getswitchinterval(), threading.Thread(target=tick)
    thread.start()
    sys.setswitchinterval(1000.0)
    try:
        yield ticks
    finally:
        sys.setswitchinterval(interval)
        over.set()
        thread.join()


@pytest.mark.parametrize(
    "work",
    [
        "operator", "function", "where", "isclose", "allclose", "clip", "pad", "repeat", "tile",
        "take", "along", "index", "indices", "vecdot", "tensordot", "choice",
        "wide pairs", "genred", "partial", "dense", "long formula",
    ],
)  # fmt: skip
def test_work_is_as_long_as_its_result(work: str) -> None:
    column, row = tw.ones((3000, 1)), tw.ones((1, 3000))
    ten, wide = tw.zeros(10), tw.ones((2, 3000))
    picks = tw.zeros((3000,), dtype=tw.int64)
    vectors = tw.ones((4, 100_000), dtype=tw.float32)
    pairs = tw.Vi(vectors).sqdist(tw.Vj(vectors))
    genred = tw.Genred("SqDist(x, y)", ["x = Vi(100000)", "y = Vj(100000)"], axis=1)
    deep = tw.Vi(tw.ones((50, 1))) * tw.Vj(tw.ones((50, 1)))
    for _ in range(500):
        deep = deep.sin()
    works: dict[str, Callable[[], Any]] = {
        "operator": lambda: column + row,
        "function": lambda: tw.add(column, row),
        "where": lambda: tw.where(column > 0, row, column),
        "isclose": lambda: tw.isclose(column, row),
        "allclose": lambda: tw.allclose(column, row),
        "clip": lambda: tw.clip(column, row, 2.0),
        "pad": lambda: tw.pad(ten, 3_000_000, mode="reflect"),
        "repeat": lambda: tw.repeat(ten, 300_000),
        "tile": lambda: tw.tile(ten, (300_000,)),
        "take": lambda: tw.take(wide, picks, axis=0),
        "along": lambda: tw.take_along_axis(column, tw.zeros((1, 3000), dtype=tw.int64), axis=1),
        "index": lambda: wide[picks],
        "indices": lambda: wide[picks[:, None], picks],
        "vecdot": lambda: tw.vecdot(column[:, None], row[..., None], axis=-1),
        "tensordot": lambda: tw.tensordot(column[:, 0], row[0], axes=0),
        "wide pairs": lambda: pairs.sum(axis=1),
        "genred": lambda: genred(vectors, vectors),
        "partial": lambda: pairs.partial("Min", axis=1),
        "dense": lambda: pairs.dense(),
        "long formula": lambda: deep.sum(axis=1),
        "choice": lambda: tw.random.default_rng(1).choice(wide, 3000),
    }
    with ticking() as ticks:
        for _ in range(50):
            before = ticks[0]
            works[work]()
            if ticks[0] > before:
                return
    pytest.fail("the lock was held all the time")


def test_choice_takes_no_probability_that_is_none() -> None:
    rng = tw.random.default_rng(1)
    for wrong in [[float("nan"), 0.5, 0.5], [1.0, float("nan"), 0.0], [0.5, 0.6, -0.1], [1.0, 0.0]]:
        for replace in (True, False):
            with pytest.raises(ValueError, match="sum to 1"):
                rng.choice(3, 1, replace=replace, p=wrong)
    with pytest.raises(ValueError, match="without replacement"):
        rng.choice(3, 2, replace=False, p=[1.0, 0.0, 0.0])
    assert rng.choice(3, 1, replace=False, p=[0.0, 1.0, 0.0]).tolist() == [1]
    # However improbable, before what is impossible.
    for _ in range(20):
        assert sorted(rng.choice(3, 2, replace=False, p=[0.0, 1e-310, 1.0]).tolist()) == [1, 2]
    assert {*rng.choice(3, 1000, p=[0.5, 0.0, 0.5]).tolist()} == {0, 2}


def test_choice_without_a_size_is_an_element_or_a_part() -> None:
    rng, x = tw.random.default_rng(1), tw.arange(6).reshape(2, 3)
    assert rng.choice(x).tolist() in x.tolist()
    assert rng.choice(x, axis=1).tolist() in x.T.tolist()
    assert rng.choice(x, 4).shape == (4, 3)
    assert isinstance(rng.choice(5), int) and isinstance(rng.choice([1.5]), float)
