"""Python's own protocols: pickles, copies, numbers, containers, processes and threads."""

import copy
import multiprocessing
import os
import pickle
import subprocess
import sys
import threading
from unittest import mock

import pytest

import tilework as tw

NAMES = """bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 bfloat16 float32 float64
complex64 complex128""".split()


@pytest.mark.parametrize("name", NAMES)
def test_pickles_and_copies(device: tw.device, name: str) -> None:
    x = tw.reshape(tw.asarray([0, 1, 1, 0, 1, 1], dtype=name), (2, 3)).T
    again = [
        pickle.loads(pickle.dumps(x, protocol)) for protocol in range(pickle.HIGHEST_PROTOCOL + 1)
    ]
    for other in [*again, copy.copy(x), copy.deepcopy(x), x.copy()]:
        assert (other.dtype, other.shape, other.device) == (x.dtype, x.shape, x.device)
        assert other.tolist() == x.tolist() and not tw.shares_memory(other, x)
        other[0, 0] = 1
        assert not x[0, 0]
    memo = copy.deepcopy([x, x])
    assert memo[0] is memo[1], "deepcopy copies an object once"


def test_numbers_and_containers(device: tw.device) -> None:
    x = tw.asarray([[1, 2], [3, 4]])
    assert len(x) == 2 and [part.tolist() for part in x] == [[1, 2], [3, 4]]
    assert 3 in x and 9 not in x and [1, 2] in x
    a, (b, c) = x[0], x[1]
    assert a.shape == (2,) and (int(b), int(c)) == (3, 4)
    assert list(reversed(x))[0].tolist() == [3, 4]
    assert range(10)[tw.asarray(3)] == 3 and "abc"[tw.asarray(1)] == "b"
    assert (
        float(tw.asarray([2.5])) == 2.5
        and int(tw.asarray(-2.9)) == -2
        and complex(tw.asarray(2)) == 2
    )
    assert bool(tw.asarray([[5]])) and not tw.asarray(0)
    assert f"{tw.asarray(2.5):.2f} {tw.asarray(7):03d}" == "2.50 007"
    assert divmod(tw.asarray(7), 2)[1] == 1
    # No element equals None or a string; what has its own opinion is asked for it.
    for nothing in [None, "a"]:
        assert (x == nothing).tolist() == (nothing == x).tolist() == [[False, False]] * 2
        assert (x != nothing).tolist() == [[True, True]] * 2
    assert x == mock.ANY and not x != mock.ANY and (x == object()) is False
    with pytest.raises(TypeError):
        hash(x)
    with pytest.raises(TypeError):
        {x}
    with pytest.raises(TypeError):
        tw.asarray([1, 2]).__index__()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_forked_children_compute() -> None:
    x = tw.ones(2_000_000)
    assert float((x + x).sum()) == 4e6
    with multiprocessing.get_context("fork").Pool(2) as pool:
        totals = pool.map_async(total, [tw.full(300_000, k) for k in range(4)]).get(timeout=600)
    assert totals == [300_000.0 * k for k in range(4)]


# Forks while other threads compute and make formulas, whose tables they lock again and again.
FORKS = """
import os, signal, threading
import tilework as tw

x = tw.linspace(0, 1, 60).reshape((20, 3))
square = tw.ones((300, 300))
stop = False


def work(scale):
    k = 0
    while not stop:
        k += 1
        f = (tw.Vi(x).sqdist(tw.Vj(x)) * (scale + k * 1e-7)).exp()
        for _ in range(3):
            f = (f + k * 1e-3).sin()
        f.sum(axis=1)
        (square @ square + k).sum()


threads = [threading.Thread(target=work, args=(scale,)) for scale in (1.0, 2.0)]
for thread in threads:
    thread.start()
fine = 0
for _ in range(100):
    child = os.fork()
    if child == 0:
        # Long enough for any machine; a child that hangs does so for ever.
        signal.alarm(300)
        (tw.Vi(x).sqdist(tw.Vj(x)) * 3.25).cos().sum(axis=1)
        tw.set_printoptions(precision=3)
        ones = tw.ones((300, 300))
        os._exit(0 if float((ones @ ones).sum()) == 300.0**3 else 1)
    if os.waitpid(child, 0)[1] != 0:
        break
    fine += 1
stop = True
for thread in threads:
    thread.join()
print(fine)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_forked_children_use_formulas() -> None:
    program = [sys.executable, "-W", "ignore", "-c", FORKS]
    done = subprocess.run(program, capture_output=True, text=True)
    assert done.stdout == "100\n", done.stderr


def total(x: tw.Array) -> float:
    return float((x * 1.0).sum())


def test_threads_share_arrays() -> None:
    x, problems = tw.zeros(50_000), []
    done = threading.Event()

    def add() -> None:
        for _ in range(50):
            x.__iadd__(1)

    def look() -> None:
        while not done.is_set():
            # One operation sees the array before or after an addition, never in between.
            if len(set(tw.unique_values(x.copy()).tolist())) != 1:
                problems.append("torn")

    def views() -> None:
        while not done.is_set():
            float(x[::7].reshape(-1).sum())
            x.T.copy()

    writers = [threading.Thread(target=add) for _ in range(3)]
    readers = [threading.Thread(target=work) for work in (look, views)]
    for thread in [*readers, *writers]:
        thread.start()
    for thread in writers:
        thread.join()
    done.set()
    for thread in readers:
        thread.join()
    assert not problems and x.min() == x.max() == 150


def test_without_numpy() -> None:
    """The package imports and computes where NumPy cannot be imported."""
    program = """
import sys
sys.modules["numpy"] = None
import tilework as tw
x = tw.asarray([[1, 2], [3, 4]])
assert (x @ x).tolist() == [[7, 10], [15, 22]]
assert tw.asarray(memoryview(x)).tolist() == x.tolist() and repr(x).startswith("array(")
assert tw.from_dlpack(x).sum() == 10 and x.dtype == "int64" and x[x > 1].tolist() == [2, 3, 4]
assert tw.random.default_rng(1).random(3).shape == (3,)
try:
    tw.asarray(object())
except TypeError:
    print("fine")
"""
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert found.stdout == "fine\n", found.stderr
