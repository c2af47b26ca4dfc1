"""Ctrl-C in the middle of long work: honoured soon, with every array as it was."""

import signal
import subprocess
import sys
import time

import pytest

# Prints a line when it is about to begin, then works for many seconds, unless it is stopped.
PROGRAM = """
import sys, time
import tilework as tw

x = tw.arange(1 << 22, dtype=tw.float32)
square = x[: 1 << 20].reshape(1024, 1024) / (1 << 20)
tall = tw.zeros((40_000, 1024), dtype=tw.float32)
wide = tw.ones((1024, 40_000), dtype=tw.float32)
works = {
    "matmul": lambda: tall @ wide,
    "sort": lambda: tw.sort(tw.broadcast_to(x, (200, 1 << 22)), axis=1, descending=True),
    "map": lambda: tw.sin(tw.broadcast_to(x, (500, 1 << 22))),
    "reduce": lambda: tw.sum(tw.broadcast_to(x, (5000, 1 << 22)), axis=0),
}
print("begins", flush=True)
start = time.monotonic()
try:
    works[sys.argv[1]]()
    print("was never stopped")
except KeyboardInterrupt:
    print("stopped after", time.monotonic() - start)
assert float(x[-1]) == (1 << 22) - 1 and float(tw.sum(tall)) == 0.0
x += 1
assert float(x[0]) == 1.0
print("intact")
"""

LATEST = 1.0


@pytest.mark.parametrize("work", ["matmul", "sort", "map", "reduce"])
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
    rest, _ = process.communicate(timeout=60)
    assert line.startswith("stopped after"), line
    assert rest == "intact\n"
    assert process.returncode == 0
    assert late < LATEST
