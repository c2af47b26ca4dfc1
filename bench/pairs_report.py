"""The page of reductions over pairs: the table of `bench/pairs.py`, memory, small calls, growth with N and D.

    python bench/pairs_report.py FOLDER [--quick] [--alone]

Writes FOLDER/pairs.md and two plots. Neighbouring sizes must stay within 1.3 of each other for each
pair; those that do not are named. With --alone no peer is asked.
"""

import math
import os
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
import pairs

ROUNDS = 7
NEIGHBOURS = 1.3
WORKS = ["gauss", "logsumexp", "argmin", "argkmin"]
COLOURS = ["#3b6fb5", "#d9822b", "#3f9b57", "#a04fa0"]

Points = dict[str, list[tuple[int, float]]]


def best(call: Callable[[], object]) -> float:
    """The best of some calls, in seconds, after one that warms up."""
    call()
    times = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        call()
        times.append(time.perf_counter() - began)
    return min(times)


def growth(sizes: list[tuple[int, int]], along: int) -> Points:
    """Nanoseconds a pair for each (N, D), by work; `along` says which of the two varies."""
    found: Points = {work: [] for work in WORKS}
    for size in sizes:
        n, d = size
        for work in WORKS:
            seconds = best(pairs.ours(pairs.Row(work, "float32", n, n, d, 0, 0)))
            found[work].append((size[along], seconds / n / n * 1e9))
    return found


def uneven(points: Points, expected: Callable[[str, int], float]) -> list[str]:
    """Neighbouring sizes whose time, relative to what is expected, differs by more than allowed."""
    found = []
    for work, line in points.items():
        for (a, first), (b, second) in pairwise(line):
            ratio = (second / expected(work, b)) / (first / expected(work, a))
            if not 1 / NEIGHBOURS <= ratio <= NEIGHBOURS:
                found.append(f"{work}: {b} takes {ratio:.2f} of {a}")
    return found


def plot(points: Points, label: str) -> str:
    """Lines on logarithmic axes."""
    wide, high, left, top = 640, 360, 60, 20
    flat = [point for line in points.values() for point in line]
    (x0, x1), (y0, y1) = (
        (math.log10(f(v[k] for v in flat)) for f in (min, max)) for k in (0, 1)
    )
    y0, y1 = math.floor(y0 * 2) / 2, math.ceil(y1 * 2) / 2
    at_x = lambda x: left + (math.log10(x) - x0) / (x1 - x0 or 1) * (wide - left - 120)
    at_y = lambda y: top + (y1 - math.log10(y)) / (y1 - y0 or 1) * (high - top - 40)
    text = lambda x, y, words, how="": (
        f'<text x="{x:.0f}" y="{y:.0f}" {how}>{words}</text>'
    )
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{wide}" height="{high}" font-family="sans-serif" font-size="12">'
    ]
    parts.append(f'<rect width="{wide}" height="{high}" fill="white"/>')
    for step in range(round((y1 - y0) * 2) + 1):
        value = 10 ** (y0 + step / 2)
        parts.append(
            f'<path d="M{left} {at_y(value):.1f}H{wide - 120}" stroke="#ddd"/>'
        )
        parts.append(
            text(left - 6, at_y(value) + 4, f"{value:.2g}", 'text-anchor="end"')
        )
    for x, _ in points[WORKS[0]]:
        parts.append(text(at_x(x), high - 22, x, 'text-anchor="middle" font-size="9"'))
    parts.append(text(wide / 2 - 60, high - 4, label, 'text-anchor="middle"'))
    parts.append(text(4, 14, "ns a pair"))
    for (work, line), colour in zip(points.items(), COLOURS, strict=True):
        path = "L".join(f"{at_x(x):.1f} {at_y(y):.1f}" for x, y in line)
        parts.append(
            f'<path d="M{path}" fill="none" stroke="{colour}" stroke-width="2"/>'
        )
        parts.append(text(wide - 112, at_y(line[-1][1]) + 4, work, f'fill="{colour}"'))
    return "".join([*parts, "</svg>\n"])


def small_calls() -> list[str]:
    """The first call of a formula that nobody has used, the second, and one of 10 x 10."""
    import tilework as tw

    x = tw.asarray(
        np.random.default_rng(3).standard_normal((2000, 3)).astype("float32")
    )
    times = []
    for _ in range(2):
        began = time.perf_counter()
        (-tw.Vi(x).sqdist(tw.Vj(x)) / 2.718281).exp().sum(axis=1)
        times.append(time.perf_counter() - began)
    small, calls = x[:10], 2000
    kernel = (-tw.Vi(small).sqdist(tw.Vj(small))).exp()

    def known() -> None:
        for _ in range(calls):
            kernel.sum(axis=1)

    def anew() -> None:
        for _ in range(calls):
            (-tw.Vi(small).sqdist(tw.Vj(small))).exp().sum(axis=1)

    return [
        "| call | time |", "|---|---|",
        f"| first of a new formula, 2000 x 2000 | {times[0] * 1e3:.2f} ms (<= 10) |",
        f"| the second | {times[1] * 1e3:.2f} ms |",
        f"| 10 x 10 through LazyTensor | {best(known) / calls * 1e6:.1f} us (<= 15) |",
        f"| the same, the formula made anew | {best(anew) / calls * 1e6:.1f} us |",
    ]  # fmt: skip


# Prints the megabytes that a reduction needed at its peak beside its arrays, and its seconds.
MEMORY = """
import sys, time
import tilework as tw
m, n = int(sys.argv[1]), int(sys.argv[2])
rng = tw.random.default_rng(1)
x, y, b = (rng.standard_normal((k, d), dtype=tw.float32) for k, d in ((m, 3), (n, 3), (n, 1)))
with open("/proc/self/clear_refs", "w") as reset:
    reset.write("5")
peak = lambda: next(int(l.split()[1]) for l in open("/proc/self/status") if l.startswith("VmHWM")) / 1024
before, began = peak(), time.perf_counter()
a = ((-tw.Vi(x).sqdist(tw.Vj(y)) / 3).exp() * tw.Vj(b)).sum(axis=1)
print(peak() - before - a.nbytes / 2**20, time.perf_counter() - began)
"""


def memory(quick: bool) -> list[str]:
    """What a long reduction needs beside its arrays, in a process of its own."""
    m, n = (1000, 10_000_000) if quick else (10_000, 10_000_000)
    command = [sys.executable, "-c", MEMORY, str(m), str(n)]
    found = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    megabytes, seconds = map(float, found.split())
    return [
        f"Gaussian sums, float32, M = {m}, N = {n}, D = 3: {megabytes:.0f} MB at the peak beside the arrays",
        f"(<= 200), {seconds:.1f} s. The matrix would have {m * n * 4 / 1e9:.0f} GB.",
    ]


def wanted(row: pairs.Row, peer: str) -> str:
    """What the time of a peer over ours is to be."""
    nearest = {("argmin", 10): 1.0, ("argkmin", 10): 5.0, ("argkmin", 64): 2.0}
    if peer == "pykeops" and row.ratio:
        return f" (>= {row.ratio:g})"
    least = nearest.get((row.work, row.d)) if row.dtype == "float32" else None
    if least and peer in (("faiss",) if row.work == "argmin" else ("faiss", "sklearn", "torch")):
        return f" (>= {least:g})"
    return ""


def table(quick: bool, peers: list[str]) -> list[str]:
    """The rows of `pairs.py`."""
    contestants = [pairs.Contestant(peer, quick) for peer in peers]
    lines = [
        "| work | ms | Gpairs/s | share of the limit | error | "
        + " | ".join(peers[1:])
        + " |",
        "|---|---|---|---|---|" + "---|" * (len(peers) - 1),
    ]
    for number, row in enumerate(pairs.rows(quick)):
        pairs.measure(row, number, contestants)
        least = {peer: min(times) for peer, times in row.times.items()}
        mine = least[peers[0]]
        share = f" (>= {row.share})" if row.share else ""
        ratios = [
            f"{least[peer] / mine:.1f}{wanted(row, peer)}" if peer in least else "-"
            for peer in peers[1:]
        ]
        lines.append(
            f"| {row.name} | {mine * 1e3:.1f} | {row.m * row.n / mine * 1e-9:.2f} | "
            f"{least['limit'] / mine:.2f}{share} | {pairs.error(row):.1e} | {' | '.join(ratios)} |"
        )
        print(lines[-1], flush=True)
    return lines


def main() -> None:
    folder, quick = Path(sys.argv[1]), "--quick" in sys.argv
    os.environ["TILEWORK_NUM_THREADS"] = str(pairs.THREADS)
    peers = list(pairs.PEERS)[: 1 if "--alone" in sys.argv else None]
    largest = 8 if quick else 15
    of_n = growth([(round(500 * 1.4**k), 3) for k in range(largest)], 0)
    of_d = growth(
        [
            (2000 if quick else 6000, d)
            for d in [1, 2, 3, 4, 6, 8, 10, 12, 15, 16, 20, 28, 40, 64, 96]
        ],
        1,
    )
    counted = lambda work, d: pairs.Row(work, "float32", 1, 1, d, 0, 0).operations()
    odd = [f"N: {line}" for line in uneven(of_n, lambda *_: 1.0)] + [
        f"D: {line}" for line in uneven(of_d, counted)
    ]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "pairs_n.svg").write_text(plot(of_n, "N = M, D = 3"))
    (folder / "pairs_d.svg").write_text(plot(of_d, "D"))
    page = [
        "# Reductions over pairs", "",
        f"Written by `python bench/pairs_report.py {folder}`: {pairs.THREADS} threads, contestants in turns, the best of",
        f"{pairs.ROUNDS} rounds. Columns of peers are their time over ours; a dash is work that they do not do. The limit counts the vector operations of the",
        "direct form at the rate of multiply-adds measured in the same rounds; the expanded form may exceed it. Errors are",
        "against float64, relative to the sum of absolute terms; of searches, the excess of the distances found.", "",
        *table(quick, peers), "", "## Memory", "", *memory(quick), "", "## Small calls", "", *small_calls(), "",
        "## Growth", "",
        "![time against N](pairs_n.svg)", "", "![time against D](pairs_d.svg)", "",
        f"Neighbouring sizes whose time for a pair (against D: for a counted operation) differs by more than {NEIGHBOURS}:",
        "; ".join(odd) + "." if odd else "none.",
    ]  # fmt: skip
    (folder / "pairs.md").write_text("\n".join(page) + "\n")


if __name__ == "__main__":
    main()
