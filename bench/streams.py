"""Arrays of the host whose pairs a card reduces: copies alone, work alone, and both together.

    python bench/streams.py [DEVICE [SHARE]]

Each line is the best of four rounds, in milliseconds by the wall clock: all arrays copied to the card; the same call
on arrays that are there; and the call on arrays of the host, in blocks that are copied while the card works, with the
result back in the host's memory. The last number is the largest difference of some rows. SHARE makes all sizes smaller.
"""

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import tilework as tw

SIZES = [
    (1_000, 80_000_000),
    (5_000, 80_000_000),
    (20_000, 80_000_000),
    (60_000_000, 2_000),
    (60_000_000, 10_000),
    (60_000_000, 30_000),
]


def milliseconds(work: Callable[[], Any], device: str) -> float:
    best = float("inf")
    for _ in range(4):
        begin = time.perf_counter()
        work()
        tw.device(device).synchronize()
        best = min(best, time.perf_counter() - begin)
    return best * 1e3


def main(device: str = "cuda:0", share: str = "1") -> None:
    rng = np.random.default_rng(0)
    names = ["x = Vi(3)", "y = Vj(3)", "s = Pm(1)", "b = Vj(1)"]
    gauss = tw.Genred("Exp(-SqDist(x,y) * s) * b", names, "Sum", axis=1)
    s = tw.asarray(np.full(1, 1 / 3, "f4"))
    print("| rows | j | MB | copies | work | streamed | difference |")
    print("|---|---|---|---|---|---|---|")
    for sizes in SIZES:
        m, n = (max(8, int(size * float(share))) for size in sizes)
        shapes = ((m, 3), (n, 3), (n, 1))
        x, y, b = (tw.asarray(rng.standard_normal(shape, dtype="f4")) for shape in shapes)
        here = (x, y, s, b)
        copies = milliseconds(lambda here=here: [array.to_device(device) for array in here], device)
        there = [array.to_device(device) for array in here]
        work = milliseconds(lambda there=there: gauss(*there), device)
        wanted = np.asarray(gauss(*there)[:64].to_device("cpu"))
        del there
        streamed = milliseconds(lambda here=here: gauss(*here, device=device), device)
        found = np.asarray(gauss(*here, device=device)[:64])
        difference = abs(found - wanted).max() / abs(wanted).max()
        size = sum(array.nbytes for array in here) / 1e6
        row = f"| {m:.0e} | {n:.0e} | {size:.0f} | {copies:.1f} | {work:.1f} | {streamed:.1f} | {difference:.1e} |"
        print(row, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
