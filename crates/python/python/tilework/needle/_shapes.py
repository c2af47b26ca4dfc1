"""Shapes, axes and indices as users give them, as integers."""

import math
import operator
from collections.abc import Sequence
from typing import Any, SupportsIndex

import numpy as np

import tilework as tw
from tilework.needle._errors import IndexKindError

Axes = SupportsIndex | Sequence[SupportsIndex]


def integers(values: Any) -> tuple[int, ...]:
    """One integer or several, as a tuple."""
    try:
        return (operator.index(values),)
    except TypeError:
        return tuple(map(operator.index, values))


def axis_numbers(operation: str, axes: Axes, ndim: int) -> tuple[int, ...]:
    """Axes as numbers from 0; an error for those that do not exist or are named twice."""
    numbers = []
    for axis in integers(axes):
        if not -ndim <= axis < ndim:
            raise tw.AxisError(f"{operation}: there is no axis {axis} among {ndim}")
        numbers.append(axis % ndim)
    if len(set(numbers)) != len(numbers):
        raise tw.AxisError(f"{operation}: {tuple(numbers)} names an axis twice")
    return tuple(numbers)


def position(index: Any, dim: int, length: int) -> int:
    """The place that an index names on axis `dim`, counted from 0."""
    try:
        # A bool is a mask to NumPy and a number to Python: neither is meant here.
        if isinstance(index, bool | np.bool) or isinstance(index, np.ndarray) and index.ndim:
            raise TypeError
        at = operator.index(index)
    except TypeError:
        message = f"index: {type(index).__name__} is neither an integer nor a slice"
        raise IndexKindError(message) from None
    if not -length <= at < length:
        raise IndexError(f"index: {at} is out of range on axis {dim} of length {length}")
    return at % length


def reshaped(shape: Sequence[int], asked: tuple[int, ...]) -> tuple[int, ...]:
    """The shape that is asked for an array of another: one length may be -1."""
    size = math.prod(shape)
    if asked.count(-1) == 1:
        rest = -math.prod(asked)
        fits = rest > 0 and size % rest == 0
        found = tuple(size // rest if length == -1 and fits else length for length in asked)
    else:
        found = asked
    if any(length < 0 for length in found) or math.prod(found) != size:
        raise ValueError(f"reshape: {tuple(shape)} has not the elements of {asked}")
    return found


def row_major(shape: Sequence[int]) -> tuple[int, ...]:
    """Strides of a row-major array without gaps."""
    strides: list[int] = []
    step = 1
    for length in reversed(shape):
        strides.append(step)
        step *= length
    return tuple(reversed(strides))
