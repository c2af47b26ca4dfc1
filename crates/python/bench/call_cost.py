"""Cost of small calls beside NumPy's, interleaved, best of several rounds.

Run: python crates/python/bench/call_cost.py. Prints one line for each call with both times and
their ratio, and the ratio that must not be exceeded.
"""

import sys
import time
from collections.abc import Callable

import numpy as np

import tilework as tw

# Rounds are short, so that on a busy machine some of them are undisturbed.
ROUNDS, CALLS = 600, 500


def timed(call: Callable[[], object]) -> float:
    """Nanoseconds for one call, over a loop of many."""
    repeat = range(CALLS)
    start = time.perf_counter_ns()
    for _ in repeat:
        call()
    return (time.perf_counter_ns() - start) / CALLS


def compare(ours: Callable[[], object], theirs: Callable[[], object]) -> tuple[float, float]:
    """The best of several rounds of each, taken in turns, less the cost of an empty call."""
    best = [float("inf")] * 3
    for _ in range(ROUNDS):
        for k, call in enumerate((ours, theirs, lambda: None)):
            best[k] = min(best[k], timed(call))
    return best[0] - best[2], best[1] - best[2]


def main() -> int:
    """Prints the table; 1 if a ratio is exceeded."""
    x = tw.arange(8, dtype=tw.float32)
    n = np.arange(8, dtype=np.float32)
    x8 = tw.arange(64, dtype=tw.float32).reshape(8, 8)
    n8 = np.arange(64, dtype=np.float32).reshape(8, 8)
    rows = [
        ("x + x", 0.5, lambda: x + x, lambda: n + n),
        ("x + 1.5", 0.4, lambda: x + 1.5, lambda: n + 1.5),
        ("x[1:5, ::2]", 0.9, lambda: x8[1:5, ::2], lambda: n8[1:5, ::2]),
        ("x.sum()", 0.25, lambda: x.sum(), lambda: n.sum()),
    ]
    worst = 0
    for name, limit, ours, theirs in rows:
        a, b = compare(ours, theirs)
        verdict = "ok" if a / b <= limit else "TOO SLOW"
        worst |= a / b > limit
        print(f"{name:12} {a:7.0f} ns  NumPy {b:7.0f} ns  ratio {a / b:5.2f}  at most {limit}  {verdict}")
    return int(worst)


if __name__ == "__main__":
    sys.exit(main())
