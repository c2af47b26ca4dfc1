"""Keywords of reductions over pairs: each is heeded or refused, and none is given twice."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import tilework as tw
from tilework import Genred, KernelSolve, LazyTensor, Pm, Vi, Vj

# Every test runs on each device, where its arrays are made.
pytestmark = pytest.mark.usefixtures("device")

ALIASES = ["x = Vi(1)", "y = Vj(1)"]
X = np.array([[1.0], [2.0], [3.0]])
Y = np.array([[5.0], [7.0]])
FEW, LONG = (np.random.default_rng(4).normal(size=(n, 1)).astype("float32") for n in (64, 1000))


@pytest.fixture
def k(device: tw.device) -> LazyTensor:
    return Vi(X) * Vj(Y)


@pytest.fixture
def sums(device: tw.device) -> tuple[Any, Any]:
    """What accumulators of either kind give: sums in blocks, and in float64. Of so many some differ."""
    schemes = ("block_sum", "double")
    in_blocks, in_double = ((Vi(FEW) * Vj(LONG)).sum(axis=1, sum_scheme=scheme).tolist() for scheme in schemes)
    assert in_blocks != in_double
    return in_blocks, in_double


@pytest.fixture
def defaults() -> Iterator[None]:
    before = tw.pairs.get_defaults()
    yield
    tw.pairs.set_defaults(**before)


def test_a_later_call_writes_where_it_was_told_to(k: LazyTensor) -> None:
    out, other = tw.zeros((3, 1), dtype=tw.float64), tw.zeros((3, 1), dtype=tw.float64)
    later = k.sum(axis=1, call=False, out=out)
    assert not np.asarray(out).any()
    assert later() is out
    np.testing.assert_array_equal(out, X * 12)
    # What the call says counts more than what it was made with.
    assert later(out=other) is other
    np.testing.assert_array_equal(other, X * 12)
    symbolic = (Vi(0, 1) * Vj(Y)).sum(axis=1, out=out)
    symbolic(2 * X)
    np.testing.assert_array_equal(out, X * 24)


def test_progress_of_a_later_call_is_told() -> None:
    calls: list[Callable[[Any], Any]] = [
        lambda told: Genred("x * y", ALIASES, axis=1, progress=told)(X, Y),
        lambda told: Genred("x * y", ALIASES, axis=1, progress=told).value_and_grad(X, Y, variables=["x"]),
        lambda told: (Vi(X) * Vj(Y)).sum(axis=1, call=False, progress=told)(),
        lambda told: KernelSolve("Exp(-SqDist(x,y)) * b", [*ALIASES, "b = Vj(1)"], "b", axis=1, progress=told)(
            X, X, X, alpha=1.0
        ),
    ]
    for call in calls:
        told: list[float] = []
        call(told.append)
        assert told and told[-1] == 1.0
    told = []
    silent = Genred("x * y", ALIASES, axis=1, progress=told.append)
    silent(X, Y, progress=False)
    assert not told


def test_defaults_are_those_of_the_call(
    defaults: None, sums: tuple[Any, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    in_blocks, in_double = sums
    genred, later = Genred("x * y", ALIASES, axis=1), (Vi(FEW) * Vj(LONG)).sum(axis=1, call=False)
    assert genred(FEW, LONG).tolist() == later().tolist() == in_blocks
    tw.pairs.set_defaults(sum_scheme="double", progress=True)
    assert genred(FEW, LONG).tolist() == in_double
    assert "100 %" in capsys.readouterr().err
    assert later().tolist() == in_double
    assert "100 %" in capsys.readouterr().err


@pytest.mark.parametrize("keyword", [{"out": tw.zeros((3, 1))}, {"call": False}])
def test_what_an_operation_does_not_heed_it_refuses(k: LazyTensor, keyword: dict[str, Any]) -> None:
    x = Vi(X)
    genred, later = Genred("x * y", ALIASES, axis=1), k.sum(axis=1, call=False)
    system = (-x.sqdist(Vj(X))).exp()
    calls: list[Callable[..., Any]] = [
        lambda **o: k.partial("sum", axis=1, **o),
        lambda **o: (x * Vj(Y)).value_and_grad("sum", [x], axis=1, **o),
        lambda **o: (x * Vj(Y)).reduction_grad("sum", x, np.ones((3, 1)), axis=1, **o),
        lambda **o: genred.value_and_grad(X, Y, variables=["x"], **o),
        lambda **o: Genred("x * y", ALIASES, axis=1, **o),
        lambda **o: system.solve(X, alpha=1.0, **o),
        lambda **o: KernelSolve("x * y * b", [*ALIASES, "b = Vj(1)"], "b", axis=1, **o),
    ]
    if "call" in keyword:
        calls += [lambda **o: genred(X, Y, **o), later, lambda **o: k.matmul(np.ones(2), **o)]
    (name,) = keyword
    for call in calls:
        with pytest.raises(TypeError, match=f"there is no keyword {name}"):
            call(**keyword)
        call(**{name: True if name == "call" else None})
    # Along the components nothing is computed.
    with pytest.raises(TypeError, match="along components"):
        k.sum(axis=-1, **keyword)


def test_arguments_are_given_once(k: LazyTensor) -> None:
    w = Vj(Y)
    wrong: list[tuple[Callable[[], Any], str]] = [
        (lambda: k.sum(axis=1, dim=0), "the axis"),
        (lambda: k.sum(1, axis=1), "the axis"),
        (lambda: k.Kmin(1, 0, dim=1), "the axis"),
        (lambda: k.Kmin(1, axis=1, K=2), "K"),
        (lambda: k.Kmin(K=1, axis=1, opt_arg=2), "K"),
        (lambda: k.reduction("Kmin", opt_arg=1, axis=1, K=2), "K"),
        (lambda: k.logsumexp(1, w, weight=w), "the weight"),
        (lambda: k.reduction("LogSumExp", w, axis=1, weight=w), "the weight"),
        (lambda: k.solve(X, tol=1e-3, eps=1e-4), "the tolerance"),
    ]
    for call, what in wrong:
        with pytest.raises(TypeError, match=f"{what} is given twice"):
            call()


def test_double_accumulators_are_refused_whatever_the_default(defaults: None, sums: tuple[Any, Any]) -> None:
    in_blocks, in_double = sums
    genred = Genred("x * y", ALIASES, axis=1, use_double_acc=False)
    assert genred(FEW, LONG).tolist() == in_blocks
    tw.pairs.set_defaults(sum_scheme="double")
    assert genred(FEW, LONG).tolist() == in_blocks
    assert Genred("x * y", ALIASES, axis=1)(FEW, LONG).tolist() == in_double
    assert genred(FEW, LONG, use_double_acc=True).tolist() == in_double


def test_accumulators_are_named_once_and_rightly(k: LazyTensor, sums: tuple[Any, Any]) -> None:
    _, in_double = sums
    genred = Genred("x * y", ALIASES, axis=1)
    with pytest.raises(ValueError, match="never in float16"):
        k.sum(axis=1, dtype_acc="float16")
    with pytest.raises(ValueError, match="is not .float32. or .float64."):
        k.sum(axis=1, dtype_acc="int32")
    for dtype in ["float32", "float64"]:
        for call in [lambda d=dtype: k.sum(axis=1, dtype_acc=d, use_double_acc=True),
                     lambda d=dtype: genred(FEW, LONG, use_double_acc=True, dtype_acc=d)]:
            with pytest.raises(TypeError, match="the accumulator is given twice"):
                call()
    # What is so by default says nothing, before and after the other.
    for keywords in [{"dtype_acc": "float64", "use_double_acc": False}, {"use_double_acc": False, "dtype_acc": "float64"},
                     {"use_double_acc": True, "dtype_acc": "auto"}, {"dtype_acc": None, "use_double_acc": True}]:
        assert genred(FEW, LONG, **keywords).tolist() == in_double
    # A call counts more than what it was made with.
    assert Genred("x * y", ALIASES, axis=1, dtype_acc="float32")(FEW, LONG, use_double_acc=True).tolist() == in_double


def test_keywords_that_mean_nothing_pass(k: LazyTensor) -> None:
    expected = k.sum(axis=1).tolist()
    assert k.sum(axis=1, enable_chunks=True, optional_flags=[], dtype_acc="auto", out=None).tolist() == expected
    assert (Pm(1.0) * k).sum(axis=1, sum_scheme=None, accuracy=None, call=True).tolist() == expected
