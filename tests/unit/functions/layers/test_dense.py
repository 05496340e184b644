# SPDX-License-Identifier: BSD-3-Clause
"""fullyconnect: values, labels and order of axes, derivatives, what it records, messages."""

import numpy as np
import pytest
from programs import program_of

import tracejit as tj
from tracejit.errors import DimsError
from tracejit.record.recorder import Recorder
from tracejit.testing import check_gradients

SIZES = {"B": 2, "T": 3, "C": 4, "S": 5, "U": 6}
FORMATS = {  # format of the result
    "CB": "CB",
    "BC": "BC",
    "CBT": "CBT",
    "BCT": "BCT",
    "BTC": "BTC",
    "TBC": "TBC",
    "SSCB": "CB",
    "BCSS": "BC",
    "BSSC": "BC",
    "SCBT": "CBT",
    "SBCT": "BCT",
    "CSB": "CB",
    "CBS": "CB",
    "SBC": "BC",
    "BSCT": "BCT",
    "CUB": "CB",
    "SB": "CB",
    "BS": "BC",
    "C": "C",
}


def reference(x, format, weights, bias):
    """Return the sums over channels one observation at a time, in the labels of the result."""
    others = [axis for axis, label in enumerate(format) if label in "BT"]
    result = np.empty([x.shape[axis] for axis in others] + [len(weights)])
    for place in np.ndindex(*result.shape[:-1]):
        index = [slice(None)] * x.ndim
        for axis, i in zip(others, place, strict=True):
            index[axis] = i
        result[place] = weights @ x[tuple(index)].ravel() + bias
    have = "".join(format[axis] for axis in others) + "C"
    return result.transpose([have.index(label) for label in FORMATS[format]])


@pytest.fixture
def case(rng):
    def make(format):
        x = rng.standard_normal([SIZES[label] for label in format])
        channels = x.size // np.prod([SIZES[label] for label in format if label in "BT"], dtype=int)
        return x, rng.standard_normal((7, channels)), rng.standard_normal(7)

    return make


def recorded(*args):
    """Return the names of the ops that one call records."""
    with Recorder("fun") as recorder:
        tj.fullyconnect(*[recorder.input(x) for x in args])
        return [node.op.name for node in recorder.graph.nodes]


@pytest.mark.parametrize("format", FORMATS)
def test_values_and_labels(format, case):
    x, weights, bias = case(format)
    expected = reference(x, format, weights, bias)
    result = tj.fullyconnect(tj.dlarray(x, format), weights, bias)
    assert (result.format, result.shape) == (FORMATS[format], expected.shape)
    np.testing.assert_allclose(result._data, expected, rtol=1e-12)
    by_option = tj.fullyconnect(x, weights, bias, data_format=format)
    assert by_option.format is None
    np.testing.assert_array_equal(by_option._data, result._data)
    without = tj.fullyconnect(tj.dlarray(x, format), weights)
    np.testing.assert_allclose(without._data, reference(x, format, weights, 0 * bias), rtol=1e-12)


@pytest.mark.parametrize("format", ["CB", "BC", "BCT", "SBCT"])
def test_derivatives(format, case):
    x, weights, bias = case(format)
    check_gradients(tj.fullyconnect, tj.dlarray(x, format), weights, bias, order=2)


def test_nothing_is_copied(case):
    for format, ops in (
        ("BC", ["transpose", "matmul", "add"]),
        ("CB", ["matmul", "reshape", "add"]),
        ("BSSC", ["reshape", "transpose", "matmul", "add"]),
    ):
        x, weights, bias = case(format)
        assert recorded(tj.dlarray(x, format), tj.dlarray(weights), tj.dlarray(bias)) == ops


@pytest.mark.parametrize("format", ["BC", "CB", "BCT", "SSCB"])
def test_program_of_a_layer(format, case):
    x, weights, bias = case(format)

    def step(x, weights, bias):
        loss = tj.relu(tj.fullyconnect(x, weights, bias)).sum()
        return loss, tj.dlgradient(loss, (x, weights, bias))

    program = program_of(step, tj.dlarray(x, format), weights, bias, rtol=1e-10)
    if format in ("BC", "CB"):  # three products, one loop before the adjoint and none for transposes
        assert sum(row.note == "matmul" for row in program.rows) == 3
        assert (
            sum(row.note != "transpose" for row in program.rows) <= 5
        )  # a small right factor is turned first


def test_labels_of_weights_and_shapes_of_bias_do_not_matter(case):
    x, weights, bias = case("CB")
    x = tj.dlarray(x, "CB")
    expected = tj.fullyconnect(x, weights, bias)._data
    np.testing.assert_array_equal(
        tj.fullyconnect(x, tj.dlarray(weights, "UC"), bias[:, None])._data, expected
    )
    np.testing.assert_array_equal(tj.fullyconnect(x, weights, tj.dlarray(bias, "C"))._data, expected)
    assert tj.fullyconnect(x, weights[:1], 3.0).shape == (1, 2)


def test_float32_stays():
    x = tj.dlarray(np.ones((2, 3), np.float32), "BC")
    assert tj.fullyconnect(x, np.ones((4, 3), np.float32), np.ones(4, np.float32)).dtype == np.float32


def test_messages():
    x = tj.dlarray(np.zeros((4, 8)), "CB")
    with pytest.raises(DimsError) as caught:
        tj.fullyconnect(x, np.zeros((2, 3)))
    assert str(caught.value) == (
        "fullyconnect: weights have 3 columns but X ('CB', 4x8) has 4 channels; weights must be (outputs, channels). "
        "Check both sizes."
    )
    with pytest.raises(DimsError, match=r"weights have 3 columns but X .* Pass weights\.T\?$"):
        tj.fullyconnect(x, np.zeros((4, 3)))
    with pytest.raises(
        DimsError, match=r"^fullyconnect: weights are of size 4 but X \('CB', 4x8\) has 4 channels"
    ):
        tj.fullyconnect(x, np.zeros(4))
    for bias in (np.zeros(3), np.zeros((1, 3)), np.zeros((2, 2)), 0.0):
        with pytest.raises(
            DimsError, match=r"^fullyconnect: bias is of .*, but weights have 4 rows; bias must be"
        ):
            tj.fullyconnect(x, np.zeros((4, 4)), bias)
    with pytest.raises(DimsError, match=r"^fullyconnect: bias is of size 2x2, but"):
        tj.fullyconnect(x, np.zeros((4, 4)), np.zeros((2, 2)))
    with pytest.raises(
        DimsError, match=r"^fullyconnect: an array of size 4x8 has no labels, but fullyconnect sums over"
    ):
        tj.fullyconnect(np.zeros((4, 8)), np.zeros((2, 4)))
    with pytest.raises(
        DimsError, match=r"^fullyconnect: X \('BT', 4x8\) has no channels to sum over; expected"
    ):
        tj.fullyconnect(tj.dlarray(np.zeros((4, 8)), "BT"), np.zeros((2, 4)))
