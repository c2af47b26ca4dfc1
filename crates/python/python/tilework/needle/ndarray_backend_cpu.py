"""Flat-buffer operations of the device `cpu`, computed by tilework's fast CPU device."""

from typing import SupportsIndex

from tilework.needle._buffers import CpuArray as Array
from tilework.needle._flat import Operations

__device_name__ = "cpu"
__tile_size__ = 8

_operations = Operations(Array)

from_numpy = _operations.from_numpy
to_numpy = _operations.to_numpy
fill = _operations.fill
compact = _operations.compact
ewise_setitem = _operations.ewise_setitem
scalar_setitem = _operations.scalar_setitem
ewise_add = _operations.ewise_add
scalar_add = _operations.scalar_add
ewise_mul = _operations.ewise_mul
scalar_mul = _operations.scalar_mul
ewise_div = _operations.ewise_div
scalar_div = _operations.scalar_div
scalar_power = _operations.scalar_power
ewise_maximum = _operations.ewise_maximum
scalar_maximum = _operations.scalar_maximum
ewise_eq = _operations.ewise_eq
scalar_eq = _operations.scalar_eq
ewise_ge = _operations.ewise_ge
scalar_ge = _operations.scalar_ge
ewise_log = _operations.ewise_log
ewise_exp = _operations.ewise_exp
ewise_tanh = _operations.ewise_tanh
matmul = _operations.matmul
reduce_sum = _operations.reduce_sum
reduce_max = _operations.reduce_max


def matmul_tiled(
    a: Array, b: Array, out: Array, m: SupportsIndex, n: SupportsIndex, p: SupportsIndex
) -> None:
    """`out = a @ b` for matrices of m x n and n x p elements that lie as dense square tiles."""
    _operations.matmul_tiled(a, b, out, m, n, p, __tile_size__)
