# SPDX-License-Identifier: BSD-3-Clause
"""Reductions: folds over axes of one operand, the place of its extremum, and running sums along one axis."""

import math
from typing import Any

import numpy as np

from tracejit.aval import Aval, describe_shape, wide_dtype
from tracejit.errors import DimsError
from tracejit.ops import batch
from tracejit.ops.op import Fold, KernelCall, Kind, Op, Sample

_SHAPES: tuple[tuple[tuple[int, ...], tuple[int, ...], bool], ...] = (
    ((2, 3), (1,), False),
    ((2, 3), (0,), True),
    ((2, 3, 2), (0, 2), False),
    ((2, 1, 3), (0, 1, 2), False),
    ((4,), (), False),
)
_SAMPLES = tuple(Sample((shape,), {"axes": axes, "keepdims": keepdims}) for shape, axes, keepdims in _SHAPES)


def reduced_shape(shape: tuple[int, ...], axes: tuple[int, ...], keepdims: bool) -> tuple[int, ...]:
    """Return `shape` with `axes` of size 1 (keepdims) or left out."""
    if keepdims:
        return tuple([1 if axis in axes else extent for axis, extent in enumerate(shape)])
    return tuple([extent for axis, extent in enumerate(shape) if axis not in axes])


def reduced_format(format: str | None, axes: tuple[int, ...], keepdims: bool) -> str | None:
    """Return `format`, without the labels of `axes` unless keepdims; None if no label is left."""
    if format is None or keepdims:
        return format
    return "".join(label for axis, label in enumerate(format) if axis not in axes) or None


def _reduced(x: Aval, axes: tuple[int, ...], keepdims: bool, dtype: np.dtype) -> Aval:
    return Aval(reduced_shape(x.shape, axes, keepdims), reduced_format(x.format, axes, keepdims), dtype)


def _infer_wide(x: Aval, *, axes: tuple[int, ...], keepdims: bool) -> Aval:
    return _reduced(x, axes, keepdims, wide_dtype(x.dtype))


def _infer_bool(x: Aval, *, axes: tuple[int, ...], keepdims: bool) -> Aval:
    return _reduced(x, axes, keepdims, np.dtype(bool))


def _refuse_empty(function: str, what: str, x: Aval, axes: tuple[int, ...]) -> None:
    for axis in axes:
        if x.shape[axis] == 0:
            raise DimsError(
                f"{function}: axis {axis} of an array of {describe_shape(x.shape, x.format)} is empty, so "
                f"it has no {what}; reduce axes that hold elements, or pad this one first."
            )


def _numpy(ufunc: np.ufunc) -> Any:
    def reference(x: np.ndarray, *, axes: tuple[int, ...], keepdims: bool) -> np.ndarray:
        result: np.ndarray = ufunc.reduce(x, axis=axes, keepdims=keepdims)
        return result

    return reference


def _with_reduced_axes(b: Any, node: Any, value: Any) -> Any:
    """Return `value`, of the shape of the output, with the reduced axes at size 1."""
    shape = reduced_shape(node.inputs[0].shape, node.params["axes"], True)
    return value if value.shape == shape else b.reshape(value, shape=shape)


def _vjp_sum(b: Any, node: Any, ct: Any) -> Any:
    return (_with_reduced_axes(b, node, ct),)  # autodiff broadcasts it to the input's shape


def _infer_sum_add(x: Aval, z: Aval, *, axes: tuple[int, ...], keepdims: bool) -> Aval:
    total = _infer_wide(x, axes=axes, keepdims=keepdims)
    if z.shape != total.shape or np.result_type(z.dtype, total.dtype) != total.dtype:
        raise DimsError(
            f"sum_add: z is {z.dtype} of size {describe_shape(z.shape, z.format)}, but the sum that is added to it is "
            f"{total.dtype} of size {describe_shape(total.shape, total.format)}; use sum and add, which "
            "broadcast and promote."
        )
    return total


def _reference_sum_add(x: np.ndarray, z: np.ndarray, *, axes: tuple[int, ...], keepdims: bool) -> np.ndarray:
    total: np.ndarray = _numpy(np.add)(x, axes=axes, keepdims=keepdims) + z
    return total


def _vjp_sum_add(b: Any, node: Any, ct: Any) -> Any:
    return _with_reduced_axes(b, node, ct), ct


def _vjp_prod(b: Any, node: Any, ct: Any) -> Any:
    # Note [products of all others]
    x = node.inputs[0]
    axes = node.params["axes"]
    ndim = x.ndim
    order = tuple(axis for axis in range(ndim) if axis not in axes) + axes
    count = math.prod(x.shape[axis] for axis in axes)
    outer = math.prod(extent for axis, extent in enumerate(x.shape) if axis not in axes)
    if count < 2:
        return (_with_reduced_axes(b, node, ct),)
    permuted = x if order == tuple(range(ndim)) else b.transpose(x, axes=order)
    flat = b.reshape(permuted, shape=(outer, count))
    others = b.reshape(_products_of_others(b, flat), shape=permuted.shape)
    if permuted is not x:
        others = b.transpose(others, axes=tuple(int(axis) for axis in np.argsort(order)))
    return (b.mul(_with_reduced_axes(b, node, ct), others),)


def _products_of_others(b: Any, x: Any) -> Any:
    """Return, for each element of a matrix of 2 or more columns, the product of the others in its row."""
    outer, count = x.shape
    half = (count + 1) // 2
    first = b.slice(x, starts=(0, 0), stops=(outer, half), steps=(1, 1))
    second = b.slice(x, starts=(0, half), stops=(outer, count), steps=(1, 1))
    if count % 2:
        second = b.pad(second, widths=((0, 0), (0, 1)), value=1.0)
    if half == 1:
        return b.concatenate(second, first, axis=1)
    others = _products_of_others(b, b.mul(first, second))
    joined = b.concatenate(b.mul(others, second), b.mul(others, first), axis=1)
    return joined if count % 2 == 0 else b.slice(joined, starts=(0, 0), stops=(outer, count), steps=(1, 1))


# Note [products of all others]
# The derivative of a product by one factor is the product of the others. prod / x is wrong where a factor
# is 0, and repairs of it by `where` have wrong second derivatives there: d/dx dy (x y) is 1 at (0, 0).
# A tree of multiplications is right at zeros to every order, because it is a polynomial in the factors:
# pair the first half of the row with the second, find the products of the other pairs by recursion, and
# multiply each by the partner. That is 2 log2(n) small ops and about 4 n multiplications.


def _vjp_extremum(b: Any, node: Any, ct: Any) -> Any:
    x = node.inputs[0]
    axes = node.params["axes"]
    hit = b.equal(x, _with_reduced_axes(b, node, node.output))
    ties = b.sum(b.cast(hit, dtype=x.dtype), axes=axes, keepdims=True)
    return (b.where(hit, b.div(_with_reduced_axes(b, node, ct), ties), 0.0),)


def _extremum(name: str, ufunc: np.ufunc, symbol: str, what: str, init: Any) -> Op:
    def infer(x: Aval, *, axes: tuple[int, ...], keepdims: bool) -> Aval:
        _refuse_empty(name, what, x, axes)
        return _reduced(x, axes, keepdims, x.dtype)

    return Op(
        name=name,
        doc=f"{what} over axes, NaN if any element is; ct shared equally among the elements that attain it",
        kind=Kind.REDUCE,
        infer=infer,
        numpy=_numpy(ufunc),
        vjp=_vjp_extremum,
        emit=Fold(init, f"where(({{0}} {symbol} {{1}}) | ({{0}} != {{0}}), {{0}}, {{1}})"),
        samples=_SAMPLES,
        analytic=False,
    )


def _lowest(dtype: np.dtype) -> Any:
    if dtype.kind == "f":
        return -math.inf
    return False if dtype.kind == "b" else int(np.iinfo(dtype).min)


def _highest(dtype: np.dtype) -> Any:
    if dtype.kind == "f":
        return math.inf
    return True if dtype.kind == "b" else int(np.iinfo(dtype).max)


def _search(name: str, function: Any, what: str) -> Op:
    def infer(x: Aval, *, axis: int, keepdims: bool) -> Aval:
        _refuse_empty(name, what, x, (axis,))
        return _reduced(x, (axis,), keepdims, np.dtype(np.int64))

    def reference(x: np.ndarray, *, axis: int, keepdims: bool) -> np.ndarray:
        return np.asarray(function(x, axis=axis, keepdims=keepdims), np.int64)

    return Op(
        name=name,
        doc=f"place of the first {what} along an axis; a NaN counts as the {what}; no derivative",
        kind=Kind.KERNEL,
        infer=infer,
        numpy=reference,
        vjp=None,
        emit=KernelCall("first_place", _found_with_extremum),
        batch=batch.shifted,
        samples=(
            Sample(((2, 3),), {"axis": 1, "keepdims": False}),
            Sample(((2, 3, 2),), {"axis": 1, "keepdims": True}),
            Sample(((4,),), {"axis": 0, "keepdims": False}),
            Sample(((3, 4),), {"axis": 0, "keepdims": False}, dtypes=("int64",), integer_high=2),
        ),
        analytic=False,
        takes_complex=True,
    )


def _found_with_extremum(*avals: Any, **params: Any) -> Any:
    raise AssertionError("the extremum is computed, and then found: passes/graph/simplify.py")


def _infer_first_place(x: Aval, best: Aval, *, axis: int, keepdims: bool) -> Aval:
    return _reduced(x, (axis,), keepdims, np.dtype(np.int64))


def _numpy_first_place(x: np.ndarray, best: np.ndarray, *, axis: int, keepdims: bool) -> np.ndarray:
    shape = tuple([1 if i == axis else extent for i, extent in enumerate(x.shape)])
    hits = (x == best.reshape(shape)) | (x != x)  # noqa: PLR0124 (NaN)
    places = np.asarray(np.argmax(hits, axis=axis), np.int64)
    return np.expand_dims(places, axis) if keepdims else places


def _numbers_first_place(
    out: Aval, x: Aval, best: Aval, *, axis: int, keepdims: bool
) -> tuple[int, int, int]:
    return (math.prod(x.shape[:axis]), x.shape[axis], math.prod(x.shape[axis + 1 :]))


def _infer_cumsum(x: Aval, *, axis: int, reverse: bool) -> Aval:
    return Aval(x.shape, x.format, wide_dtype(x.dtype))


def _numpy_cumsum(x: np.ndarray, *, axis: int, reverse: bool) -> np.ndarray:
    if not reverse:
        return np.cumsum(x, axis)
    return np.flip(np.cumsum(np.flip(x, axis), axis), axis)


def _numbers_cumsum(out: Aval, x: Aval, *, axis: int, reverse: bool) -> tuple[int, int, int, int]:
    return (math.prod(x.shape[:axis]), x.shape[axis], math.prod(x.shape[axis + 1 :]), int(reverse))


OPS = (
    Op(name="sum", doc="sum over axes, of integers and bools in 64 bits; ct broadcast", kind=Kind.REDUCE,
       infer=_infer_wide, numpy=_numpy(np.add), vjp=_vjp_sum, linear=((0,),), emit=Fold(lambda dtype: 0, "{0} + {1}"),
       samples=_SAMPLES),
    Op(name="sum_add", doc="sum over axes of x, plus z, which is as large as that: a sum of sums; ct broadcast, ct",
       kind=Kind.REDUCE, infer=_infer_sum_add, numpy=_reference_sum_add, vjp=_vjp_sum_add, linear=((0, 1),),
       emit=Fold(lambda dtype: 0, "{0} + {1}"),
       samples=(Sample(((2, 3), (2,)), {"axes": (1,), "keepdims": False}),
                Sample(((2, 3), (1, 3)), {"axes": (0,), "keepdims": True}),
                Sample(((2, 1, 3), ()), {"axes": (0, 1, 2), "keepdims": False}))),
    Op(name="prod", doc="product over axes, of integers and bools in 64 bits; ct times the product of the "
       "others, which is right at zeros too", kind=Kind.REDUCE, infer=_infer_wide, numpy=_numpy(np.multiply),
       vjp=_vjp_prod, emit=Fold(lambda dtype: 1, "{0} * {1}"), samples=_SAMPLES),
    _extremum("max", np.maximum, ">", "maximum", _lowest),
    _extremum("min", np.minimum, "<", "minimum", _highest),
    Op(name="any", doc="whether any element is not 0 (NaN is not 0); no derivative", kind=Kind.REDUCE,
       infer=_infer_bool, numpy=_numpy(np.logical_or), vjp=None, emit=Fold(lambda dtype: False, "{0} | {1}"),
       samples=_SAMPLES, analytic=False),
    Op(name="all", doc="whether no element is 0; no derivative", kind=Kind.REDUCE, infer=_infer_bool,
       numpy=_numpy(np.logical_and), vjp=None, emit=Fold(lambda dtype: True, "{0} & {1}"), samples=_SAMPLES,
       analytic=False),
    _search("argmax", np.argmax, "maximum"),
    _search("argmin", np.argmin, "minimum"),
    Op(name="first_place", doc="the first place along an axis where x is `best`, one number for each row, or NaN; no "
       "derivative", kind=Kind.KERNEL, infer=_infer_first_place, numpy=_numpy_first_place, vjp=None, analytic=False,
       batch=batch.shifted, emit=KernelCall("first_place", _numbers_first_place),
       samples=(Sample(((2, 3), (2,)), {"axis": 1, "keepdims": False}, dtypes=("int64", "int64"), integer_high=2),
                Sample(((2, 3, 2), (2, 1, 2)), {"axis": 1, "keepdims": True}, dtypes=("int64", "int64"),
                       integer_high=2))),
    Op(name="cumsum", doc="running sums along an axis, from its end if `reverse`; those of ct the other way",
       takes_complex=True, kind=Kind.KERNEL, infer=_infer_cumsum, numpy=_numpy_cumsum,
       promote=lambda x: (wide_dtype(x),),
       vjp=lambda b, n, ct: (b.cumsum(ct, axis=n.params["axis"], reverse=not n.params["reverse"]),),
       batch=batch.shifted, emit=KernelCall("cumsum", _numbers_cumsum),
       samples=(Sample(((2, 3),), {"axis": 1, "reverse": False}),
                Sample(((2, 3, 2),), {"axis": 1, "reverse": True}),
                Sample(((4,),), {"axis": 0, "reverse": False}))),
)  # fmt: skip
