# SPDX-License-Identifier: BSD-3-Clause
"""TRACEJIT_LOG, in processes that are started with it."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import numpy as np
import tracejit as tj
step = tj.dlaccelerate(lambda x: x * 2)
for _ in range(4):
    step(np.ones(1))
"""


def run(level: str | None, tmp_path: Path, code: str = PROGRAM) -> subprocess.CompletedProcess[str]:
    path = tmp_path / "program.py"
    path.write_text(code)
    environment = {**os.environ, "TRACEJIT_BACKEND": "python"}
    environment.pop("TRACEJIT_LOG", None)
    if level is not None:
        environment["TRACEJIT_LOG"] = level
    return subprocess.run(
        [sys.executable, str(path)], env=environment, capture_output=True, text=True, check=False
    )


class TestEnvironment:
    def test_info(self, tmp_path):
        done = run("info", tmp_path)
        assert (done.returncode, done.stdout) == (0, "")
        told = re.sub(r"\d+\.\d ms", "T", done.stderr)
        label = f"INFO tracejit: <lambda> ({tmp_path}/program.py:4)"
        assert re.sub(r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} ", "", told, flags=re.MULTILINE).splitlines() == [
            f"{label}: miss. A new trace was recorded for x: 1 float64, because there was none yet. 1 operation in T.",
            f"{label}: miss. The call was recorded again, and confirmed the trace for x: 1 float64. 1 operation in T.",
            f"{label}: built the program for x: 1 float64 in T: 1 launch of 1 kernel, an arena of 0 bytes.",
            f"{label}: hit. The call was replayed from the trace for x: 1 float64.",
        ]  # fmt: skip

    def test_debug_and_warning(self, tmp_path):
        assert len(run("debug", tmp_path).stderr.splitlines()) == 5
        assert run("warning", tmp_path).stderr == ""

    @pytest.mark.parametrize("level", [None, "off"])
    def test_off(self, level, tmp_path):
        assert run(level, tmp_path).stderr == ""

    def test_configured_by_the_program(self, tmp_path):
        code = f"import logging\nlogging.basicConfig(level='INFO', format='%(event)s')\n{PROGRAM}"
        assert run(None, tmp_path, code).stderr == "miss\nmiss\nbuild\nhit\n"

    def test_configured_between_two_calls(self, tmp_path):
        later = "import logging\nlogging.basicConfig(level='INFO', format='%(event)s')\nstep(np.ones(1))\n"
        code = PROGRAM.replace("range(4)", "range(2)") + later
        assert run(None, tmp_path, code).stderr == "build\nhit\n"

    def test_imported_later_without_configuration(self, tmp_path):
        warned = PROGRAM.replace("x * 2", "x * np.random.rand()")
        code = f"import warnings\nwarnings.simplefilter('ignore')\nimport tracejit\nimport logging\n{warned}"
        assert run(None, tmp_path, code).stderr == ""

    def test_a_program_that_wants_all_of_its_own_lines_is_not_slowed_down(self, tmp_path):
        code = f"import logging\nlogging.basicConfig(level='DEBUG', format='%(event)s')\n{PROGRAM}"
        assert run(None, tmp_path, code).stderr == "miss\nmiss\nbuild\nhit\n"

    def test_unknown(self, tmp_path):
        done = run("loud", tmp_path)
        assert done.returncode == 1
        assert (
            "ArgumentError: TRACEJIT_LOG='loud' is not valid; use one of 'off', 'warning', 'info', 'debug'.\n"
            in done.stderr
        )

    def test_a_warning_without_configuration_is_not_logged_to_standard_error(self, tmp_path):
        code = "import warnings\nwarnings.simplefilter('ignore')\n" + PROGRAM.replace(
            "x * 2", "x * np.random.rand()"
        )
        assert run(None, tmp_path, code).stderr == ""
