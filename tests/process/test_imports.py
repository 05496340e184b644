# SPDX-License-Identifier: BSD-3-Clause
"""Imports of tracejit: the packages that they load, and the folder where they find it."""

import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import tracejit

PACKAGE = Path(tracejit.__file__).parent


COMPILER = ("pipeline", "codegen", "passes.fusion", "passes.loops", "passes.schedule", "describe", "runtime")
LATE = ("numba", "scipy", "llvmlite", *[f"tracejit.{name}" for name in COMPILER])


def loaded_by(statement: str) -> set[str]:
    code = f"{statement}\nimport sys\nprint(*[m for m in {LATE} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_importing_tracejit_imports_numpy_only() -> None:
    assert loaded_by("import tracejit") == set()


def test_the_collector_scans_nothing_during_the_import() -> None:
    """It scanned new modules 38 times, a tenth of the import."""
    code = (
        "import gc, numpy; scans = []; gc.callbacks.append(lambda phase, info: scans.append(phase)); gc.collect()\n"
        "scans.clear(); import tracejit; assert gc.isenabled(); print(scans.count('start'))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(done.stdout) <= 2


def test_the_version_is_looked_up_when_it_is_asked_for() -> None:
    assert tracejit.__version__ == version("tracejit")
    code = "import sys, tracejit; assert 'importlib.metadata' not in sys.modules; print(tracejit.__version__)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == f"{version('tracejit')}\n"
    assert not hasattr(tracejit, "no_such_name")


def test_the_check_of_imports_can_fail() -> None:
    assert loaded_by("import tracejit, scipy, tracejit.pipeline") >= {"scipy", "tracejit.passes.loops"}


def test_the_parent_of_a_checkout_imports_the_package(tmp_path: Path) -> None:
    (tmp_path / "tracejit").symlink_to(PACKAGE.parent, target_is_directory=True)
    code = "import sys; sys.path.append(sys.argv[1]); import tracejit; print(tracejit.zeros(1).shape)"
    command = [sys.executable, "-I", "-c", f"import sys; sys.path.insert(0, '')\n{code}", str(PACKAGE.parent)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout == "(1,)\n"


def test_namespaces_that_are_imported_while_something_is_recorded() -> None:
    """Tables that their modules compute are no part of the recording: the second one would not have them."""
    code = """
import os
os.environ["TRACEJIT_BACKEND"] = "python"
import numpy as np, tracejit as tj
x = np.array([0.5, 0.7, 0.9])
for function in (
    lambda x: tj.stats.norm.logpdf(x),
    lambda x: tj.special.gammaln(x),
    lambda x: tj.linalg.expm(x[:, None] * x),
    lambda x: tj.signal.convolve(x, x),
    lambda x: tj.interpolate.CubicSpline(np.arange(3.0), x)(0.5),
    lambda x: tj.integrate.simpson(x),
    lambda x: tj.fft.dct(x),
    lambda x: tj.xp.sum(tj.xp.sin(tj.dlarray(x))),
):
    accelerated = tj.dlaccelerate(function)
    for _ in range(4):
        accelerated(x)
    print(accelerated.stats.hits)
"""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False
    )
    assert done.stdout.split() == ["2"] * 8, done.stderr
