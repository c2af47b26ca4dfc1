"""Cost of small calls beside NumPy's, interleaved, best of several rounds.

Run: python crates/python/bench/call_cost.py [--csv [FILE]]. Prints one line for each call with both
times, their ratio, and the ratio that must not be exceeded; then how long a small operation takes
while another thread of Python runs our kernels. With --csv the times go to FILE, or to the output
in place of the table, in the columns of `tilework bench`, where a target is the peer's time over
ours. The exit status is 1 if a target is missed, and 0 with --csv.
"""

import argparse
import statistics
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

import tilework as tw

Call = Callable[[], object]

# Rounds are short, so that on a busy machine some of them are undisturbed.
ROUNDS, CALLS = 600, 500
# How long a small operation may take at the median beside another thread's kernels.
ALLOWED_NS = 5000.0
HEADER = "group,row,contestant,best_ms,median_ms,target"


@dataclass
class Row:
    """What one call costs, in nanoseconds, by contestant; our ratio to the last one is limited."""

    name: str
    limit: float
    best: dict[str, float]
    median: dict[str, float]

    @property
    def ratio(self) -> float:
        ours, theirs = self.best.values()
        return ours / theirs

    def line(self) -> str:
        times = "  ".join(f"{name} {ns:7.0f} ns" for name, ns in self.best.items())
        verdict = "ok" if self.ratio <= self.limit else "TOO SLOW"
        return f"{self.name:24} {times}  ratio {self.ratio:5.2f}  at most {self.limit}  {verdict}"

    def csv(self) -> list[str]:
        return [
            f"calls,{self.name},{name},{ns / 1e6:.6f},{self.median[name] / 1e6:.6f},{1 / self.limit:.3g}"
            for name, ns in self.best.items()
        ]


def timed(call: Call) -> float:
    """Nanoseconds for one call, over a loop of many."""
    repeat = range(CALLS)
    start = time.perf_counter_ns()
    for _ in repeat:
        call()
    return (time.perf_counter_ns() - start) / CALLS


def compare(name: str, limit: float, ours: Call, theirs: Call) -> Row:
    """Several rounds of each, taken in turns, less the cost of an empty call."""
    times: list[list[float]] = [[], [], []]
    for _ in range(ROUNDS):
        for k, call in enumerate((ours, theirs, lambda: None)):
            times[k].append(timed(call))
    best = [min(t) for t in times]
    median = [statistics.median(t) for t in times]
    names = ("tilework", "numpy")
    return Row(
        name,
        limit,
        {who: best[k] - best[2] for k, who in enumerate(names)},
        {who: median[k] - median[2] for k, who in enumerate(names)},
    )


def beside_kernels() -> Row:
    """Small operations, one by one, while another thread multiplies matrices."""
    x = tw.arange(8, dtype=tw.float32)
    square = tw.ones((512, 512), dtype=tw.float32)
    done = threading.Event()

    def work() -> None:
        while not done.is_set():
            square @ square

    other = threading.Thread(target=work)
    other.start()
    times = []
    for _ in range(20_000):
        start = time.perf_counter_ns()
        x + x
        times.append(float(time.perf_counter_ns() - start))
    done.set()
    other.join()
    median = statistics.median(times)
    # The median is what is promised, so it stands for the best, too.
    values = {"tilework": median, "allowed": ALLOWED_NS}
    return Row("x + x beside kernels", 1.0, values, values)


def rows() -> list[Row]:
    """All measurements."""
    x = tw.arange(8, dtype=tw.float32)
    n = np.arange(8, dtype=np.float32)
    x8 = tw.arange(64, dtype=tw.float32).reshape(8, 8)
    n8 = np.arange(64, dtype=np.float32).reshape(8, 8)
    return [
        compare("x + x", 0.5, lambda: x + x, lambda: n + n),
        compare("x + 1.5", 0.4, lambda: x + 1.5, lambda: n + 1.5),
        compare("x[1:5; ::2]", 0.9, lambda: x8[1:5, ::2], lambda: n8[1:5, ::2]),
        compare("x.sum()", 0.25, lambda: x.sum(), lambda: n.sum()),
        beside_kernels(),
    ]


def main() -> int:
    """Prints or writes the rows."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--csv", nargs="?", const="-", metavar="FILE")
    to = parser.parse_args().csv
    measured = rows()
    text = "\n".join([HEADER, *(line for row in measured for line in row.csv())]) + "\n"
    if to == "-":
        sys.stdout.write(text)
        return 0
    for row in measured:
        print(row.line())
    if to is not None:
        with open(to, "w") as file:
            file.write(text)
        return 0
    return int(any(row.ratio > row.limit for row in measured))


if __name__ == "__main__":
    sys.exit(main())
