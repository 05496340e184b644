# SPDX-License-Identifier: BSD-3-Clause
"""Settings that are not valid, in processes that start with them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.parametrize("command", [["-m", "tracejit"], [str(Path(sys.executable).with_name("tracejit"))]])
def test_the_command_says_what_is_not_valid_in_one_line(command):
    environment = {**os.environ, "TRACEJIT_CACHE_MIB": "foo"}
    if command[0] != "-m" and not os.path.exists(command[0]):
        pytest.skip("the command is not installed beside this Python")
    found = subprocess.run(
        [sys.executable, *command, "cache", "dir"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    expected = "tracejit: TRACEJIT_CACHE_MIB='foo' is not valid; use an integer of at least 1.\n"
    assert (found.returncode, found.stdout, found.stderr) == (2, "", expected)


def test_another_program_gets_the_error():
    environment = {**os.environ, "TRACEJIT_CACHE_MIB": "foo"}
    for options in (["-c", "import tracejit"], ["-c", "import sys; sys.argv.clear(); import tracejit"]):
        found = subprocess.run(
            [sys.executable, *options], env=environment, capture_output=True, text=True, check=False
        )
        assert found.returncode == 1
        assert "TRACEJIT_CACHE_MIB='foo' is not valid; use an integer of at least 1.\n" in found.stderr
        assert "Traceback" in found.stderr


def test_read_at_import():
    environment = {**os.environ, "TRACEJIT_BACKEND": "python", "TRACEJIT_VERIFY": "1"}
    code = (
        "import sys, tracejit as tj; f = tj.dlaccelerate(lambda x: x * 2); f([1.0]); x = tj.dlarray([1.0]); f(x); "
        "print(f(x).tolist(), tj.config.settings.verify, 'numba' in sys.modules)"
    )
    found = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert found.stdout == "[2.0] True False\n"
