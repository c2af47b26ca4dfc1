"""The work that `bench/pairs.py` measures, and how each library does it.

    python bench/pairs_work.py CONTESTANT [--quick]

As a program it is one contestant: each line that it reads, the number of a row, it answers with the
seconds of one call, or null where it has none. Compiling and loading are not counted.
"""

import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

THREADS = 2


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


OURS = "tilework-python"
PEERS = {
    OURS: ours, "pykeops": pykeops, "pykeops-tuned": pykeops, "faiss": faiss, "sklearn": sklearn,
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


if __name__ == "__main__":
    worker(sys.argv[1], "--quick" in sys.argv)
