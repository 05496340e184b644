# SPDX-License-Identifier: BSD-3-Clause
"""dlaccelerate: replays equal the uncompiled function, whatever is passed, kept, changed or raised."""

import numpy as np
import pytest

from tracejit import config, dlaccelerate, dlarray, dlfeval, dlgradient


@pytest.fixture(autouse=True)
def python_backend(monkeypatch):
    """Nothing compiles, except in the class that asks for it."""
    monkeypatch.setattr(config.settings, "backend", "python")
    monkeypatch.setattr(config.settings, "verify", True)


def vector(*numbers):
    return dlarray(np.array(numbers, float))


class TestConstants:
    """Arrays that the function did not get as arguments: a trace holds what they were when it was recorded."""

    def test_a_buffer_written_between_uses(self):
        def fun(x):
            mask, y = np.zeros(3), x * 0.0
            for i in range(3):
                mask[i] = 1.0
                y = y + x * mask
            return y, dlgradient(y.sum(), x)

        accelerated = dlaccelerate(fun)
        for run in (lambda x: dlfeval(fun, x), accelerated, accelerated):
            y, grad = run(vector(1, 10, 100))
            assert y.tolist() == [3.0, 20.0, 100.0] and grad.tolist() == [3.0, 2.0, 1.0]

    def test_a_scalar_array_written_before_the_gradient(self):
        def fun(x, scale):
            factor = np.array(2.0)
            y = (x * factor).sum()
            factor[...] = 5.0
            return dlgradient(y, x)

        assert dlfeval(fun, vector(1), 0).tolist() == [2.0]
        accelerated = dlaccelerate(fun)
        assert [accelerated(vector(1), 0).tolist() for _ in range(2)] == [[2.0], [2.0]]

    def test_a_scalar_array_written_before_the_program_is_built(self):
        factor = np.array(2.0)
        accelerated = dlaccelerate(lambda x: x * factor)
        accelerated(vector(1))
        factor[...] = 5.0
        assert accelerated(vector(1)).tolist() == [2.0]
