"""Writes expected.txt: values of formulas by NumPy and SciPy, an oracle that knows no tilework.

Run from this folder: python3 expected.py > expected.txt
"""

import numpy as np
from scipy import special
from scipy.interpolate import BSpline

x = np.array([0.5, -1.5, 2.0])
y = np.array([1.0, 0.25, -2.0])
s = np.array([0.75])
a = np.array([1.25])
b = np.array([-0.5, 3.0])
M = np.array([1.0, -2.0, 3.0, 0.5, 4.0, -1.0])
t = np.array([-1.0, 0.0, 0.5, 2.0, 3.0])
S = np.array([2.0, 0.5, -1.0, 0.25, 1.0, 3.0, -2.0, 1.5, 0.125])
w = np.array([2.0])


def away(v, d=0):
    return np.sign(v) * np.floor(np.abs(v) * 10.0**d + 0.5) / 10.0**d


def spline(knots, at, order):
    # One spline at a time, on its own knots, is 0 outside of them.
    own = [knots[k : k + order + 2] for k in range(len(knots) - order - 1)]
    return np.array([np.nan_to_num(BSpline.basis_element(k, extrapolate=False)(at)) for k in own]).ravel()


def moved(v, shape, to):
    return np.moveaxis(v.reshape(shape), range(len(shape)), to).ravel()


A, B = M.reshape(2, 3), S.reshape(3, 3)
g = np.exp(-np.sum((x - y) ** 2))
p = np.abs(x) + 0.25  # positive
q = np.tanh(x)  # within (-1, 1)

table = {
    # Arithmetic and constants.
    "Add(x,y)": x + y, "x + s": x + s, "Subtract(x,y)": x - y, "s - x": s - x, "Minus(x)": -x,
    "Mult(x,y)": x * y, "x * s": x * s, "Divide(x,y)": x / y, "x / 3": x / 3, "2 / y": 2 / y, "Inv(x)": 1 / x,
    "Scalprod(x,y)": x @ y, "(s|x)": s * x.sum(), "IntCst(-7)": -7.0, "RatCst(2,6)": 1 / 3, "IntInv(3)": 1 / 3,
    "Zero(2)": np.zeros(2), "Range(4)": np.arange(4.0), "0.1 + 0.2 * s": 0.1 + 0.2 * s,
    "16777217 * s": 16777217.0 * s,
    # Number by number.
    "Abs(x)": np.abs(x), "Acos(Tanh(x))": np.arccos(q), "Asin(Tanh(x))": np.arcsin(q), "Atan(x)": np.arctan(x),
    "Atan2(x,y)": np.arctan2(x, y), "Atan2(x,s)": np.arctan2(x, s),
    "Clamp(x,s-1,s)": np.clip(x, s - 1, s), "ClampInt(x,-1,1)": np.clip(x, -1, 1),
    "DiffClampInt(x,-1,1)": [1, 0, 0], "DiffClampInt(x,-2,2)": [1, 1, 1],
    "Cos(x)": np.cos(x), "Sin(x)": np.sin(x), "Exp(x)": np.exp(x), "Log(Abs(x)+0.25)": np.log(p), "Floor(x)": np.floor(x),
    "IfElse(x,y,s)": np.where(x >= 0, y, s), "IfElse(x-x,y,s)": y, "Where(x,y,s)": y,
    "Mod(x,IntCst(2),IntCst(0))": x - 2 * np.floor(x / 2), "Mod(x,s,y)": x - s * np.floor((x - y) / s),
    "Pow(x,3)": x**3, "Pow(x,-3)": x**-3.0, "Pow(x,1)": x, "Pow(x,0)": np.ones(3), "x ** 2": x**2,
    "Powf(Abs(x)+0.25,y)": p**y, "Powf(Abs(x)+0.25,s)": p**s,
    "ReLU(x)": np.maximum(x, 0), "Round(x,0)": [1, -2, 2], "Round(y * 1.17,1)": away(y * 1.17, 1),
    "Round(123 * x,-1)": [60, -180, 250],
    "Rsqrt(Abs(x)+0.25)": 1 / np.sqrt(p), "Rsqrt(x * 0)": np.zeros(3), "Sign(x)": np.sign(x), "Sign(x-x)": np.zeros(3),
    "Sinc(x)": np.sinc(x), "SinXDivX(x)": np.sin(x) / x, "SinXDivX(IntCst(0)*s)": 1.0, "Sqrt(Abs(x)+0.25)": np.sqrt(p), "Square(x)": x * x,
    "Step(x)": [1, 0, 1], "Step(s-s)": 1.0, "XLogX(Abs(x)+0.25)": p * np.log(p), "XLogX(s-s)": 0.0,
    "Tan(x)": np.tan(x), "Tanh(x)": q, "Sinh(x)": np.sinh(x), "Cosh(x)": np.cosh(x), "Asinh(x)": np.arcsinh(x),
    "Acosh(Abs(x)+1)": np.arccosh(np.abs(x) + 1), "Atanh(Tanh(x))": np.arctanh(q), "Erf(x)": special.erf(x),
    "Sigmoid(x)": special.expit(x), "Log1p(Square(x))": np.log1p(x * x), "Expm1(x)": np.expm1(x), "Exp2(x)": np.exp2(x),
    "Log2(Abs(x)+0.25)": np.log2(p), "Log10(Abs(x)+0.25)": np.log10(p), "Cbrt(x)": np.cbrt(x), "Ceil(x)": np.ceil(x),
    "Trunc(x)": np.trunc(x), "Rint(x)": np.rint(x), "RoundAway(x)": away(x), "Hypot(x,y)": np.hypot(x, y),
    "LogAddExp(x,y)": np.logaddexp(x, y), "Maximum(x,y)": np.maximum(x, y), "Minimum(x,s)": np.minimum(x, s),
    "FMax(x,y)": np.fmax(x, y), "FMin(x,y)": np.fmin(x, y), "Fma(x,y,s)": x * y + s, "CopySign(x,y)": np.copysign(x, y),
    "FloorDivide(x,s)": np.floor_divide(x, s), "Remainder(x,s)": np.remainder(x, s),
    # Comparisons and logic.
    "Equal(x,x)": np.ones(3), "x == s": np.zeros(3), "NotEqual(x,y)": np.ones(3), "LessThan(x,y)": x < y,
    "LessOrEqual(x,x)": np.ones(3), "x < y": x < y, "x <= y": x <= y, "x > y": x > y, "x >= y": x >= y,
    "LogicalAnd(x < y, y > 0)": (x < y) & (y > 0), "LogicalOr(x < y, y > 0)": (x < y) | (y > 0),
    "LogicalNot(x < y)": ~(x < y), "IsNan(x)": np.zeros(3), "IsFinite(x)": np.ones(3),
    # Vectors.
    "Sum(x)": x.sum(), "Sum(s)": s, "SumT(s,3)": np.repeat(s, 3), "Max(x)": x.max(), "Min(x)": x.min(), "ArgMax(x)": 2,
    "ArgMin(x)": 1, "ArgMax(Concat(x,x))": 2, "SqNorm2(x)": x @ x, "Norm2(x)": np.linalg.norm(x),
    "Normalize(x)": x / np.linalg.norm(x), "Normalize(x-x)": np.zeros(3), "Normalize(x*0.0)": np.zeros(3),
    "SqDist(x,y)": np.sum((x - y) ** 2), "SqNormIso(s,x)": s * (x @ x), "SqNormDiag(y,x)": y @ (x * x),
    "SymSqNorm(S,x)": x @ B @ x, "WeightedSqNorm(s,x)": s * (x @ x), "WeightedSqNorm(y,x)": y @ (x * x),
    "WeightedSqNorm(S,x)": x @ B @ x, "WeightedSqDist(S,x,y)": (x - y) @ B @ (x - y),
    "WeightedSqDist(s,x,y)": s * np.sum((x - y) ** 2), "Elem(x,1)": x[1], "ElemT(s,4,2)": [0, 0, 0.75, 0],
    "Extract(M,2,3)": M[2:5], "ExtractT(b,1,5)": [0, -0.5, 3, 0, 0], "Concat(x,b)": np.r_[x, b],
    "Concat(x,b,s,y)": np.r_[x, b, s, y], "OneHot(a,4)": [0, 1, 0, 0], "OneHot(IntCst(9),3)": np.zeros(3),
    "OneHot(-a,3)": np.zeros(3), "OneHot(s,3)": [0, 1, 0],
    "BSpline(t,a,0)": [0, 0, 1, 0], "BSpline(t,a,1)": spline(t, a, 1), "BSpline(t,a,2)": spline(t, a, 2),
    "BSpline(t,a,3)": spline(t, a, 3), "BSpline(t,s,2)": spline(t, s, 2), "BSpline(t,-a,2)": np.zeros(2),
    # Tensors.
    "MatVecMult(M,x)": A @ x, "MatVecMult(M,b)": M.reshape(3, 2) @ b, "VecMatMult(b,M)": b @ A, "VecMatMult(x,S)": x @ B,
    "TensorProd(x,b)": np.outer(x, b).ravel(),
    "DifferenceMatrix(x,b)": np.subtract.outer(x, b).ravel(),
    "Kron(x,b,[3],[2])": np.kron(x, b),
    "Kron(M,S,[2,3],[3,3])": np.kron(A, B).ravel(),
    "Kron(M,Concat(M,M),[2,1,3],[3,2,2])": np.kron(M.reshape(2, 1, 3), np.r_[M, M].reshape(3, 2, 2)).ravel(),
    "TensorDot(M,S,[2,3],[3,3],[1],[0])": (A @ B).ravel(), "TensorDot(M,S,[2,3],[3,3],[1],[1])": (A @ B.T).ravel(),
    "TensorDot(M,S,[2,3],[3,3],[1],[0],[1,0])": (A @ B).T.ravel(),
    "TensorDot(M,M,[2,3],[2,3],[0,1],[0,1])": M @ M,
    "TensorDot(M,Concat(M,M),[2,3],[2,3,2],[1,0],[1,0])": np.tensordot(A, np.r_[M, M].reshape(2, 3, 2), [[1, 0], [1, 0]]).ravel(),
    "TensorDot(Concat(M,M),M,[2,3,2],[3,2],[1],[0])": np.tensordot(np.r_[M, M].reshape(2, 3, 2), M.reshape(3, 2), [[1], [0]]).ravel(),
    "TensorDot(M,b,[2,3],[2],[],[])": np.tensordot(A, b, 0).ravel(),
    "TensorDot(M,b,[2,3],[2],[],[],[2,0,1])": moved(np.tensordot(A, b, 0).ravel(), (2, 3, 2), [2, 0, 1]),
    "Permute(TensorProd(M,b),[2,3,2],[1,2,0])": moved(np.outer(M, b).ravel(), (2, 3, 2), [1, 2, 0]),
    # Derivatives, by hand.
    "Grad(Exp(-SqDist(x,y)),x,s)": -2 * s * (x - y) * g, "Diff(Exp(-SqDist(x,y)),x,y)": -2 * g * ((x - y) @ y),
    "GradMatrix(x*x,x)": np.diag(2 * x).ravel(), "GradMatrix(MatVecMult(M,x),x)": M,
    "Divergence(x*x,x)": 2 * x.sum(), "Laplacian(Exp(-SqDist(x,y)),x)": g * (4 * np.sum((x - y) ** 2) - 6),
    "TraceOperator(MatVecMult(S,x),x)": np.trace(B), "TraceOperator(MatVecMult(S,x),x,y)": np.diag(B) @ y,
    "AdjointOperator(MatVecMult(M,x),x,b)": A.T @ b, "SumLinOperator(MatVecMult(M,x),x)": M.sum(),
    "SumLinOperator(MatVecMult(M,x),x,b,y)": b @ A @ y, "Factorize(x*y,y)": x * y, "AutoFactorize(x*y)": x * y,
    "Grad(Max(x * y),x,IntCst(1))": np.where(np.arange(3) == np.argmax(x * y), y, 0),
}

for text, value in table.items():
    numbers = np.atleast_1d(np.asarray(value, dtype=float))
    print(text, "=>", " ".join(repr(float(v)) for v in numbers))
