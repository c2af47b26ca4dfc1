"""Systems, gradients, partial reductions, progress and interruption, on every device."""

import copy
import inspect
import json
import pickle
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilework as tw
from tilework import Genred, KernelSolve, LazyTensor, Partial, Pm, Vi, Vj
from tilework.pairs import SolveError

# Every test runs on each device, where its arrays are made.
pytestmark = pytest.mark.usefixtures("device")

rng = np.random.default_rng(9)
M, N, D = 6, 9, 2
X, Y, B, S = rng.normal(size=(M, D)), rng.normal(size=(N, D)), rng.normal(size=(N, 3)), np.array([0.7])


def close(got: object, expected: object, tolerance: float = 1e-10) -> None:
    np.testing.assert_allclose(np.asarray(got), np.asarray(expected), rtol=tolerance, atol=tolerance)


# Systems.


def system(n: int, width: float = 0.2) -> tuple[LazyTensor, np.ndarray, np.ndarray]:
    x = rng.uniform(size=(n, 2))
    k = (-Vi(x).sqdist(Vj(x)) / width).exp()
    return k, np.exp(-((x[:, None] - x) ** 2).sum(-1) / width), x


def test_solve_is_what_a_dense_solver_gives() -> None:
    k, dense, x = system(60)
    b = rng.normal(size=(60, 3))
    exact = np.linalg.solve(dense + 0.1 * np.eye(60), b)
    close(k.solve(b, alpha=0.1, tol=1e-12), exact, 1e-8)
    close(k.solve(Vi(b), alpha=0.1, eps=1e-12), exact, 1e-8)
    close(k.solve(b[:, 0], alpha=0.1, tol=1e-12), exact[:, 0], 1e-8)
    aliases = ["x = Vi(2)", "y = Vj(2)", "b = Vj(3)"]
    solver = KernelSolve("Exp(-SqDist(x,y)/s)*b", [*aliases, "s = Pm(1)"], "b", axis=1)
    close(solver(x, x, b, 0.2, alpha=0.1, tol=1e-12), exact, 1e-8)
    unknown = Vj(0, 3)
    close((k * unknown).solve(b, var=unknown, alpha=0.1, tol=1e-12), exact, 1e-8)


def test_solve_fails_with_the_residual() -> None:
    k, _, _ = system(60)
    with pytest.raises(SolveError, match="residual is") as caught:
        k.solve(rng.normal(size=(60, 1)), alpha=0.0, maxiter=2)
    assert caught.value.residual > 1e-6
    assert caught.value.iterations == 2
    assert caught.value.x.shape == (60, 1)
    with pytest.raises(SolveError, match="not positive"):
        (-k).solve(np.ones((60, 1)))
    with pytest.raises(ValueError, match="none of the variables"):
        KernelSolve("x*b", ["x = Vi(1)", "b = Vj(1)"], "c")


def test_scipy_solves_and_finds_eigenvalues() -> None:
    linalg = pytest.importorskip("scipy.sparse.linalg")
    k, dense, _ = system(50)
    close(np.sort(linalg.eigsh(k.aslinearoperator(), k=3)[0]), np.linalg.eigvalsh(dense)[-3:], 1e-8)
    b = rng.normal(size=50)
    shifted = linalg.aslinearoperator(k) + 0.5 * linalg.aslinearoperator(np.eye(50))
    found, status = linalg.cg(shifted, b, rtol=1e-10)
    assert status == 0
    close(found, np.linalg.solve(dense + 0.5 * np.eye(50), b), 1e-7)


# Gradients.


def build(x: LazyTensor, y: LazyTensor, s: LazyTensor, kind: str) -> LazyTensor:
    d = x.sqdist(y) * s
    return {"vector": ((x - y) * s).sin(), "scalar": d + (x | y), "gauss": (-d).exp()}[kind]


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize(
    "name, kind, options",
    [
        ("sum", "gauss", {}), ("sum", "vector", {}), ("mean", "vector", {}), ("min", "vector", {}),
        ("max", "scalar", {}), ("Kmin", "vector", {"K": 2}), ("logsumexp", "scalar", {}),
        ("prod", "gauss", {}), ("Kmax", "scalar", {"K": 3}), ("max_sumshiftexp", "scalar", {}),
    ],
)  # fmt: skip
def test_gradients_against_differences(name: str, kind: str, options: dict, axis: int) -> None:
    arrays = [X, Y, S]

    def value(arrays: list[np.ndarray]) -> np.ndarray:
        f = build(Vi(arrays[0]), Vj(arrays[1]), Pm(arrays[2]), kind)
        return np.asarray(getattr(f, name)(axis=axis, **options))

    x, y, s = Vi(X), Vj(Y), Pm(S)
    f = build(x, y, s, kind)
    e = rng.normal(size=value(arrays).shape)
    both = f.value_and_grad(name, [x, y, s], e, axis=axis, **options)
    close(both[0], value(arrays))
    h = 1e-6
    for position, variable in enumerate([x, y, s]):
        expected = np.zeros_like(arrays[position])
        for at in np.ndindex(expected.shape):
            moved = [a.copy() for a in arrays]
            moved[position][at] += h
            up = (value(moved) * e).sum()
            moved[position][at] -= 2 * h
            expected[at] = (up - (value(moved) * e).sum()) / (2 * h)
        close(f.reduction_grad(name, variable, e, axis=axis, **options), expected, 1e-6)
        close(both[1][position], expected, 1e-6)


def test_second_order_against_differences() -> None:
    e = rng.normal(size=(M, 1))
    u = rng.normal(size=(M, D))

    def slope(x: np.ndarray) -> np.ndarray:
        v = Vi(x)
        return np.asarray(build(v, Vj(Y), Pm(S), "gauss").reduction_grad("sum", v, e, axis=1))

    x = Vi(X)
    # The gradient of <u, gradient> is the Hessian times u: formulas all the way.
    first = build(x, Vj(Y), Pm(S), "gauss").grad(x, Vi(e))
    hessian = (first | Vi(u)).reduction_grad("sum", x, np.ones((M, 1)), axis=1)
    h = 1e-6
    close(hessian, (slope(X + h * u) - slope(X - h * u)) / (2 * h), 1e-6)


def test_value_and_grad_without_an_incoming_gradient() -> None:
    x, y = Vi(X), Vj(Y)
    for name in ["sum", "logsumexp"]:
        f = x.sqdist(y)
        value, (gx, gy) = f.value_and_grad(name, [x, y], axis=1)
        close(value, getattr(f, name)(axis=1))
        ones = np.ones((M, 1))
        close(gx, f.reduction_grad(name, x, ones, axis=1))
        close(gy, f.reduction_grad(name, y, ones, axis=1))
    with pytest.raises(ValueError, match="towards a variable"):
        x.sqdist(y).reduction_grad("sum", x + 1, ones, axis=1)
    with pytest.raises(ValueError, match="incoming gradient"):
        x.sqdist(y).reduction_grad("sum", x, np.ones(3), axis=1)


def test_gradients_of_text_are_those_of_tensors() -> None:
    x, y = X[None], np.stack([Y, 2 * Y, Y - 1])
    p = np.array([[0.5], [1.5], [2.5]])
    formula, weight = "p * SqDist(x, y)", "Concat(x, y)"
    text = tw.Genred(formula, ["x = Vi(2)", "y = Vj(2)", "p = Pm(1)"], "SumSoftMaxWeight", axis=1, formula2=weight)
    tensors = Vi(x), Vj(y), Pm(p)
    k, w = tensors[2] * tensors[0].sqdist(tensors[1]), tensors[0].concat(tensors[1])
    e = np.random.default_rng(3).normal(size=np.asarray(text(x, y, p)).shape)
    value, gradients = text.value_and_grad(x, y, p, variables=["y", "x", "p"], e=e)
    close(value, text(x, y, p))
    for got, variable in zip(gradients, [tensors[1], tensors[0], tensors[2]], strict=True):
        close(got, k.reduction_grad("sumsoftmaxweight", variable, e, axis=2, weight=w))
    with pytest.raises(ValueError, match="no variable `z`"):
        text.value_and_grad(x, y, p, variables=["z"])


# Partial reductions.


REDUCTIONS = [
    "Sum", "Mean", "Prod", "Any", "All", "Count", "Min", "Max", "ArgMin", "ArgMax", "Min_ArgMin", "Max_ArgMax", "KMin",
    "ArgKMin", "KMin_ArgKMin", "KMax", "ArgKMax", "KMax_ArgKMax", "LogSumExp", "LogSumExpWeight", "Max_SumShiftExp",
    "Max_SumShiftExpWeight", "SumSoftMaxWeight",
]  # fmt: skip
ONE_NUMBER = ["LogSumExpWeight", "Max_SumShiftExp", "Max_SumShiftExpWeight", "SumSoftMaxWeight"]


@pytest.mark.parametrize("batches", [0, 1])
@pytest.mark.parametrize("kind", ["number", "vector"])
@pytest.mark.parametrize("name", REDUCTIONS)
def test_partials_merge_in_any_grouping(name: str, kind: str, batches: int) -> None:
    if kind == "vector" and name in ONE_NUMBER:
        pytest.skip("of numbers only")
    x = np.stack([X, X - 1]) if batches else X

    def tensor(first: int, last: int) -> tuple[LazyTensor, dict[str, object]]:
        y = Vj(Y[first:last])
        options = {"K": 3} if "K" in name else {"weight": y.concat(-y)} if "Weight" in name else {}
        return (Vi(x).sqdist(y) if kind == "number" else Vi(x) * y), options

    def part(first: int, last: int) -> Partial:
        f, options = tensor(first, last)
        return f.partial(name, axis=1 + batches, offset=first, **options)

    f, options = tensor(0, N)
    whole = f.reduction(name, axis=1 + batches, **options)
    cuts = [part(0, 2), part(2, 2), part(2, 7), part(7, 9)]
    left = cuts[0].merge(cuts[1]).merge(cuts[2]).merge(cuts[3]).finish()
    right = cuts[3].merge(cuts[2].merge(cuts[0])).merge(cuts[1]).finish()
    again = Partial.from_arrays(**cuts[3].arrays()).merge(cuts[2]).merge(cuts[0]).finish()
    for got in [left, right, again]:
        for a, b in zip(*[r if isinstance(r, tuple) else (r,) for r in (got, whole)], strict=True):
            assert a.shape == b.shape
            (np.testing.assert_array_equal if a.dtype == "int64" else close)(np.asarray(a), np.asarray(b))


def test_partials_travel_as_plain_arrays() -> None:
    part = Vi(X).sqdist(Vj(Y)).partial("argKmin", axis=1, offset=100, K=2)
    state = part.arrays()
    assert state["version"] == 1 and state["reduction"] == "ArgKMin" and state["K"] == 2
    assert state["values"].shape == state["indices"].shape == (M, 2) and state["count"] == N
    plain = {k: np.asarray(v) if k in ("values", "indices") else v for k, v in state.items()}
    for again in [Partial.from_arrays(**plain), pickle.loads(pickle.dumps(part))]:
        close(again.finish(), np.asarray(part.finish()))
    assert np.asarray(part.finish()).min() >= 100
    with pytest.raises(ValueError, match="version"):
        Partial.from_arrays(**{**state, "version": 2})
    with pytest.raises(ValueError, match="real floats, not in int8"):
        Partial.from_arrays(**{**state, "dtype": "int8"})
    sums = (Vi(X) * Vj(Y)).partial("sum", axis=1).arrays()
    with pytest.raises(ValueError, match="Sum has no indices"):
        Partial.from_arrays(**{**sums, "indices": np.zeros(sums["values"].shape, "int64")})
    with pytest.raises(ValueError, match="different reductions"):
        part.merge(Vi(X).sqdist(Vj(Y)).partial("sum", axis=1))
    with pytest.raises(ValueError, match="offset"):
        Vi(X).sqdist(Vj(Y)).partial("sum", axis=1, offset=-1)


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16"])
@pytest.mark.parametrize("name", ["mean", "argKmin", "sumsoftmaxweight"])
def test_partials_are_kept_in_files_without_pickles(name: str, dtype: str, tmp_path: Path) -> None:
    x, y = tw.asarray(X.astype(dtype)), tw.asarray(Y.astype(dtype))
    options = {"K": 2} if name == "argKmin" else {"weight": Vj(y)} if name == "sumsoftmaxweight" else {}
    part = Vi(x).sqdist(Vj(y)).partial(name, axis=1, offset=7, **options)
    state = part.arrays()
    arrays = {key for key, value in state.items() if isinstance(value, tw.Array)}
    assert arrays == {"values", "indices"} & set(state) and ("indices" in state) == (name == "argKmin")
    plain = {key: value for key, value in state.items() if key not in arrays}
    assert json.loads(json.dumps(plain)) == plain and plain["dtype"] == dtype
    np.savez(tmp_path / "part.npz", **state)
    with np.load(tmp_path / "part.npz", allow_pickle=False) as found:
        again = Partial.from_arrays(**found)
    assert again.arrays().keys() == state.keys()
    assert {key: again.arrays()[key] for key in plain} == plain
    close(again.finish(), np.asarray(part.finish()))


# Long work.


def long_tensor() -> LazyTensor:
    """Work for many minutes, unless it is stopped."""
    x = tw.asarray(rng.normal(size=(600_000, 3)).astype("float32"))
    return (-Vi(x).sqdist(Vj(x)).sqrt()).exp().sin() + Vi(x).sqdist(Vj(x)).tanh().erf()


def test_progress_is_told_and_can_stop(device: tw.device) -> None:
    x = rng.normal(size=(300 if device == tw.device("reference") else 3_000, 3)).astype("float32")
    told: list[float] = []
    k = (-Vi(x).sqdist(Vj(x))).exp()
    close(k.sum(axis=1, progress=told.append), k.sum(axis=1), 1e-6)
    assert told and told[-1] == 1.0 and told == sorted(told)
    told.clear()
    with pytest.raises(KeyboardInterrupt):
        long_tensor().sum(axis=1, progress=lambda done: bool(told.append(done)))
    assert len(told) == 1 and told[0] < 1


def test_a_bar_is_drawn(capsys: pytest.CaptureFixture[str]) -> None:
    x = rng.normal(size=(500, 3))
    Vi(x).sqdist(Vj(x)).sum(axis=1, progress=True)
    assert "100 %" in capsys.readouterr().err


def test_an_error_of_the_progress_function_is_raised() -> None:
    def broken(done: float) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        long_tensor().sum(axis=1, progress=broken)


def test_other_threads_run_meanwhile() -> None:
    tensor = long_tensor()
    ticks = 0
    stop = threading.Event()

    def count() -> None:
        nonlocal ticks
        while not stop.is_set():
            ticks += 1
            time.sleep(0.01)

    thread = threading.Thread(target=count)
    thread.start()
    # It goes on until the other thread has had its turns.
    with pytest.raises(KeyboardInterrupt):
        tensor.sum(axis=1, progress=lambda done: ticks <= 10)
    stop.set()
    thread.join()


def test_vectors_without_components_are_those_of_numpy() -> None:
    x, y, b = np.zeros((3, 0)), np.zeros((4, 0)), np.ones((4, 2))
    k = (-Vi(x).sqdist(Vj(y))).exp()
    dense = np.exp(-((x[:, None] - y) ** 2).sum(-1))
    np.testing.assert_array_equal(k @ b, dense @ b)
    np.testing.assert_array_equal(k.dense(), dense)
    np.testing.assert_array_equal(k.argKmin(2, axis=1), [[0, 1]] * 3)
    np.testing.assert_array_equal(Genred("SqDist(x,y)+1", ["x = Vi(0)", "y = Vj(0)"], axis=1)(x, y), [[4.0]] * 3)
    none = LazyTensor(x[:, None]) * LazyTensor(y[None])
    assert none.shape == (3, 4, 0) and none.dense().shape == (3, 4, 0)
    for axis, rows in [(1, 3), (0, 4)]:
        assert none.sum(axis=axis).shape == (rows, 0)
        assert none.argmin(axis=axis).shape == (rows, 0) and none.argmin(axis=axis).dtype == tw.int64
        assert [part.shape for part in none.Kmin_argKmin(2, axis=axis)] == [(rows, 2, 0)] * 2
        assert none.logsumexp(axis=axis).shape == (rows, 0)
        for name in ["sum", "argmin", "logsumexp", "KMin"]:
            options = {"K": 2} if name == "KMin" else {}
            part = none.partial(name, axis=axis, **options)
            part = tw.Partial.from_arrays(**part.merge(part).arrays())
            assert part.finish().shape == none.reduction(name, axis=axis, **options).shape
    assert (k @ np.ones((4, 0))).shape == (3, 0)
    xi = Vi(x)
    value, (towards_x,) = (xi.sqdist(Vj(y)) + 2).value_and_grad("sum", [xi], axis=1)
    assert value.tolist() == [[8.0]] * 3 and towards_x.shape == (3, 0)
    value, (towards_x,) = (xi * Vj(y)).value_and_grad("sum", [xi], e=np.ones((3, 0)), axis=1)
    assert value.shape == towards_x.shape == (3, 0)
    assert "nothing is computed" in none.explain("sum", axis=1)
    for wrong in [lambda: xi.max(-1), lambda: xi - Vj(np.ones((4, 2))), lambda: xi[0]]:
        with pytest.raises((ValueError, IndexError)):
            wrong()


def test_a_gradient_towards_another_variable_of_the_array_is_refused(device: tw.device) -> None:
    points = rng.normal(size=(3, 2)), rng.normal(size=(4, 2))
    # Of NumPy's arrays a card has copies.
    kinds = [tw.asarray] if device.type == "cuda" else [tw.asarray, np.asarray]
    for kind in kinds:
        towards_another_variable(*map(kind, points))


def towards_another_variable(x: Any, y: Any) -> None:
    xi = Vi(x)
    k = xi.sqdist(Vj(y))
    again = {"tensor": lambda: Vi(x), "view": lambda: LazyTensor(x[:, None, :])}
    for other in again.values():
        for wrong in [
            lambda: k.value_and_grad("sum", [other()], axis=1),
            lambda: k.reduction_grad("min", other(), np.ones((3, 1)), axis=1),
            lambda: k.grad(other(), 1),
            lambda: k.laplacian(other()),
        ]:
            with pytest.raises(ValueError, match="another variable of this array"):
                wrong()
    # An array that is used twice is read once.
    assert (Vi(x) * Vi(x) * Vj(y)).formula.count("Vi(1") == 0
    # What the formula does not have is no zero either.
    copies = [Vi(x + 1), Vi(x.tolist()), pickle.loads(pickle.dumps((k, xi)))[1], copy.deepcopy(xi)]
    for stranger in copies:
        with pytest.raises(ValueError, match="does not have this variable"):
            k.value_and_grad("sum", [stranger], axis=1)
    with pytest.raises(ValueError, match=r"towards the transposed tensor, x\.T"):
        k.T.value_and_grad("sum", [xi], axis=0)
    both = [k.value_and_grad("sum", [xi], axis=1), k.T.value_and_grad("sum", [xi.T], axis=0)]
    assert np.array_equal(both[0][1][0], both[1][1][0])
    # An argument that a formula does not use has a name, and a slope of zero.
    unused = tw.Genred("Grad(SqDist(x,y), z, e)", ["x = Vi(2)", "y = Vj(2)", "z = Vi(2)", "e = Vi(1)"], axis=1)
    assert not np.asarray(unused(x, y, x, np.ones((3, 1)))).any()


def test_incoming_gradients_have_the_shape_of_the_result() -> None:
    xi, yj = Vi(rng.normal(size=(3, 2))), Vj(rng.normal(size=(2, 2)))
    for e in [np.ones((2, 3)), np.ones(6), np.ones((3, 1)), np.ones((3, 2, 1))]:
        with pytest.raises(ValueError, match="the incoming gradient has shape"):
            (xi * yj).reduction_grad("sum", xi, e, axis=1)
    with pytest.raises(TypeError, match="the incoming gradient is float32"):
        (xi * yj).reduction_grad("sum", xi, np.ones((3, 2), "float32"), axis=1)


def test_tensors_travel_as_text_and_arrays() -> None:
    x, y = X.astype("float32"), Y.astype("float32")
    xi = Vi(x)
    k = (-xi.sqdist(Vj(y)) * Pm([0.5])).exp() * Vj(1, 3)
    assert copy.copy(k) is k
    for again in [pickle.loads(pickle.dumps(k)), copy.deepcopy(k)]:
        assert repr(again) == repr(k)
        np.testing.assert_array_equal(again.sum(axis=1)(B.astype("float32")), k.sum(axis=1)(B.astype("float32")))
    assert pickle.loads(pickle.dumps(Pm([0.5, 2]) * xi)).sum(axis=0).dtype == tw.float32
    with pytest.raises(ValueError, match="none of the variables"):
        tw._core._restore_lazy("Vi(0,3)", [], [], False)


def test_reductions_for_later_travel_too() -> None:
    for x, arrays in [(Vi(0, 2), [X]), (Vi(X), [])]:
        k, weight = x.sqdist(Vj(Y)), Vj(Y)
        for later in [
            k.Kmin(2, 1, call=False),
            k.sum(axis=1, sum_scheme="kahan_scheme", call=False),
            k.logsumexp(dim=1, weight=weight, call=False),
            k.reduction("SumSoftMaxWeight", weight, axis=1, call=False),
            k.reduction("ArgKMin", opt_arg=3, axis=1, call=False),
        ]:
            again = pickle.loads(pickle.dumps(later))
            assert repr(again) == repr(later)
            np.testing.assert_array_equal(again(*arrays), later(*arrays))


def test_counts_are_not_negative() -> None:
    k = (-Vi(X).sqdist(Vj(X))).exp()
    with pytest.raises(ValueError, match="dense: -1 rows"):
        k.dense(rows=-1)
    with pytest.raises(ValueError, match="solve: maxiter"):
        k.solve(X, maxiter=-1)
    x = Vi(X)
    with pytest.raises(TypeError, match="a list of tensors"):
        (x * Vj(Y)).value_and_grad("sum", x, axis=1)


def test_lists_take_the_dtype_of_arrays_behind_them() -> None:
    y = Y.astype("float32")
    text = tw.Genred("p * (x | y)", ["p = Pm(1)", "x = Vi(2)", "y = Vj(2)"], axis=1)
    for p in [[2.0], 2.0, (2,)]:
        assert text(p, X[:3].tolist(), y).dtype == tw.float32
    assert (Vi(0, 2) | Vj(1, 2)).sum(axis=1)(X[:3].tolist(), y).dtype == tw.float32


def test_methods_tell_their_signatures() -> None:
    k = Vi(np.ones((3, 1))) * Vj(np.ones((2, 1)))
    assert str(inspect.signature(k.Kmin)) == "(K, axis=None, **options)"
    assert str(inspect.signature(LazyTensor.Kmin)) == "(self, /, K, axis=None, **options)"


@pytest.mark.parametrize("name", [str(device) for device in tw.devices()])
def test_what_has_no_device_goes_where_the_arrays_are(name: str) -> None:
    x = tw.asarray([[0.0, 1.0], [2.0, 3.0], [1.0, 5.0]], dtype=tw.float32, device=name)
    ones, three = np.ones((3, 1), np.float32), np.ones(3, np.float32)
    k = (-Vi(x).sqdist(Vj(x))).exp()
    expected = k @ tw.ones((3, 1), dtype=tw.float32, device=name)
    results = [k @ ones, k @ three, k @ [1.0, 1.0, 1.0], (ones.T @ k).T, k.matmul(ones)]
    for result in results:
        assert str(result.device) == name and result.dtype == tw.float32
        np.testing.assert_allclose(np.asarray(result).reshape(-1, 1), np.asarray(expected), rtol=1e-6)
    times = Genred("x * p", ["x = Vi(2)", "p = Pm(1)"], axis=1)
    for two in (2.0, [2.0], np.full(1, 2, np.float32), np.float32(2)):
        doubled = times(x, two)
        assert str(doubled.device) == name and doubled.dtype == tw.float32
        assert times(x, two).tolist() == [[0.0, 2.0], [4.0, 6.0], [2.0, 10.0]]
        assert (Vi(x) * Pm(0, 1)).sum(axis=1)(two).tolist() == doubled.tolist()
    assert Genred("p * x", ["p = Pm(1)", "x = Vi(2)"], axis=1)(2.0, x).tolist() == doubled.tolist()
    weights = np.ones((1, 3, 1), np.float32)
    for made in (
        k.logsumexp(axis=1, weight=weights) - k.logsumexp(axis=1),
        (k * np.ones(1, np.float32)).sum(axis=1) - k.sum(axis=1),
        Vi(x).clamp(np.zeros(2, np.float32), 9).sum(axis=1) - x,
        k.solve(ones, alpha=1) - k.solve(tw.ones((3, 1), dtype=tw.float32, device=name), alpha=1),
        tw.LazyTensor.concatenate((Vi(x), np.zeros((3, 1, 1), np.float32))).sum(axis=1)[:, :2] - x,
    ):
        assert str(made.device) == name and not np.asarray(made).any()
    value, (slope,) = times.value_and_grad(x, 2.0, variables=["x"], e=np.ones((3, 2), np.float32))
    assert str(value.device) == str(slope.device) == name and slope.tolist() == [[2.0, 2.0]] * 3
