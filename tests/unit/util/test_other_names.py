# SPDX-License-Identifier: BSD-3-Clause
"""Names of other libraries: what the remedies name exists, and messages say it."""

import importlib
import re

import numpy as np
import pytest

import tracejit as tj
from tracejit import nn
from tracejit.util.other_names import FUNCTIONS, LAYERS, TENSORS

pytestmark = pytest.mark.whole("messages")
X = tj.dlarray([[1.0, 2.0]])


@pytest.mark.parametrize("text", sorted({*FUNCTIONS.values(), *LAYERS.values(), *TENSORS.values()}))
def test_what_a_remedy_names_exists(text):
    names = re.findall(r"\b(tj|nn|np|x)\.(\w+)((?:\.\w+)*)", text)
    assert names or text.startswith(("a @ b", "f.source()"))
    for start, name, more in names:
        found = getattr({"tj": tj, "nn": nn, "np": np, "x": X}[start], name)
        for each in more.split(".")[1:]:
            found = getattr(found, each)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function(name):
    with pytest.raises(AttributeError) as error:
        getattr(tj, name)
    assert str(error.value) == f"tj.{name}: there is no such name; {FUNCTIONS[name]}."


@pytest.mark.parametrize("name", LAYERS)
def test_a_layer(name):
    with pytest.raises(AttributeError, match=rf"^nn\.{name}: there is no such name; .*\.$"):
        getattr(nn, name)


@pytest.mark.parametrize("name", TENSORS)
def test_an_attribute_of_a_tensor(name):
    with pytest.raises(AttributeError) as error:
        getattr(X, name)
    assert str(error.value) == f"'dlarray' object has no attribute {name!r}: {TENSORS[name]}."
    with pytest.raises(AttributeError, match=rf"^'dlarray' object has no attribute '{name}': "):
        setattr(X, name, True)
    assert name not in dir(X) and not hasattr(tj.dlarray, name) and not hasattr(np.ndarray, name)


def test_an_attribute_of_a_tensor_in_a_recorded_function():
    def fun(x):
        return np.zeros(2).detach() + x

    with pytest.raises(AttributeError, match=r"tj\.stop_gradient\(x\) cuts the derivative"):
        tj.dlaccelerate(fun)(np.ones(2))


@pytest.mark.parametrize(
    ("package", "name", "advice"),
    [
        (tj, "dlGradient", "the name is tj.dlgradient"),
        (tj, "checkLayer", "the name is tj.checklayer"),
        (tj, "lstmLayer", "the name is nn.LSTM"),
        (tj, "fullyConnectedLayer", "the name is nn.FullyConnected"),
        (tj, "Linear", LAYERS["Linear"]),
        (tj, "full_connect", "tj.fullyconnect is similar"),
        (tj, "frobnicate", "dir(tracejit) lists those there are"),
        (nn, "ReLU", "the name is nn.Relu"),
        (nn, "convolution2dLayer", "the name is nn.Convolution2d"),
        (nn, "BatchNormalisation", "nn.BatchNormalization is similar"),
        (nn, "Frobnicate", "dir(tracejit.nn) lists those there are"),
    ],
)
def test_another_spelling(package, name, advice):
    with pytest.raises(AttributeError) as error:
        getattr(package, name)
    start = "nn" if package is nn else "tj"
    assert str(error.value) == f"{start}.{name}: there is no such name; {advice}."


def test_what_import_asks_for():
    assert not hasattr(tj, "__wrapped__") and not hasattr(nn, "_private")
    with pytest.raises(AttributeError, match=r"^module 'tracejit' has no attribute '_private'$"):
        tj._private  # noqa: B018 - raises
    assert importlib.import_module("tracejit.doctor").__name__ == "tracejit.doctor"
