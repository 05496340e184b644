# SPDX-License-Identifier: BSD-3-Clause
"""Functions with a backward function of their own in loops and branches that stay so in a program.

The reference is the same loop in Python over plain operations, which dlgradient differentiates.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from loops import loops_of

import tracejit as tj
from tracejit.errors import DimsError, DTypeError, GradientError, TraceError

SCALE = tj.dlarray(np.array([1.0, 2.0, 0.5]))


@tj.custom_gradient
def softplus(x: Any) -> Any:
    return tj.log(1 + tj.exp(x)), x


@softplus.backward
def _(x: Any, dy: Any) -> Any:
    return dy * tj.sigmoid(x)


@tj.custom_gradient
def squashed(p: Any, x: Any) -> Any:
    """Residuals are an argument in a container, an output and a number; backward reads an array of the module."""
    y = tj.tanh(x * p["w"] * SCALE)
    return {"y": [y], "n": 3}, (p, x, y, 2.0)


@squashed.backward
def _(kept: Any, cotangents: Any) -> Any:
    p, x, y, two = kept
    (dy,) = cotangents["y"]
    inner = dy * (1 - y**two) * SCALE
    return {"w": inner * x, "unused": None}, inner * p["w"]


@tj.custom_gradient
def own_exp(x: Any) -> Any:
    return tj.exp(x), x


@own_exp.backward
def _(x: Any, dy: Any) -> Any:
    return dy * own_exp(x)  # which has a backward function again


@tj.kernel
def looped(x: Any, y: Any) -> None:
    for i in range(x.shape[0]):
        y[i] = math.sin(x[i]) * x[i]


@tj.kernel
def looped_slope(x: Any, y: Any) -> None:
    for i in range(x.shape[0]):
        y[i] = math.cos(x[i]) * x[i] + math.sin(x[i])


@tj.custom_gradient
def in_a_kernel(x: Any) -> Any:
    return looped(x), x


@in_a_kernel.backward
def _(x: Any, dy: Any) -> Any:
    return dy * looped_slope(x)


class Sine(tj.DifferentiableFunction):
    def __init__(self) -> None:
        super().__init__(save_inputs_for_backward=True)

    def forward(self, x: Any) -> Any:
        return np.sin(x)

    def backward(self, dy: Any, compute_gradients: Any, x: Any) -> Any:
        return dy * np.cos(x)


sine = Sine()

# By name: the function with a backward function, the same of plain operations, and the order of derivatives it has.
FUNCTIONS: dict[str, tuple[Any, Any, int]] = {
    "operations": (softplus, lambda x: tj.log(1 + tj.exp(x)), 3),
    "containers": (
        lambda x: squashed({"w": x * 0.5, "unused": SCALE}, x)["y"][0],
        lambda x: tj.tanh(x * (x * 0.5) * SCALE),
        3,
    ),
    "one within itself": (lambda x: own_exp(x * 0.3), lambda x: tj.exp(x * 0.3), 3),
    "kernels": (in_a_kernel, lambda x: tj.sin(x) * x, 1),
    "Python": (sine, tj.sin, 1),
}


def scanned(f: Any, w: Any, xs: Any, fun: Any = lambda step: step, reverse: bool = False) -> Any:
    def step(c: Any, x: Any) -> Any:
        c = f(c * w + x) * 0.5
        return c, c.sum()

    last, sums = tj.dlscan(fun(step), xs[0] * 0.1, xs, reverse=reverse)
    return last.sum() + (sums**2).sum()


def nested(f: Any, w: Any, xs: Any) -> Any:
    def outer(c: Any, x: Any) -> Any:
        return tj.dlscan(lambda d, _: (f(d * w + x) * 0.5, None), c, length=3)[0], None

    return tj.dlscan(outer, xs[0] * 0.1, xs)[0].sum()


def branched(f: Any, w: Any, xs: Any) -> Any:
    return (tj.dlcond(xs.sum() > 0, lambda x: f(x * w), lambda x: f(x + w) * 2, xs[0]) ** 2).sum()


LOOPS: dict[str, Callable[..., Any]] = {
    "dlscan": scanned,
    "dlscan backwards": lambda f, w, xs: scanned(f, w, xs, reverse=True),
    "dlscan of dlcheckpoint": lambda f, w, xs: scanned(f, w, xs, tj.dlcheckpoint),
    "dlscan in dlscan": nested,
    "dlcond": branched,
    "dlcheckpoint": lambda f, w, xs: (tj.dlcheckpoint(lambda x: f(x * w))(xs[0]) ** 2).sum(),
    "dlrk4": lambda f, w, xs: (
        tj.dlrk4(lambda t, y: f(y * w) - t * y, [0, 0.5, 1], xs[0], num_steps=3) ** 2
    ).sum(),
}


def derivatives(loss: Any, order: int) -> Any:
    def fun(w: Any, xs: Any) -> Any:
        found = [loss(w, xs)]
        for _ in range(order):
            found.append(tj.dlgradient(found[-1].sum(), w))
        return found

    return fun


@pytest.mark.slow
@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("loop", LOOPS)
def test_derivatives_are_those_of_the_loop_in_python(loop: str, function: str) -> None:
    own, plain, order = FUNCTIONS[function]
    order = min(order, 2)
    accelerated = tj.dlaccelerate(derivatives(lambda w, xs: LOOPS[loop](own, w, xs), order))
    reference = derivatives(lambda w, xs: LOOPS[loop](plain, w, xs), order)
    rng = np.random.default_rng(0)
    calls = [
        (tj.dlarray(rng.uniform(0.2, 0.9, 3)), tj.dlarray(sign * rng.uniform(0.1, 0.9, (5, 3))))
        for sign in (1, -1)
    ]
    wanted = [tj.dlfeval(reference, w, xs) for w, xs in calls]
    for _ in range(3):
        for (w, xs), want in zip(calls, wanted, strict=True):
            for one, other in zip(accelerated(w, xs), want, strict=True):
                np.testing.assert_allclose(np.asarray(one), np.asarray(other), rtol=1e-9, atol=1e-12)
    assert accelerated.stats.programs == 1
    if loop != "dlcheckpoint":
        assert loops_of(accelerated)


@pytest.mark.slow
def test_the_third_derivative() -> None:
    own, plain, order = FUNCTIONS["one within itself"]
    w, xs = tj.dlarray(np.array([0.2, 0.3, 0.4])), tj.dlarray(np.linspace(0.1, 0.5, 12).reshape(4, 3))
    accelerated = tj.dlaccelerate(derivatives(lambda w, xs: scanned(own, w, xs), order))
    expected = tj.dlfeval(derivatives(lambda w, xs: scanned(plain, w, xs), order), w, xs)
    for _ in range(3):
        for one, other in zip(accelerated(w, xs), expected, strict=True):
            np.testing.assert_allclose(np.asarray(one), np.asarray(other), rtol=1e-9)


def test_what_backward_reads_around_is_read_in_each_call() -> None:
    """An array of the module, which is bound to another one."""
    global SCALE
    kept = SCALE
    own, plain, _ = FUNCTIONS["containers"]
    fun = derivatives(lambda w, xs: scanned(own, w, xs), 1)
    reference = derivatives(lambda w, xs: scanned(plain, w, xs), 1)
    accelerated = tj.dlaccelerate(fun)
    w, xs = tj.dlarray(np.array([0.2, 0.3, 0.4])), tj.dlarray(np.linspace(0.1, 0.5, 12).reshape(4, 3))
    try:
        for factor in (1.0, 1.0, 1.0, 0.5, 0.5, 0.5):
            SCALE = kept * factor
            found, expected = accelerated(w, xs), tj.dlfeval(reference, w, xs)
            for one, other in zip(found, expected, strict=True):
                np.testing.assert_allclose(np.asarray(one), np.asarray(other), rtol=1e-12)
    finally:
        SCALE = kept
    assert accelerated.stats.hits == 4


def made(backward: Any) -> Any:
    @tj.custom_gradient
    def own(x: Any) -> Any:
        return x * 2.0, x

    own.backward(backward)
    return own


class WrongError(ValueError):
    pass


def raises(x: Any, dy: Any) -> Any:
    raise WrongError("not today")


def branches_on_the_cotangent(x: Any, dy: Any) -> Any:
    return dy if dy.sum() > 0 else -dy


def branches_on_a_residual(x: Any, dy: Any) -> Any:
    return dy if x.sum() > 0 else -dy


WRONG = {
    "raises": (raises, GradientError, "cannot be part of a loop.*WrongError: not today"),
    "no array": (lambda x, dy: "dy", DTypeError, "as gradient 1"),
    "another size": (lambda x, dy: dy.sum(), DimsError, "a gradient has the size of its argument"),
    "a cotangent decides": (branches_on_the_cotangent, GradientError, "decide what Python does"),
    "a residual decides": (branches_on_a_residual, GradientError, "decide what Python does"),
    "draws": (
        lambda x, dy: dy * tj.rand(3, like=dy),
        GradientError,
        "random numbers|generator",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_errors_come_with_the_gradient_only(name: str) -> None:
    backward, kind, text = WRONG[name]
    own = made(backward)
    w, xs = tj.dlarray(0.4), tj.dlarray(np.linspace(0.1, 0.5, 12).reshape(4, 3))
    forward = tj.dlaccelerate(lambda w, xs: scanned(own, w, xs))
    expected = scanned(lambda x: x * 2.0, w, xs).item()
    assert [forward(w, xs).item() for _ in range(3)] == pytest.approx([expected] * 3)
    assert loops_of(forward)
    for _ in range(2):
        with pytest.raises(kind, match=text):
            tj.dlaccelerate(lambda w, xs: tj.dlgradient(scanned(own, w, xs), w))(w, xs)


def test_a_write_of_backward_cannot_be_undone() -> None:
    total = tj.dlarray(np.zeros(3))

    def writes(x: Any, dy: Any) -> Any:
        total[:] = dy
        return dy

    w, xs = tj.dlarray(0.4), tj.dlarray(np.linspace(0.1, 0.5, 12).reshape(4, 3))
    with pytest.raises(TraceError, match="backward writes into an array that was made outside it"):
        tj.dlaccelerate(lambda w, xs: scanned(made(writes), w, xs))(w, xs)
