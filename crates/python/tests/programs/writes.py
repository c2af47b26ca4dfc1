"""Steps that pick by arrays, and steps that write: assignments, masks, operators in place."""

import numpy as np

import tilework as tw
from comparison import same_bits
from programs.elementwise import operand, rounded
from programs.machine import Machine, Pair
from programs.views import key_of


def fancy_key(machine: Machine, shape: tuple[int, ...]) -> tuple[str, object, object]:
    """A mask, or integer arrays with integers, slices, new axes and an ellipsis among them, for both
    sides. Repeated places are read or written with one number, so their order does not matter."""
    rng = np.random.default_rng(machine.below(2**32))
    if machine.chance(3):
        mask = rng.random(shape[: machine.between(1, len(shape))]) < 0.5
        return "mask", tw.asarray(mask), mask
    key: list[object] = []
    count = machine.between(0, 3)
    for length in shape:
        kind = machine.below(6)
        if kind < 2 and length:
            places = rng.integers(-length, length, count)
            key.append(places.reshape(count, 1) if machine.chance(4) else places)
        elif kind == 2 and length:
            key.append(machine.between(-length, length - 1))
        elif kind == 3:
            key.append(slice(None, None, machine.choice([1, 2, -1])))
        elif kind == 4 and length:
            # A mask for one axis among the other indices.
            mask = np.zeros(length, bool)
            mask[rng.permutation(length)[:count]] = True
            key.append(mask if count <= length else slice(None))
        else:
            key.append(slice(None))
        if machine.chance(10):
            key.append(None)
    if machine.chance(5):
        key.insert(machine.between(0, len(key)), ...)
    ours = tuple(tw.asarray(k) if isinstance(k, np.ndarray) else k for k in key)
    return str(key).replace("\n", ""), ours, tuple(key)


def gather(machine: Machine) -> None:
    a = machine.pick(lambda pair: pair.theirs.ndim)
    text, ours, theirs = fancy_key(machine, a.theirs.shape)
    if text != "mask" and not any(isinstance(entry, np.ndarray) for entry in theirs):
        return
    machine.fresh(
        f"{a.name}[{text}]", lambda: a.ours[ours], lambda: np.array(a.theirs[theirs]), same_bits
    )


def is_target(pair: Pair) -> bool:
    return not pair.folded and pair.theirs.flags.writeable


def assign(machine: Machine) -> None:
    a = machine.pick(is_target)
    key = key_of(machine, a.theirs.shape)
    part = np.zeros(a.theirs.shape, bool)
    try:
        part = part[key]
    except IndexError:
        pass
    beside = Pair("", a.ours, part)
    text, ours, theirs = operand(machine, beside)
    if not assignable(theirs, a.dtype) or part.ndim == 0 != np.ndim(theirs):
        # What NumPy lets one element take from an array of one depends on the dtypes.
        return
    machine.write(
        f"{a.name}[{key}] = {text}",
        a,
        lambda: a.ours.__setitem__(key, ours),
        lambda: a.theirs.__setitem__(key, theirs),
        same_bits,
    )


def assignable(value: object, dtype: str) -> bool:
    """Whether the cast of an assignment is one that NumPy defines."""
    value = np.asarray(value)
    kind, to = value.dtype.kind, np.dtype(dtype).kind
    if kind == "c" and to != "c":
        return False
    if kind == "f" and to in "iu":
        return bool(
            np.isfinite(value).all()
            and (np.abs(value) < 100).all()
            and (to == "i" or (value > -1).all())
        )
    return True


def scatter(machine: Machine) -> None:
    a = machine.pick(lambda pair: is_target(pair) and pair.theirs.ndim)
    text, ours, theirs = fancy_key(machine, a.theirs.shape)
    number = machine.choice([0, 1, 5, True])
    machine.write(
        f"{a.name}[{text}] = {number}",
        a,
        lambda: a.ours.__setitem__(ours, number),
        lambda: a.theirs.__setitem__(theirs, number),
        same_bits,
    )


IN_PLACE = {"add": "__iadd__", "subtract": "__isub__", "multiply": "__imul__", "divide": "__itruediv__",
            "bitwise_and": "__iand__", "bitwise_or": "__ior__", "bitwise_xor": "__ixor__"}  # fmt: skip


def in_place(machine: Machine) -> None:
    a = machine.pick(is_target)
    name = machine.choice(list(IN_PLACE))
    if name == "subtract" and a.dtype == "bool":
        return
    text, ours, theirs = operand(machine, a)
    # An operand that is wider than the target is an error on both sides; an overlapping one is
    # read as it was before.
    before = a.theirs.copy()
    old = np.array(theirs)
    method = IN_PLACE[name]
    machine.write(
        f"{a.name} {method} {text}",
        a,
        lambda: getattr(a.ours, method)(ours),
        lambda: getattr(a.theirs, method)(theirs),
        rounded(name, before, old),
    )


WRITES = [assign, assign, scatter, in_place, in_place]
