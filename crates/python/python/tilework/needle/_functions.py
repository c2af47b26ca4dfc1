"""The functions beside the class: creation, and the names of methods as functions."""

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from tilework.needle._array import NDArray
from tilework.needle._devices import BackendDevice, check_dtype, default_device
from tilework.needle._shapes import Axes

__all__ = [
    "array",
    "broadcast_to",
    "empty",
    "exp",
    "flip",
    "full",
    "log",
    "maximum",
    "prod",
    "reshape",
    "sum",
    "tanh",
]


def prod(x: Iterable[Any]) -> Any:
    """Product of numbers; 1 if there are none.

    >>> import tilework.needle as nd
    >>> nd.prod((2, 3, 4))
    24
    """
    return math.prod(x)


def array(a: Any, dtype: object = "float32", device: BackendDevice | None = None) -> NDArray:
    """A new array with a copy of anything that NumPy takes, or of another array.

    Elements are float32. The dtype "bool" gives 1 where an element is not 0, which is what needle's
    masks (`randb`, `Dropout`) need; any other is refused.

    >>> import tilework.needle as nd
    >>> nd.array([[1, 2], [3, 4]])
    NDArray([[1. 2.]
     [3. 4.]], device=cpu_numpy())
    """
    mask = dtype is bool or dtype is np.bool or dtype == "bool"
    if not mask:
        check_dtype(dtype)
    made = NDArray(a, device=device)
    return made != 0 if mask else made


def empty(
    shape: Sequence[int], dtype: object = "float32", device: BackendDevice | None = None
) -> NDArray:
    """A new compact array whose elements are not set.

    >>> import tilework.needle as nd
    >>> nd.empty((2, 3)).shape
    (2, 3)
    """
    return (default_device() if device is None else device).empty(shape, dtype)


def full(
    shape: Sequence[int],
    fill_value: Any,
    dtype: object = "float32",
    device: BackendDevice | None = None,
) -> NDArray:
    """A new compact array of one value.

    >>> import tilework.needle as nd
    >>> nd.full((2,), 1.5)
    NDArray([1.5 1.5], device=cpu_numpy())
    """
    return (default_device() if device is None else device).full(shape, fill_value, dtype)


def broadcast_to(array: NDArray, new_shape: Sequence[int]) -> NDArray:
    """A view in which axes of length 1 repeat.

    >>> import tilework.needle as nd
    >>> nd.broadcast_to(nd.array([[1], [2]]), (2, 3)).strides
    (1, 0)
    """
    return array.broadcast_to(new_shape)


def reshape(array: NDArray, new_shape: Sequence[int]) -> NDArray:
    """A view of another shape.

    >>> import tilework.needle as nd
    >>> nd.reshape(nd.array([1, 2, 3, 4]), (2, 2))
    NDArray([[1. 2.]
     [3. 4.]], device=cpu_numpy())
    """
    return array.reshape(new_shape)


def maximum(a: NDArray, b: Any) -> NDArray:
    """The larger of the elements of two arrays, or of an array and a number.

    >>> import tilework.needle as nd
    >>> nd.maximum(nd.array([-1, 2]), 0)
    NDArray([0. 2.], device=cpu_numpy())
    """
    return a.maximum(b)


def log(a: NDArray) -> NDArray:
    """Natural logarithm.

    >>> import tilework.needle as nd
    >>> nd.log(nd.array([1, 0]))
    NDArray([  0. -inf], device=cpu_numpy())
    """
    return a.log()


def exp(a: NDArray) -> NDArray:
    """Exponential.

    >>> import tilework.needle as nd
    >>> nd.exp(nd.array([0, -1000]))
    NDArray([1. 0.], device=cpu_numpy())
    """
    return a.exp()


def tanh(a: NDArray) -> NDArray:
    """Hyperbolic tangent.

    >>> import tilework.needle as nd
    >>> nd.tanh(nd.array([0, 1000]))
    NDArray([0. 1.], device=cpu_numpy())
    """
    return a.tanh()


def sum(a: NDArray, axis: Axes | None = None, keepdims: bool | None = None) -> NDArray:
    """Sum over all axes or some. What `keepdims=None` means depends on the edition.

    >>> import tilework.needle as nd
    >>> nd.sum(nd.array([[1, 2], [3, 4]]), axis=0, keepdims=True)
    NDArray([[4. 6.]], device=cpu_numpy())
    """
    return a.sum(axis=axis, keepdims=keepdims)


def flip(a: NDArray, axes: Axes) -> NDArray:
    """A compact copy with some axes reversed.

    >>> import tilework.needle as nd
    >>> nd.flip(nd.array([1, 2, 3]), 0)
    NDArray([3. 2. 1.], device=cpu_numpy())
    """
    return a.flip(axes)
