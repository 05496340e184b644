# SPDX-License-Identifier: BSD-3-Clause
"""A system without forks, threads of a known kind, descriptors of folders, alarms, users and lists of CPUs."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

POOR = """
import ctypes, json, os, pathlib, shutil, signal, sys, tempfile, warnings
import numpy, platformdirs, scipy, numba
for name in ("fork", "register_at_fork", "sched_getaffinity", "getloadavg", "geteuid", "getuid", "O_NOFOLLOW",
             "O_NONBLOCK", "O_CLOEXEC", "O_DIRECTORY", "mkfifo", "confstr"):
    delattr(os, name)
for name in ("SIGALRM", "setitimer", "alarm"):
    delattr(signal, name)
os.supports_dir_fd, os.supports_fd = set(), set()
os.name = "poor"
import tracejit as tj
import tracejit.exports.loader, tracejit.doctor, tracejit.cache.archive
os.name = "posix"
"""

REPLAYS = """
warnings.simplefilter("error")

@tj.dlaccelerate
def step(w, x):
    loss = (tj.tanh(x @ w) ** 2).sum()
    return loss, tj.dlgradient(loss, w)

n = int(sys.argv[1])
rng = numpy.random.default_rng(0)
x, w = (tj.dlarray(rng.uniform(0, 0.01, shape)) for shape in ((n, 300), (300, 5)))
expected = tj.dlfeval(step.function, w, x)
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    for _ in range(4):
        found = step(w, x)
print(*{str(one.message).partition(", because ")[2].partition(".")[0] for one in said}, sep="|")
assert step.hit_rate == 50
for have, want in zip(found, expected):
    numpy.testing.assert_allclose(tj.extractdata(have), tj.extractdata(want), rtol=1e-9)
report = tj.doctor.examine()
print(sorted(finding.name for finding in report.findings if finding.name in ("threads-none", "step", "results")))
"""

EXPORTS = """
double = tj.dlaccelerate(lambda x: x * 2)
tj.export(double, "double.tj", args=(numpy.ones(3),))
print(tj.load("double.tj", shared=True)(numpy.ones(3)).tolist())
"""


def run(code: str, folder: Path, **variables: str) -> list[str]:
    environment = {
        **os.environ,
        "TRACEJIT_CACHE_DIR": str(folder / "cache"),
        "TRACEJIT_THREADS": "4",
        **variables,
    }
    rows = "3" if "TRACEJIT_BACKEND" in variables else "9000"
    command = [sys.executable, "-c", POOR + code, rows]
    done = subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


@pytest.mark.slow
def test_programs_run_on_one_thread_and_nothing_is_kept(tmp_path: Path) -> None:
    said, findings = run(REPLAYS, tmp_path)
    assert said == "this system cannot open files relative to a folder"
    assert findings == "['threads-none']"


@pytest.mark.slow
def test_uncompiled_programs(tmp_path: Path) -> None:
    said, _ = run(REPLAYS, tmp_path, TRACEJIT_BACKEND="python")
    assert said == ""


def test_files_by_path(tmp_path: Path) -> None:
    by_path = """
from tracejit.store import folder
from tracejit.util import files
folder._BY_PATH = files.IS_WINDOWS = True
"""
    profile = {"USERPROFILE": str(tmp_path)}
    assert run(by_path + REPLAYS, tmp_path, **profile)[0] == ""
    assert len(list((tmp_path / "cache" / "kernels").iterdir())) >= 2
    assert run(by_path + EXPORTS, tmp_path, **profile) == ["[2.0, 2.0, 2.0]"]
