"""Formulas and the memory of the host: targets of NumPy and PyTorch, mapped files, what is written meanwhile, Ctrl-C, and
what the CPU says of its plans. Everything else of formulas is tested on every device."""

from pathlib import Path

import numpy as np
import pytest
from stopping import needs_proc, stop

import tilework as tw
from tilework import Genred, Vi, Vj

M, N, D = 6, 9, 3
rng = np.random.default_rng(9)
X, Y, B = rng.normal(size=(M, D)), rng.normal(size=(N, D)), rng.normal(size=(N, 2))
GAUSS = np.exp(-((X[:, None] - Y) ** 2).sum(-1))


@pytest.mark.usefixtures("host")
def test_results_go_to_memory_of_other_libraries() -> None:
    k, sums = (-Vi(X).sqdist(Vj(Y))).exp(), GAUSS.sum(1, keepdims=True)
    out, product, wide = np.zeros((M, 1)), np.empty((M, 2)), np.zeros((M, 2))
    assert k.sum(axis=1, out=out) is out
    np.testing.assert_allclose(out, sums, rtol=1e-12)
    assert k.__matmul__(B, out=product) is product
    np.testing.assert_allclose(product, GAUSS @ B, rtol=1e-12, atol=1e-12)
    # Every second number of a row.
    k.sum(axis=1, out=wide[:, :1])
    np.testing.assert_allclose(wide, sums * [1, 0], rtol=1e-12)
    with pytest.raises(ValueError, match="out"):
        k.sum(axis=1, out=np.zeros(M))
    torch = pytest.importorskip("torch")
    out = torch.empty((M, 1), dtype=torch.float64)
    assert k.sum(axis=1, out=out) is out
    np.testing.assert_allclose(out, sums, rtol=1e-12)


def test_a_card_does_not_write_to_memory_of_the_host(device: tw.device) -> None:
    if device.type != "cuda":
        pytest.skip("shares its memory with Python")
    out = np.zeros((M, 1))
    with pytest.raises(tw.DeviceError, match="out: cuda:0 cannot write to memory of the host"):
        Vi(X).sqdist(Vj(Y)).sum(axis=1, out=out)
    assert not out.any()


@pytest.mark.usefixtures("host")
@pytest.mark.parametrize("way", ["read-only", "broadcast"])
def test_targets_that_cannot_be_written_are_refused_before_the_work(way: str) -> None:
    out = np.zeros((M, 1))
    if way == "read-only":
        out.flags.writeable = False
    else:
        out = np.lib.stride_tricks.as_strided(np.zeros(1), (M, 1), (0, 8))
    told: list[float] = []
    text = Genred("SqDist(x,y)", [f"x = Vi({D})", f"y = Vj({D})"], axis=1)
    k = Vi(X).sqdist(Vj(Y))
    vector = np.ones((N, 1))
    for work in [
        lambda: k.sum(axis=1, out=out, progress=told.append),
        lambda: k.min(axis=1, out=out, progress=told.append),
        lambda: k.__matmul__(vector, out=out, progress=told.append),
        lambda: text(X, Y, out=out, progress=told.append),
        lambda: k.sum(axis=1, call=False)(out=out, progress=told.append),
    ]:
        with pytest.raises(ValueError, match=r"^out: .*(read-only|several indices)"):
            work()
    assert told == [] and not out.any()


def test_plans_of_the_cpu_heed_the_keywords_of_calls() -> None:
    text = Genred("Exp(-SqDist(x,y))", ["x = Vi(40)", "y = Vj(40)"], axis=1)
    x = rng.normal(size=(600, 40))
    assert "direct" in text.explain(x, x, accuracy="strict") != text.explain(x, x)
    assert "2d" in text.explain(x, x, scheme="2d").lower()


def test_mapped_arrays_are_streamed(tmp_path: Path) -> None:
    # Above the size from which the reduced side is worked through in blocks.
    n = 13_000_000
    y = rng.uniform(size=(n, 3)).astype("float32")
    path = tmp_path / "y.npy"
    np.save(path, y)
    mapped = tw.load(path, mmap_mode="r")
    x = X[:, :1].astype("float32") * np.ones(3, "float32")
    d = Vi(x).sqdist(Vj(mapped))
    values, indices = d.min_argmin(axis=1)
    for k in range(M):
        exact = ((x[k].astype("float64") - y) ** 2).sum(-1)
        assert exact[int(np.asarray(indices)[k, 0])] <= exact.min() * (1 + 1e-6)
        assert abs(float(np.asarray(d.sum(axis=1))[k, 0]) / exact.sum() - 1) < 1e-5
        break


def test_what_a_reduction_reads_cannot_be_written_meanwhile() -> None:
    threads = tw.get_num_threads()
    tw.set_num_threads(2)
    x = tw.ones((60_000, 3))
    refused = []

    def told(fraction: float) -> bool:
        try:
            x[0] = 7.0
        except BufferError as error:
            refused.append(str(error))
        return False

    try:
        with pytest.raises(KeyboardInterrupt):
            tw.Vi(x).sqdist(tw.Vj(x)).exp().sin().tanh().sum(axis=1, progress=told)
    finally:
        tw.set_num_threads(threads)
    assert refused and "under way" in refused[0]


# Work without an end that anybody would see.
ENDLESS = """
import numpy as np, tilework as tw
from tilework import Vi, Vj
rng = np.random.default_rng(0)
points, large = rng.normal(size=(300, 3)), rng.normal(size=(600_000, 3))
matrix = (-Vi(points).sqdist(Vj(points)) / 9).exp()
X = Vi(large); K = (-X.sqdist(Vj(large))).exp().sin().tanh()
works = {
    # Steps of a tenth of a millisecond.
    "solve": lambda: matrix.solve(np.ones((300, 1)), alpha=1e-14, tol=1e-300, maxiter=10**9),
    "grad": lambda: K.reduction_grad("logsumexp", X, np.ones((600_000, 1)), axis=1),
    "value and grad": lambda: K.value_and_grad("min", [X], axis=1),
    "partial": lambda: K.partial("sum", axis=1),
    "vector": lambda: (K * X).logsumexp(axis=1),
    "dense product": lambda: K @ np.ones((600_000, 30)),
}
try:
    print("begins", flush=True)
    works[sys.argv[1]]()
except KeyboardInterrupt:
    print("stopped", time.process_time(), flush=True)
"""


@needs_proc
@pytest.mark.parametrize("work", ["solve", "grad", "value and grad", "partial", "vector", "dense product"])
def test_ctrl_c_stops_everything(work: str) -> None:
    took, said = stop(ENDLESS, work)
    assert took < 5 and not said
