# SPDX-License-Identifier: BSD-3-Clause
"""Pools of threads: in a process that forks or ends, and with one thread only."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

FORKED = """
import os, sys, numpy as np
from tracejit import dlaccelerate, dlarray, tanh
from tracejit.runtime import thread_pool

@dlaccelerate(audit=False)
def f(x):
    return (tanh(x) * x).sum()

x = dlarray(np.linspace(-1, 1, 200_000))
want = [float(f(x)) for _ in range(3)][-1]
assert thread_pool.pool()._threads
child = os.fork()
if child == 0:
    same = all(float(f(x)) == want for _ in range(20)) and not thread_pool.pool()._threads
    os._exit(0 if same else 7)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert all(float(f(x)) == want for _ in range(20))
print("done")
"""


def test_forked_process_and_end_of_process() -> None:
    environment = {**os.environ, "TRACEJIT_THREADS": "3"}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORKED],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")


def test_one_thread_makes_no_pool() -> None:
    code = (
        "import threading, numpy as np, tracejit as tj\n"
        "f = tj.dlaccelerate(lambda x: tj.tanh(x) * x)\n"
        "x = tj.dlarray(np.ones(500_000))\n"
        "for _ in range(3): f(x)\n"
        "print([t.name for t in threading.enumerate()])"
    )
    environment = {**os.environ, "TRACEJIT_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True
    )
    assert done.stdout == "['MainThread']\n"


NO_THREADS = """
import _thread, sys, threading, warnings

def refuse(*args, **options):
    raise RuntimeError("can't start new thread")

for module in (_thread, threading):
    for name in ("start_new_thread", "_start_new_thread", "start_joinable_thread", "_start_joinable_thread"):
        if hasattr(module, name):
            setattr(module, name, refuse)

import numpy as np
import tracejit as tj

@tj.dlaccelerate
def step(x, w):
    y = np.tanh(x @ w)
    return (y**2).mean(), tj.dlgradient((y**2).mean(), w)

x, w = np.linspace(-1, 1, 1 << 18).reshape(-1, 64), np.linspace(-1, 1, 64 * 8).reshape(64, 8)
with warnings.catch_warnings(record=True) as found:
    warnings.simplefilter("always")
    for _ in range(4):
        value, slope = step(x, w)
    expected = tj.dlfeval(step.function, x, w)
np.testing.assert_allclose(value, expected[0], rtol=1e-10)
np.testing.assert_allclose(slope, expected[1], rtol=1e-9, atol=1e-12)
assert step.stats.hits == 2 and step.stats.compiled > 1, step.stats
assert [warning.category for warning in found] == [tj.TraceJitWarning], [str(w.message) for w in found]
assert "starts no new thread" in str(found[0].message) and found[0].filename == "<string>"
"""


@pytest.mark.parametrize("threads", ["1", "4"])
def test_a_system_that_starts_no_thread(threads: str, tmp_path: Path) -> None:
    environment = {**os.environ, "TRACEJIT_THREADS": threads, "TRACEJIT_CACHE_DIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", NO_THREADS], env=environment, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
