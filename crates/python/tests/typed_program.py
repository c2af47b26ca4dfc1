"""A program that uses the package with types; mypy reads it in strict mode, nobody runs it."""

import tilework as tw
import tilework.needle as nd
from tilework.needle import NDArray, cpu


def softmax(x: tw.Array, axis: int = -1) -> tw.Array:
    """The usual one."""
    shifted = x - tw.max(x, axis=axis, keepdims=True)
    exponentials = tw.exp(shifted)
    return exponentials / tw.sum(exponentials, axis=axis, keepdims=True)


def program() -> float:
    """A little of everything."""
    x = tw.asarray([[1.0, 2.0], [3.0, 4.0]], dtype=tw.float32, device="cpu")
    y = 2 * x + x @ x - x[0] ** 2
    y[0, :] = 1
    y += 1.5
    mask = y > 2
    picked = y[mask]
    rng = tw.random.default_rng(0)
    noise = rng.standard_normal((2, 2), dtype=tw.float32)
    values, counts = tw.unique_counts(picked)
    with tw.device("reference"):
        z = tw.zeros((2, 3))
    shape: tuple[int, ...] = z.shape
    total = softmax(y).sum(axis=0) + tw.concat([values, tw.astype(counts, tw.float64)])
    first, *rest = tw.broadcast_arrays(x, noise)
    return float(total.mean()) + len(shape) + len(rest) + int(first.argmax())


def network(x: NDArray, weight: NDArray) -> NDArray:
    """A layer on needle's arrays."""
    bias = nd.full((1, weight.shape[1]), 0.5, device=cpu())
    return nd.maximum(x @ weight + bias.broadcast_to((x.shape[0], weight.shape[1])), 0.0)


def needle() -> float:
    """A little of needle."""
    x = nd.array([[1.0, 2.0], [3.0, 4.0]], device=nd.default_device())
    y: NDArray = network(x, nd.ndarray.array([[1, 0], [0, 1]]))
    names: list[str] = [device.name for device in nd.all_devices()]
    return float(nd.summation(y, axis=None).numpy()[0]) + len(names) + int(nd.prod(y.shape))
