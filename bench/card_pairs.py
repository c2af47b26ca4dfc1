"""The rows of docs/benchmarks/cuda-pairs.md: pykeops and tilework in turn, on the first CUDA device.

    CXX="g++ -Wl,--no-as-needed" python bench/card_pairs.py [--rows PATTERN] [--rounds 3] [--small]

Prints a table in Markdown. Needs PyTorch and pykeops, which compiles its kernels with the CUDA toolkit at
hand (its sources and pybind11 are enough, where nothing can be installed); the flag of the linker makes it
find them. A time is the best of several rounds of many calls, by the wall clock, and a round ends when the
device is done; the two libraries take turns in every round. pykeops runs its 1D scheme, and up to 1e4 rows
its 2D scheme too, and the better of the two counts; compiling is outside of all times. A sum with its
gradient is two calls there, as a program that needs both makes them. The error is ours: the largest of the
first 32 rows against float64, relative to the largest of them. With --small every size is divided by a
hundred and it runs on the CPU: for a look at the script.
"""

from __future__ import annotations

import argparse
import re
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from pykeops.torch import Genred, LazyTensor

import tilework as tw

GAUSS = "Exp(-SqDist(x,y) * s) * b"
SLOPE = f"Grad({GAUSS}, x, b)"
SQUARE = "SqDist(x,y)"


class Row(NamedTuple):
    """One kind of work: a formula for us, and one or two for pykeops."""

    name: str
    aim: float
    dim: int
    formula: str = GAUSS
    reduction: str = "Sum"
    k: int | None = None
    m: int = 100_000
    n: int = 100_000
    width: int = 1
    batches: int = 1
    dtype: str = "float32"
    theirs: tuple[str, ...] = ()
    accuracy: str = "declared"


def rows() -> list[Row]:
    both = {"formula": f"Concat({GAUSS}, {SLOPE})", "theirs": (GAUSS, SLOPE)}
    logarithm = {"formula": "-SqDist(x,y) * s", "reduction": "LogSumExp"}
    nearest = {"formula": SQUARE, "reduction": "ArgMin"}
    ten = {"formula": SQUARE, "reduction": "ArgKMin", "k": 10}
    million = 1_000_000
    return [
        Row("gauss D=3 N=1e4", 12, 3, m=10_000, n=10_000),
        Row("gauss D=3 N=1e5", 1.8, 3),
        Row("gauss D=3 N=1e6", 1.6, 3, m=million, n=million),
        Row("gauss D=3 N=1e6 strict", 1.3, 3, m=million, n=million, accuracy="strict"),
        Row("gauss D=10", 2.1, 10),
        Row("gauss D=64", 13, 64),
        Row("gauss D=784 N=1e4", 30, 784, m=10_000, n=10_000),
        Row("exp(-sqrt) D=3", 1.35, 3, formula="Exp(-Sqrt(SqDist(x,y))) * b"),
        *(Row(f"argmin D={d}", aim, d, **nearest) for d, aim in ((3, 1.8), (10, 2), (64, 10))),
        *(Row(f"argKmin10 D={d}", aim, d, **ten) for d, aim in ((3, 1.8), (10, 2), (64, 8))),
        Row("argKmin100 D=3", 20, 3, **{**ten, "k": 100}),
        *(Row(f"logsumexp D={d}", aim, d, **logarithm) for d, aim in ((3, 2), (10, 2), (64, 11))),
        *(Row(f"gauss and gradient D={d}", aim, d, **both) for d, aim in ((3, 3.5), (10, 4), (64, 10))),
        Row("gauss M=100 N=1e7", 14, 3, m=100, n=10 * million),
        Row("gauss width 16", 2, 3, width=16),
        Row("gauss width 128", 20, 3, width=128),
        Row("gauss float64", 1.8, 3, dtype="float64"),
        Row("argmin float64", 1.3, 3, **nearest, dtype="float64"),
        Row("gauss 64 x 2000 x 2000", 5, 3, batches=64, m=2000, n=2000),
        Row("gauss 10 x 10", 13.7, 3, m=10, n=10),
    ]


def aliases(row: Row) -> list[str]:
    return [f"x = Vi({row.dim})", f"y = Vj({row.dim})", "s = Pm(1)", f"b = Vj({row.width})"]


def data(row: Row, device: str) -> list[torch.Tensor]:
    """Standard normal points and right-hand sides, and one over the dimension."""
    dtype = getattr(torch, row.dtype)
    batches = () if row.batches == 1 else (row.batches,)
    draw = lambda n, d: torch.randn(*batches, n, d, device=device, dtype=dtype)  # noqa: E731
    scale = torch.full((1,), 1 / row.dim, device=device, dtype=dtype)
    return [draw(row.m, row.dim), draw(row.n, row.dim), scale, draw(row.n, row.width)]


def used(formula: str, row: Row, tensors: list[torch.Tensor]) -> tuple[list[str], list[torch.Tensor]]:
    """The variables that a formula has: pykeops takes no others."""
    pairs = list(zip(aliases(row), tensors, strict=True))
    there = [(alias, x) for alias, x in pairs if re.search(rf"\b{alias[0]}\b", formula)]
    return [alias for alias, _ in there], [x for _, x in there]


def of_keops(row: Row, tensors: list[torch.Tensor], device: str) -> list[Callable[[], Any]]:
    """Its ways to do a row, of which the better counts."""
    x, y, s, b = tensors
    if row.batches > 1:
        squares = ((LazyTensor(x[:, :, None]) - LazyTensor(y[:, None])) ** 2).sum(-1)
        kernel = (-squares * s).exp()
        return [lambda: kernel @ b]
    schemes = ["GPU_1D"] if device == "cuda" else ["CPU"]
    if device == "cuda" and row.m <= 10_000:
        schemes.append("GPU_2D")
    calls = []
    for formula in row.theirs or (row.formula,):
        names, own = used(formula, row, tensors)
        options = {} if row.k is None else {"opt_arg": row.k}
        calls.append((Genred(formula, names, row.reduction, axis=1, **options), own))

    def way(scheme: str) -> Callable[[], Any]:
        return lambda: [call(*own, backend=scheme) for call, own in calls]

    return [way(scheme) for scheme in schemes]


def of_ours(row: Row, tensors: list[torch.Tensor]) -> Callable[[], Any]:
    names, own = used(row.formula, row, tensors)
    call = tw.Genred(row.formula, names, row.reduction, axis=1, opt_arg=row.k)
    arrays = [tw.from_dlpack(x) for x in own]
    return lambda: call(*arrays, accuracy=row.accuracy)


def error(row: Row, tensors: list[torch.Tensor], ours: Callable[[], Any]) -> str:
    """Of the first rows, against float64."""
    if row.batches > 1 or row.reduction.startswith("Arg"):
        return ""
    names, own = used(row.formula, row, [tensors[0][:32], *tensors[1:]])
    doubles = (tw.from_dlpack(x.double().cpu()) for x in own)
    exact = tw.Genred(row.formula, names, row.reduction, axis=1)(*doubles)
    got = tw.astype(ours()[:32].to_device("cpu"), tw.float64)
    return f"{float(tw.max(tw.abs(got - exact)) / tw.max(tw.abs(exact))):.1e}"


def seconds(work: Callable[[], Any], calls: int, device: str) -> float:
    wait = torch.cuda.synchronize if device == "cuda" else lambda: None
    wait()
    begin = time.perf_counter()
    for _ in range(calls):
        work()
    wait()
    return (time.perf_counter() - begin) / calls


def measure(works: list[Callable[[], Any]], rounds: int, device: str) -> list[float]:
    """Seconds of one call of each, in turn."""
    for work in works:
        work()
    calls = [max(1, min(1000, int(0.02 / seconds(work, 1, device)))) for work in works]
    times = [[seconds(work, n, device) for work, n in zip(works, calls, strict=True)] for _ in range(rounds)]
    return [min(each) for each in zip(*times, strict=True)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", default=".", help="a pattern of names")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--small", action="store_true", help="on the CPU, a hundredth of every size")
    options = parser.parse_args()
    device = "cpu" if options.small else "cuda"
    if not options.small:
        properties = dict(tw.device("cuda").properties)
        print(f"{torch.cuda.get_device_name()}, driver {properties['driver']}, NVRTC {properties['nvrtc']}\n")
    print("| row | ms | pairs/s | pykeops ms | times pykeops | aim | error |\n|---|---|---|---|---|---|---|")
    for row in rows():
        if not re.search(options.rows, row.name):
            continue
        if options.small:
            row = row._replace(m=max(10, row.m // 100), n=max(10, row.n // 100))
        torch.manual_seed(1)
        tensors = data(row, device)
        ours = of_ours(row, tensors)
        own, *theirs = measure([ours, *of_keops(row, tensors, device)], options.rounds, device)
        pairs, best = row.batches * row.m * row.n, min(theirs)
        ratio = f"{best / own:.2f}" + ("" if best / own >= row.aim else ", missed")
        wrong = error(row, tensors, ours)
        print(
            f"| {row.name} | {own * 1e3:.3f} | {pairs / own:.2e} | {best * 1e3:.3f} | {ratio} | {row.aim} | {wrong} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
