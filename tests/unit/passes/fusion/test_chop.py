# SPDX-License-Identifier: BSD-3-Clause
"""Long chains are cut where equal pieces make equal kernels."""

import random
from unittest import mock

import numpy as np
import pytest
from effort import sweep
from graphs import assert_same, random_case
from hypothesis import given, settings
from hypothesis import strategies as st
from programs import program_of

import tracejit as tj
from tracejit.ir import evaluate
from tracejit.passes.fusion import chop
from tracejit.pipeline import build
from tracejit.runtime.python import PythonExecutable


@settings(max_examples=sweep(10, 60, sample=4))
@given(st.integers(0, 2**32 - 1), st.sampled_from([(1, 2), (2, 5), (4, 9)]))
def test_cuts_anywhere_keep_results(seed, sizes):
    maker = random_case(random.Random(seed), 20, ("float64", "float32"))
    if maker is None:
        return
    with mock.patch.multiple(chop, SMALLEST=sizes[0], LARGEST=sizes[1]):
        program = build(maker.graph)
    assert_same(maker, PythonExecutable(program)(maker.arrays), evaluate(maker.graph, maker.arrays))


def softmax_like(x):
    shifted = x - x.max(axis=1, keepdims=True)
    y = tj.exp(shifted) / tj.exp(shifted).sum(axis=1, keepdims=True)
    return (y * tj.log(y + 1)).sum(axis=1), y.sum(axis=0), (y * y).sum()


@pytest.mark.parametrize("sizes", [(1, 1), (1, 2), (1, 3), (2, 4), (3, 7)])
def test_cuts_between_the_passes_of_rows(sizes):
    with mock.patch.multiple(chop, SMALLEST=sizes[0], LARGEST=sizes[1]):
        program_of(softmax_like, np.linspace(-1.0, 2.0, 12).reshape(3, 4))


def rows_and_totals(seed):
    """Return a function that mixes values of all elements, values of rows, and totals of both."""
    rnd = random.Random(seed)
    steps = [(rnd.randrange(9), rnd.randrange(100), rnd.randrange(100)) for _ in range(rnd.choice([6, 14]))]

    def function(x):
        last = x.ndim - 1
        full, rows, found = [x], [(x * x).sum(last)], []
        for kind, one, other in steps:
            a, r = full[one % len(full)], rows[other % len(rows)]
            if kind == 0:
                full.append(tj.tanh(a) + x)
            elif kind == 1:
                full.append(a / (1 + abs(r)[..., None]))
            elif kind == 2:
                rows.append(tj.sin(a).sum(last))
            elif kind == 3:
                rows.append(a.max(last) * 0.5)
            elif kind == 4:
                found.append((r * r / (1 + r * r)).sum())
            elif kind == 5:
                found.append(r.max() if one % 2 else tj.exp(-r * r).prod())
            elif kind == 6:
                found.append((r / (2 + r * r)).sum(0))
            elif kind == 7:
                full.append(tj.exp(-a * a) * r[..., None])
            else:
                rows.append(tj.tanh(r + rows[-1]))
        return (*found, full[-1].sum(), rows[-1].sum())

    return function


@pytest.mark.sampled
@pytest.mark.parametrize("seed", range(120))
def test_cuts_between_values_of_rows_and_their_totals(seed):
    """In silence, totals of rows that another piece had computed were as many times too large as a row is long."""
    size = [(3, 4), (2, 3, 4), (5, 1), (1, 4)][seed % 4]
    with mock.patch.multiple(chop, SMALLEST=1 + seed % 3, LARGEST=2 * (1 + seed % 3) + seed % 7):
        program_of(rows_and_totals(seed), np.linspace(-1.0, 2.0, int(np.prod(size))).reshape(size))


def pendulum(theta, q, p, steps, h=0.05):
    def rate(q, p):
        return p, -theta[0] * tj.sin(q) - theta[1] * p

    loss = 0.0
    for _ in range(steps):
        k1, l1 = rate(q, p)
        k2, l2 = rate(q + h / 2 * k1, p + h / 2 * l1)
        q, p = q + h * k2, p + h * l2
        loss = loss + (q * q).sum()
    return loss, tj.dlgradient(loss, theta)


def kernels(steps):
    theta, q, p = np.array([1.0, 0.1]), np.linspace(0.0, 1.0, 3), np.zeros(3)
    program = program_of(lambda *args: pendulum(*args, steps), theta, q, p)
    return {kernel.name for kernel in program.kernels}


@pytest.mark.slow
def test_a_longer_loop_needs_the_kernels_of_a_shorter_one():
    """The pieces at the ends differ; all others are equal, whatever their number."""
    shorter, longer = kernels(35), kernels(60)
    assert len(longer) == len(shorter)
    assert len(longer - shorter) <= 2


@pytest.mark.slow
def test_pieces_have_allowed_sizes():
    for count in (97, 100, 119, 120, 121, 500, 1000):
        with tj.record.recorder.Recorder("chain") as recorder:
            x = recorder.input(tj.dlarray(np.ones(2)))
            for i in range(count):
                x = tj.sin(x) if i % 7 else x * 0.3
        pieces = chop.cut(recorder.graph.nodes)
        assert sum(map(len, pieces)) == count
        assert [node for piece in pieces for node in piece] == recorder.graph.nodes
        assert all(chop.SMALLEST <= len(piece) <= chop.LARGEST for piece in pieces)
