"""The buffers of each device: where they lie and what their addresses are a multiple of."""

from typing import Any

import numpy as np
import numpy.typing as npt

import tilework as tw
from tilework.needle._flat import Buffer

__all__ = ["CpuArray", "CudaArray", "NumpyArray"]


class NumpyArray(Buffer):
    """Memory of the reference device."""

    __slots__ = ()

    @property
    def array(self) -> npt.NDArray[np.float32]:
        """The memory itself as a NumPy array."""
        return np.asarray(self._data)


class CpuArray(Buffer):
    """Memory of the CPU device, aligned to 256 bytes."""

    __slots__ = ()

    _where = "cpu"
    _alignment = 256


class CudaArray(Buffer):
    """Memory of a GPU."""

    __slots__ = ()

    _where = "cuda"

    @classmethod
    def _allocate(cls, count: int) -> Any:
        try:
            return super()._allocate(count)
        except MemoryError as error:
            raise RuntimeError(f"Array: no memory on the GPU for {count} elements") from error

    def _load(self, values: npt.NDArray[Any]) -> None:
        self._data[...] = tw.asarray(values.astype(np.float32), device=self._where)
