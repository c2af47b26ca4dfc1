"""A network of two layers, trained on made-up data with nothing but arrays, needle's way.

    python examples/two_layers.py

Points of a plane belong to three spiral arms; a hidden layer with a rectifier learns to tell them
apart by stochastic gradient descent on the softmax loss. The arrays are those of `tilework.needle`,
with the gradients written out as in the course's first assignments: operations on equal shapes,
explicit broadcasts, float masks.
"""

import numpy as np

import tilework.needle as nd

CLASSES, HIDDEN, BATCH, RATE = 3, 64, 64, 0.5


def spirals(count: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Points of three spiral arms, and which arm each is of."""
    labels = rng.integers(0, CLASSES, count)
    radius = rng.uniform(0.2, 1.0, count)
    angle = 3.5 * radius + labels * (2 * np.pi / CLASSES) + rng.normal(scale=0.1, size=count)
    points = np.stack([radius * np.cos(angle), radius * np.sin(angle), np.ones(count)], axis=1)
    return points, labels


def softmax(logits: nd.NDArray) -> nd.NDArray:
    """Exponentials that sum to one along each row."""
    shifted = logits - logits.max(axis=1, keepdims=True).broadcast_to(logits.shape)
    exponentials = shifted.exp()
    return exponentials / exponentials.sum(axis=1, keepdims=True).broadcast_to(logits.shape)


def step(
    x: nd.NDArray, y: nd.NDArray, first: nd.NDArray, second: nd.NDArray
) -> tuple[nd.NDArray, nd.NDArray]:
    """The weights after one step down the gradient of the mean loss."""
    hidden = (x @ first).maximum(0)
    # The gradient of softmax and loss together is what the softmax gets wrong.
    error = (softmax(hidden @ second) - y) / x.shape[0]
    to_second = hidden.permute((1, 0)) @ error
    back = (error @ second.permute((1, 0))) * (hidden > 0)
    to_first = x.permute((1, 0)) @ back
    return first - RATE * to_first, second - RATE * to_second


def measure(
    x: nd.NDArray, labels: np.ndarray, first: nd.NDArray, second: nd.NDArray
) -> tuple[float, float]:
    """Mean loss, and the part of the points that is put on the wrong arm."""
    chances = softmax((x @ first).maximum(0) @ second).numpy()
    loss = -np.log(chances[np.arange(len(labels)), labels] + 1e-9).mean()
    return float(loss), float((chances.argmax(axis=1) != labels).mean())


def main(device: nd.BackendDevice | None = None, epochs: int = 12) -> list[float]:
    """Trains, prints, and returns the loss of each epoch."""
    device = nd.cpu() if device is None else device
    rng = np.random.default_rng(0)
    points, labels = spirals(2000, rng)
    x, y = nd.array(points, device=device), device.one_hot(CLASSES, labels)
    first = nd.array(rng.normal(size=(3, HIDDEN)), device=device)
    second = nd.array(rng.normal(size=(HIDDEN, CLASSES)) / np.sqrt(HIDDEN), device=device)
    losses = []
    for epoch in range(epochs):
        for start in range(0, len(labels) - BATCH + 1, BATCH):
            rows = slice(start, start + BATCH)
            first, second = step(x[rows, :].compact(), y[rows, :].compact(), first, second)
        loss, wrong = measure(x, labels, first, second)
        losses.append(loss)
        print(f"epoch {epoch + 1:2}: loss {loss:.3f}, {wrong:5.1%} on the wrong arm")
    return losses


if __name__ == "__main__":
    main()
