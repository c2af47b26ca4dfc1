"""What the first call of a formula costs on the first CUDA device, with nothing compiled before.

    python bench/first_calls.py [--rows PATTERN] [--rounds 1]

Prints a table in Markdown: seconds of the first call of 10 x 10, 1000 x 1000 and 1e5 x 1e5 pairs, and of the last
one again from the cache on disk. Every call is made in a process of its own, after an array was sent to the
device and before anything else was compiled; the folder of compiled kernels is empty, and the driver's own
cache is off. The best of several rounds counts.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time

GAUSS = "Exp(-SqDist(x,y) * s) * b"
BOTH = f"Concat({GAUSS}, Grad({GAUSS}, x, b))"
SQUARE = "SqDist(x,y)"
SIZES = (10, 1000, 100_000)

# Name, formula, reduction, components, columns of b, K.
ROWS: list[tuple[str, str, str, int, int, int | None]] = [
    *((f"gauss D={d}", GAUSS, "Sum", d, 1, None) for d in (3, 10, 64)),
    ("exp(-sqrt) D=3", "Exp(-Sqrt(SqDist(x,y))) * b", "Sum", 3, 1, None),
    *((f"argmin D={d}", SQUARE, "ArgMin", d, 1, None) for d in (3, 10, 64)),
    *((f"argKmin10 D={d}", SQUARE, "ArgKMin", d, 1, 10) for d in (3, 10, 64)),
    ("argKmin100 D=3", SQUARE, "ArgKMin", 3, 1, 100),
    *((f"logsumexp D={d}", "-SqDist(x,y) * s", "LogSumExp", d, 1, None) for d in (3, 10, 64)),
    *((f"gauss and gradient D={d}", BOTH, "Sum", d, 1, None) for d in (3, 10, 64)),
    ("gauss width 16", GAUSS, "Sum", 3, 16, None),
    ("gauss width 128", GAUSS, "Sum", 3, 128, None),
]


def first_call(name: str, size: int) -> float:
    """Seconds of the call, in this process."""
    import numpy as np

    import tilework as tw

    _, formula, reduction, dim, width, k = next(row for row in ROWS if row[0] == name)
    rng = np.random.default_rng(1)
    draw = lambda n, d: tw.asarray(rng.normal(size=(n, d)).astype("float32"), device="cuda")  # noqa: E731
    given = {"x": (draw(size, dim), f"Vi({dim})"), "y": (draw(size, dim), f"Vj({dim})")}
    given |= {"s": (tw.asarray(np.float32([1 / dim]), device="cuda"), "Pm(1)"), "b": (draw(size, width), f"Vj({width})")}
    used = {n: pair for n, pair in given.items() if re.search(rf"\b{n}\b", formula)}
    arrays = [array for array, _ in used.values()]
    tw.device("cuda").synchronize()
    begin = time.perf_counter()
    call = tw.Genred(formula, [f"{n} = {kind}" for n, (_, kind) in used.items()], reduction, axis=1, opt_arg=k)
    result = call(*arrays)
    tw.device("cuda").synchronize()
    del result
    return time.perf_counter() - begin


def in_a_process(name: str, size: int, folder: str) -> float:
    environment = os.environ | {"TILEWORK_CACHE_DIR": folder, "CUDA_CACHE_DISABLE": "1"}
    command = [sys.executable, __file__, "--first", name, str(size)]
    return float(subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", default=".", help="a pattern of names")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--first", nargs=2, metavar=("ROW", "SIZE"), help="one call, in this process")
    options = parser.parse_args()
    if options.first:
        print(first_call(options.first[0], int(options.first[1])))
        return
    print("| first call of | " + " | ".join(f"{n} x {n}, s" for n in SIZES) + " | from the disk, s |")
    print("|---" * (len(SIZES) + 2) + "|")
    for name, *_ in ROWS:
        if not re.search(options.rows, name):
            continue
        best = [float("inf")] * (len(SIZES) + 1)
        for _ in range(options.rounds):
            for place, size in enumerate(SIZES):
                with tempfile.TemporaryDirectory() as folder:
                    best[place] = min(best[place], in_a_process(name, size, folder))
                    if place == len(SIZES) - 1:
                        best[-1] = min(best[-1], in_a_process(name, size, folder))
        print(f"| {name} | " + " | ".join(f"{seconds:.2f}" for seconds in best[:-1]) + f" | {best[-1]:.3f} |", flush=True)


if __name__ == "__main__":
    main()
