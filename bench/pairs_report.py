"""The page of reductions over pairs, of what `bench/pairs.py` has measured.

    python bench/pairs_report.py FOLDER [--csv FILE]

Reads FOLDER/pairs.json; writes FOLDER/pairs.md and two plots, and with --csv the table for `tilework
bench --join`. Neighbouring sizes must stay within 1.3 of each other for each pair; those that do not
are named. What has not been measured is a dash. "notes" of the record, lines about how it came to be,
stand below the table.
"""

import argparse
import json
import math
import statistics
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

from pairs import ROUNDS, WORKS
from pairs_work import OURS, PEERS, THREADS, Row, rows

NEIGHBOURS = 1.3
COLOURS = ["#3b6fb5", "#d9822b", "#3f9b57", "#a04fa0"]
NAMES = {"faiss": "FAISS", "sklearn": "scikit-learn", "torch": "PyTorch", "pykeops-tuned": "pykeops tuned"}
OTHERS = [peer for peer in PEERS if peer != OURS]

Record = dict[str, Any]
Points = dict[str, list[tuple[int, float]]]


def uneven(points: Points, counted: Callable[[str, int], float]) -> list[str]:
    """Neighbouring sizes whose times for a pair are apart: the larger one may take as much more as it has
    operations, and the rest is what is allowed either way."""
    found = []
    for work, line in points.items():
        for (a, first), (b, second) in pairwise(line):
            ratio, more = second / first, counted(work, b) / counted(work, a)
            if not 1 / NEIGHBOURS <= ratio <= NEIGHBOURS * more:
                found.append(f"{work}: {b} takes {ratio:.2f} of {a}")
    return found


def plot(points: Points, label: str) -> str:
    """Lines on logarithmic axes."""
    wide, high, left, top = 640, 360, 60, 20
    flat = [point for line in points.values() for point in line]
    (x0, x1), (y0, y1) = (
        [math.log10(f(v[k] for v in flat)) for f in (min, max)] for k in (0, 1)
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
    # Labels have room below some 16 of the sizes.
    marked = points[WORKS[0]]
    for x, _ in marked[:: -(-len(marked) // 16)]:
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


def wanted(row: Row, peer: str) -> str:
    """What the time of a peer over ours is to be."""
    nearest = {("argmin", 10): 1.0, ("argkmin", 10): 5.0, ("argkmin", 64): 2.0}
    if peer == "pykeops" and row.ratio:
        return f" (>= {row.ratio:g})"
    least = nearest.get((row.work, row.d)) if row.dtype == "float32" else None
    if least and peer in (("faiss",) if row.work == "argmin" else ("faiss", "sklearn", "torch")):
        return f" (>= {least:g})"
    return ""


def figure(value: float | None, form: str, aim: str = "") -> str:
    """A number with its aim, or a dash."""
    return "-" if value is None else format(value, form) + aim


def table(record: Record, work: list[Row]) -> list[str]:
    """The rows, one line each."""
    titles = ["work", "ms", "Gpairs/s", "share of the limit", "error", "error of a plain loop"]
    titles += [NAMES.get(peer, peer) for peer in OTHERS]
    lines = [f"| {' | '.join(titles)} |", "|---" * len(titles) + "|"]
    for row in work:
        best = {name: min(times) for name, times in record[row.name].items() if times}
        errors = record.get(f"errors of {row.name}", {})
        mine = best.get(OURS, math.nan)
        against = lambda name: best[name] / mine if name in best else None
        cells = [
            row.name, f"{mine * 1e3:.1f}", f"{row.m * row.n / mine * 1e-9:.2f}",
            figure(against("limit"), ".2f", f" (>= {row.share})" if row.share else ""),
            figure(errors.get("ours"), ".1e"), figure(errors.get("direct"), ".1e"),
            *(figure(against(peer), ".1f", wanted(row, peer)) for peer in OTHERS),
        ]  # fmt: skip
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def csv(record: Record, work: list[Row]) -> str:
    """The table in the columns of `tilework bench`, with the peer that its one target for a row is about."""
    lines = ["group,row,contestant,best_ms,median_ms,target"]
    for row in work:
        for name in (OURS, "limit", "pykeops"):
            times = record[row.name].get(name)
            if times:
                best, median = min(times) * 1e3, statistics.median(times) * 1e3
                lines.append(f"pairs,{row.name},{name},{best:.6f},{median:.6f},{row.ratio}")
    return "\n".join(lines) + "\n"


def memory(found: Record) -> list[str]:
    m, n = found["m"], found["n"]
    return [
        f"Gaussian sums, float32, M = {m}, N = {n}, D = 3: {found['megabytes']:.0f} MB at the peak beside the arrays",
        f"(<= 200), {found['seconds']:.1f} s. The matrix would have {m * n * 4 / 1e9:.0f} GB.",
    ]


def small_calls(found: Record) -> list[str]:
    return [
        "| call | time |", "|---|---|",
        f"| first of a new formula, 2000 x 2000 | {found['first']:.2f} ms (<= 10) |",
        f"| the second | {found['second']:.2f} ms |", f"| the best of later ones | {found['later']:.2f} ms |",
        f"| 10 x 10 through LazyTensor | {found['small']:.1f} us (<= 15) |",
        f"| the same, the formula made anew | {found['anew']:.1f} us |",
    ]  # fmt: skip


def growth(folder: Path, record: Record) -> list[str]:
    """The two plots, and the sizes that stand out."""
    counted = lambda work, d: Row(work, "float32", 1, 1, d, 0, 0).operations()
    operations: dict[str, Callable[[str, int], float]] = {"N": lambda *_: 1.0, "D": counted}
    lines, odd = [], []
    for letter, label in [("N", "N = M, D = 3"), ("D", "D")]:
        points = record.get(f"growth with {letter}")
        if points:
            name = f"pairs_{letter.lower()}.svg"
            (folder / name).write_text(plot(points, label))
            lines += [f"![time against {letter}]({name})", ""]
            odd += [f"{letter}: {line}" for line in uneven(points, operations[letter])]
    told = f"Neighbouring sizes whose times for a pair differ by more than {NEIGHBOURS}, beside the operations that a larger D adds:"
    return [*lines, told, "; ".join(odd) + "." if odd else "none."]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--csv", type=Path)
    options = parser.parse_args()
    folder: Path = options.folder
    record: Record = json.loads((folder / "pairs.json").read_text())
    # A quick run has rows of its own names.
    work = [row for quick in (False, True) for row in rows(quick) if row.name in record]
    page = [
        "# Reductions over pairs", "",
        f"Made by `make bench` (`bench/pairs.py`, `bench/pairs_report.py`): {THREADS} threads, the contestants of one go in turns, the",
        f"best of up to {ROUNDS} rounds. Columns of peers are their time over ours, with what is to be reached; a dash is work that they",
        "do not do. pykeops is as it installs itself, and tuned with `-march=native -ffast-math`; FAISS is the flat index,",
        "scikit-learn brute force, PyTorch `cdist` and `topk`. The limit counts the vector operations of the direct form at the rate of",
        "multiply-adds measured in the same rounds; the expanded form may exceed it. Errors are against float64, relative to",
        "the sum of absolute terms, beside those of a loop in float32 over the formula as it is written; of searches, the",
        "excess of the distances found. Times are in pairs.json; `cargo run --release --example pairs_speed` measures shares",
        "alone, of other shapes too.", "",
        *table(record, work), "",
        *([*record["notes"], ""] if "notes" in record else []),
        *(["## Memory", "", *memory(record["memory"]), ""] if "memory" in record else []),
        *(["## Small calls", "", *small_calls(record["small calls"]), ""] if "small calls" in record else []),
        "## Growth", "", *growth(folder, record),
    ]  # fmt: skip
    (folder / "pairs.md").write_text("\n".join(page) + "\n")
    if options.csv:
        options.csv.write_text(csv(record, work))


if __name__ == "__main__":
    main()
