"""A walk through the package: each protocol and each room once, against NumPy."""

import copy
import math
import operator
import os
import pickle
import re
import threading
import weakref
from pathlib import Path

import numpy as np
import pytest

import tilework as tw

DTYPES = [d for d in "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64".split()] + [
    "float16",
    "float32",
    "float64",
    "complex64",
    "complex128",
]


def same(ours: tw.Array, theirs: object) -> None:
    """Asserts equal shape, dtype and elements."""
    expected = np.asarray(theirs)
    found = np.asarray(ours)
    assert found.dtype == expected.dtype and found.shape == expected.shape
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("name", DTYPES)
def test_numpy_round_trip_shares_memory(host: tw.device, name: str) -> None:
    n = np.arange(12).reshape(3, 4).astype(name)
    for view in (n, n.T, n[::-1, ::2], n[1], n[:, 1:2], n[:0]):
        x = tw.asarray(view)
        assert x.device == host and x.shape == view.shape and str(x.dtype) == name
        same(x, view)
        if view.size:
            assert np.shares_memory(np.asarray(x), n)
    x = tw.asarray(n)
    np.asarray(x)[0, 0] = 1
    assert n[0, 0] == 1 and x[0, 0] == n[0, 0]
    assert not np.shares_memory(np.asarray(tw.asarray(n, copy=True)), n)


def test_read_only_memory_is_respected(host: tw.device) -> None:
    n = np.zeros(3)
    n.flags.writeable = False
    x = tw.asarray(n)
    with pytest.raises(ValueError, match="read-only"):
        x[0] = 1
    with pytest.raises(ValueError, match="read-only"):
        x += 1
    assert not np.asarray(x).flags.writeable
    with pytest.raises(BufferError):
        x.__dlpack__()
    assert tw.from_dlpack(x).tolist() == [0.0, 0.0, 0.0]


def test_asarray_of_everything(device: tw.device) -> None:
    same(tw.asarray([[1, 2], [3, 4]]), [[1, 2], [3, 4]])
    same(tw.asarray([1, 2.5]), [1, 2.5])
    same(tw.asarray([True, False]), [True, False])
    same(tw.asarray([1, 2j]), [1, 2j])
    same(tw.asarray([]), np.asarray([]))
    same(tw.asarray([[], []]), np.asarray([[], []]))
    same(tw.asarray(3), np.asarray(3))
    same(tw.asarray(2**63), np.asarray(2**63, dtype="uint64"))
    same(tw.asarray([1.7, 2.2], dtype=tw.int32), np.asarray([1, 2], dtype="int32"))
    same(tw.asarray([tw.asarray([1, 2]), [3, 4]]), [[1, 2], [3, 4]])
    same(tw.asarray([np.float32(1), np.float32(2)]), np.asarray([1, 2], dtype="float32"))
    same(tw.asarray(np.float32(3)), np.asarray(3, dtype="float32"))
    same(tw.asarray(bytearray(b"ab")), np.asarray([97, 98], dtype="uint8"))
    same(tw.asarray(memoryview(b"ab")), np.asarray([97, 98], dtype="uint8"))
    same(tw.asarray(np.arange(3, dtype=">i4")), np.arange(3, dtype="i4"))
    record = np.zeros(3, dtype=[("a", "u1"), ("b", "f8")])
    record["b"] = [1, 2, 3]
    same(tw.asarray(record["b"]), [1.0, 2.0, 3.0])

    class Wrapped:
        def __array__(self, dtype: object = None, copy: object = None) -> np.ndarray:
            return np.arange(3)

    same(tw.asarray(Wrapped()), np.arange(3))
    for wrong in ([[1, 2], [3]], [1, [2]], [[1], 2]):
        with pytest.raises(ValueError):
            tw.asarray(wrong)
    for wrong in ("text", None, object(), np.array(["a"]), np.array([None])):
        with pytest.raises(TypeError):
            tw.asarray(wrong)
    with pytest.raises(ValueError):
        tw.asarray([1, 2], copy=False)


def test_bfloat16_through_ml_dtypes(host: tw.device) -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    n = np.asarray([1.5, 2.5], dtype=ml_dtypes.bfloat16)
    x = tw.asarray(n)
    assert x.dtype == tw.bfloat16 and (x + x).tolist() == [3.0, 5.0]
    assert np.asarray(x).dtype == n.dtype and np.shares_memory(np.asarray(x), n)
    assert np.dtype(tw.bfloat16) == n.dtype


OPERATORS = [
    operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod,
    operator.pow, operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge,
]  # fmt: skip


@pytest.mark.parametrize("op", OPERATORS)
@pytest.mark.parametrize("name", ["int32", "float32", "float64"])
def test_operators(device: tw.device, op: object, name: str) -> None:
    n = np.arange(1, 7).reshape(2, 3).astype(name)
    x = tw.asarray(n)
    for other in (n, 2, n[0], np.float64(2), [1, 2, 3]):
        ours = tw.asarray(other) if isinstance(other, np.ndarray) else other
        same(op(x, ours), op(n, other))
        same(op(x, other), op(n, other))
        assert isinstance(op(other, x), tw.Array)
        same(op(other, x), op(other, n))


def test_bits_and_matmul_and_in_place(device: tw.device) -> None:
    n = np.arange(1, 5).reshape(2, 2)
    x = tw.asarray(n.copy())
    for op in (operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift):
        same(op(x, 3), op(n, 3))
        same(op(3, x), op(3, n))
    same(x @ x, n @ n)
    same(n @ x, n @ n)
    same(~x, ~n)
    same(-x, -n)
    same(abs(-x), n)
    y = x
    y += 1
    y *= x
    assert y is x
    same(x, (n + 1) ** 2)
    x @= tw.asarray(n)
    same(x, ((n + 1) ** 2) @ n)
    with pytest.raises(TypeError):
        x += 1.5
    with pytest.raises(TypeError):
        x + "text"
    with pytest.raises(TypeError):
        hash(x)


def test_numpy_functions_give_ours(device: tw.device) -> None:
    n = np.asarray([1.0, 2.0, 4.0])
    x = tw.asarray(n)
    assert isinstance(np.exp(x), tw.Array)
    np.testing.assert_allclose(np.exp(x), np.exp(n), rtol=1e-15)
    same(np.add(n, x), n + n)
    same(n + x, n + n)
    same(np.float32(2) * x, 2 * n)
    same(np.power(x, 2), n**2)
    assert float(np.sum(x)) == 7 and float(np.max(x)) == 4 and float(np.add.reduce(x)) == 7
    assert all(type(part) is tw.Array for part in np.modf(x))


def test_numpy_functions_write_to_numpy(host: tw.device) -> None:
    n = np.asarray([1.0, 2.0, 4.0])
    x = tw.asarray(n, copy=True)
    n += x
    same(tw.asarray(n), [2.0, 4.0, 8.0])
    out = np.zeros(3)
    assert np.multiply(x, 4, out=out) is out and out.sum() == 28


def test_indexing(device: tw.device) -> None:
    n = np.arange(60).reshape(3, 4, 5)
    x = tw.asarray(n.copy())
    picks = np.asarray([2, 0, -1])
    mask = n % 3 == 0
    keys = [
        0, -1, slice(1, 3), slice(None, None, -1), ..., None, (0, 1, 2), (slice(None), 1),
        (..., 0), (None, ..., None), (1, ..., slice(0, 5, 2)), picks, [0, 2], mask, mask[0, 0, 0],
        (picks, 1), (slice(None), [0, 3, 1], [1, 2, 3]), (0, slice(None), picks),
        (picks[:, None], [1, 2]), (mask[:, 0, 0],), np.int64(1), (True, 0), [], (np.array(1), 2),
    ]  # fmt: skip
    for key in keys:
        same(x[key], n[key])
        y, m = x.copy(), n.copy()
        y[key] = -1
        m[key] = -1
        same(y, m)
    y, m = x.copy(), n.copy()
    y[:, [0, 1]] = tw.asarray(n[:, 2:])
    m[:, [0, 1]] = n[:, 2:]
    same(y, m)
    y[0, 0, 0] = 1.9
    assert y[0, 0, 0] == 1
    same(x[tw.asarray(mask)], n[mask])
    view = x[1:, ::2]
    view[...] = 0
    assert x[1:, ::2].sum() == 0
    for key in (3, (0, 0, 0, 0), (..., ...), "a", 1.5, [0.5], [7], np.zeros((2, 2), bool)):
        with pytest.raises(IndexError):
            x[key]
    with pytest.raises(ValueError):
        x[0] = tw.zeros((7, 7))


def test_scalars_and_iteration(device: tw.device) -> None:
    x = tw.asarray([[1, 2], [3, 4]])
    assert len(x) == 2 and [row.tolist() for row in x] == [[1, 2], [3, 4]]
    assert 3 in x and 7 not in x
    assert bool(tw.asarray(1)) and not bool(tw.asarray([0.0]))
    assert int(tw.asarray(2.7)) == 2 and float(tw.asarray(2)) == 2.0
    assert complex(tw.asarray(1 + 2j)) == 1 + 2j
    assert operator.index(tw.asarray(3)) == 3 and [10, 20][tw.asarray(1)] == 20
    assert x.item(1, 0) == 3 and x.item(3) == 4 and x.tolist() == [[1, 2], [3, 4]]
    for wrong in (lambda: bool(x), lambda: float(x), lambda: operator.index(tw.asarray(1.0)),
                  lambda: len(tw.asarray(1)), lambda: iter(tw.asarray(1))):  # fmt: skip
        with pytest.raises((TypeError, ValueError)):
            wrong()


def test_attributes_and_methods(device: tw.device) -> None:
    n = np.arange(24, dtype="float32").reshape(2, 3, 4)
    x = tw.asarray(n)
    assert (x.ndim, x.size, x.itemsize, x.nbytes, x.strides) == (3, 24, 4, 96, n.strides)
    same(x.T, n.T)
    same(x.mT, n.mT)
    for call in (
        lambda a: a.reshape(4, 6), lambda a: a.reshape((4, -1)), lambda a: a.transpose(),
        lambda a: a.transpose(2, 0, 1), lambda a: a.sum(), lambda a: a.sum(axis=1),
        lambda a: a.sum(axis=(0, 2), keepdims=True), lambda a: a.mean(0), lambda a: a.max(axis=-1),
        lambda a: a.argmax(), lambda a: a.argmin(axis=1), lambda a: a.any(), lambda a: a.all(axis=0),
        lambda a: a.prod(axis=0), lambda a: a.ravel(), lambda a: a.T.ravel(), lambda a: a.flatten(),
        lambda a: a.copy(), lambda a: a.astype("int16"), lambda a: a.swapaxes(0, 2),
        lambda a: a[:1].squeeze(), lambda a: a.clip(3, 7), lambda a: a.cumsum(), lambda a: a.cumsum(1),
        lambda a: a.repeat(2, axis=1), lambda a: a.take([1, 2], axis=2), lambda a: a.diagonal(),
        lambda a: a.conj(), lambda a: a.round(),
    ):  # fmt: skip
        same(call(x), call(n))
    np.testing.assert_allclose(x.std(ddof=1), n.std(ddof=1), rtol=1e-6)
    np.testing.assert_allclose(x.var(axis=0), n.var(axis=0), rtol=1e-6)
    assert x.tobytes() == n.tobytes()


def test_dtypes() -> None:
    assert tw.dtype("float32") is tw.float32 and tw.float32 == "float32" == tw.float32
    assert tw.float32 == np.float32 and tw.float32 == np.dtype("float32") and tw.float64 == float
    assert np.dtype(tw.int8) == np.int8 and np.zeros(2, dtype=tw.int8).dtype == np.int8
    assert repr(tw.int8) == "dtype('int8')" and str(tw.int8) == "int8" and hash(tw.int8)
    assert {tw.int8: 1}[tw.dtype("i1")] == 1 and tw.int8 != tw.int16 and tw.int8 != None  # noqa: E711
    assert tw.result_type(tw.int8, tw.uint8) == tw.int16 and tw.isdtype(tw.int8, "integral")
    assert tw.result_type(tw.float32, 1.0) == tw.float32 and tw.can_cast(tw.int8, tw.int16)
    assert tw.finfo(tw.float32).bits == 32 and tw.iinfo("uint8").max == 255
    assert pickle.loads(pickle.dumps(tw.int8)) is tw.int8
    with pytest.raises(TypeError):
        tw.dtype("float128")


def test_devices() -> None:
    assert tw.default_device() == "cpu"
    with tw.device("reference") as device:
        assert tw.zeros(2).device == device == "reference"
        with tw.device("cpu"):
            assert tw.zeros(2).device == "cpu"
        assert tw.zeros(2).device == "reference"
    x = tw.zeros(2, device="reference")
    assert x.to_device("cpu").device == "cpu" and x.to_device("reference") is x
    with pytest.raises(tw.DeviceError, match="to_device"):
        x + tw.zeros(2)
    with pytest.raises(tw.DeviceError):
        tw.device("abacus")
    assert issubclass(tw.DeviceError, RuntimeError) and issubclass(tw.FormulaError, ValueError)
    assert tw.cuda.is_available() == (tw.cuda.why_not() is None)
    threads = tw.get_num_threads()
    tw.set_num_threads(2)
    assert tw.get_num_threads() == 2
    tw.set_num_threads(threads)
    tw.empty_cache()


def test_errors() -> None:
    x = tw.zeros((3, 4))
    with pytest.raises(ValueError, match=r"\(3, 4\).*\(5,\)"):
        x + tw.zeros(5)
    with pytest.raises(ValueError, match="matmul"):
        x @ x
    with pytest.raises(tw.AxisError) as raised:
        x.sum(axis=2)
    assert isinstance(raised.value, ValueError) and isinstance(raised.value, IndexError)
    with pytest.raises(MemoryError):
        tw.empty(2**60)
    odd = np.frombuffer(bytes(17), np.uint8)[1:].view(np.float64)
    with pytest.raises(MemoryError):
        tw.asarray(np.broadcast_to(odd[:1], 2**58))
    assert not tw.shares_memory(x[:1], x[1:]) and tw.shares_memory(x[:2], x[1:])
    with pytest.raises(TypeError):
        tw.matmul(x, tw.zeros((4, 3)), out=tw.zeros((3, 3), dtype=tw.float16))
    with pytest.raises(ValueError):
        tw.zeros((-1,))
    with pytest.raises(TypeError):
        tw.zeros("ab")


def test_pickle_copy_weakref(device: tw.device) -> None:
    x = tw.asarray(np.arange(6, dtype="float32").reshape(2, 3).T)
    for again in (pickle.loads(pickle.dumps(x)), copy.copy(x), copy.deepcopy(x)):
        same(again, np.asarray(x))
        assert again.device == x.device and not tw.shares_memory(again, x)
    assert weakref.ref(x)() is x


def test_dlpack(host: tw.device) -> None:
    n = np.arange(6.0).reshape(2, 3)
    x = tw.from_dlpack(n.T)
    same(x, n.T)
    x[0, 0] = 9
    assert n[0, 0] == 9
    back = np.from_dlpack(x)
    assert np.shares_memory(back, n)
    assert x.__dlpack_device__() == (1, 0)
    assert not tw.shares_memory(tw.from_dlpack(x, copy=True), x)
    capsule = x.__dlpack__()
    del capsule
    with pytest.raises(TypeError):
        tw.from_dlpack([1, 2])


def test_functions_of_each_room(device: tw.device, tmp_path: Path) -> None:
    n = np.asarray([[3.0, 1.0], [2.0, 1.0]])
    x = tw.asarray(n, copy=True)
    same(tw.concat([x, x], axis=1), np.concatenate([n, n], axis=1))
    same(tw.concat([x, x], axis=None), np.concatenate([n, n], axis=None))
    same(tw.stack([x, x], axis=-1), np.stack([n, n], axis=-1))
    same(tw.sort(x, axis=0), np.sort(n, axis=0))
    same(tw.argsort(x, axis=1), np.argsort(n, axis=1, stable=True))
    same(tw.where(x > 1, x, 0), np.where(n > 1, n, 0))
    same(tw.unique_values(x), np.unique(n))
    found = tw.unique_all(x)
    assert found.counts.tolist() == [2, 1, 1] and found.inverse_indices.shape == (2, 2)
    same(tw.isin(x, [1.0, 3.0]), np.isin(n, [1.0, 3.0]))
    same(tw.roll(x, (1, 1), axis=(0, 1)), np.roll(n, (1, 1), axis=(0, 1)))
    same(tw.pad(x, ((1, 0), (0, 2)), "edge"), np.pad(n, ((1, 0), (0, 2)), "edge"))
    same(tw.einsum("ij,kj->ik", x, x), np.einsum("ij,kj->ik", n, n))
    same(tw.einsum("ii", x), np.einsum("ii", n))
    same(tw.einsum("...j,j", x, x[0]), np.einsum("...j,j", n, n[0]))
    same(tw.tensordot(x, x), np.tensordot(n, n))
    same(tw.cumulative_sum(x, axis=0, include_initial=True), np.cumulative_sum(n, axis=0, include_initial=True))
    same(tw.tile(x, (2, 1)), np.tile(n, (2, 1)))
    same(tw.searchsorted(tw.asarray([1, 2, 3]), 2, side="right"), np.searchsorted([1, 2, 3], 2, side="right"))
    same(tw.diff(x, prepend=tw.zeros((2, 1))), np.diff(n, prepend=np.zeros((2, 1))))
    same(tw.take_along_axis(x, tw.argsort(x)), np.sort(n))
    same(tw.add(x, 1, out=x), n + 1)
    x -= 1
    assert tw.allclose(tw.softmax(x).sum(axis=-1), tw.ones(2))
    assert tw.array_equal(x, x) and not tw.array_equal(x, x[0])
    assert float(tw.erf(tw.asarray(0.5))) == pytest.approx(math.erf(0.5), rel=1e-15)
    assert tw.relu(tw.asarray([-1.0, 2.0])).tolist() == [0.0, 2.0]
    tw.save(tmp_path / "x.npy", x)
    same(tw.load(tmp_path / "x.npy"), n)
    mapped = tw.load(tmp_path / "x.npy", mmap_mode="r")
    assert mapped.writable == str(device).startswith("cuda")  # a card has its own copy
    tw.savez(tmp_path / "two.npz", x, other=x[0])
    assert set(tw.load(tmp_path / "two.npz")) == {"arr_0", "other"}
    with pytest.raises(OSError):
        tw.load(tmp_path / "missing.npy")


def test_random(device: tw.device) -> None:
    a, b = tw.random.default_rng(3), tw.random.default_rng(3)
    assert a.random((2, 3)).tolist() == b.random((2, 3)).tolist()
    assert isinstance(a.random(), float) and isinstance(a.integers(5), int)
    assert 0 <= float(a.uniform(0, 2, size=100).min()) and a.normal(3, 0.1, 50).mean() > 2
    assert sorted(a.permutation(5).tolist()) == [0, 1, 2, 3, 4]
    assert set(a.integers(2, 4, size=50).tolist()) == {2, 3}
    assert a.choice(5, size=3, replace=False).shape == (3,)
    assert a.choice(tw.asarray([7, 8]), 4, p=[0.0, 1.0]).tolist() == [8] * 4
    assert a.standard_normal(4, dtype="float32").dtype == tw.float32
    c = pickle.loads(pickle.dumps(a))
    assert c.random(3).tolist() == a.random(3).tolist()


def test_printing(device: tw.device) -> None:
    n = np.asarray([[1.0, 2.5], [3.0, 4.0]])
    assert str(tw.asarray(n)) == str(n) and repr(tw.asarray(n)) == repr(n)
    long = np.arange(5000)
    assert repr(tw.asarray(long)) == repr(long)
    before = tw.get_printoptions()
    tw.set_printoptions(precision=2)
    assert str(tw.asarray([1 / 3])) == "[0.33]"
    tw.set_printoptions(**before)
    assert f"{tw.asarray(1.5):.3f}" == "1.500"


def test_threads_on_one_array() -> None:
    x = tw.zeros(200_000)

    def work() -> None:
        for _ in range(20):
            x.__iadd__(1)
            (x + x).sum()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert x.min() == x.max() == 80


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_fork_does_not_hang() -> None:
    x = tw.ones(1_000_000)
    assert (x + x).sum() == 2_000_000
    child = os.fork()
    if child == 0:
        os._exit(0 if float((x + x).sum()) == 2_000_000 else 1)
    assert os.waitpid(child, 0)[1] == 0


def private_kib(path: Path) -> int:
    """What this process has written to a file that is mapped for itself alone."""
    lines, inside, total = Path("/proc/self/smaps").read_text().splitlines(), False, 0
    for line in lines:
        if re.match(r"[0-9a-f]+-[0-9a-f]+ ", line):
            inside = line.endswith(str(path))
        elif inside and line.startswith("Private_Dirty:"):
            total += int(line.split()[1])
    return total


@pytest.mark.skipif(not Path("/proc/self/smaps").exists(), reason="asks Linux for its pages")
@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32", "float64", "complex128"])
def test_what_a_mask_leaves_is_not_written(tmp_path: Path, dtype: str) -> None:
    path = tmp_path / "x.npy"
    n = np.arange(1 << 20, dtype="i4").astype(dtype)
    np.save(path, n)
    x, mask = tw.load(path, mmap_mode="c"), np.zeros(n.size, bool)
    mask[[7, 500_000]] = True
    x[tw.asarray(mask)] = 1
    x[::3][tw.asarray(mask[::3])] = 2
    assert private_kib(path) <= 64
    n[mask] = 1
    n[::3][mask[::3]] = 2
    np.testing.assert_array_equal(np.asarray(x), n)
