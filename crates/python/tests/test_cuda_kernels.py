"""Kernels of a card: float32 products beside cuBLAS's, more kernels than a process keeps, and threads meanwhile."""

import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilework as tw

card = pytest.mark.skipif(not tw.cuda.is_available(), reason=str(tw.cuda.why_not()))

# Each kind of kernel: large tiles, few tiles and long sums, short sums, small ones, batches.
SIZES = [(512, 256, 512), (512, 8192, 512), (64, 8192, 64), (90, 5000, 70), (2048, 64, 2048), (130, 300, 140)]


@card
@pytest.mark.parametrize("m, k, n", SIZES)
@pytest.mark.parametrize("draw", ["randn", "rand"])
def test_products_are_as_accurate_as_cublas(draw: str, m: int, k: int, n: int) -> None:
    """Mean and largest error, relative to |A| |B|, against float64: at most 1.5 times cuBLAS's."""
    torch: Any = pytest.importorskip("torch")
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.manual_seed(m + k + n)
    errors = []
    a, b = (getattr(torch, draw)(*shape, device="cuda") for shape in ((m, k), (k, n)))
    exact, size = a.double() @ b.double(), a.double().abs() @ b.double().abs()
    ours = torch.from_dlpack(tw.from_dlpack(a) @ tw.from_dlpack(b))
    for product in (ours, a @ b):
        error = (product.double() - exact).abs() / size
        errors.append((error.mean().item(), error.max().item()))
    (mean, largest), (their_mean, their_largest) = errors
    assert mean <= 1.5 * their_mean, errors
    assert largest <= 1.5 * their_largest, errors


UNARY = """abs sin cos tan tanh exp log sqrt square negative sign floor ceil trunc round isnan isfinite isinf sigmoid
    relu expm1 log1p asin acos atan sinh cosh asinh acosh atanh reciprocal rsqrt cbrt exp2 log2 log10 erf signbit
    logical_not bitwise_invert conj step""".split()
BINARY = """add subtract multiply divide maximum minimum pow remainder floor_divide atan2 hypot equal less
    greater_equal logical_and bitwise_and bitwise_xor copysign logaddexp fmax fmin""".split()
DTYPES = """bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 bfloat16 float32 float64 complex64
    complex128""".split()


def run(device: str, work: tuple[str, str, str]) -> Any:
    name, dtype, other = work
    x = tw.asarray(np.array([0.0, 1, 1, 0, 1, 1, 0, 1, 1]), device=device).astype(getattr(tw, dtype))
    if name == "astype":
        y = x.astype(getattr(tw, other))
    else:
        y = getattr(tw, name)(*([x] if name in UNARY else [x, x]))
    return np.asarray(y.astype(tw.float32) if y.dtype == tw.bfloat16 else y)


def expected() -> dict[tuple[str, str, str], Any]:
    """What the CPU says, of everything that there is for a dtype."""
    works = [(name, dtype, dtype) for name in UNARY + BINARY for dtype in DTYPES]
    works += [("astype", dtype, other) for dtype in DTYPES for other in DTYPES]
    results = {}
    for work in works:
        try:
            results[work] = run("cpu", work)
        except TypeError:
            continue
    return results


def check(part: int, parts: int, rounds: int) -> None:
    """Runs a part of it on the card, by several threads."""
    works = list(expected().items())[part::parts]
    with ThreadPoolExecutor(8) as pool:
        for _ in range(rounds):
            found = pool.map(lambda work: run("cuda", work[0]), works)
            for (work, values), got in zip(works, found, strict=True):
                assert got.dtype == values.dtype, work
                np.testing.assert_allclose(got, values, rtol=1e-2, atol=1e-2, err_msg=str(work))


@card
def test_more_kernels_than_are_kept(tmp_path: Path) -> None:
    """Modules are unloaded while threads launch others, and come back when they are asked for again."""
    # Two generations of 512 are kept.
    assert len(expected()) > 1050
    environment = os.environ | {"TILEWORK_CACHE_DIR": str(tmp_path)}

    def start(part: int, parts: int, rounds: int) -> "subprocess.Popen[bytes]":
        command = f"import test_cuda_kernels; test_cuda_kernels.check({part}, {parts}, {rounds})"
        return subprocess.Popen([sys.executable, "-c", command], cwd=Path(__file__).parent, env=environment)

    # Compiled by many processes, then used by one.
    compiled = [start(part, 12, 1) for part in range(12)]
    assert [process.wait() for process in compiled] == [0] * 12
    assert start(0, 1, 2).wait() == 0


def compile_beside_a_thread() -> None:
    """Small operations, each of which compiles a kernel first, while another thread counts."""
    x = tw.asarray(np.ones(8, np.float32), device="cuda")
    tw.cuda.synchronize()
    done, ticks = threading.Event(), []

    def count() -> None:
        while not done.wait(0.001):
            ticks.append(time.perf_counter())

    thread = threading.Thread(target=count)
    thread.start()
    begin = time.perf_counter()
    for name in ("sin", "cos", "tan", "exp", "log"):
        getattr(tw, name)(x)
    taken = time.perf_counter() - begin
    done.set()
    thread.join()
    assert len(ticks) > 100 * taken, f"{len(ticks)} ticks within {taken:.3f} s"


@card
def test_other_threads_run_while_kernels_are_compiled(tmp_path: Path) -> None:
    """With the GIL held there would be a tick for each kernel, which takes a tenth of a second."""
    environment = os.environ | {"TILEWORK_CACHE_DIR": str(tmp_path)}
    command = "import test_cuda_kernels; test_cuda_kernels.compile_beside_a_thread()"
    subprocess.run([sys.executable, "-c", command], cwd=Path(__file__).parent, env=environment, check=True)
