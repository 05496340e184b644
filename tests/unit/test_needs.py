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


def test_a_test_that_imports_numba_fails(request, monkeypatch):
    conftest = request.config.pluginmanager.get_plugin(str(Path(__file__).with_name("conftest.py")))
    monkeypatch.setitem(sys.modules, "numba", types.ModuleType("numba"))
    with pytest.raises(
        pytest.UsageError, match=r"tests in tests/unit imported .*numba.*; move them to tests/compiled"
    ):
        conftest.check_imports(set())
    conftest.check_imports(conftest.imported())
