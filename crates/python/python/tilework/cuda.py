"""CUDA devices: whether there is one, and what only they have."""

from typing import NamedTuple

from ._core import cuda_empty_cache as _empty_cache
from ._core import cuda_memory_info as _memory_info
from ._core import cuda_synchronize as _synchronize
from ._core import cuda_why_not as _why_not
from ._core import device as _device

__all__ = ["MemoryInfo", "empty_cache", "is_available", "memory_info", "synchronize", "why_not"]


class MemoryInfo(NamedTuple):
    """Bytes of a device's memory."""

    used: int
    """In use by arrays."""
    reserved: int
    """In use by arrays or kept for reuse."""
    free: int
    """Left on the device."""
    total: int
    """That the device has."""


def is_available() -> bool:
    """Whether arrays can be made on a CUDA device.

    >>> import tilework as tw
    >>> tw.cuda.is_available() == (tw.cuda.why_not() is None)
    True
    """
    return _why_not() is None


def why_not() -> str | None:
    """Why there is no CUDA device; None if there is one."""
    return _why_not()


def synchronize(device: str | _device = "cuda:0", /) -> None:
    """Wait until everything asked of a device is done."""
    _synchronize(device)


def memory_info(device: str | _device = "cuda:0", /) -> MemoryInfo:
    """How much memory of a device is used, kept for reuse, and free."""
    return MemoryInfo(*_memory_info(device))


def empty_cache(device: str | _device = "cuda:0", /) -> None:
    """Give memory that is kept for reuse back to a device."""
    _empty_cache(device)
