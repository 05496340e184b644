# SPDX-License-Identifier: BSD-3-Clause
"""Captured arrays that become unaligned, or aligned again, between calls: each call computes what NumPy does."""

import random
import warnings

import numpy as np
import pytest
from effort import sweep

import tracejit as tj


class State:
    def __init__(self):
        self.w, self.every = None, []


def field(values):
    """Return numbers as a field of a structured array, with a stride that is no multiple of their size."""
    record = np.zeros(len(values), [("flag", "i1"), ("value", "f8")])
    record["value"] = values
    return record["value"]


def shifted(values):
    """Return numbers at an odd address."""
    raw = np.empty(8 * len(values) + 1, np.uint8)[1:].view(np.float64)
    raw[...] = values
    return raw


LAYOUTS = {
    "contiguous": np.array,
    "with gaps": lambda values: np.repeat(values, 2)[::2],
    "backwards": lambda values: np.array(values[::-1])[::-1],
    "a field": field,
    "at an odd address": shifted,
}


def use(w, x):
    return w * x


def reads(s, x):
    return x + s.w


def reads_views(s, x):
    return use(s.w[1:], x) + use(s.w[::-1][:-1], x)


def reads_in_a_list(s, x):
    return sum(w.sum() * x for w in s.every)


def writes(s, x):
    s.w += x.sum()
    return s.w * 2


def writes_elements(s, x):
    s.w[1] = x[0]
    s.w[2:] *= x[1]
    return s.w.sum()


def computes_alone(s, x):
    s.w *= 0.5
    return x + np.sqrt(s.w)[0]


def replaces(s, x):
    s.w = s.w + x.sum()
    return s.w


PROGRAMS = [reads, reads_views, reads_in_a_list, writes, writes_elements, computes_alone, replaces]


def check(program, layouts, seed=0):
    """Compare calls between which the array gets other layouts with plain Python."""
    rng = np.random.default_rng(seed)
    states = State(), State()
    accelerated = tj.dlaccelerate(program)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", tj.NotAcceleratedWarning)
        for layout in layouts:
            values, x = rng.random(3) + 1, rng.random(2 if program is reads_views else 3)
            for state in states:
                state.w = LAYOUTS[layout](values)
                state.every[:] = [state.w, np.array(values), LAYOUTS[layout](values + 1)]
            found, want = accelerated(states[0], x), program(states[1], x.copy())
            np.testing.assert_allclose(np.asarray(found), want, rtol=1e-12, err_msg=layout)
            np.testing.assert_allclose(np.asarray(states[0].w), states[1].w, rtol=1e-12, err_msg=layout)
    return accelerated


@pytest.mark.parametrize("after", LAYOUTS)
@pytest.mark.parametrize("before", LAYOUTS)
@pytest.mark.parametrize("program", PROGRAMS)
def test_an_array_gets_another_layout(program, before, after):
    check(program, [before] * 4 + [after] * 3 + [before] * 2)


@pytest.mark.parametrize("seed", sweep(range(3), range(40)))
def test_layouts_in_any_order(seed):
    chosen = random.Random(seed)
    layouts = [layout for _ in range(8) for layout in [chosen.choice([*LAYOUTS])] * chosen.randint(1, 4)]
    check(chosen.choice(PROGRAMS), layouts, seed)


def test_an_unaligned_array_has_one_trace_more():
    accelerated = check(reads, (["contiguous"] * 3 + ["a field"] * 3 + ["at an odd address"] * 3) * 2)
    assert accelerated.occupancy == 2
    assert accelerated.stats.uncompiled == 0


def test_a_memoryview_that_starts_at_an_odd_byte():
    raw = np.arange(7.0).tobytes()
    memory = [memoryview(bytearray(raw))]
    fun = tj.dlaccelerate(lambda x: x + np.frombuffer(memory[0], np.float64))
    x = np.ones(7)
    for n in range(8):
        if n == 4:
            memory[0] = memoryview(bytearray(b"x" + raw))[1:]
        assert fun(x).tolist() == (x + np.arange(7.0)).tolist()


def test_an_array_of_another_library_at_an_odd_address():
    class Foreign:
        def __init__(self, array):
            self.array = array

        def __array__(self, dtype=None, copy=None):
            return self.array

        @property
        def __array_interface__(self):
            return self.array.__array_interface__

    held = [Foreign(np.arange(3.0))]
    fun = tj.dlaccelerate(lambda x: x + tj.dlarray(held[0]))
    for layout in ["contiguous"] * 4 + ["at an odd address"] * 3 + ["contiguous"]:
        held[0] = Foreign(LAYOUTS[layout](np.arange(3.0)))
        assert fun(np.ones(3)).tolist() == [1.0, 2.0, 3.0]
