"""Steps that begin arrays: elements from a seed, constants, ranges."""

import numpy as np

import tilework as tw
from comparison import same_bits
from programs.machine import DTYPES, LARGE, Machine


def elements(machine: Machine, dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    """Elements from a seed; special values among floats, ends of the range among integers."""
    rng = np.random.default_rng(machine.below(2**32))
    kind = np.dtype(dtype).kind
    if kind == "b":
        return rng.random(shape) < 0.5
    if kind in "iu":
        info = np.iinfo(dtype)
        small = rng.integers(0 if kind == "u" else -9, 10, shape).astype(dtype)
        ends = np.asarray([info.min, info.max, 0, 1], dtype=dtype)[rng.integers(0, 4, shape)]
        return np.where(rng.random(shape) < 0.1, ends, small)
    values = np.round(rng.normal(scale=3, size=shape), rng.integers(0, 6))
    if kind == "c":
        values = values + 1j * np.round(rng.normal(scale=3, size=shape), 2)
        return values.astype(dtype)
    if rng.random() < 0.3:
        special = np.asarray([0.0, -0.0, np.inf, -np.inf, np.nan])[rng.integers(0, 5, shape)]
        values = np.where(rng.random(shape) < 0.15, special, values)
    return np.asarray(values, dtype=dtype)


def shape_of(machine: Machine, most_axes: int = 4) -> tuple[int, ...]:
    # One axis at most is as long as the machine's size says.
    axes = machine.between(0, most_axes)
    shape = [machine.choice([1, 2, 3, 4, 5, 0, 2, 3]) for _ in range(axes)]
    if axes and (machine.size is LARGE or machine.chance(3)):
        shape[machine.below(axes)] = machine.choice(machine.size.lengths)
    while np.prod(shape, dtype=int) > machine.size.most:
        shape.pop()
    return tuple(shape)


def create(machine: Machine) -> None:
    dtype, shape = machine.choice(DTYPES), shape_of(machine)
    theirs = np.array(elements(machine, dtype, shape), dtype=dtype, order="C")
    ours = tw.asarray(theirs, copy=True)
    same_bits(ours, theirs)
    machine.keep(f"array of {dtype}", ours, theirs)


def fill(machine: Machine) -> None:
    dtype, shape = machine.choice(DTYPES), shape_of(machine)
    name = machine.choice(["zeros", "ones"])
    machine.fresh(
        f"{name}({shape}, {dtype})",
        lambda: getattr(tw, name)(shape, dtype=dtype),
        lambda: getattr(np, name)(shape, dtype=dtype),
        same_bits,
    )


def span(machine: Machine) -> None:
    start, stop = machine.between(-20, 20), machine.between(-20, 20)
    step = machine.choice([1, 2, 3, -1, -2, 0.5, 0.25])
    machine.fresh(
        f"arange({start}, {stop}, {step})",
        lambda: tw.arange(start, stop, step),
        lambda: np.arange(start, stop, step),
    )


CREATIONS = [create, fill, span]
