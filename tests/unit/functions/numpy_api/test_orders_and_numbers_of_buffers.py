# SPDX-License-Identifier: BSD-3-Clause
"""Buffers that numbers which vary are written into, and the order in memory of new arrays; NumPy is the oracle."""

import warnings

import numpy as np
import pytest

from tracejit import ArgumentError, dlaccelerate, dlarray, dlfeval


def an_element(x, v, t):
    v[0] = t
    x[:, 1] = t
    x[t > 100] = t


def a_ring(x, v, t):
    buffer, places = np.zeros(4), np.zeros(4, int)
    buffer[1] = t
    buffer[2:] = 2 * t
    places[0] = t
    return buffer[:3] * v, places[:3] * v


def one_value(x, v, t):
    v.fill(t)
    return np.full(3, t) + v, np.full_like(v, t), np.array([t] * 3) * v, np.asarray(t) * v, np.array(t) + v


def functions_that_write(x, v, t):
    np.copyto(v, t, where=v > 0)
    np.add.at(x, ([0, 0], [1, 1]), t)
    np.put(x, [3, 4], t + 1)
    np.putmask(x, x > 1, t)
    np.fill_diagonal(x, t)
    np.multiply(x, t, out=x)


def options(x, v, t):
    kept, contiguous, other = np.asarray(x), np.ascontiguousarray(x), np.array(x, order="C")
    copied, same, tall = np.asarray(v, copy=True), np.array(v, copy=None), np.array([v[0], 1.0], ndmin=2)
    kept += 1
    contiguous *= 2
    other.ravel()[0] = 7
    copied -= 1
    same[1] = 5
    np.array(x.T, order="F").T.ravel()[2] = 8
    return contiguous, other, copied, tall, np.ascontiguousarray(v[::-1])


def order(x, v, t):
    made = [
        np.zeros_like(x),
        np.ones_like(x),
        np.empty_like(x),
        np.full_like(x, 2.0),
        np.full_like(x, x[0, 0]),
    ]
    for array in made:
        array[...] = 3 * x
        array.T.ravel()[1] = 4
        array.ravel()[2] = 5
    return made


PROGRAMS = [an_element, a_ring, one_value, functions_that_write, options, order]


def arguments(n):
    x = np.asfortranarray(np.arange(12.0).reshape(3, 4) - n)
    return x, np.array([0.5, -1.5, n]), 0.25 * n


@pytest.mark.sampled
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
@pytest.mark.parametrize("check_mode", ["none", "tolerance"])
def test_a_program_does_what_it_does_in_numpy(program, check_mode):
    accelerated = dlaccelerate(program, check_mode=check_mode)
    for n in range(6):
        expected = arguments(n)
        wanted = program(*expected) or ()
        for run in (accelerated, lambda *given: dlfeval(program, *given)):
            given = arguments(n)
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                found = run(*given) or ()
            for have, want in zip((*found, *given), (*wanted, *expected), strict=True):
                assert np.asarray(have).dtype == np.asarray(want).dtype
                np.testing.assert_array_equal(have, want)
    assert accelerated.stats.hits >= 2  # two by value, one with an input, and its confirmation


def test_an_integer_that_does_not_fit_is_an_error_whenever_it_comes():
    @dlaccelerate
    def store(x, n):
        x[0] = n
        return x

    for n in (1, 2, 3, 4, 5):
        assert store(np.zeros(2, np.uint8), n)[0].item() == n
    for n in (-1, 256):
        with pytest.raises(ArgumentError, match="does not fit"):
            store(np.zeros(2, np.uint8), n)
    assert store(np.zeros(2, np.uint8), 6)[0].item() == 6


@pytest.mark.parametrize("make", [np.zeros_like, np.ones_like, np.empty_like, lambda x: np.full_like(x, 2.0)])
def test_new_arrays_lie_in_memory_as_those_of_numpy(make):
    array = dlarray(np.asfortranarray(np.ones((2, 3))))
    assert make(array)._data.flags.f_contiguous
    assert make(array[:, :2])._data.flags.c_contiguous is make(array._data[:, :2]).flags.c_contiguous
