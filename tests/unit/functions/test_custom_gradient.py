# SPDX-License-Identifier: BSD-3-Clause
"""custom_gradient: gradients of any order, containers, what backward reads, and that it is fused."""

import pickle

import numpy as np
import pytest

import tracejit as tj
from tracejit import tree

X = np.linspace(-2.0, 2.0, 5)
SLOPE = {"scale": 1.0}


@tj.custom_gradient
def softplus(x):
    """Return log(1 + exp(x))."""
    return tj.log(1 + tj.exp(x)), x


@softplus.backward
def _(x, dy):
    return dy * tj.sigmoid(x) * SLOPE["scale"]


def plain(x):
    return tj.log(1 + tj.exp(x))


def orders(function):
    def fun(x):
        y = function(x).sum()
        slope = tj.dlgradient(y, x)
        curvature = tj.dlgradient(slope.sum(), x)
        return y, slope, curvature, tj.dlgradient(curvature.sum(), x)

    return fun


def same(found, expected):
    pairs = zip(tree.flatten(found)[0], tree.flatten(expected)[0], strict=True)
    return all(np.allclose(np.asarray(a), np.asarray(b)) for a, b in pairs)


def test_derivatives_of_all_orders_and_what_backward_reads():
    expected = tj.dlfeval(orders(plain), X)
    accelerated = tj.dlaccelerate(orders(softplus))
    for _ in range(4):
        assert same(tj.dlfeval(orders(softplus), X), expected) and same(accelerated(X), expected)
    assert accelerated.stats.hits == 2
    assert accelerated.source().count("def ") <= 6  # fused as the composition is
    SLOPE["scale"] = 3.0
    try:
        found = accelerated(X)
        assert same(found[0], expected[0]) and same(found[1], 3 * expected[1])
    finally:
        SLOPE["scale"] = 1.0


def test_outside_of_an_evaluation_and_by_name():
    assert same(softplus(X), np.log1p(np.exp(X))) and same(softplus(x=tj.dlarray(X)), np.log1p(np.exp(X)))
    assert softplus.__name__ == "softplus" and "Return log" in softplus.__doc__
    assert pickle.loads(pickle.dumps(softplus)) is softplus


@tj.custom_gradient
def layer(p, x, power):
    z = tj.sin(x)
    return {"y": p["w"] * x**power, "z": [z], "n": 3}, (p, x, power, z)


@layer.backward
def _(kept, cotangents):
    p, x, power, z = kept
    dy, (dz,) = cotangents["y"], cotangents["z"]
    assert cotangents["n"] is None
    slope = dy * p["w"] * power * x ** (power - 1) + dz * tj.cos(x) + 0 * z
    return {"w": (dy * x**power).sum(), "b": None}, slope, None


def layered(function):
    def fun(p, x):
        found = function(p, x, 3)
        loss = (found["y"] ** 2).sum() + (found["z"][0] ** 2).sum() * found["n"]
        by_p, by_x = tj.dlgradient(loss, p, x)
        return loss, by_p, by_x, tj.dlgradient((by_x**2).sum(), x, p)

    return fun


def test_containers_and_arguments_that_are_no_arrays():
    def composed(p, x, power):
        return {"y": p["w"] * x**power, "z": [tj.sin(x)], "n": 3}

    p = {"w": tj.dlarray(1.3), "b": tj.dlarray([1.0, 2.0])}
    x = tj.dlarray(X.reshape(1, 5), "CB")
    expected = tj.dlfeval(layered(composed), p, x)
    accelerated = tj.dlaccelerate(layered(layer))
    for _ in range(4):
        found = accelerated(p, x)
        assert same(found, expected) and found[2].format == "CB"
    assert accelerated.stats.hits == 2


def test_the_gradient_is_that_of_backward_not_of_forward():
    @tj.custom_gradient
    def through(x):
        return tj.round(x), None

    @through.backward
    def _(_, dy):
        return dy

    fun = tj.dlaccelerate(lambda x: tj.dlgradient((through(x) ** 2).sum(), x))
    for _ in range(3):
        assert fun(np.array([0.4, 1.6])).tolist() == [0.0, 4.0]


def test_a_python_function_inside():
    class Root(tj.DifferentiableFunction):
        def forward(self, x):
            return np.sqrt(x)

    root = Root()

    @tj.custom_gradient
    def sqrt(x):
        y = root(x)
        return y, y

    @sqrt.backward
    def _(y, dy):
        return dy / (2 * y)

    expected = tj.dlfeval(orders(tj.sqrt), X + 3)
    fun = tj.dlaccelerate(orders(sqrt))
    for _ in range(3):
        assert same(fun(X + 3), expected)


def test_inside_an_evaluation_around():
    inner = tj.dlaccelerate(lambda x: softplus(x).sum())
    outer = lambda x: tj.dlgradient(inner(x) * 2, x)
    expected = 2 * tj.dlfeval(orders(plain), X)[1]
    for _ in range(4):
        assert same(tj.dlfeval(outer, X), expected)


def test_methods():
    class Model:
        def __init__(self, by):
            self.by = by

        @tj.custom_gradient
        def scaled(self, x):
            return x * self.by, self.by

    @Model.__dict__["scaled"].backward
    def _(by, dy):
        return None, dy * by

    model = Model(tj.dlarray(3.0))
    assert tj.dlfeval(lambda x: tj.dlgradient(model.scaled(x).sum(), x), X).tolist() == [3.0] * 5


def test_rebound_functions_are_recorded_again():
    def made(by):
        @tj.custom_gradient
        def function(x):
            return x * 1, None

        @function.backward
        def _(_, dy):
            return dy * by

        return function

    holder = {"f": made(2.0)}
    fun = tj.dlaccelerate(lambda x: tj.dlgradient(holder["f"](x).sum(), x))
    for by in (2.0, 5.0):
        holder["f"] = made(by)
        for _ in range(3):
            assert fun(X).tolist() == [by] * 5
    assert fun.stats.hits == 2


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_checked(dtype):
    tj.testing.check_gradients(lambda x: softplus(x).sum(), X.astype(dtype))


def test_complex_numbers():
    @tj.custom_gradient
    def turn(x):
        return x * 1j, None

    @turn.backward
    def _(_, dy):
        return dy * -1j

    def slope(function):
        return lambda x: tj.dlgradient((abs(function(x) + x) ** 2).sum(), x)

    x = tj.dlarray(X * (1 - 1j))
    expected = np.asarray(tj.dlfeval(slope(lambda x: x * 1j), x))
    fun = tj.dlaccelerate(slope(turn))
    for _ in range(3):
        assert np.allclose(np.asarray(fun(x)), expected)
