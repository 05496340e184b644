# SPDX-License-Identifier: BSD-3-Clause
"""Pools of threads: in a process that forks or ends, and with one thread only."""

import os
import subprocess
import sys

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
