"""`with` statements that say where arrays are made and how they are printed: each for its own context."""

import asyncio
import contextvars
import threading
from collections.abc import Callable, Iterator

import numpy as np
import pytest

import tilework as tw


def here() -> str:
    """Where new arrays are made, by every way to make one."""
    made = {str(x.device) for x in (tw.zeros(2), tw.asarray([1, 2]), tw.arange(3), tw.random.default_rng(0).random(2))}
    made |= {str(tw.default_device()), str(tw.random.default_rng(0).permutation(3).device)}
    (device,) = made
    return device


def test_tasks_have_devices_of_their_own() -> None:
    async def work(name: str, seen: list[str]) -> None:
        with tw.device(name):
            for _ in range(3):
                seen.append(here())
                await asyncio.sleep(0)
        seen.append(here())

    async def both() -> tuple[list[str], list[str]]:
        a: list[str] = []
        b: list[str] = []
        await asyncio.gather(work("reference", a), work("cpu", b))
        return a, b

    outer = here()
    assert asyncio.run(both()) == (["reference"] * 3 + [outer], ["cpu"] * 3 + [outer])


def test_the_exception_of_a_task_is_the_one_that_is_seen() -> None:
    async def fail(name: str, turns: int) -> None:
        with tw.device(name):
            for _ in range(turns):
                await asyncio.sleep(0)
            raise KeyError(name)

    async def both() -> list[object]:
        return await asyncio.gather(fail("reference", 1), fail("cpu", 3), return_exceptions=True)

    first, second = asyncio.run(both())
    assert (type(first), type(second)) == (KeyError, KeyError)


def test_a_task_begins_with_the_device_of_its_maker() -> None:
    async def later() -> str:
        await asyncio.sleep(0)
        return here()

    async def program() -> str:
        with tw.device("reference"):
            task = asyncio.create_task(later())
        return await task

    assert asyncio.run(program()) == "reference"


def generator(name: str) -> Iterator[str]:
    with tw.device(name):
        while True:
            yield here()


def test_generators_end_when_they_like() -> None:
    outer = here()
    first = generator("reference")
    assert next(first) == "reference"
    with tw.device("cpu"):
        first.close()
        assert here() == "cpu"
    assert here() == outer
    # In any order, and one that is closed with the frame of another.
    a, b, c = generator("reference"), generator("cpu"), generator("reference")
    assert [next(a), next(b), next(c)] == ["reference", "cpu", "reference"]
    b.close()
    assert here() == "reference"
    a.close()
    assert here() == "reference"
    c.close()
    assert here() == outer


def test_one_object_in_several_statements() -> None:
    outer = here()
    device = tw.device("reference")
    with device, tw.device("cpu"), device:
        assert here() == "reference"
    with pytest.raises(KeyError), device:
        raise KeyError
    assert here() == outer
    # The end of a statement that another context began takes nothing away.
    context = contextvars.copy_context()
    context.run(device.__enter__)
    with tw.device("reference"):
        device.__exit__(None, None, None)
        assert here() == "reference"
    assert context.run(here) == "reference" and here() == outer


def in_threads(*works: Callable[[], None]) -> None:
    """Runs functions side by side."""
    failed: list[BaseException] = []

    def guarded(work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=guarded, args=[work]) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed, failed


def test_threads_have_devices_of_their_own() -> None:
    barrier = threading.Barrier(2, timeout=20)

    def work(name: str) -> Callable[[], None]:
        def inner() -> None:
            with tw.device(name):
                barrier.wait()
                assert here() == name
                barrier.wait()

        return inner

    in_threads(work("reference"), work("cpu"))


def test_options_of_overlapping_threads_end_with_them() -> None:
    before = tw.get_printoptions()
    x, entered = tw.asarray([0.123456]), threading.Barrier(2, timeout=20)

    def first() -> None:
        with tw.printoptions(precision=1):
            entered.wait()
            assert str(x) == "[0.1]"
            entered.wait()
        assert tw.get_printoptions() == before

    def second() -> None:
        entered.wait()
        with tw.printoptions(precision=2):
            assert str(x) == "[0.12]"
            entered.wait()
            assert repr(x) == "array([0.12])"

    in_threads(first, second)
    assert tw.get_printoptions() == before and str(x) == "[0.123456]"


def test_options_of_generators_and_of_blocks_in_blocks() -> None:
    before = tw.get_printoptions()
    x, n = tw.asarray([0.123456, 1e-7]), np.asarray([0.123456, 1e-7])

    def printing() -> Iterator[str]:
        with tw.printoptions(precision=1):
            while True:
                yield str(x)

    one = printing()
    assert next(one) == "[1.2e-01 1.0e-07]"
    with tw.printoptions(precision=2) as inside:
        assert inside["precision"] == 2
        one.close()
        with tw.printoptions(suppress=True), np.printoptions(precision=2, suppress=True):
            assert str(x) == str(n)
            # What is set inside of a block ends with it.
            tw.set_printoptions(precision=3)
            assert tw.get_printoptions()["precision"] == 3 and str(x) == "[0.123 0.   ]"
        assert tw.get_printoptions()["precision"] == 2
    assert tw.get_printoptions() == before
    with pytest.raises(ValueError, match="floatmode"):
        tw.printoptions(floatmode="none")


def test_options_that_are_set_hold_for_all_threads() -> None:
    before = tw.get_printoptions()
    seen: list[int] = []
    try:
        tw.set_printoptions(precision=3)
        in_threads(lambda: seen.append(tw.get_printoptions()["precision"]))
    finally:
        tw.set_printoptions(**before)
    assert seen == [3]


# What has no device goes to that of the array it meets, on whichever side it is.
MEETINGS = [
    ("add", tw.add),
    ("take", tw.take),
    ("take_along_axis", tw.take_along_axis),
    ("concat", lambda x, y: tw.concat([x, y])),
    ("stack", lambda x, y: tw.stack([x, y])),
    ("broadcast_arrays", lambda x, y: tw.broadcast_arrays(x, y)[0]),
    ("meshgrid", lambda x, y: tw.meshgrid(x, y)[0]),
    ("isclose", tw.isclose),
    ("einsum", lambda x, y: tw.einsum("i,i->i", x, y)),
    ("where", lambda x, y: tw.where([True, False], x, y)),
    ("where of lists", lambda x, y: tw.where(x, [1, 2], y)),
    ("diff", lambda x, y: tw.diff(x, prepend=y)),
    ("diff and more", lambda x, y: tw.diff(x, append=y, prepend=[0])),
    ("searchsorted", tw.searchsorted),
    ("isin", tw.isin),
    ("matmul", tw.matmul),
    ("outer", tw.outer),
    ("normal", lambda x, y: tw.random.default_rng(1).normal(x, y)),
    ("uniform", lambda x, y: tw.random.default_rng(1).uniform(x, y, (3, 2))),
    ("choice", lambda x, y: tw.random.default_rng(1).choice(x, 5, p=y)),
]


@pytest.mark.parametrize("meets", [pytest.param(f, id=name) for name, f in MEETINGS])
@pytest.mark.parametrize("other", [list, np.asarray, tuple])
def test_what_has_no_device_goes_where_the_array_is(
    meets: Callable[..., tw.Array], other: Callable[[list[int]], object]
) -> None:
    ours = tw.asarray([0, 1], device="reference")
    loose = other([0, 1])
    for x, y in [(ours, loose), (loose, ours)]:
        assert str(meets(x, y).device) == "reference"
    assert str(ours.take(other([1, 0])).device) == "reference"
    assert tw.allclose(ours, loose) and tw.array_equal(loose, ours) and not tw.allclose(1.0, ours)
