"""Docstrings and pages run as they stand, and types and reference agree with the module."""

import doctest
import importlib.util
import inspect
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import tilework
import tilework._core as core
import tilework.needle as nd
import tilework.needle._functions
import tilework.needle._settings

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
PAGES = ["docs/cuda.md", "docs/keops.md", "docs/numpy.md", "docs/views.md"]


def reference() -> ModuleType:
    """The script that writes the reference."""
    spec = importlib.util.spec_from_file_location(
        "reference", ROOT / "scripts" / "api_reference.py"
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def documented() -> list[tuple[str, str]]:
    """Every docstring of the native module that has an example."""
    found = []
    for name in [*core.__all__, "Generator", "NamespaceInfo", "NpzFile", "flagsobj", "flatiter", "__array_namespace_info__"]:
        value = getattr(core, name)
        members = reference().own(value).items() if inspect.isclass(value) else []
        for label, thing in [(name, value), *((f"{name}.{k}", v) for k, v in members)]:
            text = getattr(thing, "__doc__", None)
            if isinstance(text, str) and ">>>" in text:
                found.append((label, text))
    return found


@pytest.mark.parametrize("name, text", documented(), ids=lambda value: str(value)[:40])
def test_docstring(name: str, text: str) -> None:
    test = doctest.DocTestParser().get_doctest(text, {}, name, None, 0)
    runner = doctest.DocTestRunner()
    runner.run(test, clear_globs=False)
    assert runner.failures == 0
    # Arrays are objects of the class, never of its base.
    arrays = [found for found in test.globs.values() if isinstance(found, tilework.Array.__mro__[1])]
    assert all(type(array) is tilework.Array for array in arrays)


@pytest.mark.parametrize("page", PAGES)
def test_page(page: str) -> None:
    # The fence after an example is no part of what it prints.
    text = re.sub(r"^```.*$", "", (ROOT / page).read_text(), flags=re.MULTILINE)
    test = doctest.DocTestParser().get_doctest(text, {}, page, page, 0)
    runner = doctest.DocTestRunner()
    runner.run(test)
    assert runner.failures == 0 and runner.tries > 0


def test_readme(capsys: pytest.CaptureFixture) -> None:
    # As one reads it: the second example knows what the first one has imported.
    names: dict[str, object] = {}
    blocks = re.findall(r"^```python$(.*?)^```$", (ROOT / "README.md").read_text(), re.M | re.S)
    for block in blocks:
        exec(block, names)
    assert len(blocks) == 2 and capsys.readouterr().out.startswith("[[")
    assert names["density"].shape == (1000, 1) and names["nearest"].shape == (1000, 10)


def test_every_function_has_an_example() -> None:
    listed = " ".join(names for _, _, names in reference().PAGES.values()).split()
    functions = [name for name in listed if inspect.isroutine(getattr(core, name))]
    assert len(functions) > 90
    # `show_config` prints what this machine is.
    assert [name for name in functions if ">>>" not in getattr(core, name).__doc__] == [
        "show_config"
    ]


def test_every_method_has_an_example() -> None:
    classes = [core.Array, core.Generator, core.NamespaceInfo, core.device, core.dtype]
    classes += [core.LazyTensor, core.Genred, core.KernelSolve, core.Partial]
    lacking = [
        f"{owner.__name__}.{name}"
        for owner in classes
        for name in reference().own(owner)
        if not name.startswith("_")
        and callable(member := getattr(owner, name))
        and ">>>" not in (member.__doc__ or "")
        and not (member.__doc__ or "").startswith("Not there yet")
    ]
    assert not lacking


def test_the_reference_is_what_the_docstrings_say() -> None:
    stale = reference().stale()
    assert not stale, "`make reference` writes them again"


MODULES = [
    tilework,
    tilework.cuda,
    tilework.pairs,
    tilework.random,
    nd,
    nd._array,
    nd._devices,
    nd._functions,
    nd._settings,
]


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
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
