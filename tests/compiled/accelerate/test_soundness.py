# SPDX-License-Identifier: BSD-3-Clause
"""Decisions, sizes and their limits in compiled programs."""

import numpy as np
from uncompiled import follow, vector, warned

from tracejit import (
    dlaccelerate,
    dlgradient,
)
from tracejit.record import guards
from tracejit.traces import replay

VECTORS = [
    vector(1, 2),
    vector(1, 2),
    vector(-3, 1),
    vector(-3, 1),
    vector(4, -1),
    vector(1, 2),
    vector(-3, 1),
]


class TestDecisions:
    def test_compiled(self):
        def fun(x):
            y = x * 2 if x.sum() > 0 else x * 3
            return y * float(x[0]), dlgradient((y * y).sum(), x)

        follow(fun, VECTORS * 3)


class TestSizes:
    def test_compiled(self):
        def fun(x):
            y = x[x > 0]
            return y, dlgradient((y**2).sum(), x)

        follow(
            fun, [np.array(n, float) for n in ([1, 2, -1], [-1, 1, 5], [1, -1, 1], [1, 1, 1], [0, 0, 3])] * 2
        )


class TestLimits:
    def test_a_decision_on_the_edge_of_rounding(self, monkeypatch):
        # As if the compiled sum differed from NumPy's.
        monkeypatch.setattr(replay.Replay, "__call__", lambda *_: (_ for _ in ()).throw(guards.GuardFailed))
        accelerated = dlaccelerate(lambda x: x * 2 if x.sum() > 0 else x)
        caught = [w for _ in range(13) for w in warned(accelerated, vector(1, 2))[1]]
        (warning,) = caught
        assert "bool() keeps giving different results in the compiled and the uncompiled function" in str(
            warning.message
        )
        assert accelerated.stats.uncompiled == 1
