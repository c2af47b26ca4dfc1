"""Every test that asks for `device` runs on each device of this machine; random tests share a seed."""

import os
import signal
from collections.abc import Iterator

import pytest

import tilework as tw

# Shells start work in the background deaf to Ctrl-C, and tests send it to themselves.
signal.signal(signal.SIGINT, signal.default_int_handler)

# A new one for each run, unless the environment says which.
SEED = int(os.environ.get("TILEWORK_TEST_SEED", str(int.from_bytes(os.urandom(4)))))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """The seed among the last lines of a run, quiet or not."""
    terminalreporter.write_line(f"random tests ran with TILEWORK_TEST_SEED={SEED}")


# Devices whose memory Python can reach.
HOST = [str(device) for device in tw.devices() if not str(device).startswith("cuda")]


@pytest.fixture(params=[str(device) for device in tw.devices()])
def device(request: pytest.FixtureRequest) -> Iterator[tw.device]:
    """A device, which is where new arrays are made during the test."""
    with tw.device(request.param) as device:
        yield device


@pytest.fixture(params=HOST)
def host(request: pytest.FixtureRequest) -> Iterator[tw.device]:
    """A device that shares memory with Python, where new arrays are made during the test."""
    with tw.device(request.param) as device:
        yield device
