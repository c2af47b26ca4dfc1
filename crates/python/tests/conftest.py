"""Every test that asks for `device` runs on each device of this machine."""

from collections.abc import Iterator

import pytest

import tilework as tw


@pytest.fixture(params=[str(device) for device in tw.devices()])
def device(request: pytest.FixtureRequest) -> Iterator[tw.device]:
    """A device, which is where new arrays are made during the test."""
    with tw.device(request.param) as device:
        yield device
