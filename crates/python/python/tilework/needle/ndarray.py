"""The Python layer of needle's array package: devices, `NDArray`, and the functions beside it.

Only names: everything is defined in modules of this package that are imported by their full names,
so that there is one `NDArray` however the package is aliased.
"""

import math
import operator
from functools import reduce

import numpy as np

from tilework.needle import (
    _array,
    _devices,
    _functions,
    _settings,
    ndarray_backend_cpu,
    ndarray_backend_numpy,
)
from tilework.needle._array import *
from tilework.needle._devices import *
from tilework.needle._functions import *
from tilework.needle._settings import *

# Names of earlier editions.
numpy_device = cpu_numpy
summation = sum

# The original has no list, and so shows what it imports.
__all__ = ["math", "ndarray_backend_cpu", "ndarray_backend_numpy", "np", "operator", "reduce"]
__all__ += ["numpy_device", "summation"]
__all__ += _array.__all__
__all__ += _devices.__all__
__all__ += _functions.__all__
__all__ += _settings.__all__
