"""The command line: `tilework` and `python -m tilework`."""

import sys

from . import _core


def main() -> int:
    """Does what the command line asks for; the exit code."""
    return _core._command_line(["tilework", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
