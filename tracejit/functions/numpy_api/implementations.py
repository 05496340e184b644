# SPDX-License-Identifier: BSD-3-Clause
"""The implementations of NumPy's less common functions by subject, loaded when the first of them is called."""

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
    emath,
    fourier,
    full_forms,
    masked,
    matrices,
    ordering,
    packing,
    polynomials,
    quantiles,
    ranges,
    seen,
    ufuncs,
)

SUBJECTS = (
    arranging, choosing, counting, differences, elementary, emath, fourier, linalg, masked, matrices, ordering, packing,
    polynomials, quantiles, ranges, seen, spectral, full_forms,
)  # fmt: skip
Implementation = Callable[..., Any]

UFUNCS: dict[np.ufunc, Implementation] = ufuncs.UFUNCS
FUNCTIONS: dict[Implementation, Implementation] = {
    function: ours for subject in SUBJECTS for function, ours in subject.FUNCTIONS.items()
}
CALLING: tuple[Implementation, ...] = (np.piecewise, np.apply_along_axis, np.apply_over_axes)
"""Functions that call one of the user's."""
FULL_FORMS: dict[Implementation, Implementation] = {
    **masked.FULL_FORMS,
    **choosing.FULL_FORMS,
    **matrices.FULL_FORMS,
    **full_forms.FULL_FORMS,
}
"""Implementations for arguments that the toolbox's own function does not take."""
FORMS: dict[Implementation, Implementation] = {np.pad: borders.pad, np.einsum: full_forms.einsum}
"""Implementations for modes and notations, which table.py tells apart itself."""
constant_border: Implementation = borders.constant
