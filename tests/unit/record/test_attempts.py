# SPDX-License-Identifier: BSD-3-Clause
"""A way of recording a call that fails leaves no guards, except those of changes that cannot be undone."""

from contextlib import nullcontext

import numpy as np
import pytest
from numbers_in_turn import X, follow
from scipy import interpolate, linalg, ndimage, signal, stats

import tracejit as tj
from tracejit.record import recorder as recorders
from tracejit.record.recorder import Recorder

# SciPy's code asks for values in each, so that the program calls it.
OF_ARRAYS = {
    "trim_mean": lambda x: stats.trim_mean(x, 0.1),
    "mode": lambda x: stats.mode(np.round(x)).mode,
    "rankdata": stats.rankdata,
    "median_filter": lambda x: ndimage.median_filter(x, 3),
    "gaussian_filter1d": lambda x: ndimage.gaussian_filter1d(x, 1.0),
    "shift": lambda x: ndimage.shift(x, 1.0),
    "find_peaks": lambda x: signal.find_peaks(x)[0],
    "medfilt": lambda x: signal.medfilt(x, 3),
    "periodogram": lambda x: signal.periodogram(x)[1],
    "toeplitz": linalg.toeplitz,
    "interp1d": lambda x: interpolate.interp1d(np.arange(len(x)), x)(0.5),
}


# Values decide how many elements some results have, which is a warning.
pytestmark = pytest.mark.filterwarnings("ignore::tracejit.TraceJitWarning")


def accelerated_beside(fun, calls):
    """Call a function with arrays and numbers in turn, accelerated and plain; return the accelerated one."""
    accelerated = tj.dlaccelerate(fun, audit=False)
    for args in calls:
        np.testing.assert_allclose(
            np.asarray(accelerated(*args)), fun(*args), rtol=1e-9, atol=1e-12, equal_nan=True
        )
    return accelerated


@pytest.mark.parametrize("name", OF_ARRAYS)
@pytest.mark.parametrize(
    "after", [lambda y: 0.0, lambda y: y.sum() + len(y)], ids=["by itself", "and used again"]
)
def test_a_selection_keeps_its_size(name, after):
    """The same number of elements at the first calls, and others later."""
    fun, rng = OF_ARRAYS[name], np.random.default_rng(3)

    def step(x):
        y = x[x > 0]
        return fun(y) + after(y)

    first = rng.normal(size=30)
    accelerated_beside(
        step, [(first,), (first * 1.5,), (first + 1e-9,), *[(rng.normal(size=30),) for _ in range(8)]]
    )


OF_NUMBERS = {
    "shift": lambda k: ndimage.shift(np.arange(5.0), k),
    "gaussian_filter": lambda k: ndimage.gaussian_filter(np.arange(9.0).reshape(3, 3), sigma=k),
    "convolve1d": lambda k: ndimage.convolve1d(np.arange(5.0), [k, 1.0]),
    "butter": lambda k: signal.butter(2, k / 50)[0],
    "firwin": lambda k: signal.firwin(5, k / 50),
    "trim_mean": lambda k: stats.trim_mean([k, 1, 2, 3, 4, 5, 6, 7, 8, 9], 0.1),
    "freqz": lambda k: abs(signal.freqz([k, 1], worN=4)[1]),
}


@pytest.mark.parametrize("name", OF_NUMBERS)
@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_a_number_of_numpy_varies_again(name, kind):
    fun = OF_NUMBERS[name]
    numbers = [(kind(k),) for k in (1.5, 2.5, 3.25, 3.25, 3.25, 4.5, 5.5, 1.25)]
    assert accelerated_beside(lambda k: fun(k) * k, numbers).stats.hits >= 3


@pytest.mark.parametrize("name", OF_NUMBERS)
def test_a_number_varies_again(name):
    """The third value, by which it becomes an input, comes twice: two recordings agree, whatever it was taken for."""
    fun = OF_NUMBERS[name]
    numbers = [(k,) for k in (1.5, 2.5, 3.25, 3.25, 3.25, 4.5, 5.5, 1.25)]
    assert accelerated_beside(fun, numbers).stats.hits >= 4
    assert accelerated_beside(lambda k: fun(k) * k + (k > 3), numbers).stats.hits >= 2


@pytest.mark.filterwarnings("error::tracejit.TraceJitWarning")
@pytest.mark.parametrize("audit", [True, False])
def test_what_is_left_of_a_failed_way_is_not_compared(audit):
    """Values decide how much SciPy's code computes before it is given up: two recordings of it agree nevertheless."""

    def step(x):
        share = float(x.sum())
        return signal.windows.tukey(6, share) * share

    accelerated = tj.dlaccelerate(step, audit=audit)
    for share in (0.2, 0.3, 1.5, -1.0, 0.4, 1.5, 2.0, 0.0, 0.5, -2.0):
        x = np.array([share])
        np.testing.assert_allclose(np.asarray(accelerated(x)), step(x), rtol=1e-9)
    assert accelerated.stats.hits >= 7


@pytest.mark.parametrize("name", ["median_filter", "trim_mean", "find_peaks", "periodogram"])
def test_an_array_that_became_an_ndarray_keeps_its_numbers(name):
    fun = OF_ARRAYS[name]

    def step(x, k):
        y = np.sin(k * np.arange(9.0))
        found = fun(y)
        return found + (x * y[:1]).sum()

    accelerated_beside(step, [(np.ones(2), k) for k in (1.5, 2.5, 3.5, 3.5, 3.5, 4.5, 5.5, 1.25, 1.5)])


def test_what_a_failed_way_made_of_it_has_no_guards():
    """SciPy's code selects from arrays of its own, whose numbers it takes for constants."""

    def step(k):
        return stats.binned_statistic(k * PLACES, k * PLACES * 2).statistic

    numbers = [(k,) for k in (1.5, 1.5, 2.5, 2.5, 3.25, 3.25, 3.25, 4.5, 1.75, 2.125)]
    assert accelerated_beside(step, numbers).stats.hits >= 4


PLACES = np.abs(np.random.default_rng(0).normal(size=14))


def test_what_an_integer_is_compared_with_is_forgotten():
    def step(x, k):
        current = recorders.thread.recorder
        try:
            with nullcontext() if current is None else current.attempt():
                assert k * k >= 0  # which a guard says fits
                raise ValueError
        except ValueError:
            pass
        return x * (k * k)

    follow(step, [1, 2, 3, 3, 4, 2**40, 5, 2**62, 7], X)


class TestAttempt:
    def test_an_outer_one_forgets_what_inner_ones_noted(self):
        undone = []
        recorder = Recorder("f", accelerating=True)
        with pytest.raises(ZeroDivisionError), recorder.attempt():
            with recorder.attempt():
                recorder.needed[0] = ("a use", None)
                recorder.attempts.changed(lambda: undone.append("inner"))
            recorder.attempts.changed(lambda: undone.append("outer"))
            raise ZeroDivisionError
        assert (undone, recorder.needed, bool(recorder.attempts)) == (["outer", "inner"], {}, False)

    def test_what_lasts_is_noted_again_for_each(self):
        noted = []
        recorder = Recorder("f", accelerating=True)
        with pytest.raises(ZeroDivisionError), recorder.attempt():
            with pytest.raises(KeyError), recorder.attempt():
                recorder.attempts.noted(lambda: noted.append("again"))
                raise KeyError
            raise ZeroDivisionError
        assert noted == ["again", "again"]

    def test_what_is_kept_settles_once(self):
        settled = []
        recorder = Recorder("f", accelerating=True)
        with recorder.attempt():
            with recorder.attempt():
                recorder.attempts.changed(lambda: None, lambda: settled.append("inner"))
            assert settled == []
        recorder.attempts.changed(lambda: None, lambda: settled.append("outside"))
        assert settled == ["inner"]


def test_a_number_that_a_kept_way_needs_is_a_true_one():
    kept = []

    def step(x, k):
        current = recorders.thread.recorder
        with nullcontext() if current is None else current.attempt():
            kept.append({k: 1})
        return x * k

    for k in (1.5, 2.5, 3.5, 4.5):
        tj.dlaccelerate(step)(np.ones(2), k)
    assert [*kept[-1]] == [4.5] and type(next(iter(kept[-1]))) is float
