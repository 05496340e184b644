# SPDX-License-Identifier: BSD-3-Clause
"""Tests that need NumPy only: programs run on the Python backend; nothing is compiled and no process is started."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator

import numpy.testing  # older releases start a process when it is imported  # noqa: F401
import pytest
from interpreted import interpreted

from tracejit import config
from tracejit.traces import replay

HEAVY = (
    "numba",
    "llvmlite",
)  # imported by compiled programs; newer releases of scipy.special import BLAS too
ENTRIES = {"tracejit.compile.registry": "KernelRegistry.prepare", "tracejit.compile.ahead": "object_code"}


def refuse(what: str, folder: str) -> Callable[..., None]:
    """Return a function that fails the test that calls it."""

    def refused(*args: object, **kwargs: object) -> None:
        pytest.fail(f"a test in tests/unit {what}; move it to tests/{folder}")

    return refused


def imported() -> set[str]:
    """Return what unit tests do not need, but this process has imported."""
    return {name for name in HEAVY if name in sys.modules}


@pytest.fixture(autouse=True, scope="module")
def python_backend() -> Iterator[None]:
    """Run programs as Python and verify graphs; fail a test that compiles or starts a process."""
    before = imported()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(config.settings, "backend", "python")
        patch.setattr(config.settings, "verify", True)
        patch.setattr(replay, "executable", interpreted)
        patch.setattr(subprocess, "Popen", refuse("starts a process", "process"))
        patch.setattr(os, "fork", refuse("forks", "process"))
        for module, function in ENTRIES.items():
            if module in sys.modules:  # where tests of compiled/ are collected too
                patch.setattr(f"{module}.{function}", refuse("compiles", "compiled"))
        yield
    check_imports(before)


def check_imports(before: set[str]) -> None:
    """Fail if tests of this module imported what no unit test needs."""
    added = sorted(imported() - before)
    if added:
        raise pytest.UsageError(
            f"tests in tests/unit imported {', '.join(added)}; move them to tests/compiled"
        )


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Fail if test modules of this folder import what no unit test needs; those of other folders may."""
    if all("unit" in item.path.parts for item in items):
        check_imports(set())
