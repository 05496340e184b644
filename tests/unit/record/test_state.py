# SPDX-License-Identifier: BSD-3-Clause
"""State that a trace reads besides its arguments is fetched at each call, before anything is launched."""

import pytest
from either_backend import check_array_that_is_read


def test_an_array_that_is_read_is_an_input(monkeypatch: pytest.MonkeyPatch) -> None:
    check_array_that_is_read(monkeypatch)
