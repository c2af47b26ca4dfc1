"""An image, blurred and with its edges drawn, written as a PNG by forty lines of our own.

    python examples/image_filter.py [folder]

The filters are separable: a row of weights down, then across, each a sum over sliding windows, which
are views. Prints what it writes.
"""

import struct
import sys
import zlib
from pathlib import Path

import tilework as tw


def write_png(path: Path, image: tw.Array) -> None:
    """Writes an image (height, width, 3) of uint8."""
    height, width, _ = image.shape
    # Each row begins with the number of its predictor, 0 for none.
    rows = tw.concat(
        [tw.zeros((height, 1), dtype="uint8"), image.reshape(height, 3 * width)], axis=1
    )

    def chunk(name: bytes, data: bytes) -> bytes:
        checked = name + data
        return struct.pack(">I", len(data)) + checked + struct.pack(">I", zlib.crc32(checked))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    path.write_bytes(
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(rows.tobytes(), 9))
        + chunk(b"IEND", b"")
    )


def picture(size: int) -> tw.Array:
    """Rings, a disc and a bar, as floats from 0 to 1."""
    y, x = tw.meshgrid(tw.linspace(-1, 1, size), tw.linspace(-1, 1, size), indexing="ij")
    radius = tw.hypot(x, y)
    rings = 0.5 + 0.5 * tw.sin(40 * radius**2)
    disc = tw.where(tw.hypot(x - 0.3, y + 0.2) < 0.35, 1.0, rings)
    bar = tw.where(abs(x + y) < 0.08, 0.0, disc)
    return tw.stack([rings, disc, bar], axis=-1)


def along(image: tw.Array, weights: tw.Array, axis: int) -> tw.Array:
    """Weighted sums of neighbours along an axis; the edges are repeated."""
    reach = weights.size // 2
    margins = [(reach, reach) if i == axis else (0, 0) for i in range(image.ndim)]
    windows = tw.sliding_window_view(tw.pad(image, margins, "edge"), weights.size, axis)
    return windows @ weights


def blurred(image: tw.Array, sigma: float) -> tw.Array:
    """Gaussian blur, down and then across."""
    reach = int(3 * sigma)
    weights = tw.exp(-(tw.arange(-reach, reach + 1) ** 2) / (2 * sigma**2))
    weights /= tw.sum(weights)
    return along(along(image, weights, 0), weights, 1)


def edges(image: tw.Array) -> tw.Array:
    """How steep the image is: Sobel's filter."""
    smooth, slope = tw.asarray([0.25, 0.5, 0.25]), tw.asarray([-1.0, 0.0, 1.0])
    down = along(along(image, slope, 0), smooth, 1)
    across = along(along(image, slope, 1), smooth, 0)
    return tw.hypot(down, across)


def main(folder: Path) -> list[Path]:
    """Writes three images and returns their paths."""
    image = picture(256)
    written = []
    for name, result in (
        ("picture", image),
        ("blurred", blurred(image, 3.0)),
        ("edges", edges(image)),
    ):
        path = folder / f"{name}.png"
        write_png(path, tw.clip(tw.round(255 * result), 0, 255).astype("uint8"))
        print(f"{path}: {path.stat().st_size} bytes")
        written.append(path)
    return written


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "."))
