# SPDX-License-Identifier: BSD-3-Clause
"""First calls that an exception of a signal handler ends, wherever it comes: later calls are as if it had not come."""

import gc
import linecache
import os
import subprocess
import sys
import warnings

import numpy as np
import pytest
from effort import sweep

import tracejit as tj
from tracejit.record import block, monitor

PACKAGE = os.path.dirname(tj.__file__) + os.sep
COMPILED = """
import gc, signal, sys, warnings
import numpy as np
import tracejit as tj
from tracejit.record import block

class AlarmError(Exception):
    pass

kind = {"KeyboardInterrupt": KeyboardInterrupt, "AlarmError": AlarmError}[sys.argv[1]]

def ring(*_):
    raise kind("now")

def body(x, w):
    z = np.tanh(x @ w)
    y = (z**2).mean() + np.exp(-z).sum()
    return y, tj.dlgradient(y, w)

warnings.simplefilter("error")
signal.signal(signal.SIGALRM, ring)
f = tj.dlaccelerate(body)
x, w = np.linspace(-1, 1, 64).reshape(16, 4), np.linspace(1, 2, 12).reshape(4, 3)
try:
    signal.setitimer(signal.ITIMER_REAL, float(sys.argv[2]))
    for _ in range(3):
        f(x, w)
except kind as error:
    assert str(error) == "now"
signal.setitimer(signal.ITIMER_REAL, 0)
assert block.thread.recorder is None and sys.getprofile() is None and gc.isenabled()
assert np.geterr()["divide"] == "warn"
y, slope = tj.dlfeval(body, x, w)
for _ in range(4):
    found = f(x, w)
    np.testing.assert_allclose(found[0], y, rtol=1e-12)
    np.testing.assert_allclose(found[1], slope, rtol=1e-12)
assert f.stats.hits and not f.stats.uncompiled, str(f.explain())
"""
DELAYS = [0.4 * k / sweep(4, 100) for k in range(1, sweep(4, 100))]


def test_while_a_first_call_records_imports_and_compiles(tmp_path):
    for delay in DELAYS:
        kind = ("KeyboardInterrupt", "AlarmError")[DELAYS.index(delay) % 2]
        environment = {**os.environ, "TRACEJIT_CACHE_DIR": str(tmp_path / f"{delay}")}
        done = subprocess.run(
            [sys.executable, "-c", COMPILED, kind, str(delay)], env=environment, capture_output=True, text=True,
            check=False, timeout=120,
        )  # fmt: skip
        assert (done.returncode, done.stdout, done.stderr) == (0, "", ""), f"{kind} after {delay} s"


class InjectedError(BaseException):
    """The exception of a handler; a trace function raises it, which cannot be told from the user's code."""


C = np.array([2.0])
X = np.linspace(0, 1, 4)


def body(x):
    y = np.tanh(x * C)
    total = (y**2).sum()
    if total > 0:
        total = total + 1
    return total, tj.dlgradient(total, x)


def interrupted(step, at):
    """Raise an error at one line of the package while a function is called; return the number of lines that ran."""
    lines = 0

    def line(frame, event, arg):
        nonlocal lines
        # A trace function comes once more before a with-statement is left, where no signal handler does.
        is_with = (
            linecache.getline(frame.f_code.co_filename, frame.f_lineno)
            .lstrip()
            .startswith("with np.errstate")
        )
        lines += event == "line" and not is_with
        if event == "line" and not is_with and lines == at:
            raise InjectedError
        return line

    def start(frame, event, arg):
        return line if frame.f_code.co_filename.startswith(PACKAGE) else None

    before = sys.gettrace()
    sys.settrace(start)
    try:
        for _ in range(4):
            step(X)
    except InjectedError:
        pass
    finally:
        sys.settrace(before)
    return lines


@pytest.mark.usefixtures("python_backend")
def test_at_every_line_of_the_first_calls():
    expected = tj.dlfeval(body, X)
    most = interrupted(tj.dlaccelerate(body), 0)
    lines = interrupted(tj.dlaccelerate(body), 0)  # what happens once in a process has happened
    assert 1000 < lines <= most
    for at in range(1, lines, lines // sweep(50, 5000) or 1):
        step = tj.dlaccelerate(body)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            interrupted(step, at)
            assert block.thread.recorder is None, at
            assert sys.getprofile() is None and monitor.current.started is monitor.current.profile is None, at
            assert np.geterr()["divide"] == "warn", at
            gc.enable()  # a trace function comes where no signal handler does
            results = [step(X) for _ in range(4)]
        for value, slope in results:
            np.testing.assert_array_equal(value, expected[0])
            np.testing.assert_array_equal(slope, expected[1])
        assert step.stats.hits and not step.stats.uncompiled, step.explain()
