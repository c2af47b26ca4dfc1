"""Genred: text formulas as KeOps users write them, and errors that point at the place."""

import pickle

import numpy as np
import pytest

import tilework as tw
from tilework.pairs import generic_argkmin, generic_argmin, generic_logsumexp, generic_sum

# Every test runs on each device, where its arrays are made.
pytestmark = pytest.mark.usefixtures("device")

M, N, D = 5, 8, 2
rng = np.random.default_rng(6)
X, Y, B = rng.normal(size=(M, D)), rng.normal(size=(N, D)), rng.normal(size=(N, 3))
DIST = ((X[:, None] - Y[None]) ** 2).sum(-1)
ALIASES = ["x = Vi(2)", "y = Vj(2)", "b = Vj(3)", "s = Pm(1)"]


def close(got: object, expected: np.ndarray) -> None:
    np.testing.assert_allclose(np.asarray(got), expected, rtol=1e-12, atol=1e-12)


def test_sums_over_both_axes() -> None:
    k = np.exp(-DIST / 0.5)
    over_j = tw.Genred("Exp(-SqDist(x,y)/s)*b", ALIASES, axis=1)
    close(over_j(X, Y, B, [0.5]), k @ B)
    close(over_j(X, Y, B, np.array([0.5]), accuracy="strict", backend="CPU"), k @ B)
    over_i = tw.Genred("Exp(-SqDist(x,y)/s)", ALIASES, "Sum")
    close(over_i(X, Y, B, 0.5), k.sum(0)[:, None])


def test_forms_of_declarations() -> None:
    for aliases in [["x=Vi(0,2)", "y = Vj(1,2)"], ["Vi(2)", "Vj(2)"], ["Var(0,2,0)", "Var(1,2,1)"], []]:
        formula = "SqDist(x,y)" if "x=Vi(0,2)" in aliases else "SqDist(Vi(0,2),Vj(1,2))"
        close(tw.Genred(formula, aliases, axis=1)(X, Y), DIST.sum(1)[:, None])


def test_reductions_with_k_and_weights() -> None:
    order = np.argsort(DIST, 1, kind="stable")
    close(tw.Genred("SqDist(x,y)", ALIASES[:2], "ArgKMin", axis=1, opt_arg=3)(X, Y), order[:, :3])
    values, indices = tw.Genred("SqDist(x,y)", ALIASES[:2], "Min_ArgMin", axis=1)(X, Y)
    close(indices, order[:, :1])
    close(values, DIST.min(1)[:, None])
    e = np.exp(-DIST)
    soft = tw.Genred("-SqDist(x,y)", ALIASES[:3], "SumSoftMaxWeight", axis=1, formula2="b")
    close(soft(X, Y, B), e @ B / e.sum(1)[:, None])
    weighted = tw.Genred("-SqDist(x,y)", ALIASES[:3], "LogSumExp", axis=1, formula2="b*b")
    close(weighted(X, Y, B), np.log(e @ B**2))


def test_helpers() -> None:
    close(generic_sum("SqDist(x,y)", "a = Vi(1)", *ALIASES[:2])(X, Y), DIST.sum(1)[:, None])
    close(generic_sum("SqDist(x,y)", "a = Vj(1)", *ALIASES[:2])(X, Y), DIST.sum(0)[:, None])
    close(generic_logsumexp("SqDist(x,y)", "a = Vi(1)", *ALIASES[:2])(X, Y), np.log(np.exp(DIST).sum(1))[:, None])
    close(generic_argmin("SqDist(x,y)", "a = Vi(1)", *ALIASES[:2])(X, Y), DIST.argmin(1)[:, None])
    close(generic_argkmin("SqDist(x,y)", "a = Vi(2)", *ALIASES[:2])(X, Y), DIST.argsort(1)[:, :2])


def test_pickles() -> None:
    genred = tw.Genred("SqDist(x,y)", ALIASES[:2], "ArgKMin", axis=1, opt_arg=3, use_double_acc=True)
    again = pickle.loads(pickle.dumps(genred))
    assert repr(again) == repr(genred)
    close(again(X, Y), np.asarray(genred(X, Y)))


@pytest.mark.parametrize(
    "formula, position, word",
    [
        ("Exq(x)", 0, "did you mean `Exp`"),
        ("Exp(x, y)", 0, "takes 1 arguments"),
        ("SqDist(x, b)", 0, "dimension"),
        ("Exp(-SqDist(x,y)", 16, "is expected"),
        ("x + ", 4, "expected"),
        ("x @ y", 2, ""),
        ("z * x", 0, "z"),
        ("Elem(x, 7)", 0, ""),
        ("", 0, ""),
    ],
)
def test_bad_formulas_point_at_the_place(formula: str, position: int, word: str) -> None:
    with pytest.raises(tw.FormulaError) as caught:
        tw.Genred(formula, ALIASES)
    assert word in str(caught.value)
    assert caught.value.position == position


def test_names_that_are_not_there_say_why() -> None:
    for formula, why in [("GaussKernel(x,y)", "gone from KeOps"), ("ComplexMult(x,y)", "complex")]:
        with pytest.raises(NotImplementedError, match=why):
            tw.Genred(formula, ALIASES)


@pytest.mark.parametrize("text", ["(" * 10_000 + "x", "Exp(" * 10_000 + "x" + ")" * 10_000])
def test_deep_nesting_is_an_error(text: str) -> None:
    with pytest.raises(tw.FormulaError, match="nest|deep"):
        tw.Genred(text, ALIASES)


def test_signs_do_not_nest() -> None:
    x, y = tw.ones((2, 2)), tw.ones((4, 2))
    even = tw.Genred("-" * 10_000 + "SqDist(x,y)", ALIASES[:2], axis=1)
    assert even(x, y).tolist() == [[0.0], [0.0]]


def test_wrong_arrays_are_named() -> None:
    genred = tw.Genred("SqDist(x,y)", ALIASES[:2], axis=1)
    with pytest.raises(ValueError, match="y: .*3 components, not 2"):
        genred(X, B)
    with pytest.raises(TypeError, match="float64 and float32|float32 and float64"):
        genred(X, Y.astype("float32"))
    with pytest.raises(ValueError, match="takes 2 arrays, not 1"):
        genred(X)
    with pytest.raises(ValueError, match="rows of i"):
        tw.Genred("x + z", ["x = Vi(2)", "z = Vi(2)"], axis=1)(X, Y)
    with pytest.raises(TypeError, match="real floats"):
        genred(X, np.zeros((N, D), dtype=int))
    with pytest.raises(TypeError):
        genred(X, "y")
    with pytest.raises(ValueError, match="axis|over"):
        tw.Genred("SqDist(x,y)", ALIASES[:2], axis=2)
    with pytest.raises(tw.FormulaError, match="no reduction"):
        tw.Genred("SqDist(x,y)", ALIASES[:2], "Summ")
