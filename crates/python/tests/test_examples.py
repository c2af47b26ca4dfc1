"""The Python examples run, and do what they say."""

import importlib.util
import struct
import zlib
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import tilework.needle as nd

EXAMPLES = Path(__file__).parents[3] / "examples"


def example(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_im2col(capsys: pytest.CaptureFixture[str]) -> None:
    example("im2col").main()
    assert capsys.readouterr().out.count("off by") == 3


def test_two_layers() -> None:
    losses = example("two_layers").main(nd.cpu())
    assert losses[-1] < 0.3 and losses == sorted(losses, reverse=True)
    # The same numbers, but for roundings, on the device that defines them.
    assert example("two_layers").main(nd.cpu_numpy(), epochs=1) == pytest.approx(
        losses[:1], rel=1e-4
    )


def test_image_filter(tmp_path: Path) -> None:
    module = example("image_filter")
    images = [read_png(path) for path in module.main(tmp_path)]
    picture, blurred, edges = images
    assert [image.shape for image in images] == [(256, 256, 3)] * 3
    np.testing.assert_array_equal(picture, np.round(255 * np.asarray(module.picture(256))))
    # A blur keeps the mean and loses contrast; edges are dark where nothing changes.
    assert abs(picture.mean() - blurred.mean()) < 2 and blurred.std() < picture.std()
    assert np.median(edges) < np.median(picture)


def read_png(path: Path) -> np.ndarray:
    """The pixels of a PNG as the example writes it, with every checksum looked at."""
    data = path.read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    at, chunks = 8, {}
    while at < len(data):
        (length,), name = struct.unpack(">I", data[at : at + 4]), data[at + 4 : at + 8]
        body = data[at + 8 : at + 8 + length]
        assert struct.unpack(">I", data[at + 8 + length : at + 12 + length])[0] == zlib.crc32(
            name + body
        )
        chunks[name], at = body, at + 12 + length
    width, height, depth, colour = struct.unpack(">IIBB", chunks[b"IHDR"][:10])
    assert (depth, colour) == (8, 2) and list(chunks)[-1] == b"IEND"
    rows = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), np.uint8).reshape(height, 1 + 3 * width)
    assert not rows[:, 0].any()
    return rows[:, 1:].reshape(height, width, 3)
