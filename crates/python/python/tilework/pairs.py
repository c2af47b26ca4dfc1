"""Reductions over pairs: Red_j F(p, x_i, y_j) without the matrix of values.

The names are KeOps': `LazyTensor`, `Vi`, `Vj`, `Pm`, `Var`, `Genred`,
`KernelSolve`, and the `generic_` helpers.

>>> import tilework as tw
>>> from tilework.pairs import Vi, Vj
>>> x = tw.linspace(0.0, 1.0, 4).reshape(-1, 1)
>>> K = (-Vi(x).sqdist(Vj(x))).exp()
>>> K.shape, K.sum(axis=1).shape
((4, 4), (4, 1))
"""

from typing import Any

from ._core import Genred as Genred
from ._core import KernelSolve as KernelSolve
from ._core import LazyTensor as LazyTensor
from ._core import Partial as Partial
from ._core import Pm as Pm
from ._core import SolveError as SolveError
from ._core import Var as Var
from ._core import Vi as Vi
from ._core import Vj as Vj
from ._core import get_defaults as get_defaults
from ._core import set_defaults as set_defaults

__all__ = [
    "Genred", "KernelSolve", "LazyTensor", "Partial", "Pm", "SolveError", "Var", "Vi", "Vj", "generic_argkmin", "generic_argmin",
    "generic_logsumexp", "generic_sum", "get_defaults", "set_defaults",
]  # fmt: skip


def _generic(formula: str, output: str, aliases: tuple[str, ...], reduction: str, **keywords: Any) -> Genred:
    """A Genred whose axis is told by the category of its output, as in `a = Vi(1)`."""
    category = output.split("=")[-1].strip()[:2]
    if category not in ("Vi", "Vj"):
        raise ValueError(f"the output {output!r} is not declared as Vi(...) or Vj(...)")
    return Genred(formula, list(aliases), reduction, 1 if category == "Vi" else 0, **keywords)


def generic_sum(formula: str, output: str, *aliases: str, **keywords: Any) -> Genred:
    """The sum of a formula, as a Genred; `output` is a declaration such as `a = Vi(1)`."""
    return _generic(formula, output, aliases, "Sum", **keywords)


def generic_logsumexp(formula: str, output: str, *aliases: str, **keywords: Any) -> Genred:
    """The logarithm of the sum of exponentials of a formula; see `generic_sum`."""
    return _generic(formula, output, aliases, "LogSumExp", **keywords)


def generic_argmin(formula: str, output: str, *aliases: str, **keywords: Any) -> Genred:
    """The index of the smallest value of a formula; see `generic_sum`."""
    return _generic(formula, output, aliases, "ArgMin", **keywords)


def generic_argkmin(formula: str, output: str, *aliases: str, **keywords: Any) -> Genred:
    """The indices of the K smallest values; the dimension of `output` is K: `a = Vi(5)`."""
    k = int(output.rstrip(" )").split("(")[-1].split(",")[-1])
    return _generic(formula, output, aliases, "ArgKMin", opt_arg=k, **keywords)
