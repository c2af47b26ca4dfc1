"""Living with other libraries: every protocol in both directions, what is shared and copied."""

import array
import ctypes
import gc
import mmap
import operator
import pickle
import weakref
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import tilework as tw
from comparison import same_bits, same_kind
from conftest import HOST

NAMES = """bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64
complex128""".split()


@pytest.fixture(params=HOST)
def device(request: pytest.FixtureRequest) -> Iterator[tw.device]:
    """A device that can share memory with others."""
    with tw.device(request.param) as device:
        yield device


def address(x: tw.Array) -> int:
    return x.__array_interface__["data"][0]


# Taking arrays in.


class OnlyDlpack:
    """Another library's array that speaks DLPack and nothing else."""

    def __init__(self, inner: np.ndarray, versioned: bool = True) -> None:
        self.inner, self.versioned = inner, versioned

    def __dlpack__(self, **options: object) -> object:
        if not self.versioned and options:
            raise TypeError("an old library knows no options")
        return self.inner.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.inner.__dlpack_device__()


class OnlyArray:
    def __init__(self, inner: np.ndarray) -> None:
        self.inner = inner

    def __array__(self, dtype: object = None, copy: bool | None = None) -> np.ndarray:
        return self.inner


class OnlyInterface:
    def __init__(self, inner: np.ndarray) -> None:
        self.inner = inner
        self.__array_interface__ = inner.__array_interface__


@pytest.mark.parametrize(
    "wrap", [OnlyDlpack, lambda n: OnlyDlpack(n, False), OnlyArray, OnlyInterface, memoryview]
)
def test_memory_is_shared(device: tw.device, wrap: object) -> None:
    n = np.arange(6.0).reshape(2, 3)
    for view in (n, n.T, n[:, ::-1], n[1:]):
        x = tw.asarray(wrap(view))
        same_bits(x, view)
        assert np.shares_memory(np.asarray(x), n) and x.device == device
        x[0, 0] = -1
        assert view[0, 0] == -1
    shared = tw.asarray(wrap(n), copy=False)
    own = tw.asarray(wrap(n), copy=True)
    assert np.shares_memory(np.asarray(shared), n) and not np.shares_memory(np.asarray(own), n)
    with pytest.raises(ValueError):
        tw.asarray(wrap(n), dtype="float32", copy=False)
    assert tw.asarray(wrap(n), dtype="float32").dtype == tw.float32


def test_memory_lives_as_long_as_it_is_used(device: tw.device) -> None:
    n = np.arange(100_000.0)
    views = [tw.asarray(n)[10:], tw.from_dlpack(n)[10:], tw.asarray(memoryview(n))[10:]]
    del n
    gc.collect()
    x = tw.arange(100_000.0)
    theirs = [np.asarray(x)[10:], np.from_dlpack(x)[10:], np.asarray(memoryview(x))[10:]]
    del x
    gc.collect()
    tw.zeros(100_000)
    for view in [*views, *theirs]:
        assert float(view.sum()) == sum(range(10, 100_000))


def test_memory_is_given_back(device: tw.device) -> None:
    """When the last array on it goes, foreign memory is let go, whichever way it came."""
    for take in (
        tw.asarray,
        tw.from_dlpack,
        lambda n: tw.asarray(OnlyInterface(n)),
        lambda n: tw.asarray(OnlyArray(n)),
    ):
        n = np.arange(1000.0)
        watched = weakref.ref(n)
        x = take(n)
        view = x[::2].T
        del n, x
        gc.collect()
        assert watched() is not None and float(view.sum()) == sum(range(0, 1000, 2))
        del view
        gc.collect()
        assert watched() is None
    a = array.array("d", [1.0, 2.0])
    x = tw.asarray(a)
    del x
    a.append(3.0)
    for give in (memoryview, np.asarray, np.from_dlpack):
        x = tw.arange(1000.0)
        watched, held = weakref.ref(x), give(x)
        del x
        gc.collect()
        assert float(np.asarray(held).sum()) == sum(range(1000))
        del held
        gc.collect()
        assert watched() is None


@pytest.mark.parametrize("code", "bBhHiIlLqQfd")
def test_arrays_of_the_standard_library(device: tw.device, code: str) -> None:
    a = array.array(code, [1, 2, 3])
    x = tw.asarray(a)
    same_bits(x, np.asarray(a))
    x[0] = 7
    assert a[0] == 7
    with pytest.raises(BufferError):
        a.append(1)


def test_other_buffers(device: tw.device, tmp_path: Path) -> None:
    assert tw.asarray(b"ab").tolist() == [97, 98] and not tw.asarray(b"ab").writable
    assert tw.asarray(bytearray(b"ab")).writable
    assert tw.asarray((ctypes.c_float * 3)(1, 2, 3)).dtype == tw.float32
    assert tw.asarray(memoryview(bytes(24)).cast("d", (3, 1))).shape == (3, 1)
    (tmp_path / "file").write_bytes(bytes(range(8)))
    with open(tmp_path / "file", "r+b") as file, mmap.mmap(file.fileno(), 0) as mapped:
        x = tw.asarray(mapped)
        assert x.tolist() == list(range(8))
        del x


def test_lists_of_scalars_and_arrays(device: tw.device) -> None:
    same_bits(tw.asarray([np.float32(1), 2]), np.asarray([np.float32(1), 2]))
    same_bits(tw.asarray([np.int8(1), np.int8(2)]), np.asarray([1, 2], "int8"))
    same_bits(tw.asarray([[tw.asarray(1.0), 2], [3, 4]]), np.asarray([[1.0, 2], [3, 4]]))
    same_bits(tw.asarray([True, 2]), np.asarray([True, 2]))


# Handing arrays out.


@pytest.mark.parametrize("name", NAMES)
def test_array_protocol(device: tw.device, name: str) -> None:
    x = tw.asarray([0, 1, 1, 0], dtype=name)
    n = np.asarray(x)
    assert n.dtype == name and n.ctypes.data == address(x) and n.flags.writeable
    assert x.__array__().ctypes.data == address(x)
    assert x.__array__(copy=False).ctypes.data == address(x)
    assert x.__array__(copy=True).ctypes.data != address(x)
    assert np.array(x).ctypes.data != address(x)
    other = "float32" if name != "float32" else "float64"
    if np.dtype(name).kind != "c":
        assert x.__array__(other).dtype == other and np.asarray(x, dtype=other).tolist() == [
            0,
            1,
            1,
            0,
        ]
        with pytest.raises(ValueError):
            x.__array__(other, copy=False)
        with pytest.raises(ValueError):
            np.array(x, dtype=other, copy=False)
    assert np.asarray(x[::-2]).strides == x[::-2].strides


@pytest.mark.parametrize("name", NAMES)
def test_buffer_protocol(device: tw.device, name: str) -> None:
    x = tw.reshape(tw.asarray([0, 1, 1, 0, 1, 1], dtype=name), (2, 3))
    view = memoryview(x)
    assert not view.readonly and view.shape == (2, 3) and view.strides == x.strides
    assert view.itemsize == x.itemsize and view.nbytes == x.nbytes and view.c_contiguous
    assert bytes(view) == x.tobytes() and memoryview(x.T).f_contiguous
    same_bits(x, np.asarray(view))
    np.frombuffer(x, dtype=name)[0] = 1
    assert x[0, 0].item() == 1
    fixed = np.zeros(3, name)
    fixed.flags.writeable = False
    assert memoryview(tw.asarray(fixed)).readonly
    with pytest.raises((BufferError, ValueError)):
        np.frombuffer(x[:, ::2], dtype=name)


def name_of(capsule: object) -> bytes:
    get = ctypes.pythonapi.PyCapsule_GetName
    get.restype, get.argtypes = ctypes.c_char_p, [ctypes.py_object]
    return get(capsule)


def test_dlpack_out(device: tw.device) -> None:
    x = tw.arange(6.0).reshape(2, 3)
    assert x.__dlpack_device__() == (1, 0)
    for options, name in (
        ({}, b"dltensor"),
        ({"max_version": None}, b"dltensor"),
        ({"max_version": (0, 8)}, b"dltensor"),
        ({"max_version": (1, 0)}, b"dltensor_versioned"),
        (
            {"max_version": (1, 1), "dl_device": (1, 0), "copy": None, "stream": None},
            b"dltensor_versioned",
        ),
        ({"max_version": (9, 0), "dl_device": None, "copy": False}, b"dltensor_versioned"),
    ):
        assert name_of(x.__dlpack__(**options)) == name
    for view in (x, x.T, x[:, 1:], x[::-1], tw.asarray(3.0), x[:0]):
        theirs = np.from_dlpack(view)
        same_bits(view, theirs)
        assert view.size < 2 or np.shares_memory(theirs, np.asarray(x))
    assert not np.shares_memory(np.from_dlpack(x, copy=True), np.asarray(x))
    assert np.shares_memory(np.from_dlpack(x, copy=False), np.asarray(x))
    with pytest.raises((BufferError, ValueError)):
        x.__dlpack__(dl_device=(2, 0))
    with pytest.raises((BufferError, ValueError, TypeError)):
        x.__dlpack__(stream=7)


@pytest.mark.parametrize("name", NAMES)
def test_dlpack_keeps_dtypes(device: tw.device, name: str) -> None:
    x = tw.asarray([0, 1, 1], dtype=name)
    same_bits(x, np.from_dlpack(x))
    same_bits(tw.from_dlpack(np.asarray(x)), np.asarray(x))


def test_dlpack_in(device: tw.device) -> None:
    n = np.arange(4.0)
    assert tw.from_dlpack(n).device == device
    assert tw.from_dlpack(n, device="reference").device == "reference"
    assert np.shares_memory(np.asarray(tw.from_dlpack(n, copy=False)), n)
    assert not np.shares_memory(np.asarray(tw.from_dlpack(n, copy=True)), n)
    # Elements at odd addresses cannot be shared, and are not copied behind the back of the caller.
    odd = np.zeros(17, dtype=np.uint8)[1:].view(np.float64)
    assert tw.from_dlpack(odd).tolist() == [0, 0]
    with pytest.raises(BufferError, match="copy"):
        tw.from_dlpack(odd, copy=False)
    n.flags.writeable = False
    assert not tw.from_dlpack(n).writable
    x = tw.ones(3)
    assert tw.from_dlpack(x).device == x.device
    # A capsule is taken once.
    once = x.__dlpack__()

    class Worn:
        def __dlpack__(self, **options: object) -> object:
            return once

        def __dlpack_device__(self) -> tuple[int, int]:
            return (1, 0)

    assert tw.from_dlpack(Worn()).tolist() == [1, 1, 1]
    with pytest.raises((TypeError, BufferError, ValueError)):
        tw.from_dlpack(Worn())


def repeating(x: tw.Array) -> list[tw.Array]:
    """Views of an array of six elements some of whose indices reach one element."""
    views = [tw.broadcast_to(x[:1], (3,)), tw.broadcast_to(x.reshape(2, 3), (4, 2, 3))]
    return [*views, tw.sliding_window_view(x, 3), tw.as_strided(x, (2, 5), (8, 8))]


def test_elements_that_stand_for_one_another_are_not_lent_for_writing(device: tw.device) -> None:
    x = tw.arange(6.0)
    for view in repeating(x):
        n = np.asarray(view)
        assert not n.flags.writeable and np.shares_memory(n, np.asarray(x))
        assert not view.writable and not view.flags.writeable and view.data.readonly
        assert view.__array_interface__["data"][1]
        assert not np.from_dlpack(view).flags.writeable and not tw.from_dlpack(view).writable
        with pytest.raises((BufferError, TypeError)):
            ctypes.c_char.from_buffer(view)
        with pytest.raises(BufferError, match="read-only"):
            view.__dlpack__()
        assert view.copy().writable and np.asarray(view.copy()).flags.writeable
    # Steps, single elements of long axes, and nothing at all repeat nothing.
    for view in (x[::-2], x.reshape(2, 3).T, tw.broadcast_to(x, (1, 6)), tw.broadcast_to(x, (0, 6))):
        assert view.writable and view.flags.writeable and np.asarray(view).flags.writeable
        assert not view.__array_interface__["data"][1] and view.__dlpack__() is not None


# NumPy as the other operand.


@pytest.mark.parametrize(
    "op",
    [
        operator.add,
        operator.sub,
        operator.mul,
        operator.truediv,
        operator.pow,
        operator.lt,
        operator.eq,
    ],
)
@pytest.mark.parametrize(
    "other",
    [np.arange(1.0, 4.0), np.float32(2), np.int8(3), np.asarray(2.0), np.bool(True)],
    ids=repr,
)
def test_numpy_on_either_side(device: tw.device, op: object, other: object) -> None:
    n = np.asarray([1.5, 2.0, 3.0], dtype="float32")
    x = tw.asarray(n)
    for found, expected in ((op(x, other), op(n, other)), (op(other, x), op(other, n))):
        assert found.device == device
        if op is operator.pow:
            # Two units in the last place for ours, and as many for NumPy's.
            np.testing.assert_allclose(same_kind(found, expected), expected, rtol=2**-21)
        else:
            same_bits(found, expected)


def test_numpy_functions(device: tw.device) -> None:
    n = np.asarray([[1.0, 2.0], [3.0, 4.0]])
    x = tw.asarray(n)
    for call in (
        lambda a: np.exp2(a), lambda a: np.add(a, 1), lambda a: np.multiply(2, a), lambda a: np.sqrt(a),
        lambda a: np.maximum(a, 2.5), lambda a: np.isfinite(a), lambda a: np.matmul(a, a),
        lambda a: np.negative(a), lambda a: np.logical_and(a, a), lambda a: np.add.reduce(a),
    ):  # fmt: skip
        found = call(x)
        assert isinstance(found, tw.Array), call
        same_bits(found, call(n))
    out = tw.zeros((2, 2))
    assert np.add(n, n, out=out) is out
    same_bits(out, n + n)
    into = np.zeros((2, 2))
    assert np.add(x, x, out=into) is into
    np.testing.assert_array_equal(into, n + n)
    m = n.copy()
    m += x
    np.testing.assert_array_equal(m, n + n)
    for call in (
        np.sum,
        np.mean,
        np.max,
        np.argmin,
        np.any,
        np.prod,
        np.ndim,
        np.shape,
        np.size,
        np.copy,
    ):
        np.testing.assert_array_equal(np.asarray(call(x)), call(n))


def test_bfloat16(device: tw.device) -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    n = np.asarray([1.5, -2.25, 3e38], dtype=ml_dtypes.bfloat16)
    x = tw.asarray(n)
    assert x.dtype == tw.bfloat16 == ml_dtypes.bfloat16 == n.dtype and np.dtype(x.dtype) == n.dtype
    assert np.shares_memory(np.asarray(x), n) and np.asarray(x).dtype == n.dtype
    assert (
        tw.dtype(ml_dtypes.bfloat16) is tw.bfloat16
        and tw.zeros(2, dtype=n.dtype).dtype == tw.bfloat16
    )
    assert (x + n).dtype == tw.bfloat16 and (n + x).dtype == tw.bfloat16
    assert x.astype("float32").tolist() == n.astype("float32").tolist()
    assert tw.result_type(tw.bfloat16, tw.float16) == tw.float32
    assert pickle.loads(pickle.dumps(x)).tolist() == x.tolist()


# Several arrays of ours on the memory of one of theirs.


def test_arrays_of_the_same_memory_overlap(device: tw.device) -> None:
    n = np.arange(5000.0)
    a, b = tw.asarray(n), tw.asarray(n[1:])
    assert tw.shares_memory(a, b) and tw.shares_memory(b, a)
    assert not tw.shares_memory(a[::2], b[::2]) and not tw.shares_memory(a, tw.asarray(n.copy()))
    a[1:] += n[:-1]
    assert np.array_equal(n, np.r_[0.0, np.arange(1.0, 9998.0, 2.0)])
    n[:] = np.arange(5000.0)
    a[:] = n[::-1]
    assert np.array_equal(n, np.arange(5000.0)[::-1])
    m = np.arange(10000.0).reshape(100, 100)
    tw.asarray(m)[...] = m.T
    assert np.array_equal(m, np.arange(10000.0).reshape(100, 100).T)


def test_our_own_memory_comes_back_as_ours(device: tw.device) -> None:
    x = tw.arange(1000)
    n = np.asarray(x)
    x[1:] = n[:-1]
    assert x.tolist() == [0, *range(999)]
    x[::-1] = tw.asarray(n)
    assert x.tolist() == [*reversed([0, *range(999)])]
