# SPDX-License-Identifier: BSD-3-Clause
"""Tests that need NumPy only: programs run on the Python backend; nothing is compiled and no process is started."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest
from interpreted import interpreted

from tracejit import config
from tracejit.compile.registry import KernelRegistry
from tracejit.traces import replay

NOT_NEEDED = ("numba", "llvmlite")


def refuse(what: str, folder: str) -> Callable[..., None]:
    """Return a function that fails the test that calls it."""

    def refused(*args: object, **kwargs: object) -> None:
        pytest.fail(f"a test in tests/unit {what}; move it to tests/{folder}")

    return refused


@pytest.fixture(autouse=True)
def python_backend() -> Iterator[None]:
    """Run programs as Python and verify graphs; fail a test that compiles or starts a process."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(config.settings, "backend", "python")
        patch.setattr(config.settings, "verify", True)
        patch.setattr(replay, "executable", interpreted)
        patch.setattr(KernelRegistry, "prepare", refuse("compiles", "compiled"))
        patch.setattr(subprocess, "Popen", refuse("starts a process", "process"))
        patch.setattr(os, "fork", refuse("forks", "process"))
        yield


def imported() -> list[str]:
    """Return the packages that unit tests do not need and that are imported all the same."""
    return [name for name in NOT_NEEDED if name in sys.modules]
