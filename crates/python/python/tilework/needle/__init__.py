"""The array package of needle, the teaching framework of "Deep Learning Systems", on tilework.

It stands where `needle.backend_ndarray` does:

    import sys, tilework.needle
    sys.modules["needle.backend_ndarray"] = tilework.needle

The behaviour is that of the course's 2024 edition, corrected where that is wrong; `set_edition`
(or the environment variable `TILEWORK_NEEDLE_EDITION`) brings back the older editions' reductions,
which keep the axis. NumPy is required.

Products of matrices (`@`) are summed in float64 and rounded to float32, on every device: the course's tests
compare with NumPy's float64 to 1e-5, which sums in float32 miss about once in a thousand products. That
takes longer than `tilework.matmul`, most of all on cards of little float64, and three times the memory.

>>> import tilework.needle as nd
>>> a = nd.array([[1, 2, 3], [4, 5, 6]], device=nd.cpu())
>>> b = a.permute((1, 0))
>>> b._handle.ptr() == a._handle.ptr()
True
>>> (a @ b).sum(axis=1)
NDArray([ 46. 109.], device=cpu())
"""

from tilework.needle import ndarray
from tilework.needle.ndarray import (
    BackendDevice,
    NDArray,
    all_devices,
    array,
    broadcast_to,
    cpu,
    cpu_numpy,
    cuda,
    default_device,
    empty,
    exp,
    flip,
    full,
    get_edition,
    log,
    math,
    maximum,
    ndarray_backend_cpu,
    ndarray_backend_numpy,
    np,
    numpy_device,
    operator,
    prod,
    reduce,
    reshape,
    set_default_device,
    set_edition,
    sum,
    summation,
    tanh,
)

# Type checkers read no list that is put together from others.
__all__ = [
    "BackendDevice",
    "NDArray",
    "all_devices",
    "array",
    "broadcast_to",
    "cpu",
    "cpu_numpy",
    "cuda",
    "default_device",
    "empty",
    "exp",
    "flip",
    "full",
    "get_edition",
    "log",
    "math",
    "maximum",
    "ndarray",
    "ndarray_backend_cpu",
    "ndarray_backend_numpy",
    "np",
    "numpy_device",
    "operator",
    "prod",
    "reduce",
    "reshape",
    "set_default_device",
    "set_edition",
    "sum",
    "summation",
    "tanh",
]
