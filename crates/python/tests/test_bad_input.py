"""Bad input: a sensible exception each, NumPy's kind, and nothing is changed.

First a table of what people get wrong, with the exception that each must raise. Then every public
function and method with arguments that fit nothing: whatever it raises, it is one of a few kinds,
never a panic, and the arrays that were passed keep their elements.
"""

import inspect
import itertools
import pickle

import numpy as np
import pytest

import tilework as tw
from conftest import HOST

HUGE = 2**62

# expression; exception. `x` is 3 x 4 of float64, `i` four integers, `b` a mask, `s` no axes.
TABLE = """
x + tw.zeros(5) :: ValueError
x + "text" :: TypeError
x + None :: TypeError
x + object() :: TypeError
x + {} :: TypeError
x @ x :: ValueError
x @ 1 :: ValueError
s @ x :: ValueError
tw.matmul(x, tw.zeros((3, 3, 4))) :: ValueError
tw.tensordot(x, x, axes=3) :: ValueError
tw.tensordot(x, x, axes=((0, 1), (0,))) :: ValueError
tw.tensordot(x, x, axes="ab") :: TypeError
tw.vecdot(x, tw.zeros((3, 5))) :: ValueError
tw.einsum("ij,jk", x, x) :: ValueError
tw.matmul(tw.eye(2), tw.eye(2), method="quick") :: ValueError
tw.matmul(tw.eye(2), tw.eye(2), out=tw.eye(2), method="pieces") :: ValueError
tw.einsum("ij,", x) :: ValueError
tw.einsum("i3", x) :: ValueError
tw.einsum(5, x) :: TypeError
tw.outer(x, "a") :: TypeError
x[3] :: IndexError
x[-4] :: IndexError
x[0, 0, 0] :: IndexError
x[..., ...] :: IndexError
x["a"] :: IndexError
x[1.5] :: IndexError
x[[0.5]] :: IndexError
x[[7]] :: IndexError
x[tw.asarray([5])] :: IndexError
x[tw.zeros((2, 2), dtype="bool")] :: IndexError
x[[0, 1], [0, 1, 2]] :: IndexError
x[::0] :: ValueError
x["a":] :: TypeError
x[10**30] :: IndexError
x.__setitem__(0, tw.zeros(9)) :: ValueError
x.__setitem__(5, 1) :: IndexError
x.__setitem__(0, "a") :: TypeError
x.__setitem__(b, tw.zeros(3)) :: ValueError
x.__setitem__([0, 9], 1) :: IndexError
x.__delitem__(0) :: TypeError
i.__setitem__(0, 10**30) :: OverflowError
i.__setitem__(0, float("nan")) :: ValueError
i.astype("int8").__setitem__(0, 128) :: OverflowError
i.astype("uint8") + 256 :: OverflowError
i.astype("uint8") + -1 :: OverflowError
i.astype("int8").__iadd__(300) :: OverflowError
i.__iadd__(1.5) :: TypeError
i.__iadd__(x[0]) :: TypeError
i.__itruediv__(2) :: TypeError
i.astype("uint8").__iadd__(i) :: TypeError
x.__iadd__(tw.zeros((2, 3, 4))) :: ValueError
s.__iadd__(x) :: ValueError
x.__imatmul__(x) :: ValueError
i << 1.5 :: TypeError
x & x :: TypeError
x | 1 :: TypeError
~x :: TypeError
x << 1 :: TypeError
i ** -1 :: ValueError
x ** "a" :: TypeError
tw.pow(i, -1) :: ValueError
tw.add(x, x, out=tw.zeros(5)) :: ValueError
tw.add(x, x, out=tw.zeros((3, 4), dtype="int8")) :: TypeError
tw.add(x, x, out=5) :: TypeError
tw.matmul(x, x.T, out=tw.zeros((4, 4))) :: ValueError
x.sum(out=tw.zeros(5)) :: ValueError
x.sum(out=tw.zeros((), dtype="int64")) :: TypeError
tw.floor(tw.asarray(1j)) :: TypeError
tw.add(x) :: TypeError
tw.add(x, x, x) :: TypeError
tw.exp("a") :: TypeError
tw.exp() :: TypeError
tw.exp(x=x) :: TypeError
tw.clip(x, "a") :: TypeError
tw.where("a", x, x) :: TypeError
tw.where(b, x) :: TypeError
tw.where(tw.zeros(7, dtype="bool"), x, x) :: ValueError
tw.sum(x, axis=2) :: tw.AxisError
tw.sum(x, axis=(0, 0)) :: ValueError
tw.sum(x, axis="a") :: TypeError
tw.sum(x, axis=0.5) :: TypeError
tw.sum(x, dtype="text") :: TypeError
tw.sum("a") :: TypeError
tw.mean(x, axis=-3) :: tw.AxisError
tw.max(tw.zeros(0)) :: ValueError
tw.max(tw.zeros((0, 3)), axis=0) :: ValueError
tw.argmax(tw.zeros(0)) :: ValueError
tw.argmin(tw.zeros((3, 0)), axis=1) :: ValueError
tw.argmax(x, axis=(0, 1)) :: TypeError
tw.var(x, correction="a") :: TypeError
tw.cumulative_sum(x) :: ValueError
tw.cumulative_sum(s) :: ValueError
tw.cumulative_sum(x, axis=2) :: tw.AxisError
tw.cumulative_prod(x, axis=(0, 1)) :: TypeError
tw.sort(s) :: tw.AxisError
tw.sort(x, axis=5) :: tw.AxisError
tw.argsort(x, axis=None) :: TypeError
tw.nonzero(s) :: ValueError
tw.searchsorted(x, x) :: ValueError
tw.searchsorted(x[0], 1.0, side="middle") :: ValueError
tw.searchsorted(x[0], "a") :: TypeError
tw.searchsorted(x[0], x[0], sorter=tw.asarray([9, 0, 0, 0])) :: IndexError
tw.take(x, tw.asarray([3]), axis=0) :: IndexError
tw.take(x, tw.asarray([0.5]), axis=0) :: (TypeError, IndexError)
tw.take(x, tw.asarray([0]), axis=2) :: tw.AxisError
tw.take_along_axis(x, tw.asarray([0])) :: ValueError
tw.take_along_axis(x, tw.full((3, 1), 9)) :: IndexError
tw.concat([]) :: ValueError
tw.concat([x, tw.zeros((3, 4, 1))]) :: ValueError
tw.concat([x, tw.zeros((3, 5))]) :: ValueError
tw.concat([x], axis=2) :: tw.AxisError
tw.concat(5) :: TypeError
tw.concat([s, s]) :: ValueError
tw.stack([]) :: ValueError
tw.stack([x, x[0]]) :: ValueError
tw.stack([x, x], axis=4) :: tw.AxisError
tw.unstack(s) :: (ValueError, IndexError)
tw.split(x, 2) :: ValueError
tw.split(x, 0) :: ValueError
tw.split(x, -1) :: (ValueError, OverflowError, TypeError)
tw.reshape(x, (5, 5)) :: ValueError
tw.reshape(x, (-1, -1)) :: ValueError
tw.reshape(x, (-1, 5)) :: ValueError
tw.reshape(x, (-2, 6)) :: ValueError
tw.reshape(tw.zeros(0), (0, -1)) :: ValueError
tw.reshape(x.T, (12,), copy=False) :: ValueError
tw.reshape(x, "ab") :: TypeError
tw.reshape(x, (HUGE, HUGE)) :: ValueError
tw.permute_dims(x, (0,)) :: ValueError
tw.permute_dims(x, (0, 0)) :: ValueError
tw.permute_dims(x, (0, 2)) :: tw.AxisError
tw.moveaxis(x, (0, 1), 0) :: ValueError
tw.moveaxis(x, 5, 0) :: tw.AxisError
tw.expand_dims(x, 5) :: tw.AxisError
tw.expand_dims(x, (0, 0)) :: ValueError
tw.squeeze(x, 0) :: ValueError
tw.squeeze(x, 9) :: tw.AxisError
tw.flip(x, axis=2) :: tw.AxisError
tw.roll(x, (1, 2), axis=(0, 1, 0)) :: ValueError
tw.roll(x, 1, axis=3) :: tw.AxisError
tw.roll(x, 0.5) :: TypeError
tw.broadcast_to(x, (4, 3)) :: ValueError
tw.broadcast_to(x, (4,)) :: ValueError
tw.broadcast_to(x, (-1, 4)) :: ValueError
tw.broadcast_to(x, (HUGE, HUGE, 3, 4)) :: ValueError
tw.broadcast_arrays(x, tw.zeros(5)) :: ValueError
tw.broadcast_shapes((2,), (3,)) :: ValueError
tw.broadcast_shapes("a") :: TypeError
tw.repeat(x, -1) :: ValueError
tw.repeat(x, tw.asarray([1, 2])) :: ValueError
tw.repeat(x, tw.asarray([1.5])) :: TypeError
tw.repeat(x, "a") :: TypeError
tw.repeat(x, 2, axis=5) :: tw.AxisError
tw.repeat(x, HUGE) :: (MemoryError, ValueError)
tw.tile(x, (HUGE,)) :: (MemoryError, ValueError)
tw.tile(x, (-1,)) :: ValueError
tw.pad(x, -1) :: ValueError
tw.pad(x, 1, "nothing") :: ValueError
tw.pad(x, ((1, 1), (1, 1), (1, 1))) :: ValueError
tw.pad(x, HUGE) :: (MemoryError, ValueError)
tw.diff(s) :: ValueError
tw.diff(x, n=-1) :: (ValueError, OverflowError)
tw.tril(x[0]) :: ValueError
tw.matrix_transpose(x[0]) :: ValueError
x[0].mT :: ValueError
tw.meshgrid(x[0], indexing="ab") :: ValueError
tw.as_strided(x, (100,), (8,)) :: ValueError
tw.as_strided(x, (2,), (-8,)) :: ValueError
tw.as_strided(x, (2,), (3,)) :: ValueError
tw.as_strided(x, (2, 2), (8,)) :: ValueError
tw.as_strided(x, (HUGE, 4), (8, 8)) :: ValueError
tw.sliding_window_view(x, 9, 0) :: ValueError
tw.sliding_window_view(x, (1, 1, 1)) :: ValueError
tw.isin(x, "a") :: TypeError
tw.unique_values("a") :: TypeError
tw.zeros(-1) :: ValueError
tw.zeros((2, -1)) :: ValueError
tw.zeros("ab") :: TypeError
tw.zeros(1.5) :: TypeError
tw.zeros(None) :: TypeError
tw.zeros((1,) * 65) :: ValueError
tw.zeros(2**60) :: MemoryError
tw.zeros((HUGE, HUGE)) :: (MemoryError, ValueError)
tw.zeros(10**30) :: (MemoryError, ValueError, OverflowError)
tw.zeros(2, dtype="float128") :: TypeError
tw.zeros(2, dtype=5) :: TypeError
tw.zeros(2, device="abacus") :: tw.DeviceError
tw.zeros(2, device=5) :: TypeError
tw.zeros(2, device="cuda:99") :: tw.DeviceError
tw.full(2, "a") :: TypeError
tw.full(2, 300, dtype="uint8") :: OverflowError
tw.full(2, -1, dtype="uint8") :: OverflowError
tw.full(2, x) :: (TypeError, ValueError)
tw.full(2, float("inf"), dtype="int32") :: OverflowError
tw.full(2, 300.0, dtype="uint8") :: OverflowError
tw.full(2, float("nan"), dtype="uint8") :: ValueError
tw.asarray(300.0, dtype="uint8") :: OverflowError
tw.asarray([1e30], dtype="int64") :: OverflowError
tw.asarray([float("nan"), 1], dtype="int8") :: ValueError
tw.zeros(2, dtype="uint8").__setitem__(slice(None), [300, 1]) :: OverflowError
tw.zeros(2, dtype="uint8").__setitem__([0, 1], (300, 1)) :: OverflowError
tw.zeros(2, dtype="int64").__setitem__(slice(None), [2**63, 1]) :: OverflowError
tw.zeros(2, dtype="uint8").__setitem__(0, -1.0) :: OverflowError
tw.zeros(2, dtype="int8").__setitem__(slice(None), [float("nan"), 1]) :: ValueError
tw.zeros(2, dtype="int8").__setitem__(slice(None), [1j, 1]) :: TypeError
tw.arange(300, 301, dtype="uint8") :: OverflowError
tw.arange(-5, 3, dtype="uint8") :: OverflowError
tw.eye(-1) :: (ValueError, OverflowError)
tw.eye(2**31, 2**31) :: MemoryError
tw.arange(0, 10, 0) :: (ValueError, ZeroDivisionError)
tw.arange(1j) :: TypeError
tw.arange("a") :: TypeError
tw.arange(0, 1e30) :: (MemoryError, ValueError)
tw.arange(0, float("inf")) :: (ValueError, OverflowError)
tw.arange(0, float("nan")) :: ValueError
tw.linspace(0, 1, -1) :: (ValueError, OverflowError)
tw.linspace(0, 1, 2.5) :: TypeError
tw.linspace("a", 1, 2) :: TypeError
tw.asarray([[1, 2], [3]]) :: ValueError
tw.asarray("text") :: TypeError
tw.asarray(None) :: TypeError
tw.asarray([None]) :: TypeError
tw.asarray([[1], "a"]) :: (TypeError, ValueError)
tw.asarray(np.array(["a"])) :: TypeError
tw.asarray(np.array([None])) :: TypeError
tw.asarray([300], dtype="uint8") :: OverflowError
tw.asarray(10**30) :: OverflowError
tw.asarray([1, 2], copy=False) :: ValueError
tw.asarray(x, dtype="float32", copy=False) :: ValueError
tw.astype(x, "text") :: TypeError
tw.astype(x, None) :: TypeError
x.astype() :: TypeError
tw.from_dlpack([1]) :: TypeError
tw.from_dlpack(x, device="abacus") :: tw.DeviceError
x.__dlpack__(max_version="a") :: TypeError
x.to_device("abacus") :: tw.DeviceError
x.to_device() :: TypeError
x.to_device("cpu", stream=3) :: ValueError
x.item() :: ValueError
x.item(99) :: IndexError
x.item(0, 0, 0) :: (IndexError, ValueError)
x.reshape() :: (TypeError, ValueError)
x.transpose(0) :: ValueError
x.swapaxes(0, 7) :: tw.AxisError
x.diagonal(0, 1, 1) :: ValueError
x[0].diagonal() :: ValueError
x.round("a") :: TypeError
x.fill("a") :: TypeError
bool(x) :: ValueError
int(x) :: TypeError
float(x) :: TypeError
complex(x) :: TypeError
int(tw.asarray(float("nan"))) :: ValueError
int(tw.asarray(float("inf"))) :: OverflowError
float(tw.asarray(1j)) :: TypeError
[1, 2][s] :: TypeError
len(s) :: TypeError
iter(s) :: TypeError
hash(x) :: TypeError
tw.dtype("no") :: TypeError
tw.finfo("int8") :: (TypeError, ValueError)
tw.iinfo("float32") :: (TypeError, ValueError)
tw.isdtype(tw.int8, "odd") :: ValueError
tw.isdtype(5, "bool") :: TypeError
tw.can_cast(5, tw.int8) :: TypeError
tw.result_type() :: ValueError
tw.result_type("no") :: TypeError
tw.device("cpu:9") :: tw.DeviceError
tw.device(5) :: TypeError
tw.set_num_threads(0) :: ValueError
tw.set_num_threads(-1) :: (ValueError, OverflowError)
tw.set_num_threads("a") :: TypeError
tw.set_printoptions(sign="x") :: ValueError
tw.set_printoptions(precision=-1) :: ValueError
tw.printoptions(threshold=-1) :: ValueError
tw.random.default_rng(1.5) :: TypeError
tw.load("/nowhere/at/all.npy") :: FileNotFoundError
tw.load("/nowhere/at/all.npy", mmap_mode="r") :: FileNotFoundError
tw.load("/") :: IsADirectoryError
tw.load("/", mmap_mode="r") :: IsADirectoryError
tw.load(b"junk") :: (OSError, ValueError, TypeError)
tw.save("/nowhere/at/all.npy", x) :: FileNotFoundError
tw.savez("/nowhere/at/all.npz", x) :: FileNotFoundError
tw.softmax(x, axis=7) :: ValueError :: softmax
tw.softmax(tw.asarray([1j])) :: TypeError :: softmax
tw.clip(tw.asarray([1j]), 0) :: TypeError :: clip
tw.clip(x, "a") :: TypeError :: clip
tw.clip(x, None, tw.zeros((5, 7))) :: ValueError :: clip
tw.random.default_rng(-1) :: ValueError
tw.random.default_rng("a") :: TypeError
tw.random.default_rng(1).integers(5, 5) :: ValueError
tw.random.default_rng(1).normal(0, -1, 3) :: ValueError
tw.random.default_rng(1).random(-1) :: ValueError
tw.random.default_rng(1).random(3, dtype="int8") :: TypeError
tw.random.default_rng(1).choice(0) :: ValueError
tw.random.default_rng(1).choice(3, 5, replace=False) :: ValueError
tw.random.default_rng(1).choice(3, 2, p=[0.5, 0.5]) :: ValueError
tw.random.default_rng(1).permutation(x, axis=4) :: tw.AxisError
""".strip().split("\n")


def inputs() -> dict[str, tw.Array]:
    return {
        "x": tw.reshape(tw.arange(12.0), (3, 4)),
        "i": tw.arange(4),
        "b": tw.reshape(tw.arange(12) % 2 == 0, (3, 4)),
        "s": tw.asarray(2.5),
    }


@pytest.mark.parametrize("line", TABLE)
def test_table(device: tw.device, line: str) -> None:
    # What is raised, and where it matters the operation that the message begins with.
    expression, kind, *operation = line.split(" :: ")
    given = inputs()
    before = {name: array.tolist() for name, array in given.items()}
    scope = {"tw": tw, "np": np, "HUGE": HUGE}
    with pytest.raises(eval(kind, scope)) as raised:
        eval(expression, scope, given)
    assert str(raised.value), "an error says what is wrong"
    assert all(str(raised.value).startswith(f"{name}: ") for name in operation)
    assert {name: array.tolist() for name, array in given.items()} == before


@pytest.mark.parametrize("where", HOST)
def test_memory_that_may_only_be_read(where: str) -> None:
    with tw.device(where):
        refuse_to_write()


def refuse_to_write() -> None:
    n = np.arange(6.0)
    n.flags.writeable = False
    x = tw.asarray(n)
    writes = [
        lambda: x.__setitem__(0, 1),
        lambda: x.__setitem__([0, 1], 1),
        lambda: x.__setitem__(x > 2, 1),
        lambda: x.__iadd__(1),
        lambda: x[::2].__imul__(2),
        lambda: x.reshape(2, 3).fill(0),
        lambda: x.sort(),
        lambda: tw.add(x, 1, out=x),
        lambda: tw.asarray(bytes(8)).__setitem__(0, 1),
        lambda: tw.broadcast_to(tw.zeros(1), (3,)).__setitem__(slice(2), 1),
        lambda: tw.broadcast_to(tw.zeros(1), (3,)).__iadd__(1),
    ]
    for write in writes:
        with pytest.raises(ValueError):
            write()
    assert n.tolist() == [0, 1, 2, 3, 4, 5]
    x.copy()[0] = 1


def test_operands_on_two_devices() -> None:
    x, y = tw.ones(3, device="cpu"), tw.ones(3, device="reference")
    for work in (
        lambda: x + y,
        lambda: x.__iadd__(y),
        lambda: x.__setitem__(0, y[0]),
        lambda: tw.concat([x, y]),
        lambda: tw.where(x > 0, x, y),
        lambda: x @ y,
        lambda: tw.add(x, x, out=y),
        lambda: x[y > 0],
        lambda: tw.searchsorted(x, y),
        lambda: tw.isin(x, y),
        lambda: tw.repeat(x, y.astype("int64")),
    ):
        with pytest.raises(tw.DeviceError, match="cpu and reference|reference and cpu"):
            work()
    assert x.tolist() == y.tolist() == [1, 1, 1]


# What is done to every function; the kinds that may come out.
ODD = [
    None,
    "text",
    -1,
    2.5,
    10**30,
    float("nan"),
    object(),
    [],
    [[1], [1, 2]],
    (),
    {},
    b"",
    1j,
    slice(3),
    ...,
]
ALLOWED = (
    TypeError, ValueError, IndexError, OverflowError, MemoryError, OSError, BufferError, AttributeError,
    NotImplementedError, ZeroDivisionError, tw.DeviceError,
)  # fmt: skip
# What changes the process rather than computing.
LEFT_OUT = {"set_default_device", "set_num_threads", "set_printoptions", "empty_cache", "save", "savez",
            "savez_compressed", "show_config"}  # fmt: skip


def harmless(function: object, *arguments: object) -> None:
    try:
        function(*arguments)
    except ALLOWED as error:
        assert "bug" not in str(error) and "panick" not in str(error)


@pytest.mark.parametrize("name", sorted(set(tw._core.__all__) - LEFT_OUT))
def test_odd_arguments_of_functions(name: str) -> None:
    function = getattr(tw, name)
    if not callable(function) or inspect.isclass(function) and issubclass(function, BaseException):
        pytest.skip("not a function")
    x = tw.arange(6.0).reshape(2, 3)
    for odd in ODD:
        harmless(function, odd)
    for left, right in itertools.product([x, tw.arange(3), tw.zeros((0, 2)), *ODD[:6]], ODD):
        harmless(function, left, right)
        harmless(function, left, right, right)
    assert x.tolist() == [[0, 1, 2], [3, 4, 5]]


METHODS = [
    name for name in dir(tw.Array) if name not in dir(object) or name in ("__eq__", "__lt__")
]


@pytest.mark.parametrize("name", [name for name in METHODS if callable(getattr(tw.Array, name))])
def test_odd_arguments_of_methods(name: str) -> None:
    for array in (tw.arange(6.0).reshape(2, 3), tw.asarray(1), tw.zeros((0, 2), dtype="bool")):
        harmless(getattr(array.copy(), name))
        for odd in ODD:
            harmless(getattr(array.copy(), name), odd)
            harmless(getattr(array.copy(), name), odd, odd)


def test_bytes_beyond_memory_are_an_error() -> None:
    many = tw.broadcast_to(tw.zeros(1), (1 << 59,))
    most = tw.broadcast_to(tw.zeros(1, dtype=tw.complex128), (1 << 62,))
    for ask in (pickle.dumps, tw.Array.tobytes):
        for array in (many, most):
            with pytest.raises(MemoryError):
                ask(array)
    assert most.nbytes == 1 << 66
    with pytest.raises(BufferError, match="more bytes than an address space"):
        memoryview(most)
