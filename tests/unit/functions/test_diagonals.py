# SPDX-License-Identifier: BSD-3-Clause
"""Diagonals are views, however the array lies in memory: they see its writes, and a write into them reaches it."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracejit as tj

LAYOUTS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "C": lambda x: x,
    "F": np.asfortranarray,
    "backwards": lambda x: x[::-1, ::-1],
    "part": lambda x: np.pad(x, ((1, 2), (1, 1), (0, 0)))[1:-2, 1:-1],
    "steps": lambda x: np.repeat(x, 2, axis=1)[:, ::2],
    "last first": lambda x: np.moveaxis(np.ascontiguousarray(np.moveaxis(x, -1, 0)), 0, -1),
}
SEEN = (
    "x.diagonal()", "np.diagonal(x, 1)", "np.diagonal(x, -1, 1, 0)", "np.diagonal(x, 0, 2, 0)", "np.diag(x[..., 0])",
    "np.diag(x[:, :, 1].T, 1)", "np.diagonal(x[:, ::-1, 0])", "np.diagonal(x[::2])", "np.diagonal(x, 9)",
    "np.einsum('iij->ij', x[:3, :3])", "np.einsum('ii->i', x[:3, 2::-1, 0])", "np.diagonal(np.diagonal(x), 0, 1, 0)",
)  # fmt: skip
WRITTEN = (
    "np.einsum('ii->i', x[:3, :3, 0])",
    "np.einsum('ii->i', x[:3, 2::-1, 1].T)",
    "np.einsum('iij->ji', x[:3, :3])[1]",
)


def program_of(body: str) -> Callable[[np.ndarray], Any]:
    names: dict[str, Any] = {"np": np}
    exec(f"def program(x):\n    {body}", names)
    found: Callable[[np.ndarray], Any] = names["program"]
    return found


def compare(body: str, layout: str) -> None:
    """Compare a program with NumPy, eager, in an evaluation and accelerated: its result, and what it writes."""
    program = program_of(body)
    for run in (program, lambda x: tj.dlfeval(program, x), tj.dlaccelerate(program)):
        for call in range(4):
            theirs, ours = [LAYOUTS[layout](np.arange(36.0).reshape(3, 4, 3) * (1 + call)) for _ in range(2)]
            given = tj.dlarray(ours) if run is program else ours
            expected, found = program(theirs), run(given)
            np.testing.assert_array_equal(np.asarray(found), expected)
            np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("diagonal", SEEN)
def test_sees_writes(diagonal: str, layout: str) -> None:
    compare(f"d = {diagonal}; x *= 2; x[0] += 1; return d + 1", layout)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("diagonal", WRITTEN)
def test_is_written(diagonal: str, layout: str) -> None:
    compare(f"d = {diagonal}; d += 7; d[1:] = 3; return d * x[0, 0, 0]", layout)


def test_gradients() -> None:
    def fun(x: Any) -> Any:
        y = x.T * 1
        d = np.einsum("ii->i", y)
        y[0] *= 3
        d *= d
        return tj.dlgradient((y * y).sum(), x)

    x = np.array([[1.0, 2.0], [3.0, 4.0]])
    # y = [[(3 a)^2, 3 c], [b, d^2]]
    assert tj.dlfeval(fun, x).tolist() == [[2 * 9 * 9 * 2.0, 2 * 2.0], [2 * 9 * 3.0, 4 * 4.0**3]]
