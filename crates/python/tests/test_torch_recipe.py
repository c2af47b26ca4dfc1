"""The recipe for PyTorch in `examples/`: by torch itself where it is installed, and always by a stand-in.

The stand-in has what the recipe takes of torch (a base class for functions, a decorator, DLPack in), with
NumPy arrays for tensors, so that forwards and backwards are run and held against differences everywhere.
"""

import runpy
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

RECIPE = Path(__file__).parents[3] / "examples" / "torch_autograd.py"
SIZES = [(5, 3), (7, 3), (7, 2)]

pytestmark = pytest.mark.skipif(not RECIPE.exists(), reason="the examples are not here")


class Tensor(np.ndarray):
    """An array with the methods of a tensor that the recipe calls."""

    def detach(self) -> "Tensor":
        return self

    def contiguous(self) -> "Tensor":
        return np.ascontiguousarray(self).view(Tensor)


class Context:
    """What torch hands from forwards to backwards."""

    def __init__(self, *needs: bool) -> None:
        self.needs_input_grad = needs

    def save_for_backward(self, *tensors: Tensor) -> None:
        self.saved_tensors = tensors


@pytest.fixture
def recipe(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The function of the recipe, made with the stand-in."""
    torch, autograd, function = (ModuleType(name) for name in ("torch", "torch.autograd", "torch.autograd.function"))
    function.once_differentiable = lambda backward: backward  # type: ignore[attr-defined]
    autograd.Function = type("Function", (), {})  # type: ignore[attr-defined]
    torch.autograd, torch.from_dlpack = autograd, np.from_dlpack  # type: ignore[attr-defined]
    for module in (torch, autograd, function):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    return runpy.run_path(str(RECIPE))["PairSum"]


def draw(seed: int, *sizes: tuple[int, int]) -> list[Tensor]:
    rng = np.random.default_rng(seed)
    return [rng.standard_normal(size).view(Tensor) for size in sizes]


def test_the_recipe_gives_the_sum_and_its_slopes(recipe: Any) -> None:
    tensors, (e,) = draw(1, *SIZES), draw(2, (5, 2))
    context = Context(True, True, True)
    x, y, b = (np.asarray(tensor) for tensor in tensors)
    wanted = np.exp(-((x[:, None] - y) ** 2).sum(-1)) @ b
    np.testing.assert_allclose(recipe.forward(context, *tensors), wanted, rtol=1e-13)
    slopes = recipe.backward(context, e)
    step = 1e-5
    for k, slope in enumerate(slopes):
        assert slope.shape == tensors[k].shape
        for place in np.ndindex(slope.shape):
            ends = []
            for sign in (1, -1):
                moved = [tensor.copy() for tensor in tensors]
                moved[k][place] += sign * step
                ends.append((recipe.forward(Context(), *moved) * np.asarray(e)).sum())
            assert slope[place] == pytest.approx((ends[0] - ends[1]) / (2 * step), rel=1e-7, abs=1e-8)


def test_the_recipe_gives_what_is_needed_and_takes_any_layout(recipe: Any) -> None:
    tensors, (e,) = draw(1, *SIZES), draw(2, (2, 5))
    context = Context(False, True, False)
    recipe.forward(context, *tensors)
    first, second, third = recipe.backward(context, e.T)
    assert first is None and third is None
    context.needs_input_grad = (True, True, True)
    np.testing.assert_array_equal(second, recipe.backward(context, e.T.contiguous())[1])


def test_the_recipe_passes_the_check_of_torch() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    recipe = runpy.run_path(str(RECIPE))["PairSum"]
    tensors = [torch.randn(size, dtype=torch.float64, requires_grad=True) for size in SIZES]
    assert torch.autograd.gradcheck(recipe.apply, tensors)
