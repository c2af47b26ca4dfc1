"""What NumPy users reach for beyond the standard, on random arguments: pad, split, einsum, products,
files. Integers, so that every result is exact."""

import io
from collections.abc import Callable

import numpy as np
import pytest

import tilework as tw
from conftest import SEED


def same(ours: Callable[[], object], theirs: Callable[[], object]) -> None:
    """The same arrays, or an exception on both sides."""
    try:
        expected = theirs()
    except (ValueError, IndexError, TypeError):
        with pytest.raises((ValueError, IndexError, TypeError)):
            ours()
        return
    found = ours()
    pairs = (
        zip(found, expected, strict=True)
        if isinstance(expected, list | tuple)
        else [(found, expected)]
    )
    for a, b in pairs:
        assert np.shape(b) == a.shape and np.asarray(b).dtype == a.dtype
        np.testing.assert_array_equal(np.asarray(a), b)


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "wrap"])
def test_pad(device: tw.device, mode: str) -> None:
    rng = np.random.default_rng(SEED)
    for _ in range(150):
        n = rng.integers(0, 99, rng.integers(1, 5, rng.integers(1, 4)))
        widths = [tuple(map(int, rng.integers(0, 7, 2))) for _ in n.shape]
        same(lambda: tw.pad(tw.asarray(n), widths, mode), lambda: np.pad(n, widths, mode))


def test_split(device: tw.device) -> None:
    rng = np.random.default_rng(SEED)
    for _ in range(150):
        n = np.arange(rng.integers(0, 9) * 2).reshape(-1, 2)
        cuts = sorted(map(int, rng.integers(-3, 12, rng.integers(0, 3))))
        for parts in (int(rng.integers(1, 5)), cuts):
            same(lambda: tw.split(tw.asarray(n), parts), lambda: np.split(n, parts))


def test_einsum(device: tw.device) -> None:
    rng = np.random.default_rng(SEED)
    for _ in range(300):
        sizes = {letter: int(rng.integers(1, 4)) for letter in "ijkl"}
        words = [
            "".join(rng.choice(list(sizes), rng.integers(0, 4))) for _ in range(rng.integers(1, 4))
        ]
        operands = [rng.integers(-3, 4, [sizes[letter] for letter in word]) for word in words]
        text = ",".join(words)
        if rng.random() < 0.6:
            letters = sorted(set("".join(words)))
            text += "->" + "".join(rng.permutation(letters)[: rng.integers(0, len(letters) + 1)])
        same(
            lambda: tw.einsum(text, *map(tw.asarray, operands)), lambda: np.einsum(text, *operands)
        )


PRODUCTS = {
    "matmul": lambda a, b, xp: xp.matmul(a, b),
    "vecdot": lambda a, b, xp: xp.vecdot(a, b),
    "outer": lambda a, b, xp: xp.outer(a, b),
    "one axis": lambda a, b, xp: xp.tensordot(a, b, axes=1),
    "named axes": lambda a, b, xp: xp.tensordot(a, b, axes=((-1,), (0,))),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_products(device: tw.device, name: str) -> None:
    rng = np.random.default_rng(SEED)
    for _ in range(150):
        left, right = (list(rng.integers(0, 4, rng.integers(1, 5))) for _ in range(2))
        if rng.random() < 0.7:
            right[-2 if len(right) > 1 else 0] = left[-1]
        a, b = rng.integers(-3, 4, left), rng.integers(-3, 4, right)
        product = PRODUCTS[name]
        same(
            lambda: product(tw.asarray(a), tw.asarray(b), tw), lambda: np.asarray(product(a, b, np))
        )


@pytest.mark.parametrize(
    "dtype", "bool int8 uint16 int32 uint64 float16 float32 float64 complex64 complex128".split()
)
def test_files(device: tw.device, dtype: str) -> None:
    for shape in ((), (0,), (3,), (2, 3), (2, 0, 3)):
        n = (np.arange(np.prod(shape, dtype=int)) % 2).reshape(shape).astype(dtype)
        swapped = n.astype(n.dtype.newbyteorder(">"))
        for form in (n, n.T, swapped):
            file = io.BytesIO()
            np.save(file, form)
            file.seek(0)
            same(lambda: tw.load(file), lambda: form.astype(dtype))
        file = io.BytesIO()
        tw.save(file, tw.asarray(n))
        file.seek(0)
        again = np.load(file)
        assert again.dtype == n.dtype
        np.testing.assert_array_equal(again, n)


def test_rounding(device: tw.device) -> None:
    rng = np.random.default_rng(SEED)
    n = rng.normal(scale=100, size=200)
    for decimals in range(-3, 6):
        same(lambda: tw.asarray(n).round(decimals), lambda: n.round(decimals))
        same(
            lambda: tw.asarray(n.astype(int)).round(decimals), lambda: n.astype(int).round(decimals)
        )
        same(lambda: np.round(tw.asarray(n), decimals), lambda: np.round(n, decimals))
    out = tw.zeros(200)
    assert tw.asarray(n).round(2, out=out) is out
    same(lambda: out, lambda: n.round(2))
