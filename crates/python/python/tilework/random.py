"""Streams of random numbers: the same numbers for the same seed on every device."""

from ._core import Generator as Generator
from ._core import default_rng as default_rng

__all__ = ["Generator", "default_rng"]
