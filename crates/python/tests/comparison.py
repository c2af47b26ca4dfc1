"""How results are held against NumPy's; the tests of this folder share it.

Three questions, from strict to loose: the same bits, the same values (zeros of either sign are
one), and values within a bound that the caller derives. NaN equals NaN in all of them: which bits a
NaN carries is nobody's promise.
"""

import numpy as np

import tilework as tw

# The dtype in which a rounded result is computed again, to know how far off it is.
WIDER = {
    "float16": np.float64, "float32": np.float64, "float64": np.longdouble,
    "complex64": np.complex128, "complex128": np.clongdouble,
}  # fmt: skip


def same_kind(ours: tw.Array, theirs: np.ndarray) -> np.ndarray:
    """Asserts that dtype and shape are NumPy's; our elements as a NumPy array."""
    assert isinstance(ours, tw.Array)
    found = np.asarray(ours)
    assert found.dtype == theirs.dtype, f"dtype {found.dtype} is not {theirs.dtype}"
    assert found.shape == theirs.shape, f"shape {found.shape} is not {theirs.shape}"
    return found


def fail(found: np.ndarray, expected: np.ndarray, wrong: np.ndarray) -> None:
    """Raises with the first element that is wrong."""
    at = tuple(int(i) for i in np.argwhere(wrong)[0])
    raise AssertionError(
        f"{np.count_nonzero(wrong)} elements differ, first at {at}: "
        f"{found[at]!r} is not {expected[at]!r}"
    )


def same_values(ours: tw.Array, theirs: np.ndarray) -> None:
    """Equal elements."""
    found = same_kind(ours, theirs)
    wrong = (found != theirs) & ~((found != found) & (theirs != theirs))
    if wrong.any():
        fail(found, theirs, wrong)


def same_bits(ours: tw.Array, theirs: np.ndarray) -> None:
    """Equal elements, signs of zeros included."""
    same_values(ours, theirs)
    if theirs.dtype.kind in "fc":
        found = np.asarray(ours)
        parts = [(found.real, theirs.real), (found.imag, theirs.imag)]
        for a, b in parts if theirs.dtype.kind == "c" else parts[:1]:
            wrong = (np.signbit(a) != np.signbit(b)) & (a == a)
            if wrong.any():
                fail(found, theirs, wrong)


def close(ours: tw.Array, theirs: np.ndarray, wide: np.ndarray, bound: object) -> None:
    """Elements at most `bound` away from a result in wider precision, plus the last rounding.

    `theirs` says which dtype and shape are expected, and what is not finite. Infinities may take the
    place of what lies beyond the range, and of nothing else.
    """
    found = same_kind(ours, theirs)
    info = np.finfo(found.dtype)
    half_ulp = np.abs(wide) * info.eps / 2 + info.smallest_subnormal
    with np.errstate(all="ignore"):
        far = ~(np.abs(found - wide) <= half_ulp + bound)
        # Beyond the range, or so near its end that the bound reaches over it.
        edge = ~(np.abs(wide) + bound < info.max)
        wrong = far & ~(np.isnan(found) & np.isnan(wide)) & ~(found == wide)
        wrong &= ~(edge & ~np.isfinite(found) & ~np.isnan(wide))
    if wrong.any():
        fail(found, wide, wrong)
