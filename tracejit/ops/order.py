# SPDX-License-Identifier: BSD-3-Clause
"""Ops of order: the places that sort, places to insert at, extrema so far, running products, recurrences.

A derivative goes where a value came from, to places that comparisons have found.
"""

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from tracejit.aval import INT64, Aval, describe_shape, wide_dtype
from tracejit.errors import DimsError
from tracejit.ops import batch
from tracejit.ops.movement import zeros
from tracejit.ops.op import KernelCall, Kind, Op, Sample


def _numbers(x: Aval, axis: int) -> tuple[int, int, int]:
    return (prod(x.shape[:axis]), x.shape[axis], prod(x.shape[axis + 1 :]))


def _numpy_order(x: np.ndarray, *, axis: int) -> np.ndarray:
    places = np.argsort(x, axis=axis, kind="stable")
    return np.stack([places, np.argsort(places, axis=axis)])


def _numpy_sort(x: np.ndarray, *, axis: int) -> np.ndarray:
    ordered = np.sort(x, axis=axis)
    return np.stack([ordered, np.flip(ordered, axis)])


def _infer_partition(x: Aval, *, axis: int, least: int, most: int) -> tuple[Aval, Aval]:
    assert 0 <= least <= most <= x.shape[axis]  # a pass says which places are wanted
    return x, x


def _numpy_partition(x: np.ndarray, *, axis: int, least: int, most: int) -> tuple[np.ndarray, np.ndarray]:
    return np.sort(x, axis=axis), np.zeros_like(x)


def _vjp_sort(b: Any, node: Any, ct: Any) -> Any:
    # Each element takes what arrived where it went to: its rank, counted from either end.
    x, axis = node.inputs[0], node.params["axis"]
    ranks = _half(b, b.order(x, axis=axis), 1)
    values = b.take_along_axis(_half(b, ct, 0), ranks, axis=axis)
    last = x.shape[axis] - 1
    return (b.add(values, b.take_along_axis(_half(b, ct, 1), b.sub(last, ranks), axis=axis)),)


def _no_kernel(out: Aval, x: Aval, *, axis: int) -> Sequence[int]:
    raise AssertionError("sort: graphs that are compiled have partition instead")


def _half(b: Any, pair: Any, number: int) -> Any:
    """Return one of two arrays that are stacked."""
    shape = pair.shape[1:]
    starts, stops = (number, *(0,) * len(shape)), (number + 1, *shape)
    return b.reshape(b.slice(pair, starts=starts, stops=stops, steps=(1,) * len(stops)), shape=shape)


def _infer_searchsorted(x: Aval, v: Aval, *, right: bool) -> Aval:
    return Aval(v.shape, v.format, INT64)


def _promote_pair(x: np.dtype, v: np.dtype) -> tuple[np.dtype, ...]:
    common = np.result_type(x, v)
    return (common, common)


def _numpy_searchsorted(x: np.ndarray, v: np.ndarray, *, right: bool) -> np.ndarray:
    return np.asarray(np.searchsorted(x, v, "right" if right else "left"))


def _vjp_extremum(b: Any, node: Any, ct: Any) -> Any:
    x, places = node.inputs[0], node.outputs[1]
    return (b.add_along_axis(zeros(b, ct[0], x.shape), places, ct[0], **node.params),)


def _so_far(name: str, ufunc: np.ufunc, what: str) -> Op:
    def reference(x: np.ndarray, *, axis: int) -> tuple[np.ndarray, np.ndarray]:
        moved = np.moveaxis(x, axis, 0)
        best = ufunc.accumulate(moved, axis=0) if len(moved) else moved
        first = np.ones(moved.shape, bool)
        # A place starts a new best where the best so far changes; NaN, which stays, once.
        first[1:] = (best[1:] != best[:-1]) & ~((best[1:] != best[1:]) & (best[:-1] != best[:-1]))
        number = np.arange(len(moved)).reshape(-1, *(1,) * (moved.ndim - 1))
        places = np.maximum.accumulate(np.where(first, number, 0), axis=0) if len(moved) else moved
        return np.moveaxis(best, 0, axis), np.moveaxis(places.astype(np.int64), 0, axis)

    return Op(
        name=name,
        doc=f"the {what} up to each place of an axis, where a NaN counts as the {what}, and the place of the first; "
        "ct added at these places",
        kind=Kind.KERNEL,
        infer=lambda x, *, axis: (Aval(x.shape, x.format, x.dtype), Aval(x.shape, x.format, INT64)),
        numpy=reference,
        vjp=_vjp_extremum,
        emit=KernelCall(name, lambda out, x, *, axis: _numbers(x, axis), tells_saved=True),
        batch=batch.shifted,
        samples=(
            Sample(((2, 3),), {"axis": 1}),
            Sample(((5, 3),), {"axis": 1}),
            Sample(((2, 3, 2),), {"axis": 1}),
            Sample(((4, 2),), {"axis": 0}, dtypes=("int64",), integer_high=2),
        ),
        analytic=False,
        saved=1,
    )


def _shifted(b: Any, x: Any, axis: int, by: int, value: float) -> Any:
    """Return `x` moved along an axis by 1 or -1, with a value at the place that becomes free."""
    n = x.shape[axis]
    starts, stops = [0] * x.ndim, list(x.shape)
    widths = [(0, 0)] * x.ndim
    if by > 0:
        stops[axis], widths[axis] = n - 1, (1, 0)
    else:
        starts[axis], widths[axis] = 1, (0, 1)
    part = b.slice(x, starts=tuple(starts), stops=tuple(stops), steps=(1,) * x.ndim)
    return b.pad(part, widths=tuple(widths), value=value)


def _vjp_recurrence(b: Any, node: Any, ct: Any) -> Any:
    a = node.inputs[0]
    axis, reverse = node.params["axis"], node.params["reverse"]
    if not a.shape[axis]:
        return (None, ct)
    back = 1 if reverse else -1
    total = b.recurrence(_shifted(b, a, axis, back, 0.0), ct, axis=axis, reverse=not reverse)
    return (lambda: b.mul(total, _shifted(b, node.output, axis, -back, 0.0)), total)


def _vjp_cumprod(b: Any, node: Any, ct: Any) -> Any:
    # y_i depends on x_j for j <= i by the product of all factors but x_j: of those before j, and those between.
    # The second are summed by s_j = ct_j + x_(j+1) s_(j+1), without a division, so that factors of 0 are right.
    x, axis = node.inputs[0], node.params["axis"]
    if not x.shape[axis]:
        return (ct,)
    total = b.recurrence(_shifted(b, x, axis, -1, 0.0), ct, axis=axis, reverse=True)
    return (b.mul(total, _shifted(b, node.output, axis, 1, 1.0)),)


def _numpy_recurrence(a: np.ndarray, x: np.ndarray, *, axis: int, reverse: bool) -> np.ndarray:
    y: np.ndarray = np.array(x, np.result_type(a, x))
    rows, factors = np.moveaxis(y, axis, 0), np.moveaxis(a, axis, 0)
    places = range(len(rows))[::-1] if reverse else range(len(rows))
    before = None
    for i in places:
        if before is not None:
            rows[i] += factors[i] * rows[before]
        before = i
    return y


def _infer_recurrence(a: Aval, x: Aval, *, axis: int, reverse: bool) -> Aval:
    if a.shape != x.shape:
        raise DimsError(
            f"recurrence: a has size {describe_shape(a.shape, a.format)} and b {describe_shape(x.shape, x.format)}; "
            "broadcast them to one size."
        )
    return Aval(x.shape, x.format, np.result_type(a.dtype, x.dtype))


OPS = (
    Op(name="order", doc="(2, ...): the places that sort x along an axis, equal elements in their order and NaN last, "
       "and the rank of each element; no derivative", kind=Kind.KERNEL,
       takes_complex=True,
       infer=lambda x, *, axis: Aval((2, *x.shape), None, INT64), numpy=_numpy_order, vjp=None, analytic=False,
       batch=batch.stacked, emit=KernelCall("order", lambda out, x, *, axis: _numbers(x, axis)),
       samples=(Sample(((2, 5),), {"axis": 1}), Sample(((2, 3, 2),), {"axis": 1}), Sample(((1,),), {"axis": 0}),
                Sample(((40, 2),), {"axis": 0}, dtypes=("int64",), integer_high=3))),
    Op(name="sort", doc="(2, ...): the elements of x in order along an axis, NaN last, and in the opposite order; ct "
       "at the ranks", kind=Kind.KERNEL, infer=lambda x, *, axis: Aval((2, *x.shape), None, x.dtype), numpy=_numpy_sort,
       takes_complex=True, vjp=_vjp_sort, analytic=False, batch=batch.stacked,
       emit=KernelCall("partition", _no_kernel),
       samples=(Sample(((2, 5),), {"axis": 1}), Sample(((2, 3, 2),), {"axis": 1}), Sample(((1,),), {"axis": 0}),
                Sample(((40, 2),), {"axis": 0}), Sample(((9, 2),), {"axis": 0}, dtypes=("int64",), integer_high=3))),
    Op(name="partition", doc="the elements of x along an axis, NaN last, with those that belong to the places from "
       "`least` to before `most` there in order, smaller ones in front of them and greater ones behind, in any order; "
       "and scratch memory; no derivative", kind=Kind.KERNEL, infer=_infer_partition, numpy=_numpy_partition, vjp=None,
       analytic=False, saved=1,
       emit=KernelCall("partition", lambda outs, x, *, axis, least, most: (*_numbers(x, axis), least, most)),
       samples=(Sample(((0, 5),), {"axis": 1, "least": 0, "most": 5}),)),
    Op(name="searchsorted", doc="the number of elements of the sorted vector x before each v: smaller ones, or equal "
       "ones too if `right`; NaN after all numbers; no derivative", kind=Kind.KERNEL, infer=_infer_searchsorted,
       numpy=_numpy_searchsorted, promote=_promote_pair, vjp=None, analytic=False,
       batch=batch.searchsorted,
       emit=KernelCall("searchsorted", lambda out, x, v, *, right: (x.size, v.size, int(right))),
       samples=(Sample(((0,), (3,)), {"right": False}), Sample(((1,), (2, 3)), {"right": True}),
                Sample(((1,), ()), {"right": False}))),
    _so_far("cummax", np.maximum, "maximum"),
    _so_far("cummin", np.minimum, "minimum"),
    Op(name="gcd", doc="greatest common divisor of integers >= 0; no derivative", kind=Kind.KERNEL,
       infer=lambda x, y: Aval(x.shape, x.format, x.dtype), numpy=np.gcd, vjp=None, analytic=False,
       batch=batch.rows, emit=KernelCall("gcd", lambda out, x, y: (x.size,)),
       samples=(Sample(((2, 3), (2, 3)), dtypes=("uint64", "uint64"), integer_high=50),)),
    Op(name="cumprod", doc="running products along an axis; ct times the products of the other factors, which is right "
       "at zeros too", kind=Kind.KERNEL, infer=lambda x, *, axis: Aval(x.shape, x.format, wide_dtype(x.dtype)),
       takes_complex=True,
       numpy=lambda x, *, axis: np.cumprod(x, axis), promote=lambda x: (wide_dtype(x),), vjp=_vjp_cumprod,
       batch=batch.shifted, emit=KernelCall("cumprod", lambda out, x, *, axis: _numbers(x, axis)),
       samples=(Sample(((2, 3),), {"axis": 1}), Sample(((2, 3, 2),), {"axis": 1}), Sample(((4,),), {"axis": 0}))),
    Op(name="recurrence", doc="y_i = b_i + a_i y_(i-1) along an axis, or from its end if `reverse`; the same of ct the "
       "other way, with the a that is next", kind=Kind.KERNEL, infer=_infer_recurrence, numpy=_numpy_recurrence,
       takes_complex=True, promote=_promote_pair, vjp=_vjp_recurrence,
       batch=batch.shifted,
       emit=KernelCall("recurrence", lambda out, a, x, *, axis, reverse: (*_numbers(x, axis), int(reverse))),
       samples=(Sample(((2, 3), (2, 3)), {"axis": 1, "reverse": False}),
                Sample(((2, 3, 2), (2, 3, 2)), {"axis": 1, "reverse": True}),
                Sample(((4,), (4,)), {"axis": 0, "reverse": False}))),
)  # fmt: skip
