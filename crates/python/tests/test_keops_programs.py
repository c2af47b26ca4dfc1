"""What users of KeOps write, as they write it, against dense NumPy in float64, on every device."""

import pickle

import numpy as np
import pytest

import tilework as tw
from tilework import Genred, KernelSolve, LazyTensor, Pm, Vi, Vj
from tilework.pairs import Var

# Every test runs on each device, where its arrays are made.
pytestmark = pytest.mark.usefixtures("device")

M, N, D = 5, 7, 3
rng = np.random.default_rng(11)
X, Y, B = rng.normal(size=(M, D)), rng.normal(size=(N, D)), rng.normal(size=(N, 2))
XI, YJ = X[:, None], Y[None]
D2 = ((XI - YJ) ** 2).sum(-1)
ALIASES = ["x = Vi(3)", "y = Vj(3)"]


def close(got: object, expected: object, tolerance: float = 1e-10) -> None:
    got, expected = np.asarray(got), np.asarray(expected)
    assert got.shape == expected.shape
    np.testing.assert_allclose(got, expected, rtol=tolerance, atol=tolerance)


def gauss() -> LazyTensor:
    return (-Vi(X).sqdist(Vj(Y))).exp()


def test_numbers_take_the_dtype_of_the_arrays() -> None:
    x, y = Vi(X.astype("float32")), Vj(Y.astype("float32"))
    for three in [Pm([0.5, 1, 2]), LazyTensor([0.5, 1, 2]), LazyTensor([0.5, 1, 2], axis=2)]:
        result = (three * x * y).sum(axis=1)
        assert result.dtype == tw.float32
        close(result, ([0.5, 1, 2] * XI * YJ).sum(1), 1e-5)
    for one in [Pm(0.5), Pm(np.float64(0.5)), LazyTensor(0.5, axis=2), 0.5]:
        assert ((one * x) * y).sum(axis=1).dtype == tw.float32
        assert (Vi(X) * one * Vj(Y)).sum(axis=1).dtype == tw.float64
    # The gradient towards such a parameter has its own shape, and the dtype of the rest.
    s = Pm([0.5, 1, 2])
    _, (gradient,) = (s * x * y).value_and_grad("sum", [s], axis=1)
    assert gradient.dtype == tw.float32
    close(gradient, (XI * YJ).sum((0, 1)), 1e-5)
    # An array has its dtype.
    with pytest.raises(TypeError, match="float64 and float32"):
        Pm(np.ones(3)) * x


def test_constructors_take_tensors_and_variables() -> None:
    k = gauss()
    assert repr(LazyTensor(k)) == repr(k)
    assert repr(Var(X, 3, 0)) == repr(Vi(X)) and repr(Var(X, None, 1)) == repr(Vj(X))
    assert repr(Var(1, 3, 1)) == repr(Vj(1, 3))
    with pytest.raises(ValueError, match="3 components, not 4"):
        Var(X, 4, 0)
    with pytest.raises(ValueError, match="category 3"):
        Var(0, 3, 3)


def test_the_product_takes_keywords() -> None:
    k, dense = gauss(), np.exp(-D2)
    out = tw.empty((M, 2), dtype="float64")
    assert k.__matmul__(B, out=out, backend="CPU") is out
    close(out, dense @ B)
    close(LazyTensor.__matmul__(k, B, sum_scheme="kahan_scheme", device_id=0), dense @ B)
    close(k.matmul(Vj(B), use_double_acc=True), dense @ B)
    close(k @ B, dense @ B)
    close(X.T @ k, X.T @ dense)
    close(k @ Vj(B), dense @ B)
    with pytest.raises(TypeError, match="str is not"):
        k @ "b"


def test_results_go_where_they_are_told() -> None:
    k, dense = gauss(), np.exp(-D2).sum(1, keepdims=True)
    narrow = tw.zeros((M, 2), dtype="float64")
    k.sum(axis=1, out=narrow[:, :1])
    close(narrow[:, :1], dense)
    with pytest.raises(ValueError, match="out takes one array"):
        k.min_argmin(axis=1, out=narrow)
    # A result that would not fit is refused before there is any work.
    told: list[float] = []
    for call in (
        lambda: k.sum(axis=1, out=narrow, progress=told.append),
        lambda: k.argmin(axis=1, out=narrow[:, :1], progress=told.append),
        lambda: k.matmul(B, out=narrow[:, :1], progress=told.append),
        lambda: Genred("SqDist(x,y)", ["x=Vi(3)", "y=Vj(3)"])(X, Y, out=narrow, progress=told.append),
    ):
        with pytest.raises(ValueError, match="is wanted, not float64 of"):
            call()
    assert not told


def test_settable_attributes() -> None:
    k = gauss()
    k.backend, k.ranges = "CPU", None
    with pytest.raises(NotImplementedError, match="block-sparse"):
        k.ranges = (1, 2, 3, 4, 5, 6)
    with pytest.raises(ValueError, match="TPU"):
        k.backend = "TPU"


@pytest.mark.parametrize("method", ["exp1j", "real2complex", "imag2complex", "softdtw_sqdist"])
def test_what_is_not_there_yet_says_so(method: str) -> None:
    with pytest.raises(NotImplementedError, match=method):
        getattr(Vi(X), method)()


def test_complex_numbers_are_refused_for_now() -> None:
    z = X[:, None].astype("complex128")
    for wrong in [
        lambda: LazyTensor(z),
        lambda: LazyTensor(1j),
        lambda: Vi(X) * 1j,
        lambda: z * Vj(Y),
        lambda: gauss() @ B.astype("complex64"),
        lambda: Genred("x*y", ALIASES)(X, Y + 1j),
    ]:
        with pytest.raises(NotImplementedError, match="not supported yet"):
            wrong()


def test_components_stay_as_an_axis() -> None:
    close((Vi(X) * Vj(Y)).sum(-1, keepdim=True).sum(1), (XI * YJ).sum(-1).sum(1)[:, None])
    with pytest.raises(ValueError, match="does not stay"):
        gauss().sum(axis=1, keepdims=True)


def test_a_tensor_is_no_sequence() -> None:
    for wrong in [iter, list, len]:
        with pytest.raises(TypeError):
            wrong(gauss())


def test_reductions_by_name_however_it_is_written() -> None:
    k = Vi(X).sqdist(Vj(Y))
    close(k.reduction("Sum", axis=1), D2.sum(1)[:, None])
    close(k.reduction("ArgKMin", opt_arg=2, dim=1), np.argsort(D2, 1)[:, :2])
    weights = k.reduction("LogSumExp", other=Vj(B**2), axis=1, sum_scheme="auto")
    close(weights, np.log(np.exp(D2) @ B**2))
    for name in ["KMin_ArgKMin", "KMinArgKMin", "kmin_argkmin"]:
        values, indices = Genred("SqDist(x,y)", ALIASES, name, axis=1, opt_arg=2)(X, Y)
        close(values, np.sort(D2, 1)[:, :2])
        close(indices, np.argsort(D2, 1)[:, :2])
    with pytest.raises(ValueError, match="did you mean `ArgMin`"):
        Genred("SqDist(x,y)", ALIASES, "ArgMinn")


def test_exponentials_of_vectors() -> None:
    def exact(f: np.ndarray, axis: int) -> np.ndarray:
        top = f.max(axis, keepdims=True)
        return (top + np.log(np.exp(f - top).sum(axis, keepdims=True))).squeeze(axis)

    x, y = Vi(X), Vj(Y)
    f = 300 * XI * YJ
    close((300 * x * y).logsumexp(axis=1), exact(f, 1))
    close((300 * x * y).logsumexp(axis=0), exact(f, 0))
    close(Genred("300*x*y", ALIASES, "LogSumExp", axis=1)(X, Y), exact(f, 1))
    value, (towards_x, towards_y) = (x * y).value_and_grad("logsumexp", [x, y], axis=1)
    share = np.exp(XI * YJ - exact(XI * YJ, 1)[:, None])
    close(value, exact(XI * YJ, 1))
    close(towards_x, (share * YJ).sum(1))
    close(towards_y, (share * XI).sum(0))
    assert "by components" in (x * y).explain("logsumexp")
    with pytest.raises(ValueError, match="takes a number"):
        (x * y).sumsoftmaxweight(y, axis=1)


def test_solvers_keep_what_they_were_made_with() -> None:
    dense = np.exp(-((YJ - Y[:, None]) ** 2).sum(-1)) + 0.1 * np.eye(N)
    for unknown in ["b", "Var(2,2,1)", "Vj(2,2)"]:
        solver = KernelSolve("Exp(-SqDist(x,y)) * b", [*ALIASES, "b = Vj(2)"], unknown, axis=1, use_double_acc=True)
        for same in [solver, pickle.loads(pickle.dumps(solver))]:
            close(same(Y, Y, B, alpha=0.1, eps=1e-12), np.linalg.solve(dense, B), 1e-8)
    inline = KernelSolve("Exp(-SqDist(x,y)) * Var(2,2,1)", ALIASES, "Var(2,2,1)", axis=1)
    close(inline(Y, Y, B, alpha=0.1, eps=1e-12), np.linalg.solve(dense, B), 1e-8)
    genred = Genred("SqDist(x,y)", ALIASES, "KMin", axis=1, opt_arg=2, sum_scheme="auto")
    close(pickle.loads(pickle.dumps(genred))(X, Y), np.sort(D2, 1)[:, :2])


@pytest.mark.parametrize("wrong", [-1, 2])
def test_axes_of_text_are_two(wrong: int) -> None:
    for make in [lambda: Genred("x*y", ALIASES, axis=wrong), lambda: KernelSolve("x*y", ALIASES, "y", axis=wrong)]:
        with pytest.raises(IndexError, match="is not 0 .over i. or 1"):
            make()
    for k in [0, -1]:
        for call in [lambda k=k: Vi(X).sqdist(Vj(Y)).Kmin(k, axis=1), lambda k=k: Genred("x*y", ALIASES, "Kmin", opt_arg=k)]:
            with pytest.raises(ValueError, match=f"K = {k} is less than 1"):
                call()


def test_messages_show_no_numbers_of_our_own() -> None:
    x, y = Vi(X), Vj(Y[:, :2])
    for wrong in [lambda: x - y, lambda: x.sqdist(y), lambda: x.matvecmult(y), lambda: x.elem(5)]:
        with pytest.raises(ValueError) as caught:
            wrong()
        assert "92233720" not in str(caught.value) and "Vi(3)" in str(caught.value)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize("n", [300, 3_000, 70_000])
def test_gradients_of_extremes_in_narrow_types(dtype: str, n: int) -> None:
    kind = getattr(tw, dtype)
    x = tw.asarray(rng.normal(size=(4, 2)), dtype=kind)
    y = tw.asarray(rng.normal(size=(n, 2)), dtype=kind)
    X2, Y2 = (np.asarray(v.astype(tw.float64)) for v in (x, y))
    xi = Vi(x)
    _, (gradient,) = xi.sqdist(Vj(y)).value_and_grad("min", [xi], axis=1)
    at = np.asarray(xi.sqdist(Vj(y)).argmin(axis=1))[:, 0]
    np.testing.assert_allclose(np.asarray(gradient.astype(tw.float64)), 2 * (X2 - Y2[at]), rtol=2e-2, atol=1e-3)
    _, (gradient,) = xi.sqdist(Vj(y)).value_and_grad("mean", [xi], axis=1)
    exact = 2 * (X2[:, None] - Y2).mean(1)
    np.testing.assert_allclose(np.asarray(gradient.astype(tw.float64)), exact, rtol=5e-2, atol=1e-2)


@pytest.mark.parametrize("size", [1e-30, 1.0, 1e30])
def test_systems_of_any_size_are_solved(size: float) -> None:
    x = np.linspace(0, 1, 40, dtype="float32")[:, None]
    k = (-20 * Vi(x).sqdist(Vj(x))).exp()
    dense = np.exp(-20 * (x - x.T).astype("float64") ** 2) + np.eye(40)
    b = np.sin(7 * x)
    close(np.asarray(k.solve((b * size).astype("float32"), alpha=1.0)) / size, np.linalg.solve(dense, b), 1e-4)


def test_only_false_stops_and_steps_of_a_system_are_shown(
    device: tw.device, capsys: pytest.CaptureFixture[str]
) -> None:
    x = rng.uniform(size=(40 if device == tw.device("reference") else 2_000, 2))
    k = (-50 * Vi(x).sqdist(Vj(x))).exp()
    told: list[float] = []

    def counts(done: float) -> int:
        told.append(done)
        return 0

    a = k.solve(x, alpha=1e-2, tol=1e-10, progress=counts)
    assert told == sorted(told) and told[-1] == 1.0
    close(k @ a + 1e-2 * a, x, 1e-6)
    k.solve(x, alpha=1e-2, progress=True)
    assert "100 %" in capsys.readouterr().err
    with pytest.raises(KeyboardInterrupt):
        k.solve(x, alpha=0.0, tol=1e-300, maxiter=10_000, progress=lambda done: False)


@pytest.mark.parametrize("alpha", [0.1, np.array([0.1]), np.float32(0.1), tw.asarray([0.1])])
def test_numbers_of_a_system_may_be_arrays_of_one(alpha: object) -> None:
    k = (-Vi(Y).sqdist(Vj(Y))).exp()
    dense = np.exp(-((Y[:, None] - Y) ** 2).sum(-1)) + 0.1 * np.eye(N)
    close(k.solve(B, alpha=alpha, eps=np.array(1e-9)), np.linalg.solve(dense, B), 1e-5)
    with pytest.raises(ValueError, match="alpha: a number is expected, not 2"):
        k.solve(B, alpha=np.ones(2))
    with pytest.raises(TypeError, match="alpha: str is not"):
        k.solve(B, alpha="much")


def test_what_a_map_is_linear_in_is_no_argument() -> None:
    x, y, u = Vi(0, 3), Vj(1, 3), Vi(2, 3)
    k = (-x.sqdist(y)).exp()
    laplacian = k.grad(x, 1).grad(x, u).trace_operator(u).sum_reduction(axis=1)
    expected = ((4 * D2 - 2 * D) * np.exp(-D2)).sum(1, keepdims=True)
    close(laplacian(X, Y), expected)
    a, c, v = Vi(X), Vj(Y), Vi(0, 3)
    close((-a.sqdist(c)).exp().grad(a, 1).grad(a, v).trace_operator(v).sum(axis=1), expected)


def test_an_argument_is_one_thing() -> None:
    for other in [Vj(0, 3), Vi(0, 1), Pm(0, 3)]:
        with pytest.raises(ValueError, match="argument 0 is used both as Vi"):
            Vi(0, 3) - other
    later = Vi(0, 3).sqdist(Vj(1, 3)).sum(axis=1)
    with pytest.raises(TypeError, match=r"sum: takes 2 arrays, for Vi\(0,3\), Vj\(1,3\), not 1"):
        later(X)
    with pytest.raises(TypeError, match="no array before it is called with 2 arrays"):
        np.asarray(later)
