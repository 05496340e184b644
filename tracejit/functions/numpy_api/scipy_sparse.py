# SPDX-License-Identifier: BSD-3-Clause
"""Products of SciPy's sparse matrices and traced arrays: a gather, a product and a sum by rows, with derivatives."""

import functools
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from tracejit.array import as_array, dlarray
from tracejit.functions import elementwise, movement
from tracejit.functions.numpy_api.scipy_functions import call_in_program, first_of, has_traced
from tracejit.record import monitor, patches
from tracejit.record.recorder import apply

_PACKAGE = "scipy.sparse"
_FORMATS = frozenset(
    {"csr", "csc", "coo", "bsr"}
)  # whose elements are in the order of those of their coordinates


def install() -> None:
    """Have products answered while something is recorded, once SciPy's sparse matrices are imported."""
    patches.when_imported(_PACKAGE, _install)


def _install() -> None:
    sparse = sys.modules[_PACKAGE]
    methods = {"__matmul__": _product, "dot": _product, "__rmatmul__": _product_from_left}
    of_matrices = {"__mul__": _product, "__rmul__": _product_from_left}
    found = set()
    for kind, answers in (
        (sparse.csr_matrix, methods), (sparse.csr_array, methods), (sparse.coo_array, methods),
        (sparse.spmatrix, of_matrices),
    ):  # fmt: skip
        for name, answer in answers.items():
            owner = next((base for base in kind.__mro__ if name in vars(base)), None)
            if owner is not None and (owner, name) not in found:
                found.add((owner, name))
                patches.replace_method(owner, name, functools.partial(_answer, name, answer))


def _answer(
    name: str, answer: Callable[[Any, dlarray], Any], method: Callable[..., Any], matrix: Any, other: Any
) -> Any:
    """Return a product with a traced array, which may be in a list."""
    if not has_traced((other,)):
        return monitor.watched(method, matrix, other)
    called = functools.partial(call_in_program, f"{_PACKAGE}.{name}", method.__get__(matrix), (other,), {})
    return first_of([lambda: answer(matrix, other), called])


def _product(matrix: Any, other: Any) -> Any:
    """Return ``matrix @ other``: for each row the sum of its elements times the rows of other at their columns.

    The elements are added in the order in which the matrix has them, as SciPy adds them.
    """
    if not isinstance(other, dlarray) or other.ndim not in (1, 2) or matrix.ndim != 2:
        return NotImplemented
    count, size = matrix.shape
    if other.shape[0] != size:
        return NotImplemented  # which is an error of SciPy's
    found = matrix.tocoo()
    elements = (
        matrix.data if matrix.format in _FORMATS and matrix.data.shape == found.data.shape else found.data
    )
    x = movement.relabel(as_array(other), None)
    dtype = np.result_type(matrix.dtype, x.dtype)
    rows, columns = found.row.astype(np.int64), found.col.astype(np.int64)
    factors = movement.reshape(as_array(elements), (elements.size, *(1,) * (x.ndim - 1)))
    terms = elementwise.cast(apply("take", x, as_array(columns), axis=0) * factors, dtype)
    empty = as_array(np.zeros((count, *x.shape[1:]), dtype))
    return apply("scatter_add", empty, as_array(rows), terms, axis=0)


def _product_from_left(matrix: Any, other: Any) -> Any:
    """Return ``other @ matrix``."""
    if not isinstance(other, dlarray):
        return NotImplemented
    found = _product(matrix.T, movement.transpose(other) if other.ndim == 2 else other)
    return found if found is NotImplemented or found.ndim < 2 else movement.transpose(found)
