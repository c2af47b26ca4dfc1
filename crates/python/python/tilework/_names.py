"""NumPy's names for what is here under the standard's: said to whoever tries them.

The package has one name for each function. Asked for another, it answers with the one to use, so
that nobody has to look it up. Called by the package's `__getattr__`, which Python asks last.
"""

# What gives NumPy's numbers: one expression, or several with ", or " between them and the case that
# each is for. The tests evaluate every one of them against NumPy.
_HERE = {
    "absolute": "abs(x)",
    "amax": "max(x)",
    "amin": "min(x)",
    "arccos": "acos(x)",
    "arccosh": "acosh(x)",
    "arcsin": "asin(x)",
    "arcsinh": "asinh(x)",
    "arctan": "atan(x)",
    "arctan2": "atan2(x1, x2)",
    "arctanh": "atanh(x)",
    "around": "round(x, decimals)",
    "array_split": "split(x, indices), or split(x, n) for parts of equal length",
    "asanyarray": "asarray(obj)",
    "ascontiguousarray": "asarray(obj).copy()",
    "atleast_1d": "reshape(x, (-1,)) for an array of no axes",
    "atleast_2d": "x[None, :] for an array of one axis",
    "average": "sum(w * x) / sum(w)",
    "bincount": "diff(searchsorted(sort(x), arange(max(x) + 2)))",
    "bitwise_not": "bitwise_invert(x)",
    "bool_": "bool",
    "column_stack": "stack(arrays, axis=1) for vectors, or concat(arrays, axis=1) for matrices",
    "concatenate": "concat(arrays, axis=0)",
    "conjugate": "conj(x)",
    "copy": "asarray(obj, copy=True)",
    "copyto": "x[...] = value",
    "cumprod": "cumulative_prod(x, axis=axis), or x.cumprod() for all elements in a row",
    "cumsum": "cumulative_sum(x, axis=axis), or x.cumsum() for all elements in a row",
    "deg2rad": "x * (pi / 180)",
    "degrees": "x * (180 / pi)",
    "diag": "x.diagonal() for a matrix, or eye(n) * x for a vector",
    "diagonal": "x.diagonal()",
    "digitize": "searchsorted(bins, x, side=\"right\") for bins that grow",
    "divmod": "divmod(x1, x2)",
    "dot": "x1 @ x2 for vectors and matrices, or tensordot(x1, x2, axes=([-1], [-2])) for more axes",
    "dstack": "stack(arrays, axis=2) for matrices, or stack(arrays, axis=1)[None] for vectors",
    "fix": "trunc(x)",
    "flatnonzero": "nonzero(x.ravel())[0]",
    "fliplr": "flip(x, axis=1)",
    "flipud": "flip(x, axis=0)",
    "fmod": "sign(x1) * remainder(abs(x1), abs(x2))",
    "hstack": "concat(arrays) for vectors, or concat(arrays, axis=1) for arrays of more axes",
    "identity": "eye(n)",
    "inner": "tensordot(x1, x2, axes=([-1], [-1]))",
    "int_": "int64",
    "invert": "bitwise_invert(x)",
    "left_shift": "bitwise_left_shift(x1, x2)",
    "median": "mean(sort(x.ravel())[(x.size - 1) // 2 : x.size // 2 + 1])",
    "mod": "remainder(x1, x2)",
    "nan_to_num": "clip(where(isnan(x), 0.0, x), finfo(x.dtype).min, finfo(x.dtype).max)",
    "nanmax": "max(x[~isnan(x)])",
    "nanmean": "mean(x[~isnan(x)])",
    "nanmin": "min(x[~isnan(x)])",
    "nansum": "sum(where(isnan(x), 0.0, x))",
    "ndarray": "Array",
    "ndim": "x.ndim",
    "power": "pow(x1, x2)",
    "ptp": "max(x) - min(x)",
    "rad2deg": "x * (180 / pi)",
    "radians": "x * (pi / 180)",
    "ravel": "x.ravel()",
    "right_shift": "bitwise_right_shift(x1, x2)",
    "rollaxis": "moveaxis(x, axis, start), or moveaxis(x, axis, start - 1) where axis is below start",
    "row_stack": "stack(arrays) for vectors, or concat(arrays) for arrays of more axes",
    "shape": "x.shape",
    "size": "x.size",
    "swapaxes": "x.swapaxes(axis1, axis2)",
    "trace": "einsum(\"ii\", x)",
    "transpose": "permute_dims(x, axes), or x.T for the reverse order",
    "true_divide": "divide(x1, x2)",
    "unique": "unique_values(x), or unique_counts(x), or unique_inverse(x), or unique_all(x)",
    "vsplit": "split(x, indices), or split(x, n) for parts of equal length",
    "vstack": "stack(arrays) for vectors, or concat(arrays) for arrays of more axes",
}


def missing(name: str) -> AttributeError:
    """What to raise where the package has no such name."""
    message = f"module 'tilework' has no attribute {name!r}"
    if name in _HERE:
        message += f"; what NumPy calls so is here {_HERE[name]}"
    return AttributeError(message, name=name)
