"""Steps over many elements: reductions, orders, joins, products."""

import numpy as np

import tilework as tw
from comparison import WIDER, close, same_bits, same_kind, same_values
from programs.creations import elements
from programs.machine import DTYPES, Machine


def total(machine: Machine) -> None:
    """Sums, products and means: exact for integers; for floats within what any order of n
    roundings may lose, which our tree of sums stays far below."""
    a = machine.pick()
    name = machine.choice(["sum", "sum", "prod", "mean"])
    if name == "prod" and a.theirs.size > 1000:
        # Whether long products of floats overflow on their way depends on the order.
        return
    axis = machine.choice([None, *range(-a.theirs.ndim, a.theirs.ndim)])
    keepdims = machine.chance(2)

    def check(ours: tw.Array, theirs: np.ndarray) -> None:
        if theirs.dtype.kind in "iu":
            return same_values(ours, theirs)
        wide = WIDER[theirs.dtype.name]
        with np.errstate(all="ignore"):
            x = a.theirs.astype(wide)
            exact = np.asarray(getattr(np, name)(x, axis=axis, keepdims=keepdims))
            size = np.asarray(getattr(np, name)(np.abs(x), axis=axis, keepdims=keepdims))
            info = np.finfo(theirs.dtype)
            # Where some factors have a subnormal product, or none in range, what that is off by meets all others.
            others = np.asarray(np.prod(np.maximum(np.abs(x), 1), axis=axis, keepdims=keepdims))
            lost = np.where(others < info.max, info.smallest_subnormal * others, np.inf)
            count = a.theirs.size if axis is None else a.theirs.shape[axis]
            steps = 4 * count if name == "prod" else 4 + np.ceil(np.log2(max(count, 1)))
            unknown = ~np.isfinite(exact)
            if unknown.any():
                same_kind(ours, theirs)
                found = np.asarray(ours)
                assert not np.isfinite(found[unknown]).any()
                exact, size = np.where(unknown, found, exact), np.where(unknown, 0, size)
            bound = steps * (info.eps * size + (lost if name == "prod" else 0))
            close(ours, theirs, exact, bound)

    machine.fresh(
        f"{name}({a.name}, {axis}, keepdims={keepdims})",
        lambda: getattr(tw, name)(a.ours, axis=axis, keepdims=keepdims),
        lambda: getattr(np, name)(a.theirs, axis=axis, keepdims=keepdims),
        check,
    )


def spread(machine: Machine) -> None:
    """Variances: the roundings of a sum of squares, and those of a running mean, each of which
    enters times the spread."""
    a = machine.pick(lambda pair: pair.theirs.dtype.kind == "f" and pair.theirs.size)
    if not np.isfinite(a.theirs).all():
        return
    name, correction = machine.choice(["var", "std"]), machine.below(2)
    axis = machine.choice([None, *range(-a.theirs.ndim, a.theirs.ndim)])
    count = a.theirs.size if axis is None else a.theirs.shape[axis]
    if count <= correction:
        return

    def check(ours: tw.Array, theirs: np.ndarray) -> None:
        x = a.theirs.astype(WIDER[a.dtype])
        exact = np.asarray(getattr(np, name)(x, axis=axis, correction=correction))
        size = np.asarray(np.max(np.abs(x), axis=axis))
        eps = np.finfo(np.float32 if a.dtype == "float16" else a.dtype).eps
        deviation = exact if name == "std" else np.sqrt(exact)
        bound = (8 + np.log2(count)) * eps * (deviation + size)
        if name == "var":
            bound = bound * (deviation + eps * size)
        elif a.dtype == "float16":
            # The root is taken of a variance that was rounded already.
            bound = bound + np.finfo(a.dtype).eps / 2 * exact
        close(ours, theirs, exact, bound)

    machine.fresh(
        f"{name}({a.name}, {axis}, correction={correction})",
        lambda: getattr(tw, name)(a.ours, axis=axis, correction=correction),
        lambda: getattr(np, name)(a.theirs, axis=axis, correction=correction),
        check,
    )


def extreme(machine: Machine) -> None:
    a = machine.pick(lambda pair: pair.theirs.dtype.kind != "c")
    name = machine.choice(["max", "min", "argmax", "argmin", "any", "all", "count_nonzero"])
    axis = machine.choice([None, *range(-a.theirs.ndim, a.theirs.ndim)])
    machine.fresh(
        f"{name}({a.name}, {axis})",
        lambda: getattr(tw, name)(a.ours, axis=axis),
        lambda: getattr(np, name)(a.theirs, axis=axis),
    )


def running(machine: Machine) -> None:
    """Running sums and products; of floats, one rounding more for each element."""
    a = machine.pick(lambda pair: pair.theirs.ndim and pair.theirs.dtype.kind != "c")
    name = machine.choice(["cumulative_sum", "cumulative_prod"])
    axis, initial = machine.axis(a), machine.chance(2)
    if name == "cumulative_prod" and a.theirs.size > 1000:
        return

    def check(ours: tw.Array, theirs: np.ndarray) -> None:
        if theirs.dtype.kind != "f":
            return same_values(ours, theirs)
        options = {"axis": axis, "include_initial": initial}
        with np.errstate(all="ignore"):
            x = a.theirs.astype(WIDER[theirs.dtype.name])
            exact, size = (getattr(np, name)(v, **options) for v in (x, np.abs(x)))
            known, found = np.isfinite(exact), same_kind(ours, theirs)
            assert not np.isfinite(found[~known]).any()
            # What has left the range does not come back: an infinity times zero is no number.
            left = ~(np.abs(exact) < np.finfo(theirs.dtype).max / 2)
            known &= ~np.maximum.accumulate(left, axis) | np.isfinite(found)
            exact, size = np.where(known, exact, found), np.where(known, size, 0)
            close(ours, theirs, exact, a.theirs.shape[axis] * np.finfo(theirs.dtype).eps * size)

    machine.fresh(
        f"{name}({a.name}, {axis}, {initial})",
        lambda: getattr(tw, name)(a.ours, axis=axis, include_initial=initial),
        lambda: getattr(np, name)(a.theirs, axis=axis, include_initial=initial),
        check,
    )


def order(machine: Machine) -> None:
    a = machine.pick(lambda pair: pair.theirs.ndim)
    axis = machine.axis(a)
    if machine.chance(2):
        machine.fresh(
            f"sort({a.name}, {axis})",
            lambda: tw.sort(a.ours, axis=axis),
            lambda: np.sort(a.theirs, axis=axis, stable=True),
            same_bits,
        )
    else:
        machine.fresh(
            f"argsort({a.name}, {axis})",
            lambda: tw.argsort(a.ours, axis=axis),
            lambda: np.argsort(a.theirs, axis=axis, stable=True),
        )


def different(machine: Machine) -> None:
    a = machine.pick(lambda pair: not (pair.theirs != pair.theirs).any())
    for field in ("values", "indices", "inverse_indices", "counts"):
        machine.fresh(
            f"unique_all({a.name}).{field}",
            lambda: getattr(tw.unique_all(a.ours), field),
            lambda: getattr(np.unique_all(a.theirs), field),
        )


def search(machine: Machine) -> None:
    a = machine.pick(lambda pair: pair.theirs.ndim == 1 and pair.theirs.dtype.kind in "iuf")
    b = machine.pick(lambda pair: pair.dtype == a.dtype)
    side = machine.choice(["left", "right"])
    machine.fresh(
        f"searchsorted(sort({a.name}), {b.name}, {side})",
        lambda: tw.searchsorted(tw.sort(a.ours), b.ours, side=side),
        lambda: np.searchsorted(np.sort(a.theirs), b.theirs, side=side),
    )


def join(machine: Machine) -> None:
    a = machine.pick(lambda pair: pair.theirs.ndim)
    axis = machine.axis(a)
    rest = lambda shape: (*shape[: axis % a.theirs.ndim], *shape[axis % a.theirs.ndim + 1 :])
    fits = [
        p
        for p in machine.pairs
        if p.theirs.ndim == a.theirs.ndim and rest(p.theirs.shape) == rest(a.theirs.shape)
    ]
    others = [machine.choice(fits) for _ in range(machine.between(1, 2))]
    name = machine.choice(["concat", "concat", "stack"])
    machine.fresh(
        f"{name}({[a.name, *(p.name for p in others)]}, {axis})",
        lambda: getattr(tw, name)([a.ours, *(p.ours for p in others)], axis=axis),
        lambda: getattr(np, name)([a.theirs, *(p.theirs for p in others)], axis=axis),
        same_bits,
    )


def along(machine: Machine) -> None:
    """Picking along an axis by what an order says."""
    a = machine.pick(lambda pair: pair.theirs.ndim and pair.theirs.dtype.kind in "biuf")
    axis = machine.axis(a)
    machine.fresh(
        f"take_along_axis({a.name}, argsort, {axis})",
        lambda: tw.take_along_axis(a.ours, tw.argsort(a.ours, axis=axis), axis=axis),
        lambda: np.take_along_axis(
            a.theirs, np.argsort(a.theirs, axis=axis, stable=True), axis=axis
        ),
        same_bits,
    )


def member(machine: Machine) -> None:
    a = machine.pick()
    b = machine.pick(lambda pair: pair.dtype == a.dtype)
    invert = machine.chance(2)
    machine.fresh(
        f"isin({a.name}, {b.name}, invert={invert})",
        lambda: tw.isin(a.ours, b.ours, invert=invert),
        lambda: np.isin(a.theirs, b.theirs, invert=invert),
    )


def arrange(machine: Machine) -> None:
    a = machine.pick(lambda pair: pair.theirs.ndim)
    axis, n = machine.axis(a), machine.between(0, 3)
    name = machine.choice(["roll", "repeat", "tile", "take", "tril", "triu", "diff"])
    check = same_values if name == "diff" else same_bits
    if name in ("roll", "repeat"):
        ours, theirs = ((lambda x, xp: getattr(xp, name)(x, n, axis=axis)),) * 2
    elif name == "tile":
        ours, theirs = ((lambda x, xp: xp.tile(x, (n, 2))),) * 2
    elif name == "take":
        length = a.theirs.shape[axis]
        places = [machine.between(-length, length - 1) for _ in range(n)] if length else []
        places = np.asarray(places, dtype=np.int64)
        ours = lambda x, xp: xp.take(x, xp.asarray(places), axis=axis)
        theirs = ours
    elif name == "diff":
        ours, theirs = ((lambda x, xp: xp.diff(x, n=n, axis=axis)),) * 2
    else:
        ours, theirs = ((lambda x, xp: getattr(xp, name)(x, k=n - 1)),) * 2
        if a.theirs.ndim < 2:
            return
    if name == "diff" and a.dtype == "bool":
        return
    machine.fresh(
        f"{name}({a.name}, {n}, {axis})",
        lambda: ours(a.ours, tw),
        lambda: theirs(a.theirs, np),
        check,
    )


def product(machine: Machine) -> None:
    a = machine.pick(lambda pair: pair.theirs.ndim)
    inner = a.theirs.shape[-1]
    fits = lambda shape: len(shape) and shape[-2 if len(shape) > 1 else 0] == inner
    b = machine.pick(lambda pair: pair.theirs.ndim) if machine.chance(20) else None
    if b is None:
        found = [p for p in machine.pairs if fits(p.theirs.shape)]
        if not found:
            dtype = machine.choice(DTYPES)
            theirs = np.array(elements(machine, dtype, (inner, machine.between(0, 5))), dtype=dtype)
            machine.keep("array for a product", tw.asarray(theirs, copy=True), theirs)
            found = machine.pairs[-1:]
        b = machine.choice(found)

    if inner and a.theirs.size // inner * (b.theirs.size // inner) > 8 * machine.size.most:
        return

    def check(ours: tw.Array, theirs: np.ndarray) -> None:
        if theirs.dtype.kind in "biu":
            return same_values(ours, theirs)
        wide = WIDER[theirs.dtype.name]
        with np.errstate(all="ignore"):
            x, y = a.theirs.astype(wide), b.theirs.astype(wide)
            exact, size = np.asarray(x @ y), np.asarray(np.abs(x) @ np.abs(y))
            unknown = ~np.isfinite(exact)
            if unknown.any():
                found = same_kind(ours, theirs)
                assert not np.isfinite(found[unknown]).any()
                exact, size = np.where(unknown, found, exact), np.where(unknown, 0, size)
            # A sum of as many products; four for each of complex numbers.
            steps = inner * (4 if theirs.dtype.kind == "c" else 1)
            close(ours, theirs, exact, steps * np.finfo(theirs.dtype).eps * size)

    machine.fresh(
        f"{a.name} @ {b.name}", lambda: a.ours @ b.ours, lambda: a.theirs @ b.theirs, check
    )


GATHERINGS = [
    total, total, spread, extreme, running, order, along, different, member, search, join, arrange,
    product, product,
]  # fmt: skip
