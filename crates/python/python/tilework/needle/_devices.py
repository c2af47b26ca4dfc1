"""Devices: a name with the module that implements it, and the functions that make them."""

import importlib
from collections.abc import Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tilework.needle import ndarray_backend_cpu, ndarray_backend_numpy
from tilework.needle._errors import ShapeError

if TYPE_CHECKING:
    from tilework.needle._array import NDArray

__all__ = [
    "BackendDevice",
    "all_devices",
    "cpu",
    "cpu_numpy",
    "cuda",
    "default_device",
    "set_default_device",
]


def check_dtype(dtype: object) -> None:
    """Refuse every dtype but float32, under any of its names; None means float32."""
    if dtype is None or dtype is np.float32 or dtype == "float32":
        return
    raise ShapeError(f"arrays are of float32 only, not {dtype!r}")


class BackendDevice:
    """A name, and a module with the flat-buffer operations; None for a device that is not there."""

    def __init__(self, name: str, mod: Any) -> None:
        self.name = name
        self.mod = mod

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BackendDevice) and self.name == other.name

    def __hash__(self) -> int:
        return hash((BackendDevice, self.name))

    def __repr__(self) -> str:
        return self.name + "()"

    def __getattr__(self, name: str) -> Any:
        # `mod` is missing only while an object is being made: by copy and pickle, say.
        mod = self.__dict__.get("mod")
        if mod is None:
            device = self.__dict__.get("name", "a device")
            raise AttributeError(f"{device} is not available and has no {name!r}")
        return getattr(mod, name)

    def __reduce__(self) -> tuple[Any, ...]:
        mod = self.mod.__name__ if isinstance(self.mod, ModuleType) else self.mod
        return _restored, (type(self), self.name, mod)

    def enabled(self) -> bool:
        """Whether arrays can be made here."""
        return self.mod is not None

    def _array(self, values: npt.ArrayLike, dtype: npt.DTypeLike | None) -> "NDArray":
        from tilework.needle._array import NDArray

        return NDArray(np.asarray(values).astype(dtype or "float32"), device=self)

    def randn(self, *shape: int, dtype: npt.DTypeLike | None = "float32") -> "NDArray":
        """Normally distributed numbers from NumPy's global generator (`np.random.seed`)."""
        return self._array(np.random.randn(*shape), dtype)

    def rand(self, *shape: int, dtype: npt.DTypeLike | None = "float32") -> "NDArray":
        """Numbers distributed evenly over [0, 1), from NumPy's global generator."""
        return self._array(np.random.rand(*shape), dtype)

    def one_hot(
        self, n: int, i: int | npt.NDArray[Any], dtype: npt.DTypeLike | None = "float32"
    ) -> "NDArray":
        """Rows `i` of the identity matrix of n x n."""
        # NumPy's indexing decides what an index is; only the rows asked for are made.
        places = np.asarray(np.arange(n)[i])
        rows = np.zeros((*places.shape, n), dtype=np.float32)
        np.put_along_axis(rows, places[..., np.newaxis], 1.0, axis=-1)
        return self._array(rows, dtype)

    def empty(self, shape: Sequence[int], dtype: object = "float32") -> "NDArray":
        """A new compact array whose elements are not set."""
        from tilework.needle._array import NDArray

        check_dtype(dtype)
        return NDArray.make(shape, device=self)

    def full(self, shape: Sequence[int], fill_value: Any, dtype: object = "float32") -> "NDArray":
        """A new compact array of one value."""
        array = self.empty(shape, dtype)
        array.fill(fill_value)
        return array

    def ones(self, *shape: Any, dtype: object = "float32") -> "NDArray":
        """Ones; the shape is given as separate numbers or as one tuple."""
        return self.full(_spread(shape), 1.0, dtype)

    def zeros(self, *shape: Any, dtype: object = "float32") -> "NDArray":
        """Zeros; the shape is given as separate numbers or as one tuple."""
        return self.full(_spread(shape), 0.0, dtype)


def _spread(shape: tuple[Any, ...]) -> Sequence[int]:
    return shape[0] if len(shape) == 1 and isinstance(shape[0], tuple | list) else shape


def _restored(kind: type[BackendDevice], name: str, mod: Any) -> BackendDevice:
    if isinstance(mod, str):
        try:
            mod = importlib.import_module(mod)
        except ImportError:
            # The pickle comes from a machine with more devices.
            mod = None
    return kind(name, mod)


def cpu() -> BackendDevice:
    """The fast CPU device."""
    return BackendDevice("cpu", ndarray_backend_cpu)


def cuda() -> BackendDevice:
    """The GPU; not enabled where there is none."""
    try:
        from tilework.needle import ndarray_backend_cuda
    except ImportError:
        return BackendDevice("cuda", None)
    return BackendDevice("cuda", ndarray_backend_cuda)


def cpu_numpy() -> BackendDevice:
    """The reference device, which stands where needle has its NumPy device."""
    return BackendDevice("cpu_numpy", ndarray_backend_numpy)


_default: BackendDevice | None = None


def default_device() -> BackendDevice:
    """Where arrays are made if the caller does not say: `cpu_numpy()` unless set otherwise."""
    return cpu_numpy() if _default is None else _default


def set_default_device(device: BackendDevice | str | None) -> None:
    """Choose where arrays are made if the caller does not say, by object or name; None resets it.

    >>> import tilework.needle as nd
    >>> nd.set_default_device("cpu")
    >>> nd.array([1, 2]).device
    cpu()
    >>> nd.set_default_device(None)
    >>> nd.array([1, 2]).device
    cpu_numpy()
    """
    global _default
    if isinstance(device, str):
        named = {known.name: known for known in all_devices()}
        named["reference"] = named["numpy_device"] = cpu_numpy()
        if device not in named:
            raise ValueError(f"set_default_device: there is no device {device!r}")
        device = named[device]
    if device is not None:
        if not isinstance(device, BackendDevice):
            raise TypeError(f"set_default_device: {type(device).__name__} is not a device")
        if not device.enabled():
            raise ValueError(f"set_default_device: {device} is not available")
    _default = device


def all_devices() -> list[BackendDevice]:
    """Every device, also those that are not enabled."""
    return [cpu(), cuda(), cpu_numpy()]
