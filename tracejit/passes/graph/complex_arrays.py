# SPDX-License-Identifier: BSD-3-Clause
"""Moves, reductions, products and orders of complex arrays as ops on their parts."""

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from tracejit.ir import Node, Value
from tracejit.passes.graph import pairs
from tracejit.passes.graph.pairs import Operand, Parts, has_nan, is_zero, number, pair_of


def _each(b: Any, node: Node, *operands: Operand) -> Parts:
    """Return an op that treats parts alike: moves, sums, and what is gathered or scattered by integers."""
    complex_ones = {i for i, value in enumerate(node.inputs) if value.dtype.kind == "c"}
    halves = [
        [pair_of(b, x)[part] if i in complex_ones else x for i, x in enumerate(operands)] for part in (0, 1)
    ]
    params = [node.params, node.params]
    if node.op.name == "pad":
        value = complex(node.params["value"])
        params = [{**node.params, "value": part} for part in (value.real, value.imag)]
    return Parts(*[b.apply(node.op, values, own) for values, own in zip(halves, params, strict=True)])


def _real(b: Any, node: Node, x: Parts) -> Value:
    return x.re


def _imag(b: Any, node: Node, x: Parts) -> Value:
    return x.im


def _complex_of(b: Any, node: Node, x: Value, y: Value) -> Parts:
    shape = node.output.shape
    return Parts(*[part if part.shape == shape else b.broadcast_to(part, shape=shape) for part in (x, y)])


def _pairs(b: Any, node: Node, x: Parts) -> Value:
    whole = pairs.whole_of(x)
    if whole is not None:
        return b.pairs(whole)  # type: ignore[no-any-return]
    parts = [b.reshape(part, shape=(*part.shape, 1)) for part in x]
    return b.concatenate(*parts, axis=parts[0].ndim - 1)  # type: ignore[no-any-return]


def _logical(name: str) -> Callable[..., Value]:
    def rule(b: Any, node: Node, x: Parts) -> Value:
        result: Value = getattr(b, name)(b.logical_not(is_zero(b, x)), **node.params)
        return result

    return rule


def _rows(b: Any, x: Value, axes: tuple[int, ...]) -> Value:
    """Return `x` with `axes` joined to one, which is the last."""
    kept = tuple([axis for axis in range(x.ndim) if axis not in axes])
    shape = (*[x.shape[axis] for axis in kept], prod([x.shape[axis] for axis in axes]))
    rows: Value = b.reshape(b.transpose(x, axes=(*kept, *axes)), shape=shape)
    return rows


def _slice(b: Any, x: Parts, axis: int, start: int, stop: int) -> Parts:
    starts, stops = [0] * x.re.ndim, list(x.re.shape)
    starts[axis], stops[axis] = start, stop
    where = {"starts": tuple(starts), "stops": tuple(stops), "steps": (1,) * x.re.ndim}
    return Parts(b.slice(x.re, **where), b.slice(x.im, **where))


def _joined(b: Any, x: Parts, y: Parts, axis: int) -> Parts:
    return Parts(b.concatenate(x.re, y.re, axis=axis), b.concatenate(x.im, y.im, axis=axis))


def _prod(b: Any, node: Node, x: Parts) -> Parts:
    rows = Parts(_rows(b, x.re, node.params["axes"]), _rows(b, x.im, node.params["axes"]))
    axis = rows.re.ndim - 1
    while (count := rows.re.shape[axis]) > 1:
        half = count // 2
        product = pairs.mul(b, _slice(b, rows, axis, 0, half), _slice(b, rows, axis, half, 2 * half))
        rows = (
            product if count % 2 == 0 else _joined(b, product, _slice(b, rows, axis, count - 1, count), axis)
        )
    shape = node.output.shape
    if not rows.re.shape[axis]:
        empty = b.broadcast_to(number(b, 1.0, rows.re), shape=shape)
        return Parts(empty, pairs.zeros(b, empty))
    return Parts(b.reshape(rows.re, shape=shape), b.reshape(rows.im, shape=shape))


def _cumprod(b: Any, node: Node, x: Parts) -> Parts:
    nothing = Parts(pairs.zeros(b, x.re), pairs.zeros(b, x.im))
    return _scan(b, x, nothing, node.params["axis"], False)[0]


def _recurrence(b: Any, node: Node, a: Operand, x: Operand) -> Parts:
    axis, reverse = node.params["axis"], node.params["reverse"]
    return _scan(b, pair_of(b, a), pair_of(b, x), axis, reverse)[1]


def _scan(b: Any, a: Parts, x: Parts, axis: int, reverse: bool) -> tuple[Parts, Parts]:
    """Return running products of a, and y_i = x_i + a_i y_(i-1), in log2(n) steps that double the distance."""
    n = a.re.shape[axis]
    distance = 1
    while distance < n:
        ends = ((0, distance), (distance, n), (0, n - distance))
        if reverse:
            ends = ((n - distance, n), (0, n - distance), (distance, n))
        (done_a, done_x), (own_a, own_x), (far_a, far_x) = (
            (_slice(b, a, axis, *end), _slice(b, x, axis, *end)) for end in ends
        )
        new_x = pairs.add(b, own_x, pairs.mul(b, own_a, far_x))
        new_a = pairs.mul(b, own_a, far_a)
        halves = [(done_a, new_a), (done_x, new_x)]
        a, x = (_joined(b, *(half[::-1] if reverse else half), axis) for half in halves)
        distance *= 2
    return a, x


def _first_hit(b: Any, x: Parts, name: str) -> tuple[Value, Value]:
    """Return where the extremum of each row is, NaN counting as one, and the place of the first."""
    lowest = number(b, -np.inf if name == "max" else np.inf, x.re)
    axes: dict[str, Any] = {"axes": (x.re.ndim - 1,), "keepdims": True}
    nan = has_nan(b, x)
    fold = getattr(b, name)
    best = fold(b.where(nan, lowest, x.re), **axes)
    among = b.logical_and(b.equal(x.re, best), b.logical_not(nan))
    height = fold(b.where(among, x.im, lowest), **axes)
    hit = b.logical_and(among, b.equal(x.im, height))
    hit = b.where(
        b.any(nan, **axes), b.cast(nan, dtype=np.dtype(np.int64)), b.cast(hit, dtype=np.dtype(np.int64))
    )
    return hit, b.argmax(hit, axis=x.re.ndim - 1, keepdims=True)


def _extremum(b: Any, node: Node, x: Parts) -> Parts:
    rows = Parts(_rows(b, x.re, node.params["axes"]), _rows(b, x.im, node.params["axes"]))
    _, places = _first_hit(b, rows, node.op.name)
    axis = rows.re.ndim - 1
    return Parts(*[
        b.reshape(b.take_along_axis(part, places, axis=axis), shape=node.output.shape) for part in rows
    ])  # fmt: skip


def _search(b: Any, node: Node, x: Parts) -> Value:
    axis = node.params["axis"]
    rows = Parts(_rows(b, x.re, (axis,)), _rows(b, x.im, (axis,)))
    _, places = _first_hit(b, rows, node.op.name.removeprefix("arg"))
    reshaped: Value = b.reshape(places, shape=node.output.shape)
    return reshaped


def _places_in_order(b: Any, x: Parts, axis: int) -> Value:
    """Return the places that sort by real parts, then by imaginary ones, with NaN as NumPy has it."""
    one, two = (b.constant(np.int64(value)) for value in (1, 2))
    nan = b.add(b.where(b.isnan(x.re), two, b.constant(np.int64(0))),
                b.where(b.isnan(x.im), one, b.constant(np.int64(0))))  # fmt: skip
    places: Value | None = None
    for key in (x.im, x.re, nan):  # the last key counts most; each order keeps that of equal elements
        if places is None:
            places = _first(b, b.order(key, axis=axis))
        else:
            step = _first(b, b.order(b.take_along_axis(key, places, axis=axis), axis=axis))
            places = b.take_along_axis(places, step, axis=axis)
    assert places is not None
    return places


def _first(b: Any, stacked: Value) -> Value:
    shape = stacked.shape[1:]
    part = b.slice(stacked, starts=(0,) * stacked.ndim, stops=(1, *shape), steps=(1,) * stacked.ndim)
    first: Value = b.reshape(part, shape=shape)
    return first


def _order(b: Any, node: Node, x: Parts) -> Value:
    axis = node.params["axis"]
    places = _places_in_order(b, x, axis)
    ranks = _first(b, b.order(places, axis=axis))
    both: Value = _stacked(b, places, ranks)
    return both


def _stacked(b: Any, x: Value, y: Value) -> Value:
    return b.concatenate(b.reshape(x, shape=(1, *x.shape)), b.reshape(y, shape=(1, *y.shape)), axis=0)  # type: ignore[no-any-return]


def _sort(b: Any, node: Node, x: Parts) -> Parts:
    axis = node.params["axis"]
    places = _places_in_order(b, x, axis)
    steps = tuple([-1 if i == axis else 1 for i in range(x.re.ndim)])
    starts = tuple([n - 1 if step < 0 else 0 for n, step in zip(x.re.shape, steps, strict=True)])
    stops = tuple([-1 if step < 0 else n for n, step in zip(x.re.shape, steps, strict=True)])
    halves = []
    for part in x:
        ordered = b.take_along_axis(part, places, axis=axis)
        back = b.slice(ordered, starts=starts, stops=stops, steps=steps) if x.re.shape[axis] else ordered
        halves.append(_stacked(b, ordered, back))
    return Parts(*halves)


def _matmul(b: Any, node: Node, x: Operand, y: Operand, z: Operand | None = None) -> Parts:
    # [X.re X.im] times [[Y.re Y.im], [-Y.im Y.re]]: one product of real matrices, with as many multiplications.
    left, right = pair_of(b, x), pair_of(b, y)
    rows, columns = left.re.ndim - 1, right.re.ndim - 1
    both = b.concatenate(left.re, left.im, axis=rows)
    above = b.concatenate(right.re, right.im, axis=columns)
    below = b.concatenate(b.neg(right.im), right.re, axis=columns)
    product = b.matmul(both, b.concatenate(above, below, axis=columns - 1))
    n, last = right.re.shape[-1], product.ndim - 1
    result = Parts(*[_slice(b, Parts(product, product), last, at, at + n)[0] for at in (0, n)])
    return result if z is None else pairs.add(b, result, pair_of(b, z))


def _by_numpy(b: Any, node: Node, *operands: Operand) -> Parts:
    whole = b.apply(node.op, [pairs.joined(b, x) for x in operands], node.params)
    return Parts(b.real(whole), b.imag(whole))


_ALIKE = (
    "reshape", "transpose", "broadcast_to", "slice", "setslice", "concatenate", "assemble", "pad", "take",
    "scatter_add", "put", "take_along_axis", "add_along_axis", "cumsum", "sum", "sum_add",
)  # fmt: skip

ARRAYS: dict[str, Callable[..., Any]] = {
    **dict.fromkeys(_ALIKE, _each),
    "real": _real,
    "imag": _imag,
    "complex_of": _complex_of,
    "pairs": _pairs,
    "any": _logical("any"),
    "all": _logical("all"),
    "prod": _prod,
    "cumprod": _cumprod,
    "recurrence": _recurrence,
    "max": _extremum,
    "min": _extremum,
    "argmax": _search,
    "argmin": _search,
    "order": _order,
    "sort": _sort,
    "matmul": _matmul,
    "matmul_add": _matmul,
    "complex_product": _by_numpy,
    "gram": _by_numpy,
}
