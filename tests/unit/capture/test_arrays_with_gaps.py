# SPDX-License-Identifier: BSD-3-Clause
"""Views that the function makes of captured arrays with gaps between elements: columns, steps, the order of Fortran."""

import random

import numpy as np
import pytest
from effort import sweep

from tracejit import dlaccelerate
from tracejit.capture.arrays import SeenArray
from tracejit.capture.writer import _view


def call(part, x):
    return part * x


BIG = {
    "columns": lambda n: (n + np.arange(20.0)).reshape(4, 5)[:, 1:4],
    "steps": lambda n: (n + np.arange(24.0)).reshape(4, 6)[:, ::2],
    "backwards": lambda n: (n + np.arange(12.0)).reshape(4, 3)[::-1],
    "of Fortran": lambda n: np.asfortranarray((n + np.arange(12.0)).reshape(4, 3)),
}
VIEWS = {
    "rows": lambda w, x: sum(call(row, x) for row in w),
    "a slice": lambda w, x: call(w[1:3], x) + call(w[:2], x),
    "backwards": lambda w, x: call(w[::-1], x),
    "transposed": lambda w, x: call(w.T, x[0]),
    "an axis more": lambda w, x: call(w[None], x),
}


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("big", BIG)
def test_views_of_an_array_with_gaps_are_made_again(big, view):
    made, use = BIG[big], VIEWS[view]
    weights = [made(0.0)]
    fun = dlaccelerate(lambda x: use(weights[0], x), audit=False)
    for n in range(9):
        if n == 4:
            weights[0][0, 0] = 50.0
        if n == 6:
            weights[0] = made(100.0)
        x = np.array([1.0, 2.0, 3.0]) + n
        assert np.array_equal(fun(x), use(weights[0], x))
    assert (fun.stats.traces, fun.stats.uncompiled) == (2, 0)


def test_other_gaps_have_a_trace_of_their_own():
    weights = [np.arange(6.0)[:3]]
    fun = dlaccelerate(lambda x: call(weights[0][::-1], x))
    for n, new in enumerate([weights[0], np.arange(12.0)[3:9:2], np.arange(12.0)[8:2:-2]]):
        weights[0] = new
        for _ in range(3):
            x = np.array([1.0, 2.0, 3.0]) + n
            assert np.array_equal(fun(x), weights[0][::-1] * x)
    assert fun.stats.uncompiled == 0


def test_a_column_between_those_of_another_array_is_not_taken_for_its_view():
    def table(n):
        data = (n + np.arange(20.0)).reshape(4, 5)
        return data[:, ::2], data[:, 1]

    current = [*table(0.0)]
    fun = dlaccelerate(lambda x: call(current[0], x[:3]).sum(1) + call(current[1][::-1], x))
    for n in range(8):
        if n % 3 == 2:
            current[0] = table(10.0 * n)[0]  # the other one stays where it is
        x = np.arange(4.0) + n
        assert np.array_equal(fun(x), (current[0] * x[:3]).sum(1) + current[1][::-1] * x)


def addresses(array):
    """Return the addresses of all bytes of an array."""
    first, axes = array.ctypes.data, [*zip(array.strides, array.shape, strict=True), (1, array.itemsize)]
    found = {first}
    for stride, size in axes:
        found = {address + stride * i for address in found for i in range(size)}
    return found


def random_view(rng, array):
    for _ in range(rng.randint(1, 3)):
        which = rng.randrange(5)
        if which == 0:
            steps = [rng.choice([1, 1, 2, -1]) for _ in array.shape]
            array = array[tuple(slice(rng.randrange(3) if s > 0 else None, None, s) for s in steps)]
        elif which == 1:
            array = array.T
        elif which == 2 and array.ndim > 1 and len(array):
            array = array[rng.randrange(len(array))]
        elif which == 3 and np.shares_memory(array, array.reshape(-1)):
            array = array.reshape(-1)
        elif which == 4 and array.ndim == 2:
            array = array.diagonal()
    return array


def test_views_are_told_from_what_lies_between_by_their_addresses():
    rng = random.Random(0)
    told = 0
    for _ in range(sweep(300, 3000)):
        dtype, shape = rng.choice([float, np.int8, complex]), rng.choice([(60,), (6, 10), (3, 4, 5)])
        big = np.arange(60).astype(dtype).reshape(shape)
        array = random_view(rng, big[...])
        view = random_view(rng, array if rng.random() < 0.6 else big[...])
        if array.size and view.size and SeenArray(view, None, view).is_view_of(array):
            assert addresses(view) <= addresses(array)
            offset = view.ctypes.data - np.lib.array_utils.byte_bounds(array)[0]
            again = _view(array, view.shape, view.dtype, offset, view.strides)
            assert (again.ctypes.data, again.strides) == (view.ctypes.data, view.strides)
            assert np.array_equal(again, view)
            told += 1
    assert told > 80
