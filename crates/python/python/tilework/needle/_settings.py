"""What can be set: the edition of the course whose defaults hold.

Editions differ in one thing that no single choice can satisfy: up to 2023 reductions keep the
axis, from 2024 on they drop it unless asked. The environment variable `TILEWORK_NEEDLE_EDITION`
decides at import, `set_edition` at any time.
"""

import os

__all__ = ["get_edition", "set_edition"]

_EDITIONS = (2021, 2022, 2023, 2024)
_edition = _EDITIONS[-1]


def set_edition(year: int) -> None:
    """Choose the edition of the course: 2021, 2022, 2023 or 2024.

    >>> import tilework.needle as nd
    >>> a = nd.array([[1, 2], [3, 4]])
    >>> nd.set_edition(2022)
    >>> a.sum(axis=1).shape
    (2, 1)
    >>> nd.set_edition(2024)
    >>> a.sum(axis=1).shape
    (2,)
    """
    global _edition
    if year not in _EDITIONS:
        raise ValueError(f"set_edition: {year!r} is none of the editions 2021, 2022, 2023, 2024")
    _edition = int(year)


def get_edition() -> int:
    """The edition whose defaults hold."""
    return _edition


def keeps_axes() -> bool:
    """Whether reductions keep the reduced axes where the caller does not say."""
    return _edition < 2024


def _from_environment() -> None:
    text = os.environ.get("TILEWORK_NEEDLE_EDITION", "").strip()
    if not text:
        return
    try:
        set_edition(int(text))
    except ValueError:
        message = f"TILEWORK_NEEDLE_EDITION is {text!r}, not one of 2021, 2022, 2023, 2024"
        raise ValueError(message) from None


_from_environment()
