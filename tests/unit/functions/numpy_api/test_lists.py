# SPDX-License-Identifier: BSD-3-Clause
"""Lists that hold traced arrays, where NumPy's functions and the operators expect an array; NumPy is the oracle."""

from collections.abc import Callable
from threading import Event, Thread
from typing import Any

import numpy as np
import pytest
from numpy import mean
from numpy.linalg import norm

import tracejit as tj

X, Y = np.array([0.25, 1.5, 3.0]), np.array([2.0, -1.0, 0.5])
PROGRAMS: dict[str, Callable[[Any, Any], Any]] = {
    "reductions": lambda x, y: (
        np.sum([x, y]),
        np.mean([x, y], axis=0),
        np.max([x[0], y[0]]),
        np.prod([x[0], 2]),
    ),
    "by keyword": lambda x, y: (np.average([1.0, 2], weights=[x[0], x[1]]), np.sum(a=[x[0], y[0]], axis=0)),
    "matrices": lambda x, y: (
        np.diag([x[0], 1]),
        np.outer([x[0], y[0]], [1, 2]),
        np.dot([x[0], 1], [y[0], 2]),
    ),
    "linalg": lambda x, y: (
        np.linalg.norm([x[0], y[0]]),
        np.linalg.solve([[x[0], 1], [0, 1]], [1, y[0]]),
        np.linalg.det([[x[0], 1], [3, 1]]),
    ),
    "names that were imported": lambda x, y: (mean([x[0], y[1]]), norm([x, y])),
    "fft": lambda x, y: np.fft.fft([x[0], y[0], 2]),
    "operands": lambda x, y: (
        x * [y[0], 1, y[1]],
        [1, y[0], 2] - x,
        x @ [y[0], 1, 2],
        x.dot([y[0], 2, 3]),
        np.add(x, [1, y[0], 2]),
    ),
    "a tuple": lambda x, y: (np.sum((x, y), axis=(0, 1)), np.cumsum((x[0], y[0]))),
    "sequences of arrays": lambda x, y: (
        np.concatenate([[x[0]], y]),
        np.stack([[x[0], 1], [1, 2]]),
        np.vstack([[x[0], 1, 2], y]),
        np.block([[x, y], [y, x]]),
        np.select([[True, False, True]], [[x[0], 1, y[0]]], 0.5),
        np.lexsort(([x[0], y[0]], [1, 1])),
    ),
    "several arrays": lambda x, y: (
        *np.meshgrid([x[0], 1], [y[0], 2]),
        *np.broadcast_arrays([x[0], 1], [[1], [2]]),
    ),
    "lists that are no arrays": lambda x, y: (
        np.reshape([x, y], (3, 2)),
        np.tile([x[0], 1], (2, 2)),
        np.transpose([x, y], (1, 0)),
    ),
    "filled": lambda x, y: np.full((2, 2), [x[0], y[0]]),
    "complex": lambda x, y: np.array([x[0], 2j]) * np.sum([x[0] * 1j, 1j]),
    "integers": lambda x, y: np.sum([x > 0, [True, False, True]], axis=1),
    "booleans": lambda x, y: (
        np.any([x[0] > 0, y[0] > 0]),
        np.all([x > 0, y > 0], axis=1),
        np.where([True, False], [x[0], 1], [2, y[0]]),
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_lists(name: str) -> None:
    program = PROGRAMS[name]
    accelerated = tj.dlaccelerate(program)
    for k in range(4):
        arguments = (X + k, Y - k)
        expected, found = program(*arguments), accelerated(*arguments)
        for have, want in (
            zip(found, expected, strict=True) if isinstance(expected, tuple) else [(found, expected)]
        ):
            assert have.shape == np.shape(want) and have.dtype == np.asarray(want).dtype
            np.testing.assert_allclose(tj.extractdata(have), want, rtol=1e-14, atol=1e-15)
    assert accelerated.stats.hits == 2


def test_gradients() -> None:
    def loss(x: Any) -> Any:
        return np.linalg.norm([x[0], x[1]]) * np.mean([x[2], 3.0])

    slope = tj.dlfeval(lambda x: tj.dlgradient(loss(x), x), X)
    length = np.hypot(X[0], X[1])
    np.testing.assert_allclose(slope, [X[0] / length * 3, X[1] / length * 3, length / 2])


def test_a_number_that_varies() -> None:
    scaled = tj.dlaccelerate(lambda x, rate: x * np.sum([rate, 1.0]))
    for rate in (1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0):
        assert scaled(X, rate).tolist() == (X * (rate + 1.0)).tolist()
    assert scaled.stats.traces <= 4 and scaled.stats.hits >= 2


MASK, SINGLES = np.array([True, False, True]), np.array([1.0, 2.0, 3.0], np.float32)


@pytest.mark.parametrize(
    ("function", "hits"),
    [
        (lambda k: np.where(MASK, k, X), 3),
        (lambda k: np.where(MASK, np.sin(k), 0), 3),
        (lambda k: np.append(X + 1j, k), 3),
        # Beside these a Python number has their dtype, which its array would not have.
        (lambda k: np.where(MASK, k, SINGLES), 0),
        (lambda k: np.where(X > 1, k, SINGLES.astype(np.complex64)), 0),
    ],
)
def test_a_number_that_varies_beside_masks_and_narrow_arrays(
    function: Callable[[Any], Any], hits: int
) -> None:
    accelerated = tj.dlaccelerate(function, audit=False)
    for k in (0.5, 1.5, 2.5, 3.5, 4.5, 5.5, 6.5):
        found, expected = np.asarray(accelerated(k)), function(k)
        assert found.dtype == expected.dtype
        np.testing.assert_allclose(found, expected)
    assert accelerated.stats.hits == hits


def test_lists_of_numbers_are_numpys() -> None:
    def program(x: Any) -> Any:
        return [np.sum([1, 2]), np.max([len(x), 2]), np.diag([1.0, 2.0]), np.linalg.norm([3.0, 4.0])]

    assert [type(part) for part in tj.dlfeval(program, X)] == [type(part) for part in program(X)]


@pytest.mark.parametrize(
    ("program", "error"),
    [
        (lambda x: np.sum([x, x[:2]]), tj.DimsError),
        (lambda x: np.sum([x[0], None]), tj.TraceError),
        (lambda x: x * [x[0], "text", 1], tj.ArgumentError),
    ],
)
def test_errors(program: Callable[[Any], Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        tj.dlfeval(program, X)


def test_a_replay_beside_a_recording_in_another_thread() -> None:
    """The recording replaces np.sum in NumPy; a trace that reads the name is replayed all the same."""
    total = tj.dlaccelerate(lambda x: np.sum(x) + np.linalg.norm(x))
    for _ in range(3):
        total(X)
    is_open, may_end = Event(), Event()

    def slow(x: Any) -> Any:
        is_open.set()
        may_end.wait()
        return x + 1

    thread = Thread(target=tj.dlfeval, args=(slow, X))
    thread.start()
    is_open.wait()
    replaced = type(np.sum)
    total(X)
    may_end.set()
    thread.join()
    assert replaced is not type(np.sum) and total.stats.traces == 2 and total.stats.hits == 2
