# SPDX-License-Identifier: BSD-3-Clause
"""dlwhile and dlcond: loops that a value ends and branches that it chooses, as in Python."""

from typing import Any

import numpy as np
import pytest
from loops import agree, array, check_a_loop_that_a_value_ends, check_branches

import tracejit as tj
from tracejit.errors import GradientError


def test_a_loop_that_a_value_ends() -> None:
    check_a_loop_that_a_value_ends()


def test_branches() -> None:
    check_branches()


@pytest.mark.slow
def test_a_loop_of_many_steps() -> None:
    agree(
        lambda x: tj.dlwhile(lambda c: c[1] < 700, lambda c: (tj.sin(c[0]) + 0.1, c[1] + 1), (x, 0)), array(3)
    )


def test_a_condition_of_python_is_no_loop_of_the_program() -> None:
    left = iter([True, True, False] * 20)
    assert tj.dlwhile(lambda c: next(left), lambda c: c * 2.0, 1.0).item() == 4.0
    agree(lambda x: tj.dlwhile(lambda c: False, lambda c: c * 2.0, x), array(2), loops=0)
    agree(lambda x: tj.dlcond(True, lambda: x * 2.0, lambda: x), array(2), loops=0)


def test_a_loop_inside_the_steps_of_another() -> None:
    def fun(xs: Any) -> Any:
        def step(carry: Any, x: Any) -> Any:
            y = tj.dlwhile(lambda v: v.sum() < 4.0, lambda v: v * 1.5 + 0.1, x)
            return carry + y.sum(), y

        return tj.dlscan(step, 0.0, xs)

    agree(fun, abs(array(6, 3)), loops=2)


def test_a_step_that_a_value_decides_is_made_one_by_one() -> None:
    """Recorded steps that a call would not make leave no guards behind."""
    calls = [(tj.dlarray(x),) for x in (20.0, 4.0)]
    agree(
        lambda x: tj.dlwhile(lambda c: c < 10.0, lambda c: c * 2.0 if c < 3.0 else c + 4.0, x),
        tj.dlarray(1.0), calls=calls, loops=None,
    )  # fmt: skip
    calls = [(tj.dlarray(x),) for x in ([0.5, 1.0], [-2.0, 1.0])]
    agree(
        lambda x: tj.dlcond(x.sum() > 0, lambda: x * 2.0 if x[0] > 1 else x, lambda: x - 1.0),
        tj.dlarray([2.0, 1.0]), calls=calls, loops=None,
    )  # fmt: skip


def test_a_branch_draws_only_where_it_is_chosen() -> None:
    def drawing(x: Any) -> Any:
        return tj.dlcond(x.sum() > 0, lambda: x * tj.rand(2), lambda: x * 1.0)

    def stepping(x: Any) -> Any:
        return tj.dlwhile(lambda c: c.sum() < 3.0, lambda c: c + tj.rand(2), x)

    points = [tj.dlarray(x) for x in ([1.0, 1.0], [-1.0, -1.0], [9.0, 2.0])] * 3
    for fun in (drawing, stepping):
        tj.rng(0)
        expected = [tj.dlfeval(fun, x).tolist() for x in points]
        tj.rng(0)
        accelerated = tj.dlaccelerate(fun)
        assert [accelerated(x).tolist() for x in points] == expected


def test_derivatives_of_a_branch() -> None:
    def first(x: Any, w: Any) -> Any:
        y = tj.dlcond(
            x.sum() > 0,
            lambda x: {"a": tj.exp(x * w), "b": x.sum()},
            lambda x: {"a": x * 3.0, "b": (x * x).sum()},
            x,
        )
        return tj.dlgradient((y["a"] ** 2).sum() + y["b"], (x, w))

    def second(x: Any, w: Any) -> Any:
        by_x, by_w = first(x, w)
        return tj.dlgradient((by_x**2).sum() + by_w**2, (x, w))

    w = tj.dlarray(0.5)
    for fun in (first, second):
        agree(fun, tj.dlarray([0.3, 0.2]), w, calls=[(tj.dlarray([-0.3, 0.2]), w)], loops=None)


def test_the_gradient_of_a_loop_that_a_value_ends() -> None:
    def fun(x: Any) -> Any:
        return tj.dlgradient(tj.dlwhile(lambda c: c < 10.0, lambda c: c * x, x), x)

    assert tj.dlfeval(fun, tj.dlarray(2.0)).item() == 32.0
    with pytest.raises(GradientError, match="dlwhile: a loop whose length a value decides has no gradient"):
        tj.dlaccelerate(fun)(tj.dlarray(2.0))


def test_writes_in_what_is_not_run_are_refused() -> None:
    """Those of a step or a branch that is made are kept; those of one that is not cannot be undone."""

    def branch(x: Any) -> Any:
        seen = x * 1.0

        def write() -> Any:
            seen[0] = 5.0
            return seen * 2.0

        return tj.dlcond(x.sum() > 0, write, lambda: x * 1.0), seen

    agree(branch, tj.dlarray([1.0, 2.0]), loops=0)
    with pytest.raises(tj.TraceError, match="true_fun writes into an array that was made outside it"):
        tj.dlaccelerate(branch)(tj.dlarray([-1.0, -2.0]))

    def loop(x: Any) -> Any:
        seen = x * 1.0

        def step(c: Any) -> Any:
            seen[0] += 1.0
            return c + seen[0]

        return tj.dlwhile(lambda c: c < 4.0, step, x[0]), seen

    agree(loop, tj.dlarray([1.0, 2.0]), loops=0)
    with pytest.raises(tj.TraceError, match="fun writes into an array that was made outside it"):
        tj.dlaccelerate(loop)(tj.dlarray([9.0, 2.0]))


def test_labels_and_containers() -> None:
    x = array(2, 3, format="CB")
    agree(
        lambda x: tj.dlwhile(
            lambda c: c["h"][0].sum() < 9.0, lambda c: {"h": [abs(c["h"][0]) + 1.0]}, {"h": [x]}
        ),
        x,
    )
    found = tj.dlcond(np.array([1]), lambda: (x, None), lambda: (x * 2.0, None))
    assert found[0].format == "CB" and found[1] is None


def countdown(start: Any, step: Any) -> Any:
    """Return what is left of a number after as many steps as it takes; without end for steps of 0 or less."""
    return tj.dlwhile(lambda y: y > 1, lambda y: y - step, start)


def test_a_loop_in_a_branch_that_is_not_taken_need_not_end() -> None:
    """It is recorded, and not run until its branch is taken."""

    @tj.dlaccelerate
    def left(x: Any, is_loop: Any) -> Any:
        return tj.dlcond(is_loop > 0, lambda x: countdown(10 * x, x), lambda x: 2 * x, x)

    assert [left(tj.dlarray(-1.0), tj.dlarray(-1.0)).item() for _ in range(3)] == [-2.0] * 3
    assert [left(tj.dlarray(0.75), tj.dlarray(1.0)).item() for _ in range(3)] == [0.75] * 3
    assert left(tj.dlarray(-3.0), tj.dlarray(0.0)).item() == -6.0
    assert left.stats.programs == 1


def test_a_loop_in_a_step_that_is_not_made_need_not_end() -> None:
    @tj.dlaccelerate
    def left(x: Any, steps: Any) -> Any:
        def step(carry: Any) -> Any:
            x, steps = carry
            return countdown(10 + 0 * x, steps), steps - 1

        return tj.dlwhile(lambda carry: carry[1] > 0, step, (x, steps))

    assert [[value.item() for value in left(tj.dlarray(5.0), tj.dlarray(-1.0))] for _ in range(3)] == [
        [5.0, -1.0]
    ] * 3
    assert [value.item() for value in left(tj.dlarray(5.0), tj.dlarray(3.0))] == [1.0, 0.0]
    assert left.stats.programs == 1
