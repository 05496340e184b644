# SPDX-License-Identifier: BSD-3-Clause
"""check_gradients must pass right rules and fail wrong ones."""

import dataclasses

import numpy as np
import pytest

import tracejit as tj
from tracejit import ArgumentError, config, dlarray
from tracejit.ops import OPS
from tracejit.testing import check_gradients

X = np.linspace(-1.0, 1.5, 6).reshape(2, 3)


@pytest.fixture
def wrong(monkeypatch):
    """Replace the adjoint of an op by one that is off by a factor of 1 + 1e-6."""

    def replace(name, **fields):
        op = OPS[name]

        def vjp(b, node, ct):
            parts = [part() if callable(part) else part for part in op.vjp(b, node, ct)]
            return tuple(part if part is None else b.mul(part, 1.0 + 1e-6) for part in parts)

        monkeypatch.setitem(OPS, name, dataclasses.replace(op, vjp=vjp, **fields))

    return replace


def model(params, x):
    hidden = tj.tanh(x @ params["w"] + params["b"])
    return {"loss": (hidden**2).mean(), "hidden": hidden, "count": x.size}


PARAMS = {"w": dlarray(np.linspace(0.1, 0.9, 12).reshape(3, 4)), "b": dlarray(np.linspace(-1, 1, 4), "C")}


@pytest.mark.parametrize("order", [1, 2])
def test_right_rules_pass(order):
    check_gradients(model, PARAMS, X, order=order)
    check_gradients(lambda x: tj.erf(x) * np.sqrt(x**2 + 1) / (2 + np.cos(x)), X, order=order)


def test_third_order():
    check_gradients(lambda x: np.exp(np.sin(x)), X, order=3)


@pytest.mark.parametrize(
    "fun",
    [
        lambda x: np.abs(x + 0.05) * x,
        lambda x: np.maximum(x, 0.3 * x) * np.floor(x),
        lambda x: x.max(axis=1) * x.min(),
        lambda x: tj.where(x > 0.1, x**2, -x),
        lambda x: x * tj.stop_gradient(np.abs(x) * x),
        lambda x: x * tj.stop_gradient(x * x),
        lambda x: x * tj.extractdata(x),
        lambda x: x[0] * x[:, 1:].sum() if x[0, 0].item() < 0 else x,
        lambda x: x[[0, 0, 1], 1],
        lambda x: tj.arctan2(x, x + 3) + np.cbrt(x + 3),
    ],
)
def test_kinks_constants_and_branches(fun):
    away_from_kinks = X + 0.07
    check_gradients(fun, away_from_kinks, order=2)


def test_float32():
    check_gradients(lambda x: np.tanh(x.astype(np.float32)) * x, X.astype(np.float32))
    check_gradients(lambda x: np.abs(x.astype(np.float32) + 0.05) * x, X)


def test_wrong_by_a_millionth_fails_the_complex_step(wrong):
    wrong("tanh")
    with pytest.raises(
        AssertionError, match=r"by args\[0\]\['b'\].*complex step \(relative error 1e-06, allowed"
    ):
        check_gradients(model, PARAMS, X)
    check_gradients(model, PARAMS, X, rtol=1e-5)


def test_wrong_second_derivative(wrong):
    wrong("cos")  # occurs in the adjoint of sine only
    check_gradients(np.sin, X)
    with pytest.raises(AssertionError, match=r"sin \(derivative 2\) by args\[0\]"):
        check_gradients(np.sin, X, order=2)


def test_wrong_rule_fails_the_difference(wrong, monkeypatch):
    op = OPS["abs"]
    vjp = lambda b, node, ct: (b.mul(ct, b.mul(b.sign(node.inputs[0]), 1.001)),)
    monkeypatch.setitem(OPS, "abs", dataclasses.replace(op, vjp=vjp))
    with pytest.raises(AssertionError, match="by central difference"):
        check_gradients(lambda x: np.abs(x + 0.05), X)


@pytest.mark.parametrize("offset", [0.0, 1e4, -1e6])
def test_derivatives_that_are_small_beside_the_value(offset):
    """A difference of small steps has a relative error of up to 1e-5 here, by rounding."""
    check_gradients(lambda x: np.abs(x + 0.05) ** 3 + offset, X, order=2)


@pytest.mark.parametrize("offset", [0.0, 1e4])
def test_a_slightly_wrong_rule_beside_a_large_value(offset, monkeypatch):
    op = OPS["abs"]
    vjp = lambda b, node, ct: (b.mul(ct, b.mul(b.sign(node.inputs[0]), 1.00001)),)
    monkeypatch.setitem(OPS, "abs", dataclasses.replace(op, vjp=vjp))
    with pytest.raises(AssertionError, match="relative error 1e-05, allowed 1e-06"):
        check_gradients(lambda x: np.abs(x + 0.05) + offset, X)


def test_a_domain_that_ends_nearby():
    """Large steps leave it, so their differences are NaN."""
    check_gradients(lambda x: np.sqrt(np.abs(x - 1e-4) * np.where(x > 0, 1, np.nan)) + 1e5, np.array([1e-3]))


def test_missing_rule_fails(monkeypatch):
    monkeypatch.setitem(OPS, "tanh", dataclasses.replace(OPS["tanh"], vjp=lambda b, node, ct: (None,)))
    with pytest.raises(AssertionError, match=r"is 0.0 by dlgradient"):
        check_gradients(np.tanh, X)


def test_nan_fails():
    with pytest.raises(AssertionError, match="log gives nan at args"):
        check_gradients(np.log, np.array([-1.0]))


def test_tolerances():
    with pytest.raises(AssertionError, match="allowed 0"):
        check_gradients(lambda x: np.exp(np.sin(x)) ** 3, X, rtol=0.0, atol=0.0)


def test_names_the_argument():
    def off(x, *, slope=None):
        return tj.cast(tj.cast(x["a"][1], np.int64), np.float64) + x["a"][0]

    check_gradients(off, {"a": [X + 0.3, X + 0.3]})


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: check_gradients(np.sin, X, order=0), "order must be a positive integer, not 0"),
        (lambda: check_gradients(np.sin, np.array([1, 2])), "args of sin hold no floating-point array"),
        (lambda: check_gradients(lambda x: 3.0, X), "returns no traced floating-point dlarray"),
    ],
)
def test_errors(call, text):
    with pytest.raises(ArgumentError, match=text):
        call()


def test_accelerated_functions_are_checked_by_differences(monkeypatch):
    monkeypatch.setattr(config.settings, "backend", "python")
    cube = tj.dlaccelerate(lambda x: (x**3).sum())
    check_gradients(cube, tj.dlarray([1.0, 2.0]))
    check_gradients(lambda x: cube(x) * 2.0, tj.dlarray([1.0, 2.0]))


@pytest.mark.parametrize(
    "fun", [lambda x: (np.abs(x * 1j) ** 2).sum(), lambda x: (np.fft.fft(x) * np.exp(1j * x)).imag.sum()]
)
def test_complex_numbers_on_the_way_are_checked_by_differences(fun):
    """The imaginary part of the complex step cannot be told from theirs."""
    check_gradients(fun, np.array([1.0, 2.0]), order=2)


def test_assert_max_traces():
    double = tj.dlaccelerate(lambda x: 2 * x)
    double.__qualname__ = "double"
    with tj.testing.assert_max_traces(double, 2):
        for n in range(5):
            double(np.full(2, float(n)))
    text = "double was recorded, or ran uncompiled, 2 times, expected at most 1"
    with pytest.raises(AssertionError, match=text) as e, tj.testing.assert_max_traces(double, 1):
        for n in range(2):
            double(np.full(3, float(n)))
    assert "The last call: " in str(e.value) and "confirmed the trace for x: 3 float64" in str(e.value)
    text = "assert_max_traces: expected an accelerated function, not function"
    with pytest.raises(tj.ArgumentError, match=text), tj.testing.assert_max_traces(lambda x: x, 1):
        pass


def test_assert_max_traces_counts_uncompiled_calls():
    refused = tj.dlaccelerate(lambda x: x + tj.extractdata(x))
    with pytest.warns(tj.NotAcceleratedWarning):
        refused(np.ones(1000))
    text = "2 times, expected at most 1"
    with pytest.raises(AssertionError, match=text), tj.testing.assert_max_traces(refused, 1):
        refused(np.ones(1000)), refused(np.ones(1000))
