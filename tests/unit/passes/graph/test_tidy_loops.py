# SPDX-License-Identifier: BSD-3-Clause
"""What is the same in each step of a loop is computed once, and is not stacked for the adjoint."""

from typing import Any

import numpy as np
import pytest

import tracejit as tj
from tracejit.ir import Node, verify
from tracejit.passes.graph.tidy_loops import tidy_loops

RNG = np.random.default_rng(1)


def wave(speeds: Any, start: Any, heard: Any, reverse: bool = False) -> Any:
    def step(state: Any, wanted: Any) -> Any:
        before, now = state
        after = 2 * now - before + 0.5 * np.sin(speeds) ** 2 * np.roll(now, 1)
        return (now, after), (after[2] - wanted) ** 2

    (_, last), errors = tj.dlscan(step, (start, start), heard, reverse=reverse)
    return errors.sum() + last.sum()


def unrolled(speeds: Any, start: Any, heard: Any, reverse: bool = False) -> Any:
    before, now, total = start, start, 0.0
    for i in range(len(heard))[:: -1 if reverse else 1]:
        before, now = now, 2 * now - before + 0.5 * np.sin(speeds) ** 2 * np.roll(now, 1)
        total = total + (now[2] - heard[i]) ** 2
    return total + now.sum()


def scans(accelerated: Any) -> list[Node]:
    ((trace,),) = [variants.traces for variants in accelerated.variants()]
    graph = tidy_loops(trace.graph)
    verify(graph)
    return [node for node in graph.nodes if node.op.name == "scan"]


@pytest.mark.slow
@pytest.mark.parametrize("reverse", [False, True])
def test_what_the_adjoint_reads_of_each_step_alike_is_not_stacked(reverse: bool) -> None:
    arrays = [tj.dlarray(RNG.standard_normal(n)) for n in (6, 6, 4)]

    def both(loss: Any) -> Any:
        return lambda *arrays: [*tj.dlgradient(loss(*arrays, reverse), arrays[:2])]

    fast = tj.dlaccelerate(lambda *arrays: tj.dlfeval(both(wave), *arrays))
    wanted = tj.dlfeval(both(unrolled), *arrays)
    for _ in range(4):
        for found, want in zip(fast(*arrays), wanted, strict=True):
            np.testing.assert_allclose(np.asarray(found), np.asarray(want), rtol=1e-11, atol=1e-12)
    forward, adjoint = scans(fast)
    # What each step has of its own is stacked, a state and an error; what the speeds give is not.
    assert [value.shape for value in forward.outputs[forward.params["body"].carries :]] == [(4,), (4, 6)]
    own = adjoint.params["body"]
    read = [value.shape for value in own.graph.inputs[own.carries : own.carries + own.slices]]
    assert sorted(read) == [(), (), (6,)]


def test_results_that_are_constants_are_copies_of_them() -> None:
    def fun(x: Any, w: Any, steps: Any) -> Any:
        def step(c: Any, s: Any) -> Any:
            return c + s, (w, 2 * w, c)

        last, (same, twice, each) = tj.dlscan(step, x, steps)
        return last, same, twice, each

    fast = tj.dlaccelerate(fun)
    x, w, steps = RNG.standard_normal(()), RNG.standard_normal((2, 3)), RNG.standard_normal(5)
    for _ in range(4):
        last, same, twice, each = fast(*map(tj.dlarray, (x, w, steps)))
        np.testing.assert_allclose(float(last), x + steps.sum())
        np.testing.assert_array_equal(np.asarray(same), np.broadcast_to(w, (5, 2, 3)))
        np.testing.assert_array_equal(np.asarray(twice), np.broadcast_to(2 * w, (5, 2, 3)))
        np.testing.assert_allclose(np.asarray(each), x + np.cumsum([0, *steps[:-1]]))
    (loop,) = scans(fast)
    assert [value.shape for value in loop.outputs] == [(), (5,)]


def test_parts_of_a_repeated_array_are_the_array() -> None:
    def fun(x: Any, w: Any) -> Any:
        return tj.dlscan(lambda c, row: (c * row, (c * row).sum()), x, np.broadcast_to(w, (4, 3)))

    fast = tj.dlaccelerate(fun)
    x, w = RNG.standard_normal(3), RNG.standard_normal(3)
    for _ in range(4):
        last, sums = fast(tj.dlarray(x), tj.dlarray(w))
        np.testing.assert_allclose(np.asarray(last), x * w**4)
        np.testing.assert_allclose(np.asarray(sums), [(x * w**k).sum() for k in range(1, 5)])
    (loop,) = scans(fast)
    assert loop.params["body"].slices == 0
