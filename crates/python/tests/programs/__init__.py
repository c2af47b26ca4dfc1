"""Random programs on arrays, run by tilework and by NumPy side by side.

A `Machine` holds pairs of arrays that are equal bit by bit. A step draws what it does, does it to
both sides, and checks the result by the rule of `comparison` that fits: views and copies by bits,
integers by value, what is rounded against the same operation in wider precision. After a rounded
result the other side takes over our bits, so that each step is judged by itself. What shares memory
on one side shares it on the other: every write is followed by a comparison of all live arrays.

Steps that raise must raise on both sides, the same kind of exception, and change nothing.
"""

from collections.abc import Callable

from programs.creations import CREATIONS, create
from programs.elementwise import OPERATIONS
from programs.gatherings import GATHERINGS
from programs.machine import LARGE, SMALL, Machine, Size
from programs.views import VIEWS
from programs.writes import WRITES, gather

STEPS = [*CREATIONS, *VIEWS, *OPERATIONS, *GATHERINGS, gather, *WRITES, *WRITES]


__all__ = ["LARGE", "SMALL", "Size", "run"]


def run(below: Callable[[int], int], steps: int, log: list[str], size: Size = SMALL) -> None:
    """A program of at most so many steps, which it writes to `log`."""
    machine = Machine(below, create, log, size)
    create(machine)
    create(machine)
    for _ in range(machine.between(1, steps)):
        machine.choice(STEPS)(machine)
