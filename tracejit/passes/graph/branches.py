# SPDX-License-Identifier: BSD-3-Clause
"""cond and while: a choice between two bodies, and a loop that a value ends.

Note [branches]
A cond takes a bool, its negation, and what both bodies read. Its adjoint is a cond of the adjoints of both bodies.
These compute again what they need from the forward bodies: no value is saved that only one of the bodies has.

The first carry of a while is the bool that says whether it goes on; each step gives the next one. The number of steps
is not known before they run. So it is not known either how much an adjoint would have to save.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from tracejit.aval import Aval
from tracejit.errors import GradientError
from tracejit.ir import Builder, Graph, Node, Value, evaluate
from tracejit.ops import Kind, Op
from tracejit.passes.graph.bodies import Body, run_as_program, zeros
from tracejit.passes.graph.split import split

_STEPS_IN_NUMPY = 300  # of a while that is recorded; then a program goes on


def _plain(avals: Sequence[Aval]) -> list[Aval]:
    return [aval._replace(format=None) for aval in avals]


def _infer_cond(*avals: Aval, then: Body, other: Body) -> tuple[Aval, ...]:
    bodies = (then, other)
    outputs = [[value.aval for value in body.graph.outputs] for body in bodies]
    inputs = [[value.aval for value in body.graph.inputs] for body in bodies]
    if not inputs[0] == inputs[1] == _plain(avals[2:]) or outputs[0] != outputs[1]:
        raise ValueError(f"cond: the bodies do not fit the operands {[*map(str, avals)]}, or each other")
    return tuple(outputs[0])


def _numpy_cond(
    pred: np.ndarray, negated: np.ndarray, *arrays: np.ndarray, then: Body, other: Body
) -> tuple[np.ndarray, ...]:
    return tuple(evaluate((then if pred else other).graph, arrays))


def _vjp_cond(b: Builder, node: Node, ct: Any) -> list[Value | None]:
    cts = ct if isinstance(ct, tuple) else (ct,)
    given = [cotangent is not None for cotangent in cts]
    bodies = (node.params["then"], node.params["other"])
    halves = [split(body.graph, False, given) for body in bodies]
    count = len(node.inputs) - 2
    found = [i for i in range(count) if any(half.by_input[i] is not None for half in halves)]
    if not found:
        return [None] * len(node.inputs)
    adjoints = [_adjoint_branch(half.adjoint, half.by_input, found) for half in halves]
    inputs = [*node.inputs, *[cotangent for cotangent in cts if cotangent is not None]]
    results: list[Value | None] = [None] * len(node.inputs)
    for i, value in zip(
        found, b.apply(COND, inputs, {"then": adjoints[0], "other": adjoints[1]}), strict=True
    ):
        results[i + 2] = value
    return results


def _adjoint_branch(adjoint: Graph, by_input: Sequence[int | None], found: Sequence[int]) -> Body:
    """Return an adjoint half as a body that gives the cotangents of some inputs, zeros where it has none."""
    b = Builder(Graph())
    mapping = {value: b.input(value.aval) for value in adjoint.inputs}
    mapping |= {value: b.constant(value.data) for value in adjoint.constants}
    for node in adjoint.nodes:
        b.location = node.where
        inputs = tuple([mapping[value] for value in node.inputs])
        copied = b.node(node.op, inputs, node.params, tuple([value.aval for value in node.outputs]))
        mapping.update(zip(node.outputs, copied, strict=True))
    for i in found:
        at = by_input[i]
        value = zeros(b, adjoint.inputs[i]) if at is None else mapping[adjoint.outputs[at]]
        b.graph.outputs.append(value)
    return Body(b.graph, 0, 0)


def _infer_while(*avals: Aval, body: Body) -> tuple[Aval, ...]:
    inputs = [value.aval for value in body.graph.inputs]
    outputs = tuple([value.aval for value in body.graph.outputs])
    if inputs != _plain(avals) or [*outputs] != inputs[: body.carries]:
        raise ValueError(f"while: the body does not fit the operands {[*map(str, avals)]}")
    return outputs


def _numpy_while(*arrays: np.ndarray, body: Body) -> tuple[np.ndarray, ...]:
    carry, constants = [*arrays[: body.carries]], arrays[body.carries :]
    steps = 0
    while carry[0]:
        if steps == _STEPS_IN_NUMPY:
            found = run_as_program(WHILE, [*carry, *constants], {"body": body}, 1 << 40)
            if found is not None:
                return tuple(found)
        carry = evaluate(body.graph, [*carry, *constants])
        steps += 1
    return tuple(carry)


def _vjp_while(b: Builder, node: Node, ct: Any) -> list[Value | None]:
    raise GradientError(
        "dlwhile: a loop whose length a value decides has no gradient in an accelerated function; pass max_steps=, the "
        "greatest number of steps, for which its gradient reserves memory."
    )


COND = Op(
    name="cond",
    doc="one of two bodies, which a bool chooses; the adjoint is a cond of their adjoints",
    kind=Kind.LOOP,
    infer=_infer_cond,
    numpy=_numpy_cond,
    vjp=_vjp_cond,
    emit=None,
    samples=(),
    analytic=False,
)
WHILE = Op(
    name="while",
    doc="a loop with a carry that a bool ends; it has no adjoint",
    kind=Kind.LOOP,
    infer=_infer_while,
    numpy=_numpy_while,
    vjp=_vjp_while,
    emit=None,
    samples=(),
    analytic=False,
)
