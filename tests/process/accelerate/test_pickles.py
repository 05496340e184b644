# SPDX-License-Identifier: BSD-3-Clause
"""Functions of __main__ that other processes get by value."""

import os
import subprocess
import sys

import pytest

pytest.importorskip("cloudpickle")

SENDER = """
import sys
import cloudpickle
import numpy as np
import tracejit as tj

weights = tj.dlarray(np.eye(2), "CB")

@tj.dlaccelerate(cache_size=3)
def step(x):
    return (weights * x).sum(), tj.dlgradient((x**3).sum(), x)

def work(x):
    return [float(step(x)[0]) for _ in range(4)], step(x)[1].tolist()

with open(sys.argv[1], "wb") as file:
    cloudpickle.dump((work, step), file)
"""
RECEIVER = """
import pickle, sys
import numpy as np
with open(sys.argv[1], "rb") as file:
    work, step = pickle.load(file)
print(work(np.ones((2, 2))), step.cache_size, step.stats.hits)
"""


def test_main(tmp_path):
    for number, code in enumerate((SENDER, RECEIVER)):
        script = tmp_path / f"script{number}.py"
        script.write_text(code)
        done = subprocess.run(
            [sys.executable, str(script), str(tmp_path / "pickle")], capture_output=True, text=True, check=False,
            env={**os.environ, "TRACEJIT_BACKEND": "python"},
        )  # fmt: skip
        assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "([2.0, 2.0, 2.0, 2.0], [[3.0, 3.0], [3.0, 3.0]]) 3 3\n"
