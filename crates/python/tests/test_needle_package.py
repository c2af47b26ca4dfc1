"""The package `tilework.needle`: names, devices, creation, editions, and being needle's."""

from __future__ import annotations

import copy
import os
import pickle
import subprocess
import sys
import types
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tilework.needle as nd

DEVICES = [device for device in nd.all_devices() if device.enabled()]


@pytest.fixture(params=DEVICES, ids=str)
def device(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture(autouse=True)
def settings() -> Iterator[None]:
    yield
    nd.set_edition(2024)
    nd.set_default_device(None)


# Names


def test_names() -> None:
    names = """BackendDevice NDArray all_devices array broadcast_to cpu cpu_numpy cuda
    default_device empty exp full log maximum prod reshape sum tanh flip math
    operator reduce np ndarray ndarray_backend_cpu ndarray_backend_numpy
    set_edition set_default_device numpy_device"""
    for name in names.split():
        assert hasattr(nd, name), name
        assert name == "ndarray" or getattr(nd.ndarray, name) is getattr(nd, name)
    for name in ("max", "matmul", "power", "transpose", "stack", "split", "zeros", "ones"):
        assert not hasattr(nd, name)
    for name in ("stack", "pad", "copy", "squeeze"):
        assert not hasattr(nd, name)


def test_functions(device: Any) -> None:
    values = np.array([[1.0, 4.0, 2.0]])
    a = nd.array(values, device=device)
    assert nd.broadcast_to(a, (2, 3)).shape == (2, 3)
    assert nd.reshape(a, (3, 1)).shape == (3, 1)
    assert nd.reshape(a, [3, -1]).shape == (3, 1)
    assert nd.maximum(a, 2).numpy().tolist() == [[2, 4, 2]]
    assert nd.maximum(a, -a).numpy().tolist() == values.tolist()
    for name in ("log", "exp", "tanh"):
        result = getattr(nd, name)(a)
        np.testing.assert_allclose(result.numpy(), getattr(np, name)(values), rtol=1e-6)
        np.testing.assert_array_equal(getattr(a, name)().numpy(), result.numpy())
    assert nd.sum(a).numpy().tolist() == [7]
    assert nd.sum(a, axis=1).shape == (1,)
    assert nd.sum(a, axis=1, keepdims=True).shape == (1, 1)
    assert nd.flip(a, (1,)).numpy().tolist() == [[2, 4, 1]]
    assert nd.prod((2, 3)) == 6 and nd.prod([]) == 1 and nd.prod(iter([5])) == 5


# Devices


def test_factories() -> None:
    assert [device.name for device in nd.all_devices()] == ["cpu", "cuda", "cpu_numpy"]
    assert nd.cpu().enabled() and nd.cpu_numpy().enabled()
    assert nd.default_device() == nd.cpu_numpy() == nd.numpy_device()
    assert nd.cpu() is not nd.cpu() and nd.cpu() == nd.cpu() != nd.cpu_numpy()
    assert nd.cpu() != None and nd.cpu() != "cpu"  # noqa: E711
    assert [repr(device) for device in nd.all_devices()] == ["cpu()", "cuda()", "cpu_numpy()"]
    assert str(nd.cpu()) == "cpu()"
    assert len({nd.cpu(), nd.cpu(), nd.cuda()}) == 2


def test_disabled_device() -> None:
    absent = nd.BackendDevice("nothing", None)
    assert bool(absent) and not absent.enabled()
    for name in ("Array", "ewise_add", "__tile_size__"):
        with pytest.raises(AttributeError):
            getattr(absent, name)
    with pytest.raises(AttributeError):
        nd.array([1], device=absent)
    import tilework as tw

    assert nd.cuda().enabled() == tw.cuda.is_available()


def test_device_copies_and_pickles() -> None:
    for device in [*nd.all_devices(), nd.BackendDevice("nothing", None)]:
        for other in (
            copy.copy(device),
            copy.deepcopy(device),
            pickle.loads(pickle.dumps(device)),
        ):
            assert other == device and other.mod is device.mod
    fresh = nd.BackendDevice.__new__(nd.BackendDevice)
    for name in ("mod", "name", "Array"):
        with pytest.raises(AttributeError):
            getattr(fresh, name)


def test_default_device() -> None:
    for chosen in (nd.cpu(), "cpu"):
        nd.set_default_device(chosen)
        assert nd.default_device() == nd.cpu()
        for made in (nd.array([1]), nd.empty((1,)), nd.full((1,), 2), nd.NDArray.make((1,))):
            assert made.device == nd.cpu()
    nd.set_default_device("reference")
    assert nd.default_device() == nd.cpu_numpy()
    nd.set_default_device(None)
    assert nd.default_device() == nd.cpu_numpy()
    with pytest.raises(ValueError):
        nd.set_default_device("gpu")
    with pytest.raises(ValueError):
        nd.set_default_device(nd.BackendDevice("nothing", None))
    with pytest.raises(TypeError):
        nd.set_default_device(3)  # type: ignore[arg-type]


def test_random_numbers_follow_numpy(device: Any) -> None:
    for ours, theirs in ((device.randn, np.random.randn), (device.rand, np.random.rand)):
        for shape in ((3, 4), (5,), ()):
            np.random.seed(7)
            wanted = np.asarray(theirs(*shape), np.float32)
            np.random.seed(7)
            made = ours(*shape)
            assert made.device == device and made.shape == shape
            np.testing.assert_array_equal(made.numpy(), wanted)
        assert ours(2, dtype="float32").dtype == "float32"


def test_one_hot(device: Any) -> None:
    index = np.array([[0, 2], [3, -1]])
    made = device.one_hot(4, index)
    assert made.device == device
    np.testing.assert_array_equal(made.numpy(), np.eye(4)[index])
    assert device.one_hot(3, 1, dtype="float32").numpy().tolist() == [0, 1, 0]
    for wrong in (np.array([1.0]), np.array([4]), 4, -5):
        with pytest.raises(IndexError):
            device.one_hot(4, wrong)


# Creation


def test_array_copies(device: Any) -> None:
    values = np.arange(6, dtype=np.float32).reshape(2, 3)
    a = nd.array(values, device=device)
    values[0, 0] = 50
    b = nd.array(a)
    assert b.device == device and b._handle.ptr() != a._handle.ptr()
    a[0, 0] = 7
    assert b.numpy()[0, 0] == 0
    for other in nd.all_devices():
        if other.enabled():
            c = nd.array(b, device=other)
            assert c.device == other and c._handle is not b._handle
            np.testing.assert_array_equal(c.numpy(), b.numpy())


@pytest.mark.parametrize(
    "data", [3, 2.5, [1, 2], [[1.5], [2]], (), np.arange(3), np.float64(2), True, np.ones((2, 0))]
)
def test_array_takes_what_numpy_takes(device: Any, data: Any) -> None:
    made = nd.array(data, device=device)
    wanted = np.array(data, np.float32)
    assert made.shape == wanted.shape and made.dtype == "float32"
    np.testing.assert_array_equal(made.numpy(), wanted)


def test_array_takes_any_layout(device: Any) -> None:
    values = np.arange(24.0).reshape(2, 3, 4)[:, ::-1].transpose(2, 0, 1)
    made = nd.array(values, device=device)
    assert made.is_compact()
    np.testing.assert_array_equal(made.numpy(), values)


def test_dtypes(device: Any) -> None:
    class Named:
        def __eq__(self, other: object) -> bool:
            return other == "float32"

    for good in (None, "float32", np.float32, np.dtype("float32"), Named()):
        assert nd.array([1], dtype=good, device=device).dtype == "float32"
        assert nd.empty((2,), dtype=good, device=device).shape == (2,)
        assert nd.full((2,), 3, dtype=good, device=device).numpy().tolist() == [3, 3]
        assert device.empty((2,), dtype=good).shape == (2,)
    for bad in ("float64", "int32", np.float64, np.dtype("int8"), int, float):
        with pytest.raises(AssertionError):
            nd.array([1], dtype=bad, device=device)
        with pytest.raises(AssertionError):
            nd.empty((2,), dtype=bad, device=device)
        with pytest.raises(AssertionError):
            nd.full((2,), 3, dtype=bad, device=device)
        with pytest.raises(AssertionError):
            device.full((2,), 3, dtype=bad)


def test_bool_masks(device: Any) -> None:
    mask = nd.array(nd.array([0.2, 0.7], device=device) <= 0.5, dtype="bool", device=device)
    assert mask.numpy().tolist() == [1, 0] and mask.dtype == "float32"
    assert nd.array([0, 3, -1], dtype="bool", device=device).numpy().tolist() == [0, 1, 1]


def test_device_creation(device: Any) -> None:
    assert device.empty((2, 3)).is_compact()
    assert device.full((2,), 1.5).numpy().tolist() == [1.5, 1.5]
    for made, value in ((device.ones(2, 3, dtype="float32"), 1), (device.zeros((2, 3)), 0)):
        np.testing.assert_array_equal(made.numpy(), np.full((2, 3), value))
    assert device.ones().numpy() == 1
    with pytest.raises(ValueError):
        device.empty((-1, 2))


def test_numbers_beyond_float32_are_infinite(device: Any) -> None:
    assert np.isinf(nd.array([1e300], device=device).numpy()).all()
    assert np.isinf(nd.full((1,), 1e300, device=device).numpy()).all()


# Editions


def test_editions(device: Any) -> None:
    a = nd.array(np.arange(24).reshape(2, 3, 4), device=device)
    for year in (2021, 2022, 2023):
        nd.set_edition(year)
        for method in (a.sum, a.max):
            assert method(axis=1).shape == (2, 1, 4)
            assert method().shape == (1, 1, 1)
            assert method(axis=1, keepdims=False).shape == (2, 4)
        assert nd.sum(a, axis=0).shape == (1, 3, 4)
        # A view of a sum over everything was an error then; it need not be.
        assert a.permute((2, 0, 1)).sum().numpy().tolist() == [[[276]]]
    nd.set_edition(2024)
    assert a.sum(axis=1).shape == (2, 4) and a.sum().shape == (1,)
    assert nd.sum(a, axis=0).shape == (3, 4)
    for wrong in (2020, 2025, "2024", None):
        with pytest.raises(ValueError):
            nd.set_edition(wrong)  # type: ignore[arg-type]


def python(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_edition_from_the_environment() -> None:
    code = "import tilework.needle as nd; print(nd.array([[1, 2]]).sum(axis=1).shape)"
    assert python(code, TILEWORK_NEEDLE_EDITION="2022").stdout.strip() == "(1, 1)"
    assert python(code, TILEWORK_NEEDLE_EDITION="").stdout.strip() == "(1,)"
    wrong = python(code, TILEWORK_NEEDLE_EDITION="1999")
    assert wrong.returncode != 0 and "TILEWORK_NEEDLE_EDITION" in wrong.stderr


# Standing in for needle's package


def test_alias() -> None:
    code = """
import sys, types, tilework.needle
needle = types.ModuleType("needle"); needle.__path__ = []
sys.modules["needle"] = needle
sys.modules["needle.backend_ndarray"] = needle.backend_ndarray = tilework.needle
from needle import backend_ndarray as nd
from needle.backend_ndarray.ndarray import NDArray, cpu
import needle.backend_ndarray.ndarray as layer
import needle.backend_ndarray.ndarray_backend_cpu as mod
from needle.backend_ndarray import ndarray_backend_numpy
from needle.backend_ndarray import *
assert NDArray is nd.NDArray is layer.NDArray is tilework.needle.NDArray
assert layer.BackendDevice is nd.BackendDevice
a = mod.Array(3); nd.cpu().fill(a, 1.0); mod.ewise_add(a, a, a)
assert isinstance(nd.array([1], device=cpu()), layer.NDArray)
assert nd.np is tilework.needle.np
print("fine")
"""
    result = python(code)
    assert result.stdout.strip() == "fine", result.stderr


def test_device_of_the_users_own() -> None:
    """Any module with the flat-buffer functions is a device."""
    calls = []

    class Mine:
        __device_name__ = "mine"

        def __getattr__(self, name: str) -> Any:
            calls.append(name)
            return getattr(nd.ndarray_backend_cpu, name)

    device = nd.BackendDevice("mine", Mine())
    a = nd.array([[1.0, 2.0], [3.0, 4.0]], device=device)
    b = ((a + a) @ a.permute((1, 0)) - 1).maximum(0).sum(axis=1)
    assert b.device == device and b.numpy().tolist() == [30, 70]
    assert {"ewise_add", "matmul", "compact", "reduce_sum", "scalar_maximum"} <= set(calls)
    assert a.to(nd.cpu()).device == nd.cpu()


def test_cuda_module_is_importable_only_with_a_gpu() -> None:
    if nd.cuda().enabled():
        assert isinstance(nd.cuda().mod, types.ModuleType)
        assert nd.cuda().__tile_size__ == 4 and not hasattr(nd.cuda(), "matmul_tiled")
    else:
        with pytest.raises(ImportError):
            from tilework.needle import ndarray_backend_cuda  # noqa: F401
