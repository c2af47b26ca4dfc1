"""Writes small files of NumPy's for the readers' tests into crates/tilework/tests/data/npy.

Run with NumPy and ml_dtypes from the repository's root: python scripts/npy_files.py
Every array holds 0, 1, 2, ... (bool: every second true), with half of it as imaginary part.
"""

import pathlib

import ml_dtypes
import numpy as np

OUT = pathlib.Path(__file__).parent.parent / "crates/tilework/tests/data/npy"
OUT.mkdir(parents=True, exist_ok=True)


def numbers(dtype, *shape):
    count = np.arange(int(np.prod(shape)))
    if np.dtype(dtype) == np.bool_:
        return (count % 2).astype(dtype).reshape(shape)
    if np.dtype(dtype).kind == "c":
        return (count + 0.5j * count).astype(dtype).reshape(shape)
    return count.astype(dtype).reshape(shape)


NAMES = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
         "float16", "float32", "float64", "complex64", "complex128"]
for name in NAMES:
    np.save(OUT / f"{name}.npy", numbers(name, 2, 3))
np.save(OUT / "bfloat16.npy", numbers(ml_dtypes.bfloat16, 2, 3))
np.save(OUT / "fortran_float32.npy", np.asfortranarray(numbers("float32", 2, 3, 2)))
for name in ["int16", "uint32", "float16", "float64", "complex64", "complex128"]:
    np.save(OUT / f"big_{name}.npy", numbers(np.dtype(name).newbyteorder(">"), 2, 3))
np.save(OUT / "scalar_float64.npy", numbers("float64"))
np.save(OUT / "empty_int32.npy", numbers("int32", 0, 3))
for version in [(2, 0), (3, 0)]:
    with open(OUT / f"version{version[0]}_int64.npy", "wb") as file:
        np.lib.format.write_array(file, numbers("int64", 2, 3), version=version)
np.save(OUT / "bad_objects.npy", np.array([1, "x", None], dtype=object), allow_pickle=True)
np.save(OUT / "bad_records.npy", np.zeros(2, dtype=[("a", "f4"), ("b", "i2")]))
np.save(OUT / "bad_text.npy", np.array(["abc", "de"]))
np.save(OUT / "bad_times.npy", np.array(["2020-01-01"], dtype="M8[D]"))
np.savez(OUT / "stored.npz", x=numbers("float32", 2, 3), second=numbers("int64", 4))
np.savez_compressed(OUT / "packed.npz", x=numbers("float32", 2, 3), zeros=np.zeros(5000))
