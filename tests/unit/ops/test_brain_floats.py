# SPDX-License-Identifier: BSD-3-Clause
"""bfloat16, a dtype of the package ml_dtypes: ops between bits and numbers, and arrays where the package is there."""

from typing import Any

import numpy as np
import pytest
from accelerated import dlaccelerate

import tracejit as tj
from tracejit import dlarray, nn
from tracejit.ops import OPS

SINGLE = np.dtype(np.float32)


@pytest.fixture
def brain() -> np.dtype:
    return np.dtype(pytest.importorskip("ml_dtypes").bfloat16)


@pytest.fixture(autouse=True)
def _quiet() -> Any:
    with np.errstate(all="ignore"):
        yield


def numbers() -> np.ndarray:
    """Return numbers halfway between two of bfloat16, their neighbours, random bits, and special ones."""
    bits = np.random.default_rng(0).integers(0, 2**32 - 1, 20000, np.uint32, True)
    middle = (np.arange(2**16, dtype=np.uint32) << 16) | 0x8000
    special = np.array([3.4e38, 1e-40, -0.0, np.inf, -np.inf, np.nan, 1.0], SINGLE)
    return np.concatenate([special, *[part.view(SINGLE) for part in (bits, middle, middle - 1, middle + 1)]])


def test_rounding_is_to_the_nearest_and_ties_to_even() -> None:
    x = numbers()
    x = x[np.isfinite(x)]
    found = OPS["brain_round"].numpy(x)
    bits = OPS["brain_bits"].numpy(x)
    np.testing.assert_array_equal(OPS["brain_value"].numpy(bits), found)
    below, above = (  # by their bits, where the sign apart the next number has the next bits
        ((x.view(np.uint32) >> 16) + step << 16).astype(np.uint32).view(SINGLE).astype(float)
        for step in (0, 1)
    )
    above = np.where(np.isinf(above), np.copysign(np.float64(2.0**128), x), above)
    gaps = np.abs(x - below), np.abs(above - x)
    even = (x.view(np.uint32) >> 16) % 2 == 0
    nearer = (gaps[0] < gaps[1]) | ((gaps[0] == gaps[1]) & even)
    want = np.where(nearer, below, above)
    np.testing.assert_array_equal(found, np.where(np.abs(want) == 2.0**128, np.copysign(np.inf, x), want))


@pytest.mark.slow
def test_casts_are_those_of_the_package(brain: np.dtype) -> None:
    x = numbers()
    step = dlaccelerate(lambda x: x.astype(brain))
    want = x.astype(brain)
    unknown = np.isnan(x)
    for call in (lambda x: x.astype(brain), step, step):
        have = tj.extractdata(call(dlarray(x)))
        assert have.dtype == brain
        np.testing.assert_array_equal(have.view(np.uint16)[~unknown], want.view(np.uint16)[~unknown])
        assert np.isnan(have.astype(SINGLE)[unknown]).all()
    wide = tj.extractdata(dlaccelerate(lambda x: x.astype(SINGLE))(dlarray(want)))
    np.testing.assert_array_equal(wide, want.astype(SINGLE))


def test_each_operation_rounds_once(brain: np.dtype) -> None:
    rng = np.random.default_rng(1)
    x, y = (rng.normal(size=(7, 5)).astype(brain) for _ in range(2))

    def rounded(z: np.ndarray) -> np.ndarray:
        return z.astype(brain).astype(SINGLE)

    def of_arrays(x: Any, y: Any) -> Any:
        z = x * y + x
        return z, np.maximum(z, y) / (y * y + 1), abs(z) * (z - 3)

    a, b = x.astype(SINGLE), y.astype(SINGLE)
    z = rounded(rounded(a * b) + a)
    want = z, rounded(np.maximum(z, b) / rounded(rounded(b * b) + 1)), rounded(np.abs(z) * rounded(z - 3))
    step = dlaccelerate(of_arrays)
    for call in (of_arrays, step, step):
        for have, expected in zip(call(dlarray(x), dlarray(y)), want, strict=True):
            assert have.dtype == brain
            np.testing.assert_array_equal(tj.extractdata(have).astype(SINGLE), expected)


def test_dtypes_of_results(brain: np.dtype) -> None:
    x = dlarray(np.array([1.0, -2.0, 3.0], SINGLE).astype(brain))
    assert (x * 2.5).dtype == (x + 1).dtype == x.sum().dtype == np.mean(x).dtype == (-x).dtype == brain
    assert (x + np.ones(3, np.int8)).dtype == brain
    assert (x + np.ones(3, SINGLE)).dtype == (x + np.ones(3, np.float16)).dtype == SINGLE
    assert np.where(x > 0, x, np.ones(3, np.float16)).dtype == SINGLE
    assert np.concatenate([x, x]).dtype == brain and np.concatenate([x, np.ones(3, SINGLE)]).dtype == SINGLE
    assert (x > 0.5).dtype == bool and x[1:].dtype == x.T.dtype == brain


def test_derivatives(brain: np.dtype) -> None:
    rng = np.random.default_rng(3)
    x, w = rng.normal(size=(6, 5)).astype(brain), rng.normal(size=(5, 4)).astype(brain)

    def step(x: Any, w: Any) -> Any:
        loss = np.mean(np.tanh(x @ w) ** 2)
        return loss, *tj.dlgradient(loss, [x, w])

    wide = tj.dlfeval(step, dlarray(x.astype(float)), dlarray(w.astype(float)))
    accelerated = dlaccelerate(lambda x, w: tj.dlfeval(step, x, w))
    for _ in range(2):
        found = accelerated(dlarray(x), dlarray(w))
    for have, want in zip(found, wide, strict=True):
        assert have.dtype == brain
        want = tj.extractdata(want)
        np.testing.assert_allclose(tj.extractdata(have).astype(float), want, atol=3e-2 * np.abs(want).max())


def test_an_ndarray_is_an_argument_of_every_evaluation(brain: np.dtype) -> None:
    x = np.array([0.5, 2.0], np.float32).astype(brain)
    slope = lambda x: tj.dlgradient((x * x).sum(), x)
    for fun in (lambda x: tj.dlfeval(slope, x), dlaccelerate(slope)):
        for _ in range(3):
            assert fun(x).astype(np.float32).tolist() == [1.0, 4.0]


def test_layers_keep_the_dtype(brain: np.dtype) -> None:
    x, table = dlarray(np.ones((2, 3), brain), "BC"), np.ones((3, 4), brain)
    assert tj.embed(dlarray([1, 2], "B"), table).dtype == tj.dropout(x).dtype == tj.gelu(x).dtype == brain
    net = tj.dlnetwork(
        [nn.FeatureInput(3, normalization="zscore", mean=np.zeros(3), standard_deviation=np.ones(3))]
    )
    assert net.predict(x).dtype == brain
    words = tj.dlnetwork([nn.SequenceInput(1), nn.Embedding(4, 10)], seed=0)
    numbers = dlarray(np.full((2, 3, 1), 7), "BTC")
    found = words.predict(numbers.astype(brain))
    np.testing.assert_array_equal(tj.extractdata(found), tj.extractdata(words.predict(numbers)))


def test_updates_take_parameters_of_it(brain: np.dtype) -> None:
    w, g = np.ones(3, brain), np.full(3, 0.5, brain)
    for update, arguments in (
        (tj.adamupdate, (None, None, 1, 0.25)),
        (tj.sgdmupdate, (None, 0.25)),
        (tj.rmspropupdate, (None, 0.25)),
    ):
        have = update(w, g, *arguments)
        want = update(w.astype(SINGLE), g.astype(SINGLE), *arguments)
        assert [part.dtype for part in have] == [brain] * len(have)
        for part, exact in zip(have, want, strict=True):
            np.testing.assert_allclose(tj.extractdata(part).astype(SINGLE), tj.extractdata(exact), rtol=2**-6)
