# SPDX-License-Identifier: BSD-3-Clause
"""Activations: values against formulas and torch, huge arguments, derivatives, labels, messages."""

import numpy as np
import pytest
import scipy.special
from accelerated import dlaccelerate
from peers import pytorch
from programs import program_of

import tracejit as tj
from tracejit.errors import ArgumentError, DimsError
from tracejit.testing import check_gradients

X = np.array([-30.0, -3.0, -0.7, -1e-9, 0.3, 1.0, 4.0, 30.0])
SPECIAL = np.array([-np.inf, -1e30, -1e4, -100.0, 100.0, 1e4, 1e30, np.inf])

FORMULAS = {
    "relu": (tj.relu, lambda x: np.maximum(x, 0)),
    "leakyrelu": (tj.leakyrelu, lambda x: np.where(x > 0, x, 0.01 * x)),
    "leakyrelu 0.3": (lambda x: tj.leakyrelu(x, 0.3), lambda x: np.where(x > 0, x, 0.3 * x)),
    "sigmoid": (tj.sigmoid, scipy.special.expit),
    "softplus": (tj.softplus, lambda x: np.logaddexp(0, x)),
    "gelu": (tj.gelu, lambda x: x * scipy.special.ndtr(x)),
    "gelu tanh": (
        lambda x: tj.gelu(x, approximation="tanh"),
        lambda x: 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))),
    ),
}


def gradient(fun, x):
    """Return the derivative of an elementwise function at each element."""
    return tj.dlfeval(lambda x: tj.dlgradient(fun(x).sum(), x), tj.dlarray(x))._data


@pytest.mark.parametrize("name", FORMULAS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_values_against_formula(name, dtype):
    fun, formula = FORMULAS[name]
    result = fun(tj.dlarray(X.reshape(2, 4).astype(dtype), "CB"))
    assert (result.dtype, result.format) == (np.dtype(dtype), "CB")
    expected = formula(X.reshape(2, 4).astype(dtype).astype(np.float64))
    np.testing.assert_allclose(
        result._data, expected, rtol=4 * np.finfo(dtype).eps, atol=2 * np.finfo(dtype).eps
    )


@pytest.mark.parametrize("name", ["sigmoid", "softplus"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_relative_accuracy_of_small_results(name, dtype):
    fun, formula = FORMULAS[name]
    x = np.linspace(-80, 20, 101).astype(dtype)
    np.testing.assert_allclose(fun(x)._data, formula(x.astype(np.float64)), rtol=4 * np.finfo(dtype).eps)


@pytest.mark.parametrize("name", FORMULAS)
def test_derivatives(name):
    check_gradients(FORMULAS[name][0], X[1:-1], order=3)


@pytest.mark.parametrize("name", FORMULAS)
def test_emitted_code(name):
    fun = FORMULAS[name][0]
    x = tj.dlarray(np.concatenate([X, [0.0, -0.0, 1e3, -1e3]]).astype(np.float32))

    def step(x):
        y = fun(x + x)
        return y, tj.dlgradient(y.sum(), x)

    assert len(program_of(step, x, rtol=1e-5).rows) == 1


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_huge_arguments(dtype):
    x = SPECIAL.astype(dtype)
    low, high = np.zeros(4), x[4:]
    np.testing.assert_array_equal(tj.relu(x)._data, [*low, *high])
    np.testing.assert_allclose(tj.sigmoid(x)._data, [*low, 1, 1, 1, 1], atol=1e-40)
    np.testing.assert_allclose(tj.softplus(x)._data, [*low, *high], atol=1e-40)
    np.testing.assert_allclose(gradient(tj.sigmoid, x), np.zeros(8), atol=1e-40)
    np.testing.assert_allclose(gradient(tj.softplus, x), [*low, 1, 1, 1, 1], atol=1e-40)
    np.testing.assert_array_equal(tj.gelu(x[1:])._data, [0, 0, 0, *high])
    np.testing.assert_array_equal(gradient(tj.gelu, x[1:-1]), [0, 0, 0, 1, 1, 1])
    bounded = x[2:-2]
    np.testing.assert_array_equal(gradient(FORMULAS["gelu tanh"][0], bounded), [0, 0, 1, 1])


@pytest.mark.parametrize("name", FORMULAS)
def test_nan_stays(name):
    assert np.isnan(FORMULAS[name][0](np.float32("nan"))._data)


def test_kinks_by_convention():
    at_zero = np.array([0.0, -0.0])
    np.testing.assert_array_equal(gradient(tj.relu, at_zero), [0, 0])
    np.testing.assert_array_equal(gradient(tj.leakyrelu, at_zero), [0.01, 0.01])
    np.testing.assert_array_equal(gradient(tj.relu, np.array([np.finfo(float).eps])), [1])


def test_dtypes():
    np.testing.assert_array_equal(tj.relu(np.array([-2, 3], np.int8))._data, np.array([0, 3], np.int8))
    assert tj.relu(np.array([True, False])).dtype == bool
    assert tj.relu(np.array([-2, 3], np.int8)).dtype == np.int8
    for fun in (tj.leakyrelu, tj.sigmoid, tj.softplus, tj.gelu):
        assert fun(np.array([-2, 3], np.int32)).dtype == np.float64
    assert tj.softmax([1, 2], axis=0).dtype == np.float64
    assert tj.sigmoid(0).item() == 0.5


def test_scale_can_be_learned():
    x = np.array([-2.0, 3.0, -1.0])
    check_gradients(tj.leakyrelu, x, np.array(0.25))
    slope = tj.dlfeval(lambda a: tj.dlgradient(tj.leakyrelu(x, a).sum(), a), tj.dlarray(0.25))
    assert slope.item() == -3.0


@pytest.mark.parametrize("name", ["relu", "leakyrelu", "sigmoid", "softplus", "gelu", "gelu tanh"])
def test_against_torch(name):
    torch = pytorch()
    functional = torch.nn.functional
    theirs = {
        "relu": functional.relu,
        "leakyrelu": functional.leaky_relu,
        "sigmoid": torch.sigmoid,
        "softplus": functional.softplus,
        "gelu": functional.gelu,
        "gelu tanh": lambda x: functional.gelu(x, approximate="tanh"),
    }[name]
    x = np.array([-4.0, -1.0, 0.0, 0.5, 3.0, np.nan])
    tensor = torch.tensor(x, requires_grad=True)
    result = theirs(tensor)
    result.sum().backward()
    fun = FORMULAS[name][0]
    np.testing.assert_allclose(fun(x)._data, result.detach().numpy(), rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(gradient(fun, x), tensor.grad.numpy(), rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("fun", [tj.softmax, tj.logsoftmax])
@pytest.mark.parametrize("format", ["BC", "CB", "TBC", "BCSS", "C"])
def test_softmax_finds_channels(fun, format, rng):
    x = rng.standard_normal((2, 3, 4, 5)[: len(format)])
    formula = scipy.special.softmax if fun is tj.softmax else scipy.special.log_softmax
    expected = formula(x, axis=format.index("C"))
    result = fun(tj.dlarray(x, format))
    assert result.format == format
    np.testing.assert_allclose(result._data, expected, rtol=1e-13)
    by_option = fun(x, data_format=format)
    assert by_option.format is None
    np.testing.assert_array_equal(by_option._data, result._data)
    check_gradients(fun, tj.dlarray(x, format), order=2)


def test_softmax_over_axes(rng):
    x = rng.standard_normal((2, 3, 4))
    np.testing.assert_allclose(tj.softmax(x, axis=-1)._data, scipy.special.softmax(x, axis=-1), rtol=1e-13)
    spatial = tj.softmax(tj.dlarray(x, "CSS"), axis="S")
    assert spatial.format == "CSS"
    np.testing.assert_allclose(spatial._data, scipy.special.softmax(x, axis=(1, 2)), rtol=1e-13)


def test_softmax_of_huge_arguments():
    x = tj.dlarray(np.array([[1e30, -1e30, 0], [1e4, 1e4, -np.inf], [-3e38, -3e38, -3e38]], np.float32), "BC")
    expected = [[1, 0, 0], [0.5, 0.5, 0], [1 / 3] * 3]
    np.testing.assert_allclose(tj.softmax(x)._data, expected, rtol=1e-6)
    slopes = tj.dlfeval(lambda x: tj.dlgradient(tj.softmax(x)[:, 0].sum(), x), x)._data
    np.testing.assert_allclose(slopes, [[0, 0, 0], [0.25, -0.25, 0], [2 / 9, -1 / 9, -1 / 9]], rtol=1e-6)
    np.testing.assert_allclose(tj.logsoftmax(x)._data[1], [-np.log(2), -np.log(2), -np.inf], rtol=1e-6)


def test_softmax_of_nothing():
    for shape in ((0, 3), (3, 0)):
        assert tj.softmax(np.zeros(shape), data_format="BC").shape == shape
        assert tj.logsoftmax(np.zeros(shape), data_format="BC").shape == shape


def test_messages():
    with pytest.raises(
        DimsError, match=r"^softmax: an array of size 2x3 has no labels, but softmax sums over the chan"
    ):
        tj.softmax(np.zeros((2, 3)))
    with pytest.raises(
        DimsError, match=r"^logsoftmax: an array of size 2\(S\) x 3\(B\) has no channels \(C\)"
    ):
        tj.logsoftmax(tj.dlarray(np.zeros((2, 3)), "SB"))
    with pytest.raises(
        DimsError, match=r"^softmax: data_format='BC' is given for x of size 2\(B\) x 3\(C\), which"
    ):
        tj.softmax(tj.dlarray(np.zeros((2, 3)), "BC"), data_format="BC")
    with pytest.raises(DimsError, match=r"^softmax: data_format 'BCT' labels 3 axes, but the data has 2"):
        tj.softmax(np.zeros((2, 3)), data_format="BCT")
    with pytest.raises(DimsError, match=r"^softmax: axis 2 is out of range for an array of 2x3"):
        tj.softmax(np.zeros((2, 3)), axis=2)
    with pytest.raises(
        ArgumentError, match=r"^softmax: axis=1 and data_format='BC' both say where the channels"
    ):
        tj.softmax(np.zeros((2, 3)), axis=1, data_format="BC")
    with pytest.raises(ArgumentError, match=r'^gelu: approximation must be "none" or "tanh", not \'erf\''):
        tj.gelu(1.0, approximation="erf")


@pytest.mark.parametrize("dtype", [np.float64, np.float32], ids=lambda dtype: dtype.__name__)
def test_derivatives_of_saturated_units_have_all_digits(dtype):
    """y + 1 and y (1 - y) are 0, or have few digits, where y is close to -1 or 1."""
    x = np.array([-80.0, -40.0, -20.0, -6.0, -1.0, -1e-3, 0.0, 1e-3, 1.0, 6.0, 20.0, 40.0, 80.0], dtype)
    wide = x.astype(float)
    small = np.exp(-np.abs(wide))

    def slope(function):
        return lambda x: tj.dlgradient(function(x).sum(), x)

    cases = [
        (slope(np.expm1), np.exp(wide)),
        (slope(slope(np.expm1)), np.exp(wide)),
        (slope(tj.elu), np.exp(np.minimum(wide, 0.0))),
        (slope(lambda x: tj.elu(x, 0.5)), np.where(wide > 0, 1.0, 0.5 * np.exp(wide))),
        (slope(lambda x: tj.celu(x, 2.0)), np.exp(np.minimum(wide, 0.0) / 2)),
        (slope(tj.selu), 1.0507009873554805 * np.where(wide > 0, 1.0, 1.6732632423543772 * np.exp(wide))),
        (slope(tj.softplus), np.where(wide > 0, 1.0, small) / (1.0 + small)),
        (slope(slope(tj.softplus)), small / (1.0 + small) ** 2),
        (slope(slope(slope(tj.softplus))), -np.sign(wide) * small * (1.0 - small) / (1.0 + small) ** 3),
    ]  # fmt: skip
    for function, want in cases:
        replayed = dlaccelerate(function)
        for run in (lambda x, function=function: tj.dlfeval(function, x), replayed, replayed):
            np.testing.assert_allclose(tj.extractdata(run(x)), want, rtol=1e4 * np.finfo(dtype).eps)
