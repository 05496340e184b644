# SPDX-License-Identifier: BSD-3-Clause
"""The scale of a loss: how it adapts itself, uncompiled and accelerated."""

import numpy as np
from accelerated import dlaccelerate

import tracejit as tj


def test_a_scale_of_losses_adapts_itself() -> None:
    def step(w, x, scaling):
        def gradients(w, x, scaling):
            return tj.dlgradient(scaling.scaled(tj.sum(w.astype(np.float16) * x)), w)

        grads, finite, new = scaling.unscaled(tj.dlfeval(gradients, w, x, scaling), interval=2)
        return scaling.chosen(finite, w - 0.5 * grads, w), finite, new

    accelerated = dlaccelerate(step)
    small = np.array([2.0**-24, 2.0**-20], np.float16)
    endless = np.array([1.0, np.inf], np.float16)
    for call in (step, accelerated):
        w, scaling = tj.dlarray(np.ones(2, np.float32)), tj.LossScale.of(4.0)
        states = []
        for x in (small, small, small, endless, endless, small):
            before = tj.extractdata(w)
            w, finite, scaling = call(w, tj.dlarray(x), scaling)
            states.append((bool(finite), float(scaling.scale), int(scaling.steps)))
            if finite:
                np.testing.assert_allclose(tj.extractdata(w), before - 0.5 * x.astype(np.float32), rtol=1e-6)
            else:
                np.testing.assert_array_equal(tj.extractdata(w), before)
        assert states == [
            (True, 4.0, 1), (True, 8.0, 0), (True, 8.0, 1), (False, 4.0, 0), (False, 2.0, 0), (True, 2.0, 1),
        ]  # fmt: skip
        assert isinstance(scaling, tj.LossScale)
    assert accelerated.hit_rate > 80


def test_a_scale_that_would_overflow_stays() -> None:
    scaling = tj.LossScale.of(2.0**127)
    _, finite, scaling = scaling.unscaled([tj.dlarray(np.ones(2, np.float32))], interval=1)
    assert bool(finite) and float(scaling.scale) == 2.0**127
