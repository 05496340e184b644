# SPDX-License-Identifier: BSD-3-Clause
"""The logger "tracejit" on kernels that are compiled, loaded or at hand."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from logged import HERE, lines_of_log, steps

import tracejit as tj
from tracejit import config
from tracejit.compile.registry import KernelRegistry, registry
from tracejit.errors import CodegenError


@pytest.fixture
def lines(caplog):
    return lines_of_log(caplog)


class TestKernels:
    @pytest.fixture(autouse=True)
    def folder(self, tmp_path, monkeypatch):
        monkeypatch.setattr(config.settings, "cache_dir", str(tmp_path / "cache"))

    def lines_of(self, monkeypatch, lines):
        """Return the lines about kernels, in a process that has none."""
        lines()
        monkeypatch.setattr(registry, "_kernels", {})
        fun = tj.dlaccelerate(steps, confirm=0)
        for _ in range(3):
            fun(np.ones(3), 2)
        found = [line for line in lines() if line[1] in ("kernels", "compile", "load")]
        found = [line for line in found if not line[2].startswith("function ")]  # those of the executor
        return found, fun.source().partition("def ")[2].partition("(")[0], fun.stats

    def test_compiled_and_loaded(self, monkeypatch, lines):
        found, name, stats = self.lines_of(monkeypatch, lines)
        what = f"steps ({HERE}): 1 kernel of the program for x: 3 float64, p: 2"
        assert found == [
            ("DEBUG", "compile", f"kernel {name}: compiled in T."),
            ("INFO", "kernels", f"{what}: 1 compiled in T."),
        ]
        assert (stats.kernels, stats.compiled, stats.loaded) == (1, 1, 0) and stats.compile_ns > 0
        found, name, stats = self.lines_of(monkeypatch, lines)
        assert found == [
            ("DEBUG", "load", f"kernel {name}: loaded from disk in T."),
            ("INFO", "kernels", f"{what}: 1 loaded from disk in T."),
        ]
        assert (stats.kernels, stats.compiled, stats.loaded) == (1, 0, 1) and stats.load_ns > 0
        assert stats.compile_ns == 0

    def test_at_hand(self, lines):
        tj.dlaccelerate(steps, confirm=0)(np.ones(3), 2)
        first, second = tj.dlaccelerate(steps, confirm=0), tj.dlaccelerate(steps, confirm=0)
        for fun in (first, second):
            for _ in range(2):
                fun(np.ones(3), 2)
        assert [text for _, event, text in lines() if event == "kernels"][-1].endswith("p: 2: 1 at hand.")
        assert (second.stats.kernels, second.stats.compiled, second.stats.loaded) == (1, 0, 0)

    def test_code_that_cannot_be_loaded(self, monkeypatch, lines):
        table = KernelRegistry()
        table.function("run")
        lines()

        def fail(*_):
            monkeypatch.undo()
            raise CodegenError("object code of run cannot be loaded: there is no memset")

        monkeypatch.setattr("tracejit.compile.registry.load", fail)
        KernelRegistry().function("run")
        assert lines()[0] == (
            "DEBUG", "load",
            "function run: is compiled again, because object code of run cannot be loaded: there is no memset.",
        )  # fmt: skip


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
