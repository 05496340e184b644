# SPDX-License-Identifier: BSD-3-Clause
"""A few random programs, with generated call paths, as compiled programs have, and without; tests/long has more."""

import numpy as np
import pytest
from effort import sweep
from random_programs import OfSteps, OfText, check, differs

import tracejit as tj
from tracejit.runtime.python import PythonExecutable
from tracejit.traces import replay


@pytest.mark.slow
@pytest.mark.parametrize("kind", [OfText, OfSteps])
def test_accelerated_as_uncompiled(kind):
    check(kind, range(sweep(5, 5, sample=2)))


@pytest.mark.slow
@pytest.mark.parametrize("kind", [OfText, OfSteps])
def test_without_call_paths(kind, monkeypatch):
    monkeypatch.setattr(
        replay, "executable", lambda program, title, layouts: PythonExecutable(program, title)
    )
    check(kind, range(5, sweep(8, 8, sample=6)))


def test_results_that_differ_are_noticed():
    one = tj.dlarray([1.0, 2.0])
    assert differs((one, [3.0]), (one, [3.0])) is None
    for other in ((one, [4.0]), (one, [3]), (one, (3.0,)), (one + 1e-6, [3.0]), (one[:1], [3.0]),
                  (one.astype(np.float32), [3.0]), (np.asarray(one), [3.0]), (tj.dlarray([1.0, 2.0], "C"), [3.0]),
                  "ValueError"):  # fmt: skip
        assert differs(other, (one, [3.0])) is not None
    assert differs("ValueError", "ValueError") is None and differs("ValueError", "TypeError") is not None
