# SPDX-License-Identifier: BSD-3-Clause
"""by_columns: what is computed of arrays that lie by columns alone is computed, and returned, by columns.

Note [results by columns]
NumPy's result of transposed arrays is transposed too, so that its loops run along memory. Ours would lie by rows:
either the operands or the result would be walked across memory, which takes up to 15 times as long and leaves functions
of vectors to single numbers. So where all arrays that a graph takes lie by columns, and all that it does can be done to
the reversed axes as well, each value is replaced by one with its axes reversed. The arrays are seen transposed, which
is a view of their memory. Results are made by columns, so that their memory is what the program fills.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from tracejit.ir import Builder, Graph, Node, Value
from tracejit.ops import Kind
from tracejit.ops.op import Layout, Strided

Shape = tuple[int, ...]

_ALONG_AXIS = ("cumsum", "cumprod", "argmax", "argmin", "take")
"""Ops along an axis of the first operand; others are vectors."""


def by_columns(graph: Graph, layouts: Sequence[Layout | None]) -> tuple[Graph, tuple[int, ...]]:
    """Return a graph whose results have their axes reversed, and the numbers of these (Note [results by columns]).

    Where there is nothing to gain it is the graph itself, and there are no numbers.
    """
    if not lie_by_columns([value.shape for value in graph.inputs], layouts):
        return graph, ()
    turner = _Turner(graph)
    if not all(map(turner.turns, graph.nodes)):
        return graph, ()
    return turner.run()


def lie_by_columns(shapes: Iterable[Shape], layouts: Sequence[Layout | None]) -> bool:
    """Return whether all arrays that are no vectors lie by columns, and there is one."""
    if not any(layouts):
        return False
    found = False
    for number, shape in enumerate(shapes):
        long = [axis for axis, extent in enumerate(shape) if extent > 1]
        if len(long) < 2:
            continue
        layout = layouts[number] if number < len(layouts) else None
        strides = [0] if layout is None else [abs(layout.strides[axis]) for axis in long]
        if 0 in strides or any(stride >= after for stride, after in pairwise(strides)):
            return False
        found = True
    return found


def _reversed(places: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(places)[::-1]


class _Turner:
    """Makes the graph of reversed values."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.turned = Graph()
        self.b: Any = Builder(self.turned)
        self.values: dict[Value, Value] = {}

    def turns(self, node: Node) -> bool:
        """Return whether a node can be done to reversed axes."""
        name, emit, x = node.op.name, node.op.emit, node.inputs[0]
        if name == "reshape":
            assert isinstance(emit, Strided) and emit.axes is not None
            return emit.axes(x.ndim, x.shape, **node.params) is not None
        if name == "concatenate":  # arrays in a row would become neighbours along memory, element by element
            return node.params["axis"] > 0 or x.ndim == 1 or any(value.shape[0] > 1 for value in node.inputs)
        if node.op.kind in (Kind.ELEMENTWISE, Kind.MOVE):
            return True
        if node.op.kind is Kind.REDUCE:
            return name != "sum_add"
        return name in _ALONG_AXIS and all(value.ndim < 2 for value in node.inputs[1:])

    def run(self) -> tuple[Graph, tuple[int, ...]]:
        graph, turned = self.graph, self.turned
        turned.inputs = graph.inputs
        for value in graph.inputs:
            self.values[value] = self.transposed(value)
        for value in graph.constants:
            data = value.data if value.ndim < 2 else np.ascontiguousarray(value.data.T)
            self.values[value] = self.b.constant(data)
        for node in graph.nodes:
            self.b.location = node.where
            self.node(node)
        turned.outputs = [self.values[value] for value in graph.outputs]
        return turned, tuple([i for i, value in enumerate(graph.outputs) if value.ndim > 1])

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
