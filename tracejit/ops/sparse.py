# SPDX-License-Identifier: BSD-3-Clause
"""Products of a sparse matrix (m, n) that is given by rows: where each begins, and the columns and values of elements.

The elements of row i are those from starts[i] to starts[i + 1]. Each of the three ops is the adjoint of the two others.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from tracejit.aval import INT32, Aval, describe_shape
from tracejit.errors import BoundsError, DimsError
from tracejit.ops.floats import common_float
from tracejit.ops.op import KernelCall, Kind, Op, RangeCut, Sample

_NS_PER_PRODUCT = 0.8  # roughly: it only decides into how many parts a launch is cut


def _check(name: str, starts: Aval, places: Aval, *others: tuple[Aval, int]) -> None:
    """Check the sizes of a matrix, and of arrays that are a number for each element, or have two axes."""
    is_matrix = starts.ndim == 1 and starts.shape[0] > 0 and places.ndim == 1
    if not is_matrix or any(x.ndim != axes or (axes == 1 and x.shape != places.shape) for x, axes in others):
        sizes = [describe_shape(x.shape, None) for x in (starts, places, *[x for x, _ in others])]
        raise DimsError(
            f"{name}: operands have sizes {', '.join(sizes)}, expected where rows begin, the columns of elements, and "
            "a number for each element or a matrix."
        )


def _elements(name: str, starts: np.ndarray, places: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the row of each element, and the number of the element, in the order of the rows."""
    begins, ends = starts[:-1].astype(np.int64), starts[1:].astype(np.int64)
    counts = np.maximum(ends - begins, 0)
    rows = np.repeat(np.arange(counts.size), counts)
    numbers = np.arange(rows.size) - np.repeat(np.cumsum(counts) - counts, counts) + begins[rows]
    if numbers.size and ((begins < 0).any() or (ends > places.size).any()):
        raise BoundsError(f"{name}: rows begin beyond the {places.size} elements.")
    used = places[numbers]
    if used.size and (used.min() < 0 or used.max() >= n):
        raise BoundsError(f"{name}: column {used.max()} is out of range for {n} columns.")
    return rows, numbers


def _infer_product(starts: Aval, places: Aval, data: Aval, x: Aval) -> Aval:
    _check("sparse_product", starts, places, (data, 1), (x, 2))
    return Aval((starts.shape[0] - 1, x.shape[1]), None, common_float(data.dtype, x.dtype))


def _numpy_product(starts: np.ndarray, places: np.ndarray, data: np.ndarray, x: np.ndarray) -> np.ndarray:
    rows, numbers = _elements("sparse_product", starts, places, x.shape[0])
    y = np.zeros((starts.size - 1, x.shape[1]), _dtype(data, x))
    np.add.at(y, rows, data[numbers, None] * x[places[numbers]])
    return y


def _infer_transposed(starts: Aval, places: Aval, data: Aval, x: Aval, *, n: int) -> Aval:
    _check("sparse_transposed", starts, places, (data, 1), (x, 2))
    return Aval((n, x.shape[1]), None, common_float(data.dtype, x.dtype))


def _numpy_transposed(
    starts: np.ndarray, places: np.ndarray, data: np.ndarray, x: np.ndarray, *, n: int
) -> np.ndarray:
    rows, numbers = _elements("sparse_transposed", starts, places, n)
    y = np.zeros((n, x.shape[1]), _dtype(data, x))
    np.add.at(y, places[numbers], data[numbers, None] * x[rows])
    return y


def _infer_elements(starts: Aval, places: Aval, u: Aval, x: Aval) -> Aval:
    _check("sparse_elements", starts, places, (u, 2), (x, 2))
    return Aval(places.shape, None, common_float(u.dtype, x.dtype))


def _numpy_elements(starts: np.ndarray, places: np.ndarray, u: np.ndarray, x: np.ndarray) -> np.ndarray:
    rows, numbers = _elements("sparse_elements", starts, places, x.shape[0])
    y = np.zeros(places.shape, _dtype(u, x))
    np.add.at(y, numbers, (u[rows] * x[places[numbers]]).sum(axis=1))
    return y


def _dtype(first: np.ndarray, second: np.ndarray) -> Any:
    """Return the dtype of a result; of complex numbers for the complex step."""
    dtype = np.result_type(first, second)
    return dtype if dtype.kind == "c" else common_float(first.dtype, second.dtype)


def _promote(starts: np.dtype, places: np.dtype, first: np.dtype, second: np.dtype) -> tuple[np.dtype, ...]:
    dtype = common_float(first, second)
    return (INT32, INT32, dtype, dtype)


def _vjp_product(b: Any, node: Any, ct: Any) -> Any:
    starts, places, data, x = node.inputs
    return (
        None,
        None,
        lambda: b.sparse_elements(starts, places, ct, x),
        lambda: b.sparse_transposed(starts, places, data, ct, n=x.shape[0]),
    )


def _vjp_transposed(b: Any, node: Any, ct: Any) -> Any:
    starts, places, data, x = node.inputs
    return (
        None,
        None,
        lambda: b.sparse_elements(starts, places, x, ct),
        lambda: b.sparse_product(starts, places, data, ct),
    )


def _vjp_elements(b: Any, node: Any, ct: Any) -> Any:
    starts, places, u, x = node.inputs
    return (
        None,
        None,
        lambda: b.sparse_product(starts, places, ct, x),
        lambda: b.sparse_transposed(starts, places, ct, u, n=x.shape[0]),
    )


def _product_numbers(out: Aval, starts: Aval, places: Aval, data: Aval, x: Aval) -> Sequence[int]:
    return (0, starts.shape[0] - 1, places.shape[0], *x.shape)


def _transposed_numbers(
    out: Aval, starts: Aval, places: Aval, data: Aval, x: Aval, *, n: int
) -> Sequence[int]:
    return (starts.shape[0] - 1, places.shape[0], n, x.shape[1])


def _elements_numbers(out: Aval, starts: Aval, places: Aval, u: Aval, x: Aval) -> Sequence[int]:
    return (starts.shape[0] - 1, places.shape[0], *x.shape)


def _rows(numbers: Sequence[int]) -> int:
    return numbers[1]


def _ns(numbers: Sequence[int]) -> float:
    return (numbers[2] * numbers[4] + numbers[1]) * _NS_PER_PRODUCT


def _samples(third: tuple[int, ...], fourth: tuple[int, int], **params: int) -> tuple[Sample, ...]:
    """Rows that begin anywhere, also behind one another, and columns that are given twice."""
    dtypes = ("int32", "int32", None, None)
    found = []
    for columns in (1, 3):
        shapes = (
            (4,),
            (5,),
            *[(*shape[:-1], columns) if len(shape) == 2 else shape for shape in (third, fourth)],
        )
        found.append(Sample(shapes, params, dtypes=dtypes, integer_high=4))
    return tuple(found)


OPS = (
    Op(name="sparse_product", doc="a sparse matrix given by rows, times a matrix; ct and the matrix at the elements, "
       "and the transposed product of ct", kind=Kind.KERNEL, infer=_infer_product, numpy=_numpy_product,
       promote=_promote, vjp=_vjp_product, linear=((2,), (3,)),
       emit=KernelCall("sparse_product", _product_numbers, True, RangeCut(_ns, _rows)),
       samples=_samples((5,), (4, 1))),
    Op(name="sparse_transposed", doc="the transpose of a sparse matrix given by rows, times a matrix; as for "
       "sparse_product", kind=Kind.KERNEL, infer=_infer_transposed, numpy=_numpy_transposed, promote=_promote,
       vjp=_vjp_transposed, linear=((2,), (3,)), emit=KernelCall("sparse_transposed", _transposed_numbers, True),
       samples=_samples((5,), (3, 1), n=4)),
    Op(name="sparse_elements", doc="the product of a matrix and a transposed one at the elements of a sparse matrix "
       "given by rows; the products of the sparse matrix of ct", kind=Kind.KERNEL, infer=_infer_elements,
       numpy=_numpy_elements, promote=_promote, vjp=_vjp_elements, linear=((2,), (3,)),
       emit=KernelCall("sparse_elements", _elements_numbers, True), samples=_samples((3, 1), (4, 1))),
)  # fmt: skip
