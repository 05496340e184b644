# SPDX-License-Identifier: BSD-3-Clause
"""Accelerated functions in a process that was forked after they were used."""

import os

import numpy as np
import pytest

import tracejit as tj
from tracejit import dlaccelerate

X = np.array([1.0, -2.0, 3.0])


@pytest.fixture(autouse=True)
def _seeded():
    with tj.rng(0):
        yield


@pytest.mark.usefixtures("python_backend")
class TestCalls:
    def test_fork_after_use(self):
        fun = dlaccelerate(lambda x: x * 2 if x.sum() > 0 else -x)
        for n in range(1, 5):
            fun(X * n)
        process = os.fork()
        if process == 0:  # the child tells by its status alone
            status = 1
            try:
                same = fun(X * 5).tolist() == (X * 10).tolist() and fun(-X).tolist() == X.tolist()
                status = 0 if same else 2
            finally:
                os._exit(status)
        assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 0
        assert fun(X * 5).tolist() == (X * 10).tolist()
