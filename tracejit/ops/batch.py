# SPDX-License-Identifier: BSD-3-Clause
"""Rules of ops for many observations at once: the op on operands with an additional axis of observations in front.

A rule is called as ``rule(b, node, given, count)``. `given` has, for each input of the node, the value with the axis of
`count` observations in front, or None for an input that is the same for all. It returns the outputs with that axis.
"""

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from tracejit.ops.matrices import transposed

Given = Sequence[Any]


def every(b: Any, node: Any, given: Given, count: int) -> list[Any]:
    """Return all inputs with the axis of observations."""
    return [
        repeated(b, value, count) if own is None else own
        for value, own in zip(node.inputs, given, strict=True)
    ]


def repeated(b: Any, value: Any, count: int) -> Any:
    """Return a value that is the same for all with the axis of observations: one broadcast, of what was broadcast."""
    source = value
    while source.node is not None and source.node.op.name == "broadcast_to":
        source = source.node.inputs[0]
    return b.broadcast_to(source, shape=(count, *value.shape))


def ranked(b: Any, own: Any, ndim: int) -> Any:
    """Return a value with the axis of observations in front of `ndim` axes, so that it broadcasts as it did without."""
    _, *shape = own.shape
    missing = ndim - len(shape)
    return b.reshape(own, shape=(own.shape[0], *(1,) * missing, *shape)) if missing > 0 else own


def aligned(b: Any, node: Any, given: Given, count: int) -> Any:
    """Apply an op whose operands broadcast."""
    ndim = max(value.ndim for value in node.inputs)
    inputs = [
        value if own is None else ranked(b, own, ndim) for value, own in zip(node.inputs, given, strict=True)
    ]
    return b.apply(node.op, inputs, node.params)


def rows(b: Any, node: Any, given: Given, count: int) -> Any:
    """Apply an op that takes any number of axes in front."""
    return b.apply(node.op, every(b, node, given, count), node.params)


def shifted(b: Any, node: Any, given: Given, count: int) -> Any:
    """Apply an op whose params `axis`, `axes` and `shape` are about all axes; others it treats each apart."""
    params = dict(node.params)
    if "axis" in params:
        params["axis"] += 1
    if "axes" in params:
        params["axes"] = tuple([axis + 1 for axis in params["axes"]])
    if "shape" in params:
        params["shape"] = (count, *params["shape"])
    return b.apply(node.op, every(b, node, given, count), params)


def drawn(b: Any, node: Any, given: Given, count: int) -> Any:
    """Draw other random numbers for each observation: the generator has moved on by as many (functions/rng.py)."""
    return b.apply(node.op, node.inputs, {**node.params, "shape": (count, *node.params["shape"])})


def stacked(b: Any, node: Any, given: Given, count: int) -> Any:
    """Apply an op along an axis whose result has one more axis in front."""
    result = b.apply(node.op, given, {**node.params, "axis": node.params["axis"] + 1})
    return b.transpose(result, axes=(1, 0, *range(2, result.ndim)))


def transpose(b: Any, node: Any, given: Given, count: int) -> Any:
    """Transpose the axes behind the first."""
    return b.transpose(given[0], axes=(0, *[axis + 1 for axis in node.params["axes"]]))


def broadcast(b: Any, node: Any, given: Given, count: int) -> Any:
    """Broadcast the axes behind the first."""
    shape = node.params["shape"]
    return b.broadcast_to(ranked(b, given[0], len(shape)), shape=(count, *shape))


def slice_(b: Any, node: Any, given: Given, count: int) -> Any:
    """Take a slice of each observation, or replace it."""
    starts, stops, steps = (node.params[name] for name in ("starts", "stops", "steps"))
    params = {"starts": (0, *starts), "stops": (count, *stops), "steps": (1, *steps)}
    inputs = [every(b, node, given, count)[0], *node.inputs[1:]]
    if len(inputs) > 1 and given[1] is not None:
        inputs[1] = ranked(b, given[1], len(starts))
    return b.apply(node.op, inputs, params)


def assemble(b: Any, node: Any, given: Given, count: int) -> Any:
    """Assemble each observation."""
    places = tuple([((0, *a), (count, *o), (1, *e)) for a, o, e in node.params["places"]])
    shape = (count, *node.params["shape"])
    return b.assemble(*every(b, node, given, count), shape=shape, places=places)


def pad(b: Any, node: Any, given: Given, count: int) -> Any:
    """Pad each observation."""
    return b.pad(given[0], widths=((0, 0), *node.params["widths"]), value=node.params["value"])


def matmul(b: Any, node: Any, given: Given, count: int) -> Any:
    """Multiply matrices: as one product where one factor is the same matrix for all, outer products as plain ones."""
    (x, y), (own_x, own_y) = node.inputs, given
    if x.shape[-1] == 1:
        ndim = max(x.ndim, y.ndim)
        pair = [v if own is None else ranked(b, own, ndim) for v, own in ((x, own_x), (y, own_y))]
        return b.mul(*pair)
    if own_y is None and y.ndim == 2:
        product = b.matmul(b.reshape(own_x, shape=(prod(own_x.shape[:-1]), x.shape[-1])), y)
        return b.reshape(product, shape=(*own_x.shape[:-1], y.shape[-1]))
    if own_x is None and x.ndim == 2 and y.shape[-1] == 1:
        vectors = b.reshape(own_y, shape=(prod(own_y.shape[:-2]), y.shape[-2]))
        product = b.matmul(vectors, b.transpose(x, axes=(1, 0)))
        return b.reshape(product, shape=(*own_y.shape[:-2], x.shape[0], 1))
    if own_x is None and x.ndim == 2 and _is_turned(own_y):
        rows = transposed(b, own_y)
        product = b.matmul(b.reshape(rows, shape=(prod(rows.shape[:-1]), x.shape[-1])), transposed(b, x))
        return transposed(b, b.reshape(product, shape=(*rows.shape[:-1], x.shape[0])))
    return aligned(b, node, given, count)


def _is_turned(x: Any) -> bool:
    """Return whether matrices were transposed, so that their columns lie together in memory."""
    last = (x.ndim - 1, x.ndim - 2)
    return x.node is not None and x.node.op.name == "transpose" and x.node.params["axes"][-2:] == last


def matmul_add(b: Any, node: Any, given: Given, count: int) -> Any:
    """Multiply matrices and add: all operands have the axis, because the sum has the size of the product."""
    ndim = node.output.ndim
    x, y, z = every(b, node, given, count)
    return b.matmul_add(ranked(b, x, ndim), ranked(b, y, ndim), z)


def first_only(b: Any, node: Any, given: Given, count: int) -> Any:
    """Apply an op along an axis of its first input, whose other inputs are the same for all; None if they are not."""
    if any(own is not None for own in given[1:]):
        return None
    return b.apply(node.op, [given[0], *node.inputs[1:]], {**node.params, "axis": node.params["axis"] + 1})


def searchsorted(b: Any, node: Any, given: Given, count: int) -> Any:
    """Look places up in a vector that is the same for all; None if it is not."""
    return None if given[0] is not None else b.apply(node.op, (node.inputs[0], given[1]), node.params)


def _front(b: Any, x: Any, axis: int) -> Any:
    """Return (count, ..., n, ...) with the axis behind the first, and both joined: (count n, ..., ...)."""
    order = (0, axis + 1, *[i for i in range(1, x.ndim) if i != axis + 1])
    moved = x if axis == 0 else b.transpose(x, axes=order)
    return b.reshape(moved, shape=(moved.shape[0] * moved.shape[1], *moved.shape[2:]))


def _places(b: Any, index: Any, n: int, count: int, lowest: int) -> Any:
    """Return places along an axis of n elements of each observation as places among those of all observations.

    A place outside of the axis becomes one outside of all.
    """
    starts = np.arange(count).reshape(-1, *(1,) * (index.ndim - 1)) * n
    is_inside = b.logical_and(b.greater_equal(index, lowest), b.less(index, n))
    from_start = b.where(b.less(index, 0), b.add(index, n), index) if lowest < 0 else index
    return b.where(is_inside, b.add(from_start, b.constant(starts)), count * n)


def take(b: Any, node: Any, given: Given, count: int) -> Any:
    """Take elements of each observation."""
    x, index = node.inputs
    axis = node.params["axis"]
    if given[1] is None:
        return b.take(given[0], index, axis=axis + 1)
    m = index.ndim
    if given[0] is None:
        elements = b.take(x, given[1], axis=axis)
        return b.transpose(elements, axes=(axis, *[i for i in range(elements.ndim) if i != axis]))
    places = _places(b, given[1], x.shape[axis], count, -x.shape[axis])
    elements = b.take(_front(b, given[0], axis), places, axis=0)
    before = range(m + 1, m + 1 + axis)
    return b.transpose(elements, axes=(0, *before, *range(1, m + 1), *range(m + 1 + axis, elements.ndim)))


def scatter(b: Any, node: Any, given: Given, count: int) -> Any:
    """Write or add at places of each observation."""
    x, index, v = node.inputs
    axis = node.params["axis"]
    own_x = every(b, node, given, count)[0]
    shape = (count, *x.shape[:axis], *index.shape, *x.shape[axis + 1 :])
    own_v = v
    if given[2] is not None or v.shape != ():
        value = v if given[2] is None else ranked(b, given[2], len(shape) - 1)
        own_v = b.broadcast_to(value, shape=shape)
    if given[1] is None:
        return b.apply(node.op, (own_x, index, own_v), {"axis": axis + 1})
    m = index.ndim
    if own_v.shape != ():
        moved = range(1 + axis, 1 + axis + m)
        own_v = b.transpose(own_v, axes=(0, *moved, *[i for i in range(1, own_v.ndim) if i not in moved]))
    places = _places(b, given[1], x.shape[axis], count, -x.shape[axis])
    result = b.apply(node.op, (_front(b, own_x, axis), places, own_v), {"axis": 0})
    apart = b.reshape(result, shape=(count, x.shape[axis], *x.shape[:axis], *x.shape[axis + 1 :]))
    return b.transpose(apart, axes=(0, *range(2, axis + 2), 1, *range(axis + 2, apart.ndim)))


def embed(b: Any, node: Any, given: Given, count: int) -> Any:
    """Take rows of a table."""
    x, index = node.inputs
    table, places = x, given[1]
    if given[0] is not None:
        own = every(b, node, given, count)
        table, places = _front(b, own[0], 0), _places(b, own[1], x.shape[0], count, 0)
    vectors = b.embed(table, b.reshape(places, shape=(count * index.shape[0],)))
    return b.reshape(vectors, shape=(count, index.shape[0], x.shape[1]))


def convolution(operand: int, result: int) -> Any:
    """Return the rule of a convolution by weights that are the same for all: more images; None if they are not.

    Args:
        operand: the number in `labels` of the first operand.
        result: that of the result.
    """

    def rule(b: Any, node: Any, given: Given, count: int) -> Any:
        if any(own is not None for own in given[1:]):
            return None
        labels = node.params["labels"]
        at, to = labels[operand].index("B"), labels[result].index("B")
        x = given[0]
        # The observations lie before the images, and both are one axis.
        moved = b.transpose(x, axes=(*range(1, at + 1), 0, *range(at + 1, x.ndim)))
        images = (count * x.shape[at + 1],)
        joined = b.reshape(moved, shape=(*moved.shape[:at], *images, *moved.shape[at + 2 :]))
        y = b.apply(node.op, [joined, *node.inputs[1:]], node.params)
        apart = b.reshape(y, shape=(*y.shape[:to], count, x.shape[at + 1], *y.shape[to + 1 :]))
        return b.transpose(apart, axes=(to, *range(to), *range(to + 1, apart.ndim)))

    return rule


def attention(b: Any, node: Any, given: Given, count: int) -> Any:
    """Attend in each observation; None if the scale is not the same for all."""
    if given[4] is not None:
        return None
    batch = node.inputs[0].shape[0]
    inputs = [_joined(b, own) for own in every(b, node, given, count)[:3]]
    mask = node.inputs[3]
    if given[3] is not None or mask.shape[0] != 1:
        own = every(b, node, given, count)[3]
        mask = _joined(b, b.broadcast_to(own, shape=(count, batch, *own.shape[2:])))
    results = b.apply(node.op, (*inputs, mask, node.inputs[4]), node.params)
    return tuple([b.reshape(part, shape=(count, batch, *part.shape[1:])) for part in results])


def _joined(b: Any, x: Any) -> Any:
    return b.reshape(x, shape=(x.shape[0] * x.shape[1], *x.shape[2:]))
