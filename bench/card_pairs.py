"""The rows of docs/benchmarks/cuda-pairs.md: tilework, pykeops and dense PyTorch in turn, on the first CUDA device.

    CXX="g++ -Wl,--no-as-needed" python bench/card_pairs.py [--rows PATTERN] [--rounds 3] [--small]

Prints a table in Markdown. Needs PyTorch and pykeops, which compiles its kernels with the CUDA toolkit at
hand (its sources and pybind11 are enough, where nothing can be installed); the flag of the linker makes it
find them. A time is the best of several rounds of many calls, in turn, by events of the device; that of a
call of 10 x 10, which is all host, by the wall clock. pykeops runs its 1D scheme, and up to 1e5 rows its 2D
scheme too, which has no indices, and the better of the two counts; compiling is outside of all times. A sum with its gradient is
two calls there, as a program that needs both makes them. Dense PyTorch stores the matrix of all pairs, where
it fits. The error is ours: the largest of the first 32 rows against float64, relative to the largest of them.
With --small every size is divided by a hundred and it runs on the CPU: for a look at the script.
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

# What an H200 can do in a second: exponentials, instructions in all lanes, those on doubles, and pairs of 64
# components by three float16 products on tensor cores.
EXPONENTIALS, INSTRUCTIONS, DOUBLES, TENSORS = 4.2e12, 3.3e13, 1.7e13, 2.0e12

GAUSS = "Exp(-SqDist(x,y) * s) * b"
SLOPE = f"Grad({GAUSS}, x, b)"
SQUARE = "SqDist(x,y)"


class Row(NamedTuple):
    """One kind of work: a formula for us, one or two for pykeops, and the steps of dense PyTorch.

    The limit is what a pair needs most of, and how many pairs a second the card could do by it alone.
    """

    name: str
    aim: float
    dim: int
    dense: Callable[..., torch.Tensor]
    limit: tuple[str, float]
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
    lazy: bool = False  # As a LazyTensor that was made before, times b.
    most: float | None = None  # Seconds that a call may cost the host, whatever the others take.


def dense_gauss(x: torch.Tensor, y: torch.Tensor, s: torch.Tensor, b: torch.Tensor, k: int) -> torch.Tensor:
    return torch.cdist(x, y).square_().mul_(-s).exp_() @ b


def dense_laplace(x: torch.Tensor, y: torch.Tensor, s: torch.Tensor, b: torch.Tensor, k: int) -> torch.Tensor:
    return torch.cdist(x, y).neg_().exp_() @ b


def dense_nearest(x: torch.Tensor, y: torch.Tensor, s: torch.Tensor, b: torch.Tensor, k: int) -> torch.Tensor:
    distances = torch.cdist(x, y)
    return distances.argmin(1) if k == 1 else distances.topk(k, dim=1, largest=False).indices


def dense_logarithm(x: torch.Tensor, y: torch.Tensor, s: torch.Tensor, b: torch.Tensor, k: int) -> torch.Tensor:
    return torch.cdist(x, y).square_().mul_(-s).logsumexp(1)


def dense_slope(x: torch.Tensor, y: torch.Tensor, s: torch.Tensor, b: torch.Tensor, k: int) -> torch.Tensor:
    kernel = torch.cdist(x, y).square_().mul_(-s).exp_()
    value = kernel @ b
    weights = kernel.mul_(b.square().T)
    return torch.cat([value, -2 * s * (x * weights.sum(1, keepdim=True) - weights @ y)], 1)


def rows() -> list[Row]:
    exponentials = ("exponentials", EXPONENTIALS)
    instructions = lambda a_pair: ("instructions", INSTRUCTIONS / a_pair)  # noqa: E731
    doubles = lambda a_pair: ("doubles", DOUBLES / a_pair)  # noqa: E731
    tensors = lambda depth: ("tensor cores", TENSORS * 64 / depth)  # noqa: E731

    def row(name: str, aim: float, dim: int, limit: tuple[str, float], **more: Any) -> Row:
        return Row(name, aim, dim, limit=limit, **{"dense": dense_gauss, **more})

    both = {"formula": f"Concat({GAUSS}, {SLOPE})", "theirs": (GAUSS, SLOPE), "dense": dense_slope}
    logarithm = {"formula": "-SqDist(x,y) * s", "reduction": "LogSumExp", "dense": dense_logarithm}
    nearest = {"formula": SQUARE, "reduction": "ArgMin", "dense": dense_nearest}
    ten = {"formula": SQUARE, "reduction": "ArgKMin", "k": 10, "dense": dense_nearest}
    laplace = {"formula": "Exp(-Sqrt(SqDist(x,y))) * b", "dense": dense_laplace}
    million = 1_000_000
    return [
        row("gauss D=3 N=1e4", 12, 3, exponentials, m=10_000, n=10_000),
        row("gauss D=3 N=1e4, LazyTensor", 12, 3, exponentials, m=10_000, n=10_000, lazy=True),
        row("gauss D=3 N=1e5", 1.8, 3, exponentials),
        row("gauss D=3 N=1e6", 1.6, 3, exponentials, m=million, n=million),
        row("gauss D=3 N=1e6 strict", 1.3, 3, instructions(9), m=million, n=million, accuracy="strict"),
        row("gauss D=10", 2.1, 10, exponentials),
        row("gauss D=64", 13, 64, tensors(64)),
        row("gauss D=784 N=1e4", 30, 784, tensors(784), m=10_000, n=10_000),
        row("exp(-sqrt) D=3", 1.35, 3, ("special functions", EXPONENTIALS / 2), **laplace),
        row("argmin D=3", 1.8, 3, instructions(7), **nearest),
        row("argmin D=10", 2, 10, tensors(16), **nearest),
        row("argmin D=64", 10, 64, tensors(64), **nearest),
        row("argKmin10 D=3", 1.8, 3, instructions(7), **ten),
        row("argKmin10 D=10", 2, 10, tensors(16), **ten),
        row("argKmin10 D=64", 8, 64, tensors(64), **ten),
        row("argKmin100 D=3", 20, 3, instructions(7), **{**ten, "k": 100}),
        row("logsumexp D=3", 2, 3, instructions(8), **logarithm),
        row("logsumexp D=10", 2, 10, exponentials, **logarithm),
        row("logsumexp D=64", 11, 64, tensors(64), **logarithm),
        row("gauss and gradient D=3", 3.5, 3, instructions(9), **both),
        row("gauss and gradient D=10", 4, 10, exponentials, **both),
        row("gauss and gradient D=64", 10, 64, tensors(160), **both),
        row("gauss M=100 N=1e7", 14, 3, exponentials, m=100, n=10 * million),
        row("gauss width 16", 3, 3, exponentials, width=16),
        row("gauss width 128", 20, 3, tensors(200), width=128),
        row("gauss float64", 1.8, 3, doubles(13), dtype="float64"),
        row("argmin float64", 1.3, 3, doubles(6), **nearest, dtype="float64"),
        row("gauss 64 x 2000 x 2000", 5, 3, exponentials, batches=64, m=2000, n=2000),
        row("gauss 10 x 10", 0, 3, exponentials, m=10, n=10, most=30e-6),
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
    schemes = ["GPU_1D"] if device == "cuda" else ["CPU"]
    if device == "cuda" and row.m <= 100_000 and not row.reduction.startswith("Arg"):
        schemes.append("GPU_2D")
    if row.batches > 1 or row.lazy:
        squares = ((LazyTensor(x[..., :, None, :]) - LazyTensor(y[..., None, :, :])) ** 2).sum(-1)
        kernel = (-squares * s).exp()
        if row.batches > 1:
            return [lambda: kernel @ b]
        return [lambda scheme=scheme: kernel.__matmul__(b, backend=scheme) for scheme in schemes]
    calls = []
    for formula in row.theirs or (row.formula,):
        names, own = used(formula, row, tensors)
        options = {} if row.k is None else {"opt_arg": row.k}
        calls.append((Genred(formula, names, row.reduction, axis=1, **options), own))

    def way(scheme: str) -> Callable[[], Any]:
        return lambda: [call(*own, backend=scheme) for call, own in calls]

    return [way(scheme) for scheme in schemes]


def of_ours(row: Row, tensors: list[torch.Tensor]) -> Callable[[], Any]:
    if row.lazy:
        x, y, s, b = (tw.from_dlpack(tensor) for tensor in tensors)
        squares = ((tw.LazyTensor(x[:, None, :]) - tw.LazyTensor(y[None, :, :])) ** 2).sum(-1)
        kernel = (-squares * s).exp()
        return lambda: kernel @ b
    names, own = used(row.formula, row, tensors)
    call = tw.Genred(row.formula, names, row.reduction, axis=1, opt_arg=row.k)
    arrays = [tw.from_dlpack(x) for x in own]
    return lambda: call(*arrays, accuracy=row.accuracy)


def of_dense(row: Row, tensors: list[torch.Tensor]) -> list[Callable[[], Any]]:
    """The matrix of all pairs in memory: nothing, where it does not fit."""
    call = lambda: row.dense(*tensors, row.k or 1)  # noqa: E731
    if row.batches * row.m * row.n * tensors[0].itemsize > 1e11:
        return []
    try:
        call()
    except torch.OutOfMemoryError:
        return []
    return [call]


def error(row: Row, tensors: list[torch.Tensor], ours: Callable[[], Any]) -> str:
    """Of the first rows, of one batch, against float64; of indices, in the squares that they are of."""
    got = ours()
    if row.batches > 1:
        got, tensors = got[0], [x[0] if x.ndim == 3 else x for x in tensors]
    got = got[:32].to_device("cpu")
    names, own = used(row.formula, row, [tensors[0][:32], *tensors[1:]])
    doubles = [x.double().cpu() for x in own]
    if row.reduction.startswith("Arg"):
        places = torch.from_dlpack(got).reshape(len(doubles[0]), -1)
        squares = [((x - doubles[1]) ** 2).sum(-1) for x in doubles[0]]
        best = torch.stack([square.sort().values[: places.shape[1]] for square in squares])
        found = torch.stack([square[place] for square, place in zip(squares, places, strict=True)])
        return f"{float((found - best).abs().max() / best.max()):.1e}"
    exact = tw.Genred(row.formula, names, row.reduction, axis=1)(*(tw.from_dlpack(x) for x in doubles))
    return f"{float(tw.max(tw.abs(tw.astype(got, tw.float64) - exact)) / tw.max(tw.abs(exact))):.1e}"


def by_wall(work: Callable[[], Any], calls: int, device: str) -> float:
    """Seconds of a call, the host's share too."""
    wait = torch.cuda.synchronize if device == "cuda" else lambda: None
    wait()
    begin = time.perf_counter()
    for _ in range(calls):
        work()
    wait()
    return (time.perf_counter() - begin) / calls


def by_events(work: Callable[[], Any], calls: int, device: str) -> float:
    """Seconds of a call between two events of PyTorch's stream, which ours waits for, and which waits for ours."""
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    mark = torch.zeros(1, device=device)
    torch.cuda.synchronize()
    begin.record()
    tw.from_dlpack(mark)
    for _ in range(calls):
        last = work()
    if isinstance(last, tw.Array):
        torch.from_dlpack(last)
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) / 1e3 / calls


def measure(row: Row, works: list[Callable[[], Any]], rounds: int, device: str) -> list[float]:
    """Seconds of one call of each, in turn."""
    seconds = by_wall if device == "cpu" or row.most else by_events
    for work in works:
        work()
    calls = [max(1, min(1000, int(0.02 / by_wall(work, 1, device)))) for work in works]
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
    print("| row | ms | pairs/s | share of the limit | pykeops ms | times pykeops | aim | PyTorch ms | error |")
    print("|---" * 9 + "|")
    for row in rows():
        if not re.search(options.rows, row.name):
            continue
        if options.small:
            row = row._replace(m=max(10, row.m // 100), n=max(10, row.n // 100))
        torch.manual_seed(1)
        tensors = data(row, device)
        ours, keops, dense = of_ours(row, tensors), of_keops(row, tensors, device), of_dense(row, tensors)
        own, *others = measure(row, [ours, *keops, *dense], options.rounds, device)
        best, stored = min(others[: len(keops)]), others[len(keops) :]
        rate = row.batches * row.m * row.n / own
        if row.most:
            share, aim, met = "the call", f"{row.most * 1e3:.3g} ms", own <= row.most
        else:
            share, aim, met = f"{rate / row.limit[1]:.0%} of {row.limit[0]}", f"{row.aim}", best / own >= row.aim
        ratio = f"{best / own:.2f}" + ("" if met else ", missed")
        matrix = f"{stored[0] * 1e3:.3g}" if stored else "does not fit"
        print(
            f"| {row.name} | {own * 1e3:.3f} | {rate:.2e} | {share} | {best * 1e3:.3f} | {ratio} | {aim} | {matrix} "
            f"| {error(row, tensors, ours)} |",
            flush=True,
        )
        del ours, keops, dense
        if device == "cuda":
            torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
