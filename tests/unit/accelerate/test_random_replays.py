# SPDX-License-Identifier: BSD-3-Clause
"""Random numbers in accelerated functions: each call draws what it would have drawn uncompiled."""

import re
import threading
import warnings

import numpy as np
import pytest
from draws import X, assert_draws_as_uncompiled, calls

import tracejit as tj
from tracejit import dlaccelerate, dlfeval, dlgradient
from tracejit.functions.rng import Draws, apart


@pytest.fixture(autouse=True)
def _seeded():
    with tj.rng(0):
        yield


def test_loops_and_second_derivatives():
    def penalty(x):
        total = 0.0
        for i in range(4):
            total = total + (tj.dropout(tj.tanh(x * (i + 1)), 0.25) ** 3).sum()
        slope = dlgradient(total, x)
        return dlgradient((slope * slope * tj.rand(x.shape, like=x)).sum(), x)

    assert_draws_as_uncompiled(penalty, X.astype(np.float64), exact=False)


def test_what_is_drawn_and_not_used_counts():
    def last(x):
        for _ in range(3):
            y = tj.rand(5)
        tj.randperm(3)
        return x.sum() * 0 + y

    assert_draws_as_uncompiled(last, X)


def test_the_noise_of_the_reference():
    # A function that adds rand(size, like=x) passes the check and gives new numbers at each call.
    noisy = dlaccelerate(lambda x: x + tj.rand(x.shape, like=x), check_mode="tolerance")
    plain = dlaccelerate(lambda x: x + tj.rand(x.shape, like=x))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        checked, state = calls(noisy, X)
    found, expected_state = calls(plain, X)
    assert state == expected_state
    for (have,), (want,) in zip(checked, found, strict=True):
        np.testing.assert_array_equal(have, want)
    assert len({each[0][0, 0].item() for each in found}) == 5


def test_a_check_draws_nothing():
    other = tj.Generator(2)
    reads_only = dlaccelerate(lambda x: x + tj.rand(x.shape, generator=other), check_mode="tolerance")
    for _ in range(4):
        reads_only(X)
    assert other.state == (2, 4 * 6) and tj.rng() == (0, 0)


def test_generators():
    g, h = tj.Generator(1), tj.Generator(2)

    def mixed(x):
        return (
            x.sum() * 0 + tj.rand(3, generator=g) + tj.rand(3),
            tj.rand(3, generator=h),
            tj.rand(2, generator=g),
        )

    found = []
    for fun in (dlaccelerate(mixed), lambda x: dlfeval(mixed, x)):
        g.state, h.state = tj.Generator(1).state, tj.Generator(2).state
        found.append((*calls(fun, X), g.state, h.state))
    assert found[0][1:] == found[1][1:] == ((3, 10), (1, 15), (2, 10))
    for have, want in zip(found[0][0], found[1][0], strict=True):
        for a, b in zip(have, want, strict=True):
            np.testing.assert_array_equal(a, b)


def test_a_generator_that_is_read_around_the_arguments():
    class Model:
        def __init__(self):
            self.generator = None

        @dlaccelerate
        def step(self, x):
            if self.generator is None:
                self.generator = tj.Generator(3)
            return x + tj.rand(2, generator=self.generator)

    model = Model()
    found = [model.step(np.zeros(2)).tolist() for _ in range(6)]
    assert found == tj.rand(6, 2, generator=tj.Generator(3)).tolist()
    model.generator = tj.Generator(4)
    found = [model.step(np.zeros(2)).tolist() for _ in range(4)]
    assert found == tj.rand(4, 2, generator=tj.Generator(4)).tolist()
    assert model.step.stats.hits == 5 and model.step.stats.uncompiled == 0
    assert "self.generator is <Generator with seed 4>" in model.step.explain()


def test_a_generator_is_an_argument():
    noisy = dlaccelerate(lambda x, g: x + tj.rand(x.shape, generator=g), confirm=0)
    g, h = tj.Generator(1), tj.Generator(1)
    found = [noisy(X, g), noisy(X, g), noisy(X, h), noisy(X, h)]
    np.testing.assert_array_equal(found[:2], found[2:])
    assert not (found[0] == found[1]).any()
    assert g.state == h.state == (1, 12) and noisy.stats.traces == 2


def test_a_generator_that_is_made_inside_begins_anew_at_each_call():
    def same(x, seed):
        g = tj.Generator(seed)
        return x + tj.rand(x.shape, generator=g), tj.rand(3, generator=g), tj.rand(3)

    found = assert_draws_as_uncompiled(lambda x: same(x, 5), X)
    for each in found[1:]:
        np.testing.assert_array_equal(each[0], found[0][0])
        np.testing.assert_array_equal(each[1], found[0][1])
        assert not (each[2] == found[0][2]).any()


@pytest.mark.parametrize("check_mode", ["none", "tolerance"])
def test_an_accelerated_function_inside_an_evaluation(check_mode):
    @dlaccelerate(check_mode=check_mode)
    def layer(x):
        return tj.dropout(x * x, 0.5), tj.rand(3)

    def slope(x):
        y, _ = layer(x)
        z, noise = layer(x)
        once = dlgradient((y * z).sum(), x)
        return y, z, once, dlgradient((once * once).sum(), x), noise

    def plain(x):
        y, _ = layer.function(x)
        z, noise = layer.function(x)
        once = dlgradient((y * z).sum(), x)
        return y, z, once, dlgradient((once * once).sum(), x), noise

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found, state = calls(dlfeval, slope, X)
    expected, expected_state = calls(dlfeval, plain, X)
    assert state == expected_state
    for have, want in zip(found, expected, strict=True):
        for a, b in zip(have, want, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-6)


def test_an_accelerated_function_inside_an_accelerated_one():
    inner = dlaccelerate(lambda x: x * tj.rand(x.shape, like=x))
    found, state = calls(dlaccelerate(lambda x: (inner(x) + inner(x), tj.rand())), X)
    assert inner.stats.calls == 0
    plain = inner.function
    expected, expected_state = calls(lambda x: (plain(x) + plain(x), tj.rand()), X)
    assert state == expected_state
    assert [[a.tolist() for a in each] for each in found] == [[a.tolist() for a in each] for each in expected]


def test_a_check_of_a_function_that_evaluates_another():
    inner = dlaccelerate(lambda x: tj.dropout(x, 0.5))

    def outer(x):
        y = inner(x)
        tj.clear_cache(inner)
        return y + inner(x)

    noisy = dlaccelerate(outer, check_mode="tolerance")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        _, state = calls(noisy, X)
    assert state == (3, 5 * 2 * 3)


def restored(x):
    state = tj.rng()
    first = tj.rand(3)
    tj.rng(state)
    return first, tj.rand(3), tj.rand(2)


def seeded(x):
    y = tj.rand(2)
    with tj.rng(7):
        y = y + tj.rand(2)
    return y + tj.rand(2)


def set_from_outside(x):
    G.state = tj.RngState(5, len(calls_made))
    calls_made.append(1)
    return tj.rand(2, generator=G)


calls_made = []


@pytest.mark.parametrize(
    ("fun", "what"),
    [(restored, "read"), (seeded, "read"), (set_from_outside, "set"), (lambda x: G.state, "read")],
)
def test_a_function_that_reads_or_sets_a_state_runs_uncompiled(fun, what):
    accelerated = dlaccelerate(fun)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        calls_made.clear()
        found, state = calls(accelerated, X)
    calls_made.clear()
    expected, expected_state = calls(lambda x: dlfeval(fun, x), X)
    assert state == expected_state and accelerated.stats.hits == 0
    plain = [[np.asarray(leaf).tolist() for leaf in each] for each in (*found, *expected)]
    assert plain[:5] == plain[5:]
    text = (
        f"{fun.__qualname__} runs uncompiled for these arguments: the state of a generator of random numbers is "
        f"{what}, which a replay would not do, at {__file__}:NN. Do it outside; for the same numbers at each call "
        "draw from a generator that is made inside: rand(size, generator=Generator(seed))."
    )
    (warning,) = caught
    assert warning.category is tj.NotAcceleratedWarning
    assert re.fullmatch(re.escape(text).replace("NN", r"\d+"), str(warning.message))


G = tj.Generator()


def test_what_a_replay_draws_is_given_back_if_it_does_not_count():
    g = tj.Generator(4)
    fun = dlaccelerate(lambda x: x + tj.rand(2, generator=g))
    first = [fun(np.zeros(2)) for _ in range(3)]
    (entry,) = fun._cache.variants.values()
    (trace,) = entry.traces
    assert isinstance(trace.state, Draws)
    (before,) = trace.state.fetch()
    assert before.tolist() == [4, 3]
    # The function itself is called next.
    assert g.state == (4, 3)
    trace.state.fetch()
    np.testing.assert_array_equal(tj.rand(8, generator=tj.Generator(4))[6:], tj.rand(2, generator=g))
    trace.state.fetch()
    np.testing.assert_array_equal(fun(np.zeros(2)), tj.rand(10, generator=tj.Generator(4))[8:])
    trace.state.fetch()
    trace.state.accepted()
    assert g.state == (4, 6)
    # What another thread has drawn meanwhile stays.
    trace.state.fetch()
    in_thread(lambda: tj.rand(2, generator=g))
    assert g.state == (4, 8)
    assert len(first) == 3 and [guard.name for guard in trace.state.guards()] == ["closure g"]


def in_thread(work):
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


def test_a_recording_in_which_another_thread_draws_is_not_kept():
    g, disturb = tj.Generator(0), [True]

    @dlaccelerate
    def noisy(x):
        y = x + tj.rand(2, generator=g)
        if disturb:
            in_thread(lambda: tj.rand(6, generator=g))
        return y, tj.rand(2, generator=g)

    numbers = tj.rand(100, generator=tj.Generator(0)).tolist()
    y, z = noisy(np.zeros(2))
    assert y.tolist() + z.tolist() == numbers[:2] + numbers[8:10]
    disturb.clear()
    for i in (10, 14, 18):
        y, z = noisy(np.zeros(2))
        assert y.tolist() + z.tolist() == numbers[i : i + 4]
    assert noisy.stats.hits == 1 and noisy.stats.traces == 2  # recorded and confirmed


def test_an_error_in_the_function_leaves_what_was_drawn_before_it():
    fail = [True]

    @dlaccelerate
    def noisy(x):
        y = x + tj.rand(2)
        if fail:
            raise ZeroDivisionError
        return y + tj.rand(2)

    with pytest.raises(ZeroDivisionError):
        noisy(np.zeros(2))
    assert tj.rng() == (0, 1)
    fail.clear()
    found = [noisy(np.zeros(2)) for _ in range(3)]
    expected = tj.rand(14, generator=tj.Generator(0))[2:].reshape(3, 2, 2).sum(1)
    np.testing.assert_array_equal(found, expected)


def test_draws_apart_change_nothing():
    tj.rand(1)
    g = tj.Generator(1)
    with apart({g: np.array([7, 0])}):
        assert tj.rng() == (0, 1) and g.state == (7, 0)
        tj.rng(5)
        tj.rand(4), tj.rand(4, generator=g)
        with apart():
            assert tj.rng() == (5, 2) and g.state == (7, 2)
            tj.rand(4)
        assert tj.rng() == (5, 2)
    assert tj.rng() == (0, 1) and g.state == (1, 0)
