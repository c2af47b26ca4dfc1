"""The standard's special cases, from the tables in `data/standard`, through the Python functions.

The rows of a table are evaluated all at once, in both precisions, so that they pass the same vector
code as any other array; then one by one, as arrays of no axes.
"""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

import tilework as tw

ROOT = Path(__file__).parents[3]
DTYPES = {"real": ["float32", "float64"], "complex": ["complex64", "complex128"]}

spec = importlib.util.spec_from_file_location(
    "tables", ROOT / "scripts" / "standard_special_cases.py"
)
tables = importlib.util.module_from_spec(spec)
spec.loader.exec_module(tables)

FILES = sorted((ROOT / "data" / "standard").glob("*.txt"))


def wrong(rows: list, got: list, dtype: str) -> list[str]:
    """The rows whose results are not what the tables say, at the precision of the dtype."""
    ulps = 4 * np.finfo(dtype).eps / sys.float_info.epsilon
    found = []
    for (function, _, operands, expected), value in zip(rows, got, strict=True):
        if not tables.matches(value, expected, ulps):
            found.append(f"{function}{tuple(operands)} is {value}, not {expected} ({dtype})")
    return found


def call(function: str, operands: list[tw.Array]) -> tw.Array:
    if function == "bool":
        return operands[0].astype("bool")
    return getattr(tw, function)(*operands)


@pytest.mark.parametrize("path", [p for p in FILES if p.stem != "reductions"], ids=lambda p: p.stem)
def test_table(device: tw.device, path: Path) -> None:
    every = list(tables.rows(path))
    assert every
    for kind, dtypes in DTYPES.items():
        rows = [row for row in every if row[1] == kind]
        for dtype in dtypes if rows else []:
            columns = [np.asarray(column, dtype) for column in zip(*(row[2] for row in rows))]
            operands = [tw.asarray(column, copy=True) for column in columns]
            bad = wrong(rows, call(rows[0][0], operands).tolist(), dtype)
            single = [call(rows[0][0], [x[at] for x in operands]).item() for at in range(len(rows))]
            assert not bad + wrong(rows, single, dtype)


@pytest.mark.parametrize("dtype", DTYPES["real"])
def test_reductions(device: tw.device, dtype: str) -> None:
    rows = list(tables.rows(ROOT / "data" / "standard" / "reductions.txt"))
    got = []
    for function, kind, (numbers,), _ in rows:
        options = {"correction": float(kind.split("=")[1])} if "=" in kind else {}
        got.append(getattr(tw, function)(tw.asarray(numbers, dtype=dtype), **options).item())
    assert not wrong(rows, got, dtype)


def test_integers(device: tw.device) -> None:
    """What the standard says of integers, and what `docs/numpy.md` adds to it."""
    for dtype in "int8 int16 int32 int64".split():
        info = tw.iinfo(dtype)
        least = tw.asarray([info.min], dtype=dtype)
        assert abs(least).item() == (-least).item() == info.min
        assert (least // -1).item() == info.min and (least % -1).item() == 0
        assert (least - 1).item() == info.max and (least * 2).item() == 0
        x = tw.asarray([7, -7, 0], dtype=dtype)
        assert (x // 0).tolist() == (x % 0).tolist() == [0, 0, 0]
        assert (x // 2).tolist() == [3, -4, 0] and (x % 2).tolist() == [1, 1, 0]
        assert (x % -2).tolist() == [-1, -1, 0]
        assert (x >> 70).tolist() == [0, -1, 0] and (x << 70).tolist() == [0, 0, 0]
        assert tw.sign(x).tolist() == [1, -1, 0]
        assert [f(x).dtype for f in (tw.floor, tw.ceil, tw.trunc, tw.round)] == [dtype] * 4
    wide = tw.asarray([2**64 - 1], dtype="uint64")
    assert (wide + 1).item() == 0 and (-wide).item() == 1 and (wide > -1).item()
    assert tw.asarray([float("nan"), 1e30, -1e30]).astype("int32").tolist() == [
        0,
        2**31 - 1,
        -(2**31),
    ]
