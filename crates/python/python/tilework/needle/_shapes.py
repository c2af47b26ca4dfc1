"""Shapes and axes as users give them, as integers."""

import operator
from collections.abc import Sequence
from typing import Any, SupportsIndex

import tilework as tw

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
