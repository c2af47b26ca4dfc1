"""Every row of docs/benchmarks/cuda.md: PyTorch and tilework in turn, on the first CUDA device.

    python bench/card.py [--rows PATTERN] [--rounds 5]

Prints a table in Markdown. A time is the best of several rounds of many calls, and a round ends when
the device is done; the ratio is PyTorch's time over ours, and products of PyTorch are float32's own.
The target of each row stands beside it.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch

import tilework as tw

torch.backends.cuda.matmul.allow_tf32 = False


class Row(NamedTuple):
    """One kind of work, by both libraries."""

    name: str
    target: float
    theirs: Callable[[], Any]
    ours: Callable[[], Any]
    operations: float = 0
    bytes: float = 0


def of_torch(*arrays: torch.Tensor) -> list[tw.Array]:
    return [tw.from_dlpack(array) for array in arrays]


def products() -> Iterator[Row]:
    float32 = {1024: 1.1, 2048: 1.4, 4096: 1.8, 8192: 1.8}
    square = [("float32", n, n, n, target) for n, target in float32.items()]
    others = [(1000, 1003, 999, 1.2), (64, 65536, 64, 2), (8192, 64, 8192, 2), (1, 8192, 8192, 1.03)]
    narrow = [("bfloat16", 4096, 4096, 4096, 0.8), ("float16", 4096, 4096, 4096, 0.8)]
    wide = [("float64", 4096, 4096, 4096, 0.8)]
    for dtype, m, k, n, target in [*square, *(("float32", *sizes) for sizes in others), *narrow, *wide]:
        kind = getattr(torch, dtype)
        a = torch.randn(m, k, device="cuda", dtype=torch.float32).to(kind)
        b = torch.randn(k, n, device="cuda", dtype=torch.float32).to(kind)
        x, y = of_torch(a, b)
        size = str(m) if m == k == n else f"{m} x {k} x {n}"
        yield Row(f"{dtype} product {size}", target, lambda: a @ b, lambda: x @ y, 2.0 * m * k * n)


def passes() -> Iterator[Row]:
    flat = torch.randn(1 << 28, device="cuda")
    square = flat.view(16384, 16384)
    x, q = of_torch(flat, square)
    one = 4.0 * flat.numel()
    row, column, ours_row, ours_column = square[:1], square[:, :1], q[:1], q[:, :1]
    yield Row("copy 2^28", 0.98, flat.clone, x.copy, bytes=2 * one)
    yield Row("add 2^28", 0.98, lambda: flat + flat, lambda: x + x, bytes=2 * one)
    yield Row("exp 2^28", 0.98, flat.exp, lambda: tw.exp(x), bytes=2 * one)
    yield Row("tanh 2^28", 0.98, flat.tanh, lambda: tw.tanh(x), bytes=2 * one)
    yield Row("x + row", 1.4, lambda: square + row, lambda: q + ours_row, bytes=2 * one)
    yield Row("x + column", 1.4, lambda: square + column, lambda: q + ours_column, bytes=2 * one)
    yield Row("x + x.T", 2, lambda: square + square.T, lambda: q + q.T, bytes=3 * one)
    transposed, ours = square.T, q.T
    yield Row("transposing copy 16384^2", 2.5, transposed.contiguous, ours.copy, bytes=2 * one)
    images = flat[: 64 * 256 * 56 * 56].view(64, 256, 56, 56)
    (ours_images,) = of_torch(images)
    turned, ours_turned = images.permute(0, 2, 3, 1), tw.permute_dims(ours_images, (0, 2, 3, 1))
    yield Row(
        "NCHW to NHWC, 64 x 256 x 56 x 56", 1.8, turned.contiguous, ours_turned.copy,
        bytes=8.0 * images.numel(),
    )  # fmt: skip
    for name, axis in (("all", None), ("rows", 1), ("columns", 0)):
        over = {} if axis is None else {"dim": axis}
        yield Row(f"sum, {name}", 0.98, lambda: square.sum(**over), lambda: tw.sum(q, axis=axis), bytes=one)
        yield Row(f"max, {name}", 0.98, lambda: square.amax(**over), lambda: tw.max(q, axis=axis), bytes=one)
        yield Row(f"argmax, {name}", 1.2, lambda: square.argmax(**over), lambda: tw.argmax(q, axis=axis), bytes=one)
        yield Row(f"variance, {name}", 1.2, lambda: square.var(**over), lambda: tw.var(q, axis=axis, correction=1), bytes=one)
    yield Row("cumulative sum 2^28", 1.5, lambda: flat.cumsum(0), lambda: tw.cumulative_sum(x), bytes=2 * one)
    for power in (20, 24, 26):
        part, ours_part = flat[: 1 << power], x[: 1 << power]
        yield Row(f"sort 2^{power}", 0.5, lambda: part.sort(), lambda: tw.sort(ours_part))


def transfers() -> Iterator[Row]:
    """Memory of the host that nobody pinned; both libraries take new memory for what comes back."""
    for power in (20, 24, 28):
        host = torch.randn((1 << power) // 4)
        card = host.cuda()
        there = tw.from_dlpack(host)
        (back,) = of_torch(card)
        size = f"{(1 << power) >> 20} MiB"
        one = float(1 << power)
        yield Row(f"to the card, {size}", 1, host.cuda, lambda: there.to_device("cuda"), bytes=one)
        yield Row(f"from the card, {size}", 1, card.cpu, lambda: back.to_device("cpu"), bytes=one)


def calls() -> Iterator[Row]:
    t = torch.ones(8, device="cuda")
    (x,) = of_torch(t)

    def chain(y: Any) -> Any:
        for _ in range(10):
            y = y * 0.5 + 1.0
        return y

    yield Row("a chain of 20 small operations", 2, lambda: chain(t), lambda: chain(x))


def seconds(work: Callable[[], Any], calls: int) -> float:
    torch.cuda.synchronize()
    begin = time.perf_counter()
    for _ in range(calls):
        work()
    torch.cuda.synchronize()
    return (time.perf_counter() - begin) / calls


def measure(row: Row, rounds: int) -> tuple[float, float]:
    """Seconds of one call of each library, in turn."""
    both = (row.theirs, row.ours)
    for work in both:
        work()
    calls = [max(1, min(1000, int(0.02 / seconds(work, 1)))) for work in both]
    times = [[seconds(work, n) for work, n in zip(both, calls, strict=True)] for _ in range(rounds)]
    return min(theirs for theirs, _ in times), min(ours for _, ours in times)


FIRST = """
import time
begin = time.perf_counter()
import tilework as tw
imported = time.perf_counter()
tw.device("cuda").properties
opened = time.perf_counter()
x = tw.ones((1000, 1000), dtype="float32", device="cuda")
float((tw.exp(x) @ x + x).sum())
print(opened - imported, time.perf_counter() - opened + imported - begin)
"""


def first_results() -> Iterator[str]:
    """From an import to the first result, with no compiled kernel kept and with all of them."""
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {"TILEWORK_CACHE_DIR": folder}
        for name, target in (("cold", 1.5), ("warm", 0.3)):
            runs = [
                subprocess.run(
                    [sys.executable, "-c", FIRST], env=environment, capture_output=True, check=True, text=True
                ).stdout.split()
                for _ in range(1 if name == "cold" else 3)
            ]  # fmt: skip
            opened, used = min(((float(a), float(b)) for a, b in runs), key=lambda pair: pair[1])
            missed = "" if used <= target else ", missed"
            yield f"| first result, {name} cache | | {used:.2f} s, context {opened:.2f} s | | {target} s{missed} |"


def shown(seconds: float) -> str:
    return f"{seconds * 1e3:.2f} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.1f} us"


def per_second(rate: float) -> str:
    return f"{rate / 1e12:.2f} TB/s" if rate >= 1e11 else f"{rate / 1e9:.1f} GB/s"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", default=".", help="a pattern of names")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    properties = dict(tw.device("cuda").properties)
    print(f"{torch.cuda.get_device_name()}, driver {properties['driver']}, NVRTC {properties['nvrtc']},")
    print(f"PyTorch {torch.__version__}\n")
    print("| work | PyTorch | tilework | ratio | target |\n|---|---|---|---|---|")
    if re.search(options.rows, "first result"):
        print("\n".join(first_results()), flush=True)
    for rows in (calls, transfers, products, passes):
        for row in rows():
            if not re.search(options.rows, row.name):
                continue
            theirs, ours = measure(row, options.rounds)
            rate = f", {row.operations / ours / 1e12:.1f} TFLOP/s" if row.operations else ""
            rate += f", {per_second(row.bytes / ours)}" if row.bytes else ""
            missed = "" if theirs / ours >= row.target else ", missed"
            print(
                f"| {row.name} | {shown(theirs)} | {shown(ours)}{rate} | {theirs / ours:.2f} | {row.target}{missed} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
