# SPDX-License-Identifier: BSD-3-Clause
"""Rows of the table of messages (messages.py) of functions under NumPy's names: a call, the error, its text."""

from collections.abc import Callable

import numpy as np

import tracejit as tj
from tracejit.array import apply
from tracejit.errors import ArgumentError, DimsError

X = tj.dlarray(np.ones((2, 3)), "BC")

ROWS: tuple[tuple[Callable[[], object], type[Exception], str], ...] = (
    (
        lambda: np.select([X > 0], [X, X]),
        ArgumentError,
        "np.select: there are 1 conditions and 2 choices, expected as many of both, and one at least.",
    ),
    (
        lambda: np.pad(X, 1, stat_length=3),
        ArgumentError,
        "np.pad: mode='constant' with stat_length= is not supported.",
    ),
    (
        lambda: np.einsum("ij->", X, casting="no"),
        ArgumentError,
        "np.einsum: casting= is not supported on dlarrays; cast the operands first.",
    ),
    (
        lambda: np.rot90(X, 1, None),  # type: ignore[arg-type]
        ArgumentError,
        "np.rot90: these arguments cannot be used: TypeError: \"'NoneType' object is not iterable\"; see the "
        "documentation of NumPy for what it takes.",
    ),
    (
        lambda: X.copy("B"),
        ArgumentError,
        "copy: order must be 'C', 'K', 'A' or 'F', not 'B'.",
    ),
    (
        lambda: np.gcd(X, X),
        ArgumentError,
        "np.gcd: it is not defined for float64, float64; cast the operands first.",
    ),
    (
        lambda: apply("recurrence", X, X[:1], axis=1, reverse=False),
        DimsError,
        "recurrence: a has size 2(B) x 3(C) and b 1(B) x 3(C); broadcast them to one size.",
    ),
)
