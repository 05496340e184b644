# SPDX-License-Identifier: BSD-3-Clause
"""The option write_arguments: what a function writes into its arguments reaches the caller's arrays, or does not."""

import warnings

import numpy as np
import pytest

import tracejit as tj
from tracejit import config, dlaccelerate, dlfeval


def step(p, g):
    p["w"] -= 0.5 * g
    row = p["w"][0:1]
    row[...] = 7.0
    return p["w"].sum()


def calls(function, count=4):
    """Return the results of some calls with the same arrays, and what the arrays hold then."""
    p, g = {"w": np.array([1.0, 2.0, 3.0])}, np.ones(3)
    return [float(function(p, g)) for _ in range(count)], p["w"].tolist()


WRITTEN = ([11.0, 10.0, 9.0, 8.0], [7.0, 0.0, 1.0])
UNWRITTEN = ([11.0] * 4, [1.0, 2.0, 3.0])


@pytest.mark.parametrize(("write", "expected"), [(True, WRITTEN), (False, UNWRITTEN), (None, WRITTEN)])
@pytest.mark.parametrize("options", [{}, {"check_mode": "tolerance"}, {"enabled": False}, {"confirm": 0}])
def test_the_option(write, expected, options):
    accelerated = dlaccelerate(step, write_arguments=write, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert calls(accelerated) == expected
    assert accelerated.write_arguments is (write is not False)


def test_the_setting_is_the_default(monkeypatch):
    monkeypatch.setattr(config.settings, "write_arguments", False)
    assert calls(dlaccelerate(step)) == calls(lambda p, g: dlfeval(step, p, g)) == UNWRITTEN
    assert calls(dlaccelerate(step, write_arguments=True)) == WRITTEN


def test_a_change_drops_the_traces():
    accelerated = dlaccelerate(step)
    assert calls(accelerated) == WRITTEN
    accelerated.write_arguments = False
    assert accelerated.occupancy == 0.0 and calls(accelerated) == UNWRITTEN


def test_arrays_that_cannot_be_written_can_be_passed():
    frozen = np.broadcast_to(1.0, 3)
    whole = np.ones(4)
    for function in (lambda x, y: x.__iadd__(y), lambda x, y: x.__setitem__(0, y[0])):
        unwritten = dlaccelerate(function, write_arguments=False)
        for _ in range(3):
            unwritten(frozen, whole[:3])
            unwritten(whole[:3], whole[1:])
        with pytest.raises(tj.WriteError):
            dlaccelerate(function)(frozen, whole[:3])
        with pytest.raises(tj.WriteError):
            dlaccelerate(function)(whole[:3], whole[1:])
    assert whole.tolist() == [1.0] * 4


def test_inside_an_evaluation():
    unwritten = dlaccelerate(step, write_arguments=False)

    def outer(x):
        p = {"w": x * 1}
        unwritten(p, x)
        return p["w"]

    for _ in range(3):
        assert dlfeval(outer, np.array([1.0, 2.0, 3.0])).tolist() == [1.0, 2.0, 3.0]
        assert dlaccelerate(outer)(np.array([1.0, 2.0, 3.0])).tolist() == [1.0, 2.0, 3.0]
