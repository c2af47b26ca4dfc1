"""Reductions over pairs against pykeops, FAISS, scikit-learn and PyTorch, and against the counted limit.

    python bench/pairs.py [--csv] [--quick]

Two threads. Peers run in processes of their own, asked for one call at a time, so that all take
turns in every round; pykeops runs twice, as it installs itself and with compiler flags for this
machine ("pykeops-tuned"), its compilation outside the timing. The limit counts vector operations for
each pair (distance 2 D, scale 1, exponential 9 or 15, accumulate 1, log-sum-exp 2 more; argmin 3 and
K-smallest 1 beside the distance; a gradient D + 1 more) at the rate of multiply-adds measured in the
same rounds. Errors are against float64 on some rows. With --csv, lines for `make bench`;
`bench/pairs_report.py` makes the page of the same table.
"""

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

THREADS = 2
ROUNDS = 5
# A peer that has spent so many seconds on a row is not asked again.
PATIENCE = 6.0


@dataclass
class Row:
    """Work, and what it is to reach."""

    work: str
    dtype: str
    m: int
    n: int
    d: int
    share: float
    ratio: float
    centre: float = 0.0
    scale: float | None = None
    accuracy: str = "declared"
    times: dict[str, list[float]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        extra = "" if self.scale is None else f" around {self.centre:g} s={self.scale}"
        strict = " strict" if self.accuracy == "strict" else ""
        return f"{self.work} {self.dtype} {self.m}x{self.n} D={self.d}{extra}{strict}"

    @property
    def s(self) -> float:
        return float(self.d) if self.scale is None else self.scale

    def operations(self) -> int:
        """Vector operations a pair, in the direct form."""
        exponential = 9 if self.dtype == "float32" else 15
        return 2 * self.d + {
            "gauss": exponential + 2, "logsumexp": exponential + 4, "argmin": 3, "argkmin": 1,
            "value_and_grad": exponential + 1 + self.d + 1,
        }[self.work]  # fmt: skip

    def arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        rng = np.random.default_rng(1)
        draw = lambda *shape: (
            rng.standard_normal(shape) * (0.1 if self.scale else 1) + self.centre
        ).astype(self.dtype)
        return (
            draw(self.m, self.d),
            draw(self.n, self.d),
            rng.standard_normal((self.n, 1)).astype(self.dtype),
        )


def rows(quick: bool) -> list[Row]:
    """The table."""
    size = {3: 20_000, 10: 20_000, 64: 10_000}
    targets = {
        ("gauss", "float32"): [(0.85, 50), (0.90, 35), (1.2, 35)],
        ("logsumexp", "float32"): [(0.75, 30), (0.85, 30), (1.15, 35)],
        ("argmin", "float32"): [(0.55, 6), (1.1, 20), (1.0, 20)],
        ("argkmin", "float32"): [(0.35, 8), (0.55, 10), (0.9, 22)],
        ("gauss", "float64"): [(0.80, 12), (0.85, 15), (1.1, 25)],
        ("argmin", "float64"): [(0.5, 3), (0.7, 7), (0.9, 10)],
    }
    found = []
    for (work, dtype), shares in targets.items():
        for (d, n), (share, ratio) in zip(size.items(), shares, strict=True):
            found.append(Row(work, dtype, n, n, d, share, ratio))
    found.append(Row("value_and_grad", "float32", 20_000, 20_000, 3, 0.75, 70))
    found.append(Row("gauss", "float32", 100, 1_000_000, 3, 0.75, 40))
    for accuracy in ("declared", "strict"):
        far = Row(
            "gauss",
            "float32",
            20_000,
            20_000,
            3,
            0.0,
            0.0,
            centre=1000.0,
            scale=0.01,
            accuracy=accuracy,
        )
        found.append(far)
    if quick:
        for row in found:
            row.m, row.n = max(row.m // 10, 100), max(row.n // 10, 100)
    return found


def ours(row: Row) -> Callable[[], Any]:
    import tilework as tw

    x, y, b = (tw.asarray(a) for a in row.arrays())
    xi, yj, bj = tw.Vi(x), tw.Vj(y), tw.Vj(b)
    d2 = xi.sqdist(yj)
    gauss = (-d2 / row.s).exp()
    return {
        "gauss": lambda: (gauss * bj).sum(axis=1, accuracy=row.accuracy), "logsumexp": lambda: (-d2 / row.s).logsumexp(axis=1),
        "argmin": lambda: d2.argmin(axis=1), "argkmin": lambda: d2.argKmin(10, axis=1),
        "value_and_grad": lambda: (gauss * bj).value_and_grad("sum", [xi], axis=1),
    }[row.work]  # fmt: skip


def pykeops(row: Row) -> Callable[[], Any]:
    import pykeops
    from pykeops.numpy import Genred

    pykeops.set_verbose(False)
    x, y, b = row.arrays()
    s = np.array([row.s], dtype=row.dtype)
    variables = [f"x = Vi({row.d})", f"y = Vj({row.d})"]
    gauss = "Exp(-SqDist(x,y)/s)*b"
    if row.work == "gauss":
        call = Genred(gauss, [*variables, "b = Vj(1)", "s = Pm(1)"], axis=1)
        return lambda: call(x, y, b, s, backend="CPU")
    if row.work == "value_and_grad":
        aliases = [*variables, "b = Vj(1)", "s = Pm(1)", "e = Vi(1)"]
        value = Genred(gauss, aliases[:4], axis=1)
        slope = Genred(f"Grad({gauss}, x, e)", aliases, axis=1)
        e = np.ones((row.m, 1), dtype=row.dtype)
        return lambda: (
            value(x, y, b, s, backend="CPU"),
            slope(x, y, b, s, e, backend="CPU"),
        )
    if row.work == "logsumexp":
        call = Genred("-SqDist(x,y)/s", [*variables, "s = Pm(1)"], "LogSumExp", axis=1)
        return lambda: call(x, y, s, backend="CPU")
    if row.work == "argmin":
        call = Genred("SqDist(x,y)", variables, "ArgMin", axis=1)
    else:
        call = Genred("SqDist(x,y)", variables, "ArgKMin", axis=1, opt_arg=10)
    return lambda: call(x, y, backend="CPU")


def faiss(row: Row) -> Callable[[], Any] | None:
    import faiss as library

    k = {"argmin": 1, "argkmin": 10}.get(row.work)
    if k is None or row.dtype != "float32":
        return None
    library.omp_set_num_threads(THREADS)
    x, y, _ = row.arrays()
    index = library.IndexFlatL2(row.d)
    index.add(y)
    return lambda: index.search(x, k)


def sklearn(row: Row) -> Callable[[], Any] | None:
    from sklearn.neighbors import NearestNeighbors

    k = {"argmin": 1, "argkmin": 10}.get(row.work)
    if k is None or row.dtype != "float32":
        return None
    x, y, _ = row.arrays()
    found = NearestNeighbors(n_neighbors=k, algorithm="brute", n_jobs=THREADS).fit(y)
    return lambda: found.kneighbors(x, return_distance=False)


def torch(row: Row) -> Callable[[], Any] | None:
    import torch as library

    k = {"argmin": 1, "argkmin": 10}.get(row.work)
    if k is None or row.dtype != "float32":
        return None
    library.set_num_threads(THREADS)
    x, y = (library.from_numpy(a) for a in row.arrays()[:2])
    # In blocks of rows, so that the distances fit into memory.
    return lambda: [
        library.cdist(part, y).topk(k, largest=False).indices for part in x.split(1000)
    ]


PEERS = {
    "tilework-python": ours, "pykeops": pykeops, "pykeops-tuned": pykeops, "faiss": faiss, "sklearn": sklearn,
    "torch": torch,
}  # fmt: skip


def worker(peer: str, quick: bool) -> None:
    """Answers each line, the number of a row, with the seconds of one call; null where it has none."""
    table, ready = rows(quick), {}
    out, sys.stdout = sys.stdout, sys.stderr
    for line in sys.stdin:
        number = int(line)
        if number not in ready:
            try:
                ready = {number: PEERS[peer](table[number])}
                if ready[number]:
                    ready[number]()
            except (
                Exception
            ) as error:  # whatever a peer fails with, it has no time here
                print(f"{peer}: {table[number].name}: {error}", file=sys.stderr)
                ready = {number: None}
        call, seconds = ready[number], None
        if call is not None:
            began = time.perf_counter()
            call()
            seconds = time.perf_counter() - began
        print(json.dumps(seconds), file=out, flush=True)


class Contestant:
    """A process that runs one library."""

    def __init__(self, peer: str, quick: bool) -> None:
        tuned = (
            {"CXXFLAGS": "-march=native -ffast-math"} if peer == "pykeops-tuned" else {}
        )
        folder = (
            {"KEOPS_CACHE_FOLDER": os.path.expanduser(f"~/.cache/{peer}")}
            if "keops" in peer
            else {}
        )
        threads = {
            "OMP_NUM_THREADS": str(THREADS),
            "TILEWORK_NUM_THREADS": str(THREADS),
        }
        command = [
            sys.executable,
            __file__,
            "--worker",
            peer,
            *(["--quick"] if quick else []),
        ]
        self.peer = peer
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env={**os.environ, **threads, **tuned, **folder},
        )  # fmt: skip

    def run(self, number: int) -> float | None:
        assert self.process.stdin and self.process.stdout
        try:
            self.process.stdin.write(f"{number}\n")
            self.process.stdin.flush()
            return json.loads(self.process.stdout.readline() or "null")
        except BrokenPipeError:
            return None


def error(row: Row) -> float:
    """The largest error of some rows, relative to the sum of absolute terms; wrong indices for indices."""
    x, y, b = (a.astype("float64") for a in row.arrays())
    some = np.linspace(0, row.m - 1, 20).astype(int)
    got = ours(row)()
    got = np.asarray(got[0] if isinstance(got, tuple) else got)[some]
    d2 = ((x[some][:, None] - y) ** 2).sum(-1)
    k = np.exp(-d2 / row.s)
    if row.work in ("gauss", "value_and_grad"):
        return float(
            (np.abs(got - k @ b)[:, 0] / (k @ np.abs(b))[:, 0].clip(1e-300)).max()
        )
    if row.work == "logsumexp":
        return float(np.abs(got[:, 0] - np.log(k.sum(1))).max())
    best = np.sort(d2, 1)[:, : got.shape[1]]
    return float((np.take_along_axis(d2, got, 1) / best - 1).max())


def multiply_adds(double: bool) -> float:
    """Multiply-adds a second on all threads, the best of some short runs."""
    import tilework._core as core

    best = 0.0
    for _ in range(50):
        began = time.perf_counter()
        operations = core._multiply_adds(double)
        best = max(best, operations / 2 / (time.perf_counter() - began))
    return best or float("nan")


def measure(row: Row, number: int, contestants: list[Contestant]) -> None:
    """Seconds of every contestant, in turns, beside what the multiply-adds alone would take."""
    for _ in range(ROUNDS):
        rate = multiply_adds(row.dtype == "float64")
        row.times.setdefault("limit", []).append(
            row.m * row.n * row.operations() / rate
        )
        for contestant in contestants:
            if sum(row.times.get(contestant.peer, [])) > PATIENCE:
                continue
            seconds = contestant.run(number)
            if seconds is not None:
                row.times.setdefault(contestant.peer, []).append(seconds)


def main() -> None:
    quick, csv = "--quick" in sys.argv, "--csv" in sys.argv
    if "--worker" in sys.argv:
        return worker(sys.argv[sys.argv.index("--worker") + 1], quick)
    os.environ["TILEWORK_NUM_THREADS"] = str(THREADS)
    contestants = [Contestant(peer, quick) for peer in PEERS]
    if csv:
        print("group,row,contestant,best_ms,median_ms,target")
    for number, row in enumerate(rows(quick)):
        measure(row, number, contestants)
        best = {peer: min(times) for peer, times in row.times.items()}
        if csv:
            for peer, times in row.times.items():
                median = statistics.median(times)
                print(
                    f"pairs,{row.name},{peer},{min(times) * 1e3:.6f},{median * 1e3:.6f},{row.ratio}",
                    flush=True,
                )
            continue
        mine = best["tilework-python"]
        ratios = "  ".join(
            f"{p} {t / mine:.1f}x"
            for p, t in best.items()
            if p not in ("limit", "tilework-python")
        )
        print(
            f"{row.name:<48} {mine * 1e3:9.2f} ms  share {best['limit'] / mine:.2f} (>= {row.share})  "
            f"error {error(row):.1e}  {ratios} (>= {row.ratio:g})",
            flush=True,
        )


if __name__ == "__main__":
    main()
