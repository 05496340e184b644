# SPDX-License-Identifier: BSD-3-Clause
"""jvp, hvp, hessian, jacobian and dlmap of functions with loops that a program keeps: those of the loop in Python."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracejit as tj
from tracejit.errors import ArgumentError, GradientError

RNG = np.random.default_rng(3)
W = tj.dlarray(RNG.uniform(0.3, 0.9, 3))
V = tj.dlarray(RNG.standard_normal(3))
XS = tj.dlarray(RNG.standard_normal((6, 3)))

Loop = Callable[[Any, Any], Any]


def scanned(w: Any, xs: Any) -> Any:
    def step(c: Any, x: Any) -> Any:
        c = tj.tanh(c * w + x)
        return c, c.sum()

    last, sums = tj.dlscan(step, xs[0] * 0.1, xs)
    return (last**2).sum() + (sums**2).sum()


def scanned_in_python(w: Any, xs: Any) -> Any:
    c, loss = xs[0] * 0.1, 0.0
    for i in range(len(xs)):
        c = tj.tanh(c * w + xs[i])
        loss = loss + c.sum() ** 2
    return (c**2).sum() + loss


def checkpointed(w: Any, xs: Any) -> Any:
    step = tj.dlcheckpoint(lambda c, x: (tj.sin(c * w + x), None))
    return tj.dlscan(step, xs[0] * 0.1, xs, reverse=True)[0].sum() ** 2


def checkpointed_in_python(w: Any, xs: Any) -> Any:
    c = xs[0] * 0.1
    for i in reversed(range(len(xs))):
        c = tj.sin(c * w + xs[i])
    return c.sum() ** 2


def chosen(w: Any, xs: Any) -> Any:
    return tj.dlcond(w.sum() > -5.0, lambda: (tj.tanh(w * xs) ** 2).sum(), lambda: w.sum())


def solved(w: Any, xs: Any) -> Any:
    return (tj.dlrk4(lambda t, y: tj.sin(y * w) - t, [0, 0.5, 1], xs[0], num_steps=3) ** 2).sum()


def solved_in_python(w: Any, xs: Any) -> Any:
    slope = lambda t, y: tj.sin(y * w) - t
    y, loss, h = xs[0], 0.0, 1 / 6
    for step in range(6):
        t = h * step
        first = slope(t, y)
        second = slope(t + h / 2, y + h / 2 * first)
        third = slope(t + h / 2, y + h / 2 * second)
        y = y + h / 6 * (first + 2 * second + 2 * third + slope(t + h, y + h * third))
        loss = loss + (y**2).sum() * (step % 3 == 2)
    return loss


def ended(w: Any, xs: Any) -> Any:
    """Make about ten steps; each changes the sum by much more than derivatives by differences would."""
    return tj.dlwhile(
        lambda c: c.sum() < 60.0, lambda c: c * (1 + w) + tj.sin(c), xs[0] * xs[0], max_steps=30
    ).sum()


def ended_in_python(w: Any, xs: Any) -> Any:
    c = xs[0] * xs[0]
    while c.sum() < 60.0:
        c = c * (1 + w) + tj.sin(c)
    return c.sum()


LOOPS: dict[str, tuple[Loop, Loop]] = {
    "dlscan": (scanned, scanned_in_python),
    "dlscan of dlcheckpoint": (checkpointed, checkpointed_in_python),
    "dlcond": (chosen, lambda w, xs: (tj.tanh(w * xs) ** 2).sum()),
    "dlrk4": (solved, solved_in_python),
    "dlwhile": (ended, ended_in_python),
}


def of_rows(fun: Any) -> Any:
    """Return what dlmap of a function is to give, row by row."""
    return lambda rows: tj.stack([fun(rows[i]) for i in range(len(rows))])


def mapped(loop: Loop, one_by_one: bool, gradient: bool) -> Any:
    def fun(w: Any, xs: Any) -> Any:
        one = lambda w: tj.dlgradient(loop(w, xs), w) if gradient else loop(w, xs)
        each = of_rows(one) if one_by_one else tj.dlmap(one, over=0)
        return each(tj.stack([w, w * 1.2, w * 0.7]))

    return fun


DERIVATIVES: dict[str, Callable[[Loop, bool], Any]] = {
    "value": lambda loop, _: loop,
    "jvp": lambda loop, _: lambda w, xs: tj.jvp(lambda w: loop(w, xs), (w,), (V,)),
    "dlgradient": lambda loop, _: lambda w, xs: tj.dlgradient(loop(w, xs), (w, xs)),
    "hvp": lambda loop, _: lambda w, xs: tj.hvp(lambda w: loop(w, xs), w, V),
    "hessian": lambda loop, _: lambda w, xs: tj.hessian(lambda w: loop(w, xs), w),
    "jacobian": lambda loop, _: lambda w, xs: tj.jacobian(lambda w: loop(w, xs) * w, w),
    "dlmap": lambda loop, is_python: mapped(loop, is_python, False),
    "dlgradient in dlmap": lambda loop, is_python: mapped(loop, is_python, True),
}
NOT_IN_PYTHON = {"dlmap", "dlgradient in dlmap"}


CASES = [
    (loop, derivative)
    for loop in LOOPS
    for derivative in DERIVATIVES
    if loop != "dlwhile" or derivative not in NOT_IN_PYTHON  # its bound is a guard, which observations share
]


@pytest.mark.slow
@pytest.mark.parametrize(("loop", "derivative"), CASES)
def test_they_are_those_of_the_loop_in_python(loop: str, derivative: str) -> None:
    kept, python = LOOPS[loop]
    fun = DERIVATIVES[derivative](kept, False)
    reference = DERIVATIVES[derivative](python, True)
    accelerated = tj.dlaccelerate(fun)
    calls = [(W, XS), (W * 0.8, XS * 1.3)]
    wanted = [tj.tree.flatten(tj.dlfeval(reference, w, xs))[0] for w, xs in calls]
    for _ in range(3):
        for (w, xs), want in zip(calls, wanted, strict=True):
            for one, other in zip(tj.tree.flatten(accelerated(w, xs))[0], want, strict=True):
                np.testing.assert_allclose(np.asarray(one), np.asarray(other), rtol=1e-9, atol=1e-11)
    assert (accelerated.stats.programs, accelerated.stats.hits) == (1, 4)
    eager = tj.tree.flatten(tj.dlfeval(fun, W, XS))[0] if derivative not in NOT_IN_PYTHON else []
    for one, other in zip(eager, wanted[0], strict=False):
        np.testing.assert_allclose(np.asarray(one), np.asarray(other), rtol=1e-9, atol=1e-11)


class TestBounds:
    """dlwhile with the greatest number of steps."""

    @staticmethod
    def fun(x: Any) -> Any:
        last = tj.dlwhile(lambda c: c.sum() < 50.0, lambda c: c * 1.5 + tj.sin(c), x, max_steps=12)
        return last, tj.dlgradient(last.sum(), x)

    def test_one_program_for_any_number_of_steps(self) -> None:
        """None is made of 100, one of 40, twelve of a small number."""
        accelerated = tj.dlaccelerate(self.fun)
        for _ in range(3):
            for x in (3.0, 100.0, 40.0, 0.2):
                found = accelerated(tj.dlarray([x]))
                expected = tj.dlfeval(self.fun, tj.dlarray([x]))
                for one, other in zip(found, expected, strict=True):
                    np.testing.assert_allclose(np.asarray(one), np.asarray(other), rtol=1e-12)
        assert accelerated.stats.programs == 1

    def test_a_loop_that_does_not_end(self) -> None:
        accelerated = tj.dlaccelerate(self.fun)
        for _ in range(3):
            accelerated(tj.dlarray([3.0]))
        for call in (accelerated, lambda x: tj.dlfeval(self.fun, x)):
            with pytest.raises(ArgumentError, match="has not ended after max_steps=12 steps"):
                call(tj.dlarray([1e-9]))
        assert np.isfinite(np.asarray(accelerated(tj.dlarray([3.0]))[1])).all()

    def test_without_a_bound_there_is_no_gradient(self) -> None:
        loop = lambda x: tj.dlwhile(lambda c: c.sum() < 50.0, lambda c: c * 1.5, x).sum()
        for fun in (lambda x: tj.dlgradient(loop(x), x), lambda x: tj.jvp(loop, (x,), (x,))):
            with pytest.raises(GradientError, match="pass max_steps="):
                tj.dlaccelerate(fun)(tj.dlarray([3.0]))

    def test_containers_and_integers(self) -> None:
        def fun(x: Any) -> Any:
            carry = {"x": x, "n": 0}
            step = lambda c: {"x": c["x"] / 2, "n": c["n"] + 1}
            last = tj.dlwhile(lambda c: c["x"].sum() > 1.0, step, carry, max_steps=20)
            return last, tj.dlgradient(last["x"].sum(), x)

        accelerated = tj.dlaccelerate(fun)
        for _ in range(3):
            for x, steps in ((100.0, 7), (3.0, 2), (0.5, 0)):
                last, slope = accelerated(tj.dlarray([x]))
                assert last["n"].item() == steps and slope.tolist() == [0.5**steps]
        assert accelerated.stats.programs == 1


SHORT: dict[str, Callable[[Any, Any], Any]] = {
    "scan": lambda w, x: tj.dlscan(lambda c, a: (tj.tanh(c * w + a), None), x[0], x)[0],
    "product": lambda w, x: tj.dlscan(lambda c, a: (tj.tanh(c @ (w * x[:3]) + a), None), x[0], x)[0],
    "checkpoint": lambda w, x: tj.dlcheckpoint(lambda x: tj.tanh(x * w))(x),
    "cond": lambda w, x: tj.dlcond(w.sum() > -100, lambda: tj.tanh(x * w), lambda: x),
    "while": lambda w, x: tj.dlwhile(
        lambda c: c[1] < 3, lambda c: (tj.tanh(c[0] * w), c[1] + 1), (x, 0), max_steps=5
    )[0],
    "map": lambda w, x: tj.dlmap(lambda a: tj.tanh(a * w), 0)(x),
}


@pytest.mark.parametrize("name", SHORT)
def test_gradients_of_16_bits(name: str) -> None:
    """The cotangents of what all steps read are added in float32, in replays too."""
    loop = SHORT[name]
    fun = lambda w, x: tj.dlgradient(loop(w, x).sum(), (w, x))
    w, x = (tj.dlarray(np.asarray(array, np.float16)) for array in (W, XS))
    wide = tj.dlfeval(fun, *(array.astype(np.float64) for array in (w, x)))
    accelerated = tj.dlaccelerate(fun)
    for _ in range(3):
        for found, expected in zip(accelerated(w, x), wide, strict=True):
            assert found.dtype == np.float16
            np.testing.assert_allclose(
                np.asarray(found).astype(float), np.asarray(expected), rtol=0.02, atol=0.01
            )
    assert accelerated.stats.hits == 1
