"""Ctrl-C in the middle of long work: honoured soon, with every array as it was."""

import subprocess
import sys

import pytest

from stopping import needs_proc, stop

# Operations without an end that anybody would see, on operands and results that need little memory.
ENDLESS = """
import tilework as tw
tw.set_num_threads(2)

x = tw.arange(1 << 20, dtype=tw.float32)
one = tw.ones((), dtype=tw.float64)
slow = x.to_device("reference")
works = {
    "reduce": lambda: tw.sum(tw.broadcast_to(one, (1 << 44,))),
    # Two pieces for two threads.
    "matmul": lambda: tw.broadcast_to(one, (4096, 1 << 30)) @ tw.broadcast_to(one, (1 << 30, 4096)),
    # Few rows: blocks of the long axis are shared out.
    "long matmul": lambda: tw.broadcast_to(one, (64, 1 << 40)) @ tw.broadcast_to(one, (1 << 40, 64)),
    "reference reduce": lambda: tw.sum(tw.broadcast_to(slow, (1 << 14, 1 << 20)), axis=1),
    "reference matmul": lambda: tw.broadcast_to(slow, (4, 1 << 20)) @ tw.broadcast_to(slow[:, None], (1 << 20, 1 << 20)),
}
try:
    print("begins", flush=True)
    works[sys.argv[1]]()
except KeyboardInterrupt:
    print("stopped", time.process_time(), flush=True)
assert float(x[-1]) == (1 << 20) - 1
x += 1
assert float(x[0]) == 1.0
print("intact")
"""


@needs_proc
@pytest.mark.parametrize(
    "work", ["reduce", "matmul", "long matmul", "reference reduce", "reference matmul"]
)
def test_work_without_end_is_given_up(work: str) -> None:
    took, said = stop(ENDLESS, work)
    # Signals are looked for ten times a second; two threads go on meanwhile.
    assert took < 5 and said == ["intact"]


# Operations whose results are as large as their work, of some seconds; over and over.
REPEATED = """
import tilework as tw
tw.set_num_threads(2)

x = tw.sin(tw.arange(1 << 22, dtype=tw.float32))
z = tw.sin(tw.arange(1 << 23, dtype=tw.float64)) + 1j
# Few pairs, each of which is much work.
vectors = tw.tile(x[: 1 << 18], (48, 1))
pairs = tw.Vi(vectors).sqdist(tw.Vj(vectors))
works = {
    "map": lambda: z**z,
    "sort": lambda: tw.sort(tw.broadcast_to(x, (12, 1 << 22))),
    "sort of short lines": lambda: tw.sort(tw.broadcast_to(x[:64], (1 << 20, 64))),
    "argsort": lambda: tw.argsort(tw.broadcast_to(x, (6, 1 << 22))),
    "argsort of one long line": lambda: tw.argsort(z),
    "wide pairs": lambda: pairs.sum(axis=1),
    "reference map": lambda: tw.exp(tw.broadcast_to(x.to_device("reference"), (8, 1 << 22))),
}
work = works[sys.argv[1]]
start = time.process_time()
work()
whole = time.process_time() - start
try:
    print("begins", flush=True)
    while True:
        work()
except KeyboardInterrupt:
    print("stopped", time.process_time(), flush=True)
print(whole)
"""


@needs_proc
@pytest.mark.parametrize(
    "work",
    [
        "map",
        "sort",
        "sort of short lines",
        "argsort",
        "argsort of one long line",
        "wide pairs",
        "reference map",
    ],
)
def test_long_work_is_given_up_before_its_end(work: str) -> None:
    took, said = stop(REPEATED, work)
    (whole,) = map(float, said)
    # Two threads go on for a tenth of a second at most, which is less than half of all of these.
    assert took < max(whole / 2, 0.5)


# A handler that writes what the running operation reads: it must be told, not wait for ever. The
# operation has no end unless it is stopped; before it has begun, the handler may write.
HANDLER = """
import signal
import tilework as tw

one = tw.ones((), dtype=tw.float64)


def handler(*_):
    try:
        one[...] = 1.0
    except BufferError:
        print("refused", float(one.sum()))
        raise KeyboardInterrupt


signal.signal(signal.SIGALRM, handler)
signal.setitimer(signal.ITIMER_REAL, 0.2, 0.2)
try:
    tw.broadcast_to(one, (4096, 1 << 30)) @ tw.broadcast_to(one, (1 << 30, 4096))
except KeyboardInterrupt:
    print("stopped")
one[...] = 7.0
print(float(one))
"""


def test_a_handler_cannot_write_what_is_being_read() -> None:
    done = subprocess.run([sys.executable, "-c", HANDLER], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["refused 1.0", "stopped", "7.0"]
