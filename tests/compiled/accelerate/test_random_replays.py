# SPDX-License-Identifier: BSD-3-Clause
"""Random numbers in accelerated functions on either backend: each call draws what it would have drawn uncompiled."""

import threading
import warnings

import numpy as np
import pytest
from draws import X, assert_draws_as_uncompiled, calls

import tracejit as tj
from tracejit import config, dlaccelerate, dlarray, dlfeval, dlgradient
from tracejit.compile.registry import registry


@pytest.fixture(params=["python", "cpu"])
def backend(request, monkeypatch):
    monkeypatch.setattr(config.settings, "backend", request.param)


@pytest.fixture(autouse=True)
def _seeded():
    with tj.rng(0):
        yield


@pytest.mark.usefixtures("backend")
def test_uniform_numbers_and_integers_are_the_same_to_the_bit():
    def draw(x):
        return (
            tj.rand(5), tj.rand(x.shape, like=x), tj.rand(), tj.randi(10, 3), tj.randi((-5, 2**40), 2, 2),
            tj.randperm(7), tj.randi(200, 5, dtype=np.uint8), tj.dropout(x, 0.3), tj.randperm(9, 4), tj.rand(0, 3),
            tj.randi((2, 9), like=x), tj.randi(4, x.shape, like=x),
        )  # fmt: skip

    found = assert_draws_as_uncompiled(draw, X)
    for i in range(9):
        assert len({str(each[i].tolist()) for each in found}) == 5, "frozen"


@pytest.mark.usefixtures("backend")
def test_normal_numbers_are_the_same_up_to_rounding():
    found = assert_draws_as_uncompiled(
        lambda x: (tj.randn(50, dtype=np.float32), x + tj.randn(x.shape, like=x)), X, exact=False
    )
    assert len({each[0][0].item() for each in found}) == 5


@pytest.mark.usefixtures("backend")
def test_a_training_step():
    def step(w, x):
        y = tj.dropout(tj.relu(x @ w), 0.5)
        for _ in range(3):
            y = y + 0.1 * tj.randn(y.shape, like=y)
        loss = (y * y).mean()
        return loss, dlgradient(loss, w)

    w = dlarray(np.linspace(-1, 1, 20).reshape(4, 5).astype(np.float32))
    assert_draws_as_uncompiled(step, w, tj.stripdims(X), exact=False)


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize("options", [{}, {"confirm": 0}, {"check_mode": "sample", "check_every": 3}], ids=str)
def test_branches_on_random_numbers_and_audits(options):
    def walk(x):
        if tj.rand() < 0.5:
            return x + tj.rand(2)
        first = tj.randi(3)
        if first > 0:
            return x - tj.rand(3)[:2]
        return x * tj.randi(100, 2) + int(first)

    walked = dlaccelerate(walk, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found, state = calls(walked, np.ones(2), count=100)
    expected, expected_state = calls(lambda x: dlfeval(walk, x), np.ones(2), count=100)
    assert state == expected_state
    for (have,), (want,) in zip(found, expected, strict=True):
        np.testing.assert_array_equal(have, want)
    assert walked.stats.hits > 80


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize("audit", [False, True])
def test_threads_that_replay_draw_different_numbers(audit):
    draw = dlaccelerate(lambda x: x + tj.rand(2) + tj.rand(2) * 0, audit=audit)
    draw(np.zeros(2)), draw(np.zeros(2))
    found = [[] for _ in range(4)]

    def work(mine):
        for _ in range(50):
            mine.append(tuple(draw(np.zeros(2)).tolist()))

    threads = [threading.Thread(target=work, args=(mine,)) for mine in found]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    drawn = [pair for mine in found for pair in mine]
    blocks = list(map(tuple, tj.rand(404, 2, generator=tj.Generator(0)).tolist()))
    assert len(set(drawn)) == 200 and set(drawn) <= set(blocks[4:])
    # A replay takes both of its blocks at once; in a recording, which an audit is, others may come in between.
    assert audit or sorted(drawn) == sorted(blocks[4::2])
    assert tj.rng() == (0, 404)


def test_sizes_share_kernels():
    @dlaccelerate
    def noisy(x):
        return tj.dropout(x + tj.rand(x.shape, like=x), 0.5)

    noisy(tj.zeros(8)), noisy(tj.zeros(8))
    before = len(registry)
    for n in (9, 0, 100):
        noisy(tj.zeros(n)), noisy(tj.zeros(n))
    assert len(registry) == before
