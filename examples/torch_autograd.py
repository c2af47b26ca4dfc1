"""A reduction over pairs as a `torch.autograd.Function`, over DLPack: no copies on the CPU.

    python examples/torch_autograd.py

`PairSum.apply(x, y, b)` is sum_j exp(-|x_i - y_j|^2) b_j; gradients towards all three are reductions
again, and nothing of size M x N is stored, forwards or backwards. Once: torch does not see the formula of
a gradient, and says so when asked for the next order (`formula.grad` differentiates formulas to any).
"""

import torch
from torch.autograd.function import once_differentiable

import tilework as tw


def gauss(x, y, b):
    """The formula, with its variables: torch tensors go in as they are."""
    x, y, b = tw.Vi(x), tw.Vj(y), tw.Vj(b)
    return (-x.sqdist(y)).exp() * b, (x, y, b)


class PairSum(torch.autograd.Function):
    """sum_j exp(-|x_i - y_j|^2) b_j for tensors (M, D), (N, D), (N, E)."""

    @staticmethod
    def forward(ctx, x, y, b):
        ctx.save_for_backward(x, y, b)
        formula, _ = gauss(x.detach(), y.detach(), b.detach())
        return torch.from_dlpack(formula.sum(axis=1))

    @staticmethod
    @once_differentiable
    def backward(ctx, e):
        tensors = [tensor.detach() for tensor in ctx.saved_tensors]
        formula, variables = gauss(*tensors)
        needed = [v for v, need in zip(variables, ctx.needs_input_grad, strict=True) if need]
        e = e.detach().contiguous()
        found = iter([formula.reduction_grad("sum", v, e, axis=1) for v in needed])
        return tuple(torch.from_dlpack(next(found)) if n else None for n in ctx.needs_input_grad)


if __name__ == "__main__":
    x, y, b = (torch.randn(n, d, dtype=torch.float64, requires_grad=True) for n, d in [(5, 3), (7, 3), (7, 2)])
    print("gradients agree:", torch.autograd.gradcheck(PairSum.apply, (x, y, b)))
