# SPDX-License-Identifier: BSD-3-Clause
"""Loops over short rows run over several rows at a time."""

import random
from unittest import mock

import numpy as np
import pytest
from effort import sweep
from graphs import assert_same, random_case, strided
from hypothesis import given, settings
from hypothesis import strategies as st
from programs import program_of

import tracejit as tj
from tracejit.ir import evaluate
from tracejit.passes.loops import tiles
from tracejit.pipeline import build
from tracejit.runtime.python import PythonExecutable


def layer(x, bias):
    return tj.tanh(x + bias)


def gradient(x, bias):
    y = tj.tanh(x + bias)
    loss = (y * y).sum()
    return loss, tj.dlgradient(loss, x, bias)


def column_sums(x, bias):
    return x.sum(axis=0), (x * bias).max(axis=0)


def names(program):
    return [row.kernel.name.rpartition("_")[0] for row in program.rows]


def arrays(rows, columns):
    rng = np.random.default_rng(0)
    return rng.standard_normal((rows, columns)), rng.standard_normal(columns)


@settings(max_examples=sweep(10, 80, sample=4))
@given(st.integers(0, 2**32 - 1))
def test_tiles_agree_with_the_reference(seed):
    rnd = random.Random(seed)
    maker = random_case(rnd, 20, ("float64", "float32", "int64"))
    if maker is None:
        return
    pairs = [strided(rnd, array) for array in maker.arrays]
    with mock.patch.multiple(tiles, LEAST=4, _SMALLEST=2):
        program = build(maker.graph, [layout for _, layout in pairs])
    found = PythonExecutable(program)([array for array, _ in pairs])
    assert_same(maker, found, evaluate(maker.graph, maker.arrays))


@pytest.mark.parametrize(
    ("function", "launches"),
    [(layer, ["copy", "add_tanh"]), (gradient, ["copy", "add_tanh_mul", "sum"]), (column_sums, None)],
)
@pytest.mark.parametrize("columns", [2, 3, 10, 20])
def test_short_rows_run_several_at_a_time(function, launches, columns):
    program = program_of(function, *arrays(480, columns))
    if launches is not None and columns > 2:
        assert names(program) == launches
        tiled = program.rows[1].arguments
        assert tiled[0] * tiled[1] == 480 * columns
        assert tiled[1] > 96


def test_rows_along_several_axes_run_several_at_a_time():
    rng = np.random.default_rng(0)
    images, bias = rng.standard_normal((6, 4, 20, 10)), rng.standard_normal(10)
    program = program_of(layer, images, bias)
    assert names(program) == ["copy", "add_tanh"]
    assert program.rows[1].arguments[1] % 64 == 0
    apart = program_of(lambda x, bias: tj.tanh(x[:, ::2] + bias), images, bias)
    assert names(apart) == ["add_tanh"]


def test_few_rows_and_long_rows_stay_as_they_are():
    assert names(program_of(layer, *arrays(100, 10))) == ["add_tanh"]
    assert names(program_of(layer, *arrays(100, 64))) == ["add_tanh"]
    assert names(program_of(layer, *arrays(127, 10))) == ["add_tanh"]  # a prime number of rows has no tiles


def test_rows_with_gaps_stay_as_they_are():
    x, bias = arrays(40, 60)
    assert names(program_of(lambda x, bias: tj.tanh(x[:, ::2] + bias[::2]), x, bias)) == ["add_tanh"]
    assert names(program_of(lambda x, bias: tj.tanh(x + bias + x.sum(axis=1, keepdims=True)), x, bias)) == [
        "add_sum_tanh"
    ]
