"""Exceptions of the needle interface.

Needle's own code fails with bare assertions. Callers may rely on `AssertionError`, so these classes
keep it and add the exception that says more.
"""

__all__ = ["IndexKindError", "ShapeError"]


class ShapeError(AssertionError, ValueError):
    """Shapes, counts of elements or of indices, or a dtype that do not fit the operation."""


class IndexKindError(AssertionError, TypeError):
    """Something between the brackets that is neither an integer nor a slice."""
