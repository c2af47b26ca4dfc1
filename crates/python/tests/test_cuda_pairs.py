"""Formulas on a card: what they take beside their arrays, less than 64 MiB whatever their sizes; Ctrl-C; streams, threads
and other libraries; files.

Runs where there is a card. The most that was in use is asked of the driver, which counts by itself.
"""

import ctypes
import re
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from stopping import needs_proc, stop

import tilework as tw

card = pytest.mark.skipif(not tw.cuda.is_available(), reason=str(tw.cuda.why_not()))
GAUSS = "Exp(-SqDist(x,y) * s) * b"
USED, MOST_USED = 7, 8  # attributes of the driver's pools of memory


class Pool:
    """The pool that the first card's memory comes from."""

    def __init__(self) -> None:
        tw.cuda.synchronize()
        self.driver = ctypes.CDLL("libcuda.so.1")
        self.handle = ctypes.c_void_p()
        assert self.driver.cuDeviceGetDefaultMemPool(ctypes.byref(self.handle), 0) == 0

    def begin(self) -> None:
        nothing = ctypes.c_uint64(0)
        assert self.driver.cuMemPoolSetAttribute(self.handle, MOST_USED, ctypes.byref(nothing)) == 0

    def bytes(self, what: int) -> int:
        number = ctypes.c_uint64()
        assert self.driver.cuMemPoolGetAttribute(self.handle, what, ctypes.byref(number)) == 0
        return number.value


def bytes_beside(call: Callable[[], list[tw.Array]]) -> int:
    """The most that a second call takes beside its results."""
    size = sum(result.nbytes for result in call())
    tw.cuda.synchronize()
    pool = Pool()
    pool.begin()
    before = pool.bytes(USED)
    results = call()
    tw.cuda.synchronize()
    del results
    return pool.bytes(MOST_USED) - before - size


# M, N, D, the width of b, the formula, the reduction and its K.
WORKS = [
    (100_000, 100_000, 3, 1, GAUSS, "Sum", None),
    (100, 10_000_000, 3, 1, GAUSS, "Sum", None),
    (10_000_000, 100, 3, 1, GAUSS, "Sum", None),
    (300_000, 300_000, 64, 1, GAUSS, "Sum", None),
    (20_000, 20_000, 784, 1, GAUSS, "Sum", None),
    (1_000, 2_000_000, 100, 1, GAUSS, "Sum", None),
    (100_000, 100_000, 3, 128, GAUSS, "Sum", None),
    (100_000, 100_000, 64, 1, f"Concat({GAUSS}, Grad({GAUSS}, x, b))", "Sum", None),
    (50_000, 50_000, 200, 1, f"Concat({GAUSS}, Grad({GAUSS}, x, b))", "Sum", None),
    (50_000, 50_000, 64, 128, GAUSS, "Sum", None),
    (100_000, 100_000, 64, 1, "-SqDist(x,y) * s", "LogSumExp", None),
    (300_000, 300_000, 10, 1, "SqDist(x,y)", "ArgMin", None),
    (100_000, 100_000, 64, 1, "SqDist(x,y)", "ArgKMin", 10),
    (20_000, 200_000, 3, 1, "SqDist(x,y)", "ArgKMin", 100),
    (5_000, 50_000, 3, 1, "SqDist(x,y)", "ArgKMin", 1500),
    (300_000, 20_000, 64, 64, "(x|y) * s", "SumSoftMaxWeight", None),
    (100_000, 20_000, 3, 64, "-SqDist(x,y) * s", "LogSumExpWeight", None),
]


@card
@pytest.mark.parametrize(("m", "n", "dim", "width", "formula", "reduction", "k"), WORKS)
def test_little_memory_is_taken_beside_the_arrays(
    m: int, n: int, dim: int, width: int, formula: str, reduction: str, k: int | None
) -> None:
    rng = np.random.default_rng(0)
    x, y, b = (rng.standard_normal(shape, dtype="f4") for shape in ((m, dim), (n, dim), (n, width)))
    names = [f"x = Vi({dim})", f"y = Vj({dim})", "s = Pm(1)", f"b = Vj({width})"]
    there = [tw.asarray(a, device="cuda") for a in (x, y, np.full(1, 1 / dim, "f4"), b)]
    pairs = zip(names, there, strict=True)
    weight = "b" if reduction.endswith("Weight") else None
    named = f"{formula} {weight}"
    used = [(name, array) for name, array in pairs if re.search(rf"\b{name[0]}\b", named)]
    names, there = [name for name, _ in used], [array for _, array in used]
    call = tw.Genred(formula, names, reduction, axis=1, opt_arg=k, formula2=weight)
    extra = bytes_beside(lambda: [call(*there)])
    assert extra < 64 << 20, f"{extra / 2**20:.1f} MiB"


def exponent(x: tw.Array, y: tw.Array) -> tw.LazyTensor:
    return -tw.LazyTensor(x[..., :, None, :]).sqdist(tw.LazyTensor(y[..., None, :, :])) / x.shape[-1]


def gaussians(x: tw.Array, y: tw.Array, **options: str) -> list[tw.Array]:
    return [exponent(x, y).exp().sum(axis=x.ndim - 1, **options)]


def with_gradient(x: tw.Array, y: tw.Array, reduction: str) -> list[tw.Array]:
    i = tw.Vi(x)
    f = -i.sqdist(tw.Vj(y)) / x.shape[-1]
    f = f.exp() if reduction == "Sum" else f
    value, gradients = f.value_and_grad(reduction, [i], axis=1)
    return [value, *gradients]


# The shapes of x and y, their dtype, and what is made of them.
OTHERS: dict[str, tuple[tuple[int, ...], tuple[int, ...], str, Callable[..., list[tw.Array]]]] = {
    "sum and gradient": (
        *((400_000, 64), (5_000, 64), "f4"),
        lambda x, y: with_gradient(x, y, "Sum"),
    ),
    "log-sum-exp and gradient": (
        *((1_000_000, 10), (5_000, 10), "f4"),
        lambda x, y: with_gradient(x, y, "LogSumExp"),
    ),
    "float64": ((1_000_000, 3), (10_000, 3), "f8", gaussians),
    "strict": ((200_000, 3), (200_000, 3), "f4", lambda x, y: gaussians(x, y, accuracy="strict")),
    "batches": ((3_000, 500, 3), (3_000, 400, 3), "f4", gaussians),
    "batches of wide points": ((300, 2_000, 64), (300, 1_000, 64), "f4", gaussians),
    "states": (
        *((300_000, 64), (30_000, 64), "f4"),
        lambda x, y: [exponent(x, y).exp().partial("Sum", axis=1).arrays()["values"]],
    ),
}


@card
@pytest.mark.parametrize("work", OTHERS)
def test_little_memory_is_taken_by_other_work(work: str) -> None:
    *shapes, dtype, call = OTHERS[work]
    rng = np.random.default_rng(0)
    x, y = (tw.asarray(rng.standard_normal(shape).astype(dtype), device="cuda") for shape in shapes)
    extra = bytes_beside(lambda: call(x, y))
    assert extra < 64 << 20, f"{extra / 2**20:.1f} MiB"


@card
def test_the_driver_counts_what_was_in_use() -> None:
    pool = Pool()
    pool.begin()
    before = pool.bytes(USED)
    tw.zeros(8 << 20, dtype=tw.uint8, device="cuda")
    tw.cuda.synchronize()
    assert pool.bytes(MOST_USED) - before >= 8 << 20


# Work of many seconds, by threads and on tensor cores, of arrays on the card or of the host.
LONG = """
import tilework as tw
n, dim = (2_000_000, 64) if sys.argv[1] == "tensor cores" else (4_000_000, 3)
options = {"scheme": "1d"} if sys.argv[1] == "one range" else {}
if sys.argv[1] == "streamed":
    n, options = 8_000_000, {"device": "cuda"}
x = tw.ones((n, dim), dtype=tw.float32, device=None if "device" in options else "cuda")
small = x[:100]
d2 = tw.Vi(x).sqdist(tw.Vj(x))
# Compiled before.
first = tw.asarray((-tw.Vi(small).sqdist(tw.Vj(small))).exp().sum(axis=1, **options)).to_device("cpu")
tw.cuda.synchronize()
try:
    print("begins", flush=True)
    (-d2).exp().sum(axis=1, **options)
    tw.cuda.synchronize()
except KeyboardInterrupt:
    print("stopped", time.process_time(), flush=True)
again = (-tw.Vi(small).sqdist(tw.Vj(small))).exp().sum(axis=1, **options)
assert float(tw.max(tw.abs(again.to_device("cpu") - first))) == 0 and float(again[0, 0]) == 100
print("intact")
"""


@card
@needs_proc
@pytest.mark.parametrize("work", ["threads", "one range", "tensor cores", "streamed"])
def test_a_long_formula_is_given_up(work: str) -> None:
    """Within a second beside what is compiled, and the card is usable after."""
    took, said = stop(LONG, work)
    assert took < 3 and said == ["intact"]


@card
def test_tensors_of_many_streams_and_threads() -> None:
    """Each thread has a stream of its own, in which inputs are still being written when a formula takes them."""
    torch: Any = pytest.importorskip("torch")

    def work(seed: int) -> None:
        dim, n = 3 + seed % 3, 5_000 + seed
        generator = torch.Generator(device="cuda")
        generator.manual_seed(seed)
        with torch.cuda.stream(torch.cuda.Stream()):
            for _ in range(8):
                x, y = (torch.randn(n, dim, device="cuda", generator=generator) for _ in range(2))
                for _ in range(5):
                    x, y = x * 1.25 - 0.5, y * 0.75 + 0.5
                d2 = tw.Vi(tw.from_dlpack(x)).sqdist(tw.Vj(tw.from_dlpack(y)))
                got = torch.from_dlpack((-d2).exp().sum(axis=1))
                wanted = torch.exp(-torch.cdist(x.double(), y.double()) ** 2).sum(1, keepdim=True)
                assert torch.allclose(got.double(), wanted, rtol=1e-4, atol=1e-4)
                # Memory that is written anew while others may still read it.
                x.zero_()

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))


@card
@pytest.mark.parametrize("library", ["torch", "cupy"])
def test_arrays_of_others_are_taken_where_they_lie(library: str) -> None:
    """As variables, weights and parameters, of formulas and of texts, without a copy to the host."""
    other: Any = pytest.importorskip(library)
    rng = np.random.default_rng(5)
    x, y, b = (rng.normal(size=shape).astype("float32") for shape in ((700, 3), (900, 3), (900, 2)))
    give = (lambda a: other.asarray(a).to("cuda")) if library == "torch" else other.asarray
    k = (-tw.Vi(give(x)).sqdist(tw.Vj(give(y)))).exp()
    wanted = np.exp(-((x[:, None].astype(float) - y) ** 2).sum(-1)) @ b
    product = k @ give(b)
    assert str(product.device).startswith("cuda")
    text = tw.Genred("Exp(-SqDist(x,y)) * b", ["x = Vi(3)", "y = Vj(3)", "b = Vj(2)"], "Sum", axis=1)
    for got in (product, text(give(x), give(y), give(b))):
        np.testing.assert_allclose(np.asarray(got.to_device("cpu")), wanted, rtol=1e-4, atol=1e-4)


@card
@pytest.mark.parametrize("side", [False, True])
def test_what_goes_to_a_tensor_is_read_after_it_is_written(side: bool) -> None:
    torch: Any = pytest.importorskip("torch")
    x = tw.ones((100_000, 3), dtype=tw.float32, device="cuda")
    ones = (-tw.Vi(x).sqdist(tw.Vj(x))).exp()
    with torch.cuda.stream(torch.cuda.Stream() if side else torch.cuda.default_stream()):
        for _ in range(5):
            out = torch.zeros(100_000, 1, device="cuda")
            assert ones.sum(axis=1, out=out) is out
            assert out.min().item() == out.max().item() == 100_000
            tw.add(tw.from_dlpack(out), 1, out=out)
            assert out.min().item() == out.max().item() == 100_001


@card
def test_calls_return_before_their_work_is_done() -> None:
    x = tw.asarray(np.random.default_rng(6).normal(size=(100_000, 10)).astype("float32"), device="cuda")
    call = tw.Genred("Exp(-SqDist(x,y) * IntInv(10))", ["x = Vi(10)", "y = Vj(10)"], "Sum", axis=1)
    call(x, x)
    tw.cuda.synchronize()
    begin = time.perf_counter()
    results = [call(x, x) for _ in range(10)]
    asked = time.perf_counter() - begin
    tw.cuda.synchronize()
    done = time.perf_counter() - begin
    assert len(results) == 10 and asked < done / 2, (asked, done)


@card
def test_explain_tells_the_scheme_that_is_asked_for() -> None:
    x = tw.ones((2_000, 3), dtype=tw.float32, device="cuda")
    k = (-tw.Vi(x).sqdist(tw.Vj(x))).exp()
    texts = {scheme: str(k.explain("sum", axis=1, scheme=scheme)) for scheme in ("1d", "2d")}
    for scheme, text in texts.items():
        line = next(line for line in text.splitlines() if line.startswith("scheme"))
        assert scheme.upper() in line, line
        assert "__global__" in text


@card
def test_a_file_is_streamed_with_progress(tmp_path: Path) -> None:
    n = 13_000_000
    y = np.random.default_rng(7).uniform(size=(n, 3)).astype("float32")
    np.save(tmp_path / "y.npy", y)
    x = np.zeros((2, 3), "float32")
    d2 = tw.Vi(x).sqdist(tw.Vj(tw.load(tmp_path / "y.npy", mmap_mode="r")))
    told: list[float] = []
    sums = d2.sum(axis=1, device="cuda", progress=told.append)
    exact = (y.astype(float) ** 2).sum()
    assert np.abs(np.asarray(sums) / exact - 1).max() < 1e-5
    assert len(told) > 2 and told == sorted(told) and told[-1] == 1 and 0 <= told[0] < 1
    with pytest.raises(KeyboardInterrupt):
        d2.sum(axis=1, device="cuda", progress=lambda done: done < 0.5)
