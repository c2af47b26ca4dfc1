"""Writes `tilework/_core.pyi` from what the native module says about itself.

Names, arguments and defaults come from the built module, so that they cannot differ from it; only
types are said here, by the name of an argument where it always means one thing, and by function
where it does not. Run with `--check` to compare instead of write, as the tests do.

Usage: python crates/python/tools/make_stubs.py [--check]
"""

import inspect
import sys
from pathlib import Path

import tilework._core as core

TARGET = Path(__file__).parent.parent / "python" / "tilework" / "_core.pyi"

HEAD = '''# Types of the native module. Made by tools/make_stubs.py from the module itself: do not edit.

import builtins
import sys
from collections.abc import ItemsView, Iterator, KeysView, Sequence, ValuesView
from os import PathLike
from typing import IO, Any, Literal, Protocol, SupportsIndex, TypeAlias, final

from typing_extensions import Buffer

from ._results import UniqueAllResult, UniqueCountsResult, UniqueInverseResult

class _SupportsArray(Protocol):
    def __array__(self) -> Any: ...

class _SupportsDLPack(Protocol):
    def __dlpack__(self) -> Any: ...

_Number: TypeAlias = builtins.complex
_ArrayLike: TypeAlias = Array | _Number | Sequence[Any] | Buffer | _SupportsArray | _SupportsDLPack
_Operand: TypeAlias = _ArrayLike
_Integers: TypeAlias = builtins.int | Sequence[builtins.int]
_DTypeLike: TypeAlias = dtype | builtins.str | builtins.type[Any] | Any
_DeviceLike: TypeAlias = device | builtins.str
_File: TypeAlias = builtins.str | PathLike[builtins.str]
_Scalar: TypeAlias = builtins.bool | builtins.int | builtins.float | builtins.complex
_Tensor: TypeAlias = LazyTensor | _ArrayLike
'''

# What an argument of this name is, unless the function says otherwise.
ARGUMENTS = {
    "x": "_ArrayLike", "x1": "_Operand", "x2": "_Operand", "x3": "_Operand", "out": "Any",
    "axis": "_Integers | None", "keepdims": "builtins.bool", "dtype": "_DTypeLike | None",
    "device": "_DeviceLike | None", "copy": "builtins.bool | None", "shape": "_Integers",
    "correction": "builtins.float", "obj": "_ArrayLike", "k": "builtins.int",
    "descending": "builtins.bool", "stable": "builtins.bool", "side": 'Literal["left", "right"]',
    "rtol": "builtins.float", "atol": "builtins.float", "equal_nan": "builtins.bool",
    "file": "_File", "size": "_Integers | None", "min": "_Operand | None",
    "max": "_Operand | None", "indices": "_ArrayLike", "axes": "_Integers",
    "arrays": "Sequence[_ArrayLike]", "endpoint": "builtins.bool", "invert": "builtins.bool",
    "include_initial": "builtins.bool", "fill_value": "_Number | Array", "other": "_Operand",
    "value": "_Operand", "repeats": "_Integers | Array", "stream": "Any", "type": "_DTypeLike | Array",
    "ddof": "builtins.float", "name": "Any", "kwds": "_ArrayLike", "shift": "_Integers",
    "prepend": "_ArrayLike | None", "append": "_ArrayLike | None", "n": "builtins.int",
    "sorter": "_ArrayLike | None", "start": "builtins.float | Array", "num": "builtins.int",
    "stop": "builtins.float | Array | None", "step": "builtins.float | Array",
    "precision": "builtins.int | None", "threshold": "builtins.int | None",
    "edgeitems": "builtins.int | None", "linewidth": "builtins.int | None",
    "suppress": "builtins.bool | None", "sign": "builtins.str | None",
    "floatmode": "builtins.str | None", "seed": "builtins.int | Generator | None",
    "decimals": "builtins.int", "optimize": "object", "operands": "_ArrayLike", "subscripts": "builtins.str",
    "api_version": "builtins.str | None", "max_version": "builtins.tuple[builtins.int, builtins.int] | None",
    "dl_device": "builtins.tuple[builtins.int, builtins.int] | None",
    "n_rows": "builtins.int", "n_cols": "builtins.int | None", "indexing": 'Literal["xy", "ij"]',
    "condition": "_ArrayLike", "source": "_Integers", "destination": "_Integers",
    "repetitions": "_Integers", "indices_or_sections": "_Integers", "shapes": "_Integers",
    "arrays_and_dtypes": "Any", "from_": "_DTypeLike | Array", "to": "_DTypeLike",
    "kind": "Any", "pad_width": "builtins.int | Sequence[Any]", "mode": "builtins.str",
    "constant_values": "_Number | Sequence[Any]", "strides": "_Integers", "offset": "builtins.int",
    "window_shape": "_Integers", "arr": "_ArrayLike", "args": "_ArrayLike",
    "mmap_mode": 'Literal["r", "c"] | None', "threads": "builtins.int", "index": "Any",
    "axis1": "builtins.int", "axis2": "builtins.int", "v": "_Operand", "low": "_Operand",
    "high": "_Operand", "loc": "_Operand", "scale": "_Operand",
    "a": "_ArrayLike", "replace": "builtins.bool", "p": "_ArrayLike | None", "key": "Any",
    "ufunc": "Any", "method": "builtins.str", "inputs": "Any", "options": "Any", "mod": "Any",
    "memo": "Any", "_memo": "Any", "spec": "builtins.str", "_exception": "Any", "flags": "builtins.int",
    "buffer": "builtins.memoryview", "kwargs": "Any", "ndigits": "builtins.int | None",
    "order": 'Literal["C", "F", "A", "K"]', "default": "Any", "protocol": "SupportsIndex",
}  # fmt: skip

# What an argument of this name is in the methods of tensors, which come from the table of formulas.
_FORMULAS = "f g x s a b e v u w wl wr other third more modulus offset weight value".split()
TENSOR_ARGUMENTS = {name: "_Tensor" for name in _FORMULAS} | {
    name: "builtins.int" for name in "i d k n D K dim axis".split()
} | {name: "Sequence[builtins.int]" for name in "dims to dimf dimg contf contg".split()} | {
    "perm": "Sequence[builtins.int] | None", "w": "_Tensor | None", "wl": "_Tensor | None",
    "wr": "_Tensor | None", "axis": "builtins.int | None", "tensors": "Sequence[_Tensor]",
    "rows": "builtins.int | slice | None", "cols": "builtins.int | slice | None",
    "reduction": "builtins.str", "options": "Any", "b": "_Tensor", "key": "Any",
    "exponent": "_Tensor", "modulus": "_Tensor", "variables": "Sequence[LazyTensor]",
    "reduction_op": "builtins.str", "opt_arg": "builtins.int | None", "args": "Any",
}  # fmt: skip

# Arguments that mean something else in one function.
PARTICULAR = {
    ("astype", "dtype"): "_DTypeLike", ("astype", "copy"): "builtins.bool",
    ("isdtype", "dtype"): "_DTypeLike", ("argmax", "axis"): "builtins.int | None",
    ("argmin", "axis"): "builtins.int | None", ("sort", "axis"): "builtins.int",
    ("argsort", "axis"): "builtins.int", ("sort", "kind"): "builtins.str | None", ("argsort", "kind"): "builtins.str | None", ("concat", "axis"): "builtins.int | None",
    ("stack", "axis"): "builtins.int", ("unstack", "axis"): "builtins.int",
    ("take", "axis"): "builtins.int | None", ("repeat", "axis"): "builtins.int | None",
    ("take_along_axis", "axis"): "builtins.int", ("vecdot", "axis"): "builtins.int",
    ("softmax", "axis"): "builtins.int", ("split", "axis"): "builtins.int",
    ("diff", "axis"): "builtins.int", ("cumulative_sum", "axis"): "builtins.int | None",
    ("cumulative_prod", "axis"): "builtins.int | None", ("cumsum", "axis"): "builtins.int | None",
    ("cumprod", "axis"): "builtins.int | None", ("permutation", "axis"): "builtins.int",
    ("choice", "axis"): "builtins.int", ("shuffle", "axis"): "builtins.int", ("shuffle", "x"): "Any",
    ("expand_dims", "axis"): "_Integers", ("squeeze", "axis"): "_Integers | None",
    ("linspace", "start"): "builtins.complex | Array", ("linspace", "stop"): "builtins.complex | Array",
    ("tensordot", "axes"): "builtins.int | Sequence[Sequence[builtins.int]]",
    ("broadcast_arrays", "arrays"): "_ArrayLike", ("meshgrid", "arrays"): "_ArrayLike",
    ("shares_memory", "x1"): "Array", ("shares_memory", "x2"): "Array",
    ("std", "correction"): "builtins.float | None", ("var", "correction"): "builtins.float | None",
    ("set_default_device", "device"): "_DeviceLike", ("to_device", "device"): "_DeviceLike",
    ("integers", "low"): "builtins.int", ("integers", "high"): "builtins.int | None",
    ("from_dlpack", "x"): "_SupportsDLPack", ("save", "file"): "_File | IO[bytes]",
    ("load", "file"): "_File | IO[bytes]", ("savez", "file"): "_File | IO[bytes]",
    ("savez_compressed", "file"): "_File | IO[bytes]", ("permutation", "x"): "builtins.int | _ArrayLike",
    ("choice", "a"): "builtins.int | _ArrayLike", ("where", "x1"): "_Operand",
    ("asarray", "order"): 'Literal["C", "F", "A", "K"] | None',
    ("__eq__", "value"): "object", ("__ne__", "value"): "object",
    ("__contains__", "key"): "object",
    ("transpose", "axes"): "_Integers | None",
    ("function std", "correction"): "builtins.float", ("function var", "correction"): "builtins.float",
    ("_restore", "dtype"): "builtins.str", ("_restore", "shape"): "Sequence[builtins.int]",
    ("_restore", "data"): "Buffer", ("_restore", "device"): "builtins.str",
    ("_command_line", "line"): "Sequence[builtins.str]",
    ("_matmul_tiled_flat", "a"): "Array", ("_matmul_tiled_flat", "b"): "Array",
    ("_matmul_tiled_flat", "out"): "Array",
    ("_matmul_tiled_flat", "sizes"): "builtins.tuple[builtins.int, ...]",
    ("_matmul_tiled_flat", "tile"): "builtins.int",
    ("_restore_rng", "seed"): "builtins.int", ("_restore_rng", "taken"): "builtins.int",
    ("__array__", "dtype"): "Any", ("Vi", "dim"): "builtins.int | None",
    ("Vj", "dim"): "builtins.int | None", ("Pm", "dim"): "builtins.int | None",
    ("Var", "dim"): "builtins.int | None", ("Var", "cat"): "builtins.int",
    ("Vi", "x"): "_Tensor", ("Vj", "x"): "_Tensor", ("Pm", "x"): "_Tensor", ("Var", "x"): "_Tensor",
    ("set_defaults", "accuracy"): "builtins.str | None",
    ("set_defaults", "scheme"): "builtins.str | None",
    ("set_defaults", "sum_scheme"): "builtins.str | None",
    ("set_defaults", "progress"): "builtins.bool | None",
    ("_restore_genred", "made_from"): "builtins.tuple[Any, ...]",
    ("_restore_genred", "keywords"): "builtins.dict[builtins.str, Any] | None",
    ("_multiply_adds", "double"): "builtins.bool", ("_restore_partial", "state"): "builtins.dict[builtins.str, Any]",
    ("_restore_lazy", "formula"): "builtins.str", ("_restore_lazy", "symbols"): "Sequence[builtins.tuple[builtins.int, builtins.int, builtins.int]]",
    ("_restore_lazy", "arrays"): "Sequence[builtins.tuple[builtins.int, Any]]", ("_restore_lazy", "weak"): "builtins.bool",
    ("LazyTensor logsumexp", "weight"): "_Tensor | None",
    ("LazyTensor logsumexp_reduction", "weight"): "_Tensor | None",
    ("LazyTensor partial", "offset"): "builtins.int", ("LazyTensor norm", "dim"): "builtins.int",
    ("Partial merge", "other"): "Partial", ("from_arrays", "version"): "builtins.int",
    ("from_arrays", "reduction"): "builtins.str", ("from_arrays", "dim"): "builtins.int",
    ("from_arrays", "K"): "builtins.int", ("from_arrays", "weights"): "builtins.int",
    ("from_arrays", "dtype"): "_DTypeLike", ("from_arrays", "count"): "builtins.int",
    ("from_arrays", "values"): "_ArrayLike", ("from_arrays", "indices"): "_ArrayLike | None",
    ("LazyTensor reduction", "other"): "_Tensor | None",
    ("LazyTensor solve", "var"): "LazyTensor | None", ("LazyTensor reduction_grad", "v"): "LazyTensor",
    ("LazyTensor value_and_grad", "e"): "_ArrayLike | None", ("Genred value_and_grad", "e"): "_ArrayLike | None",
    ("Genred value_and_grad", "variables"): "Sequence[builtins.str]",
    ("LazyTensor reduction_grad", "e"): "_ArrayLike",
    ("LazyTensor __eq__", "value"): "_Tensor", ("LazyTensor __ne__", "value"): "_Tensor",
}  # fmt: skip

# What functions and methods return that do not return an array.
RETURNS = {
    "_command_line": "builtins.int",
    "_matmul_tiled_flat": "None",
    "allclose": "builtins.bool", "array_equal": "builtins.bool", "can_cast": "builtins.bool",
    "isdtype": "builtins.bool", "shares_memory": "builtins.bool", "result_type": "dtype",
    "finfo": "finfo_object", "iinfo": "iinfo_object", "nonzero": "builtins.tuple[Array, ...]",
    "broadcast_arrays": "builtins.tuple[Array, ...]", "meshgrid": "builtins.tuple[Array, ...]",
    "unstack": "builtins.tuple[Array, ...]", "split": "builtins.tuple[Array, ...]",
    "broadcast_shapes": "builtins.tuple[builtins.int, ...]", "unique_all": "UniqueAllResult",
    "unique_counts": "UniqueCountsResult", "unique_inverse": "UniqueInverseResult",
    "devices": "builtins.tuple[device, ...]", "default_device": "device", "set_default_device": "None",
    "get_num_threads": "builtins.int", "set_num_threads": "None", "empty_cache": "None",
    "cuda_empty_cache": "None", "cuda_synchronize": "None",
    "cuda_memory_info": "builtins.tuple[builtins.int, builtins.int, builtins.int, builtins.int]",
    "cuda_why_not": "builtins.str | None", "show_config": "None", "set_printoptions": "None",
    "get_printoptions": "builtins.dict[builtins.str, Any]", "save": "None", "savez": "None",
    "savez_compressed": "None", "load": "Any", "default_rng": "Generator",
    "__array_namespace_info__": "NamespaceInfo", "_restore_rng": "Generator",
    "item": "Any", "tolist": "Any", "tobytes": "bytes", "fill": "None", "Array.sort": "None",
    "__array_ufunc__": "Any", "__array__": "Any", "__dlpack__": "Any",
    "__dlpack_device__": "builtins.tuple[builtins.int, builtins.int]", "__array_namespace__": "Any",
    "__bool__": "builtins.bool", "__int__": "builtins.int", "__float__": "builtins.float",
    "__complex__": "builtins.complex", "__index__": "builtins.int", "__len__": "builtins.int",
    "__contains__": "builtins.bool", "__iter__": "Iterator[Array]", "__setitem__": "None",
    "__delitem__": "None", "__repr__": "builtins.str", "__str__": "builtins.str",
    "__format__": "builtins.str", "__reduce__": "builtins.tuple[Any, ...]",
    "__reduce_ex__": "builtins.tuple[Any, ...]",
    "__hash__": "builtins.int", "__divmod__": "builtins.tuple[Array, Array]",
    "__rdivmod__": "builtins.tuple[Array, Array]", "__round__": "Any", "dtype.__call__": "Array",
    "__length_hint__": "builtins.int", "__buffer__": "builtins.memoryview",
    "__release_buffer__": "None", "__enter__": "device", "__exit__": "None", "synchronize": "None",
    "capabilities": "builtins.dict[builtins.str, Any]",
    "default_dtypes": "builtins.dict[builtins.str, dtype]",
    "dtypes": "builtins.dict[builtins.str, dtype]", "random": "Any", "standard_normal": "Any",
    "normal": "Any", "uniform": "Any", "integers": "Any", "choice": "Any",
    "dtype.__eq__": "builtins.bool", "dtype.__ne__": "builtins.bool",
    "device.__eq__": "builtins.bool", "device.__ne__": "builtins.bool",
    "NpzFile.__iter__": "Iterator[builtins.str]", "NpzFile.__enter__": "NpzFile", "close": "None",
    "NpzFile.keys": "KeysView[builtins.str]", "NpzFile.values": "ValuesView[Array]",
    "NpzFile.items": "ItemsView[builtins.str, Array]", "NpzFile.get": "Any",
    "flatiter.__iter__": "flatiter", "flagsobj.__getitem__": "builtins.bool",
    "printoptions.__new__": "printoptions", "printoptions.__enter__": "builtins.dict[builtins.str, Any]",
    "ArrayIterator.__iter__": "ArrayIterator", "ArrayIterator.__next__": "Array",
    "Vi": "LazyTensor", "Vj": "LazyTensor", "Pm": "LazyTensor", "Var": "LazyTensor",
    "set_defaults": "None", "get_defaults": "builtins.dict[builtins.str, Any]",
    "_multiply_adds": "builtins.float", "_restore_genred": "Genred", "_restore_partial": "Partial", "_restore_lazy": "LazyTensor", "explain": "builtins.str",
    "LazyTensor.solve": "Array", "LazyTensor.reduction_grad": "Array",
    "LazyTensor.value_and_grad": "builtins.tuple[Array, builtins.tuple[Array, ...]]",
    "Genred.value_and_grad": "builtins.tuple[Array, builtins.tuple[Array, ...]]",
    "LazyTensor.explain": "builtins.str", "LazyTensor.partial": "Partial",
    "LazyTensor.aslinearoperator": "Any", "LazyTensor.dim": "builtins.int", "LazyTensor.dense": "Array",
    "Partial.arrays": "builtins.dict[builtins.str, Any]", "Partial.merge": "Partial",
    "Partial.finish": "Any", "from_arrays": "Partial", "__call__": "Any",
    "LazyTensor.matvec": "Array", "LazyTensor.rmatvec": "Array", "LazyTensor.matmat": "Array",
    "LazyTensor.rmatmat": "Array", "LazyTensor.matmul": "Array",
    "LazyTensor.__matmul__": "Any", "LazyTensor.__rmatmul__": "Any",
}  # fmt: skip

# Attributes that can be set.
SETTABLE = {"LazyTensor.backend", "LazyTensor.ranges"}

ATTRIBUTES = {
    "shape": "builtins.tuple[builtins.int, ...]", "strides": "builtins.tuple[builtins.int, ...]",
    "ndim": "builtins.int", "size": "builtins.int", "dtype": "dtype", "device": "device",
    "itemsize": "builtins.int", "nbytes": "builtins.int", "T": "Array", "mT": "Array",
    "real": "Array", "imag": "Array", "is_contiguous": "builtins.bool", "writable": "builtins.bool",
    "files": "builtins.list[builtins.str]", "flags": "flagsobj", "flat": "flatiter", "c_contiguous": "builtins.bool",
    "f_contiguous": "builtins.bool", "contiguous": "builtins.bool", "forc": "builtins.bool",
    "fnc": "builtins.bool", "owndata": "builtins.bool", "writeable": "builtins.bool",
    "aligned": "builtins.bool", "data": "builtins.memoryview",
    "__array_interface__": "builtins.dict[builtins.str, Any]",
    "__cuda_array_interface__": "builtins.dict[builtins.str, Any]",
    "name": "builtins.str", "kind": "builtins.str", "str": "builtins.str", "__numpy_dtype__": "Any",
    "type": "builtins.str", "index": "builtins.int | None",
    "properties": "builtins.list[builtins.tuple[builtins.str, builtins.str]]",
    "bits": "builtins.int", "eps": "builtins.float", "max": "builtins.float", "min": "builtins.float",
    "smallest_normal": "builtins.float", "smallest_subnormal": "builtins.float",
    "state": "builtins.tuple[builtins.int, builtins.int]",
    "iinfo_object.max": "builtins.int", "iinfo_object.min": "builtins.int",
    "dtype.dtype": "Any", "dtype.type": "Any", "_shape": "builtins.tuple[builtins.int, ...]", "LazyTensor.T": "LazyTensor",
    "ni": "builtins.int | None", "nj": "builtins.int | None", "formula": "builtins.str",
    "batchdims": "builtins.tuple[builtins.int, ...]", "nbatchdims": "builtins.int",
    "LazyTensor.dtype": "dtype | None",
}  # fmt: skip

# Members that every object has, or that only the interpreter calls.
SILENT = {
    "__module__", "__doc__", "__new__", "__getattribute__", "__weakref__", "__dict__", "__hash__",
    "__buffer__", "__release_buffer__", "__array_priority__", "__qualname__",
}  # fmt: skip


def typed(owner: str, name: str, function: object) -> str:
    """The signature of a function with types."""
    shown = []
    after_slash, keyword_only = False, False
    parameters = list(inspect.signature(function).parameters.values())  # type: ignore[arg-type]
    positional = [p for p in parameters if p.kind is p.POSITIONAL_ONLY]
    for p in parameters:
        if positional and p.kind is not p.POSITIONAL_ONLY and not after_slash:
            shown.append("/")
            after_slash = True
        if p.kind is p.KEYWORD_ONLY and not keyword_only:
            if not any(q.kind is q.VAR_POSITIONAL for q in parameters):
                shown.append("*")
            keyword_only = True
        stars = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
        if p.name == "self":
            shown.append("self")
            continue
        kinds = [(f"{owner or 'function'} {name}", p.name), (name, p.name)]
        # Tensors have methods named as functions of arrays are, with arguments of their own.
        arguments = ARGUMENTS | (TENSOR_ARGUMENTS if owner == "LazyTensor" else {})
        kinds = kinds[:1] if owner == "LazyTensor" else kinds
        kind = next((PARTICULAR[k] for k in kinds if k in PARTICULAR), None) or arguments[p.name]
        default = "" if p.default is p.empty else f" = {p.default!r}"
        shown.append(f"{stars}{p.name}: {kind}{default}")
    if positional and not after_slash:
        shown.append("/")
    returns = RETURNS.get(f"{owner}.{name}") or RETURNS.get(name, "Array")
    if owner == "LazyTensor" and f"LazyTensor.{name}" not in RETURNS:
        returns = tensor_returns(name, parameters)
    return f"def {name}({', '.join(shown)}) -> {returns}: ..."


def tensor_returns(name: str, parameters: list[inspect.Parameter]) -> str:
    """What a method of LazyTensor returns: an array from a reduction, else a tensor."""
    if name.startswith("__") and name in RETURNS:
        return RETURNS[name]
    reduces = any(p.name == "options" for p in parameters)
    return "Any" if reduces else "LazyTensor"


def own(cls: type) -> dict[str, object]:
    """What a class and its bases define: `Array` has its methods from a base."""
    return {name: member for base in reversed(cls.__mro__[:-1]) for name, member in vars(base).items()}


def class_lines(cls: type) -> list[str]:
    """The stub of a class."""
    lines = ["", "@final", f"class {cls.__name__}:"]
    if cls.__name__ in ("dtype", "device"):
        lines.append("    def __new__(cls, name: Any, /) -> " + cls.__name__ + ": ...")
    if cls.__name__ == "printoptions":
        lines.append("    " + typed("printoptions", "__new__", cls).replace("(", "(cls, ", 1))
    if cls.__name__ == "LazyTensor":
        lines.append("    def __new__(cls, x: _Tensor | builtins.tuple[builtins.int, ...], axis: builtins.int | None = None) -> LazyTensor: ...")
    if cls.__name__ == "Genred":
        lines.append(
            "    def __new__(cls, formula: builtins.str, aliases: Sequence[builtins.str], reduction_op: builtins.str = 'Sum', "
            "axis: builtins.int = 0, dtype: Any = None, opt_arg: builtins.int | None = None, "
            "formula2: builtins.str | None = None, **options: Any) -> Genred: ..."
        )
    if cls.__name__ == "KernelSolve":
        lines.append(
            "    def __new__(cls, formula: builtins.str, aliases: Sequence[builtins.str], varinvalias: builtins.str, "
            "axis: builtins.int = 0, **options: Any) -> KernelSolve: ..."
        )
    for name, member in sorted(own(cls).items()):
        if name in SILENT or (cls.__name__ == "LazyTensor" and name == "__array_ufunc__"):
            continue
        if name == "__iter__" and member is None:
            lines.append(f"    {name}: None")
            continue
        if f"{cls.__name__}.{name}" in SETTABLE:
            lines.append(f"    {name}: Any")
            continue
        if inspect.isgetsetdescriptor(member) or inspect.ismemberdescriptor(member):
            kind = ATTRIBUTES.get(f"{cls.__name__}.{name}") or ATTRIBUTES[name]
            lines += ["    @property", f"    def {name}(self) -> {kind}: ..."]
            if name == "flat":
                lines += ["    @flat.setter", "    def flat(self, values: _Operand) -> None: ..."]
            continue
        ignore = ""
        if isinstance(member, staticmethod):
            lines.append("    @staticmethod")
            member = member.__func__
        if cls.__name__ in ("Array", "LazyTensor") and name in ("__eq__", "__ne__"):
            ignore = "  # type: ignore[override]"
        if name == "__ipow__":
            ignore = "  # type: ignore[misc]"
        lines.append(f"    {typed(cls.__name__, name, member)}{ignore}")
    if cls.__name__ == "Array":
        lines.append("    __array_priority__: builtins.float")
        lines.append("    __hash__: None  # type: ignore[assignment]")
        # Python shows the protocol's methods from 3.12 on.
        lines.append("    if sys.version_info >= (3, 12):")
        lines.append("        def __buffer__(self, flags: builtins.int, /) -> builtins.memoryview: ...")
        lines.append("        def __release_buffer__(self, buffer: builtins.memoryview, /) -> None: ...")
    elif cls.__name__ == "LazyTensor":
        lines.append("    __hash__: None  # type: ignore[assignment]")
        lines.append("    __array_ufunc__: None")
    elif "__eq__" in own(cls):
        lines.append("    def __hash__(self) -> builtins.int: ...")
    return lines


def stub() -> str:
    """The whole stub."""
    lines = [HEAD.rstrip("\n")]
    values = {name: found for name, found in vars(core).items() if not name.startswith("__")}
    values |= {n: vars(core)[n] for n in ("__array_namespace_info__",)}
    for name, found in sorted(values.items()):
        if isinstance(found, type) and not issubclass(found, BaseException):
            lines += class_lines(found)
    lines += ["", "class DeviceError(RuntimeError): ...", "class FormulaError(ValueError):"]
    lines += ["    position: builtins.int | None"]
    lines += ["class AxisError(ValueError, IndexError): ...", "class SolveError(RuntimeError):"]
    lines += ["    residual: builtins.float", "    iterations: builtins.int", "    x: Array", ""]
    lines += ["__all__: builtins.list[builtins.str]", "__version__: builtins.str"]
    lines += ["__array_api_version__: builtins.str"]
    for name, found in sorted(values.items()):
        if isinstance(found, core.dtype):
            lines.append(f"{name}: dtype")
        elif isinstance(found, float):
            lines.append(f"{name}: builtins.float")
        elif found is None:
            lines.append(f"{name}: None")
    lines.append("")
    for name, found in sorted(values.items()):
        if inspect.isroutine(found):
            lines.append(typed("", name, found))
    text = "\n".join(lines) + "\n"
    names = ", ".join(f'"{name}"' for name in core.__all__)
    return text.replace("__all__: builtins.list[builtins.str]", f"__all__ = [{names}]")


def main() -> int:
    """Writes the stub, or says whether it is up to date."""
    text = stub()
    if "--check" not in sys.argv:
        TARGET.write_text(text)
        return 0
    if TARGET.read_text() == text:
        return 0
    print(f"{TARGET} is not what the module says: run {__file__}")
    return 1


if __name__ == "__main__":
    sys.exit(main())
