# SPDX-License-Identifier: BSD-3-Clause
"""Steps of rules of matrices: transposes, and vectors as rows and columns."""

from typing import Any


def transposed(b: Any, x: Any) -> Any:
    """Return `x` with its last two axes exchanged."""
    return b.transpose(x, axes=(*range(x.ndim - 2), x.ndim - 1, x.ndim - 2))


def as_row(b: Any, w: Any) -> Any:
    """Return vectors as matrices of one row."""
    return b.reshape(w, shape=(*w.shape[:-1], 1, w.shape[-1]))


def as_column(b: Any, w: Any) -> Any:
    """Return vectors as matrices of one column."""
    return b.reshape(w, shape=(*w.shape, 1))
