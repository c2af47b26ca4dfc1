"""The flat-buffer modules of `tilework.needle`: every function, on every device, against NumPy."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

import tilework.needle as nd

DEVICES = [device for device in nd.all_devices() if device.enabled()]
rng = np.random.default_rng(20)


@pytest.fixture(params=DEVICES, ids=str)
def device(request: pytest.FixtureRequest) -> Any:
    return request.param


def buffer(device: Any, values: Any) -> Any:
    values = np.asarray(values)
    made = device.Array(values.size)
    device.from_numpy(np.ascontiguousarray(values), made)
    return made


def read(device: Any, made: Any) -> Any:
    return device.to_numpy(made, (made.size,), (1,), 0)


# Buffers


def test_constants() -> None:
    assert nd.cpu().__device_name__ == "cpu"
    assert nd.cpu_numpy().__device_name__ == "numpy"
    assert isinstance(nd.cpu().__tile_size__, int)
    assert hasattr(nd.cpu(), "matmul_tiled")
    assert not hasattr(nd.cpu_numpy(), "matmul_tiled")
    assert not hasattr(nd.cpu_numpy(), "__tile_size__")


def test_buffer(device: Any) -> None:
    made = device.Array(5)
    assert made.size == 5
    assert isinstance(made.ptr(), int)
    assert made.ptr() == made.ptr() != device.Array(5).ptr()
    with pytest.raises(AttributeError):
        made.size = 3
    assert device.Array(0).size == 0
    assert read(device, device.Array(0)).shape == (0,)
    assert device.Array(np.int64(3)).size == 3


def test_buffer_of_wrong_size(device: Any) -> None:
    for size in (-1, 1.5, "3", None):
        with pytest.raises(TypeError):
            device.Array(size)
    with pytest.raises((MemoryError, RuntimeError)):
        device.Array(1 << 58)
    with pytest.raises((MemoryError, RuntimeError)):
        device.Array(1 << 80)


def test_alignment() -> None:
    keep = [nd.cpu().Array(size) for size in (0, 1, 2, 3, 63, 64, 65, 1000, 4097)]
    assert all(made.ptr() % 256 == 0 for made in keep if made.size)


def test_numpy_buffer_shows_its_array() -> None:
    made = buffer(nd.cpu_numpy(), [1, 2, 3])
    made.array[1] = 7
    assert read(nd.cpu_numpy(), made).tolist() == [1, 7, 3]


def test_buffer_pickles(device: Any) -> None:
    made = buffer(device, [1, 2, 3])
    for other in (pickle.loads(pickle.dumps(made)), copy.deepcopy(made)):
        assert type(other) is type(made) and other.ptr() != made.ptr()
        assert read(device, other).tolist() == [1, 2, 3]


# Transfers


@pytest.mark.parametrize("dtype", ["int8", "uint64", "int64", "float16", "float64", "bool", ">f4"])
def test_from_numpy_converts(device: Any, dtype: str) -> None:
    values = np.array([0, 1, 1, 0, 1, 0]).astype(dtype)
    result = read(device, buffer(device, values))
    assert result.dtype == np.float32
    np.testing.assert_array_equal(result, values.astype(np.float32))


def test_from_numpy_checks_length(device: Any) -> None:
    for size in (2, 4):
        with pytest.raises(ValueError):
            device.from_numpy(np.zeros(3, np.float32), device.Array(size))


def test_from_numpy_reads_any_layout(device: Any) -> None:
    values = np.arange(6.0).reshape(2, 3).T
    made = device.Array(6)
    assert device.from_numpy(values, made) is None
    np.testing.assert_array_equal(read(device, made), values.reshape(-1))
    frozen = np.arange(3, dtype=np.float32)
    frozen.flags.writeable = False
    assert read(device, buffer(device, frozen)).tolist() == [0, 1, 2]


def test_to_numpy_is_a_copy(device: Any) -> None:
    made = buffer(device, np.arange(12))
    seen = device.to_numpy(made, (4, 3), (1, 4), 0)
    np.testing.assert_array_equal(seen, np.arange(12).reshape(3, 4).T)
    assert seen.flags.writeable and seen.dtype == np.float32
    seen[...] = -1
    assert read(device, made).tolist() == list(range(12))
    wide = device.to_numpy(made, [2, 3], [0, 1], 5)
    assert wide.tolist() == [[5, 6, 7], [5, 6, 7]]
    wide[0, 0] = 9
    assert wide[1, 0] == 5


@pytest.mark.parametrize(
    "shape, strides, offset",
    [
        ((13,), (1,), 0),
        ((12,), (1,), 1),
        ((2, 6), (7, 1), 0),
        ((1,), (1,), -1),
        ((1,), (1,), 12),
        ((2,), (-1,), 0),
        ((3,), (1, 1), 0),
        ((-1,), (1,), 0),
        ((1 << 62, 4), (1 << 62, 1), 0),
    ],
)
def test_windows_stay_inside(device: Any, shape: Any, strides: Any, offset: int) -> None:
    made, small = buffer(device, np.arange(12)), device.Array(1)
    with pytest.raises(ValueError):
        device.to_numpy(made, shape, strides, offset)
    with pytest.raises(ValueError):
        device.compact(made, small, shape, strides, offset)
    with pytest.raises(ValueError):
        device.ewise_setitem(small, made, shape, strides, offset)
    with pytest.raises(ValueError):
        device.scalar_setitem(1, 5.0, made, shape, strides, offset)
    assert read(device, made).tolist() == list(range(12))


def test_fill(device: Any) -> None:
    made = device.Array(4)
    assert device.fill(made, np.int16(3)) is None
    assert read(device, made).tolist() == [3, 3, 3, 3]
    for wrong in ("3", None, 1j, [1], np.ones(4)):
        with pytest.raises(TypeError):
            device.fill(made, wrong)


LAYOUTS = [
    ((3, 4), (4, 1), 0),
    ((4, 3), (1, 4), 0),
    ((2, 2), (8, 2), 1),
    ((2, 3, 4), (0, 4, 1), 0),
    ((3, 4), (-4, -1), 11),
    ((12,), (-1,), 11),
    ((), (), 7),
    ((0, 3), (3, 1), 0),
    ((1, 2, 1, 2, 1, 3, 1), (9, 6, 9, 3, 9, 1, 9), 0),
    ((10, 3), (1, 1), 0),
]


@pytest.mark.parametrize("shape, strides, offset", LAYOUTS)
def test_compact(device: Any, shape: Any, strides: Any, offset: int) -> None:
    values = np.arange(12, dtype=np.float32)
    steps = [4 * stride for stride in strides]
    wanted = np.lib.stride_tricks.as_strided(values[offset:], shape, steps)
    out = device.Array(wanted.size)
    made = buffer(device, values)
    assert device.compact(made, out, shape, strides, offset) is None
    np.testing.assert_array_equal(read(device, out), wanted.reshape(-1))
    device.compact(made, out, list(shape), list(strides), offset)
    np.testing.assert_array_equal(read(device, out), wanted.reshape(-1))
    np.testing.assert_array_equal(device.to_numpy(made, shape, strides, offset), wanted)
    with pytest.raises(ValueError):
        device.compact(made, device.Array(wanted.size + 1), shape, strides, offset)


@pytest.mark.parametrize("shape, strides, offset", LAYOUTS)
def test_setitem(device: Any, shape: Any, strides: Any, offset: int) -> None:
    values = np.arange(12, dtype=np.float32)
    source = 100 + np.arange(np.prod(shape, dtype=int), dtype=np.float32).reshape(shape)
    wanted, marked = values.copy(), values.copy()
    # Element by element in row-major order: where several reach one, the last stays.
    for index in np.ndindex(*shape):
        at = offset + sum(i * stride for i, stride in zip(index, strides, strict=True))
        wanted[at], marked[at] = source[index], 50
    made = buffer(device, values)
    assert device.ewise_setitem(buffer(device, source), made, shape, strides, offset) is None
    np.testing.assert_array_equal(read(device, made), wanted)
    made = buffer(device, values)
    assert device.scalar_setitem(source.size, 50, made, shape, strides, offset) is None
    np.testing.assert_array_equal(read(device, made), marked)
    with pytest.raises(ValueError):
        device.scalar_setitem(source.size + 1, 50, made, shape, strides, offset)
    with pytest.raises(ValueError):
        device.ewise_setitem(device.Array(source.size + 1), made, shape, strides, offset)


# Elementwise

BINARY = {
    "add": np.add,
    "mul": np.multiply,
    "div": np.divide,
    "maximum": np.maximum,
    "eq": np.equal,
    "ge": np.greater_equal,
}
SPECIAL = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 3.5], np.float32)


@pytest.mark.parametrize("name", BINARY)
def test_binary(device: Any, name: str) -> None:
    a, b = np.repeat(SPECIAL, 8), np.tile(SPECIAL, 8)
    out = device.Array(64)
    function = getattr(device, "ewise_" + name)
    assert function(buffer(device, a), buffer(device, b), out) is None
    with np.errstate(all="ignore"):
        wanted = BINARY[name](a, b).astype(np.float32)
    np.testing.assert_array_equal(read(device, out), wanted)
    for sizes in ((3, 3, 4), (3, 4, 3), (3, 1, 3), (1, 1, 3)):
        with pytest.raises(ValueError):
            function(*map(device.Array, sizes))


@pytest.mark.parametrize("name", BINARY)
def test_scalar(device: Any, name: str) -> None:
    function = getattr(device, "scalar_" + name)
    for value in (2, -0.5, True, np.float64(0.1), np.uint8(7), np.array(3.5), 0, np.nan, 1e300):
        out = device.Array(8)
        assert function(buffer(device, SPECIAL), value, out) is None
        with np.errstate(all="ignore"):
            wanted = BINARY[name](SPECIAL, np.float32(value)).astype(np.float32)
        np.testing.assert_array_equal(read(device, out), wanted)
    for wrong in ("2", None, 1j, np.ones(8), [1]):
        with pytest.raises(TypeError):
            function(buffer(device, SPECIAL), wrong, device.Array(8))
    with pytest.raises(ValueError):
        function(device.Array(3), 1.0, device.Array(4))


def test_scalar_is_rounded_first(device: Any) -> None:
    values = rng.standard_normal(50)
    made, out = buffer(device, values), device.Array(50)
    for at, value in enumerate(values):
        device.scalar_eq(made, value, out)
        assert read(device, out)[at] == 1.0
        device.scalar_ge(made, value, out)
        assert read(device, out)[at] == 1.0


def test_scalar_power(device: Any) -> None:
    values = np.array([-2.0, -1.0, 0.0, 0.5, 3.0], np.float32)
    for power in (0, 2, 5.0, 0.5, -1, np.int32(3)):
        out = device.Array(5)
        assert device.scalar_power(buffer(device, values), power, out) is None
        with np.errstate(all="ignore"):
            wanted = np.power(values, np.float32(power))
        np.testing.assert_allclose(read(device, out), wanted, rtol=1e-6)
    with pytest.raises(TypeError):
        device.scalar_power(device.Array(2), device.Array(2), device.Array(2))


@pytest.mark.parametrize("name", ["log", "exp", "tanh"])
def test_unary(device: Any, name: str) -> None:
    values = np.concatenate([SPECIAL, rng.standard_normal(100).astype(np.float32)])
    out = device.Array(values.size)
    function = getattr(device, "ewise_" + name)
    assert function(buffer(device, values), out) is None
    with np.errstate(all="ignore"):
        wanted = getattr(np, name)(values.astype(np.float64))
    np.testing.assert_allclose(read(device, out), wanted, rtol=1e-6, atol=1e-7)
    with pytest.raises(ValueError):
        function(device.Array(3), device.Array(2))


def test_result_may_be_an_operand(device: Any) -> None:
    made = buffer(device, [1, 2, 3])
    device.ewise_add(made, made, made)
    device.scalar_mul(made, 2, made)
    assert read(device, made).tolist() == [4, 8, 12]


def test_buffers_of_another_device() -> None:
    mine, other = nd.cpu(), nd.cpu_numpy()
    for a, b in ((mine, other), (other, mine)):
        with pytest.raises(TypeError):
            a.ewise_add(a.Array(3), b.Array(3), a.Array(3))
        with pytest.raises(TypeError):
            a.ewise_exp(a.Array(3), b.Array(3))
        with pytest.raises(TypeError):
            a.fill(b.Array(3), 1.0)
        with pytest.raises(TypeError):
            a.fill(np.ones(3, np.float32), 1.0)


# Products and reductions


@pytest.mark.parametrize("m, n, p", [(1, 2, 3), (5, 4, 3), (8, 16, 24), (3, 0, 2), (0, 3, 2)])
def test_matmul(device: Any, m: int, n: int, p: int) -> None:
    a, b = rng.standard_normal((m, n)), rng.standard_normal((n, p))
    out = device.Array(m * p)
    device.fill(out, np.nan)
    assert device.matmul(buffer(device, a), buffer(device, b), out, m, n, p) is None
    np.testing.assert_allclose(read(device, out), (a @ b).reshape(-1), rtol=1e-5, atol=1e-5)
    with pytest.raises(ValueError):
        device.matmul(buffer(device, a), buffer(device, b), out, m + 1, n, p)
    with pytest.raises(ValueError):
        device.matmul(device.Array(4), device.Array(4), device.Array(4), -2, -2, -2)


@pytest.mark.parametrize("counts", [(1, 1, 1), (2, 2, 3), (1, 2, 1), (3, 3, 3), (1, 2, 3)])
def test_matmul_tiled(counts: tuple[int, int, int]) -> None:
    device = nd.cpu()
    t = device.__tile_size__
    m, n, p = (count * t for count in counts)
    a, b = rng.standard_normal((m, n)), rng.standard_normal((n, p))

    def tiles(matrix: Any) -> Any:
        rows, columns = matrix.shape
        return matrix.reshape(rows // t, t, columns // t, t).transpose(0, 2, 1, 3)

    left, right = nd.array(tiles(a), device=device), nd.array(tiles(b), device=device)
    out = nd.NDArray.make((m // t, p // t, t, t), device=device)
    out.fill(np.nan)
    assert device.matmul_tiled(left._handle, right._handle, out._handle, m, n, p) is None
    np.testing.assert_allclose(out.numpy(), tiles(a @ b), rtol=1e-5, atol=1e-5)


def test_matmul_tiled_checks() -> None:
    device = nd.cpu()
    t = device.__tile_size__
    full, short = device.Array(t * t), device.Array(t * t - 1)
    for buffers in ((short, full, full), (full, short, full), (full, full, short)):
        with pytest.raises(ValueError):
            device.matmul_tiled(*buffers, t, t, t)
    with pytest.raises(ValueError):
        device.matmul_tiled(full, full, full, t, t, t + 1)
    with pytest.raises(ValueError):
        device.matmul_tiled(full, full, full, 1, 1, 1)


@pytest.mark.parametrize("rows, run", [(1, 10), (6, 5), (7, 1), (0, 3), (3, 0)])
def test_reductions(device: Any, rows: int, run: int) -> None:
    values = rng.standard_normal((rows, run)).astype(np.float32)
    out = device.Array(rows)
    assert device.reduce_sum(buffer(device, values), out, run) is None
    np.testing.assert_allclose(read(device, out), values.sum(1), rtol=1e-5, atol=1e-6)
    if run == 0:
        with pytest.raises(ValueError):
            device.reduce_max(buffer(device, values), out, run)
    else:
        assert device.reduce_max(buffer(device, values), out, run) is None
        np.testing.assert_array_equal(read(device, out), values.max(1))
    for function in (device.reduce_sum, device.reduce_max):
        with pytest.raises(ValueError):
            function(buffer(device, values), device.Array(rows + 1), run + 1)


def test_reduce_max_propagates_nan(device: Any) -> None:
    for at in range(3):
        values = np.array([1.0, 5.0, 3.0])
        values[at] = np.nan
        out = device.Array(1)
        device.reduce_max(buffer(device, values), out, 3)
        assert np.isnan(read(device, out)[0])
