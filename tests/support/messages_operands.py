# SPDX-License-Identifier: BSD-3-Clause
"""Messages of functions of NumPy and SciPy about operands, and arrays to write, that they do not take."""

from collections.abc import Callable

import numpy as np
import scipy.ndimage
from messages_shared import M, X

import tracejit as tj
from tracejit.errors import ArgumentError, ArgumentValueError, DTypeError

ROWS: tuple[tuple[Callable[[], object], type[Exception], str], ...] = (
    (
        lambda: np.dot(X, M.T, out=np.zeros((2, 2), np.float32)),  # type: ignore[arg-type]
        ArgumentValueError,
        "np.dot: the result is float64 of size (2, 2), but out is float32 of size (2, 2); pass an array of the same "
        "dtype and size.",
    ),
    (
        lambda: np.take(X, [0, 1], out=np.zeros(2, complex)),
        DTypeError,
        "np.take: the result is float64, but out is complex128; pass an array of float64.",
    ),
    (
        lambda: np.putmask(X.copy(), X > 0, 1j),
        DTypeError,
        "np.putmask: values is complex, and float64 numbers are real; pass values.real.",
    ),
    (
        lambda: np.place(X.copy(), X > 0, np.array([1j])),
        DTypeError,
        "np.place: vals are complex128, which float64 numbers cannot hold in full; cast them first "
        "(vals.astype(np.float64)).",
    ),
    (
        lambda: tj.dlfeval(lambda x: np.array([[x, x]], ndmax=1), M),
        ArgumentValueError,
        "np.array: lists are nested to 4 axes, expected at most 1, which is ndmax.",
    ),
    (
        lambda: tj.signal.sosfilt([[1.0, 0.0, 0.0, 2.0, 0.0, 0.0]], M),
        ArgumentValueError,
        "signal.sosfilt: sos[:, 3] must be 1 in each section; divide the coefficients by it (sos / sos[:, 3:4]).",
    ),
    (
        lambda: tj.dlfeval(lambda x: scipy.ndimage.gaussian_filter(x, 1.0, output=np.zeros((2, 3))), M),
        ArgumentError,
        "scipy.ndimage.gaussian_filter: output= is no array that a function with traced arrays writes; leave it out, "
        "and assign the result (y[...] = result).",
    ),
)
