"""What NumPy users reach for beyond the standard, on random arguments: pad, split, einsum, products,
files. Integers, so that every result is exact."""

import io
import math
from array import array
from collections import deque
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


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "symmetric", "wrap"])
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


def test_einsum_makes_nothing_large(device: tw.device) -> None:
    rng = np.random.default_rng(SEED)
    a, b, c = (rng.integers(-3, 4, (300, 300)) for _ in range(3))
    v = rng.integers(-3, 4, 300)
    ours = [tw.asarray(n) for n in (a, b, c, v)]
    for text, operands in [("ij,kl,jk->il", (0, 1, 2)), ("ij,kl,jk,l->i", (0, 1, 2, 3)), ("ij,jk,k->i", (0, 1, 3))]:
        wanted = np.einsum(text, *((a, b, c, v)[k] for k in operands), optimize=True)
        got = tw.einsum(text, *(ours[k] for k in operands), optimize="greedy")
        assert (np.asarray(got.to_device("cpu")) == wanted).all()


def test_products_in_pieces_are_as_accurate(host: tw.device) -> None:
    rng = np.random.default_rng(SEED)
    a, b = (rng.standard_normal((300, 300)).astype("float32") for _ in range(2))
    exact = a.astype("float64") @ b.astype("float64")
    errors = [np.abs(np.asarray(tw.matmul(a, b, method=method)) - exact).max() for method in ("best", "pieces")]
    assert errors[1] <= 1.5 * errors[0] < 1e-3
    with np.errstate(invalid="ignore"):
        a[0, 0] = np.inf
        assert np.array_equal(np.asarray(tw.matmul(a, b, method="pieces"))[0], (a @ b)[0], equal_nan=True)


def test_dot_is_numpys(device: tw.device) -> None:
    rng = np.random.default_rng(SEED)
    for _ in range(200):
        n = int(rng.integers(1, 4))
        a = rng.integers(-3, 4, [*rng.integers(1, 4, rng.integers(0, 3)), n])
        b = rng.integers(-3, 4, [*rng.integers(1, 4, rng.integers(0, 3)), n, int(rng.integers(1, 4))])
        b = [b, b[..., 0] if b.ndim == 2 else b, b.reshape(-1)[0]][rng.integers(3)]
        same(lambda: tw.asarray(a).dot(tw.asarray(b)), lambda: a.dot(b))
    assert tw.asarray([1.0, 2.0]).dot(2).tolist() == [2.0, 4.0]


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


@pytest.mark.parametrize("save", [tw.savez, tw.savez_compressed])
def test_archives_in_open_files(device: tw.device, save: Callable[..., None]) -> None:
    x = tw.arange(6, dtype=tw.int32).reshape(2, 3)
    file = io.BytesIO()
    save(file, x, row=x[0])
    file.seek(0)
    with np.load(file) as theirs:
        assert {name: theirs[name].tolist() for name in theirs} == {
            "arr_0": [[0, 1, 2], [3, 4, 5]],
            "row": [0, 1, 2],
        }
    file.seek(0)
    ours = tw.load(file)
    assert list(ours) == ["arr_0", "row"] and ours["arr_0"].device == device
    assert tw.array_equal(ours["arr_0"], x) and ours["row"].dtype == tw.int32
    with pytest.raises(ValueError, match="^load: "):
        tw.load(io.BytesIO(file.getvalue()[:60]))


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


def test_sequences(device: tw.device) -> None:
    """Whatever is a sequence to Python is one here; text is not."""
    assert tw.asarray(range(2, 8, 2)).tolist() == [2, 4, 6]
    assert tw.asarray(deque([[1, 2], range(3, 5)])).tolist() == [[1, 2], [3, 4]]
    assert tw.asarray([range(2), tw.asarray([2, 3])]).tolist() == [[0, 1], [2, 3]]
    assert tw.asarray(array("d", [1.5, 2.5])).tolist() == [1.5, 2.5]
    x = tw.asarray([5, 6, 7])
    assert x[range(2)].tolist() == [5, 6] and (x + range(3)).tolist() == [5, 7, 9]
    for bad in ("text", ["text"], {1, 2}, {1: 2}, iter([1])):
        with pytest.raises(TypeError):
            tw.asarray(bad)


def test_numbers_of_python(device: tw.device) -> None:
    """What Python does with numbers, it does with arrays of no axes."""
    x = tw.asarray(2.567)
    assert round(x) == 3 and type(round(x)) is int and round(x, 1).item() == 2.6
    assert round(tw.asarray([1.26, 2.5]), 1).tolist() == [1.3, 2.5]
    assert round(tw.asarray([1.26, 2.5])).tolist() == [1.0, 2.0]
    assert round(tw.asarray(7)) == 7
    pair = divmod(7, tw.asarray([2, 3]))
    assert [part.tolist() for part in pair] == [[3, 2], [1, 1]]
    assert f"{x:.1f} {x:>6.2f} {tw.asarray(10):x}" == "2.6   2.57 a"
    with pytest.raises(TypeError, match="shape"):
        format(tw.ones(2), ".2f")
    number = tw.float32(1.5)
    assert number.dtype == "float32" and number.shape == () and number.device == device
    assert tw.int8([1, 2]).dtype == "int8"
    with pytest.raises(ValueError, match="full: one number"):
        tw.full((2,), [1, 2])


@pytest.mark.parametrize("name", "byte short intc long longlong ubyte uint uintp csingle p P".split())
def test_names_of_c(name: str) -> None:
    assert tw.dtype(name) == np.dtype(name)


def test_other_functions_of_numpy(host: tw.device) -> None:
    """NumPy's functions that are no rows of the table, and the other forms of those that are."""
    n = np.asarray([[0.5, 2.0], [3.25, -1.5]])
    x = tw.asarray(n, copy=True)
    calls = [
        np.modf,
        np.cbrt,
        np.spacing,
        np.add.accumulate,
        lambda a: np.divmod(a, 2),
        lambda a: np.add.outer(a, a[0]),
        lambda a: np.multiply.reduceat(a, [0, 1]),
        lambda a: np.add(a, 1, where=np.asarray([True, False]), out=np.zeros((2, 2))),
        lambda a: np.add(a, 1, dtype="float32"),
    ]
    for call in calls:
        found, expected = call(x), call(n)
        if not isinstance(expected, tuple):
            found, expected = (found,), (expected,)
        for a, b in zip(found, expected, strict=True):
            assert type(a) in (tw.Array, np.ndarray) and a.shape == b.shape
            np.testing.assert_array_equal(np.asarray(a), b)
    assert all(part.device == host for part in np.modf(x))
    out = tw.zeros((2, 2))
    assert np.cbrt(x, out=out) is out
    np.testing.assert_array_equal(np.asarray(out), np.cbrt(n))
    np.add.at(x, (0, 0), 10)
    assert x[0, 0].item() == 10.5


def test_kinds_of_sorting() -> None:
    n = np.random.default_rng(8).integers(0, 5, (4, 30))
    for kind in (None, "quicksort", "mergesort", "heapsort", "stable"):
        x = tw.asarray(n, copy=True)
        np.testing.assert_array_equal(x.argsort(0, kind), np.argsort(n, 0, kind="stable"))
        np.testing.assert_array_equal(tw.argsort(x, kind=kind), np.argsort(n, kind="stable"))
        np.testing.assert_array_equal(tw.sort(x, kind=kind), np.sort(n, kind=kind))
        x.sort(0, kind=kind)
        np.testing.assert_array_equal(x, np.sort(n, 0))
    for call in (x.sort, x.argsort, lambda kind: tw.sort(x, kind=kind), lambda kind: tw.argsort(x, kind=kind)):
        with pytest.raises(ValueError, match="bubbles"):
            call(kind="bubbles")


def test_round_to_decimals() -> None:
    values = np.random.default_rng(5).normal(scale=100, size=50)
    for decimals in (-2, -1, 0, 1, 3):
        expected = np.round(values, decimals)
        ours = [tw.round(tw.asarray(values), decimals), tw.round(values, decimals=decimals)]
        ours += [np.round(tw.asarray(values), decimals), tw.asarray(values).round(decimals)]
        for one in ours:
            np.testing.assert_array_equal(one, expected)
    out = tw.zeros(50)
    assert tw.round(values, 1, out=out) is out
    np.testing.assert_array_equal(out, np.round(values, 1))


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_variance_of_complex_numbers_is_real(dtype: str) -> None:
    rng = np.random.default_rng(6)
    n = (rng.normal(5, 1, (7, 9)) + 1j * rng.normal(-3, 2, (7, 9))).astype(dtype)
    x = tw.asarray(n)
    for axis, ddof in ((None, 0), (0, 1), (1, 0.5)):
        for name in ("var", "std"):
            ours = getattr(x, name)(axis=axis, ddof=ddof)
            theirs = getattr(n, name)(axis=axis, ddof=ddof)
            assert ours.dtype == theirs.dtype and ours.shape == theirs.shape
            np.testing.assert_allclose(ours, theirs, rtol=1e-5 if dtype == "complex64" else 1e-13)
    assert x.var(axis=1, keepdims=True).shape == (7, 1)


def test_seeds_of_any_length() -> None:
    def drawn(seed: object) -> float:
        return float(tw.random.default_rng(seed).random())

    assert drawn([7]) == drawn(7) == drawn(np.int64(7)) == drawn((7,))
    different = [drawn(seed) for seed in (7, [7, 0], [7, 1], [1, 7], 7 + 2**65, 7 + 2**200, np.arange(3))]
    assert len(set(different)) == len(different)
    assert drawn(2**100) == drawn(2**100) and drawn([1, 2, 3]) == drawn(np.asarray([1, 2, 3]))
    for wrong in (-1, [1, -1]):
        with pytest.raises(ValueError, match="default_rng"):
            tw.random.default_rng(wrong)
    for strange in (1.5, "seed", [[1]]):
        with pytest.raises(TypeError, match="default_rng"):
            tw.random.default_rng(strange)


def test_integers_fill_their_dtype_and_no_more() -> None:
    rng = tw.random.default_rng(8)
    for name in ("int8", "uint8", "int64", "uint64"):
        info = tw.iinfo(name)
        x = rng.integers(info.min, info.max, 4000, dtype=name, endpoint=True)
        assert x.dtype == tw.dtype(name)
        middle = (info.max + info.min) // 2
        low = int((np.asarray(x) < middle).sum())
        assert 1800 < low < 2200
        top = rng.integers(info.max, info.max + 1, 3, dtype=name)
        assert top.tolist() == [info.max] * 3
        for bounds in ((info.min - 1, 0), (0, info.max + 2), (3, 3)):
            with pytest.raises(ValueError, match="integers"):
                rng.integers(*bounds, dtype=name)
    with pytest.raises(TypeError, match="float32"):
        rng.integers(5, dtype="float32")


def test_types_of_numbers() -> None:
    for dtype in (tw.float32, tw.int8, tw.bool, tw.complex64):
        assert dtype.type is np.dtype(dtype).type
    assert issubclass(tw.zeros(2, dtype="float16").dtype.type, np.floating)


def test_parameters_of_distributions_broadcast(device: tw.device) -> None:
    rng = tw.random.default_rng(SEED)
    means, widths = tw.asarray([-50.0, 0.0, 50.0]), np.asarray([[1.0], [0.0]])
    x = rng.normal(means, widths, (2000, 2, 3))
    assert x.device == device and x[:, 1].min(axis=0).tolist() == [-50, 0, 50]
    assert abs(x[:, 0].mean(axis=0) - means).max() < 0.2 and abs(x[:, 0].std() - 1) > 30
    assert rng.normal(means, widths).shape == (2, 3) and rng.normal([1, 2]).shape == (2,)
    low = rng.uniform([0, 10], [1, 20], (1000, 2))
    assert low[:, 0].max() < 1 and low[:, 1].min() >= 10 and low[:, 1].max() < 20
    assert isinstance(rng.normal(), float) and isinstance(rng.uniform(2, np.float64(3)), tw.Array)
    assert rng.normal(0, 1, 3, dtype="float32").dtype == tw.float32
    # Plain numbers give what they gave before there were arrays.
    one, other = tw.random.default_rng(7), tw.random.default_rng(7)
    assert one.normal(2.0, 3.0) == other.standard_normal() * 3.0 + 2.0
    for wrong in (-1.0, [1.0, -1.0], float("nan")):
        with pytest.raises(ValueError, match="scale"):
            rng.normal(0.0, wrong)
    with pytest.raises(ValueError, match="finite"):
        rng.uniform(0, [1.0, float("inf")])
    with pytest.raises(ValueError, match="normal: .* do not broadcast"):
        rng.normal([1.0, 2.0], [1.0, 2.0, 3.0])
    for kind in ("a", 1j):
        with pytest.raises(TypeError):
            rng.uniform(kind, 1.0)


def test_choice_and_shuffle_along_axes(device: tw.device) -> None:
    rng = tw.random.default_rng(SEED)
    x = tw.arange(12).reshape(3, 4)
    picked = rng.choice(x, 2, replace=False, axis=1)
    assert picked.shape == (3, 2) and (picked[1:] - picked[:-1]).tolist() == [[4, 4]] * 2
    rng.shuffle(x, axis=1)
    assert tw.sort(x, axis=1).tolist() == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]]
    assert (x[1] - x[0]).tolist() == [4] * 4
    for n, count in [(10**12, 1000), (40_000, 1200), (40_000, 30_000), (7, 7)]:
        few = rng.choice(n, count, replace=False)
        assert len(set(few.tolist())) == count and 0 <= int(few.min()) <= int(few.max()) < n
    seen = [rng.choice(64, 2, replace=False).tolist() for _ in range(3000)]
    assert {first for first, _ in seen} == {second for _, second in seen} == set(range(64))
    with pytest.raises(ValueError, match="sums to 1.1"):
        rng.choice(2, p=[0.5, 0.6])
    with pytest.raises(TypeError):
        rng.shuffle([1, 2, 3])


def test_arrays_of_numpy_are_shuffled(host: tw.device) -> None:
    theirs = np.arange(100)
    tw.random.default_rng(SEED).shuffle(theirs)
    assert theirs.tolist() != list(range(100)) and sorted(theirs.tolist()) == list(range(100))


def test_what_is_beyond_a_range_is_said() -> None:
    before = tw.get_num_threads()
    for wrong in (0, -1, 1025, 10**30):
        with pytest.raises((ValueError, OverflowError)):
            tw.set_num_threads(wrong)
    assert tw.get_num_threads() == before
    assert tw.arange(2, dtype=bool).tolist() == [False, True]
    with pytest.raises(TypeError, match="two of them"):
        tw.arange(3, dtype=bool)
    with pytest.raises(ValueError, match="^reshape: .*let it copy"):
        tw.ones((3, 4)).T.reshape(12, copy=False)
    with pytest.raises(ValueError, match="^reshape: cannot view 12"):
        tw.ones((3, 4)).T.reshape(5, -1, copy=False)


def test_parts_of_python_numbers() -> None:
    x = tw.asarray(-2.5)
    assert (math.trunc(x), math.floor(x), math.ceil(x)) == (-2, -3, -2)
    with pytest.raises(TypeError):
        math.trunc(tw.ones(2))


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "float16", "float32", "complex64"])
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 0, 3), (2, 1, 3)])
def test_lists(dtype: str, shape: tuple[int, ...]) -> None:
    n = np.arange(math.prod(shape)).reshape(shape).astype(dtype)
    found = tw.asarray(n).tolist()
    assert found == n.tolist() and repr(found) == repr(n.tolist())
    assert tw.asarray([2**64 - 1], dtype="uint64").tolist() == [2**64 - 1]


def test_lists_of_numpys_floats() -> None:
    rows = [[np.float64(1.5), 2], [True, np.float64(np.nan)]]
    same(lambda: tw.asarray(rows), lambda: np.asarray(rows))
    same(lambda: tw.asarray(rows, dtype="float32"), lambda: np.asarray(rows, dtype="float32"))
    same(lambda: tw.asarray([np.float64(2), 1j]), lambda: np.asarray([2, 1j]))
    same(lambda: tw.asarray([np.float64(2.7)], dtype="int8"), lambda: np.asarray([2], dtype="int8"))
    with pytest.raises(ValueError, match="asarray"):
        tw.asarray([[np.float64(1)], np.float64(2)])


@pytest.mark.parametrize("dtype", ["uint8", "int16", "float32", "int64", "complex128"])
def test_one_array_of_indices(device: tw.device, dtype: str) -> None:
    rng = np.random.default_rng(SEED)
    for count in (1, 10, 256, 257, 3000):
        n = rng.integers(0, 99, 200).astype(dtype)
        x = tw.asarray(n.copy(), device=device)
        for step in (1, -2):
            picks = rng.integers(-len(n[::step]), len(n[::step]), count)
            values = rng.integers(0, 99, count).astype(dtype)
            same(lambda: x[::step][picks], lambda: n[::step][picks])
            for written in (7, values, values[::-1], values[:1]):
                x[::step][tw.asarray(picks, device=device)] = written
                n[::step][picks] = written
                np.testing.assert_array_equal(np.asarray(x), n)
            picks[count // 2] = 200
            with pytest.raises(IndexError, match="200 is out of bounds for axis 0"):
                x[::step][tw.asarray(picks, device=device)] = 1
            np.testing.assert_array_equal(np.asarray(x), n)
    order = tw.asarray(np.arange(200)[::-1].copy(), device=device)
    x[order] = x
    n[::-1] = n.copy()
    same(lambda: x, lambda: n)
    order[order] = order
    np.testing.assert_array_equal(np.asarray(order), np.arange(200))


def test_extremes_along_axes_of_length_one(device: tw.device) -> None:
    n = np.array([[[1.5], [np.nan]], [[-0.0], [2]]])
    x = tw.asarray(n.copy(), device=device)
    for axes, kept in ((2, False), (2, True), ((), False), (-1, True)):
        same(lambda: x.max(axis=axes, keepdims=kept), lambda: n.max(axis=axes, keepdims=kept))
        same(lambda: x.T.min(axis=0, keepdims=kept), lambda: n.T.min(axis=0, keepdims=kept))
    largest, x[...] = x.max(axis=2), 0
    same(lambda: largest, lambda: n.max(axis=2))
