"""Steps that make views: indices of every kind, and all that rewrites shape and strides."""

import numpy as np
from numpy.lib.stride_tricks import as_strided, sliding_window_view

import tilework as tw
from programs.machine import Machine


def key_of(machine: Machine, shape: tuple[int, ...]) -> tuple:
    """An index of integers, slices, new axes and an ellipsis; now and then one out of range."""
    key: list[object] = []
    for length in shape:
        kind = machine.below(6)
        if kind == 0 and length:
            reach = length if machine.chance(40) else length - 1
            key.append(machine.between(-length, reach))
        elif kind == 1:
            key.append(slice(None))
        elif kind == 2:
            key.append(slice(None, None, machine.choice([-1, -2, -3, 2, 3])))
        else:
            reach = length + 1
            bounds = [
                None if machine.chance(4) else machine.between(-reach, reach) for _ in range(2)
            ]
            key.append(slice(*bounds, machine.choice([None, 1, 2, -1])))
        if machine.chance(12):
            key.append(None)
    if machine.chance(3):
        cut = machine.between(0, len(key))
        key[cut:] = [...]
    return tuple(key)


def index(machine: Machine) -> None:
    pair = machine.pick()
    key = key_of(machine, pair.theirs.shape)
    # All integers give NumPy a scalar, a copy as ours is.
    theirs = lambda: np.asarray(pair.theirs[key])  # noqa: E731
    machine.view(f"{pair.name}[{key}]", lambda: pair.ours[key], theirs, pair)


def transpose(machine: Machine) -> None:
    pair = machine.pick()
    axes = list(range(pair.theirs.ndim))
    for i in range(len(axes) - 1):
        j = machine.between(i, len(axes) - 1)
        axes[i], axes[j] = axes[j], axes[i]
    machine.view(
        f"permute_dims({pair.name}, {axes})",
        lambda: tw.permute_dims(pair.ours, tuple(axes)),
        lambda: np.permute_dims(pair.theirs, tuple(axes)),
        pair,
    )


def reshape(machine: Machine) -> None:
    pair = machine.pick()
    size, shape = pair.theirs.size, []
    rest = size
    while rest > 1 and len(shape) < 4 and machine.below(3):
        divisors = [d for d in range(1, rest + 1) if rest % d == 0]
        shape.append(machine.choice(divisors))
        rest //= shape[-1]
    shape.append(-1 if size and machine.chance(2) else rest)
    if machine.chance(30):
        shape.append(2)
    machine.view(
        f"reshape({pair.name}, {shape})",
        lambda: tw.reshape(pair.ours, tuple(shape)),
        lambda: np.reshape(pair.theirs, tuple(shape)),
        pair,
    )


def broadcast(machine: Machine) -> None:
    pair = machine.pick()
    shape = [
        machine.between(1, 4) if length == 1 and machine.chance(2) else length
        for length in pair.theirs.shape
    ]
    shape = [machine.between(0, 3) for _ in range(machine.below(2))] + shape
    machine.view(
        f"broadcast_to({pair.name}, {shape})",
        lambda: tw.broadcast_to(pair.ours, tuple(shape)),
        lambda: np.broadcast_to(pair.theirs, tuple(shape)),
        pair,
        folded=True,
    )


def windows(machine: Machine) -> None:
    pair = machine.pick(lambda pair: 0 < pair.theirs.ndim < 4 and pair.theirs.size)
    axis = machine.axis(pair)
    width = machine.between(1, pair.theirs.shape[axis])
    machine.view(
        f"sliding_window_view({pair.name}, {width}, {axis})",
        lambda: tw.sliding_window_view(pair.ours, width, axis),
        lambda: sliding_window_view(pair.theirs, width, axis, writeable=True),
        pair,
        folded=True,
    )


def strided(machine: Machine) -> None:
    pair = machine.pick(lambda pair: pair.theirs.ndim == 1 and pair.theirs.size > 1)
    length, step = pair.theirs.shape[0], pair.theirs.strides[0]
    rows = machine.between(1, length)
    jump = machine.between(0, (length - 1) // rows)
    columns = machine.between(1, length - (rows - 1) * jump)
    shape, strides = (rows, columns), (jump * step, step)
    machine.view(
        f"as_strided({pair.name}, {shape}, {strides})",
        lambda: tw.as_strided(pair.ours, shape, strides),
        lambda: as_strided(pair.theirs, shape, strides),
        pair,
        folded=True,
    )


def flip(machine: Machine) -> None:
    pair = machine.pick(lambda pair: pair.theirs.ndim)
    axis = None if machine.chance(3) else machine.axis(pair)
    machine.view(
        f"flip({pair.name}, {axis})",
        lambda: tw.flip(pair.ours, axis=axis),
        lambda: np.flip(pair.theirs, axis=axis),
        pair,
    )


def diagonal(machine: Machine) -> None:
    pair = machine.pick(lambda pair: pair.theirs.ndim >= 2)
    offset = machine.between(-3, 3)
    axis1, axis2 = machine.axis(pair), machine.axis(pair)

    def theirs() -> np.ndarray:
        found = pair.theirs.diagonal(offset, axis1, axis2)
        if pair.theirs.flags.writeable:
            found.flags.writeable = True
        return found

    machine.view(
        f"{pair.name}.diagonal({offset}, {axis1}, {axis2})",
        lambda: pair.ours.diagonal(offset, axis1, axis2),
        theirs,
        pair,
    )


def axes_in_and_out(machine: Machine) -> None:
    pair = machine.pick()
    name = machine.choice(["expand_dims", "squeeze", "swapaxes", "moveaxis"])
    ndim = pair.theirs.ndim
    a, b = machine.between(-ndim - 1, ndim), machine.between(-ndim, max(ndim - 1, 0))
    if name == "expand_dims":
        ours, theirs = lambda: tw.expand_dims(pair.ours, a), lambda: np.expand_dims(pair.theirs, a)
    elif name == "squeeze":
        ours, theirs = lambda: pair.ours.squeeze(), lambda: pair.theirs.squeeze()
    elif name == "swapaxes":
        ours, theirs = lambda: pair.ours.swapaxes(a, b), lambda: pair.theirs.swapaxes(a, b)
    else:
        ours, theirs = lambda: tw.moveaxis(pair.ours, a, b), lambda: np.moveaxis(pair.theirs, a, b)
    machine.view(f"{name}({pair.name}, {a}, {b})", ours, theirs, pair)


VIEWS = [
    index,
    index,
    index,
    transpose,
    reshape,
    broadcast,
    windows,
    strided,
    flip,
    diagonal,
    axes_in_and_out,
]
