# SPDX-License-Identifier: BSD-3-Clause
"""Views by numbers that were computed of arrays, x[x[:, 0].argmax()]: written, they write the array; as in NumPy."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from write_oracle import compare, plain

import tracejit as tj

SIZES = ((4, 3), (4, 3))


def pivot(a: Any, b: Any) -> Any:
    row = a[np.argmax(np.abs(a[:, 0]))]
    row /= row[0].copy()
    return row


def written_later(a: Any, b: Any) -> Any:
    k = a[:, 0].argmax()
    row = a[k]
    a[k] = 0
    b[...] = a
    return row


def in_place(a: Any, b: Any) -> None:
    a[a[:, 1].argmin()] += b[b[:, 1].argmax()]


def columns(a: Any, b: Any) -> Any:
    j = (a[0] > 0).sum() % 3
    column, last = a[:, j], b[-1, j]
    column[1] = 7
    column *= 2
    return last


def parts_of_parts(a: Any, b: Any) -> Any:
    i = a[:, 0].argmin()
    a[i][1] = 5
    a[i, :2][0] += 1
    rows = a[i].T[::-1]
    rows -= 3
    a[i, ...] *= b[0]
    one = b[i, 1, ...]
    one += 1
    return rows, one


def new_axes(a: Any, b: Any) -> Any:
    i = b[:, 2].argmax()
    row = a[None, i, :, None]
    row += 1
    return row


def rows_exchanged(a: Any, b: Any) -> None:
    p = 1 + a[1:, 0].argmax()
    a[[0, p]] = a[[p, 0]]
    b[[p, p]] += [[1.0, 2, 3]]


def two_numbers(a: Any, b: Any) -> Any:
    i, j = a.sum(1).argmax(), b.sum(0).argmax()
    cube = np.stack([a, b])
    cube[0, i, 1:] = 1
    line = cube[:, i, j]
    line[0] = -2
    cube[i % 2, :, j] *= 3
    return cube, a[i, j]


def copies(a: Any, b: Any) -> Any:
    k = np.array(a[:, 0].argmax())
    row, taken, listed = a[k], np.take(a, k, 0), a[[k]]
    row += 1
    taken += 1
    listed += 1
    return row, taken, listed


def gauss(a: Any, b: Any) -> Any:
    a, b = a @ a.T + np.eye(4), b.copy()
    for i in range(4):
        p = i + np.argmax(np.abs(a[i:, i]))
        a[[i, p]], b[[i, p]] = a[[p, i]], b[[p, i]]
        for j in range(i + 1, 4):
            row = b[j]
            row -= a[j, i] / a[i, i] * b[i]
            a[j] -= a[j, i] / a[i, i] * a[i]
    return a, b


PROGRAMS = (
    pivot,
    written_later,
    in_place,
    columns,
    parts_of_parts,
    new_axes,
    rows_exchanged,
    two_numbers,
    copies,
    gauss,
)


@pytest.mark.parametrize("box", [None, tj.dlarray])
@pytest.mark.parametrize("program", PROGRAMS)
def test_as_in_numpy(program: Callable[[Any, Any], Any], box: Any) -> None:
    accelerated = tj.dlaccelerate(program)
    for call in range(5):
        ways: list[tuple[str, Callable[..., Any]]] = [("accelerated", accelerated)]
        if not call:
            ways += [("dlfeval", lambda *args: tj.dlfeval(program, *args))]
            ways += [("eager", program)] * (box is not None)
        for how, function in ways:
            compare(how, call, called(function, call, box), called(program, call, None), [], 1e-12)
    assert accelerated.stats.hits == 3, accelerated.explain()


def called(function: Callable[..., Any], call: int, box: Any) -> Any:
    rng = np.random.default_rng(call)
    given = [rng.standard_normal(size) for size in SIZES]
    arguments = [box(x) if box else x for x in given]
    result = function(*arguments)
    return result, [np.asarray(plain(x)) for x in arguments]


def test_gradient() -> None:
    """d/da of the sum of squares of an array whose largest row was doubled is 2 a, and 8 a there."""

    def loss(a: Any) -> Any:
        b = a * 1.0
        row = b[np.argmax(a[:, 0])]
        row *= 2
        return (b**2).sum()

    a = np.random.default_rng(0).standard_normal((4, 3))
    expected = 2 * a
    expected[a[:, 0].argmax()] *= 4
    np.testing.assert_allclose(tj.dlfeval(lambda a: tj.dlgradient(loss(a), a), a), expected)


def test_labels() -> None:
    x = tj.dlarray(np.arange(6.0).reshape(2, 3), "CB")

    def program(x: Any) -> Any:
        row = x[tj.stripdims(x)[:, 0].argmax()]
        row += 1
        return row, x[:, tj.stripdims(x)[0].argmin()]

    row, column = tj.dlfeval(program, x)
    assert (row.format, row.tolist(), column.format, column.tolist()) == (
        "B",
        [4.0, 5.0, 6.0],
        "C",
        [0.0, 4.0],
    )
    assert x[1].tolist() == [4.0, 5.0, 6.0]


@pytest.mark.parametrize("place", [5, -5])
def test_a_place_that_does_not_exist(place: int) -> None:
    step = tj.dlaccelerate(lambda x, k: x[k.sum()])
    for k in (1, -1, 2):
        step(np.arange(8.0).reshape(4, 2), np.array([k]))
    with pytest.raises(tj.BoundsError):
        step(np.arange(8.0).reshape(4, 2), np.array([place]))


def test_in_a_loop() -> None:
    def program(x: Any) -> Any:
        def step(carry: Any, _: Any) -> Any:
            row = carry[carry[:, 0].argmax()]
            row *= 0.5
            return carry, row.sum()

        return tj.dlscan(step, x, length=5)

    def in_numpy(x: np.ndarray) -> tuple[np.ndarray, list[float]]:
        x, sums = x.copy(), []
        for _ in range(5):
            x[x[:, 0].argmax()] *= 0.5
            sums.append(0.0)
        return x, sums

    x = np.random.default_rng(1).random((3, 2))
    for _ in range(4):
        np.testing.assert_allclose(tj.dlaccelerate(program)(x)[0], in_numpy(x)[0])
