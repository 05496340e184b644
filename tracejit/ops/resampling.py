# SPDX-License-Identifier: BSD-3-Clause
"""Weighted sums of neighbours along one axis or two, by tables of their first places and their weights.

The ops take the tables of their adjoints too, which are the same ops with the tables exchanged (transposed()). A
neighbour whose weight is 0 takes no part in the sum, so that what is beside a part of an axis may be NaN or infinite.
"""

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from tracejit.aval import INT32, Aval, describe_shape
from tracejit.errors import DimsError
from tracejit.ops import batch
from tracejit.ops.floats import as_float, float_of
from tracejit.ops.op import KernelCall, Kind, Op, RangeCut, Sample
from tracejit.util.named_tuples import NamedTuple

_NS_PER_TAP = 0.25  # an element times a weight, roughly: it only decides into how many parts a launch is cut
LINE = 16384  # elements of a line of channels and columns: 64 KiB of float32, which the kernel keeps in the near caches


class SumTables(NamedTuple):
    """The neighbours that each place of the result sums: where they begin, int32 (m,), and their weights, (m, taps)."""

    starts: np.ndarray
    weights: np.ndarray


def tables(places: np.ndarray, weights: np.ndarray, extent: int) -> SumTables:
    """Return the tables of sums with `weights` (m, k) over elements at `places` (m, k), at most k neighbours apart.

    Places outside of an axis of `extent` elements count as the nearest element in it.
    """
    places = np.clip(places, 0, extent - 1)
    taps = min(int((places.max(1) - places.min(1)).max(initial=0)) + 1, extent)
    starts = np.minimum(places.min(1), extent - taps).astype(np.int32)
    table = np.zeros((len(places), taps), weights.dtype)
    np.add.at(table, (np.arange(len(places))[:, None], places - starts[:, None]), weights)
    return SumTables(starts, table)


def transposed(given: SumTables, extent: int) -> SumTables:
    """Return the tables of the adjoint: sums over the places that take an element of an axis of `extent` elements."""
    count = len(given.weights)
    rows, columns = np.nonzero(given.weights)
    sources = given.starts[rows] + columns
    lowest, highest = np.full(extent, count), np.full(extent, -1)
    np.minimum.at(lowest, sources, rows)
    np.maximum.at(highest, sources, rows)
    back = min(max(int((highest - lowest).max(initial=-1)) + 1, 1), count)
    # An element that no place takes begins where the next one does, so that places side by side read side by side.
    lowest = np.minimum.accumulate(lowest[::-1])[::-1]
    starts = np.clip(lowest, 0, count - back).astype(np.int32)
    weights = np.zeros((extent, back), given.weights.dtype)
    np.add.at(weights, (sources, rows - starts[sources]), given.weights[rows, columns])
    return SumTables(starts, weights)


def _infer(x: Aval, starts: Aval, weights: Aval, *back: Aval, axis: int) -> Aval:
    if not 0 <= axis < x.ndim or weights.shape[:1] != starts.shape or weights.ndim != 2:
        raise DimsError(
            f"resample: tables of {describe_shape(starts.shape, None)} and {describe_shape(weights.shape, None)} do "
            f"not fit axis {axis} of x of {describe_shape(x.shape, x.format)}."
        )
    return Aval((*x.shape[:axis], starts.shape[0], *x.shape[axis + 1 :]), x.format, float_of(x.dtype))


def _numpy(
    x: np.ndarray, starts: np.ndarray, weights: np.ndarray, *back: np.ndarray, axis: int
) -> np.ndarray:
    x = as_float(x)
    y = np.zeros((*x.shape[:axis], len(starts), *x.shape[axis + 1 :]), x.dtype)
    after = (1,) * (x.ndim - axis - 1)
    for tap in range(weights.shape[1]):
        factors = weights[:, tap].reshape(-1, *after).astype(x.real.dtype)
        terms = factors * x.take(starts + tap, axis)
        y += terms if factors.all() else np.where(factors != 0, terms, 0)
    return y


def _vjp(b: Any, node: Any, ct: Any) -> Any:
    _, starts, weights, back_starts, back_weights = node.inputs
    return (b.resample(ct, back_starts, back_weights, starts, weights, **node.params), None, None, None, None)


def _promote(x: np.dtype, *tables: np.dtype) -> tuple[np.dtype, ...]:
    return (float_of(x), INT32, float_of(x), INT32, float_of(x))


def _numbers(out: Aval, x: Aval, starts: Aval, weights: Aval, *back: Aval, axis: int) -> Sequence[int]:
    outer, inner = prod(x.shape[:axis]), prod(x.shape[axis + 1 :])
    rows = outer * (starts.shape[0] if inner > 1 else 1)
    return (0, rows if out.size else 0, x.shape[axis], inner, starts.shape[0], weights.shape[1])


def _variant(out: Aval, x: Aval, *tables: Aval, axis: int) -> str:
    return "resample" if prod(x.shape[axis + 1 :]) > 1 else "resample_last"


def _ns(numbers: Sequence[int]) -> float:
    _, rows, _, inner, m, taps = numbers
    return rows * (inner if inner > 1 else 4 * m) * taps * _NS_PER_TAP


def _infer_planes(x: Aval, *tables: Aval, axis: int) -> Aval:
    row_starts, row_weights, column_starts, column_weights, *_ = tables
    fits = 0 <= axis < x.ndim - 1 and row_weights.ndim == column_weights.ndim == 2
    if (
        not fits
        or row_weights.shape[1:] != row_starts.shape
        or column_weights.shape[1:] != column_starts.shape
    ):
        shapes = ", ".join([describe_shape(table.shape, None) for table in tables[:4]])
        raise DimsError(
            f"resample_planes: tables of {shapes} do not fit the axes {axis} and {axis + 1} of x of "
            f"{describe_shape(x.shape, x.format)}."
        )
    shape = (*x.shape[:axis], *row_starts.shape, *column_starts.shape, *x.shape[axis + 2 :])
    return Aval(shape, x.format, float_of(x.dtype))


def _numpy_planes(x: np.ndarray, *tables: np.ndarray, axis: int) -> np.ndarray:
    row_starts, row_weights, column_starts, column_weights, *_ = tables
    x = _numpy(x, row_starts, row_weights.T, axis=axis)
    return _numpy(x, column_starts, column_weights.T, axis=axis + 1)


def _vjp_planes(b: Any, node: Any, ct: Any) -> Any:
    _, *tables = node.inputs
    return (b.resample_planes(ct, *tables[4:], *tables[:4], **node.params), *(None,) * 8)


def _promote_planes(x: np.dtype, *tables: np.dtype) -> tuple[np.dtype, ...]:
    return (float_of(x), *(INT32, float_of(x)) * 4)


def _numbers_planes(out: Aval, x: Aval, *tables: Aval, axis: int) -> Sequence[int]:
    (taps, m), (column_taps, columns) = tables[1].shape, tables[3].shape
    rows = prod(x.shape[:axis]) * m if out.size else 0
    return (0, rows, *x.shape[axis : axis + 2], prod(x.shape[axis + 2 :]), m, columns, taps, column_taps)


def _ns_planes(numbers: Sequence[int]) -> float:
    _, rows, _, w, inner, _, columns, taps, column_taps = numbers
    return rows * inner * (w * taps + columns * column_taps) * _NS_PER_TAP / 2


def fits_planes(x: tuple[int, ...], axis: int, columns: int) -> bool:
    """Return whether resample_planes takes an array of this shape, and `columns` of the result."""
    return max(x[axis + 1], columns) * prod(x[axis + 2 :]) <= LINE


_DTYPES = (None, "int32", None, "int32", None)

OPS = (
    Op(name="resample", doc="for each place along an axis, the sum of neighbours from its start on, with its weights; "
       "the same of ct with the tables of the adjoint, which are inputs", kind=Kind.KERNEL, infer=_infer, numpy=_numpy,
       promote=_promote, vjp=_vjp,
       batch=batch.first_only,
       emit=KernelCall("resample", _numbers, cut=RangeCut(_ns, lambda numbers: numbers[1]), variant=_variant),
       # Without taps, so that any drawn tables are each other's transposes; samples with taps are tested by the
       # functions.
       samples=tuple(Sample((shape, (4,), (4, 0), (shape[axis],), (shape[axis], 0)), {"axis": axis}, dtypes=_DTYPES,
                            integer_high=1) for shape, axis in (((2, 3), 1), ((2, 3, 2), 1)))),
    Op(name="resample_planes", doc="resample() along an axis and the next one; tables of rows, of columns, and of both "
       "for ct, weights as (taps, places)", kind=Kind.KERNEL, infer=_infer_planes, numpy=_numpy_planes,
       promote=_promote_planes, vjp=_vjp_planes, batch=batch.first_only,
       emit=KernelCall("resample_planes", _numbers_planes, cut=RangeCut(_ns_planes, lambda numbers: numbers[1])),
       samples=tuple(Sample((shape, (4,), (0, 4), (5,), (0, 5), (3,), (0, 3), (6,), (0, 6)), {"axis": axis},
                            dtypes=_DTYPES + _DTYPES[1:], integer_high=1)
                     for shape, axis in (((2, 3, 6), 1), ((2, 3, 6, 2), 1)))),
)  # fmt: skip
