"""Random programs against NumPy on a card, for some minutes; see `programs`.

The seed of a run is printed at its end, and a program that fails names its own. `TILEWORK_TEST_SEED`
sets the first, `TILEWORK_TEST_SECONDS` how long programs are tried: three minutes, if nobody says.
"""

import os
import random
import time

import pytest

import programs
import tilework as tw
from conftest import SEED

SECONDS = float(os.environ.get("TILEWORK_TEST_SECONDS", "180"))


@pytest.mark.skipif(not tw.cuda.is_available(), reason=str(tw.cuda.why_not()))
def test_programs_on_cuda() -> None:
    """Small arrays mostly, and of every tenth program large ones."""
    begin, number = time.monotonic(), 0
    while time.monotonic() - begin < SECONDS:
        log: list[str] = []
        size = programs.LARGE if number % 10 == 9 else programs.SMALL
        try:
            with tw.device("cuda"):
                programs.run(random.Random(SEED + number).randrange, 12, log, size)
        except Exception as error:
            raise AssertionError(f"program {SEED + number}:\n" + "\n".join(log)) from error
        number += 1
    print(f"{number} programs from seed {SEED} on")
