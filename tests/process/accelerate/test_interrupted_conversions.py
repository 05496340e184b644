# SPDX-License-Identifier: BSD-3-Clause
"""Errors of signal handlers at random times in functions that ask for plain numbers."""

import math
import os
import signal
import subprocess
import sys

import numpy as np
import pytest

from tracejit import dlaccelerate


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no interval timers")
def test_a_signal_handler_that_raises_an_error():
    """In a process of its own: a second error may come where what a recording has replaced is put back."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONWARNINGS": "ignore"}
    done = subprocess.run(
        [sys.executable, __file__], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def interrupt_at_random():
    class HandlerError(Exception):
        pass

    def interrupt(*_):
        raise HandlerError

    def run(x):
        total = 0.0
        for _ in range(3):
            total += float(x[0]) + sum(map(float, [x[1]])) + int(x[0])
        return total

    def replaced():
        return {name: vars(owner)[name] for owner, name in places}

    places = [(np, "zeros"), (np, "sin"), (np, "stack"), (math, "sin"), (np.ndarray, "__getitem__")]
    originals = replaced()
    before = signal.signal(signal.SIGALRM, interrupt)
    x, interrupted = np.array([1.5, 2.5]), 0
    try:
        for n in range(40):
            function = dlaccelerate(run)
            signal.setitimer(signal.ITIMER_REAL, 2e-4 * (n + 1))
            try:
                for _ in range(20):
                    assert function(x) == 15.0
            except HandlerError:
                interrupted += 1
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
            assert all(now is originals[name] for name, now in replaced().items())
            assert [function(x * k) for k in (1, 2, 3)] == [15.0, 3 * (3.0 + 5.0 + 3), 3 * (4.5 + 7.5 + 4)]
    finally:
        signal.signal(signal.SIGALRM, before)
    assert interrupted


if __name__ == "__main__":
    interrupt_at_random()
