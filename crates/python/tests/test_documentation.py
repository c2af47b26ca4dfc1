"""Docstrings run as they stand, and types agree with the module."""

import doctest
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import tilework
import tilework._core as core

HERE = Path(__file__).parent


def documented() -> list[tuple[str, str]]:
    """Every docstring of the native module that has an example."""
    found = []
    for name in [*core.__all__, "Generator", "__array_namespace_info__"]:
        value = getattr(core, name)
        members = vars(value).items() if inspect.isclass(value) else []
        for label, thing in [(name, value), *((f"{name}.{k}", v) for k, v in members)]:
            text = getattr(thing, "__doc__", None)
            if isinstance(text, str) and ">>>" in text:
                found.append((label, text))
    return found


@pytest.mark.parametrize("name, text", documented(), ids=lambda value: str(value)[:40])
def test_docstring(name: str, text: str) -> None:
    test = doctest.DocTestParser().get_doctest(text, {}, name, None, 0)
    runner = doctest.DocTestRunner()
    runner.run(test)
    assert runner.failures == 0


@pytest.mark.parametrize("module", [tilework, tilework.cuda, tilework.random])
def test_module_docstring(module: object) -> None:
    assert doctest.testmod(module).failed == 0  # type: ignore[arg-type]


def test_stubs_are_what_the_module_says() -> None:
    script = HERE.parent / "tools" / "make_stubs.py"
    if not script.exists():
        pytest.skip("the sources are not here")
    subprocess.run([sys.executable, str(script), "--check"], check=True)


def test_stubs_pass_mypy_and_stubtest() -> None:
    pytest.importorskip("mypy")
    names = ["tilework._core", "tilework.random", "tilework.cuda"]
    subprocess.run([sys.executable, "-m", "mypy.stubtest", *names], check=True)
    program = HERE / "typed_program.py"
    subprocess.run([sys.executable, "-m", "mypy", "--strict", str(program)], check=True)
