# SPDX-License-Identifier: BSD-3-Clause
"""Rows of the table of messages (messages.py) of functions under NumPy's names: a call, the error, its text."""

from collections.abc import Callable

import numpy as np

import tracejit as tj
from tracejit.array import apply
from tracejit.errors import ArgumentError, DimsError, DTypeError, GradientError
from tracejit.ops.ufunc_loops import ufunc_of

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
    (
        lambda: tj.special.jv(2.0),
        ArgumentError,
        "special.jv: 1 operands, expected 2; see the documentation of SciPy.",
    ),
    (
        lambda: tj.special.eval_hermite(2.5, X),
        DTypeError,
        "special.eval_hermite: not defined for float, float64; cast the operands first (x.astype(np.float64)).",
    ),
    (
        lambda: tj.dlfeval(lambda v: tj.dlgradient(tj.special.jv(v, 1.0), v), np.array(2.0)),
        GradientError,
        "special.jv: there is no formula for its derivative by operand 1; give it numbers that do not depend on "
        "what is differentiated by (stop_gradient cuts a dependence).",
    ),
    (
        lambda: ufunc_of("nothing"),
        ArgumentError,
        "scipy.special.nothing: the SciPy that is installed has no such function; install another version.",
    ),
    (
        lambda: tj.special.multigammaln(3.0, 0),
        ArgumentError,
        "special.multigammaln: d is 0, expected a positive dimension.",
    ),
    (
        lambda: tj.special.comb(X, 2, exact=True),
        ArgumentError,
        "special.comb: exact=True is not supported on dlarrays; use math.comb.",
    ),
    (
        lambda: tj.special.perm(X, 2, exact=True),
        ArgumentError,
        "special.perm: exact=True is not supported on dlarrays; use math.perm.",
    ),
    (
        lambda: tj.special.jvp(2, X, -1),
        ArgumentError,
        "special.jvp: n is -1, expected the number of a derivative.",
    ),
)
