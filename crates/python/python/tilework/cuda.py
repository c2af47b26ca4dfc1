"""Whether there is a CUDA device, and if not, why."""

from ._core import cuda_why_not as _why_not

__all__ = ["is_available", "why_not"]


def is_available() -> bool:
    """Whether arrays can be made on a CUDA device.

    >>> import tilework as tw
    >>> tw.cuda.is_available() == (tw.cuda.why_not() is None)
    True
    """
    return _why_not() is None


def why_not() -> str | None:
    """Why there is no CUDA device; None if there is one."""
    return _why_not()
