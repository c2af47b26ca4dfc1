"""What tensors and reductions refuse, and how they say it: names of arguments, before any work."""

from collections.abc import Callable

import numpy as np
import pytest

import tilework as tw
from tilework import Genred, KernelSolve, LazyTensor, Partial, Pm, Vi, Vj
from tilework.pairs import Var

# Every test runs on each device, where its arrays are made.
pytestmark = pytest.mark.usefixtures("device")

rng = np.random.default_rng(5)
M, N, D = 6, 9, 3
X, Y = rng.normal(size=(M, D)), rng.normal(size=(N, D))


def test_products_of_two_symbolic_matrices_are_refused() -> None:
    k = (-Vi(X).sqdist(Vj(X))).exp()
    for other in [k, Vi(X).sqdist(Vj(X)), Vi(X[:, :1]), Vi(0, 1) * Vj(X[:, :1])]:
        with pytest.raises(ValueError, match=r"K1 @ \(K2 @ b\)"):
            k @ other
        with pytest.raises(ValueError, match="varies with i"):
            k.matmul(other)
    b = rng.normal(size=(M, 2))
    dense = np.asarray(k.dense())
    for vector in [b, Vj(b), Vj(b) * Pm(1.0), LazyTensor(b[None, :, :])]:
        np.testing.assert_allclose(np.asarray(k @ vector), dense @ b, rtol=1e-12)
    np.testing.assert_allclose(np.asarray(k @ (k @ b)), dense @ (dense @ b), rtol=1e-12)


@pytest.mark.parametrize(
    ("work", "names"),
    [
        (lambda: LazyTensor(X, axis=-1), "LazyTensor: axis -1 is not 0"),
        (lambda: LazyTensor((0, -3, 1)), "LazyTensor: the dimension -3 is less than 0"),
        (lambda: LazyTensor((0, 3, -1)), "LazyTensor: the category -1"),
        (lambda: Vi(0, -3), "Vi: the dimension -3"),
        (lambda: Vi(-1, 3), "Vi: the position -1"),
        (lambda: Vj(-1, 3), "Vj: the position -1"),
        (lambda: Pm(0, -1), "Pm: the dimension -1"),
        (lambda: Var(-1, 3, 0), "Var: the position -1"),
        (lambda: Var(X, -3, 0), "Var: the array has 3 components, not -3"),
        (lambda: Var(X, None, -1), "Var: the category -1"),
        (lambda: Vi(0, 3).elem(-4), "elem: the component -4 is out of 3"),
        (lambda: Vi(0, 3).extract(-4, 2), "extract: the component -4 is out of 3"),
        (lambda: Vi(0, 4).keops_tensordot(Vj(1, 4), [2, -2], [2, 2], [1], [0]), "dimf: -2 is less than 0"),
        (lambda: Vi(0, 4).keops_tensordot(Vj(1, 4), [2, 2], [2, 2], [-3], [0]), "contf: -3 is out of 2"),
        (lambda: Vi(0, 4).permute([2, 2], [-3, 0]), "to: -3 is out of 2"),
    ],
)
def test_negative_numbers_are_refused_by_the_name_of_their_argument(work: Callable[[], object], names: str) -> None:
    with pytest.raises(ValueError, match=names):
        work()


def test_negative_components_and_axes_count_from_the_end() -> None:
    x = Vi(0, 4)
    assert x.elem(-1).formula == x.elem(3).formula == x[:, :, -1].formula
    assert x.extract(-2, 2).formula == x.extract(2, 2).formula == x[:, :, -2:].formula
    y = Vj(1, 4)
    counted = x.keops_tensordot(y, [2, 2], [2, 2], [-1], [-2], [-1, -2])
    assert counted.formula == x.keops_tensordot(y, [2, 2], [2, 2], [1], [0], [1, 0]).formula
    assert x.permute([2, 2], [-1, 0]).formula == x.permute([2, 2], [1, 0]).formula


def test_states_name_what_is_wrong_with_them() -> None:
    state = Vi(X).sqdist(Vj(Y)).partial("mean", axis=1).arrays()
    for key in ["version", "dim", "K", "weights", "count"]:
        with pytest.raises(ValueError, match=f"Partial: {key} -1 is less than 0"):
            Partial.from_arrays(**{**state, key: -1})
        with pytest.raises(TypeError, match=f"Partial: {key} is an integer, not str"):
            Partial.from_arrays(**{**state, key: "one"})
    with pytest.raises(TypeError, match="reduction is a name"):
        Partial.from_arrays(**{**state, "reduction": 3})
    with pytest.raises(ValueError, match="sums that are not 0"):
        Partial.from_arrays(**{**state, "count": 0})
    with pytest.raises(ValueError, match="Mean has no weights"):
        Partial.from_arrays(**{**state, "weights": 5})


def test_indices_of_states_are_checked() -> None:
    part = Vi(X).sqdist(Vj(Y)).partial("argKmin", axis=1, K=N + 1, offset=100)
    state = part.arrays()
    again = Partial.from_arrays(**state)
    np.testing.assert_array_equal(again.finish(), part.finish())
    for wrong in [-2, np.iinfo("int64").min]:
        indices = np.array(state["indices"])
        indices[1, 2] = wrong
        with pytest.raises(ValueError, match="ArgKMin has indices below -1"):
            Partial.from_arrays(**{**state, "indices": indices})
    with pytest.raises(ValueError, match="ArgKMin of 0 values has indices"):
        Partial.from_arrays(**{**state, "count": 0})


def test_formulas_are_no_arrays() -> None:
    k = Vi(X).sqdist(Vj(Y))
    for call in [np.asarray, np.array, tw.asarray, lambda k: np.asarray(k, dtype="float64"), lambda k: np.stack([k, k])]:
        with pytest.raises(TypeError, match=r"formula over pairs, not an array.*\.sum\(axis=1\).*\.dense\(\)"):
            call(k)
    # NumPy's arrays and numbers leave operators to the tensor.
    assert isinstance(np.ones((M, 1, 1)) * k, LazyTensor)
    assert isinstance(np.float64(2) * k, LazyTensor)


def test_dense_says_what_was_asked() -> None:
    # A view: only the values would take memory.
    x = tw.broadcast_to(tw.ones(1, dtype="float32"), (3_000_000, 1))
    with pytest.raises(MemoryError, match=r"dense: no memory for all \(3000000, 3000000, 1\) values, 3.6e13 bytes of float32"):
        (Vi(x) - Vj(x)).dense()


def test_text_explains_with_the_keywords_of_calls() -> None:
    text = Genred("Exp(-SqDist(x,y))", ["x = Vi(40)", "y = Vj(40)"], axis=1)
    x = rng.normal(size=(600, 40))
    assert "per pair" in text.explain(x, x, accuracy="strict", scheme="2d")
    with pytest.raises(TypeError, match="explain: there is no keyword accurate"):
        text.explain(x, x, accurate=True)


def test_text_gives_partial_states() -> None:
    nearest = Genred("SqDist(x,y)", [f"x = Vi({D})", f"y = Vj({D})"], "argKmin", axis=1, opt_arg=3)
    parts = [nearest.partial(X, Y[first:last], offset=first) for first, last in [(4, N), (0, 4)]]
    np.testing.assert_array_equal(parts[0].merge(parts[1]).finish(), nearest(X, Y))
    with pytest.raises(ValueError, match="offset"):
        nearest.partial(X, Y, offset=-1)
    with pytest.raises(TypeError, match="partial: there is no keyword out"):
        nearest.partial(X, Y, out=np.zeros((M, 3)))


def test_derivatives_in_several_directions() -> None:
    x, y, u, v = Vi(X), Vj(Y), Vi(X + 1), Vj(Y - 1)
    f = (-x.sqdist(y)).exp()
    both = f.diff((x, y), (u, v)).sum(axis=1)
    np.testing.assert_allclose(both, np.asarray((f.diff(x, u) + f.diff(y, v)).sum(axis=1)), rtol=1e-12)
    np.testing.assert_allclose(f.diff([x], u).sum(axis=1), np.asarray(f.diff(x, u).sum(axis=1)))
    aliases = [f"x = Vi({D})", f"y = Vj({D})", f"u = Vi({D})", f"v = Vj({D})"]
    text = Genred("Diff(Exp(-SqDist(x,y)), (x,y), (u,v))", aliases, axis=1)
    np.testing.assert_allclose(text(X, Y, X + 1, Y - 1), both, rtol=1e-12)
    with pytest.raises(ValueError, match="2 variables and 1 directions"):
        f.diff((x, y), u)
    with pytest.raises(tw.FormulaError, match="2 variables have 1 directions"):
        Genred("Diff(SqDist(x,y), (x,y), u)", aliases, axis=1)


def test_messages_name_what_was_called() -> None:
    x = Vi(X)
    with pytest.raises(TypeError, match="no modulus"):
        pow(x, 2, 3)
    with pytest.raises((TypeError, ValueError), match="^Vi: .*astype"):
        Vi(np.zeros((M, D), dtype="int64"))
    with pytest.raises((TypeError, ValueError), match="^Vj: "):
        Vj(np.zeros(D))
    with pytest.raises((TypeError, ValueError), match="^LazyTensor: .*astype"):
        LazyTensor(np.zeros((M, 1, D), dtype="int64"))
    with pytest.raises(ValueError, match="has no array yet: make it of one"):
        Vi(0, D).sqdist(Vj(Y)).value_and_grad("sum", [Vi(0, D)], axis=1)
    with pytest.raises(TypeError, match="dense: rows and cols are a number or a slice, not list"):
        x.sqdist(Vj(Y)).dense(rows=[0, 2])
    k = (-x.sqdist(Vj(X))).exp()
    with pytest.raises((TypeError, ValueError), match="^solve: .*float64 and float32"):
        k.solve(np.ones((M, 1), dtype="float32"), alpha=1.0)
    with pytest.raises(ValueError, match="'?\"?b\"?'? is a parameter; the unknown is"):
        KernelSolve("SqDist(x,y) * b", ["x = Vi(3)", "y = Vj(3)", "b = Pm(1)"], "b", axis=1)
    with pytest.raises(TypeError, match="^Genred: aliases are a list of texts"):
        tw.Genred("x", "x = Vi(3)")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="^KernelSolve: aliases are a list of texts"):
        KernelSolve("SqDist(x,y) * b", 5, "b", axis=1)  # type: ignore[arg-type]
