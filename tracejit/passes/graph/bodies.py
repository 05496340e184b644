# SPDX-License-Identifier: BSD-3-Clause
"""The bodies of loops: graphs that are a parameter of a node."""

from collections.abc import Callable, Iterator, Sequence
from hashlib import blake2b
from typing import Any

import numpy as np

from tracejit.ir import Builder, Graph, Node, Value
from tracejit.ops import OPS, Kind, Op


class Body:
    """One step of a loop as a graph; its inputs are carry, parts, constants, its outputs carry, results.

    Attributes:
        graph: it is not changed.
        carries: how many inputs, and outputs, are the carry.
        slices: how many inputs are parts of arrays.
        origin: the body that this one is with further results, or itself.
        adjoints: what differentiation has made of it.
    """

    __slots__ = ("_text", "adjoints", "carries", "graph", "origin", "slices")

    def __init__(self, graph: Graph, carries: int, slices: int, origin: "Body | None" = None) -> None:
        self.graph = graph
        self.carries = carries
        self.slices = slices
        self.origin = self if origin is None else origin
        self._text = ""
        self.adjoints: dict[Any, Any] = {}

    def __repr__(self) -> str:
        """Return the number of ops, and a hash of all of them with their constants: equal bodies have equal texts."""
        if not self._text:
            digest = blake2b(_text(self).encode(), digest_size=8).hexdigest()
            self._text = f"<body of {len(self.graph.nodes)} ops, {digest}>"
        return self._text


def _text(body: Body) -> str:
    """Return a graph with everything that its results depend on, and nothing else."""
    graph = body.graph
    names = {value: f"i{i}" for i, value in enumerate(graph.inputs)}
    names |= {value: f"{value.aval}{value.data.tobytes().hex()}" for value in graph.constants}
    lines = [f"{body.carries} {body.slices} {[str(value.aval) for value in graph.inputs]}"]
    for number, node in enumerate(graph.nodes):
        names |= {value: f"v{number}.{i}" for i, value in enumerate(node.outputs)}
        op = node.op.name if OPS.get(node.op.name) is node.op else f"{node.op.name} {id(node.op)}"
        lines.append(f"{op} {[names[value] for value in node.inputs]} {node.params}")
    lines.append(f"{[names[value] for value in graph.outputs]}")
    return "\n".join(lines)


def bodies_of(node: Node) -> list[Body]:
    """Return the bodies of a node."""
    return [value for value in node.params.values() if isinstance(value, Body)]


def with_bodies(graph: Graph) -> Iterator[Node]:
    """Yield the nodes of a graph, and those of the bodies of its loops."""
    for node in graph.nodes:
        yield node
        if node.op.kind is Kind.LOOP:
            for body in bodies_of(node):
                yield from with_bodies(body.graph)


Run = Callable[[Op, Sequence[np.ndarray], dict[str, Any], int], Sequence[np.ndarray] | None]


def _never(op: Op, arrays: Sequence[np.ndarray], params: dict[str, Any], steps: int) -> None:
    return None


_runner: list[Run] = [_never]


def set_runner(run: Run) -> None:
    """Let a function run loops that are recorded.

    It takes the op, its operands and parameters, and about how many steps there are. It returns the results, or None to
    have NumPy compute them.
    """
    _runner[0] = run


def run_as_program(
    op: Op, arrays: Sequence[np.ndarray], params: dict[str, Any], steps: int
) -> Sequence[np.ndarray] | None:
    """Return the results of a loop as the function of set_runner() computes them, or None."""
    return _runner[0](op, arrays, params, steps)


def zeros(b: Builder, like: Value) -> Value:
    """Return zeros of the shape and dtype of a value."""
    zero = b.constant(np.zeros((), like.dtype))
    return b.broadcast_to(zero, shape=like.shape) if like.ndim else zero
