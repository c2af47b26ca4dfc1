"""What the package answers to NumPy's names: every answer is evaluated, and gives NumPy's numbers."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilework as tw
from tilework._names import _HERE

NAN, INF = float("nan"), float("inf")

# What the names in an answer stand for, unless a row below says otherwise.
SAMPLE: dict[str, Any] = {
    "x": np.array([[0.5, -0.25, 0.75], [0.125, -0.875, 0.5]]),
    "x1": np.array([[7.5, -7.5, 2.0], [-9.0, 4.0, 1.0]]),
    "x2": np.array([[2.0, 2.0, -3.0], [4.0, -1.5, 7.0]]),
    "obj": [[1.0, 2.0], [3.0, 4.0]],
    "axis": 1,
    "decimals": 1,
    "n": 3,
    "w": np.array([[1.0, 2.0, 3.0], [4.0, 0.5, 1.0]]),
}
WHOLE = {"x": np.array([[5, 6, 3], [12, 0, 9]]), "x1": np.array([[5, 6], [12, -7]]), "x2": np.array([2, 3])}
LINE = np.array([3.0, NAN, 1.0, 2.0, NAN])
SEVEN = np.arange(7.0)
CUBE = np.arange(24.0).reshape(2, 3, 4)
VECTORS = {"arrays": [np.arange(3.0), np.ones(3)]}
MATRICES = {"arrays": [np.arange(6.0).reshape(2, 3), np.ones((2, 3))]}
INDICES = {"x": SEVEN, "indices": [2, 3]}
PARTS = {"x": np.arange(6.0), "n": 3}

# For each name the samples of its answers in their order, and NumPy's call where the names of its
# arguments are not those in the answer.
Row = tuple[list[dict[str, Any]], Callable[[dict[str, Any]], Any]]
ROWS: dict[str, Row] = {
    "arccosh": ([{"x": np.array([1.0, 2.5])}], lambda v: np.arccosh(v["x"])),
    "array_split": ([INDICES, PARTS], lambda v: np.array_split(v["x"], v.get("indices", v["n"]))),
    "asanyarray": ([{}], lambda v: np.asanyarray(v["obj"])),
    "ascontiguousarray": ([{"obj": np.ones((2, 3)).T}], lambda v: np.ascontiguousarray(v["obj"])),
    "atleast_1d": ([{"x": np.array(2.5)}], lambda v: np.atleast_1d(v["x"])),
    "atleast_2d": ([{"x": SEVEN}], lambda v: np.atleast_2d(v["x"])),
    "average": ([{}], lambda v: np.average(v["x"], weights=v["w"])),
    "bincount": ([{"x": np.array([3, 1, 1, 5])}], lambda v: np.bincount(v["x"])),
    "bool_": ([{}], lambda v: np.bool_),
    "copy": ([{}], lambda v: np.copy(v["obj"])),
    "cumprod": ([{}, {"axis": None}], lambda v: np.cumprod(v["x"], axis=v["axis"])),
    "cumsum": ([{}, {"axis": None}], lambda v: np.cumsum(v["x"], axis=v["axis"])),
    "diag": ([{}, {"x": np.arange(3.0)}], lambda v: np.diag(v["x"])),
    "digitize": (
        [{"x": np.array([0.2, 6.4, 3.0, 9.0]), "bins": np.array([0.0, 1.0, 3.0, 6.4])}],
        lambda v: np.digitize(v["x"], v["bins"]),
    ),
    "dot": (
        [{"x2": np.arange(6.0).reshape(3, 2)}, {"x1": CUBE, "x2": CUBE.reshape(3, 4, 2)}],
        lambda v: np.dot(v["x1"], v["x2"]),
    ),
    "flatnonzero": ([{"x": np.array([[0, 2], [3, 0]])}], lambda v: np.flatnonzero(v["x"])),
    "fliplr": ([{}], lambda v: np.fliplr(v["x"])),
    "flipud": ([{}], lambda v: np.flipud(v["x"])),
    "identity": ([{}], lambda v: np.identity(v["n"])),
    "int_": ([{}], lambda v: np.int_),
    "median": ([{}, {"x": SEVEN[::-1]}], lambda v: np.median(v["x"])),
    "nan_to_num": ([{"x": np.array([NAN, INF, -INF, 1.5])}], lambda v: np.nan_to_num(v["x"])),
    "ndarray": ([{}], lambda v: tw.Array),
    "power": ([{"x1": np.array([2.0, 3.0]), "x2": np.array([0.5, 2.0])}], lambda v: np.power(v["x1"], v["x2"])),
    "rollaxis": (
        [{"x": CUBE, "axis": 2, "start": 0}, {"x": CUBE, "axis": 0, "start": 2}],
        lambda v: np.rollaxis(v["x"], v["axis"], v["start"]),
    ),
    "swapaxes": ([{"x": CUBE, "axis1": 0, "axis2": 2}], lambda v: np.swapaxes(v["x"], v["axis1"], v["axis2"])),
    "trace": ([{"x": np.arange(9.0).reshape(3, 3)}], lambda v: np.trace(v["x"])),
    "transpose": ([{"x": CUBE, "axes": (2, 0, 1)}, {"x": CUBE}], lambda v: np.transpose(v["x"], v.get("axes"))),
    "vsplit": ([INDICES | {"x": CUBE, "indices": [1]}, {"x": CUBE, "n": 2}], lambda v: np.vsplit(v["x"], v.get("indices", v["n"]))),
}  # fmt: skip
ROWS |= {name: ([WHOLE], lambda v, f=getattr(np, name): f(v["x"])) for name in ("bitwise_not", "invert")}
ROWS |= {name: ([{"x": LINE}], lambda v, f=getattr(np, name): f(v["x"])) for name in ("nanmax", "nanmean", "nanmin", "nansum")}
ROWS |= {
    name: ([WHOLE], lambda v, f=getattr(np, name): f(v["x1"], v["x2"])) for name in ("left_shift", "right_shift")
}
for stacked in ("column_stack", "hstack", "row_stack", "vstack"):
    # NumPy 2.5 has row_stack no longer, which was vstack.
    ROWS[stacked] = ([VECTORS, MATRICES], lambda v, f=getattr(np, stacked, np.vstack): f(v["arrays"]))
ROWS["dstack"] = ([MATRICES, VECTORS], lambda v: np.dstack(v["arrays"]))
ROWS["concatenate"] = ([MATRICES], lambda v: np.concatenate(v["arrays"]))
for several in ("divmod", "fmod", "mod", "inner"):
    ROWS[several] = ([{}], lambda v, f=getattr(np, several): f(v["x1"], v["x2"]))

# The parts of an answer that NumPy gives under several names of its own.
UNIQUE = {
    "unique_values": {},
    "unique_counts": {"return_counts": True},
    "unique_inverse": {"return_inverse": True},
    "unique_all": {"return_index": True, "return_inverse": True, "return_counts": True},
}


def answers(text: str) -> list[str]:
    """The expressions of an answer, without the case that each is for."""
    return [re.split(" (?:for|where) ", answer)[0] for answer in text.split(", or ")]


def ours(value: Any) -> Any:
    """A sample as it is given to our functions."""
    if isinstance(value, np.ndarray):
        return tw.asarray(value)
    return [ours(part) for part in value] if isinstance(value, list) and isinstance(value[0], np.ndarray) else value


def evaluated(code: str, sample: dict[str, Any]) -> Any:
    """What an expression of an answer gives in our namespace."""
    names = {name: getattr(tw, name) for name in tw._core.__all__} | {"divmod": divmod}
    return eval(code, {}, names | {name: ours(value) for name, value in sample.items()})


def same(found: Any, expected: Any) -> None:
    if isinstance(expected, (list, tuple)):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            same(one, other)
    elif isinstance(expected, type):
        assert found is expected or found == expected
    else:
        assert np.shape(found) == np.shape(expected)
        assert not isinstance(expected, np.ndarray) or found.dtype == expected.dtype
        np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-15)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("name", [name for name in _HERE if name not in ("copyto", "unique")])
def test_an_answer_gives_the_numbers_of_numpy(name: str) -> None:
    codes = answers(_HERE[name])
    theirs = getattr(np, name, None)
    if name in ROWS:
        samples, call = ROWS[name]
    else:
        # Names of functions, whose arguments stand between the parentheses, or of attributes.
        given = re.search(r"(?<=\().*(?=\))", codes[0]) if len(codes) == 1 else None
        words = [w for w in re.findall(r"\w+", given[0] if given else "x") if w in SAMPLE] or ["x"]
        samples, call = [{}], lambda v: theirs(*(v[word] for word in dict.fromkeys(words)))
    assert len(samples) >= len(codes), "an answer without a sample"
    for k, sample in enumerate(samples):
        values = SAMPLE | sample
        with np.errstate(all="ignore"):
            same(evaluated(codes[min(k, len(codes) - 1)], values), call(values))


def test_fmod_of_integers_and_of_what_is_not_finite() -> None:
    (code,) = answers(_HERE["fmod"])
    x1, x2 = np.array([-7, 7, -7, 7, 0]), np.array([3, 3, -3, -3, 5])
    same(evaluated(code, {"x1": x1, "x2": x2}), np.fmod(x1, x2))
    x1, x2 = np.array([-7.5, INF, 2.0, -2.0, NAN, 3.0]), np.array([2.0, 2.0, INF, -INF, 1.0, 0.0])
    with np.errstate(all="ignore"):
        same(evaluated(code, {"x1": x1, "x2": x2}), np.fmod(x1, x2))


def test_unique() -> None:
    n = np.array([3, 1, 1, 5, 3])
    for code in answers(_HERE["unique"]):
        found = evaluated(code, {"x": n})
        same(found, np.unique(n, **UNIQUE[code.partition("(")[0]]))


def test_copyto() -> None:
    x, n = tw.zeros(3), np.zeros(3)
    exec(_HERE["copyto"], {}, {"x": x, "value": 2.5})
    np.copyto(n, 2.5)
    same(x, n)


def test_names_of_numpy() -> None:
    """A name of NumPy's is answered with ours."""
    with pytest.raises(AttributeError, match=r"here concat\(arrays, axis=0\)"):
        tw.concatenate  # noqa: B018
    with pytest.raises(AttributeError, match="no attribute 'nothing'$"):
        tw.nothing  # noqa: B018
    for name in _HERE:
        # NumPy has had them all, and drops one now and then.
        assert not hasattr(tw, name) and (hasattr(np, name) or name == "row_stack")
