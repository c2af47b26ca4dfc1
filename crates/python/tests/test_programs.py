"""Random programs against NumPy on every device of the host; see `programs`.

The seed of a run is printed at its end. `TILEWORK_TEST_SEED` sets it, and
`TILEWORK_TEST_PROGRAMS` says how many programs each device runs.
"""

import os
from functools import cache

import pytest
from hypothesis import HealthCheck, given, note, seed, settings
from hypothesis import strategies as st

import programs
import tilework as tw
from conftest import SEED

PROGRAMS = int(os.environ.get("TILEWORK_TEST_PROGRAMS", "3500"))


@cache
def below(n: int) -> st.SearchStrategy[int]:
    """Numbers from 0 to n - 1."""
    return st.integers(0, n - 1)


@pytest.mark.parametrize("where", ["reference", "cpu"])
def test_programs(where: str) -> None:
    @seed(SEED)
    @settings(
        max_examples=PROGRAMS,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(st.data())
    def program(data: st.DataObject) -> None:
        log: list[str] = []
        try:
            with tw.device(where):
                programs.run(lambda n: data.draw(below(n)), 12, log)
        except Exception:
            note("\n".join(log))
            raise

    program()
