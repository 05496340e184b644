# SPDX-License-Identifier: BSD-3-Clause
"""The stand-in for a GPU's driver that tests of the runtime share."""

from collections.abc import Iterator

import pytest
from fake_driver import FakeLibrary, fake_device


@pytest.fixture(name="fake")
def fixture_fake(request: pytest.FixtureRequest) -> Iterator[FakeLibrary]:
    """The library of an emulated device; a module may say how much freed memory it keeps (KEPT_BYTES)."""
    with fake_device(kept_bytes=getattr(request.module, "KEPT_BYTES", 0)) as fake:
        yield fake
