# SPDX-License-Identifier: BSD-3-Clause
"""Arrays that a function reads, and replaces by new ones of constants: after a reset, at the end of an episode."""

import random
import warnings
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tracejit as tj

STEPS = (
    "o.w = o.w + x", "o.w *= 0.5", "o.w += x", "o.w[0] = x[0]", "o.v = o.w * 2", "o.w = np.sqrt(np.abs(o.w))",
    "o.w = o.w.copy()", "o.d['w'] = o.d['w'] - x", "o.d['w'] *= 0.5", "o.v = o.v + o.w", "y = y + o.w",
    "y = y * o.v + o.d['w']", "o.n += 1", "o.w, o.v = o.v, o.w", "o.h.append(o.w.sum())",
)  # fmt: skip
RESETS = (
    "o.w = np.zeros(3)", "o.w = np.full(3, 0.25)", "o.w = np.array([1.0, 2.0, 0.5])", "o.v = np.ones(3)",
    "o.w[:] = 0.0", "o.d['w'] = np.zeros(3)", "o.w, o.v = np.zeros(3), np.ones(3)", "o.w = o.start",
    "o.w = o.start.copy()", "o.w = np.eye(3)[1]",
    "o.w = np.arange(3.0)", "o.w = 0 * o.w", "o.w = [np.zeros(3), np.ones(3)][1]", "o.d = {'w': np.zeros(3)}",
)  # fmt: skip
CONDITIONS = ("if x[0] > 0.6", "if o.w.sum() > 3.0", "if o.n > 2", "if o.w[0] < 0.5", "if True")
OUTSIDE = (
    "o.w = np.ones(3)",
    "o.start[0] += 1.0",
    "o.w[1] = 5.0",
    "o.d['w'] = np.full(3, 2.0)",
    "o.n = 0",
    "o.v = o.w",
)


def followed(
    body: list[str], calls: list[tuple[list[float], str]], accelerated: Any
) -> tuple[list[Any], Any]:
    o = SimpleNamespace(w=np.ones(3), v=np.zeros(3), d={"w": np.ones(3)}, start=np.full(3, 0.5), n=0, h=[])
    names = {"o": o, "np": np}
    text = (
        "def function(x):\n    y = 0.5 * x\n" + "".join(f"    {line}\n" for line in body) + "    return y\n"
    )
    exec(text, names)
    function = accelerated(names["function"])
    found = []
    for x, outside in calls:
        exec(outside, names)
        result = function(np.array(x))
        held = [result, o.w, o.v, o.d["w"], o.start, o.n, *o.h]
        found.append([np.asarray(each).tolist() for each in held])
    return found, function


@pytest.mark.sampled
@pytest.mark.filterwarnings("ignore::tracejit.NotAcceleratedWarning", "ignore::tracejit.LostChangeWarning")
@pytest.mark.filterwarnings(
    "ignore::tracejit.ChangedTraceWarning"
)  # of an audit where two names lead to one array by now
@pytest.mark.parametrize("seed", range(40))
def test_drawn_programs_leave_the_arrays_of_the_plain_function(seed: int) -> None:
    draw = random.Random(seed)
    body = draw.sample(STEPS, draw.randint(1, 4))
    at = draw.randint(0, len(body))
    body[at:at] = [f"{draw.choice(CONDITIONS)}: {draw.choice(RESETS)}"]
    outside = [draw.choice(OUTSIDE) if draw.random() < 0.2 else "pass" for _ in range(16)]
    calls = [([draw.random() for _ in range(3)], each) for each in outside]
    want, _ = followed(body, calls, lambda fun: fun)
    got, _ = followed(body, calls, tj.dlaccelerate(max_variants=16, confirm=draw.choice([0, 1])))
    for have, expected in zip(got, want, strict=True):
        assert len(have) == len(expected), body
        for a, b in zip(have, expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12, err_msg=str(body))


@pytest.mark.parametrize("reset", ["np.zeros(3)", "np.full(3, 0.25)", "np.array([1.0, 0.5, 0.25])"])
@pytest.mark.parametrize("step", ["o.w = o.w + x", "o.w *= 0.9", "o.w += x"])
def test_a_reset_has_a_trace(step: str, reset: str) -> None:
    calls = [([0.1 * (n % 7), 0.7, 0.2], "pass") for n in range(40)]
    body = [step, f"if x[0] > 0.5: o.w = {reset}", "y = y + o.w"]
    want, _ = followed(body, calls, lambda fun: fun)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        got, function = followed(body, calls, tj.dlaccelerate(audit=False))
    np.testing.assert_allclose([row[:3] for row in got], [row[:3] for row in want], rtol=1e-12)
    assert function.stats.traces <= 8
