# SPDX-License-Identifier: BSD-3-Clause
"""Tests that need NumPy only: programs run on the Python backend; nothing is compiled and no process is started."""

import gc
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator

import numpy.testing  # older releases start a process when it is imported  # noqa: F401
import pytest
from _pytest.runner import runtestprotocol
from interpreted import interpreted

from tracejit import config
from tracejit.traces import replay

HEAVY = (
    "numba",
    "llvmlite",
)  # imported by compiled programs; newer releases of scipy.special import BLAS too
IMPORTED_BEFORE = pytest.StashKey[set[str]]()
ENTRIES = {"tracejit.compile.registry": "KernelRegistry.prepare", "tracejit.compile.ahead": "object_code"}


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Send one report of a test that passes to the other process, not six messages: 8 % of the time of a run."""
    option = item.config.option
    if not hasattr(item.config, "workerinput") or option.xmlpath or option.durations is not None:
        return None
    for report in runtestprotocol(item, log=False, nextitem=nextitem):
        if report.when == "call" or not report.passed:
            item.ihook.pytest_runtest_logreport(report=report)
    return True


def refuse(what: str, folder: str) -> Callable[..., None]:
    """Return a function that fails the test that calls it."""

    def refused(*args: object, **kwargs: object) -> None:
        pytest.fail(f"a test in tests/unit {what}; move it to tests/{folder}")

    return refused


def imported() -> set[str]:
    """Return what unit tests do not need, but this process has imported."""
    return {name for name in HEAVY if name in sys.modules}


@pytest.fixture(autouse=True, scope="module")
def _rare_collections() -> Iterator[None]:
    """Let the collector of garbage run far less often: it takes a sixth of the time of recordings otherwise."""
    thresholds = gc.get_threshold()
    gc.set_threshold(50_000)
    yield
    gc.set_threshold(*thresholds)


@pytest.fixture(autouse=True, scope="module")
def python_backend(request: pytest.FixtureRequest) -> Iterator[None]:
    """Run programs as Python and verify graphs; fail a test that compiles or starts a process."""
    before = request.config.stash.get(IMPORTED_BEFORE, imported())
    check_imports(before)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(config.settings, "backend", "python")
        patch.setattr(config.settings, "verify", True)
        patch.setattr(replay, "executable", interpreted)
        patch.setattr(subprocess, "Popen", refuse("starts a process", "process"))
        patch.setattr(os, "fork", refuse("forks", "process"), raising=False)  # Windows has none
        for module, function in ENTRIES.items():
            if module in sys.modules:  # where tests of compiled/ are collected too
                patch.setattr(f"{module}.{function}", refuse("compiles", "compiled"))
        yield
    check_imports(before)


def check_names(names: Iterable[str]) -> None:
    """Fail if the name of a test has an address, which differs from process to process; so they cannot share tests."""
    found = [name for name in names if " at 0x" in name]
    if found:
        raise pytest.UsageError(f"give the parameters of {found[0].encode('unicode_escape').decode()} ids")


def check_imports(before: set[str]) -> None:
    """Fail if tests of this module imported what no unit test needs."""
    added = sorted(imported() - before)
    if added:
        raise pytest.UsageError(
            f"tests in tests/unit imported {', '.join(added)}; move them to tests/compiled"
        )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Fail if test modules of this folder import what no unit test needs; those of other folders may."""
    check_names([item.nodeid for item in items])
    if all("unit" in item.path.parts for item in items):
        if hasattr(config, "workerinput"):  # where an error has no text before the first test runs
            config.stash[IMPORTED_BEFORE] = set()
        else:
            check_imports(set())
