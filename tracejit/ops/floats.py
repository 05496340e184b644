# SPDX-License-Identifier: BSD-3-Clause
"""The floating-point dtypes in which ops compute.

- float_of: that of the only operand, float64 for an integer or a bool.
- common_float: that in which NumPy's promotion has the operands meet, where integers count: float64 for float32 beside
  int32. Elementwise ops of several operands that are no ufuncs, convolutions, products with sparse matrices, and
  equations with triangular matrices take it.
- one_float: that of the floating-point operands alone, float32 or float64: an int32 mask beside float32 leaves float32.
  Kernels for networks (recurrence, attention, CTC) take it, and their references cast by cast_to_one_float.
"""

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
    """Return the dtype of the floating-point operands, to which all are cast, once for each operand."""
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


def cast_to_one_float(arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Return the operands of a reference in the one floating-point dtype that one_float says."""
    dtypes = one_float(*[x.dtype for x in arrays])
    return [x.astype(dtype, copy=False) for x, dtype in zip(arrays, dtypes, strict=True)]
