"""LazyTensor against dense NumPy in float64: every function, operator and reduction, on every device."""

import math

import numpy as np
import pytest

import tilework as tw
from tilework import LazyTensor, Pm, Vi, Vj

# Every test runs on each device, where its arrays are made.
pytestmark = pytest.mark.usefixtures("device")

M, N, D = 7, 11, 3
rng = np.random.default_rng(5)
X, Y, P = rng.uniform(0.1, 0.9, (M, D)), rng.uniform(0.1, 0.9, (N, D)), rng.uniform(0.5, 1.0, D)
XI, YJ = X[:, None, :], Y[None, :, :]


def tensors() -> tuple[LazyTensor, LazyTensor, LazyTensor]:
    return Vi(X), Vj(Y), Pm(P)


def close(got: object, expected: object, tolerance: float = 1e-12) -> None:
    got, expected = np.asarray(got), np.asarray(expected)
    assert got.shape == expected.shape
    np.testing.assert_allclose(got, expected, rtol=tolerance, atol=tolerance)


def dense(tensor: LazyTensor) -> np.ndarray:
    values = np.asarray(tensor.dense())
    return values if values.ndim == tensor.dim() else values[..., None]


def erf(x: np.ndarray) -> np.ndarray:
    return np.vectorize(math.erf)(x)


def keep(x: np.ndarray) -> np.ndarray:
    return x.sum(-1, keepdims=True)


# Every method of one tensor, with what NumPy says.
PLAIN = {
    "abs": np.abs, "acos": np.arccos, "acosh": lambda x: np.arccosh(x + 1), "asin": np.arcsin,
    "asinh": np.arcsinh, "atan": np.arctan, "atanh": np.arctanh, "cbrt": np.cbrt, "ceil": np.ceil,
    "cos": np.cos, "cosh": np.cosh, "erf": erf, "exp": np.exp, "exp2": np.exp2, "expm1": np.expm1,
    "floor": np.floor, "log": np.log, "log10": np.log10, "log1p": np.log1p, "log2": np.log2,
    "logical_not": np.logical_not, "negative": np.negative, "norm2": lambda x: np.sqrt(keep(x * x)),
    "normalize": lambda x: x / np.sqrt(keep(x * x)), "positive": np.positive,
    "reciprocal": np.reciprocal, "relu": lambda x: np.maximum(x, 0), "rint": np.rint,
    "rsqrt": lambda x: 1 / np.sqrt(x), "sigmoid": lambda x: 1 / (1 + np.exp(-x)), "sign": np.sign,
    "signbit": np.signbit, "sin": np.sin, "sinc": np.sinc, "sinh": np.sinh, "sqnorm2": lambda x: keep(x * x),
    "sinxdivx": lambda x: np.sin(x) / x, "sqrt": np.sqrt, "square": np.square,
    "step": lambda x: (x >= 0) * 1.0, "tan": np.tan, "tanh": np.tanh, "trunc": np.trunc,
    "xlogx": lambda x: x * np.log(x), "isnan": np.isnan, "isinf": np.isinf, "isfinite": np.isfinite,
    "auto_factorize": lambda x: x, "round": np.round,
}  # fmt: skip

# Every method of two tensors.
BINARY = {
    "add": np.add, "subtract": np.subtract, "multiply": np.multiply, "divide": np.divide,
    "floor_divide": np.floor_divide, "remainder": np.remainder, "hypot": np.hypot,
    "maximum": np.maximum, "minimum": np.minimum, "fmax": np.fmax, "fmin": np.fmin,
    "logaddexp": np.logaddexp, "atan2": np.arctan2, "equal": np.equal, "not_equal": np.not_equal,
    "less": np.less, "less_equal": np.less_equal, "greater": np.greater, "copysign": np.copysign,
    "greater_equal": np.greater_equal, "logical_and": np.logical_and, "logical_or": np.logical_or,
    "logical_xor": np.logical_xor, "nextafter": np.nextafter, "dot": lambda a, b: keep(a * b),
    "sqdist": lambda a, b: keep((a - b) ** 2), "power": np.power, "factorize": lambda a, b: a + 0 * b,
    "tensorprod": lambda a, b: (a[..., :, None] * b[..., None, :]).reshape(*np.broadcast_shapes(a.shape, b.shape)[:-1], -1),
    "concat": lambda a, b: np.concatenate(np.broadcast_arrays(a, b), -1),
    "difference_matrix": lambda a, b: (a[..., :, None] - b[..., None, :]).reshape(*np.broadcast_shapes(a.shape, b.shape)[:-1], -1),
}  # fmt: skip

# Methods that the tests below call with arguments of their own.
OTHER = {
    "clamp", "ifelse", "where", "mod", "clampint", "diffclampint", "fma", "elem", "extract",
    "elemt", "extractt", "one_hot", "sumt", "bspline", "weightedsqnorm", "weightedsqdist",
    "sqnormiso", "sqnormdiag", "symsqnorm", "matvecmult", "vecmatmult", "keops_kron",
    "keops_tensordot", "permute", "grad", "diff", "grad_matrix", "divergence", "laplacian",
    "trace_operator", "adjoint_operator", "sum_lin_operator",
    # Refused, in test_keops_programs.
    "exp1j", "imag2complex", "real2complex", "softdtw_sqdist",
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(PLAIN))
def test_functions_of_one_tensor(name: str) -> None:
    x, y, _ = tensors()
    both = x * y + 1 if name == "acosh" else x * y
    expected = PLAIN[name](XI * YJ)
    close(dense(getattr(both, name)()), expected)


@pytest.mark.parametrize("name", sorted(BINARY))
def test_functions_of_two_tensors(name: str) -> None:
    x, y, _ = tensors()
    expected = BINARY[name](XI, YJ)
    close(dense(getattr(x, name)(y)), np.broadcast_to(expected, (M, N, expected.shape[-1])))


def test_every_method_is_tested() -> None:
    methods = {
        name for name, value in vars(LazyTensor).items() if type(value).__name__ == "LazyMethod"
    }
    reductions = {name for name in methods if f"{name}_reduction" in methods or name.endswith("_reduction")}
    assert methods - reductions == (set(PLAIN) | set(BINARY) | OTHER) - {"power"}


def test_operators_on_either_side_with_numbers_and_arrays() -> None:
    x, y, p = tensors()
    close(dense(x + y - p), XI + YJ - P)
    for operand, value in [(2, 2), (0.5, 0.5), (np.float32(0.5), 0.5), (np.int64(3), 3), (P, P), (YJ, YJ)]:
        close(dense((x + operand) * y), (XI + value) * YJ)
        close(dense((operand + x) * y), (XI + value) * YJ)
        close(dense((x - operand) * y), (XI - value) * YJ)
        close(dense((operand - x) * y), (value - XI) * YJ)
        close(dense((x / operand) * y), (XI / value) * YJ)
        close(dense((operand / x) * y), (value / XI) * YJ)
        close(dense((operand * x) * y), (XI * value) * YJ)
        close(dense((x % operand) + (operand % x) * y), XI % value + (value % XI) * YJ)
        close(dense((x // operand) + (operand // x) * y), XI // value + (value // XI) * YJ)
    close(dense((tw.asarray(YJ) * x)), XI * YJ)
    close(dense([0.5, 1.0, 2.0] * x * y), np.array([0.5, 1.0, 2.0]) * XI * YJ)
    close(dense(-x + abs(y - 1) + +x), np.abs(YJ - 1) + 0 * XI)
    close(dense((x | y)), (XI * YJ).sum(-1, keepdims=True))
    close(dense((x < y) + 2 * (x <= 0.5) + (0.5 > y)), (XI < YJ) + 2.0 * (XI <= 0.5) + (YJ < 0.5))
    close(dense((x == x) + (x != y)), 1.0 + (XI != YJ))
    near, high = XI < YJ, YJ > 0.5
    close(dense(((x < y) & (y > 0.5)) + 2 * ((x < y) ^ (y > 0.5)) + 4 * ~(x < y)), (near & high) + 2 * (near ^ high) + 4 * ~near)
    for n in [2, 3, -1, 0.5, -0.5, 1.5]:
        close(dense(x**n * y), XI**n * YJ)
    close(dense(x**y), XI**YJ)
    close(dense(2**x * y), 2**XI * YJ)


def test_components_are_indexed_from_both_ends() -> None:
    x, y, _ = tensors()
    f, g = x * y, XI * YJ
    close(dense(f[1]), g[..., 1:2])
    close(dense(f[-1]), g[..., -1:])
    close(dense(f[:, :, 0]), g[..., :1])
    close(dense(f[..., 1:]), g[..., 1:])
    close(dense(f[:2]), g[..., :2])
    close(dense(f.elem(2)), g[..., 2:])
    close(dense(f.extract(1, 2)), g[..., 1:])
    for wrong in [3, -4, (0, 1), slice(0, 3, 2)]:
        with pytest.raises(IndexError):
            f[wrong]


def test_functions_with_arguments_of_their_own() -> None:
    x, y, p = tensors()
    f, g = x - y, XI - YJ
    close(dense(f.ifelse(x, y)), np.where(g >= 0, XI, YJ))
    close(dense((x < y).where(x, 2)), np.where(XI < YJ, XI, 2))
    close(dense(f.clamp(-0.1, 0.2)), np.clip(g, -0.1, 0.2))
    close(dense((3 * f).clampint(-1, 1)), np.clip(3 * g, -1, 1))
    close(dense((3 * f).diffclampint(-1, 1)), (np.abs(3 * g) <= 1) * 1.0)
    close(dense(f.mod(0.3)), g - 0.3 * np.floor(g / 0.3))
    close(dense(f.mod(0.3, 0.1)), g - 0.3 * np.floor((g - 0.1) / 0.3))
    close(dense(f.mod(modulus=0.3, offset=0.1)), g - 0.3 * np.floor((g - 0.1) / 0.3))
    close(dense(f.round(1)), np.round(g, 1))
    close(dense((x * 0 + y * 0 + 2.5).round()), np.full((M, N, D), 3.0))
    close(dense(x.fma(y, p)), XI * YJ + P)
    close(dense(f.weightedsqnorm(p)), keep(P * g * g))
    close(dense(x.weightedsqdist(y, p)), keep(P * g * g))
    close(dense(x.weightedsqdist(y, s=2.0)), 2 * keep(g * g))
    close(dense(f.sqnormiso(2.0)), 2 * keep(g * g))
    close(dense(f.sqnormdiag(p)), keep(P * g * g))
    matrix = rng.normal(size=(D, D))
    close(dense(f.symsqnorm(matrix.reshape(-1))), keep(g @ matrix.T * g))
    close(dense(Pm(matrix.reshape(-1)).matvecmult(f)), g @ matrix.T)
    close(dense(f.vecmatmult(matrix.reshape(-1))), g @ matrix)
    close(dense((x | y).sumt(4)), np.repeat(keep(XI * YJ), 4, -1))
    close(dense((x[0] * y[0]).elemt(3, 1)), (XI * YJ)[..., :1] * [0, 1, 0])
    close(dense(f[:2].extractt(1, 4)), np.pad(g[..., :2], ((0, 0), (0, 0), (1, 1))))
    close(dense((x[0] * 0 + y[0] * 0 + 1).one_hot(3)), np.tile([0.0, 1.0, 0.0], (M, N, 1)))
    close(dense(f.norm()), np.sqrt(keep(g * g)))
    close(dense(f.norm(dim=-1)), np.sqrt(keep(g * g)))
    close(dense(LazyTensor.cat((x, y, f), dim=-1)), np.concatenate(np.broadcast_arrays(XI, YJ, g), -1))
    close(dense(LazyTensor.concatenate((x, y))), np.concatenate(np.broadcast_arrays(XI, YJ), -1))
    close(dense(x.concat(y, f)), np.concatenate(np.broadcast_arrays(XI, YJ, g), -1))
    got = dense(x.keops_tensordot(y, (3,), (3,), (0,), (0,)))
    close(got, keep(XI * YJ))
    outer = np.einsum("mnk,mnl->mnkl", *np.broadcast_arrays(XI, YJ))
    close(dense(x.keops_kron(y, [3], [3])), outer.reshape(M, N, -1))
    close(dense(x.tensorprod(y).permute([3, 3], [1, 0])), outer.swapaxes(2, 3).reshape(M, N, -1))
    knots = np.linspace(0, 2, 6)
    close(dense(Pm(knots).bspline((x[0] + y[0])))[..., :], ((knots[:-1] <= XI[..., :1] + YJ[..., :1]) & (XI[..., :1] + YJ[..., :1] < knots[1:])) * 1.0)


def test_symbolic_calculus() -> None:
    x, y, p = tensors()
    g = XI - YJ
    k = np.exp(-keep(g * g))
    gauss = (-x.sqdist(y)).exp()
    close(dense(gauss.grad(x, 1)), -2 * g * k)
    close(dense(gauss.grad(y, 2)), 4 * g * k)
    close(dense(gauss.diff(x, p)), keep(-2 * g * k * P))
    close(dense(gauss.grad_matrix(x)), -2 * g * k)
    close(dense(gauss.laplacian(x)), (4 * keep(g * g) - 2 * D) * k)
    close(dense((gauss * x).divergence(x)), D * k + keep(-2 * g * k * XI))
    close(dense((p * x * (y | y)).trace_operator(x)), P.sum() * keep(YJ * YJ) + 0 * keep(XI))
    close(dense((p * x).adjoint_operator(x, y)), P * YJ + 0 * XI)
    close(dense((p * x * (y | y)).sum_lin_operator(x)), P.sum() * keep(YJ * YJ) + 0 * keep(XI))


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("vector", [False, True])
def test_reductions(axis: int, vector: bool) -> None:
    x, y, _ = tensors()
    f = x - y if vector else x.sqdist(y)
    g = XI - YJ if vector else keep((XI - YJ) ** 2)
    order = np.sort(g, axis)
    at = np.argsort(g, axis, kind="stable")
    close(f.sum(axis), g.sum(axis))
    close(f.sum(dim=axis), g.sum(axis))
    close(f.sum_reduction(axis=axis), g.sum(axis))
    close(f.mean(axis), g.mean(axis))
    close(f.prod(axis), g.prod(axis))
    close((f > 0.1).any(axis), (g > 0.1).any(axis))
    close((f > -0.5).all(axis), (g > -0.5).all(axis))
    close((f > 0.1).count(axis), (g > 0.1).sum(axis))
    close(f.min(axis=axis), g.min(axis))
    close(f.max(axis=axis), g.max(axis))
    close(f.argmin(axis=axis), g.argmin(axis))
    close(f.argmax(axis=axis), g.argmax(axis))
    values, indices = f.min_argmin(axis=axis)
    close(values, g.min(axis))
    close(indices, g.argmin(axis))
    values, indices = f.max_argmax_reduction(axis=axis)
    close(values, g.max(axis))
    close(indices, g.argmax(axis))

    def first(a: np.ndarray, k: int) -> np.ndarray:
        taken = np.moveaxis(np.take(a, range(k), axis), axis, 1)
        return taken if vector else taken[..., 0]

    close(f.Kmin(3, axis=axis), first(order, 3))
    close(f.argKmin(3, axis=axis), first(at, 3))
    close(f.argKmin(K=3, dim=axis), first(at, 3))
    close(f.Kmax(2, axis=axis), first(np.flip(order, axis), 2))
    close(f.argKmax(2, axis), first(np.argsort(-g, axis, kind="stable"), 2))
    values, indices = f.Kmin_argKmin(4, axis=axis)
    close(values, first(order, 4))
    close(indices, first(at, 4))
    values, indices = f.Kmax_argKmax(1, axis=axis)
    close(values, first(np.flip(order, axis), 1))


@pytest.mark.parametrize("axis", [0, 1])
def test_exponential_reductions(axis: int) -> None:
    x, y, _ = tensors()
    f, g = 300 * x.sqdist(y), 300 * keep((XI - YJ) ** 2)
    top = g.max(axis, keepdims=True)
    e = np.exp(g - top)
    weight = np.broadcast_arrays(XI + YJ, np.zeros((M, N, D)))[0]
    close(f.logsumexp(axis), (np.log(e.sum(axis, keepdims=True)) + top).squeeze(axis))
    close(f.logsumexp(axis=axis, weight=x + y), (np.log((e * weight).sum(axis, keepdims=True)) + top).squeeze(axis))
    soft = (e * weight).sum(axis) / e.sum(axis)
    close(f.sumsoftmaxweight(x + y, axis=axis), soft)
    close(f.sumsoftmaxweight_reduction(weight=x + y, axis=axis), soft)
    close(f.max_sumshiftexp(axis)[:, :1], top.squeeze(axis))
    close(f.logsumexpweight(x + y, axis), (np.log((e * weight).sum(axis, keepdims=True)) + top).squeeze(axis))


def test_vector_axis_is_the_default_of_five() -> None:
    x, y, _ = tensors()
    f, g = x - y, XI - YJ
    close(dense(f.sum()), keep(g))
    close(dense(f.sum(-1)), keep(g))
    close(dense(f.sum(axis=2)), keep(g))
    close(dense(f.min()), g.min(-1, keepdims=True))
    close(dense(f.max()), g.max(-1, keepdims=True))
    close(dense(f.argmin()), g.argmin(-1)[..., None])
    close(dense(f.argmax()), g.argmax(-1)[..., None])
    close(f.sum(axis=-2), g.sum(1))
    close(f.sum(axis=-3), g.sum(0))
    with pytest.raises(TypeError, match="axis is missing"):
        f.mean()
    with pytest.raises(ValueError, match="batch axes stay"):
        f.sum(axis=3)


def test_shapes_and_attributes() -> None:
    x, y, p = tensors()
    k = x.sqdist(y)
    assert (k.shape, k._shape, k.dim(), k.ndim) == ((M, N), (M, N, 1), 3, 1)
    assert ((x - y).shape, k.T.shape, k.t()._shape) == ((M, N, D), (N, M), (N, M, 1))
    assert (k.ni, k.nj, k.batchdims, k.nbatchdims, p.ni) == (M, N, (), 0, None)
    assert k.dtype == "float64" and k.dtype == tw.float64
    assert k.formula == "SqDist(Vi(0,3), Vj(1,3))"
    assert repr(k) == "LazyTensor(SqDist(Vi(0,3), Vj(1,3)), shape (7, 11, 1))"
    with pytest.raises(TypeError):
        hash(k)
    with pytest.raises(ValueError, match="truth"):
        bool(k == k)


def test_constructors() -> None:
    assert LazyTensor(XI).shape == (M, 1, D)
    assert LazyTensor(YJ).shape == (1, N, D)
    assert LazyTensor(X, axis=0).shape == (M, 1, D)
    assert LazyTensor(X, axis=1).shape == (1, M, D)
    assert LazyTensor(P).shape == (1, 1, D)
    assert LazyTensor([1.0, 2.0]).shape == (1, 1, 2)
    assert LazyTensor(3).formula == "3"
    assert LazyTensor((0, 3, 1)).formula == "Vj(0,3)"
    assert tw.pairs.Var(2, 3, 0).formula == "Vi(2,3)"
    assert LazyTensor(tw.asarray(XI)).shape == (M, 1, D)
    with pytest.raises(ValueError, match="Vi and Vj"):
        LazyTensor(X)
    with pytest.raises(TypeError, match="real floats"):
        Vi(np.arange(6).reshape(3, 2))
    with pytest.raises(TypeError, match="float32 and float64"):
        Vi(X.astype("float32")) + Vj(Y)
    with pytest.raises(ValueError, match="7 and 11 rows of i"):
        Vi(X) + Vi(Y)


def test_symbolic_variables_are_given_later() -> None:
    f = Vi(1, D).sqdist(Vj(Y)) * Pm(0, 1)
    assert f.formula == "Pm(0,1) * SqDist(Vi(1,3), Vj(2,3))" or "Vj(2,3)" in f.formula
    later = f.sum(axis=1)
    close(later([2.0], X), 2 * keep((XI - YJ) ** 2).sum(1))
    close(later(np.array([3.0]), X, progress=False), 3 * keep((XI - YJ) ** 2).sum(1))
    with pytest.raises(TypeError, match="takes 2 arrays"):
        later(X)
    now = Vi(X).sqdist(Vj(Y)).argKmin(2, axis=1, call=False)
    close(now(), np.argsort(((XI - YJ) ** 2).sum(-1), 1, kind="stable")[:, :2])


def test_products_and_the_linear_operator() -> None:
    x, y, _ = tensors()
    k, g = (-x.sqdist(y)).exp(), np.exp(-((XI - YJ) ** 2).sum(-1))
    v, w = rng.normal(size=N), rng.normal(size=(N, 4))
    close(k @ v, g @ v)
    close(k @ w, g @ w)
    close(k @ tw.asarray(w), g @ w)
    close(k.T @ X, g.T @ X)
    close(X[:, 0] @ k, X[:, 0] @ g)
    close(X.T @ k, X.T @ g)
    close(k.matvec(v.astype("float32").astype("float64")), g @ v.astype("float32"))
    close(k.rmatvec(X[:, 1]), g.T @ X[:, 1])
    close(k.matmul(w, accuracy="strict", backend="CPU"), g @ w)
    close(k.dense(), g)
    close(k.dense(rows=slice(1, 4), cols=2), g[1:4, :2])
    with pytest.raises(ValueError, match="11 rows of j|7 and 11|rows"):
        k @ X
    linalg = pytest.importorskip("scipy.sparse.linalg")
    operator = linalg.aslinearoperator(k)
    close(operator.matvec(v), g @ v)
    close(operator.rmatvec(X[:, 0]), g.T @ X[:, 0])
    close(k.aslinearoperator().matmat(w), g @ w)


def test_batches_broadcast() -> None:
    a, b, s = rng.normal(size=(2, 1, M, D)), rng.normal(size=(4, N, D)), rng.uniform(1, 2, (2, 1, 1))
    k = (-Vi(a).sqdist(Vj(b)) / Pm(s)).exp()
    g = np.exp(-((a[..., :, None, :] - b[..., None, :, :]) ** 2).sum(-1) / s[..., None])
    assert k.shape == (2, 4, M, N) and k.batchdims == (2, 4)
    close(k.sum(axis=3), g.sum(3)[..., None])
    close(k.sum(axis=2), g.sum(2)[..., None])
    close(k.sum(axis=-2), g.sum(3)[..., None])
    close(k.argmax(axis=3), g.argmax(3)[..., None])
    close(k @ b, g @ b)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_narrow_dtypes(dtype: str) -> None:
    x, y = tw.asarray(X).astype(dtype), tw.asarray(Y).astype(dtype)
    got = Vi(x).sqdist(Vj(y)).sum(axis=1)
    assert got.dtype == dtype
    exact = ((np.asarray(x.astype("float64"))[:, None] - np.asarray(y.astype("float64"))) ** 2).sum((1, 2))
    close(got.astype("float64")[:, 0], exact, {"float32": 1e-6, "float16": 1e-3, "bfloat16": 1e-2}[dtype])


def test_nothing_and_too_few() -> None:
    x, y = Vi(X), Vj(np.zeros((0, D)))
    d = x.sqdist(y)
    close(d.sum(axis=1), np.zeros((M, 1)))
    close(d.min(axis=1), np.full((M, 1), np.inf))
    close(d.argmin(axis=1), np.full((M, 1), -1))
    close(d.logsumexp(axis=1), np.full((M, 1), -np.inf))
    close(d.sum(axis=0), np.zeros((0, 1)))
    few = x.sqdist(Vj(Y[:2])).argKmin(4, axis=1)
    assert (np.asarray(few)[:, 2:] == -1).all()
    assert (np.asarray(x.sqdist(Vj(Y[:2])).Kmin(3, axis=1))[:, 2] == np.inf).all()


def test_keywords_of_every_reduction() -> None:
    x, y, _ = tensors()
    k, g = x.sqdist(y), keep((XI - YJ) ** 2)
    for options in [
        {"accuracy": "strict"}, {"scheme": "2d"}, {"scheme": "1d"}, {"sum_scheme": "kahan_scheme"},
        {"sum_scheme": "block_sum"}, {"use_double_acc": True}, {"dtype_acc": "float64"},
        {"backend": "CPU"}, {"backend": "auto"}, {"device_id": 0}, {"use_fast_math": False},
        {"enable_chunks": False}, {"ranges": None}, {"rec_multVar_highdim": 1},
    ]:  # fmt: skip
        close(k.sum(axis=1, **options), g.sum(1))
    out = tw.zeros((M, 1), dtype="float64")
    assert k.sum(axis=1, out=out) is out
    close(out, g.sum(1))
    with pytest.raises(ValueError, match="out"):
        k.sum(axis=1, out=tw.zeros(M, dtype="float64"))
    with pytest.raises(NotImplementedError, match="ranges"):
        k.sum(axis=1, ranges=(1, 2, 3))
    with pytest.raises(ValueError, match="accuracy"):
        k.sum(axis=1, accuracy="high")
    with pytest.raises(TypeError, match="keyword"):
        k.sum(axis=1, colour="red")
    if not any(device.type == "cuda" for device in tw.devices()):
        with pytest.raises(tw.DeviceError, match="no card"):
            k.sum(axis=1, backend="GPU")


@pytest.mark.parametrize("device", tw.devices(), ids=str)
def test_work_on_another_device_gives_results_where_the_arrays_are(device: tw.device) -> None:
    x = np.linspace(-1, 1, 30).reshape(15, 2)
    k = (-((LazyTensor(x[:, None, :]) - LazyTensor(x[None, :, :])) ** 2).sum(-1)).exp()
    there = k.sum(axis=1, device=device)
    assert there.device == tw.device("cpu")
    close(there, k.sum(axis=1))
    assert tw.all(k.argKmin(2, dim=1, device=str(device)) == k.argKmin(2, dim=1))
    assert ("copied from cpu" in k.explain("sum", axis=1, device=device)) == (device != tw.device("cpu"))
    with pytest.raises(tw.DeviceError, match="cuda:99"):
        k.sum(axis=1, device="cuda:99")


def test_defaults_of_the_module() -> None:
    before = tw.pairs.get_defaults()
    try:
        tw.pairs.set_defaults(accuracy="strict", scheme="1d", sum_scheme="double", progress=False)
        assert tw.pairs.get_defaults() == {
            "accuracy": "strict", "scheme": "1d", "sum_scheme": "double", "progress": False,
        }  # fmt: skip
        close(Vi(X).sqdist(Vj(Y)).sum(axis=1), keep((XI - YJ) ** 2).sum(1))
    finally:
        tw.pairs.set_defaults(**before)


def test_every_method_says_what_it_is() -> None:
    for name, member in vars(LazyTensor).items():
        if type(member).__name__ == "LazyMethod":
            assert member.__doc__ and member.__name__ == name and member.__text_signature__, name


def test_explain_shows_the_sections() -> None:
    text = (-Vi(X).sqdist(Vj(Y))).exp().explain("sum", axis=1)
    assert "per pair" in text and "per i" in text
