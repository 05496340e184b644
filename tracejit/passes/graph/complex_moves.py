# SPDX-License-Identifier: BSD-3-Clause
"""complex_moves: turns a graph that only moves complex numbers into one that moves integers, or pairs of real numbers.

Note [moved pairs]
Parts of complex numbers that are computed with lie in arrays of their own (Note [parts of complex numbers]). Where
numbers are only moved, taking them apart and joining them again costs three times as much as the move. So complex64 is
seen as the 64-bit integers of the same bytes. Kernels have no integers of 128 bits. So an array of complex128 is seen
as one of real numbers with one more axis at the end, of size two; this is how the numbers lie in memory. Inputs and
outputs keep their memory; only the graph knows them by another dtype and shape.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tracejit.aval import COMPLEX64, COMPLEX128, Aval, bits_dtype, part_dtype
from tracejit.ir import Builder, Graph, Node, Value
from tracejit.ops.op import Layout, in_parts

Params = Mapping[str, Any]


def complex_moves(graph: Graph, layouts: Sequence[Layout | None]) -> tuple[Graph, Sequence[Layout | None]]:
    """Return a graph that moves integers or pairs, and the layouts of its inputs (Note [moved pairs]).

    Where complex numbers are computed with, these are what was given.
    """
    if not all(_moves(node) for node in graph.nodes if _has_complex(node)):
        return graph, layouts
    own = [
        layout if layout is None or value.dtype != COMPLEX128 else in_parts(layout)
        for value, layout in zip(graph.inputs, layouts, strict=False)
    ]
    return _moved(graph), own


def _has_complex(node: Node) -> bool:
    return any(value.dtype.kind == "c" for value in (*node.inputs, *node.outputs))


def _moves(node: Node) -> bool:
    """Return whether a node only moves complex numbers, of one dtype, in a way that pairs can be moved."""
    if node.op.name == "pad":
        value = complex(node.params["value"])
        return bool(value.real == value.imag)
    if node.op.name == "cast":
        return node.inputs[0].dtype == node.output.dtype
    dtypes = {value.dtype for value in node.inputs if value.dtype.kind == "c"}
    return node.op.name in _PARAMS and dtypes == {node.output.dtype}


def _moved(graph: Graph) -> Graph:
    """Return the graph of integers and pairs."""
    moved = Graph()
    b: Any = Builder(moved)
    values: dict[Value, Value] = {}
    for value in graph.inputs:
        values[value] = b.input(_aval(value))
    for value in graph.constants:
        values[value] = b.constant(_seen(value.data))
    for node in graph.nodes:
        b.location = node.where
        operands = [values[value] for value in node.inputs]
        if node.op.name == "cast" and _has_complex(node):
            values[node.output] = operands[0]
            continue
        params: Params = node.params
        if node.op.name == "pad" and _has_complex(node):
            number = _seen(np.asarray(params["value"], node.output.dtype))
            params = {**params, "value": number.item(0)}
        if node.output.dtype == COMPLEX128:
            params = {**params, **_PARAMS[node.op.name](params)}
            if node.op.name == "where" and operands[0].ndim:
                operands[0] = b.reshape(operands[0], shape=(*operands[0].shape, 1))
        made = b.apply(node.op, operands, params)
        outputs = (made,) if isinstance(made, Value) else made
        values.update(zip(node.outputs, outputs, strict=True))
    moved.outputs = [values[value] for value in graph.outputs]
    return moved


def _aval(value: Value) -> Aval:
    if value.dtype == COMPLEX128:
        return Aval((*value.shape, 2), None, part_dtype(value.dtype))
    return Aval(value.shape, None, bits_dtype(value.dtype)) if value.dtype == COMPLEX64 else value.aval


def _seen(array: np.ndarray) -> np.ndarray:
    """Return an array as the graph sees it."""
    if array.dtype == COMPLEX64:
        return array.view(bits_dtype(array.dtype))
    if array.dtype == COMPLEX128:
        return np.ascontiguousarray(array).reshape(*array.shape, 1).view(part_dtype(array.dtype))
    return array


def _same(params: Params) -> Params:
    return {}


def _shape(params: Params) -> Params:
    return {"shape": (*params["shape"], 2)}


def _place(place: Sequence[tuple[int, ...]]) -> tuple[tuple[int, ...], ...]:
    starts, stops, steps = place
    return (*starts, 0), (*stops, 2), (*steps, 1)


def _slice(params: Params) -> Params:
    names = ("starts", "stops", "steps")
    return dict(zip(names, _place([params[name] for name in names]), strict=True))


_PARAMS: dict[str, Callable[[Params], Params]] = {
    "reshape": _shape,
    "broadcast_to": _shape,
    "transpose": lambda params: {"axes": (*params["axes"], len(params["axes"]))},
    "slice": _slice,
    "setslice": _slice,
    "concatenate": _same,
    "assemble": lambda params: {**_shape(params), "places": tuple(map(_place, params["places"]))},
    "pad": lambda params: {"widths": (*params["widths"], (0, 0))},
    "take": _same,
    "where": _same,
}
"""The parameters of moves of pairs, by the name of the op."""
