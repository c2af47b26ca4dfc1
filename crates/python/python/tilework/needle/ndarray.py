"""The Python layer of needle's array package: devices, `NDArray`, and the functions beside it.

Only names: everything is defined in modules of this package that are imported by their full names,
so that there is one `NDArray` however the package is aliased.
"""

import math
import operator
from functools import reduce

import numpy as np

from tilework.needle import ndarray_backend_cpu, ndarray_backend_numpy
from tilework.needle._array import NDArray
from tilework.needle._devices import (
    BackendDevice,
    all_devices,
    cpu,
    cpu_numpy,
    cuda,
    default_device,
    set_default_device,
)
from tilework.needle._functions import (
    array,
    broadcast_to,
    empty,
    exp,
    flip,
    full,
    log,
    maximum,
    prod,
    reshape,
    sum,
    tanh,
)
from tilework.needle._settings import get_edition, set_edition

# Names of earlier editions.
numpy_device = cpu_numpy
summation = sum

# One list, which type checkers read. The original has none, and so shows what it imports.
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
