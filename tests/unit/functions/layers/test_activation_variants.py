# SPDX-License-Identifier: BSD-3-Clause
"""Activations against their formulas and PyTorch, at special values, and their derivatives."""

import numpy as np
import pytest
from peers import pytorch

import tracejit as tj
from tracejit import dlarray

X = np.array([-1000.0, -20, -4, -2.5, -1, -0.3, -1e-9, 0.0, 1e-9, 0.3, 1, 2.5, 4, 20, 1000.0])


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softplus(x):
    return np.maximum(x, 0) + np.log1p(np.exp(-abs(x)))


CASES = {  # ours, the formula, PyTorch's function, points where it is not smooth
    "elu": (lambda x: tj.elu(x, 0.7), lambda x: np.where(x > 0, x, 0.7 * np.expm1(np.minimum(x, 0))),
            lambda f, t: f.elu(t, 0.7), (0,)),
    "selu": (tj.selu,
             lambda x: 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * np.expm1(np.minimum(x, 0))),
             lambda f, t: f.selu(t), (0,)),
    "celu": (lambda x: tj.celu(x, 0.7), lambda x: np.where(x > 0, x, 0.7 * np.expm1(np.minimum(x, 0) / 0.7)),
             lambda f, t: f.celu(t, 0.7), ()),
    "swish": (tj.swish, lambda x: x * sigmoid(x), lambda f, t: f.silu(t), ()),
    "swish 1.5": (lambda x: tj.swish(x, 1.5), lambda x: x * sigmoid(1.5 * x), None, ()),
    "mish": (tj.mish, lambda x: x * np.tanh(softplus(x)), lambda f, t: f.mish(t), ()),
    "hardsigmoid": (tj.hardsigmoid, lambda x: np.clip(x / 6 + 0.5, 0, 1), lambda f, t: f.hardsigmoid(t), (-3, 3)),
    "hardswish": (tj.hardswish, lambda x: x * np.clip(x / 6 + 0.5, 0, 1), lambda f, t: f.hardswish(t), (-3, 3)),
    "hardtanh": (lambda x: tj.hardtanh(x, -2, 3), lambda x: np.clip(x, -2, 3),
                 lambda f, t: f.hardtanh(t, -2, 3), (-2, 3)),
    "clippedrelu": (lambda x: tj.clippedrelu(x, 6), lambda x: np.clip(x, 0, 6), lambda f, t: f.relu6(t), (0, 6)),
    "prelu": (lambda x: tj.prelu(x, 0.2), lambda x: np.where(x > 0, x, 0.2 * x), None, (0,)),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_values(name: str, dtype: str) -> None:
    ours, formula, _, _ = CASES[name]
    x = X.astype(dtype)
    y = ours(dlarray(x, "S"))
    assert y.dtype == dtype and y.format == "S"
    with np.errstate(all="ignore"):
        want = formula(x.astype("float64"))
    eps = np.finfo(dtype).eps
    np.testing.assert_allclose(tj.extractdata(y), want, rtol=8 * eps, atol=8 * eps)
    assert np.isnan(tj.extractdata(ours(np.array([np.nan])))).all()
    assert ours([1, 2]).dtype == np.float64


@pytest.mark.parametrize("name", CASES)
def test_derivatives(name: str) -> None:
    ours, _, _, kinks = CASES[name]
    x = np.array([v for v in X if v not in kinks and 1e-3 < abs(v) < 30])
    tj.testing.check_gradients(ours, dlarray(x), order=2)
    gradient = tj.dlfeval(lambda z: tj.dlgradient(ours(z).sum(), z), dlarray(X))
    assert np.isfinite(tj.extractdata(gradient)).all()


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case[2]])
def test_pytorch(name: str) -> None:
    torch = pytorch()
    ours, _, theirs, _ = CASES[name]
    x = X[X != 3]
    tensor = torch.tensor(x, requires_grad=True)
    y = theirs(torch.nn.functional, tensor)
    y.sum().backward()
    found = tj.dlfeval(lambda z: (ours(z), tj.dlgradient(ours(z).sum(), z)), dlarray(x))
    np.testing.assert_allclose(tj.extractdata(found[0]), y.detach().numpy(), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(
        tj.extractdata(found[1]), tensor.grad.numpy(), rtol=1e-7, atol=1e-12
    )  # float32 constants


@pytest.mark.parametrize("format", ["BC", "CB", "BCS", "BSC", "C"])
def test_prelu_by_channel(format: str) -> None:
    shape = [{"B": 2, "C": 3, "S": 4}[label] for label in format]
    x, alpha = np.random.default_rng(0).normal(size=shape), np.array([0.1, -0.2, 0.3])
    spread = alpha.reshape([3 if label == "C" else 1 for label in format])
    y = tj.prelu(dlarray(x, format), alpha)
    np.testing.assert_allclose(tj.extractdata(y), np.where(x > 0, x, spread * x))
    assert tj.prelu(x, alpha, data_format=format).format is None
    tj.testing.check_gradients(lambda x, a: tj.prelu(x, a), dlarray(x, format), dlarray(alpha), order=2)


@pytest.mark.parametrize("format", ["BC", "CB", "BCS", "BSC", "C"])
def test_glu(format: str) -> None:
    shape = [{"B": 2, "C": 6, "S": 4}[label] for label in format]
    x = np.random.default_rng(0).normal(size=shape)
    first, second = np.split(x, 2, format.index("C"))
    want = first * sigmoid(second)
    np.testing.assert_allclose(tj.extractdata(tj.glu(dlarray(x, format))), want, rtol=1e-14)
    np.testing.assert_allclose(tj.extractdata(tj.glu(x, axis=format.index("C"))), want, rtol=1e-14)
    assert tj.glu(x, data_format=format).format is None and tj.glu(dlarray(x, format)).format == format
    tj.testing.check_gradients(tj.glu, dlarray(x, format), order=2)


def test_hardswish_of_infinite_numbers() -> None:
    x = dlarray(np.array([-np.inf, np.inf, -1e300, 1e300, np.nan]))
    y, gradient = tj.dlfeval(lambda x: (tj.hardswish(x), tj.dlgradient(tj.hardswish(x).sum(), x)), x)
    np.testing.assert_array_equal(tj.extractdata(y), [0, np.inf, 0, 1e300, np.nan])
    np.testing.assert_array_equal(tj.extractdata(gradient), [0, 1, 0, 1, np.nan])


def test_learnable_parameters() -> None:
    x = dlarray(np.array([-2.0, -0.5, 0.7]))
    for function in (tj.elu, tj.celu, tj.swish):
        tj.testing.check_gradients(function, x, dlarray(0.8), order=2)


def test_hardtanh_without_limits_gives_no_view() -> None:
    x = np.ones(3)
    y = tj.hardtanh(x, -np.inf, np.inf)
    y += 1
    assert y.tolist() == [2, 2, 2] and x.tolist() == [1, 1, 1]
