"""The array package of needle, the teaching framework of "Deep Learning Systems", on tilework.

It stands where `needle.backend_ndarray` does:

    import sys, tilework.needle
    sys.modules["needle.backend_ndarray"] = tilework.needle

The behaviour is that of the course's 2024 edition, corrected where that is wrong; `set_edition`
(or the environment variable `TILEWORK_NEEDLE_EDITION`) brings back the older editions' reductions,
which keep the axis. NumPy is required.

>>> import tilework.needle as nd
>>> a = nd.array([[1, 2, 3], [4, 5, 6]], device=nd.cpu())
>>> b = a.permute((1, 0))
>>> b._handle.ptr() == a._handle.ptr()
True
>>> (a @ b).sum(axis=1)
NDArray([ 46. 109.], device=cpu())
"""

from tilework.needle import ndarray
from tilework.needle.ndarray import *
from tilework.needle.ndarray import __all__ as _names

__all__ = ["ndarray"]
__all__ += _names
