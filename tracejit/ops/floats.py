# SPDX-License-Identifier: BSD-3-Clause
"""The floating-point dtypes in which ops compute: that of an operand, float64 for integers and bools."""

from collections.abc import Sequence

import numpy as np

from tracejit.aval import Aval


def float_of(dtype: np.dtype) -> np.dtype:
    """Return the dtype in which an op of one operand computes."""
    return dtype if dtype.kind == "f" else np.dtype(np.float64)


def promote_float(dtype: np.dtype) -> tuple[np.dtype, ...]:
    """Return the dtype that the only operand is cast to."""
    return (float_of(dtype),)


def infer_float(x: Aval) -> Aval:
    """Return the result of an elementwise op of one operand."""
    return Aval(x.shape, x.format, float_of(x.dtype))


def as_float(x: np.ndarray) -> np.ndarray:
    """Return the operand of a reference; complex numbers stay, for derivatives by the complex step."""
    return x if x.dtype.kind in "fc" else x.astype(np.float64)


def one_float(*dtypes: np.dtype) -> tuple[np.dtype, ...]:
    """Return the floating-point dtype that all operands are cast to, once for each."""
    floats = [dtype for dtype in dtypes if dtype.kind == "f"]
    common = np.result_type(*floats) if floats else np.dtype(np.float64)
    return (common if common == np.float32 else np.dtype(np.float64),) * len(dtypes)


def common_float(*dtypes: np.dtype) -> np.dtype:
    """Return the dtype in which operands meet; complex numbers stay, for derivatives by the complex step."""
    common = np.result_type(*dtypes)
    return common if common.kind in "fc" else np.dtype(np.float64)


def promote_common(*dtypes: np.dtype) -> tuple[np.dtype, ...]:
    """Return the dtype in which operands meet, once for each operand."""
    return (common_float(*dtypes),) * len(dtypes)


def cast_alike(arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Return arrays in the dtype that the ops cast them to."""
    dtypes = one_float(*[x.dtype for x in arrays])
    return [x.astype(dtype, copy=False) for x, dtype in zip(arrays, dtypes, strict=True)]
