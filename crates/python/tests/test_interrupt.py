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
works = {
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
assert float(x[-1]) == (1 << 22) - 1
x += 1
assert float(x[0]) == 1.0
print("intact")
"""

LATEST = 1.0


@pytest.mark.parametrize("work", ["map", "reduce"])
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
