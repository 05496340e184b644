# SPDX-License-Identifier: BSD-3-Clause
"""embed against NumPy's indexing and PyTorch: labels, orders, repeated numbers, derivatives, replays."""

import numpy as np
import pytest
from peers import pytorch

import tracejit as tj
from tracejit import dlarray
from tracejit.errors import BoundsError

TABLE = np.random.default_rng(0).normal(size=(6, 4))


def value(x) -> np.ndarray:
    return tj.extractdata(x)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(
    ("format", "labels", "shape"),
    [
        ("BT", "BTC", (2, 3)),
        ("T", "TC", (5,)),
        ("CBT", "CBT", (1, 2, 3)),
        ("BC", "BC", (3, 1)),
        ("SBS", "SBSC", (2, 1, 3)),
        ("B", "BC", (0,)),
    ],
)
def test_values_and_labels(format: str, labels: str, shape: tuple[int, ...], dtype: str) -> None:
    numbers, table = np.random.default_rng(1).integers(0, 6, shape), TABLE.astype(dtype)
    want = table[numbers]
    if "C" in format:
        want = np.moveaxis(np.squeeze(want, format.index("C")), -1, format.index("C"))
    for weights in (table, dlarray(table, "UC"), dlarray(np.ascontiguousarray(table.T), "CU")):
        y = tj.embed(dlarray(numbers, format), weights)
        np.testing.assert_array_equal(value(y), want, strict=True)
        assert y.format == labels
    y = tj.embed(numbers, table.T, data_format=format, weights_format="CU")
    np.testing.assert_array_equal(value(y), want, strict=True)
    assert y.format is None


def test_unformatted_numbers_of_any_type() -> None:
    for dtype in ("int64", "int32", "uint8"):
        np.testing.assert_array_equal(value(tj.embed(np.array([[5, 0]], dtype), TABLE)), TABLE[[[5, 0]]])
    np.testing.assert_array_equal(value(tj.embed(3, TABLE)), TABLE[3])
    assert tj.embed([1], np.ones((2, 3), int)).dtype == np.float64


def gradient(numbers: np.ndarray, table: np.ndarray, ct: np.ndarray):
    return lambda w: tj.dlgradient((tj.embed(numbers, w) * ct).sum(), w)


@pytest.mark.parametrize("numbers", [[0, 5, 2, 2, 2, 0], [3], [], [1, 1], list(range(6))])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_the_gradient_adds_up_repeated_numbers(numbers: list[int], dtype: str) -> None:
    index = np.array(numbers, np.int64)
    ct = np.random.default_rng(2).normal(size=(len(numbers), 4)).astype(dtype)
    table = TABLE.astype(dtype)
    want = np.zeros_like(table)
    np.add.at(want, index, ct)  # one after the other, in this order
    np.testing.assert_array_equal(value(tj.dlfeval(gradient(index, table, ct), dlarray(table))), want)
    step = tj.dlaccelerate(lambda i, w, c: tj.dlgradient((tj.embed(i, w) * c).sum(), w))
    for _ in range(3):
        np.testing.assert_array_equal(value(step(index, dlarray(table), ct)), want)


def test_derivatives() -> None:
    numbers = np.array([[0, 5, 2], [2, 2, 0]])
    tj.testing.check_gradients(lambda w: tj.embed(numbers, w) ** 3, dlarray(TABLE), order=2)


def test_replays_check_numbers() -> None:
    step = tj.dlaccelerate(lambda i, w: tj.embed(i, w).sum())
    for _ in range(3):
        step(np.array([0, 1]), dlarray(TABLE))
    for wrong in (6, -1):
        with pytest.raises(BoundsError):
            value(step(np.array([0, wrong]), dlarray(TABLE)))


def test_pytorch() -> None:
    torch = pytorch()
    numbers = np.random.default_rng(3).integers(0, 6, (3, 5))
    weights = torch.tensor(TABLE, requires_grad=True)
    y = torch.nn.functional.embedding(torch.tensor(numbers), weights)
    (y**2).sum().backward()
    found = tj.dlfeval(lambda w: tj.dlgradient((tj.embed(numbers, w) ** 2).sum(), w), dlarray(TABLE))
    np.testing.assert_allclose(value(found), weights.grad.numpy(), rtol=1e-13)
