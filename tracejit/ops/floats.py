# SPDX-License-Identifier: BSD-3-Clause
"""Operands of ops that compute in one dtype of floating point."""

from collections.abc import Sequence

import numpy as np


def one_float(*dtypes: np.dtype) -> tuple[np.dtype, ...]:
    """Return the floating-point dtype that all operands are cast to, once for each."""
    floats = [dtype for dtype in dtypes if dtype.kind == "f"]
    common = np.result_type(*floats) if floats else np.dtype(np.float64)
    return (common if common == np.float32 else np.dtype(np.float64),) * len(dtypes)


def cast_alike(arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Return arrays in the dtype that the ops cast them to."""
    dtypes = one_float(*[x.dtype for x in arrays])
    return [x.astype(dtype, copy=False) for x, dtype in zip(arrays, dtypes, strict=True)]
