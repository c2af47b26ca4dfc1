"""Random arrays print as NumPy prints them, whatever the options."""

import numpy as np
import pytest

import tilework as tw
from conftest import SEED

DTYPES = (
    """bool int8 int32 int64 uint8 uint64 float16 float32 float64 complex64 complex128""".split()
)


def array(rng: np.random.Generator, dtype: str) -> np.ndarray:
    """Numbers of one size, or of very different ones; rounded, or with something that is not finite."""
    shape = tuple(rng.integers(0, 6, rng.integers(0, 4)))
    kind = np.dtype(dtype).kind
    if kind == "b":
        return np.asarray(rng.random(shape) < 0.5)
    if kind in "iu":
        info = np.iinfo(dtype)
        wide = rng.random() < 0.3
        low, high = (info.min, info.max) if wide else (0, 100)
        return np.asarray(rng.integers(low, high, shape, dtype=dtype, endpoint=True))
    spread = rng.integers(-30, 30, shape) * (rng.random(shape) < 0.3)
    scale = 10.0 ** (rng.integers(-8, 9) if rng.random() < 0.6 else spread)
    values = rng.normal(size=shape) * scale
    if rng.random() < 0.4:
        values = np.round(values, rng.integers(0, 4))
    if rng.random() < 0.2:
        values = np.where(
            rng.random(shape) < 0.2, rng.choice([np.nan, np.inf, -np.inf, -0.0]), values
        )
    if kind == "c":
        values = values + 1j * (rng.normal(size=shape) * scale)
    with np.errstate(over="ignore"):
        return np.asarray(values).astype(dtype)


def options(rng: np.random.Generator) -> dict[str, object]:
    if rng.random() < 0.5:
        return {}
    return {
        "precision": int(rng.integers(0, 12)),
        "suppress": bool(rng.random() < 0.3),
        "linewidth": int(rng.integers(20, 100)),
        "threshold": int(rng.integers(5, 120)),
        "edgeitems": int(rng.integers(1, 4)),
        "sign": str(rng.choice(["-", "+", " "])),
        "floatmode": str(rng.choice(["maxprec", "maxprec_equal", "unique", "fixed"])),
    }


@pytest.mark.parametrize("dtype", DTYPES)
def test_text(device: tw.device, dtype: str) -> None:
    rng = np.random.default_rng(SEED)
    before = tw.get_printoptions()
    try:
        for _ in range(150):
            n, asked = array(rng, dtype), options(rng)
            if n.ndim == 0 and n.dtype.kind in "iu":
                # NumPy's scalar integers know no sign options; ours do.
                asked.pop("sign", None)
            with np.printoptions(**asked):
                expected = repr(n), str(n)
            tw.set_printoptions(**{**before, **asked})
            assert (repr(tw.asarray(n)), str(tw.asarray(n))) == expected
    finally:
        tw.set_printoptions(**before)
