"""Random programs against NumPy on every device of the host; see `programs`.

The seed of a run is printed at its end. `TILEWORK_TEST_SEED` sets it, and
`TILEWORK_TEST_PROGRAMS` says how many programs each device runs.
"""

import os
import random
from concurrent.futures import ThreadPoolExecutor
from functools import cache

import pytest
from hypothesis import HealthCheck, given, note, seed, settings
from hypothesis import strategies as st

import programs
import tilework as tw
from conftest import SEED

PROGRAMS = int(os.environ.get("TILEWORK_TEST_PROGRAMS", "2500"))


@cache
def below(n: int) -> st.SearchStrategy[int]:
    """Numbers from 0 to n - 1."""
    return st.integers(0, n - 1)


def check(where: str, count: int, steps: int, size: programs.Size) -> None:
    """So many programs on one device."""

    @seed(SEED)
    @settings(
        max_examples=count, deadline=None, database=None, suppress_health_check=list(HealthCheck)
    )
    @given(st.data())
    def program(data: st.DataObject) -> None:
        log: list[str] = []
        try:
            with tw.device(where):
                programs.run(lambda n: data.draw(below(n)), steps, log, size)
        except Exception:
            note("\n".join(log))
            raise

    program()


@pytest.mark.parametrize("where", ["reference", "cpu"])
def test_programs(where: str) -> None:
    check(where, PROGRAMS, 12, programs.SMALL)


def test_large_programs() -> None:
    """Arrays that are cut into pieces for several threads."""
    check("cpu", max(PROGRAMS // 20, 1), 6, programs.LARGE)


def test_programs_in_threads() -> None:
    """Programs of several threads at once do not disturb each other."""

    def work(first: int) -> None:
        for number in range(first, first + PROGRAMS // 50):
            programs.run(random.Random(number).randrange, 12, [])

    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(work, SEED + 1_000_000 * thread) for thread in range(4)]:
            done.result()
