"""`NDArray`: shape, strides and offset over a flat buffer of float32, in needle's manner.

Everything about shapes is here, in Python, where subclasses can reach it; every number is computed
by the device's module.
"""

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tilework.needle._devices import BackendDevice, check_dtype, default_device
from tilework.needle._errors import ShapeError
from tilework.needle._flat import number
from tilework.needle._settings import keeps_axes
from tilework.needle._shapes import Axes, axis_numbers, integers, position, reshaped, row_major

__all__ = ["NDArray"]


class NDArray:
    """An array of float32: five fields over a buffer that views share.

    >>> import tilework.needle as nd
    >>> a = nd.NDArray([[1, 2], [3, 4]], device=nd.cpu())
    >>> (a + a)[1, 0]
    NDArray([[6.]], device=cpu())
    """

    _shape: tuple[int, ...]
    _strides: tuple[int, ...]
    _offset: int
    _device: BackendDevice
    _handle: Any

    # NumPy's arrays leave operations to us; its scalars come through the reflected methods.
    __array_ufunc__ = None

    # Construction.

    def __init__(self, other: Any, device: BackendDevice | None = None) -> None:
        if isinstance(other, NDArray):
            device = other.device if device is None else device
            if device == other.device:
                self._init(other._copy())
                return
            other = other.numpy()
        array = np.asarray(other)
        made = NDArray.make(array.shape, device=device)
        made.device.from_numpy(np.asarray(array, order="C"), made._handle)
        self._init(made)

    def _init(self, other: "NDArray") -> None:
        self._shape = other._shape
        self._strides = other._strides
        self._offset = other._offset
        self._device = other._device
        self._handle = other._handle

    @staticmethod
    def compact_strides(shape: Sequence[int]) -> tuple[int, ...]:
        """Strides of a row-major array without gaps."""
        return row_major(shape)

    @staticmethod
    def make(
        shape: Sequence[int],
        strides: Sequence[int] | None = None,
        device: BackendDevice | None = None,
        handle: Any = None,
        offset: int = 0,
    ) -> "NDArray":
        """A plain array from its fields; with a buffer of its own if there is no handle."""
        array = NDArray.__new__(NDArray)
        array._shape = integers(shape)
        array._strides = (
            NDArray.compact_strides(array._shape) if strides is None else tuple(strides)
        )
        array._offset = offset
        array._device = default_device() if device is None else device
        if handle is None:
            if any(length < 0 for length in array._shape):
                raise ValueError(f"make: shape {array._shape} has a negative length")
            handle = array._device.Array(math.prod(array._shape))
        array._handle = handle
        return array

    # Properties.

    @property
    def shape(self) -> tuple[int, ...]:
        """Length of each axis."""
        return self._shape

    @property
    def strides(self) -> tuple[int, ...]:
        """Steps in elements, one for each axis."""
        return self._strides

    @property
    def device(self) -> BackendDevice:
        """Where the buffer is."""
        return self._device

    @property
    def dtype(self) -> str:
        """Always "float32"."""
        return "float32"

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self._shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self._shape)

    @property
    def flat(self) -> "NDArray":
        """A view with one axis; the array must be compact."""
        return self.reshape((self.size,))

    def __repr__(self) -> str:
        return f"NDArray({self}, device={self.device})"

    def __str__(self) -> str:
        return str(self.numpy())

    # Moving and filling.

    def numpy(self) -> npt.NDArray[np.float32]:
        """A NumPy array with a copy of the elements."""
        result = self.device.to_numpy(self._handle, self.shape, self.strides, self._offset)
        return result  # type: ignore[no-any-return]

    def __array__(
        self, dtype: npt.DTypeLike | None = None, copy: bool | None = None
    ) -> npt.NDArray[Any]:
        if copy is False:
            raise ValueError("__array__: the elements cannot be had without a copy")
        array = self.numpy()
        return array if dtype is None else array.astype(dtype, copy=False)

    def to(self, device: BackendDevice) -> "NDArray":
        """This array if it is on the device, else a copy there."""
        return self if device == self.device else NDArray(self.numpy(), device=device)

    def astype(self, dtype: object) -> "NDArray":
        """This array: there is no dtype but float32."""
        check_dtype(dtype)
        return self

    def fill(self, value: Any) -> None:
        """Set every element of this array, and of no other part of the buffer."""
        if self.is_compact():
            self.device.fill(self._handle, value)
        else:
            self._set(value)

    def _set(self, value: Any) -> None:
        place = (self._handle, self.shape, self.strides, self._offset)
        self.device.scalar_setitem(self.size, value, *place)

    def _copy(self) -> "NDArray":
        copy = NDArray.make(self.shape, device=self.device)
        source = (self.shape, self.strides, self._offset)
        self.device.compact(self._handle, copy._handle, *source)
        return copy

    # Layout.

    def is_compact(self) -> bool:
        """Whether the elements are the whole buffer, in row-major order."""
        if self._strides != NDArray.compact_strides(self._shape):
            return False
        return bool(self.size == self._handle.size)

    def compact(self) -> "NDArray":
        """This array if it is compact, else a compact copy."""
        return self if self.is_compact() else self._copy()

    def as_strided(self, shape: Sequence[int], strides: Sequence[int]) -> "NDArray":
        """Any shape and strides on the same buffer, from the same first element."""
        if len(shape) != len(strides):
            given = f"shape {tuple(shape)} and strides {tuple(strides)}"
            raise ShapeError(f"as_strided: {given} differ in length")
        return self._view(integers(shape), integers(strides), self._offset)

    def _view(self, shape: Sequence[int], strides: Sequence[int] | None, offset: int) -> "NDArray":
        return NDArray.make(shape, strides, self._device, self._handle, offset)

    def reshape(self, new_shape: Any) -> "NDArray":
        """A view of another shape; the array must be compact. One length may be -1."""
        shape = reshaped(self.shape, integers(new_shape))
        if not self.is_compact():
            raise ValueError(f"reshape: an array of strides {self.strides} is not compact")
        return self._view(shape, None, self._offset)

    def permute(self, new_axes: Sequence[int]) -> "NDArray":
        """A view with all axes in another order."""
        axes = integers(new_axes)
        ndim = self.ndim
        if sorted(axis + ndim if axis < 0 else axis for axis in axes) != list(range(ndim)):
            raise ShapeError(f"permute: {axes} is not an order of {ndim} axes")
        shape, strides = self._shape, self._strides
        return self.as_strided([shape[axis] for axis in axes], [strides[axis] for axis in axes])

    def broadcast_to(self, new_shape: Any) -> "NDArray":
        """A view in which axes of length 1 repeat; new axes may come first."""
        shape = integers(new_shape)
        extra = len(shape) - self.ndim
        fits = extra >= 0 and all(length >= 0 for length in shape)
        strides = [0] * extra
        for length, own, stride in zip(shape[max(extra, 0) :], self._shape, self._strides):
            fits = fits and own in (1, length)
            strides.append(0 if own == 1 else stride)
        if not fits:
            raise ShapeError(f"broadcast_to: {self.shape} does not broadcast to {shape}")
        return self.as_strided(shape, strides)

    # Indexing.

    def process_slice(self, sl: slice, dim: int) -> slice:
        """A slice of axis `dim` with explicit bounds that are not negative."""
        step = 1 if sl.step is None else operator.index(sl.step)
        if step <= 0:
            raise ShapeError(f"index: the step of {sl} is not positive")
        start, stop, step = sl.indices(self.shape[dim])
        if stop <= start:
            message = f"index: {sl} is empty on axis {dim} of length {self.shape[dim]}"
            raise ShapeError(message)
        return slice(start, stop, step)

    def _place(self, index: Any, dim: int) -> slice:
        if isinstance(index, slice):
            return self.process_slice(index, dim)
        at = position(index, dim, self.shape[dim])
        return slice(at, at + 1, 1)

    def __getitem__(self, idxs: Any) -> "NDArray":
        return self._part(idxs)

    def _part(self, idxs: Any) -> "NDArray":
        indices = idxs if isinstance(idxs, tuple) else (idxs,)
        if len(indices) != self.ndim:
            message = f"index: {len(indices)} indices for {self.ndim} axes; each needs one"
            raise ShapeError(message)
        places = [self._place(index, dim) for dim, index in enumerate(indices)]
        offset = self._offset
        for place, stride in zip(places, self._strides, strict=True):
            offset += place.start * stride
        shape = [len(range(place.start, place.stop, place.step)) for place in places]
        strides = [s * place.step for s, place in zip(self._strides, places, strict=True)]
        return self._view(shape, strides, offset)

    def __setitem__(self, idxs: Any, other: Any) -> None:
        # Not by way of __getitem__, which a subclass may have given another meaning.
        part = self._part(idxs)
        if isinstance(other, NDArray):
            part._assign(other)
        else:
            part._set(other)

    def _assign(self, other: "NDArray") -> None:
        if other.size != self.size:
            message = f"assignment: {other.shape} has not as many elements as {self.shape}"
            raise ShapeError(message)
        source = other.compact()
        if source._handle is self._handle:
            source = source._copy()
        place = (self.shape, self.strides, self._offset)
        self.device.ewise_setitem(source._handle, self._handle, *place)

    def __contains__(self, value: Any) -> bool:
        return self.size > 0 and bool((self == value).max().numpy()[0])

    # Arithmetic.

    def _unary(self, function: Callable[..., Any]) -> "NDArray":
        out = NDArray.make(self.shape, device=self.device)
        function(self.compact()._handle, out._handle)
        return out

    def ewise_or_scalar(
        self, other: Any, ewise_func: Callable[..., Any], scalar_func: Callable[..., Any]
    ) -> "NDArray":
        """An operation with an array of the same shape, or with a number."""
        if isinstance(other, NDArray) and other.shape != self.shape:
            message = f"shapes {self.shape} and {other.shape} differ, and nothing is broadcast"
            raise ShapeError(message)
        out = NDArray.make(self.shape, device=self.device)
        if isinstance(other, NDArray):
            ewise_func(self.compact()._handle, other.compact()._handle, out._handle)
        else:
            scalar_func(self.compact()._handle, other, out._handle)
        return out

    def __add__(self, other: Any) -> "NDArray":
        return self.ewise_or_scalar(other, self.device.ewise_add, self.device.scalar_add)

    __radd__ = __add__

    def __sub__(self, other: Any) -> "NDArray":
        # A number becomes Python's first: NumPy's unsigned integers have no negatives.
        return self + (-other if isinstance(other, NDArray) else -number(other))

    def __rsub__(self, other: Any) -> "NDArray":
        return (-self).__add__(other)

    def __mul__(self, other: Any) -> "NDArray":
        return self.ewise_or_scalar(other, self.device.ewise_mul, self.device.scalar_mul)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> "NDArray":
        return self.ewise_or_scalar(other, self.device.ewise_div, self.device.scalar_div)

    def __neg__(self) -> "NDArray":
        return self.__mul__(-1)

    def __pow__(self, other: Any) -> "NDArray":
        out = NDArray.make(self.shape, device=self.device)
        self.device.scalar_power(self.compact()._handle, other, out._handle)
        return out

    def maximum(self, other: Any) -> "NDArray":
        """The larger of the elements and those of another array, or a number."""
        return self.ewise_or_scalar(other, self.device.ewise_maximum, self.device.scalar_maximum)

    # Comparisons: 1 where true and 0 where false, also false where there is a NaN.

    def __eq__(self, other: Any) -> "NDArray":  # type: ignore[override]
        return self.ewise_or_scalar(other, self.device.ewise_eq, self.device.scalar_eq)

    __hash__ = None  # type: ignore[assignment]

    def __ne__(self, other: Any) -> "NDArray":  # type: ignore[override]
        return 1 - self.__eq__(other)

    def __ge__(self, other: Any) -> "NDArray":
        return self.ewise_or_scalar(other, self.device.ewise_ge, self.device.scalar_ge)

    def __gt__(self, other: Any) -> "NDArray":
        return self.__ge__(other) * self.__ne__(other)

    def __le__(self, other: Any) -> "NDArray":
        # Not the complement of `>`, which would hold for NaN; but the mirror image, which does not.
        return other >= self if isinstance(other, NDArray) else -self >= -number(other)

    def __lt__(self, other: Any) -> "NDArray":
        return other > self if isinstance(other, NDArray) else -self > -number(other)

    def log(self) -> "NDArray":
        """Natural logarithm."""
        return self._unary(self.device.ewise_log)

    def exp(self) -> "NDArray":
        """Exponential."""
        return self._unary(self.device.ewise_exp)

    def tanh(self) -> "NDArray":
        """Hyperbolic tangent."""
        return self._unary(self.device.ewise_tanh)

    def __matmul__(self, other: Any) -> "NDArray":
        if not isinstance(other, NDArray):
            return NotImplemented
        if self.ndim != 2 or other.ndim != 2 or self.shape[1] != other.shape[0]:
            message = f"@: {self.shape} and {other.shape} are not matrices that can be multiplied"
            raise ShapeError(message)
        (m, n), p = self.shape, other.shape[1]
        out = NDArray.make((m, p), device=self.device)
        handles = (self.compact()._handle, other.compact()._handle, out._handle)
        self.device.matmul(*handles, m, n, p)
        return out

    # Reductions.

    def reduce_view_out(
        self, axis: Axes | None, keepdims: bool = False
    ) -> tuple["NDArray", "NDArray"]:
        """A view with the reduced axes as its last one, and an array for the result."""
        if axis is None:
            view = self.compact().reshape((1,) * (self.ndim - 1) + (self.size,))
            out = (1,) * (self.ndim if keepdims else 1)
            return view, NDArray.make(out, device=self.device)
        axes = axis_numbers("reduction", axis, self.ndim)
        if not axes:
            raise ValueError("reduction: an empty tuple names no axis")
        kept = tuple(other for other in range(self.ndim) if other not in axes)
        view = self.permute(kept + axes)
        if len(axes) > 1:
            reduced = math.prod(self._shape[other] for other in axes)
            view = view.compact().reshape((*view.shape[: len(kept)], reduced))
        shape = self._shape
        if keepdims:
            out = tuple(1 if other in axes else shape[other] for other in range(self.ndim))
        else:
            out = tuple(shape[other] for other in kept)
        return view, NDArray.make(out, device=self.device)

    def _reduced(
        self, function: Callable[..., Any], axis: Axes | None, keepdims: bool | None
    ) -> "NDArray":
        keep = keeps_axes() if keepdims is None else keepdims
        view, out = self.reduce_view_out(axis, keepdims=keep)
        function(view.compact()._handle, out._handle, view.shape[-1])
        return out

    def sum(self, axis: Axes | None = None, keepdims: bool | None = None) -> "NDArray":
        """Sum over all axes or some. What `keepdims=None` means depends on the edition."""
        return self._reduced(self.device.reduce_sum, axis, keepdims)

    def max(self, axis: Axes | None = None, keepdims: bool | None = None) -> "NDArray":
        """Largest element over all axes or some. What `keepdims=None` means is the edition's."""
        return self._reduced(self.device.reduce_max, axis, keepdims)

    # Later additions.

    def flip(self, axes: Axes) -> "NDArray":
        """A compact copy with some axes reversed."""
        strides, offset = list(self._strides), self._offset
        for axis in axis_numbers("flip", axes, self.ndim):
            offset += max(self._shape[axis] - 1, 0) * strides[axis]
            strides[axis] = -strides[axis]
        return self._view(self._shape, strides, offset)._copy()

    def pad(self, axes: Sequence[tuple[int, int]]) -> "NDArray":
        """A new array with zeros around: one pair (before, after) for every axis."""
        pairs = [integers(pair) for pair in axes]
        if len(pairs) != self.ndim or any(len(p) != 2 or min(p) < 0 for p in pairs):
            message = f"pad: {axes} is not a pair (before, after) for each of {self.ndim} axes"
            raise ShapeError(message)
        shape = [length + sum(pair) for length, pair in zip(self._shape, pairs, strict=True)]
        out = NDArray.make(shape, device=self.device)
        out.fill(0.0)
        starts = [before * step for (before, _), step in zip(pairs, out._strides, strict=True)]
        out._view(self._shape, out._strides, sum(starts))._assign(self)
        return out
