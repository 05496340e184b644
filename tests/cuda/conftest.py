# SPDX-License-Identifier: BSD-3-Clause
"""Tests on a GPU: skipped, with the reason, where there is none, and failed where a fault took it from the process.

Processes of pytest-xdist share the GPU, each with a context of its own. One that has lost the device ends, so that a
new one takes over its tests.
"""

import os
from collections.abc import Iterator
from typing import Any

import pytest

from tracejit.errors import DeviceError
from tracejit.runtime.cuda import driver as drivers

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # its threads wait by spinning, in each process
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # JAX takes most of the memory otherwise


@pytest.fixture(autouse=True)
def fixture_device() -> Iterator[None]:
    on = drivers._OpenDriver.driver
    if on is None:
        try:
            on = drivers.driver()
        except DeviceError as error:
            pytest.skip(str(error))
    on.refuse_if_lost()
    yield
    if not on.is_lost:
        on.synchronize()  # a fault is one of the test that caused it


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """End a process of pytest-xdist that has lost the device, after what it found was sent."""
    result: Any = yield
    on = drivers._OpenDriver.driver
    if on is not None and on.is_lost and hasattr(item.config, "workerinput"):
        os._exit(1)
    return result
