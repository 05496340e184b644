# SPDX-License-Identifier: BSD-3-Clause
"""A function and its gradient as two recordings; the second one reads values that the first one saves.

Note [saved values]
The gradient of a step of a solver is wanted long after the step, in another program. It would compute the step again,
because its adjoint reads values of it. So the recording of the step also makes the adjoint, sees which values it reads,
and drops it again; these values are further results. The recording of the gradient computes the same function, makes
the same adjoint, and has it read the arrays that were saved. What is left of the function has no reader, so that the
program does not have it.

Views of saved values are made again. Numbers are computed again, from numbers. If values decide what is recorded,
nothing is saved, because the two recordings need not have the same operations then.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tracejit import autodiff
from tracejit.array import dlarray
from tracejit.aval import is_inexact
from tracejit.functions.variables import Variables, recording, value_of
from tracejit.ir import Node, Value
from tracejit.ops.op import Strided
from tracejit.record import monitor
from tracejit.record.recorder import Recorder
from tracejit.util.memory import collector_paused


def with_saved(
    compute: Callable[[], Sequence[Any]], variables: Sequence[dlarray]
) -> tuple[Sequence[Any], tuple[dlarray, ...]]:
    """Return the arrays that a function computes, and the values that their gradient reads.

    Args:
        compute: the function.
        variables: the arrays that gradients are taken by.
    """
    recorder = recording("with_saved")
    graph = recorder.graph
    first, guards = len(graph.nodes), len(recorder.guards)
    outputs = compute()
    if not recorder.accelerating or len(recorder.guards) > guards:
        return outputs, ()
    b = recorder.builder
    roots = [value for value in map(value_of, outputs) if is_inexact(value.dtype)]
    by = [value for value in map(value_of, variables) if is_inexact(value.dtype)]
    middle, constants = len(graph.nodes), len(graph.constants)
    with monitor.paused(), collector_paused():
        cotangents = [b.constant(np.zeros(root.shape, root.dtype)) for root in roots]
        found = autodiff.gradient(b, roots, cotangents, by)
    saved, _ = _split(recorder, first, middle, [value for value in found if value is not None])
    del graph.nodes[middle:], graph.constants[constants:]
    return outputs, tuple([dlarray._wrap(value.data, None, value) for value in saved])


def gradients_from_saved(
    compute: Callable[[], Sequence[Any]],
    variables: Sequence[dlarray],
    cotangents: Sequence[Any],
    saved: Sequence[dlarray],
) -> Sequence[dlarray]:
    """Return the gradients by arrays of what a function computes.

    Args:
        compute: the function that with_saved() was given.
        variables: the arrays that gradients are taken by.
        cotangents: one for each array that the function computes, of its size.
        saved: the values that with_saved() returned; if there are none, they are computed again.
    """
    recorder = recording("gradients_from_saved")
    graph = recorder.graph
    first = len(graph.nodes)
    pairs = [
        (root, cotangent)
        for root, cotangent in zip(map(value_of, compute()), map(value_of, cotangents), strict=True)
        if is_inexact(root.dtype)
    ]
    middle = len(graph.nodes)
    b = recorder.builder
    roots = [root for root, _ in pairs]
    seeds = [ct if ct.dtype == root.dtype else b.cast(ct, dtype=root.dtype) for root, ct in pairs]
    gradients = Variables("dlgradient", tuple(variables), recorder).gradients(roots, seeds)
    if not saved:
        return gradients
    values = [*map(value_of, gradients)]
    read, nodes = _split(recorder, first, middle, values)
    mapping = dict(zip(read, map(value_of, saved), strict=True))
    del graph.nodes[middle:]
    for node in nodes:
        b.location = node.where
        avals = tuple([value.aval for value in node.outputs])
        data = [value.data for value in node.outputs]
        made = b.node(node.op, tuple([mapping.get(v, v) for v in node.inputs]), node.params, avals, data)
        mapping.update(zip(node.outputs, made, strict=True))
    return [
        dlarray._wrap(value.data, gradient.format, mapping.get(value, value))
        for gradient, value in zip(gradients, values, strict=True)
    ]


def _split(
    recorder: Recorder, first: int, middle: int, results: Sequence[Value]
) -> tuple[list[Value], list[Node]]:
    """Return the values of a function that its adjoint reads, and the nodes that compute the gradients from them.

    Args:
        recorder: of both.
        first: the number of the first node of the function.
        middle: the number of the first node of the adjoint.
        results: the gradients.
    """
    nodes = recorder.graph.nodes
    needed = set(results)
    saved: list[Value] = []
    left: list[Node] = []
    for number in range(len(nodes) - 1, first - 1, -1):
        node = nodes[number]
        if needed.isdisjoint(node.outputs):
            continue
        if number < middle and not _is_made_again(node):
            saved += [value for value in node.outputs if value in needed]
        else:
            left.append(node)
            needed.update(node.inputs)
    left.reverse()
    return saved, left


def _is_made_again(node: Node) -> bool:
    if isinstance(node.op.emit, Strided):
        return True
    return not any(value.ndim for value in (*node.inputs, *node.outputs))
