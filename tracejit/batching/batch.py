# SPDX-License-Identifier: BSD-3-Clause
"""batch: appends what nodes compute for one observation, for all observations at once, by the rules of their ops."""

from collections.abc import Sequence
from typing import Any

from tracejit.errors import TraceError
from tracejit.ir import Builder, Node, Value, live
from tracejit.ops import Kind
from tracejit.ops.batch import aligned, drawn, shifted

MOST_REPEATED = 64
"""The observations for which an op without a rule is repeated."""


def batch(
    b: Builder,
    nodes: Sequence[Node],
    results: Sequence[Value],
    stacked: dict[Value, Value],
    count: int,
    function: str,
    plain: dict[Value, Value] | None = None,
) -> list[Value | None]:
    """Append nodes for many observations and return the results, each with an axis of observations in front.

    Args:
        b: the builder to append with.
        nodes: recorded for one observation, in order.
        results: values that they compute.
        stacked: the values that differ between observations, with an axis in front; those of nodes are added.
        count: the number of observations.
        function: the public function, in whose name errors are raised.
        plain: for nodes of a graph apart, values of that graph as values of the builder's; nodes that are the same for
            all observations are appended and added. None if they are in the builder's graph.

    Returns:
        For each result its value, or None if it is the same for all observations.

    Raises:
        TraceError: if an op has no rule, and the observations are many.
    """
    location = b.location
    for node in live(nodes, results):
        b.location = node.where
        of_inputs = [stacked.get(value) for value in node.inputs]
        is_drawn = node.op.batch is drawn
        if not is_drawn and all(own is None for own in of_inputs):
            if plain is not None:
                inputs = [_here(b, value, plain) for value in node.inputs]
                plain.update(zip(node.outputs, _listed(b.apply(node.op, inputs, node.params)), strict=True))
            continue
        view = node if plain is None else _with_inputs(b, node, plain, of_inputs)
        outputs = (
            None
            if all(own is None for own in of_inputs) and not is_drawn
            else _rule(b, view, of_inputs, count)
        )
        if outputs is None:
            outputs = _repeated(b, view, of_inputs, count, function)
        stacked.update(zip(node.outputs, _listed(outputs), strict=True))
    b.location = location
    return [stacked.get(value) for value in results]


def _here(b: Builder, value: Value, plain: dict[Value, Value]) -> Value:
    """Return a value of a graph apart as one of the builder's graph, to which constants are added."""
    own = plain.get(value)
    if own is None:
        is_own = not value.is_constant or value.owner is b.owner
        own = plain[value] = value if is_own else b.constant(value.data)
    return own


def _with_inputs(b: Builder, node: Node, plain: dict[Value, Value], given: Sequence[Value | None]) -> Node:
    """Return a node of a graph apart with inputs in the builder's graph where they are the same for all."""
    inputs = [
        value if own is not None else _here(b, value, plain)
        for value, own in zip(node.inputs, given, strict=True)
    ]
    here = Node(node.op, tuple(inputs), node.params, node.where)
    here.makes(node.outputs)
    return here


def _listed(made: Any) -> tuple[Value, ...]:
    return made if isinstance(made, tuple) else (made,)


def _rule(b: Builder, node: Node, given: Sequence[Value | None], count: int) -> Any:
    op = node.op
    if op.batch is not None:
        return op.batch(b, node, given, count)
    if op.kind is Kind.ELEMENTWISE:
        return aligned(b, node, given, count)
    return shifted(b, node, given, count) if op.kind is Kind.REDUCE else None


def _repeated(b: Builder, node: Node, given: Sequence[Value | None], count: int, function: str) -> Any:
    """Append a node once for each observation, and join the results."""
    if count > MOST_REPEATED:
        raise TraceError(
            f"{function}: {node.op.title} works on one observation at a time, and is repeated for up to "
            f"{MOST_REPEATED}, but there are {count}. Call the function in a loop, or write this step for all "
            "observations outside of it."
        )
    results = []
    for number in range(count):
        inputs = [
            value if own is None else _observation(b, own, number)
            for value, own in zip(node.inputs, given, strict=True)
        ]
        results.append(_listed(b.apply(node.op, inputs, node.params)))
    rows = [
        [b.reshape(part, shape=(1, *part.shape)) for part in parts] for parts in zip(*results, strict=True)
    ]
    joined = [parts[0] if count == 1 else b.concatenate(*parts, axis=0) for parts in rows]
    return tuple(joined)


def _observation(b: Builder, own: Value, number: int) -> Value:
    """Return one observation."""
    starts, stops = (number, *(0,) * (own.ndim - 1)), (number + 1, *own.shape[1:])
    part = b.slice(own, starts=starts, stops=stops, steps=(1,) * own.ndim)
    taken: Value = b.reshape(part, shape=own.shape[1:])
    return taken
