# SPDX-License-Identifier: BSD-3-Clause
"""Ops that read and write at places given by integer arrays, along one axis.

Indices of several axes are combined by the functions. Negative ones count from the end. The references raise
a BoundsError for an index out of range. Compiled code never touches memory outside the array: there reading
gives NaN, or the lowest number of an integer type, writing does nothing, and the program raises the error at its end.
"""

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from tracejit.aval import INT64, Aval, describe_shape
from tracejit.errors import AxisError, BoundsError, DimsError, DTypeError, KeyTypeError
from tracejit.ops import batch
from tracejit.ops.movement import target, zeros
from tracejit.ops.op import KernelCall, Kind, Op, RangeCut, Sample

Shape = tuple[int, ...]


def _check(op: str, x: Aval, index: Aval, axis: int) -> None:
    if index.dtype.kind not in "iu":
        raise KeyTypeError(
            f"{op}: index has dtype {index.dtype}, expected integers. Round and cast it (index.astype(np.int64)), "
            "or turn a mask into indices with nonzero."
        )
    if not 0 <= axis < x.ndim:
        raise AxisError(
            f"{op}: axis {axis} is out of range for x of {describe_shape(x.shape, x.format)}; axes are 0 to "
            f"{x.ndim - 1}, and a scalar has none."
        )


def _check_sums(op: str, x: Aval) -> None:
    if x.dtype.kind == "b":
        raise DTypeError(f"{op}: x has dtype bool, which cannot hold sums; cast it (x.astype(np.int64)).")


def _check_places(op: str, index: np.ndarray, n: int) -> np.ndarray:
    """Return `index` as int64 if all of it lies in -n to n - 1, or raise a BoundsError."""
    outside = (index < -n) | (index >= n)
    if outside.any():
        legal = f"valid indices are {-n} to {n - 1}" if n else "the axis is empty"
        raise BoundsError(
            f"{op}: index {index[outside][0]} is out of range for an axis of size {n}; {legal}."
        )
    return index.astype(np.int64, copy=False)


def _at(axis: int, places: np.ndarray) -> tuple[Any, ...]:
    """Return the key of `places` along an axis."""
    return (slice(None),) * axis + (places,)


def _shape_of_take(x: Aval, index: Aval, axis: int) -> Shape:
    return (*x.shape[:axis], *index.shape, *x.shape[axis + 1 :])


def _numbers(x: Aval, m: int, axis: int) -> tuple[int, ...]:
    return (prod(x.shape[:axis]), x.shape[axis], prod(x.shape[axis + 1 :]), m)


def _lowest(dtype: np.dtype) -> int:
    """Return the lowest number of an integer type, 0 for bool, and 1, which means NaN, for floating point."""
    if dtype.kind in "fc":
        return 1
    return 0 if dtype.kind == "b" else int(np.iinfo(dtype).min)


def _infer_take(x: Aval, index: Aval, *, axis: int) -> Aval:
    _check("take", x, index, axis)
    format = x.format
    if format is not None and index.ndim != 1:
        format = format[:axis] + "U" * index.ndim + format[axis + 1 :] or None
    return Aval(_shape_of_take(x, index, axis), format, x.dtype)


def _numpy_take(x: np.ndarray, index: np.ndarray, *, axis: int) -> np.ndarray:
    result: np.ndarray = np.take(x, _check_places("take", index, x.shape[axis]), axis)
    return result


def _vjp_take(b: Any, node: Any, ct: Any) -> Any:
    x, index = node.inputs
    return (lambda: b.scatter_add(zeros(b, ct, x.shape), index, ct, **node.params), None)


def _infer_scatter(op: str, x: Aval, index: Aval, v: Aval, axis: int) -> Aval:
    _check(op, x, index, axis)
    if op != "put":
        _check_sums(op, x)
    shape = _shape_of_take(x, index, axis)
    if v.shape != shape and not (op == "put" and v.shape == ()):
        raise DimsError(
            f"{op}: v has size {describe_shape(v.shape, v.format)}, but the indexed elements have size "
            f"{describe_shape(shape, None)} (x of {describe_shape(x.shape, x.format)} at an index of "
            f"{describe_shape(index.shape, None)} along axis {axis}); broadcast v to that size."
        )
    return x


def _infer_scatter_add(x: Aval, index: Aval, v: Aval, *, axis: int) -> Aval:
    return _infer_scatter("scatter_add", x, index, v, axis)


def _numpy_scatter_add(x: np.ndarray, index: np.ndarray, v: np.ndarray, *, axis: int) -> np.ndarray:
    y = target(x, v)
    places = _check_places("scatter_add", index, x.shape[axis])
    np.add.at(y, _at(axis, places), v.astype(y.dtype, copy=False))
    return y


def _infer_put(x: Aval, index: Aval, v: Aval, *, axis: int) -> Aval:
    return _infer_scatter("put", x, index, v, axis)


def _numpy_put(x: np.ndarray, index: np.ndarray, v: np.ndarray, *, axis: int) -> np.ndarray:
    y = target(x, v)
    places = _check_places("put", index, x.shape[axis])
    y[_at(axis, places)] = v
    return y


def _vjp_put(b: Any, node: Any, ct: Any) -> Any:
    x, index, _ = node.inputs
    axis = node.params["axis"]

    def of_value() -> Any:
        taken = b.take(ct, index, axis=axis)
        m = prod(index.shape)
        if m < 2:
            return taken
        # If several writes go to one place, only the last one shows in the result, so it alone has a cotangent: `last`
        # holds for each place the number of the write that reached it last.
        writes = b.constant(np.arange(m))
        flat = b.reshape(index, shape=(m,))
        last = b.put(b.broadcast_to(b.constant(np.int64(-1)), shape=(x.shape[axis],)), flat, writes, axis=0)
        kept = b.equal(b.take(last, flat, axis=0), writes)
        kept = b.reshape(kept, shape=(*index.shape, *(1,) * (ct.ndim - axis - 1)))
        return b.where(kept, taken, 0.0)

    return (lambda: b.put(ct, index, 0.0, axis=axis), None, of_value)


def _infer_along(op: str, x: Aval, index: Aval, axis: int) -> None:
    _check(op, x, index, axis)
    if index.ndim != x.ndim or any(
        have != want for i, (have, want) in enumerate(zip(index.shape, x.shape, strict=True)) if i != axis
    ):
        raise DimsError(
            f"{op}: index has size {describe_shape(index.shape, None)} and x "
            f"{describe_shape(x.shape, x.format)}; all sizes except along axis {axis} must be equal."
        )


def _infer_take_along(x: Aval, index: Aval, *, axis: int) -> Aval:
    _infer_along("take_along_axis", x, index, axis)
    return Aval(index.shape, x.format, x.dtype)


def _numpy_take_along(x: np.ndarray, index: np.ndarray, *, axis: int) -> np.ndarray:
    return np.take_along_axis(x, _check_places("take_along_axis", index, x.shape[axis]), axis)


def _vjp_take_along(b: Any, node: Any, ct: Any) -> Any:
    x, index = node.inputs
    return (lambda: b.add_along_axis(zeros(b, ct, x.shape), index, ct, **node.params), None)


def _infer_add_along(x: Aval, index: Aval, v: Aval, *, axis: int) -> Aval:
    _infer_along("add_along_axis", x, index, axis)
    _check_sums("add_along_axis", x)
    if v.shape != index.shape:
        raise DimsError(
            f"add_along_axis: v has size {describe_shape(v.shape, v.format)} and index "
            f"{describe_shape(index.shape, None)}; one number is added for each index, so "
            "broadcast v to that size."
        )
    return x


def _numpy_add_along(x: np.ndarray, index: np.ndarray, v: np.ndarray, *, axis: int) -> np.ndarray:
    y = target(x, v)
    places = _check_places("add_along_axis", index, x.shape[axis])
    grid = np.indices(index.shape, sparse=True)
    np.add.at(y, (*grid[:axis], places, *grid[axis + 1 :]), v.astype(y.dtype, copy=False))
    return y


def _promote_two(x: np.dtype, index: np.dtype) -> tuple[np.dtype, ...]:
    return (x, INT64)


def _promote_three(x: np.dtype, index: np.dtype, v: np.dtype) -> tuple[np.dtype, ...]:
    return (x, INT64, x)


def _take_numbers(out: Aval, x: Aval, index: Aval, *, axis: int) -> Sequence[int]:
    return (*_numbers(x, index.size, axis), _lowest(x.dtype))


def _scatter_numbers(out: Aval, x: Aval, index: Aval, v: Aval, *, axis: int) -> Sequence[int]:
    return _numbers(x, index.size, axis)


def _put_numbers(out: Aval, x: Aval, index: Aval, v: Aval, *, axis: int) -> Sequence[int]:
    return (*_numbers(x, index.size, axis), 0 if v.shape == () else 1)


def _take_along_numbers(out: Aval, x: Aval, index: Aval, *, axis: int) -> Sequence[int]:
    return (*_numbers(x, index.shape[axis], axis), _lowest(x.dtype))


def _add_along_numbers(out: Aval, x: Aval, index: Aval, v: Aval, *, axis: int) -> Sequence[int]:
    return _numbers(x, index.shape[axis], axis)


def _infer_true_places(x: Aval, *, count: int) -> Aval:
    return Aval((count,), None, INT64)


def _numpy_true_places(x: np.ndarray, *, count: int) -> np.ndarray:
    places = np.zeros(count, np.int64)
    chosen = np.flatnonzero(x)[:count]
    places[: chosen.size] = chosen
    return places


def _infer_maxunpool(v: Aval, index: Aval, *, axis: int, extent: int) -> Aval:
    _check("maxunpool", v, index, axis)
    if index.shape != v.shape:
        raise DimsError(
            f"maxunpool: index has size {describe_shape(index.shape, None)} and v {describe_shape(v.shape, v.format)}; "
            "there must be an index for each element."
        )
    return Aval((*v.shape[:axis], extent, *v.shape[axis + 1 :]), v.format, v.dtype)


def _numpy_maxunpool(v: np.ndarray, index: np.ndarray, *, axis: int, extent: int) -> np.ndarray:
    outside = (index < 0) | (index >= extent)
    if outside.any():
        raise BoundsError(
            f"maxunpool: index {index[outside][0]} is out of range for an image of {extent} elements; valid indices "
            f"are 0 to {extent - 1}."
        )
    y = np.zeros((*v.shape[:axis], extent, *v.shape[axis + 1 :]), v.dtype)
    np.put_along_axis(y, index.astype(np.int64, copy=False), v, axis)
    return y


def _vjp_maxunpool(b: Any, node: Any, ct: Any) -> Any:
    v, index = node.inputs

    def of_value() -> Any:
        # If several elements go to one place, only the last one shows in the result: the number of each is put there
        # too.
        numbers = b.reshape(b.constant(np.arange(prod(v.shape))), shape=v.shape)
        last = b.take_along_axis(b.maxunpool(numbers, index, **node.params), index, axis=node.params["axis"])
        return b.where(b.equal(last, numbers), b.take_along_axis(ct, index, axis=node.params["axis"]), 0.0)

    return (of_value, None)


def _maxunpool_numbers(out: Aval, v: Aval, index: Aval, *, axis: int, extent: int) -> Sequence[int]:
    rows = prod(v.shape[:axis])
    return (0, rows, extent, prod(v.shape[axis + 1 :]), v.shape[axis])


def _maxunpool_ns(numbers: Sequence[int]) -> float:
    _, rows, extent, inner, m = numbers
    return rows * inner * (extent * 0.1 + m * 1.5)


def _sample(*shapes: Shape, axis: int, high: int) -> Sample:
    dtypes = (None, "int64") if len(shapes) == 2 else (None, "int64", None)
    return Sample(shapes, {"axis": axis}, dtypes=dtypes, integer_high=high)


OPS = (
    Op(name="take", doc="x at the places `index` along an axis, which the axes of index replace; ct added to "
       "zeros. Out of range: BoundsError; compiled NaN, or the lowest number of an integer type.",
       takes_complex=True, kind=Kind.KERNEL, infer=_infer_take, numpy=_numpy_take, promote=_promote_two, vjp=_vjp_take,
       batch=batch.take, emit=KernelCall("take", _take_numbers, True),
       samples=(_sample((4, 3), (2,), axis=0, high=4), _sample((2, 4), (), axis=1, high=4),
                _sample((2, 3, 2), (2, 3), axis=1, high=3))),
    Op(name="scatter_add", doc="x with each v added at its place in `index` along an axis, repeated places "
       "add up; ct, ct taken at index. Out of range: BoundsError; compiled no effect.",
       takes_complex=True,
       kind=Kind.KERNEL, infer=_infer_scatter_add, numpy=_numpy_scatter_add, promote=_promote_three,
       vjp=lambda b, n, ct: (ct, None, lambda: b.take(ct, n.inputs[1], **n.params)),
       linear=((0, 2),), batch=batch.scatter, emit=KernelCall("scatter_add", _scatter_numbers, True, onto=True),
       samples=(_sample((4, 3), (5,), (5, 3), axis=0, high=4), _sample((2, 4), (), (2,), axis=1, high=4),
                _sample((2, 3, 2), (2, 2), (2, 2, 2, 2), axis=1, high=3))),
    Op(name="put", doc="x with v (one number or one for each place) at the places `index` along an axis; of "
       "repeated places the last counts. ct with the places zeroed; ct taken at index, 0 for what was "
       "overwritten. Out of range: BoundsError; compiled no effect.",
       takes_complex=True, kind=Kind.KERNEL, infer=_infer_put, numpy=_numpy_put, promote=_promote_three, vjp=_vjp_put,
       linear=((0, 2),), batch=batch.scatter, emit=KernelCall("put", _put_numbers, True, onto=True),
       samples=(_sample((4, 3), (5,), (5, 3), axis=0, high=4), _sample((2, 4), (), (2,), axis=1, high=4),
                _sample((2, 3, 2), (2, 2), (2, 2, 2, 2), axis=1, high=3),
                _sample((4, 2), (3,), (), axis=0, high=4))),
    Op(name="take_along_axis", doc="x at places given for each element, along an axis; ct added to zeros. "
       "Out of range as in take.",
       takes_complex=True, kind=Kind.KERNEL, infer=_infer_take_along, numpy=_numpy_take_along, promote=_promote_two,
       vjp=_vjp_take_along, batch=batch.shifted, emit=KernelCall("take_along_axis", _take_along_numbers, True),
       samples=(_sample((4, 3), (2, 3), axis=0, high=4), _sample((2, 3, 2), (2, 5, 2), axis=1, high=3))),
    Op(name="add_along_axis", doc="x with each v added at its place, along an axis, repeated places add up; "
       "ct, ct at the places. Out of range as in scatter_add.",
       takes_complex=True, kind=Kind.KERNEL, infer=_infer_add_along, numpy=_numpy_add_along, promote=_promote_three,
       vjp=lambda b, n, ct: (ct, None, lambda: b.take_along_axis(ct, n.inputs[1], **n.params)),
       linear=((0, 2),), batch=batch.shifted, emit=KernelCall("add_along_axis", _add_along_numbers, True, onto=True),
       samples=(_sample((4, 3), (5, 3), (5, 3), axis=0, high=4),
                _sample((2, 3, 2), (2, 5, 2), (2, 5, 2), axis=1, high=3))),
    Op(name="maxunpool", doc="zeros with v at the places `index` along an axis, given for each element; of repeated "
       "places the last counts. ct at the places, 0 for what was overwritten. Out of range as in put.",
       kind=Kind.KERNEL, infer=_infer_maxunpool, numpy=_numpy_maxunpool, promote=_promote_two, vjp=_vjp_maxunpool,
       linear=((0,),), batch=batch.shifted,
       emit=KernelCall("maxunpool", _maxunpool_numbers, True, RangeCut(_maxunpool_ns, lambda numbers: numbers[1])),
       samples=tuple(Sample((shape, shape), {"axis": axis, "extent": 4}, dtypes=(None, "int64"), integer_high=4)
                     for shape, axis in (((3,), 0), ((2, 3), 1), ((2, 3, 2), 1)))),
    Op(name="true_places", doc="the places, in C order, of the first `count` elements that are not 0, then zeros; "
       "no derivative",
       kind=Kind.KERNEL, infer=_infer_true_places, numpy=_numpy_true_places, vjp=None, analytic=False,
       emit=KernelCall("true_places", lambda out, x, *, count: (x.size, count)),
       samples=(Sample(((2, 3),), {"count": 4}), Sample(((5,),), {"count": 9}), Sample(((3,),), {"count": 0}))),
)  # fmt: skip
