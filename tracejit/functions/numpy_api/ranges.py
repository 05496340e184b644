# SPDX-License-Identifier: BSD-3-Clause
"""Grids: linspace, logspace and geomspace of traced ends, meshgrid, ix_, broadcast_arrays, places in a matrix.

Labels: samples and grids have none; broadcast_arrays labels new axes U.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from tracejit.array import as_array, dlarray
from tracejit.aval import COMPLEX128, FLOAT64, wanted_dtype
from tracejit.errors import ArgumentValueError
from tracejit.functions import elementwise, joining, movement, reductions, taking
from tracejit.functions.formats import in_dtype
from tracejit.functions.numpy_api.flattening import flattened
from tracejit.functions.refusals import refuse
from tracejit.record import recorder, views
from tracejit.record.guards import Decides
from tracejit.util.arguments import check_room, check_sizes, integer, is_option
from tracejit.util.text import brief


def _inexact(*ends: Any) -> np.dtype:
    """Return the floating-point dtype of samples between ends; Python numbers have no say."""
    kinds = [x._kind if recorder.is_number(x) else type(x) for x in ends]
    dtypes = [as_array(x).dtype for x, kind in zip(ends, kinds, strict=True) if kind not in (int, float)]
    return np.result_type(*dtypes, 0.0) if dtypes else FLOAT64


def linspace(
    start: Any,
    stop: Any,
    num: Any = 50,
    endpoint: Any = True,
    retstep: Any = False,
    dtype: Any = None,
    axis: Any = 0,
    *,
    device: Any = None,
) -> Any:
    """Return `num` numbers at equal distances from `start` to `stop`."""
    count = integer("np.linspace", "num", num)
    if count < 0:
        refuse("np.linspace", f"num is {count}, expected a number that is not negative", ArgumentValueError)
    inner = _inexact(start, stop)
    check_room("np.linspace", check_sizes("np.linspace", "num", (count,)), inner)
    first, last = (movement.relabel(in_dtype(as_array(x, "np.linspace"), inner), None) for x in (start, stop))
    delta = last - first
    div = count - 1 if endpoint else count
    places = np.arange(count, dtype=inner).reshape((-1,) + (1,) * delta.ndim)
    step: Any = delta / div if div > 0 else delta * np.nan
    values: Any = places * (step if div > 0 else delta) + first
    if endpoint and count > 1:
        end = movement.expand_dims(movement.expanded(last, values.shape[1:]), 0)
        values = joining.concatenate([values[:-1], end])
    if axis:
        values = movement.moveaxis(values, 0, axis)
    if dtype is not None:
        wanted = wanted_dtype("np.linspace", dtype)
        values = in_dtype(elementwise.floor(values) if wanted.kind in "iu" else values, wanted)
    return (values, step) if retstep else values


def logspace(
    start: Any,
    stop: Any,
    num: Any = 50,
    endpoint: Any = True,
    base: Any = 10.0,
    dtype: Any = None,
    axis: Any = 0,
) -> dlarray:
    """Return powers of `base` whose exponents are at equal distances."""
    if base._data.ndim if recorder.is_array(base) else np.ndim(base):
        base = movement.relabel(as_array(base, "np.logspace", "base"), None)
        count = max(base.ndim, *(as_array(end, "np.logspace").ndim for end in (start, stop)))
        start, base = (
            movement.reshape(end, (1,) * (count - end.ndim) + end.shape)
            for end in (movement.relabel(as_array(start, "np.logspace"), None), base)
        )
        base = movement.expand_dims(base, axis)
    values = elementwise.power(base, linspace(start, stop, num, endpoint, axis=axis))
    return values if dtype is None else in_dtype(values, wanted_dtype("np.logspace", dtype))


def geomspace(
    start: Any, stop: Any, num: Any = 50, endpoint: Any = True, dtype: Any = None, axis: Any = 0
) -> dlarray:
    """Return `num` numbers from `start` to `stop`, each the same multiple of the one before it."""
    ends = [movement.relabel(as_array(x, "np.geomspace"), None) for x in (start, stop)]
    wanted = None if dtype is None else wanted_dtype("np.geomspace", dtype)
    is_complex = "c" in [x.dtype.kind for x in ends] or (wanted is not None and wanted.kind == "c")
    first, last = (in_dtype(x, COMPLEX128 if is_complex else FLOAT64) for x in ends)
    zero = reductions.any(first == 0) | reductions.any(last == 0)
    if bool(recorder.need_value(zero, "np.geomspace", Decides.TRUTH)):
        refuse("np.geomspace", "start and stop must not be zero", ArgumentValueError)
    sign = elementwise.sign(first)
    low, high = first / sign, last / sign
    values = logspace(elementwise.log10(low), elementwise.log10(high), num, endpoint)
    count = values.shape[0]
    if count:
        parts = [movement.expand_dims(movement.expanded(low, values.shape[1:]), 0), values[1:]]
        if count > 1 and endpoint:
            parts[1] = values[1:-1]
            parts.append(movement.expand_dims(movement.expanded(high, values.shape[1:]), 0))
        values = joining.concatenate(parts)
    values = values * sign
    values = movement.moveaxis(values, 0, axis) if axis else values
    return values if wanted is None else in_dtype(values, wanted)


def meshgrid(*xi: Any, copy: Any = True, sparse: Any = False, indexing: Any = "xy") -> tuple[dlarray, ...]:
    """Return, for each vector, its elements at all points of the grid that the vectors span."""
    if not is_option(indexing, ("xy", "ij")):
        refuse("np.meshgrid", f"indexing must be 'xy' or 'ij', not {brief(indexing)}", ArgumentValueError)
    n = len(xi)
    axes = list(range(n))
    if indexing == "xy" and n > 1:
        axes[:2] = [1, 0]
    flat = [flattened("np.meshgrid", x) for x in xi]
    shape = [0] * n
    for axis, x in zip(axes, flat, strict=True):
        shape[axis] = x.size
    results = []
    for axis, x in zip(axes, flat, strict=True):
        spread = movement.reshape(x, tuple(-1 if i == axis else 1 for i in range(n)))
        spread = spread if sparse else movement.expanded(spread, tuple(shape))
        results.append(views.copy(spread) if copy else spread)
    return tuple(results)


def ix_(*args: Any) -> tuple[dlarray, ...]:
    """Return vectors of places as indices of the grid that they span; bools as the places where they are true."""
    results = []
    for k, x in enumerate(args):
        array = movement.relabel(as_array(x, "np.ix_"), None)
        if array.ndim != 1:
            refuse("np.ix_", f"argument {k} has {array.ndim} axes, expected 1", ArgumentValueError)
        if array.dtype == bool:
            array = taking.nonzero(array)[0]
        results.append(movement.reshape(array, tuple(-1 if i == k else 1 for i in range(len(args)))))
    return tuple(results)


def broadcast_arrays(*args: Any, subok: Any = False) -> tuple[dlarray, ...]:
    """Return arrays broadcast against each other, as views."""
    arrays = [as_array(x, "np.broadcast_arrays") for x in args]
    try:
        shape = np.broadcast_shapes(*(x.shape for x in arrays))
    except ValueError:
        sizes = ", ".join(str(x.shape) for x in arrays)
        refuse(
            "np.broadcast_arrays",
            f"sizes {sizes} do not align; each must be 1 or equal, from the last axis on",
            ArgumentValueError,
        )
    return tuple(movement.expanded(x, shape) for x in arrays)


def indices_from(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    """Return the function that gives places in an array of a size, which is all that it reads of an array."""

    def places(arr: Any, k: Any = 0) -> Any:
        array = as_array(arr, name)
        if array.ndim != 2:
            refuse(name, f"arr has {array.ndim} axes, expected 2", ArgumentValueError)
        return function(array.shape[0], k, array.shape[1])

    return places


def diag_indices_from(arr: Any) -> tuple[np.ndarray, ...]:
    """Return the places on the diagonal of an array whose axes are equally long."""
    array = as_array(arr, "np.diag_indices_from")
    if array.ndim < 2 or len(set(array.shape)) != 1:
        refuse(
            "np.diag_indices_from",
            f"arr has size {array.shape}, expected two or more axes of one size",
            ArgumentValueError,
        )
    return np.diag_indices(array.shape[0], array.ndim)


FUNCTIONS: dict[Callable[..., Any], Callable[..., Any]] = {
    np.linspace: linspace,
    np.logspace: logspace,
    np.geomspace: geomspace,
    np.meshgrid: meshgrid,
    np.ix_: ix_,
    np.broadcast_arrays: broadcast_arrays,
    np.tril_indices_from: indices_from(np.tril_indices, "np.tril_indices_from"),
    np.triu_indices_from: indices_from(np.triu_indices, "np.triu_indices_from"),
    np.diag_indices_from: diag_indices_from,
}
