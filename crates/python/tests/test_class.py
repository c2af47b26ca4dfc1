"""The class itself: how its objects come and go, and its short ways beside the long ones."""

import gc
import sys
import threading
import weakref

import numpy as np
import pytest

import tilework as tw


def test_the_class_is_made_by_functions_only() -> None:
    assert (tw.Array.__name__, tw.Array.__module__) == ("Array", "tilework")
    assert tw.Array.__doc__.startswith("An n-dimensional array")
    with pytest.raises(TypeError):
        tw.Array()
    with pytest.raises(TypeError):
        tw.Array.__mro__[1]()
    with pytest.raises(TypeError):
        object.__new__(tw.Array)
    with pytest.raises(TypeError):
        type("Sub", (tw.Array,), {})


def test_every_way_makes_objects_of_the_class() -> None:
    x = tw.arange(6.0).reshape(2, 3)
    n = np.arange(6.0).reshape(2, 3)
    made = [
        x, x + x, 1 - x, x + n, n + x, -x, x[0], x[:, ::2], x[[0]], x[x > 1], x.T, x.sum(), x == x,
        x == None, x @ x.T, np.exp(x), next(iter(x)), next(reversed(x)), x.flat[0], x.flat[1:], x.copy(),
        x.to_device("reference"), x.real, x.imag, round(x), tw.exp(x), tw.matmul(x, x.T), x.astype("int8"),
        *tw.meshgrid(x[0], x[0]), *divmod(x, 2), tw.random.default_rng(0).random(3), tw.from_dlpack(x),
        tw.Vi(x).sum(axis=0), tw.Vi(x).sqdist(tw.Vj(x)) @ x, x.T @ tw.Vi(x).sqdist(tw.Vj(x)), *tw.unique_counts(x),
        n[0, :2] @ tw.Vi(x).sqdist(tw.Vj(x)), *tw.unstack(x), (-tw.Vi(x).sqdist(tw.Vj(x))).exp().solve(n[:, 0], alpha=9.0),
    ]  # fmt: skip
    assert {type(one) for one in made} == {tw.Array}


def test_weak_references_end_with_the_object() -> None:
    ended = []
    for _ in range(200):
        x = tw.zeros(3)
        seen = weakref.ref(x, lambda _: ended.append(1))
        assert seen() is x
        del x
        assert seen() is None
    assert len(ended) == 200
    # What is made from the memory of one that had weak references has none.
    assert weakref.getweakrefcount(tw.zeros(3)) == 0


def test_foreign_memory_is_let_go_of_at_once() -> None:
    theirs = np.zeros(1000)
    before = sys.getrefcount(theirs)
    for _ in range(3):
        ours = tw.asarray(theirs)
        part = ours[::2]
        assert sys.getrefcount(theirs) > before
        del ours
        assert sys.getrefcount(theirs) > before
        del part
        assert sys.getrefcount(theirs) == before


def test_more_objects_than_are_kept_come_and_go() -> None:
    gc.collect()
    classes = sys.getrefcount(tw.Array)
    for round_ in range(5):
        many = [tw.full(2, float(k)) + round_ for k in range(1000)]
        assert [float(one[1]) for one in many] == [k + round_ for k in range(1000)]
        del many
    gc.collect()
    # Each object holds its class, and lets go of it.
    assert sys.getrefcount(tw.Array) - classes < 10


def test_threads_make_and_free_objects() -> None:
    wrong = []

    def work(number: int) -> None:
        x = tw.full(4, float(number))
        for _ in range(3000):
            if (x + x)[1:3].tolist() != [2.0 * number] * 2:
                wrong.append(number)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    sys.setswitchinterval(interval)
    assert not wrong


class Meets:
    """Something that knows how to be added to an array."""

    def __radd__(self, other: object) -> str:
        return "met"

    def __add__(self, other: object) -> str:
        return "greeted"


def test_what_the_short_way_does_not_know_goes_the_long_way() -> None:
    x = tw.asarray([1, 2, 3], dtype=tw.int8)
    assert x + Meets() == "met" and Meets() + x == "greeted"
    assert (True + x).dtype == tw.int8 and (x + [1, 1, 1]).tolist() == [2, 3, 4]
    assert (np.float32(1) + x).dtype == tw.result_type(tw.int8, tw.float32)
    assert (5 - x).tolist() == [4, 3, 2] and (x - 5).tolist() == [-4, -3, -2]
    assert x.__radd__(1).tolist() == [2, 3, 4] and x.__add__("no") is NotImplemented
    with pytest.raises(OverflowError, match="1000"):
        x + 1000
    with pytest.raises(OverflowError):
        x + 10**40
    with pytest.raises(ValueError, match=r"\(3,\) and \(2,\)"):
        x + tw.zeros(2)
    with pytest.raises(TypeError):
        x + object()
    with pytest.raises(TypeError):
        tw.Array.__add__(1, x)


def test_keys_that_are_wrong_say_so() -> None:
    x = tw.zeros((3, 4))
    with pytest.raises(ValueError, match="zero"):
        x[::0]
    with pytest.raises(TypeError):
        x["a":]
    with pytest.raises(IndexError, match="out of bounds"):
        x[3]
    with pytest.raises(IndexError):
        x[10**30]
    with pytest.raises(IndexError, match="too many"):
        x[0, 0, 0]
    with pytest.raises(IndexError):
        x[1.5]
    assert x[: 10**30, -(10**30) :].shape == (3, 4) and x[np.int64(1), True].shape == (1, 4)
    assert x[()].shape == (3, 4) and x[None, ..., -1].shape == (1, 3)
