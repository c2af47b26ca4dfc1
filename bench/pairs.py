"""Reductions over pairs against pykeops, FAISS, scikit-learn and PyTorch, and against the counted limit.

    python bench/pairs.py FOLDER [--quick] [--peers NAME,...] [--go SECONDS]

Measures the rows of `pairs_work.py`, errors, memory, small calls and growth into FOLDER/pairs.json, of
which `pairs_report.py` makes the page. With --go it measures what is not there yet, for about so many
seconds: run it until it says that all is there. With --peers it asks only these contestants.

Two threads. Peers run in processes of their own, asked for one call at a time, so that all take
turns in every round; pykeops runs twice, as it installs itself and with compiler flags for this
machine ("pykeops-tuned"), its compilation outside the timing. The limit counts vector operations for
each pair (distance 2 D, scale 1, exponential 9 or 15, accumulate 1, log-sum-exp 2 more; argmin 3 and
K-smallest 1 beside the distance; a gradient D + 1 more) at the rate of multiply-adds measured in the
same rounds. Errors are against float64 on some rows, beside those of a plain loop in float32.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from pairs_work import OURS, PEERS, THREADS, Row, ours, rows

ROUNDS = 9
# A peer that has spent so many seconds on a row is not asked again.
PATIENCE = 4.0
WORKS = ["gauss", "logsumexp", "argmin", "argkmin"]

Outcome = dict[str, Any]


class Contestant:
    """A process that runs one library, from its first row on."""

    def __init__(self, peer: str, quick: bool) -> None:
        self.peer, self.quick = peer, quick
        self.process: subprocess.Popen[str] | None = None

    def start(self) -> subprocess.Popen[str]:
        variables = {"OMP_NUM_THREADS": str(THREADS), "TILEWORK_NUM_THREADS": str(THREADS)}
        if "keops" in self.peer:
            variables["KEOPS_CACHE_FOLDER"] = os.path.expanduser(f"~/.cache/{self.peer}")
        if self.peer == "pykeops-tuned":
            variables["CXXFLAGS"] = "-march=native -ffast-math"
        work = Path(__file__).with_name("pairs_work.py")
        return subprocess.Popen(
            [sys.executable, work, self.peer, *(["--quick"] if self.quick else [])],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, **variables},
        )  # fmt: skip

    def run(self, number: int) -> float | None:
        """The seconds of one call of a row, if it can do it."""
        self.process = self.process or self.start()
        assert self.process.stdin and self.process.stdout
        try:
            self.process.stdin.write(f"{number}\n")
            self.process.stdin.flush()
            return json.loads(self.process.stdout.readline() or "null")
        except BrokenPipeError:
            return None


def multiply_adds(double: bool) -> float:
    """Multiply-adds a second on all threads, the best of some short runs."""
    import tilework._core as core

    best = 0.0
    for _ in range(50):
        began = time.perf_counter()
        operations = core._multiply_adds(double)
        best = max(best, operations / 2 / (time.perf_counter() - began))
    return best or float("nan")


def measure(row: Row, number: int, contestants: list[Contestant]) -> Outcome:
    """Seconds of the contestants, in turns, beside what the multiply-adds alone would take."""
    times: dict[str, list[float]] = {one.peer: [] for one in contestants}
    if OURS in times:
        times["limit"] = []
    for _ in range(ROUNDS):
        if OURS in times:
            rate = multiply_adds(row.dtype == "float64")
            times["limit"].append(row.m * row.n * row.operations() / rate)
        for contestant in contestants:
            so_far = times[contestant.peer]
            if sum(so_far) > PATIENCE:
                continue
            seconds = contestant.run(number)
            if seconds is not None:
                so_far.append(seconds)
    return times


def direct(row: Row, x: np.ndarray, y: np.ndarray, b: np.ndarray) -> tuple[Any, Any]:
    """What one point gives by the formula as it is written, in the dtype of the arrays and summed in
    order, and what errors of it are relative to: the sum of absolute terms. Of searches, all squared
    distances."""
    difference = x - y
    d2 = (difference * difference).sum(1)
    if row.work in ("argmin", "argkmin"):
        return d2, 1.0
    k = np.exp(-d2 / y.dtype.type(row.s))
    if row.work == "logsumexp":
        return np.log(np.cumsum(k)[-1]), 1.0
    terms = k[:, None] * b
    if row.work == "value_and_grad":
        terms = np.hstack([terms, terms * difference * y.dtype.type(-2 / row.s)])
    return np.cumsum(terms, axis=0)[-1], np.abs(terms).sum(0).clip(1e-300)


def errors(row: Row) -> Outcome:
    """The largest error of some results, and where they are in float32 that of a plain loop. Of
    searches, the excess of the distances found."""
    value, *slopes = ours(row)() if row.work == "value_and_grad" else (ours(row)(),)
    # Value and gradient side by side, as `direct` gives them.
    columns = [value, *(slopes[0] if slopes else [])]
    got = np.concatenate([np.asarray(column) for column in columns], axis=1)
    found: Outcome = {"ours": 0.0}
    x, y, b = row.arrays()
    for i in np.linspace(0, row.m - 1, 20).astype(int):
        wanted, scale = direct(row, *(a.astype("float64") for a in (x[i], y, b)))
        if row.work in ("argmin", "argkmin"):
            excess = wanted[got[i]] / np.sort(wanted)[: got.shape[1]] - 1
            found["ours"] = max(found["ours"], float(excess.max()))
            continue
        error = lambda result: float((np.abs(result - wanted) / scale).max())
        found["ours"] = max(found["ours"], error(got[i]))
        if row.dtype == "float32":
            found["direct"] = max(found.get("direct", 0.0), error(direct(row, x[i], y, b)[0]))
    return found


def growth(sizes: list[tuple[int, int]], along: int) -> Outcome:
    """The size and the nanoseconds a pair for each (N, D), by work; `along` says which of the two varies.

    Sizes take turns in every round, so that a slow moment of the machine is none of one size.
    """
    calls = [(size, work, ours(Row(work, "float32", size[0], size[0], size[1], 0, 0))) for size in sizes for work in WORKS]  # fmt: skip
    best = {(size, work): float("inf") for size, work, _ in calls}
    for turn in range(ROUNDS + 1):
        for size, work, call in calls:
            # The first turn warms up; small sizes are repeated, so that the clock is exact, after one call
            # alone: what other sizes have pushed out of the caches costs as much as two small calls.
            repeat = max(1, int(4e6 / size[0] ** 2))
            call()
            began = time.perf_counter()
            for _ in range(repeat):
                call()
            seconds = (time.perf_counter() - began) / repeat
            if turn:
                best[size, work] = min(best[size, work], seconds)
    nanoseconds = lambda size, work: best[size, work] / size[0] ** 2 * 1e9
    return {work: [(size[along], nanoseconds(size, work)) for size in sizes] for work in WORKS}


def small_calls(quick: bool) -> Outcome:
    """Milliseconds of the first call of a formula that nobody has used, of the second and the best
    later one; microseconds of one of 10 x 10, and of the same with the formula made anew."""
    import tilework as tw

    draw = np.random.default_rng(3).standard_normal
    x = tw.asarray(draw((2000, 3)).astype("float32"))
    times = []
    for _ in range(20):
        began = time.perf_counter()
        (-tw.Vi(x).sqdist(tw.Vj(x)) / 2.718281).exp().sum(axis=1)
        times.append((time.perf_counter() - began) * 1e3)
    small, calls = x[:10], 200 if quick else 2000
    kernel = (-tw.Vi(small).sqdist(tw.Vj(small))).exp()

    def cost(call: Callable[[], object]) -> float:
        rounds = []
        for _ in range(20):
            began = time.perf_counter()
            for _ in range(calls):
                call()
            rounds.append((time.perf_counter() - began) / calls * 1e6)
        return min(rounds)

    return {
        "first": times[0], "second": times[1], "later": min(times[2:]),
        "small": cost(lambda: kernel.sum(axis=1)),
        "anew": cost(lambda: (-tw.Vi(small).sqdist(tw.Vj(small))).exp().sum(axis=1)),
    }  # fmt: skip


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


def memory(quick: bool) -> Outcome:
    """What a long reduction needs beside its arrays, in a process of its own."""
    m, n = (1000, 10_000_000) if quick else (10_000, 10_000_000)
    command = [sys.executable, "-c", MEMORY, str(m), str(n)]
    found = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    megabytes, seconds = map(float, found.split())
    return {"m": m, "n": n, "megabytes": megabytes, "seconds": seconds}


Job = tuple[str, list[Contestant], Callable[[list[Contestant]], Outcome]]


def jobs(quick: bool, peers: list[str]) -> Iterator[Job]:
    """What there is to measure: a name, who takes part, and how."""
    contestants = [Contestant(peer, quick) for peer in peers]
    for number, row in enumerate(rows(quick)):
        yield row.name, contestants, lambda asked, row=row, number=number: measure(row, number, asked)
    if OURS not in peers:
        return
    for row in rows(quick):
        yield f"errors of {row.name}", [], lambda _, row=row: errors(row)
    yield "small calls", [], lambda _: small_calls(quick)
    yield "memory", [], lambda _: memory(quick)
    by_n = [(round(500 * 1.2**k), 3) for k in range(15 if quick else 27)]
    yield "growth with N", [], lambda _: growth(by_n, 0)
    wide = [1, 2, 3, 4, 6, 8, 10, 12, 15, 16, 20, 28, 40, 64, 96]
    by_d = [(2000 if quick else 6000, d) for d in wide]
    yield "growth with D", [], lambda _: growth(by_d, 1)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--quick", action="store_true", help="a tenth of the points")
    parser.add_argument("--peers", type=lambda text: text.split(","))
    parser.add_argument("--go", type=float, metavar="SECONDS")
    options = parser.parse_args()
    os.environ["TILEWORK_NUM_THREADS"] = str(THREADS)
    file, began = options.folder / "pairs.json", time.perf_counter()
    # All of it, without a choice, begins anew.
    kept = file.exists() and (options.go is not None or options.peers is not None)
    record: dict[str, Outcome] = json.loads(file.read_text()) if kept else {}
    for name, contestants, job in jobs(options.quick, options.peers or list(PEERS)):
        held = record.get(name, {})
        if options.go is not None:
            contestants = [one for one in contestants if one.peer not in held]
            if held and not contestants:
                continue
            if time.perf_counter() - began > options.go:
                return print("there is more to measure: run it again")
        record[name] = {**held, **job(contestants)}
        options.folder.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(record, indent=1) + "\n")
        print(name, flush=True)
    print("all is there")


if __name__ == "__main__":
    main()
