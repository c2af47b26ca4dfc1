"""Files that are open already, and archives: read as far as is asked for, against NumPy."""

import gc
import io
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilework as tw

ARRAYS = [np.arange(6.0).reshape(2, 3), np.array(7, dtype="int16"), np.zeros((0, 4)), np.arange(5000)]


def test_arrays_one_after_the_other(tmp_path: Path) -> None:
    path = tmp_path / "several.npy"
    with path.open("wb") as file:
        for n in ARRAYS:
            tw.save(file, n)
        file.write(b"what follows")
    with path.open("rb") as ours, path.open("rb") as theirs:
        for n in ARRAYS:
            x, same = tw.load(ours), np.load(theirs)
            assert ours.tell() == theirs.tell()
            assert x.dtype == n.dtype
            np.testing.assert_array_equal(np.asarray(x), same)
        assert ours.read() == b"what follows"
    # Files without a buffer give what they have, pipes too.
    with path.open("rb", buffering=0) as raw:
        assert [tw.load(raw).shape for _ in ARRAYS] == [n.shape for n in ARRAYS]
    reading, writing = os.pipe()
    with open(reading, "rb", buffering=0) as source, open(writing, "wb") as sink:
        tw.save(sink, ARRAYS[0])
        sink.write(b"rest")
        sink.flush()
        np.testing.assert_array_equal(np.asarray(tw.load(source)), ARRAYS[0])
        assert source.read(4) == b"rest"


class Little:
    """A file that gives and takes a few bytes at a time."""

    def __init__(self, data: bytes = b"") -> None:
        self.inner = io.BytesIO(data)

    def read(self, n: int) -> bytes:
        return self.inner.read(min(n, 3))

    def write(self, data: bytes) -> int:
        return self.inner.write(data[:5])


def test_files_that_do_little_at_a_time() -> None:
    file = Little()
    tw.save(file, ARRAYS[0])
    np.testing.assert_array_equal(np.load(io.BytesIO(file.inner.getvalue())), ARRAYS[0])
    again = tw.load(Little(file.inner.getvalue()))
    np.testing.assert_array_equal(np.asarray(again), ARRAYS[0])
    packed = Little()
    tw.savez(packed, x=ARRAYS[0])
    # Without a way to seek, all of it is read.
    np.testing.assert_array_equal(np.asarray(tw.load(Little(packed.inner.getvalue()))["x"]), ARRAYS[0])


class Failing(io.BytesIO):
    """A file whose methods end in an exception of its own."""

    left = 100

    def read(self, n: int | None = -1) -> bytes:
        self.left -= 1
        if self.left < 0:
            raise KeyError("the file's own")
        return super().read(n)

    def write(self, data: object) -> int:
        raise KeyError("the file's own")


def test_exceptions_of_a_file_are_seen() -> None:
    file = io.BytesIO()
    np.save(file, ARRAYS[3])
    for left in range(3):
        failing = Failing(file.getvalue())
        failing.left = left
        with pytest.raises(KeyError, match="the file's own"):
            tw.load(failing)
    for write in (lambda: tw.save(Failing(), ARRAYS[0]), lambda: tw.savez(Failing(), ARRAYS[0])):
        with pytest.raises(KeyError, match="the file's own"):
            write()
    with pytest.raises(TypeError, match="not bytes"):
        tw.load(io.StringIO("text"))
    with pytest.raises(ValueError, match="^load: .*only 39999"):
        tw.load(io.BytesIO(file.getvalue()[:-1]))
    with pytest.raises(ValueError, match="^load: "):
        tw.load(io.BytesIO())


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """An archive with an array of text between others."""
    path = tmp_path / "some.npz"
    np.savez(path, x=ARRAYS[0], names=np.array(["a", "b"]), y=ARRAYS[1])
    return path


def test_archives_are_read_when_asked(archive: Path) -> None:
    with tw.load(archive) as z, np.load(archive) as theirs:
        assert z.files == theirs.files == ["x", "names", "y"]
        for _ in range(2):
            np.testing.assert_array_equal(np.asarray(z["x"]), theirs["x"])
        np.testing.assert_array_equal(np.asarray(z["y.npy"]), theirs["y.npy"])
        with pytest.raises(ValueError, match=r"^load: .*some\.npz: names: "):
            z["names"]
        assert isinstance(z, Mapping) and len(z) == 3 and list(z) == list(z.keys()) == z.files
        assert "x" in z and "x.npy" in z and "w" not in z and 5 not in z
        assert z.get("w") is None and z.get("w", 3) == 3 and z.get("y").item() == 7
        assert "x" in repr(z) and "names" in repr(z)
        for missing in ("w", "", 5, None):
            with pytest.raises(KeyError):
                z[missing]
    with pytest.raises(ValueError, match="closed"):
        z["x"]
    z.close()
    assert z.files == ["x", "names", "y"]


def test_archives_in_open_files(archive: Path, tmp_path: Path) -> None:
    with archive.open("rb") as file:
        with tw.load(file) as z:
            np.testing.assert_array_equal(np.asarray(z["x"]), ARRAYS[0])
        assert not file.closed
    several = tmp_path / "several.npz"
    tw.savez_compressed(several, *ARRAYS)
    for source in (several, io.BytesIO(several.read_bytes())):
        z = tw.load(source)
        assert z.files == [f"arr_{k}" for k in range(len(ARRAYS))]
        for x, n in zip(z.values(), ARRAYS, strict=True):
            np.testing.assert_array_equal(np.asarray(x), n)
        assert {name: x.shape for name, x in z.items()} == dict(zip(z.files, (n.shape for n in ARRAYS), strict=True))
        assert {name: x.dtype for name, x in dict(z).items()}.keys() == set(z.files)


def test_an_archive_stays_open_no_longer_than_needed(archive: Path) -> None:
    def held() -> int:
        links = (os.path.realpath(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd"))
        return sum(link == str(archive.resolve()) for link in links)

    z = tw.load(archive)
    assert held() == 1
    z.close()
    assert held() == 0
    z = tw.load(archive)
    x = z["x"]
    del z
    gc.collect()
    assert held() == 0 and float(x.sum()) == 15


def test_arrays_of_archives_come_where_arrays_are_made(archive: Path) -> None:
    z = tw.load(archive)
    with tw.device("reference"):
        assert z["x"].device == "reference"
        with archive.open("rb") as file:
            assert tw.load(file)["y"].device == "reference"
    assert z["x"].device == tw.default_device()


def test_maps_are_of_files_with_one_array(archive: Path, tmp_path: Path) -> None:
    path = tmp_path / "one.npy"
    tw.save(path, ARRAYS[0])
    for source in (path, archive, "/nowhere/at/all.npy", io.BytesIO(path.read_bytes())):
        with pytest.raises(ValueError, match="mmap_mode"):
            tw.load(source, mmap_mode="bogus")
    for mode in ("r", "c"):
        for source in (archive, io.BytesIO(path.read_bytes())):
            with pytest.raises(ValueError, match="cannot be mapped"):
                tw.load(source, mmap_mode=mode)
        assert tw.load(path, mmap_mode=mode).writable == (mode == "c")


@pytest.mark.parametrize("cut", [30, 200, 400])
def test_broken_archives(archive: Path, cut: int) -> None:
    with pytest.raises(ValueError, match="load"):
        tw.load(io.BytesIO(archive.read_bytes()[:-cut]))


def test_an_archive_that_is_asked_while_it_is_read_says_so() -> None:
    class Asking(io.BytesIO):
        archive: Any = None

        def read(self, size: int | None = -1, /) -> bytes:
            if self.archive is not None:
                self.archive["b"]
            return super().read(size)

    file = Asking()
    tw.savez(file, a=tw.arange(10_000), b=tw.ones(3))
    file.seek(0)
    archive = tw.load(file)
    file.archive = archive
    with pytest.raises(RuntimeError, match="in the middle of reading"):
        archive["a"]
    file.archive = None
    assert archive["b"].tolist() == [1, 1, 1]
    archive.close()
    with pytest.raises(ValueError, match="closed"):
        archive["a"]
