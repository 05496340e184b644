# SPDX-License-Identifier: BSD-3-Clause
"""Reductions and running sums: NumPy's names and arguments, with axes by number or by label.

Every function takes `axis` as None (all axes), an integer, a tuple of integers, or a string of labels, which
names every axis that carries one of them: ``sum(x, "S")`` sums over all spatial axes. With `keepdims` the
reduced axes stay with size 1 and their labels; without it they go away with their labels.
"""

import builtins
import math
from typing import Any

import numpy as np

from tracejit.array import apply, as_array, dlarray, wrap
from tracejit.aval import FLOAT64, describe_shape, is_inexact, wanted_dtype
from tracejit.errors import DimsError
from tracejit.functions import selecting
from tracejit.functions.axes import axis_of_a_number, drop_axes, normalize_axes, normalize_axis
from tracejit.functions.formats import in_asked_dtype, in_dtype
from tracejit.functions.halves import in_single
from tracejit.record import selections
from tracejit.util.arguments import flag, real


def _reduce(op: str, x: Any, axis: Any, keepdims: bool) -> dlarray:
    array = as_array(x, op)
    axes, keepdims = normalize_axes(op, array, axis), flag(op, "keepdims", keepdims)
    if selections.of(array) is not None:
        found = selecting.reduced(op, array, axes, keepdims)
        if found is not None:
            return found
    return apply(op, array, axes=axes, keepdims=keepdims)


def as_float(array: dlarray) -> dlarray:
    """Return `array`, in float64 if it holds integers or bools."""
    return array if is_inexact(array._data.dtype) else in_dtype(array, FLOAT64)


def _accumulate(op: str, x: Any, axis: Any, keepdims: bool, dtype: Any) -> dlarray:
    if dtype is None:
        return _reduce(op, x, axis, keepdims)
    wanted = wanted_dtype(op, dtype)
    return in_dtype(_reduce(op, in_asked_dtype(as_array(x, op), wanted), axis, keepdims), wanted)


def number_of(array: Any, axes: tuple[int, ...], total: Any = None) -> Any:
    """Return the number of elements along axes; that of a selection is an array in the dtype of its total, if given."""
    part = None if total is None else selections.of(array)
    if part is not None and 0 in axes and selecting.has_any(part.mask):
        return selecting.count(array, axes, total)
    return math.prod([array._data.shape[axis] for axis in axes])


def sum(x: Any, axis: Any = None, keepdims: bool = False, *, dtype: Any = None) -> dlarray:
    """Return the sum over axes.

    Args:
        x: dlarray of any format, ndarray or number.
        axis: None (all axes), an integer, a tuple of integers, or a string of labels.
        keepdims: keep the reduced axes with size 1.
        dtype: type in which to sum and of the result; None for that of `x`, of integers 64 bits.

    Returns:
        dlarray with the labels of the axes that stay. The sum of no elements is 0.

    Raises:
        DimsError: an axis is out of range or named twice, or a label is not in the format.

    The cotangent of every element is that of the sum.

    >>> import numpy as np
    >>> import tracejit as tj
    >>> x = tj.dlarray(np.array([[1.0, 2.0], [3.0, 4.0]]), "CB")
    >>> tj.extractdata(tj.sum(x, "B"))
    array([3., 7.])
    """
    return _accumulate("sum", x, axis, keepdims, dtype)


def prod(x: Any, axis: Any = None, keepdims: bool = False, *, dtype: Any = None) -> dlarray:
    """Return the product over axes.

    Args:
        x: dlarray of any format, ndarray or number.
        axis: None (all axes), an integer, a tuple of integers, or a string of labels.
        keepdims: keep the reduced axes with size 1.
        dtype: type in which to multiply and of the result; None for that of `x`, of integers 64 bits.

    Returns:
        dlarray with the labels of the axes that stay. The product of no elements is 1.

    Raises:
        DimsError: an axis is out of range or named twice, or a label is not in the format.

    The cotangent of an element is that of the product times all other elements: right at zeros, too.

    >>> import tracejit as tj
    >>> float(tj.prod([2.0, 3.0, 4.0]))
    24.0
    """
    return _accumulate("prod", x, axis, keepdims, dtype)


def mean(x: Any, axis: Any = None, keepdims: bool = False, *, dtype: Any = None) -> dlarray:
    """Return the arithmetic mean over axes.

    Args:
        x: dlarray of any format, ndarray or number.
        axis: None (all axes), an integer, a tuple of integers, or a string of labels.
        keepdims: keep the reduced axes with size 1.
        dtype: type in which to compute, and of the result; None for that of `x`, of integers and bools float64.

    Returns:
        dlarray with the labels of the axes that stay. The mean of no elements is NaN.

    Raises:
        DimsError: an axis is out of range or named twice, or a label is not in the format.

    >>> import tracejit as tj
    >>> float(tj.mean([1.0, 2.0, 6.0]))
    3.0
    """
    array = as_array(x, "mean")
    if dtype is None:
        return _mean(as_float(array), axis, keepdims)
    wanted = wanted_dtype("mean", dtype)
    array = in_asked_dtype(array, wanted)
    if wanted.kind not in "iub":
        return _mean(array, axis, keepdims)
    axes = normalize_axes("mean", array, axis)
    total = in_asked_dtype(_reduce("sum", array, axes, flag("mean", "keepdims", keepdims)), wanted)
    # NumPy adds in the type of integers, and cuts the quotient off.
    return in_asked_dtype(apply("div", total, number_of(array, axes, total)), wanted)


@in_single
def _mean(array: dlarray, axis: Any, keepdims: bool) -> dlarray:
    axes = normalize_axes("mean", array, axis)
    total = _reduce("sum", array, axes, flag("mean", "keepdims", keepdims))
    return apply("div", total, number_of(array, axes, total))


def max(x: Any, axis: Any = None, keepdims: bool = False) -> dlarray:
    """Return the maximum over axes, NaN where an element is NaN.

    Args:
        x: dlarray of any format, ndarray or number.
        axis: None (all axes), an integer, a tuple of integers, or a string of labels.
        keepdims: keep the reduced axes with size 1.

    Returns:
        dlarray of the dtype of `x` with the labels of the axes that stay.

    Raises:
        DimsError: a reduced axis is empty, out of range or named twice, or a label is not in the format.

    Elements that are equal to the maximum share its cotangent equally.

    >>> import tracejit as tj
    >>> float(tj.max([1.0, 5.0, 2.0]))
    5.0
    """
    return _reduce("max", x, axis, keepdims)


def min(x: Any, axis: Any = None, keepdims: bool = False) -> dlarray:
    """Return the minimum over axes, NaN where an element is NaN.

    Args:
        x: dlarray of any format, ndarray or number.
        axis: None (all axes), an integer, a tuple of integers, or a string of labels.
        keepdims: keep the reduced axes with size 1.

    Returns:
        dlarray of the dtype of `x` with the labels of the axes that stay.

    Raises:
        DimsError: a reduced axis is empty, out of range or named twice, or a label is not in the format.

    Elements that are equal to the minimum share its cotangent equally.

    >>> import tracejit as tj
    >>> float(tj.min([3.0, 1.0, 2.0]))
    1.0
    """
    return _reduce("min", x, axis, keepdims)


def ptp(x: Any, axis: Any = None, keepdims: bool = False) -> dlarray:
    """Return the difference of maximum and minimum over axes ("peak to peak").

    Args:
        x: dlarray of any format, ndarray or number.
        axis: None (all axes), an integer, a tuple of integers, or a string of labels.
        keepdims: keep the reduced axes with size 1.

    Returns:
        dlarray of the dtype of `x` with the labels of the axes that stay.

    Raises:
        DimsError: a reduced axis is empty, out of range or named twice, or a label is not in the format.

    >>> import tracejit as tj
    >>> float(tj.ptp([3.0, 1.0, 2.0]))
    2.0
    """
    array = as_array(x, "ptp")
    axes = normalize_axes("ptp", array, axis)
    keepdims = flag("ptp", "keepdims", keepdims)
    return apply("sub", max(array, axes, keepdims), min(array, axes, keepdims))


def _search(op: str, x: Any, axis: Any, keepdims: bool) -> dlarray:
    array = as_array(x, op)
    if axis is not None and not (not array._data.ndim and type(axis) is int and axis in (0, -1)):
        return apply(op, array, axis=normalize_axis(op, array, axis), keepdims=flag(op, "keepdims", keepdims))
    shape = array._data.shape
    if array._data.size == 0:
        raise DimsError(
            f"{op}: an array of {describe_shape(shape, array._format)} is empty, so it has no extremum; "
            "pass at least one element."
        )
    place = apply(op, apply("reshape", array, shape=(array._data.size,)), axis=0, keepdims=False)
    if not flag(op, "keepdims", keepdims):
        return place
    place = apply("reshape", place, shape=(1,) * len(shape))
    return wrap(place._data, array._format, place._value)


def argmax(x: Any, axis: Any = None, keepdims: bool = False) -> dlarray:
    """Return the place of the first maximum along an axis; a NaN counts as the maximum.

    Args:
        x: dlarray of any format, ndarray or number.
        axis: an integer or a label that occurs once; None for the place in all elements in C order.
        keepdims: keep the reduced axis with size 1.

    Returns:
        dlarray of int64 with the labels of the axes that stay.

    Raises:
        DimsError: the axis is empty or out of range, or the label is missing or on several axes.

    >>> import tracejit as tj
    >>> int(tj.argmax([1.0, 5.0, 2.0]))
    1
    """
    return _search("argmax", x, axis, keepdims)


def argmin(x: Any, axis: Any = None, keepdims: bool = False) -> dlarray:
    """Return the place of the first minimum along an axis; a NaN counts as the minimum.

    Args:
        x: dlarray of any format, ndarray or number.
        axis: an integer or a label that occurs once; None for the place in all elements in C order.
        keepdims: keep the reduced axis with size 1.

    Returns:
        dlarray of int64 with the labels of the axes that stay.

    Raises:
        DimsError: the axis is empty or out of range, or the label is missing or on several axes.

    >>> import tracejit as tj
    >>> int(tj.argmin([4.0, 5.0, 2.0]))
    2
    """
    return _search("argmin", x, axis, keepdims)


def any(x: Any, axis: Any = None, keepdims: bool = False) -> dlarray:
    """Return whether any element over axes is not 0 (NaN is not 0).

    Args:
        x: dlarray of any format, ndarray or number.
        axis: None (all axes), an integer, a tuple of integers, or a string of labels.
        keepdims: keep the reduced axes with size 1.

    Returns:
        dlarray of bool with the labels of the axes that stay.

    Raises:
        DimsError: an axis is out of range or named twice, or a label is not in the format.

    >>> import tracejit as tj
    >>> bool(tj.any([0.0, 2.0]))
    True
    """
    return _reduce("any", x, axis, keepdims)


def all(x: Any, axis: Any = None, keepdims: bool = False) -> dlarray:
    """Return whether no element over axes is 0.

    Args:
        x: dlarray of any format, ndarray or number.
        axis: None (all axes), an integer, a tuple of integers, or a string of labels.
        keepdims: keep the reduced axes with size 1.

    Returns:
        dlarray of bool with the labels of the axes that stay.

    Raises:
        DimsError: an axis is out of range or named twice, or a label is not in the format.

    >>> import tracejit as tj
    >>> bool(tj.all([0.0, 2.0]))
    False
    """
    return _reduce("all", x, axis, keepdims)


def count_nonzero(x: Any, axis: Any = None, keepdims: bool = False) -> dlarray:
    """Return how many elements over axes are not 0.

    Args:
        x: dlarray of any format, ndarray or number.
        axis: None (all axes), an integer, a tuple of integers, or a string of labels.
        keepdims: keep the reduced axes with size 1.

    Returns:
        dlarray of int64 with the labels of the axes that stay.

    Raises:
        DimsError: an axis is out of range or named twice, or a label is not in the format.

    >>> import tracejit as tj
    >>> int(tj.count_nonzero([0.0, 2.0, 3.0]))
    2
    """
    array = as_array(x, "count_nonzero")
    axes = normalize_axes("count_nonzero", array, axis)
    hits = apply("not_equal", array, np.zeros((), array._data.dtype))
    return _reduce("sum", hits, axes, flag("count_nonzero", "keepdims", keepdims))


def cumsum(x: Any, axis: Any = None, *, dtype: Any = None) -> dlarray:
    """Return the running sums along an axis.

    Args:
        x: dlarray of any format, ndarray or number.
        axis: an integer or a label that occurs once; None for all elements in C order as one axis.
        dtype: type in which to sum and of the result; None for that of `x`, of integers 64 bits.

    Returns:
        dlarray of the sizes and the format of `x`; of one axis and without format where axis is None.

    Raises:
        DimsError: the axis is out of range, or the label is missing or on several axes.

    The cotangent of an element is the sum of the cotangents from its place on.

    >>> import tracejit as tj
    >>> tj.cumsum([1.0, 2.0, 3.0])
    3 dlarray float64
    [1. 3. 6.]
    """
    array = as_array(x, "cumsum")
    wanted = None if dtype is None else wanted_dtype("cumsum", dtype)
    if wanted is not None:
        array = in_asked_dtype(array, wanted)
    if axis is None:
        array, axis = apply("reshape", array, shape=(array._data.size,)), 0
    array = axis_of_a_number(array, axis)
    result = apply("cumsum", array, axis=normalize_axis("cumsum", array, axis), reverse=False)
    return result if wanted is None else in_dtype(result, wanted)


def _variance(function: str, x: Any, axis: Any, keepdims: bool, ddof: float) -> dlarray:
    array = as_float(as_array(x, function))
    axes = normalize_axes(function, array, axis)
    keepdims, ddof = flag(function, "keepdims", keepdims), real(function, "ddof", ddof)
    total = _reduce("sum", array, axes, True)
    count = number_of(array, axes, total)
    squares = square_magnitude(apply("sub", array, apply("div", total, count)))
    total = _reduce("sum", squares, axes, keepdims)
    if type(count) is dlarray:
        count = number_of(array, axes, total)
        return apply("div", total, apply("maximum", apply("sub", count, ddof), 0.0))
    return apply("div", total, builtins.max(count - ddof, 0))


def square_magnitude(array: dlarray) -> dlarray:
    """Return |x| ** 2, without a root where x is complex."""
    if array._data.dtype.kind != "c":
        return apply("square", array)
    return apply("add", *[apply("square", apply(part, array)) for part in ("real", "imag")])


def root(square: dlarray) -> dlarray:
    """Return the square root of sums of squares, with the derivative 0 at 0 (Note [roots at zero])."""
    zero = apply("equal", square, 0)
    root = apply("sqrt", apply("where", zero, 1, square))
    return apply("where", zero, 0, root)


# Note [roots at zero]
# The derivative of sqrt(sum(x x)) at x = 0 would be computed as inf * 0 = NaN, and one row of zeros would
# spoil all weights of a network. 0 is the subgradient of the norm at 0 that the minimum asks for. The value
# under the root is replaced before the root is taken: a `where` after it would still multiply inf by 0.


@in_single
def var(x: Any, axis: Any = None, keepdims: bool = False, *, ddof: float = 0) -> dlarray:
    """Return the variance over axes: the mean of squared deviations from the mean.

    Args:
        x: dlarray of any format, ndarray or number.
        axis: None (all axes), an integer, a tuple of integers, or a string of labels.
        keepdims: keep the reduced axes with size 1.
        ddof: what is taken off the number of elements in the divisor; 1 for the unbiased estimate.

    Returns:
        dlarray of floating-point dtype with the labels of the axes that stay; NaN or infinite where the
        divisor is 0.

    Raises:
        DimsError: an axis is out of range or named twice, or a label is not in the format.

    >>> import tracejit as tj
    >>> float(tj.var([1.0, 3.0]))
    1.0
    """
    return _variance("var", x, axis, keepdims, ddof)


@in_single
def std(x: Any, axis: Any = None, keepdims: bool = False, *, ddof: float = 0) -> dlarray:
    """Return the standard deviation over axes: the root of the variance.

    Args:
        x: dlarray of any format, ndarray or number.
        axis: None (all axes), an integer, a tuple of integers, or a string of labels.
        keepdims: keep the reduced axes with size 1.
        ddof: what is taken off the number of elements in the divisor; 1 for the unbiased estimate.

    Returns:
        dlarray of floating-point dtype with the labels of the axes that stay; NaN or infinite where the
        divisor is 0.

    Raises:
        DimsError: an axis is out of range or named twice, or a label is not in the format.

    The derivative is 0 where all elements are equal.

    >>> import tracejit as tj
    >>> float(tj.std([1.0, 3.0]))
    1.0
    """
    return root(_variance("std", x, axis, keepdims, ddof))


@in_single
def logsumexp(x: Any, axis: Any = None, keepdims: bool = False) -> dlarray:
    """Return log(sum(exp(x))) over axes, without overflow.

    Args:
        x: dlarray of any format, ndarray or number.
        axis: None (all axes), an integer, a tuple of integers, or a string of labels.
        keepdims: keep the reduced axes with size 1.

    Returns:
        dlarray of floating-point dtype with the labels of the axes that stay; -inf where all elements are
        -inf or there are none.

    Raises:
        DimsError: an axis is out of range or named twice, or a label is not in the format.

    The cotangent is multiplied by softmax(x), and by 0 where all elements are -inf.

    >>> import tracejit as tj
    >>> round(float(tj.logsumexp([1000.0, 1000.0])), 4)
    1000.6931
    """
    array = as_float(as_array(x, "logsumexp"))
    keepdims = flag("logsumexp", "keepdims", keepdims)
    axes = normalize_axes("logsumexp", array, axis)
    shift: Any = 0
    if number_of(array, axes):
        # The result does not depend on the shift, so that no derivative is taken through it.
        largest = apply("stop_gradient", apply("max", array, axes=axes, keepdims=True))
        shift = apply("where", apply("isfinite", largest), largest, 0)
    powers = apply("exp", apply("sub", array, shift))
    total = apply("sum", powers, axes=axes, keepdims=True)
    empty = apply("equal", total, 0)
    logarithm = apply("log", apply("where", empty, 1, total))
    result = apply("where", empty, -math.inf, apply("add", logarithm, shift))
    return result if keepdims else drop_axes(result, axes)
