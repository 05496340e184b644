# SPDX-License-Identifier: BSD-3-Clause
"""The checks of conftest.py in this folder can fail."""

import os
import subprocess
import sys
import types
from pathlib import Path

import pytest


@pytest.mark.parametrize("start", [lambda: subprocess.run(["true"], check=False), lambda: os.fork()])
def test_a_test_that_starts_a_process_fails(start):
    with pytest.raises(pytest.fail.Exception, match=r"a test in tests/unit .*; move it to tests/process"):
        start()


@pytest.fixture
def conftest(request):
    return request.config.pluginmanager.get_plugin(str(Path(__file__).with_name("conftest.py")))


def test_a_test_whose_name_has_an_address_fails(conftest):
    conftest.check_names(["a.py::test_sums[float]", "a.py::test_at[0x10]"])
    with pytest.raises(pytest.UsageError, match=r"^give the parameters of a.py::test_sums\[.* ids$"):
        conftest.check_names([f"a.py::test_sums[{test_a_test_that_starts_a_process_fails}]"])


def test_a_test_that_imports_numba_fails(conftest, monkeypatch):
    monkeypatch.setitem(sys.modules, "numba", types.ModuleType("numba"))
    with pytest.raises(
        pytest.UsageError, match=r"tests in tests/unit imported .*numba.*; move them to tests/compiled"
    ):
        conftest.check_imports(set())
    conftest.check_imports(conftest.imported())
