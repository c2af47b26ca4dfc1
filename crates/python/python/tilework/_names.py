"""NumPy's names for what is here under the standard's: said to whoever tries them.

The package has one name for each function. Asked for another, it answers with the one to use, so
that nobody has to look it up. Called by the package's `__getattr__`, which Python asks last.
"""

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
    "around": "x.round(decimals)",
    "array_split": "split(x, indices)",
    "asanyarray": "asarray(obj)",
    "ascontiguousarray": "asarray(obj).copy()",
    "bitwise_not": "bitwise_invert(x)",
    "bool_": "bool",
    "concatenate": "concat(arrays, axis=0)",
    "conjugate": "conj(x)",
    "copy": "asarray(obj, copy=True)",
    "copyto": "x[...] = value",
    "cumprod": "cumulative_prod(x, axis=0)",
    "cumsum": "cumulative_sum(x, axis=0)",
    "diagonal": "x.diagonal()",
    "divmod": "divmod(x1, x2)",
    "dot": "x1 @ x2 or matmul(x1, x2)",
    "fmod": "remainder(x1, x2)",
    "hstack": "concat(arrays, axis=1)",
    "identity": "eye(n)",
    "inner": "vecdot(x1, x2)",
    "invert": "bitwise_invert(x)",
    "left_shift": "bitwise_left_shift(x1, x2)",
    "mod": "remainder(x1, x2)",
    "ndarray": "Array",
    "ndim": "x.ndim",
    "power": "pow(x1, x2)",
    "ravel": "x.ravel()",
    "right_shift": "bitwise_right_shift(x1, x2)",
    "shape": "x.shape",
    "size": "x.size",
    "swapaxes": "x.swapaxes(axis1, axis2)",
    "transpose": "permute_dims(x, axes) or x.T",
    "true_divide": "divide(x1, x2)",
    "unique": "unique_values(x), unique_counts(x), unique_inverse(x) or unique_all(x)",
    "vstack": "concat(arrays, axis=0)",
}


def missing(name: str) -> AttributeError:
    """What to raise where the package has no such name."""
    message = f"module 'tilework' has no attribute {name!r}"
    if name in _HERE:
        message += f"; what NumPy calls so is here {_HERE[name]}"
    return AttributeError(message, name=name)
