# SPDX-License-Identifier: BSD-3-Clause
"""The answers to NumPy's less common functions, by subject; loaded when the first of them is called."""

from collections.abc import Callable
from typing import Any

import numpy as np

from tracejit.functions import linalg, spectral
from tracejit.functions.numpy_api import (
    arranging,
    borders,
    choosing,
    counting,
    differences,
    elementary,
    fourier,
    masked,
    matrices,
    ordering,
    packing,
    polynomials,
    quantiles,
    ranges,
    ufuncs,
    wider,
)

SUBJECTS = (
    arranging, choosing, counting, differences, elementary, fourier, linalg, masked, matrices, ordering, packing,
    polynomials, quantiles, ranges, spectral, wider,
)  # fmt: skip
Answer = Callable[..., Any]

UFUNCS: dict[np.ufunc, Answer] = ufuncs.UFUNCS
FUNCTIONS: dict[Answer, Answer] = {
    function: answer for subject in SUBJECTS for function, answer in subject.FUNCTIONS.items()
}
CALLING: tuple[Answer, ...] = (np.piecewise, np.apply_along_axis, np.apply_over_axes)
"""Functions that call one of the user's."""
WIDER: dict[Answer, Answer] = {**masked.WIDER, **choosing.WIDER, **matrices.WIDER, **wider.WIDER}
"""Answers for arguments that the toolbox' own function does not take."""
FORMS: dict[Answer, Answer] = {np.pad: borders.pad, np.einsum: wider.einsum}
"""Answers for modes and notations, which table.py tells apart itself."""
