"""Ctrl-C in the middle of long work: honoured soon, with every array as it was."""

import signal
import subprocess
import sys
import time

import pytest

# Prints a line when it is about to begin, then works for many seconds, unless it is stopped.
PROGRAM = """
import signal, sys, time
import tilework as tw

# Whoever starts the tests in the background has signals ignored, and children inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)

x = tw.arange(1 << 22, dtype=tw.float32)
one = tw.ones((), dtype=tw.float64)
slow = x.to_device("reference")
works = {
    "map": lambda: tw.sin(tw.broadcast_to(x, (500, 1 << 22))),
    "reduce": lambda: tw.sum(tw.broadcast_to(x, (5000, 1 << 22)), axis=0),
    # Two pieces for two threads, each of which takes seconds.
    "matmul": lambda: tw.broadcast_to(one, (4096, 1 << 18)) @ tw.broadcast_to(one, (1 << 18, 4096)),
    # Few rows: blocks of the long axis are shared out.
    "long matmul": lambda: tw.broadcast_to(one, (64, 1 << 26)) @ tw.broadcast_to(one, (1 << 26, 64)),
    "sort": lambda: tw.sort(tw.broadcast_to(tw.sin(x), (500, 1 << 22))),
    "sort of short lines": lambda: tw.sort(tw.broadcast_to(tw.sin(x[:64]), (1 << 25, 64))),
    "argsort": lambda: tw.argsort(tw.broadcast_to(tw.sin(x), (200, 1 << 22))),
    "argsort of one long line": lambda: tw.argsort(tw.sin(tw.arange(1 << 23, dtype=tw.float64)) + 0j),
    "reference map": lambda: tw.exp(tw.broadcast_to(slow, (100, 1 << 22))),
    "reference reduce": lambda: tw.sum(tw.broadcast_to(slow, (100, 1 << 22))),
    "reference matmul": lambda: slow.reshape((2048, 2048)) @ slow.reshape((2048, 2048)),
}
print("begins", flush=True)
start = time.monotonic()
try:
    works[sys.argv[1]]()
    print("was never stopped", flush=True)
except KeyboardInterrupt:
    print("stopped after", time.monotonic() - start, flush=True)
assert float(x[-1]) == (1 << 22) - 1
x += 1
assert float(x[0]) == 1.0
print("intact")
"""

LATEST = 1.0


@pytest.mark.parametrize(
    "work",
    [
        "map",
        "reduce",
        "matmul",
        "long matmul",
        "sort",
        "sort of short lines",
        "argsort",
        "argsort of one long line",
        "reference map",
        "reference reduce",
        "reference matmul",
    ],
)
def test_a_long_operation_is_given_up(work: str) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, work], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "begins\n"
    time.sleep(0.5)
    sent = time.monotonic()
    process.send_signal(signal.SIGINT)
    line = process.stdout.readline()
    late = time.monotonic() - sent
    rest = process.stdout.read()
    assert process.wait(timeout=60) == 0
    assert line.startswith("stopped after"), line
    assert rest == "intact\n"
    assert late < LATEST


# A handler that writes what the running operation reads: it must be told, not wait for ever. The
# operation takes many seconds, unless it is stopped.
HANDLER = """
import signal
import tilework as tw

one = tw.ones((), dtype=tw.float64)


def handler(*_):
    try:
        one[...] = 7.0
        print("written")
    except BufferError:
        print("refused")
    print(float(one.sum()))
    raise KeyboardInterrupt


signal.signal(signal.SIGALRM, handler)
signal.setitimer(signal.ITIMER_REAL, 0.3)
try:
    tw.broadcast_to(one, (4096, 1 << 18)) @ tw.broadcast_to(one, (1 << 18, 4096))
except KeyboardInterrupt:
    print("stopped")
one[...] = 7.0
print(float(one))
"""


def test_a_handler_cannot_write_what_is_being_read() -> None:
    done = subprocess.run(
        [sys.executable, "-c", HANDLER], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["refused", "1.0", "stopped", "7.0"]
