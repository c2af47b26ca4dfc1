"""Flat buffers of float32 and the operations on them, for any device of tilework.

The implementation modules (`ndarray_backend_cpu` and its kin) are instances of what stands here.
Operations know no shapes beyond what they are told, allocate no results and check every length and
bound: a caller cannot reach outside of a buffer.
"""

import math
import operator
import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, ClassVar, SupportsIndex

import numpy as np
import numpy.typing as npt

import tilework as tw
from tilework import _core

__all__ = ["Buffer", "Operations", "number"]

_ITEM = 4
_MOST = sys.maxsize // _ITEM - 1024


class Buffer:
    """`size` elements of float32 in the memory of a device, not set to anything."""

    __slots__ = ("__weakref__", "_data")

    _where: ClassVar[str] = "reference"
    """Tilework's name of the device."""
    _alignment: ClassVar[int] = _ITEM
    """What the address is a multiple of, in bytes."""

    _data: Any

    def __init__(self, size: SupportsIndex) -> None:
        count = operator.index(size)
        if count < 0:
            raise TypeError(f"Array: {count} is not a number of elements")
        if count > _MOST:
            raise MemoryError(f"Array: no memory for {count} elements")
        self._data = self._allocate(count)

    @classmethod
    def _allocate(cls, count: int) -> Any:
        # The library aligns to less than some devices promise: take more and begin further on.
        slack = cls._alignment // _ITEM - 1
        block = tw.empty((count + slack,), dtype="float32", device=cls._where)
        if slack == 0:
            return block
        skip = -_address(block) % cls._alignment // _ITEM
        return block[skip : skip + count]

    @property
    def size(self) -> int:
        """Number of elements."""
        return int(self._data.size)

    def ptr(self) -> int:
        """Address of the first element."""
        return _address(self._data)

    def _load(self, values: npt.NDArray[Any]) -> None:
        # NumPy casts and copies at once, straight into our memory.
        np.copyto(np.asarray(self._data), values, casting="unsafe")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self)._restore, (self._data.copy(),)

    @classmethod
    def _restore(cls, data: Any) -> "Buffer":
        buffer = cls(data.size)
        buffer._data[...] = data
        return buffer

    def __repr__(self) -> str:
        return f"<Array of {self.size} elements on {self._where}>"


def _address(array: Any) -> int:
    # On the host there is NumPy's protocol, on a GPU the one that is modelled on it.
    for protocol in ("__array_interface__", "__cuda_array_interface__"):
        interface = getattr(array, protocol, None)
        if interface is not None:
            return int(interface["data"][0])
    raise NotImplementedError("ptr: this device does not tell addresses")


def number(value: object) -> float:
    """A scalar operand as a Python float; TypeError for what is not a real number."""
    kind = type(value)
    if getattr(value, "ndim", 0) == 0 and isinstance(value, np.ndarray | tw.Array):
        value = value.item()
    is_number = hasattr(type(value), "__float__") or hasattr(type(value), "__index__")
    if isinstance(value, np.generic):
        is_number = isinstance(value, np.number | np.bool)
    is_complex = isinstance(value, complex | np.complexfloating)
    if not is_number or is_complex or isinstance(value, str | np.ndarray | tw.Array):
        raise TypeError(f"an operand of type {kind.__name__} is neither an array nor a number")
    try:
        return float(value)  # type: ignore[arg-type]
    except OverflowError:
        # An integer beyond float64 is beyond float32 as well.
        return math.inf if value > 0 else -math.inf  # type: ignore[operator]


def _write(target: Any, source: Any) -> None:
    """Assign, also where several indices of the target reach one element: the last one stays."""
    try:
        target[...] = source
        return
    except ValueError:
        if target.ndim == 0:
            raise
    # Along a stride of 0 only the last index counts; what else overlaps is written part by part.
    last = tuple(slice(-1, None) if stride == 0 else slice(None) for stride in target.strides)
    is_number = isinstance(source, float)
    if any(s == 0 and n > 1 for s, n in zip(target.strides, target.shape, strict=True)):
        _write(target[last], source if is_number else source[last])
        return
    for at in range(target.shape[0]):
        _write(target[at], source if is_number else source[at])


def _count(shape: Sequence[int]) -> int:
    if any(length < 0 for length in shape):
        raise ValueError(f"shape {tuple(shape)} has a negative length")
    return math.prod(shape)


def _integers(values: Sequence[SupportsIndex]) -> tuple[int, ...]:
    return tuple(map(operator.index, values))


class Operations:
    """The functions of an implementation module, over one class of buffers."""

    def __init__(self, array: type[Buffer]) -> None:
        self._array = array

    # What every function checks.

    def _data(self, buffer: Buffer) -> Any:
        if not isinstance(buffer, self._array):
            where, kind = self._array._where, type(buffer).__name__
            if isinstance(buffer, Buffer):
                kind = f"Array of {buffer._where}"
            raise TypeError(f"an Array of {where} is needed, not {kind}")
        return buffer._data

    def _sized(self, buffer: Buffer, size: int, what: str) -> Any:
        data = self._data(buffer)
        if data.size != size:
            raise ValueError(f"{what} has {data.size} elements where {size} are needed")
        return data

    def _window(
        self,
        buffer: Buffer,
        shape: Sequence[SupportsIndex],
        strides: Sequence[SupportsIndex],
        offset: SupportsIndex,
    ) -> Any:
        data = self._data(buffer)
        lengths, steps, first = _integers(shape), _integers(strides), operator.index(offset)
        if len(lengths) != len(steps):
            raise ValueError(f"shape {lengths} and strides {steps} differ in length")
        if _count(lengths) == 0:
            return tw.reshape(data[:0], lengths)
        reaches = [(length - 1) * step for length, step in zip(lengths, steps, strict=True)]
        low = first + sum(reach for reach in reaches if reach < 0)
        high = first + sum(reach for reach in reaches if reach > 0)
        if low < 0 or high >= data.size:
            raise ValueError(
                f"shape {lengths} with strides {steps} from offset {first} reaches beyond the "
                f"{data.size} elements of the buffer"
            )
        return tw.as_strided(data, lengths, [step * _ITEM for step in steps], offset=first)

    def functions(self, tile: int | None = None) -> dict[str, Callable[..., Any]]:
        """The operations by name, as a module has them; the tiled product where there are tiles."""
        public = [name for name in vars(Operations) if not name.startswith("_")]
        named = {name: getattr(self, name) for name in public if name != "functions"}
        if tile is not None:
            named["matmul_tiled"] = partial(self._matmul_tiled, tile)
        return named

    # Transfers and strided copies.

    def from_numpy(self, a: npt.ArrayLike, out: Buffer) -> None:
        """Copy a NumPy array of any numeric dtype into `out`."""
        array = np.asarray(a)
        self._sized(out, array.size, "out")
        with np.errstate(over="ignore"):
            out._load(array.reshape(-1))

    def to_numpy(
        self,
        a: Buffer,
        shape: Sequence[SupportsIndex],
        strides: Sequence[SupportsIndex],
        offset: SupportsIndex,
    ) -> npt.NDArray[np.float32]:
        """A NumPy array of its own with the elements of a strided part of `a`."""
        return np.array(self._window(a, shape, strides, offset), order="C")

    def fill(self, out: Buffer, val: object) -> None:
        """Set every element."""
        self._data(out)[...] = number(val)

    def compact(
        self,
        a: Buffer,
        out: Buffer,
        shape: Sequence[SupportsIndex],
        strides: Sequence[SupportsIndex],
        offset: SupportsIndex,
    ) -> None:
        """Gather a strided part of `a` into the dense `out`."""
        source = self._window(a, shape, strides, offset)
        _write(tw.reshape(self._sized(out, source.size, "out"), source.shape), source)

    def ewise_setitem(
        self,
        a: Buffer,
        out: Buffer,
        shape: Sequence[SupportsIndex],
        strides: Sequence[SupportsIndex],
        offset: SupportsIndex,
    ) -> None:
        """Scatter the dense `a` to a strided part of `out`."""
        target = self._window(out, shape, strides, offset)
        _write(target, tw.reshape(self._sized(a, target.size, "a"), target.shape))

    def scalar_setitem(
        self,
        size: SupportsIndex,
        val: object,
        out: Buffer,
        shape: Sequence[SupportsIndex],
        strides: Sequence[SupportsIndex],
        offset: SupportsIndex,
    ) -> None:
        """Write one number to every element of a strided part of `out`."""
        target = self._window(out, shape, strides, offset)
        if operator.index(size) != target.size:
            raise ValueError(f"size is {size} where the shape has {target.size} elements")
        _write(target, number(val))

    # Elementwise.

    def _unary(self, function: Callable[..., Any], a: Buffer, out: Buffer) -> None:
        source = self._data(a)
        function(source, out=self._sized(out, source.size, "out"))

    def _binary(self, function: Callable[..., Any], a: Buffer, b: Buffer, out: Buffer) -> None:
        left = self._data(a)
        right = self._sized(b, left.size, "b")
        function(left, right, out=self._sized(out, left.size, "out"))

    def _scalar(self, function: Callable[..., Any], a: Buffer, val: object, out: Buffer) -> None:
        source = self._data(a)
        # A Python number is weak: the library rounds it to float32 before it computes.
        function(source, number(val), out=self._sized(out, source.size, "out"))

    def ewise_add(self, a: Buffer, b: Buffer, out: Buffer) -> None:
        """`a + b`."""
        self._binary(tw.add, a, b, out)

    def scalar_add(self, a: Buffer, val: object, out: Buffer) -> None:
        """`a + val`."""
        self._scalar(tw.add, a, val, out)

    def ewise_mul(self, a: Buffer, b: Buffer, out: Buffer) -> None:
        """`a * b`."""
        self._binary(tw.multiply, a, b, out)

    def scalar_mul(self, a: Buffer, val: object, out: Buffer) -> None:
        """`a * val`."""
        self._scalar(tw.multiply, a, val, out)

    def ewise_div(self, a: Buffer, b: Buffer, out: Buffer) -> None:
        """`a / b`."""
        self._binary(tw.divide, a, b, out)

    def scalar_div(self, a: Buffer, val: object, out: Buffer) -> None:
        """`a / val`."""
        self._scalar(tw.divide, a, val, out)

    def scalar_power(self, a: Buffer, val: object, out: Buffer) -> None:
        """`a` to the power of `val`."""
        self._scalar(tw.pow, a, val, out)

    def ewise_maximum(self, a: Buffer, b: Buffer, out: Buffer) -> None:
        """The larger of `a` and `b`; NaN where either is."""
        self._binary(tw.maximum, a, b, out)

    def scalar_maximum(self, a: Buffer, val: object, out: Buffer) -> None:
        """The larger of `a` and `val`; NaN where either is."""
        self._scalar(tw.maximum, a, val, out)

    def ewise_eq(self, a: Buffer, b: Buffer, out: Buffer) -> None:
        """1 where `a == b`, else 0."""
        self._binary(tw.equal, a, b, out)

    def scalar_eq(self, a: Buffer, val: object, out: Buffer) -> None:
        """1 where `a == val`, else 0."""
        self._scalar(tw.equal, a, val, out)

    def ewise_ge(self, a: Buffer, b: Buffer, out: Buffer) -> None:
        """1 where `a >= b`, else 0."""
        self._binary(tw.greater_equal, a, b, out)

    def scalar_ge(self, a: Buffer, val: object, out: Buffer) -> None:
        """1 where `a >= val`, else 0."""
        self._scalar(tw.greater_equal, a, val, out)

    def ewise_log(self, a: Buffer, out: Buffer) -> None:
        """Natural logarithm."""
        self._unary(tw.log, a, out)

    def ewise_exp(self, a: Buffer, out: Buffer) -> None:
        """Exponential."""
        self._unary(tw.exp, a, out)

    def ewise_tanh(self, a: Buffer, out: Buffer) -> None:
        """Hyperbolic tangent."""
        self._unary(tw.tanh, a, out)

    # Products and reductions.

    def _matrix(self, buffer: Buffer, shape: Sequence[int], what: str) -> Any:
        return tw.reshape(self._sized(buffer, _count(shape), what), tuple(shape))

    def matmul(
        self,
        a: Buffer,
        b: Buffer,
        out: Buffer,
        m: SupportsIndex,
        n: SupportsIndex,
        p: SupportsIndex,
    ) -> None:
        """`out = a @ b` for dense matrices of m x n and n x p elements."""
        rows, inner, columns = _integers((m, n, p))
        left, right = self._matrix(a, (rows, inner), "a"), self._matrix(b, (inner, columns), "b")
        self._matrix(out, (rows, columns), "out")[...] = _product(left, right)

    def _matmul_tiled(
        self,
        tile: int,
        a: Buffer,
        b: Buffer,
        out: Buffer,
        m: SupportsIndex,
        n: SupportsIndex,
        p: SupportsIndex,
    ) -> None:
        """`out = a @ b` for matrices that lie as dense square tiles, row by row of tiles."""
        rows, inner, columns = sizes = _integers((m, n, p))
        left = self._sized(a, _count((rows, inner)), "a")
        right = self._sized(b, _count((inner, columns)), "b")
        target = self._sized(out, _count((rows, columns)), "out")
        _core._matmul_tiled_flat(left, right, target, sizes, tile)

    def _runs(self, a: Buffer, out: Buffer, reduce_size: SupportsIndex) -> tuple[Any, Any]:
        target, run = self._data(out), operator.index(reduce_size)
        return self._matrix(a, (target.size, run), "a"), target

    def reduce_sum(self, a: Buffer, out: Buffer, reduce_size: SupportsIndex) -> None:
        """Sums of runs of `reduce_size` elements."""
        runs, target = self._runs(a, out, reduce_size)
        target[...] = tw.sum(runs, axis=1)

    def reduce_max(self, a: Buffer, out: Buffer, reduce_size: SupportsIndex) -> None:
        """Largest elements of runs of `reduce_size` elements; NaN where there is one."""
        runs, target = self._runs(a, out, reduce_size)
        if runs.shape[1] == 0:
            raise ValueError("max: no elements, no largest one")
        target[...] = tw.max(runs, axis=1)


def _product(left: Any, right: Any) -> Any:
    # Sums in float32 miss the course's tolerance, 1e-5 against float64, once in a thousand products.
    wide = tw.matmul(left.astype("float64"), right.astype("float64"))
    return wide.astype("float32")
