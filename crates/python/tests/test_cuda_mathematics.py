"""Mathematics on a card over whole ranges: how far it is from the true value, and where that is finite."""

import numpy as np
import pytest

import tilework as tw

card = pytest.mark.skipif(not tw.cuda.is_available(), reason=str(tw.cuda.why_not()))

# Functions whose single precision is not the driver's, and where to ask.
RANGES = [
    ("exp2", -149, 128), ("sinh", -89, 89), ("sinh", -2, 2), ("cosh", -89, 89), ("cosh", -2, 2),
    ("log10", 1e-45, 3e38), ("log10", 0.5, 2), ("arctanh", -1, 1), ("tan", -100, 100), ("arccosh", 1, 1e4),
]  # fmt: skip


@card
@pytest.mark.parametrize("name, low, high", RANGES)
def test_single_precision_is_within_two_places(name: str, low: float, high: float) -> None:
    rng = np.random.default_rng(5)
    evenly = rng.uniform(low, high, 200_000)
    # Of every size, as far as the range goes.
    sizes = np.clip(rng.choice([-1, 1], 200_000) * 2.0 ** rng.uniform(-149, 128, 200_000), low, high)
    x = np.concatenate([evenly, sizes]).astype("float32")
    ours = {"arctanh": "atanh", "arccosh": "acosh"}.get(name, name)
    got = np.asarray(getattr(tw, ours)(tw.asarray(x, device="cuda"))).astype("float64")
    with np.errstate(all="ignore"):
        want = getattr(np, name)(x.astype("float64"))
        there = np.isfinite(want) & (np.abs(want) < 3.4e38)
        place = 2.0 ** (np.maximum(np.floor(np.log2(np.abs(want))), -126) - 23)
        assert (np.abs(got - want) / place)[there & (want != 0)].max() <= 2
    np.testing.assert_array_equal(got[~there], want.astype("float32")[~there])


@card
def test_special_values_of_single_precision() -> None:
    special = np.array([np.inf, -np.inf, np.nan, 0, -0.0, 1, -1, 2, -2, 1e-45, -1e-45, 3.4e38, -3.4e38], "float32")
    for name in ("exp2", "sinh", "cosh", "log10", "atanh"):
        got = np.asarray(getattr(tw, name)(tw.asarray(special, device="cuda")))
        want = np.asarray(getattr(tw, name)(tw.asarray(special)))
        np.testing.assert_allclose(got, want, rtol=3e-7, err_msg=name)
        there = ~np.isnan(want)
        np.testing.assert_array_equal(np.signbit(got)[there], np.signbit(want)[there], name)


@card
def test_the_largest_hypotenuses_are_finite() -> None:
    largest = np.finfo("float64").max
    a = np.array([1.2e308, largest, largest, 3, 5e-324, np.inf, -9e307, 4.4e307])
    b = np.array([1.2e308, 0.0, 1.0, 4, 5e-324, np.nan, 1e308, 4.5e307])
    got = np.asarray(tw.hypot(tw.asarray(a, device="cuda"), tw.asarray(b, device="cuda")))
    np.testing.assert_allclose(got, np.hypot(a, b), rtol=4e-16)
    size = np.asarray(tw.abs(tw.asarray(a + 1j * b, device="cuda"))[:5])
    np.testing.assert_allclose(size, np.hypot(a, b)[:5], rtol=4e-16)
