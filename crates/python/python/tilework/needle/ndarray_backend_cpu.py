"""Flat-buffer operations of the device `cpu`, computed by tilework's fast CPU device."""

from typing import TYPE_CHECKING, Any

from tilework.needle._buffers import CpuArray as Array
from tilework.needle._flat import Operations

__device_name__ = "cpu"
__tile_size__ = 8

globals().update(Operations(Array).functions(tile=__tile_size__))

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...
