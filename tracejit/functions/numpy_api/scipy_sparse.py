# SPDX-License-Identifier: BSD-3-Clause
"""Products of SciPy's sparse matrices and traced arrays, with derivatives."""

import functools
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from tracejit.array import as_array, dlarray
from tracejit.functions import elementwise, movement
from tracejit.functions.numpy_api.scipy_functions import call_in_program, first_of, has_traced, with_entered
from tracejit.functions.refusals import refuse
from tracejit.record import monitor, patches
from tracejit.record.recorder import apply

_PACKAGE = "scipy.sparse"
_FORMATS = frozenset(
    {"csr", "csc", "coo", "bsr"}
)  # whose elements are in the order of those of their coordinates


_ALL_FORMATS = ("bsr", "coo", "csc", "csr", "dia", "dok", "lil")


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
    for name in (f"{format}_{kind}" for format in _ALL_FORMATS for kind in ("array", "matrix")):
        owner = next(base for base in getattr(sparse, name).__mro__ if "__init__" in vars(base))
        if owner not in found:
            found.add(owner)
            patches.replace_method(owner, "__init__", _made)


def _made(method: Callable[..., Any], matrix: Any, *args: Any, **options: Any) -> Any:
    """Make a sparse matrix, of no traced arrays: how many elements it has would depend on their values."""
    if has_traced((*args, *options.values())):
        refuse(
            f"{_PACKAGE}.{type(matrix).__name__}",
            "a sparse matrix cannot be made of traced arrays; make it outside of the function, or compute with the "
            "dense array",
        )
    return method(matrix, *args, **options)


def _answer(
    name: str, answer: Callable[[Any, dlarray], Any], method: Callable[..., Any], matrix: Any, other: Any
) -> Any:
    """Return a product with a traced array, which may be in a list."""

    def answer_to(args: Any, options: dict[str, Any]) -> Any:
        (other,) = args
        if not has_traced(args):
            return monitor.watched(method, matrix, other)
        called = functools.partial(call_in_program, f"{_PACKAGE}.{name}", method.__get__(matrix), args, {})
        return first_of([lambda: answer(matrix, other), called])

    return with_entered(answer_to, (other,), {})


def _product(matrix: Any, other: Any) -> Any:
    """Return ``matrix @ other``; the elements of a row are added in the order of the matrix, as SciPy adds them."""
    if not isinstance(other, dlarray) or other.ndim not in (1, 2) or matrix.ndim != 2:
        return NotImplemented
    if other.shape[0] != matrix.shape[1]:
        return NotImplemented  # which is an error of SciPy's
    x = movement.relabel(as_array(other), None)
    columns = x if x.ndim == 2 else movement.reshape(x, (x.size, 1))
    if np.result_type(matrix.dtype, x.dtype).kind == "f":
        found = _of_floats(matrix, columns)
    else:
        found = _by_elements(matrix, columns)
    return found if x.ndim == 2 else movement.reshape(found, (matrix.shape[0],))


def _of_floats(matrix: Any, x: dlarray) -> dlarray:
    """Return the product with a matrix; the arrays of the sparse one are read where they lie."""
    if matrix.format == "csc":  # the rows of its transpose
        parts = map(as_array, (matrix.indptr, matrix.indices, matrix.data))
        found: dlarray = apply("sparse_transposed", *parts, x, n=matrix.shape[0])
        return found
    rows = matrix if matrix.format == "csr" else matrix.tocsr()
    found = apply("sparse_product", *map(as_array, (rows.indptr, rows.indices, rows.data)), x)
    return found


def _by_elements(matrix: Any, x: dlarray) -> dlarray:
    """Return the product with a matrix, of integers or complex numbers."""
    found = matrix.tocoo()
    rows, columns = as_array(found.row.astype(np.int64)), as_array(found.col.astype(np.int64))
    terms = apply("take", x, columns, axis=0) * movement.reshape(as_array(found.data), (found.data.size, 1))
    empty = as_array(np.zeros((matrix.shape[0], x.shape[1]), np.result_type(matrix.dtype, x.dtype)))
    summed: dlarray = apply("scatter_add", empty, rows, elementwise.cast(terms, empty.dtype), axis=0)
    return summed


def _product_from_left(matrix: Any, other: Any) -> Any:
    """Return ``other @ matrix``."""
    if not isinstance(other, dlarray):
        return NotImplemented
    found = _product(matrix.T, movement.transpose(other) if other.ndim == 2 else other)
    return found if found is NotImplemented or found.ndim < 2 else movement.transpose(found)
