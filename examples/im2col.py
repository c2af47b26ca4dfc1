"""Convolution as one matrix product: windows of an image by `as_strided`, without a copy.

    python examples/im2col.py

A window of a padded image is a view: its strides are those of the image, repeated. Six axes of such
a view hold every patch that a kernel meets; flattened to a matrix and multiplied with the kernels
they give the convolution. Checked against the loops that define it.
"""

import tilework as tw


def convolve(images: tw.Array, kernels: tw.Array, padding: int = 0, step: int = 1) -> tw.Array:
    """Images (n, height, width, channels) with kernels (rows, columns, channels, features)."""
    margin = (padding, padding)
    padded = tw.pad(images, ((0, 0), margin, margin, (0, 0)))
    n, height, width, channels = padded.shape
    rows, columns, _, features = kernels.shape
    down, across = (height - rows) // step + 1, (width - columns) // step + 1
    s_image, s_row, s_column, s_channel = padded.strides
    patches = tw.as_strided(
        padded,
        (n, down, across, rows, columns, channels),
        (s_image, s_row * step, s_column * step, s_row, s_column, s_channel),
    )
    assert tw.shares_memory(patches, padded), "no element has been copied yet"
    matrix = patches.reshape(n * down * across, rows * columns * channels)
    product = matrix @ kernels.reshape(-1, features)
    return product.reshape(n, down, across, features)


def by_loops(images: tw.Array, kernels: tw.Array, padding: int = 0, step: int = 1) -> tw.Array:
    """The same by its definition, one output pixel after the other."""
    margin = (padding, padding)
    padded = tw.pad(images, ((0, 0), margin, margin, (0, 0)))
    rows, columns, _, features = kernels.shape
    down = (padded.shape[1] - rows) // step + 1
    across = (padded.shape[2] - columns) // step + 1
    result = tw.zeros((images.shape[0], down, across, features), dtype=images.dtype)
    for i in range(down):
        for j in range(across):
            patch = padded[:, i * step : i * step + rows, j * step : j * step + columns, :]
            result[:, i, j, :] = tw.einsum("nrcd,rcdf->nf", patch, kernels)
    return result


def main() -> None:
    rng = tw.random.default_rng(0)
    for size, padding, step in ((9, 0, 1), (12, 1, 1), (15, 2, 2)):
        images = rng.standard_normal((4, size, size, 3), dtype="float32")
        kernels = rng.standard_normal((3, 3, 3, 8), dtype="float32")
        result = convolve(images, kernels, padding, step)
        error = float(tw.max(abs(result - by_loops(images, kernels, padding, step))))
        # Sums of 27 products of numbers around 1 in float32.
        assert error < 27 * 2**-22, error
        print(
            f"{images.shape} padded by {padding}, every {step}: {result.shape}, off by {error:.1e}"
        )


if __name__ == "__main__":
    main()
