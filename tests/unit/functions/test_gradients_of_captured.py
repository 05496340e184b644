# SPDX-License-Identifier: BSD-3-Clause
"""dlgradient by arrays that are no arguments: attributes, globals, variables of enclosing functions, items of dicts."""

import itertools

import numpy as np
import pytest
from accelerated import dlaccelerate

import tracejit as tj
from tracejit import GradientError, dlarray, dlfeval, dlgradient

X = np.array([0.5, -1.5, 2.0])
START = np.array([1.0, 2.0, -0.5])
GLOBAL = dlarray(START.copy())
ITEMS = {"w": dlarray(START.copy())}


class Model:
    def __init__(self, w):
        self.w = w
        self.layers = [{"w": w}, {"w": w}]
        self.inner = self


USES = {
    "once": (lambda w, x: (w * x).sum(), lambda w, x: x),
    "several times": (lambda w, x: (w * x + w**2 * w).sum(), lambda w, x: x + 3 * w**2),
    "through views": (lambda w, x: (w[1:] * x[1:]).sum() + w[0] * w[-1],
                      lambda w, x: np.array([w[2], x[1], x[2] + w[0]])),
    "through a reshape": (lambda w, x: (w.reshape(3, 1) * x).sum(), lambda w, x: np.full(3, x.sum())),
    "by a matrix product": (lambda w, x: w @ x + w @ w, lambda w, x: x + 2 * w),
    "by NumPy": (lambda w, x: np.sum(np.sin(w) * x), lambda w, x: np.cos(w) * x),
    "by an operand on the left": (lambda w, x: (x / w).sum(), lambda w, x: -x / w**2),
    "not at all": (lambda w, x: (x * x).sum(), lambda w, x: np.zeros(3)),
    "alone": (lambda w, x: (w**2).sum(), lambda w, x: 2 * w),
    "in a copy": (lambda w, x: (w.copy() * x).sum(), lambda w, x: x),
}  # fmt: skip


def steps_of_closure(loss, w):
    def step(x):
        y = loss(w, x)
        return y, dlgradient(y, w)

    return step


def steps_of_attribute(loss, w):
    model = Model(w)

    def step(x):
        y = loss(model.w, x)
        return y, dlgradient(y, model.w)

    return step


def steps_of_item(loss, w):
    params = {"w": w, "other": [dlarray(1.0)]}

    def step(x):
        y = loss(params["w"], x)
        gradients = dlgradient(y, params)
        assert gradients["other"][0].item() == 0.0
        return y, gradients["w"]

    return step


def steps_of_two_paths(loss, w):
    model = Model(w)

    def step(x):
        y = loss(model.layers[0]["w"], x)
        return y, dlgradient(y, model.inner.w)

    return step


def steps_of_default(loss, w):
    def step(x, w=w):
        y = loss(w, x)
        return y, dlgradient(y, w)

    return lambda x: step(x)


PLACES = [steps_of_closure, steps_of_attribute, steps_of_item, steps_of_two_paths, steps_of_default]


@pytest.mark.sampled
@pytest.mark.parametrize(("place", "use"), [*itertools.product(PLACES, USES)])
def test_right_however_it_is_reached_and_used(place, use):
    loss, expected = USES[use]
    w = dlarray(START.copy())
    plain = place(loss, w)
    fast = dlaccelerate(plain)
    for n in range(4):
        x = X * (n + 1)
        for run in (lambda x: dlfeval(plain, x), fast, lambda x: dlfeval(lambda x: fast(x), x)):
            y, gradient = run(x)
            values = tj.extractdata(w)
            np.testing.assert_allclose(tj.extractdata(gradient), expected(values, x), rtol=1e-12)
            np.testing.assert_allclose(y.item(), loss(values, x), rtol=1e-12)
        w += 0.2
    assert fast.stats.hits > 0


def test_of_a_global():
    def step(x):
        y = (GLOBAL * x).sum() + (ITEMS["w"] * x * x).sum()
        return dlgradient(y, GLOBAL, ITEMS)

    fast = dlaccelerate(step)
    for run in (lambda x: dlfeval(step, x), fast, fast, fast):
        first, items = run(X)
        assert first.tolist() == X.tolist() and items["w"].tolist() == (X * X).tolist()


def test_of_scalars():
    b, loose = dlarray(0.5), dlarray(np.array(2.0))
    step = lambda x: dlgradient((b * x).sum() + loose * b, b, loose)
    fast = dlaccelerate(step)
    for run in (lambda x: dlfeval(step, x), fast, fast, fast):
        assert [g.item() for g in run(X)] == [3.0, 0.5]


def test_second_derivatives():
    w = dlarray(START.copy())

    def step(x):
        first = dlgradient((w**3 * x).sum(), w)
        return dlgradient((first * first).sum(), w)

    fast = dlaccelerate(step)
    for run in (lambda x: dlfeval(step, x), fast, fast, fast):
        np.testing.assert_allclose(tj.extractdata(run(X)), 36 * START**3 * X**2, rtol=1e-12)


def test_two_steps_in_place():
    def step(model, x):
        for _ in range(2):
            loss = ((model.w - x) ** 2).sum()
            model.w -= 0.25 * dlgradient(loss, model.w)
        return loss

    expected = START.copy()
    plain, traced = Model(dlarray(START.copy())), Model(dlarray(START.copy()))
    fast = dlaccelerate(lambda x: step(traced, x))
    for _ in range(5):
        for _ in range(2):
            loss = ((expected - X) ** 2).sum()
            expected -= 0.5 * (expected - X)
        for run, model in ((lambda x: dlfeval(lambda x: step(plain, x), x), plain), (fast, traced)):
            np.testing.assert_allclose(run(X).item(), loss, rtol=1e-12)
            np.testing.assert_allclose(tj.extractdata(model.w), expected, rtol=1e-12)
    assert fast.stats.hits == 4


def test_the_target_before_a_write():
    def step(model, x):
        loss = (model.w * x).sum()
        model.w -= 1.0
        return dlgradient(loss, model.w)

    for wrap in (lambda f: lambda x: dlfeval(f, x), dlaccelerate):
        with pytest.raises(GradientError, match="y was computed before x was written"):
            wrap(lambda x: step(Model(dlarray(START.copy())), x))(X)


def test_of_two_evaluations():
    """What an accelerated function inside an evaluation reads is the same variable as outside it."""
    w = dlarray(START.copy())
    inner = dlaccelerate(lambda x: (w * x).sum())

    def outer(x):
        y = inner(x) + (w * w).sum() + inner(2 * x)
        return dlgradient(y, w)

    for _ in range(4):
        np.testing.assert_allclose(tj.extractdata(dlfeval(outer, X)), 3 * X + 2 * tj.extractdata(w))
        w += 1.0
    assert inner.stats.hits > 0


def test_labels():
    w = dlarray(np.ones((2, 3)), "CB")
    fast = dlaccelerate(lambda x: dlgradient((w * x).sum(), w))
    for run in (lambda x: dlfeval(lambda x: dlgradient((w * x).sum(), w), x), fast, fast, fast):
        gradient = run(dlarray(X, "B"))
        assert gradient.format == "CB" and gradient.shape == (2, 3) and gradient[1].tolist() == X.tolist()


@pytest.mark.parametrize(
    "wrap", [lambda f: lambda x: dlfeval(f, x), dlaccelerate], ids=["dlfeval", "dlaccelerate"]
)
class TestErrors:
    def test_an_ndarray(self, wrap):
        w = START.copy()
        with pytest.raises(
            tj.ArgumentError, match=r"ndarray; what NumPy computes with it is not recorded\. Make it a"
        ):
            wrap(lambda x: dlgradient((np.sin(w) * x).sum(), w))(X)

    def test_integers(self, wrap):
        w = dlarray([1, 2, 3])
        with pytest.raises(GradientError, match="x is 3 dlarray int64, expected floating point"):
            wrap(lambda x: dlgradient((w * x).sum(), w))(X)

    def test_elements_that_numpy_changes_in_the_function(self, wrap):
        elements = START.copy()
        w = dlarray(elements)

        def step(x):
            y = (w * x).sum()
            elements[0] += 1
            return dlgradient(y + (w * x).sum(), w)

        with pytest.raises(
            GradientError, match=r"x were changed by NumPy in the function|depends on x was writ"
        ):
            wrap(step)(X)


def test_an_array_that_the_function_makes():
    def step(x):
        w = dlarray(START.copy())
        return dlgradient((w * x).sum(), w)

    fast = dlaccelerate(step)
    for run in (lambda x: dlfeval(step, x), fast, fast, fast):
        assert run(X).tolist() == X.tolist()
