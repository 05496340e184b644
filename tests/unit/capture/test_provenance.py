# SPDX-License-Identifier: BSD-3-Clause
"""Which constants can have been made of an array."""

import numpy as np
import pytest

from tracejit.capture.provenance import can_be

W = np.random.default_rng(0).normal(size=(40, 30))

MADE = {
    "a copy": W.copy(),
    "another dtype": W.astype(np.float32),
    "transposed": W.T,
    "joined": np.concatenate([W, np.zeros((5, 30))]),
    "a row": W[3],
    "an element": W[3, 4],
    "its negative": -W[3, 4],
    "computed": np.exp(W),
    "a mask": W > 0,
    "an order": np.argsort(W[0]),
    "the sum": W.sum(),
    "the mean": W.mean(),
    "the norm": np.linalg.norm(W),
    "the scale": 1 / np.abs(W).max(),
    "the variance": W.var(),
}
NOT = {
    "zeros": np.zeros(30),
    "ones": np.ones((30, 30)),
    "a range": np.arange(40.0),
    "a grid": np.linspace(-1, 1, 77),
    "a mask": np.tri(30),
    "a bias of attention": np.where(np.tri(30) > 0, 0.0, -np.inf),
    "a scale": np.sqrt(64.0),
    "a number": np.array(0.5),
    "truth": np.array(True),
    "not a number": np.array(np.nan),
}


@pytest.mark.parametrize("made", MADE.values(), ids=MADE)
def test_can_be(made):
    assert can_be(W, [np.zeros(30), np.asarray(made)])
    assert can_be(W.astype(np.float32), [np.asarray(made)])


@pytest.mark.parametrize("made", NOT.values(), ids=NOT)
def test_cannot_be(made):
    assert not can_be(W, [np.asarray(made)])


def test_nothing_is_made_of_nothing():
    assert not can_be(W, [])


def test_an_array_that_has_few_values_itself():
    assert can_be(np.eye(40) + np.eye(40, k=1), [np.ones(30)])
    assert not can_be(np.full((40, 40), 7.0), [np.ones(30)])


def test_other_dtypes():
    assert can_be(np.ones(3, complex), [])
    assert can_be(W, [np.ones(3, complex)])
    assert not can_be(W, [np.array(["text"])])
    assert can_be(np.arange(1200), [np.arange(1200)[5:9] ** 2])


def test_arrays_without_end():
    """No warning of NumPy's comes out."""
    assert can_be(W, [np.array([np.inf, -np.inf, np.nan, *range(20)])])
    assert not can_be(np.full((40, 40), np.inf), [np.arange(30.0)])
