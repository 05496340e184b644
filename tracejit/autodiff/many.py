# SPDX-License-Identifier: BSD-3-Clause
"""Derivatives along many directions at once, and for many cotangents: the nodes for one, as a batch.

So the number of nodes does not depend on the number of directions.
"""

from collections.abc import Sequence

from tracejit.autodiff.forward import path, propagate
from tracejit.autodiff.reverse import gradient
from tracejit.batching import batch
from tracejit.ir import Builder, Graph, Value


def many_tangents(
    b: Builder, outputs: Sequence[Value], wrt: Sequence[Value], directions: Sequence[Value], function: str
) -> list[Value | None]:
    """Append the tangents of outputs along several directions at once.

    Args:
        b: builder of the graph that holds the values.
        outputs: values to differentiate.
        wrt: values to differentiate by.
        directions: for each of `wrt` the directions, along an axis in front of its own.
        function: the public function, in whose name errors are raised.

    Returns:
        For each output its tangents along an axis in front, or None where it does not depend on `wrt`.
    """
    apart = Builder(Graph())
    unknown = [apart.input(value.aval) for value in wrt]
    tangent_of = dict(zip(wrt, unknown, strict=True))
    propagate(apart, path(b.graph.nodes, wrt, outputs), outputs, tangent_of)
    return _batched(b, apart, [tangent_of.get(value) for value in outputs], unknown, directions, function)


def many_gradients(
    b: Builder, outputs: Sequence[Value], cotangents: Sequence[Value], wrt: Sequence[Value], function: str
) -> list[Value | None]:
    """Append the gradients for several cotangents at once.

    Args:
        b: builder of the graph that holds the values.
        outputs: values to differentiate.
        cotangents: for each output the cotangents, along an axis in front of its own.
        wrt: values to differentiate by.
        function: the public function, in whose name errors are raised.

    Returns:
        For each of `wrt` the gradients along an axis in front, or None where no output depends on it.
    """
    apart = Builder(Graph())
    unknown = [apart.input(value.aval) for value in outputs]
    gradients = gradient(apart, outputs, unknown, wrt, b.graph.nodes[:])
    return _batched(b, apart, gradients, unknown, cotangents, function)


def _batched(
    b: Builder,
    apart: Builder,
    results: Sequence[Value | None],
    unknown: Sequence[Value],
    many: Sequence[Value],
    function: str,
) -> list[Value | None]:
    """Append what a graph apart computes of unknown values for many values of each."""
    count = many[0].shape[0]
    plain: dict[Value, Value] = {}
    wanted = [value for value in results if value is not None]
    stacked = dict(zip(unknown, many, strict=True))
    batched = iter(batch(b, apart.graph.nodes, wanted, stacked, count, function, plain))

    def made(value: Value) -> Value:
        result = next(batched)
        if result is None:  # zeros, which are the same for all
            same = plain.get(value, value)
            result = b.broadcast_to(same, shape=(count, *same.shape))
        return result

    return [None if value is None else made(value) for value in results]
