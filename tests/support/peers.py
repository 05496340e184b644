# SPDX-License-Identifier: BSD-3-Clause
"""Libraries that tests compare with where they are installed."""

import subprocess
from typing import Any

import pytest

_POPEN = subprocess.Popen  # before unit tests refuse it


def pytorch() -> Any:
    """Return PyTorch, or skip the test; its import starts a process, which a unit test must not do."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(subprocess, "Popen", _POPEN)
        return pytest.importorskip("torch")
