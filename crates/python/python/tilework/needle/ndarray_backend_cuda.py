"""Flat-buffer operations of the device `cuda`; an ImportError where there is none."""

from typing import TYPE_CHECKING, Any

import tilework as tw
from tilework.needle._buffers import CudaArray as Array
from tilework.needle._flat import Operations

if not tw.cuda.is_available():
    raise ImportError(f"there is no CUDA device: {tw.cuda.why_not()}")

__device_name__ = "cuda"
__tile_size__ = 4

globals().update(Operations(Array).functions())

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...
