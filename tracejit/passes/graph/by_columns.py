# SPDX-License-Identifier: BSD-3-Clause
"""by_columns: results that are computed only from arrays by columns are computed, and returned, by columns.

Note [results by columns]
NumPy's result of transposed arrays is transposed too, so that its loops run along memory. Ours would lie by rows:
either the operands or the result would be walked across memory, which takes up to 15 times as long and computes
functions such as exp for single numbers instead of vectors. So each value is replaced by one with its axes reversed,
under two conditions: all operands of the graph (its inputs, or views of them) lie by columns, and its operations can be
done to reversed axes as well. The arrays are seen transposed, which is a view of their memory. Results are made by
columns, so that the program fills their memory directly.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from tracejit.ir import Builder, Graph, Node, Value, live
from tracejit.ops import Kind
from tracejit.ops.op import Layout, Strided, contiguous

Shape = tuple[int, ...]

_ALONG_AXIS = ("cumsum", "cumprod", "argmax", "argmin", "take")
"""Ops along an axis of the first operand; others are vectors."""


def by_columns(graph: Graph, layouts: Sequence[Layout | None]) -> tuple[Graph, tuple[int, ...]]:
    """Return a graph whose results have their axes reversed, and the numbers of these (Note [results by columns]).

    Where there is nothing to gain it is the graph itself, and there are no numbers.
    """
    nodes = live(graph.nodes, graph.outputs)
    numbers = numbers_by_columns(graph, nodes, graph.outputs, layouts)
    return (_Turner(graph, nodes).run(), numbers) if numbers is not None else (graph, ())


def numbers_by_columns(
    graph: Graph, nodes: Sequence[Node], outputs: Sequence[Value], layouts: Sequence[Layout | None]
) -> tuple[int, ...] | None:
    """Return which results of nodes of a graph lie by columns, or None where nothing is to be gained by that."""
    views: dict[Value, Layout] = {}
    for number, value in enumerate(graph.inputs):
        layout = layouts[number] if number < len(layouts) else None
        views[value] = contiguous(value.shape) if layout is None else layout
    computed: list[Value] = [value for value in outputs if value.node is None]
    for node in nodes:
        x = node.inputs[0] if node.inputs else None
        if (
            x in views
            and isinstance(node.op.emit, Strided)
            and node.op.name not in ("reshape", "broadcast_to")
        ):
            layout = node.op.emit.layout(views[x], **node.params)
            assert layout is not None
            views[node.output] = layout
            continue
        if not _turns(node):
            return None
        computed += node.inputs
    # A transposed array that is only copied is wanted by rows.
    if any(value in views and value.node is not None for value in outputs):
        return None
    found = {_order(views[value]) for value in computed if value in views}
    if found - {None} != {"F"}:
        return None
    return tuple([i for i, value in enumerate(outputs) if value.ndim > 1])


def _order(layout: Layout) -> str | None:
    """Return NumPy's word for the order of an array: "F" if it lies by columns, None if it lies in either order."""
    strides = [abs(stride) for stride, extent in zip(layout.strides, layout.shape, strict=True) if extent > 1]
    if len(strides) < 2:
        return None
    return "F" if 0 not in strides and all(before < after for before, after in pairwise(strides)) else "C"


def _turns(node: Node) -> bool:
    """Return whether a node can be done to reversed axes."""
    name, emit = node.op.name, node.op.emit
    if name == "reshape":
        assert isinstance(emit, Strided) and emit.axes is not None
        x = node.inputs[0]
        return emit.axes(x.ndim, x.shape, **node.params) is not None
    if name == "concatenate":  # arrays in a row would become neighbours along memory, element by element
        is_wide = any(value.ndim == 1 or value.shape[0] > 1 for value in node.inputs)
        return is_wide or bool(node.params["axis"] > 0)
    if node.op.kind in (Kind.ELEMENTWISE, Kind.MOVE):
        return name != "transpose"
    if node.op.kind is Kind.REDUCE:
        return name != "sum_add"
    return name in _ALONG_AXIS and all(value.ndim < 2 for value in node.inputs[1:])


def _reversed(places: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(places)[::-1]


class _Turner:
    """Makes the graph of reversed values."""

    def __init__(self, graph: Graph, nodes: Sequence[Node]) -> None:
        self.graph = graph
        self.nodes = nodes
        self.turned = Graph()
        self.b: Any = Builder(self.turned)
        self.values: dict[Value, Value] = {}

    def run(self) -> Graph:
        graph, turned = self.graph, self.turned
        turned.inputs = graph.inputs
        for value in graph.inputs:
            self.values[value] = self.transposed(value)
        for value in graph.constants:
            data = value.data if value.ndim < 2 else np.ascontiguousarray(value.data.T)
            self.values[value] = self.b.constant(data)
        for node in self.nodes:
            self.b.location = node.where
            self.node(node)
        turned.outputs = [self.values[value] for value in graph.outputs]
        return turned

    def transposed(self, value: Value) -> Value:
        if value.ndim < 2:
            return value
        found: Value = self.b.transpose(value, axes=_reversed(range(value.ndim)))
        return found

    def node(self, node: Node) -> None:
        """Append what a node does, to reversed axes."""
        values = [self.values[value] for value in node.inputs]
        rank = node.output.ndim
        kind, name = node.op.kind, node.op.name
        if kind is Kind.ELEMENTWISE or name in ("complex_of", "broadcast_to"):
            values = [self.lifted(value, rank) for value in values]
        elif name == "setslice":
            values[1] = self.lifted(values[1], rank)
        rule = _PARAMS.get(name, _along_axis if "axis" in node.params else None)
        params = node.params
        if kind is Kind.REDUCE:
            params = {**params, "axes": tuple(sorted(node.inputs[0].ndim - 1 - a for a in params["axes"]))}
        elif rule is not None:
            params = {**params, **rule(node.inputs[0].ndim, params)}
        made = self.b.apply(node.op, values, params)
        outputs = (made,) if isinstance(made, Value) else made
        self.values.update(zip(node.outputs, outputs, strict=True))

    def lifted(self, value: Value, rank: int) -> Value:
        """Return a reversed operand with the axes behind its own that broadcasting put in front."""
        if value.ndim in (0, rank):
            return value
        lifted: Value = self.b.reshape(value, shape=(*value.shape, *(1,) * (rank - value.ndim)))
        return lifted


def _along_axis(rank: int, params: Mapping[str, Any]) -> dict[str, Any]:
    return {"axis": rank - 1 - params["axis"]}


def _each(*names: str) -> Callable[[int, Mapping[str, Any]], dict[str, Any]]:
    """Return the rule for parameters with an entry for each axis."""
    return lambda rank, params: {name: _reversed(params[name]) for name in names}


def _transpose(rank: int, params: Mapping[str, Any]) -> dict[str, Any]:
    return {"axes": tuple(rank - 1 - axis for axis in _reversed(params["axes"]))}


def _assemble(rank: int, params: Mapping[str, Any]) -> dict[str, Any]:
    places = tuple(tuple(map(_reversed, place)) for place in params["places"])
    return {"shape": _reversed(params["shape"]), "places": places}


_PARAMS: dict[str, Callable[[int, Mapping[str, Any]], dict[str, Any]]] = {
    "transpose": _transpose,
    "reshape": _each("shape"),
    "broadcast_to": _each("shape"),
    "slice": _each("starts", "stops", "steps"),
    "setslice": _each("starts", "stops", "steps"),
    "pad": _each("widths"),
    "assemble": _assemble,
}
"""The parameters of ops on reversed axes, given the number of axes of the first operand and the parameters."""
