# SPDX-License-Identifier: BSD-3-Clause
"""Forward mode: appends tangents to a graph, the derivatives of its values along one direction.

No op has a rule of its own for it (Note [tangents from adjoints]).
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tracejit.autodiff.reverse import fit, gradient
from tracejit.aval import is_inexact
from tracejit.errors import GradientError
from tracejit.ir import Builder, Graph, Node, Value, live
from tracejit.ops import Kind
from tracejit.ops.op import OnlyOnce, Passed

Tangent = Value | None  # None: zero

# Note [tangents from adjoints]
# The adjoint of a node is linear in its cotangent; the map that is transposed to it is the tangent. There are three
# ways to get it; each gives the ops that one would write by hand.
# - An elementwise op has one derivative for each element, by which its rule multiplies the cotangent. With the tangent
#   of an input in the place of the cotangent, the same rule gives the tangent of the result.
# - A linear op is applied to tangents. So are ops that only move elements, and each factor of a matrix product.
# - For any other op the adjoint is built for an unknown cotangent, in a graph apart, and differentiated by that
#   cotangent. What is left when all dead nodes are gone does not contain the cotangent, because the adjoint is linear
#   in it: the ops of this graph are appended.


def tangents(
    b: Builder, outputs: Sequence[Value], wrt: Sequence[Value], directions: Sequence[Value]
) -> list[Tangent]:
    """Append the product of the Jacobian of `outputs` with `directions`, and return it for each output.

    Args:
        b: builder of the graph that holds the values.
        outputs: values to differentiate.
        wrt: values to differentiate by, of floating-point dtype.
        directions: one for each of `wrt`, of its shape and dtype.

    Returns:
        For each output the tangent, of its shape and dtype, or None where it does not depend on `wrt`.

    Raises:
        GradientError: if an op on the way has no derivative in forward mode.
    """
    tangent_of: dict[Value, Value] = {}
    for value, direction in zip(wrt, directions, strict=True):
        tangent_of[value] = b.add(tangent_of[value], direction) if value in tangent_of else direction
    propagate(b, path(b.graph.nodes, wrt, outputs), outputs, tangent_of)
    return [tangent_of.get(value) for value in outputs]


def propagate(
    b: Builder, nodes: Sequence[Node], outputs: Sequence[Value], tangent_of: dict[Value, Value]
) -> None:
    """Append the tangents of the outputs of nodes, in order, and add them to those that are found already."""
    needed = {value for node in nodes for value in node.inputs}.union(outputs)
    location = b.location
    for node in nodes:
        b.location = node.where
        wanted = [value in needed and is_smooth(value) for value in node.outputs]
        for value, tangent in zip(node.outputs, of_node(b, node, tangent_of, wanted), strict=True):
            if tangent is not None:
                tangent_of[value] = b.add(tangent_of[value], tangent) if value in tangent_of else tangent
    b.location = location


def path(nodes: Sequence[Node], wrt: Sequence[Value], outputs: Sequence[Value]) -> list[Node]:
    """Return the nodes through which outputs depend on values, in order, without those that have no derivative."""
    return live(_following(nodes, wrt), outputs)


def computed_from(nodes: Sequence[Node], wrt: Value) -> set[Value]:
    """Return a value, and all values that nodes with derivatives compute from it."""
    return {wrt, *[value for node in _following(nodes, [wrt]) for value in node.outputs]}


def _following(nodes: Sequence[Node], wrt: Sequence[Value]) -> list[Node]:
    """Return the nodes with derivatives that depend on values, in order."""
    active = set(wrt)
    following = []
    for node in nodes:
        if node.op.vjp is not None and not active.isdisjoint(node.inputs):
            following.append(node)
            active.update([value for value in node.outputs if is_smooth(value)])
    return following


def is_smooth(value: Value) -> bool:
    """Return whether a value is of a dtype that has derivatives."""
    return is_inexact(value.dtype)


def of_node(
    b: Builder, node: Node, tangent_of: Mapping[Value, Value], wanted: Sequence[bool]
) -> Sequence[Tangent]:
    """Append the tangents of the outputs of a node.

    Args:
        b: the builder to append with.
        node: the node.
        tangent_of: tangents of values.
        wanted: whether the tangent is needed, for each output.
    """
    of_inputs = [tangent_of.get(value) if is_smooth(value) else None for value in node.inputs]
    op = node.op
    if op.vjp is None or all(tangent is None for tangent in of_inputs) or not any(wanted):
        return [None] * len(node.outputs)
    if op.kind is Kind.MOVE:
        return [_linear(b, node, of_inputs, (tuple(range(len(of_inputs))),))]
    if op.linear:
        return [_linear(b, node, of_inputs, op.linear)]
    if op.kind is Kind.ELEMENTWISE and all(value.dtype.kind != "c" for value in (*node.inputs, node.output)):
        return [_elementwise(b, node, of_inputs)]
    return _transposed(b, node, of_inputs, wanted)


def zeros(b: Builder, value: Value) -> Value:
    """Return zeros of the shape and dtype of a value."""
    zero = b.constant(np.zeros((), value.dtype))
    return zero if value.shape == () else b.broadcast_to(zero, shape=value.shape)


def _sum(b: Builder, total: Tangent, part: Value) -> Value:
    return part if total is None else b.add(total, part)


def _linear(b: Builder, node: Node, given: Sequence[Tangent], groups: Sequence[Sequence[int]]) -> Tangent:
    """Apply an op to tangents, once for each group of inputs in which it is linear."""
    params = node.params
    if "value" in params:  # around the elements of pad
        params = {**params, "value": 0.0}
    total: Tangent = None
    for group in groups:
        if all(given[i] is None for i in group):
            continue
        inputs = list(node.inputs)
        for i in group:
            tangent = given[i]
            inputs[i] = zeros(b, inputs[i]) if tangent is None else tangent
        total = _sum(b, total, b.apply(node.op, inputs, params))
    return total


def _elementwise(b: Builder, node: Node, given: Sequence[Tangent]) -> Tangent:
    """Apply the adjoint's rule to tangents."""
    assert node.op.vjp is not None
    total: Tangent = None
    for number, tangent in enumerate(given):
        if tangent is None:
            continue
        part = node.op.vjp(b, node, tangent)[number]
        if callable(part):
            part = part()
        if part is not None:
            total = _sum(b, total, part)
    return None if total is None else spread(b, total, node.output)


def spread(b: Builder, tangent: Value, value: Value) -> Value:
    """Return a tangent of the shape and dtype of a value, with whose shape it broadcasts."""
    if tangent.shape != value.shape:
        tangent = b.broadcast_to(tangent, shape=value.shape)
    return tangent if tangent.dtype == value.dtype else b.cast(tangent, dtype=value.dtype)


def _transposed(
    b: Builder, node: Node, given: Sequence[Tangent], wanted: Sequence[bool]
) -> Sequence[Tangent]:
    """Append what is transposed to the adjoint of a node."""
    assert node.op.vjp is not None
    # A user's backward function computes with arrays, so that its adjoint has to be recorded where these are.
    is_recorded = isinstance(node.op.emit, Passed) and b.compute
    apart = b if is_recorded else Builder(Graph())
    apart.location = node.where
    start = len(apart.graph.nodes)
    smooth = len(node.outputs) - node.op.saved
    if any(wanted[smooth:]):  # an adjoint reads it, and has no cotangent for it
        raise _no_forward_mode(node.op.title)

    def unknown_like(value: Value) -> Value:
        zero = np.zeros(value.shape, value.dtype)
        return b.constant(zero) if is_recorded else apart.input(value.aval)

    cts: list[Any] = [
        unknown_like(value) if want and number < smooth else None
        for number, (value, want) in enumerate(zip(node.outputs, wanted, strict=True))
    ]
    parts = node.op.vjp(apart, node, cts[0] if len(cts) == 1 else tuple(cts))
    rows, columns = [], []
    for value, tangent, part in zip(node.inputs, given, parts, strict=True):
        if tangent is not None and part is not None:
            built = part if type(part) is Value else part()
            if built is not None:
                rows.append(fit(apart, built, value))
                columns.append(tangent)
    adjoint = apart.graph.nodes[start:]
    _check_twice(node, adjoint, cts)
    unknown = [ct for ct in cts if ct is not None]
    results = gradient(apart, rows, columns, unknown, adjoint)
    appended = results if is_recorded else splice(b, apart.graph.nodes, results, unknown)
    by_unknown = dict(zip(unknown, appended, strict=True))
    return [None if ct is None else by_unknown[ct] for ct in cts]


def _check_twice(node: Node, adjoint: Sequence[Node], cts: Sequence[Tangent]) -> None:
    """Raise the error for an adjoint that cannot be differentiated."""
    active = {ct for ct in cts if ct is not None}
    for inner in adjoint:
        if active.isdisjoint(inner.inputs):
            continue
        vjp = inner.op.vjp
        if isinstance(vjp, OnlyOnce) or (vjp is None and any(map(is_smooth, inner.outputs))):
            raise _no_forward_mode(vjp.function if vjp else node.op.title)
        active.update(inner.outputs)


def _no_forward_mode(function: str) -> GradientError:
    return GradientError(
        f"{function}: there are no derivatives in forward mode (jvp, hvp, hessian); use dlgradient once, or write the "
        "steps as a loop of matrix products and activations, which can be differentiated in any way."
    )


def splice(
    b: Builder, nodes: Sequence[Node], results: Sequence[Tangent], unknown: Sequence[Value]
) -> list[Tangent]:
    """Append the nodes of a graph apart that results need, and return the results; other values are those of `b`.

    The results do not depend on the values of `unknown`; a compiled program (HOST) takes them all the same.
    """
    needed = {value for value in results if value is not None}
    kept = []
    for node in reversed(nodes):
        if not needed.isdisjoint(node.outputs):
            kept.append(node)
            needed.update(node.inputs)
    values = {value: zeros(b, value) for value in unknown if value in needed}

    def here(value: Value) -> Value:
        if value.is_constant and value not in values and value in needed:
            values[value] = value if value.owner is b.owner else b.constant(value.data)
        return values.get(value, value)

    for node in reversed(kept):
        outputs = b.apply(node.op, [here(value) for value in node.inputs], node.params)
        values.update(zip(node.outputs, outputs if isinstance(outputs, tuple) else (outputs,), strict=True))
    return [None if value is None else here(value) for value in results]
