# SPDX-License-Identifier: BSD-3-Clause
"""Rows of a table at the places that integers give, and the sums of rows by place, which are the adjoint."""

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from tracejit.aval import INT32, INT64, Aval, describe_shape
from tracejit.errors import BoundsError, DimsError, DTypeError
from tracejit.ops import batch
from tracejit.ops.floats import as_float, float_of
from tracejit.ops.op import KernelCall, Kind, Op, RangeCut, Sample

_NS_PER_ELEMENT = 0.15  # of a row, roughly: it only decides into how many parts a launch is cut


def _infer_embed(x: Aval, index: Aval) -> Aval:
    if x.ndim != 2 or index.ndim != 1:
        raise DimsError(
            f"embed: expected a table of rows and a vector of places, found {describe_shape(x.shape, x.format)} and "
            f"{describe_shape(index.shape, index.format)}."
        )
    if index.dtype.kind not in "iu":
        raise DTypeError(f"embed: places have dtype {index.dtype}, expected integers.")
    return Aval((index.shape[0], x.shape[1]), None, float_of(x.dtype))


def _numpy_embed(x: np.ndarray, index: np.ndarray) -> np.ndarray:
    n = x.shape[0]
    outside = (index < 0) | (index >= n)
    if outside.any():
        raise BoundsError(
            f"embed: index {index[outside][0]} is out of range for {n} rows; valid indices are 0 to {n - 1}."
        )
    rows: np.ndarray = x[index]
    return as_float(rows)


def _vjp_embed(b: Any, node: Any, ct: Any) -> Any:
    x, index = node.inputs
    return (lambda: b.sum_groups(ct, index, *b.row_groups(index, extent=x.shape[0]), extent=x.shape[0]), None)


def _infer_groups(index: Aval, *, extent: int) -> tuple[Aval, Aval]:
    return Aval((extent + 1,), None, INT32), Aval(index.shape, None, INT32)


def _numpy_groups(index: np.ndarray, *, extent: int) -> tuple[np.ndarray, np.ndarray]:
    order = np.argsort(index, kind="stable").astype(np.int32)
    starts = np.searchsorted(index[order], np.arange(extent + 1)).astype(np.int32)
    return starts, order


def _infer_sum(v: Aval, index: Aval, starts: Aval, order: Aval, *, extent: int) -> Aval:
    return Aval((extent, v.shape[1]), None, float_of(v.dtype))


def _numpy_sum(
    v: np.ndarray, index: np.ndarray, starts: np.ndarray, order: np.ndarray, *, extent: int
) -> np.ndarray:
    y = np.zeros((extent, v.shape[1]), v.dtype if v.dtype.kind in "fc" else np.float64)
    counts = np.diff(starts)
    np.add.at(y, np.repeat(np.arange(extent), counts), v[order[: counts.sum()]])
    return y


def _vjp_sum(b: Any, node: Any, ct: Any) -> Any:
    return (lambda: b.embed(ct, node.inputs[1]), None, None, None)


def _rows(numbers: Sequence[int]) -> int:
    return numbers[1]


def _embed_numbers(out: Aval, x: Aval, index: Aval) -> Sequence[int]:
    return (0, index.shape[0], *x.shape)


def _sum_numbers(out: Aval, v: Aval, *rest: Aval, extent: int) -> Sequence[int]:
    return (0, extent, v.shape[1])


def _sum_ns(numbers: Sequence[int]) -> float:
    return 2 * numbers[1] * numbers[2] * _NS_PER_ELEMENT


OPS = (
    Op(name="embed", doc="the rows of x at the places `index`, 0 to n - 1; ct summed by place. Out of range: "
       "BoundsError; compiled NaN.", kind=Kind.KERNEL, infer=_infer_embed, numpy=_numpy_embed,
       promote=lambda x, index: (float_of(x), INT64), vjp=_vjp_embed,
       batch=batch.embed,
       emit=KernelCall("embed", _embed_numbers, True, RangeCut(lambda n: prod(n[1::2]) * _NS_PER_ELEMENT, _rows)),
       samples=tuple(Sample((x, (m,)), dtypes=(None, "int64"), integer_high=4)
                     for x, m in (((4, 3), 7), ((4, 1), 2), ((5, 0), 3), ((4, 2), 0)))),
    Op(name="row_groups", doc="where the entries of each value from 0 to extent - 1 begin among the sorted entries of "
       "an index, and the order that sorts them; no derivative", kind=Kind.KERNEL, infer=_infer_groups,
       numpy=_numpy_groups, promote=lambda index: (INT64,), vjp=None, analytic=False,
       emit=KernelCall("row_groups", lambda out, index, *, extent: (index.shape[0], extent)),
       samples=tuple(Sample(((m,),), {"extent": 4}, dtypes=("int64",), integer_high=4) for m in (7, 1, 0))),
    Op(name="sum_groups", doc="the sum of the rows of v for each place, the places sorted by row_groups; ct at the "
       "places",
       kind=Kind.KERNEL, infer=_infer_sum, numpy=_numpy_sum,
       promote=lambda v, index, starts, order: (float_of(v), INT64, INT32, INT32), vjp=_vjp_sum,
       emit=KernelCall("sum_groups", _sum_numbers, cut=RangeCut(_sum_ns, _rows)),
       # Without rows, so that any drawn numbers are their groups; samples with rows are tested by gradients of embed.
       samples=(Sample(((0, 3), (0,), (3,), (0,)), {"extent": 2}, dtypes=(None, "int64", "int32", "int32"),
                       integer_high=1),)),
)  # fmt: skip
