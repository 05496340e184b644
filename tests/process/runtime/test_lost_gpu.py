# SPDX-License-Identifier: BSD-3-Clause
"""Runs of tests/cuda that lose the GPU fail, and those that find none are skipped."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
TESTS = """
import pytest
from fake_driver import FakeLibrary
from tracejit.errors import DeviceError
from tracejit.runtime.cuda import driver as drivers, library

fake = FakeLibrary()
if {has_driver}:
    library.load = lambda: fake
else:
    library.names = lambda: ("libno.so.1",)

def test_before():
    pass

def test_that_takes_the_device():
    fake.faults["cuStreamSynchronize"] = 719
    {work}

@pytest.mark.parametrize("number", range(3))
def test_after(number):
    pass
"""
CAUGHT = "pytest.raises(DeviceError, drivers.driver().synchronize)"


def run(
    folder: Path, *options: str, has_driver: bool = True, work: str = "pass"
) -> tuple[int, dict[str, int], str]:
    """Return the exit code, how many tests had each outcome, and the output."""
    shutil.copy(ROOT / "tests" / "cuda" / "conftest.py", folder)
    (folder / "test_gpu.py").write_text(TESTS.format(has_driver=has_driver, work=work))
    (folder / "pytest.ini").write_text("[pytest]\n")
    path = os.pathsep.join([str(ROOT), str(ROOT / "tests" / "support")])
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-rA", "-p", "no:cacheprovider", *options, str(folder)],
        cwd=folder, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    counts = {
        name: int(number) for number, name in re.findall(r"(\d+) (passed|failed|error|skipped)", done.stdout)
    }
    return done.returncode, counts, done.stdout + done.stderr


@pytest.mark.slow
def test_without_a_driver_all_are_skipped(tmp_path: Path) -> None:
    code, counts, text = run(tmp_path, has_driver=False)
    assert (code, counts) == (0, {"skipped": 5}), text
    assert "there is no NVIDIA driver on this machine (libno.so.1" in text


@pytest.mark.slow
@pytest.mark.parametrize("work", ["pass", CAUGHT], ids=["unseen", "caught"])
def test_after_a_loss_all_fail(work: str, tmp_path: Path) -> None:
    """Also where the test that took the device did not see it."""
    code, counts, text = run(tmp_path, work=work)
    wanted = {"passed": 2, "error": 3 if work == CAUGHT else 4}
    assert (code, counts) == (1, wanted), text
    assert "lost to this process since an earlier error" in text


@pytest.mark.slow
def test_a_process_of_several_ends_after_a_loss(tmp_path: Path) -> None:
    """A new one runs what is left."""
    pytest.importorskip("xdist")
    code, counts, text = run(tmp_path, "-n", "1", work="drivers.driver().synchronize()")
    assert code == 1 and counts["passed"] == 4 and "skipped" not in counts, text
    assert "CUDA_ERROR_LAUNCH_FAILED (719)" in text and "crashed while running" in text
