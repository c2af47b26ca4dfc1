"""Flat-buffer operations of the device `cpu_numpy`, computed by tilework's reference device."""

from typing import TYPE_CHECKING, Any

from tilework.needle._buffers import NumpyArray as Array
from tilework.needle._flat import Operations

__device_name__ = "numpy"

globals().update(Operations(Array).functions())

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...
