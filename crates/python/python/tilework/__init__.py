"""NumPy's array with interchangeable backends, and map-reduce over pairs.

The namespace follows the Python array API standard, version 2025.12, with what NumPy users reach
for beside it. Everything is implemented in Rust (`tilework._core`); this package only names it.

>>> import tilework as tw
>>> x = tw.linspace(0.0, 1.0, 5)
>>> (x * 2).tolist()
[0.0, 0.5, 1.0, 1.5, 2.0]
"""

import typing as _typing

from . import _core as _core
from . import cuda as cuda
from . import pairs as pairs
from . import random as random
from ._core import *
from ._core import __array_api_version__ as __array_api_version__
from ._core import __array_namespace_info__ as __array_namespace_info__
from ._core import __version__ as __version__
from ._names import missing as _missing

if not _typing.TYPE_CHECKING:
    # Type checkers know the names; this is for people who try another.
    def __getattr__(name):
        raise _missing(name)
