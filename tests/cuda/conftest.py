# SPDX-License-Identifier: BSD-3-Clause
"""Tests on a GPU are skipped, with the reason, where there is none."""

import pytest

from tracejit.errors import DeviceError
from tracejit.runtime.cuda.driver import driver


@pytest.fixture(autouse=True, scope="module")
def fixture_device() -> None:
    try:
        driver()
    except DeviceError as error:
        pytest.skip(str(error))
