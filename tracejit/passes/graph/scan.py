# SPDX-License-Identifier: BSD-3-Clause
"""scan: a loop with a carry as one op, whose body is a graph; its reference and its adjoint, which is a scan too.

Note [scan]
A scan takes the first carry, arrays that are shared out with one part for each step, and arrays that all steps get. A
step gives the next carry, and results, which are stacked. A body has these inputs and outputs in this order
(bodies.py).

Note [adjoint of a scan]
The adjoint of a step takes the cotangents of its carry and of its results, and gives those of the carry before, of the
parts, and of the constants. It runs in the opposite order. Its carry consists of the cotangents of the carry, and those
of the constants, to which each step adds. Values that it reads from the forward step are either computed again or
saved. If any are saved, the forward scan gets further results. The op is appended once more with them; tidy_loops joins
the two, so that the forward steps run once.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from tracejit.aval import FLOAT32, Aval, is_half
from tracejit.ir import Builder, Graph, Node, Value, evaluate
from tracejit.ops import Kind, Op
from tracejit.passes.graph.bodies import Body, run_as_program, zeros
from tracejit.passes.graph.split import Split, split
from tracejit.util.named_tuples import NamedTuple


def _infer(*avals: Aval, body: Body, length: int, **params: Any) -> tuple[Aval, ...]:
    own = [value.aval for value in body.graph.inputs]
    first, last = body.carries, body.carries + body.slices
    expected = [
        aval._replace(shape=(length, *aval.shape)) if first <= i < last else aval
        for i, aval in enumerate(own)
    ]
    if [aval._replace(format=None) for aval in avals] != expected:
        raise ValueError(f"scan: the operands are {[*map(str, avals)]}, expected {[*map(str, expected)]}")
    outputs = [value.aval for value in body.graph.outputs]
    if outputs[:first] != own[:first]:
        raise ValueError(
            f"scan: a step makes the carry {[*map(str, outputs[:first])]} of {[*map(str, own[:first])]}"
        )
    return (
        *outputs[:first],
        *[aval._replace(shape=(length, *aval.shape)) for aval in outputs[first:]],
    )


def _numpy(*arrays: np.ndarray, body: Body, length: int, reverse: bool, save: bool) -> tuple[np.ndarray, ...]:
    params = {"body": body, "length": length, "reverse": reverse, "save": save}
    results = run_as_program(SCAN, arrays, params, length)
    return reference(arrays, body, length, reverse) if results is None else tuple(results)


def reference(arrays: Sequence[np.ndarray], body: Body, length: int, reverse: bool) -> tuple[np.ndarray, ...]:
    """Return the results of a scan, computed step by step with NumPy."""
    first, last = body.carries, body.carries + body.slices
    carry = list(arrays[:first])
    results = [np.empty((length, *v.shape), v.dtype) for v in body.graph.outputs[first:]]
    for step in reversed(range(length)) if reverse else range(length):
        parts = [array[step, ...] for array in arrays[first:last]]
        step_results = evaluate(body.graph, [*carry, *parts, *arrays[last:]])
        carry = step_results[:first]
        for result, part in zip(results, step_results[first:], strict=True):
            result[step] = part
    return (*carry, *results)


class _Adjoint(NamedTuple):
    """The adjoint of a body for some cotangents (Note [adjoint of a scan]).

    forward     the body with what is saved as further results
    body        the adjoint
    carries     the numbers of the forward carry whose cotangents are its first carry
    constants   the numbers of the inputs of the forward body that are constants with a cotangent: the carry after these
    slices      where its parts come from: ("input", number), ("output", number of the forward body) or ("cotangent",
                number of an output)
    reads       the numbers of the inputs of the forward body that are its constants
    parts       the numbers of the inputs of the forward body that are parts with a cotangent: its results
    with_cotangent
                the numbers of all inputs of the forward body that have a cotangent
    """

    forward: Body
    body: Body
    carries: list[int]
    constants: list[int]
    slices: list[tuple[str, int]]
    reads: list[int]
    parts: list[int]
    with_cotangent: frozenset[int]


def _adjoint_of(body: Body, given: tuple[bool, ...], save: bool) -> _Adjoint:
    """Return the adjoint of a body for cotangents of some of its outputs."""
    adjoint: _Adjoint | None = body.adjoints.get((given, save))
    if adjoint is None:
        adjoint = body.adjoints[given, save] = _written_adjoint(body, given, save)
    return adjoint


def _written_adjoint(body: Body, given: tuple[bool, ...], save: bool) -> _Adjoint:
    halves = split(body.graph, save, given)
    forward = halves.forward
    used = {value for node in halves.adjoint.nodes for value in node.inputs} | set(halves.adjoint.outputs)
    writer = _AdjointWriter(body, given, halves, used)
    count, first = len(body.graph.inputs), body.carries
    more = list(forward.outputs)
    for number in range(count):
        value = halves.adjoint.inputs[number]
        if number < first and value in used:
            writer.slices.append(("output", len(more)))
            writer.stands.append(value)
            more.append(forward.inputs[number])
        elif number < first + body.slices and value in used:
            writer.slices.append(("input", number))
            writer.stands.append(value)
    for saved, value in zip(halves.saved, halves.adjoint.inputs[count:], strict=False):
        if value not in used:
            continue
        at = saved
        if saved < first:
            at = len(more)
            more.append(forward.outputs[saved])
        writer.slices.append(("output", at))
        writer.stands.append(value)
    forward.outputs = more
    is_same = len(more) == len(body.graph.outputs)
    return writer.run(body if is_same else Body(forward, first, body.slices, body.origin))


def _total_aval(aval: Aval) -> Aval:
    """Return the aval of a sum of the cotangents of a constant; those of 16 bits are added in float32."""
    return aval._replace(dtype=FLOAT32) if is_half(aval.dtype) else aval


def _total(b: Builder, constant: Value) -> Value:
    """Return the sum of the cotangents of a constant before the first step."""
    found = zeros(b, constant)
    dtype = _total_aval(constant.aval).dtype
    return found if found.dtype == dtype else b.cast(found, dtype=dtype)


class _AdjointWriter:
    """The construction of the body of the adjoint from the halves of the joint graph of a body."""

    def __init__(self, body: Body, given: tuple[bool, ...], halves: Split, used: set[Value]) -> None:
        self.body, self.given, self.halves, self.used = body, given, halves, used
        self.slices: list[tuple[str, int]] = []
        self.stands: list[Value] = []  # the inputs of the adjoint half that the slices stand for
        self.b = Builder(Graph())
        self.mapping: dict[Value, Value] = {}

    def run(self, forward: Body) -> _Adjoint:
        body, halves, b = self.body, self.halves, self.b
        count, first, last = len(body.graph.inputs), body.carries, body.carries + body.slices
        adjoint = halves.adjoint
        cotangents = iter(adjoint.inputs[count + len(halves.saved) :])
        by_output = {i: next(cotangents) for i, has in enumerate(self.given) if has}
        carries = [i for i in by_output if i < first]
        constants = [i for i in range(last, count) if halves.by_input[i] is not None]
        parts = [i for i in range(first, last) if halves.by_input[i] is not None]
        for i in carries:
            self.stand(by_output[i])
        totals = {i: b.input(_total_aval(body.graph.inputs[i].aval)) for i in constants}
        for value in self.stands:
            self.stand(value)
        for i, value in by_output.items():
            if i >= first:
                self.slices.append(("cotangent", i))
                self.stand(value)
        reads = [i for i in range(last, count) if adjoint.inputs[i] in self.used]
        for i in reads:
            self.stand(adjoint.inputs[i])
        self.copy()
        results = [self.carry(i) for i in carries]
        results += [self.added(totals[i], self.cotangent(i)) for i in constants]
        b.graph.outputs = results + [self.cotangent(i) for i in parts]
        own = Body(b.graph, len(carries) + len(constants), len(self.slices))
        with_cotangent = frozenset([i for i in range(count) if halves.by_input[i] is not None])
        return _Adjoint(forward, own, carries, constants, self.slices, reads, parts, with_cotangent)

    def stand(self, value: Value) -> None:
        """Have a new input stand for an input of the adjoint half."""
        self.mapping[value] = self.b.input(value.aval)

    def copy(self) -> None:
        adjoint, mapping, b = self.halves.adjoint, self.mapping, self.b
        mapping.update((value, b.constant(value.data)) for value in adjoint.constants)
        for node in adjoint.nodes:
            b.location = node.where
            b.node(
                node.op, tuple([mapping[v] for v in node.inputs]), node.params, tuple(v.aval for v in node.outputs)
            )  # fmt: skip
            mapping.update(zip(node.outputs, b.graph.nodes[-1].outputs, strict=True))

    def cotangent(self, number: int) -> Value:
        """Return the cotangent of an input of the forward body."""
        at = self.halves.by_input[number]
        assert at is not None
        return self.mapping[self.halves.adjoint.outputs[at]]

    def carry(self, number: int) -> Value:
        """Return the cotangent of a carry, zeros if the step does not read it."""
        if self.halves.by_input[number] is not None:
            return self.cotangent(number)
        return zeros(self.b, self.body.graph.inputs[number])

    def added(self, total: Value, value: Value) -> Value:
        """Return a sum; a product is added to it where it lies."""
        if value.dtype != total.dtype:
            value = self.b.cast(value, dtype=total.dtype)
        node = value.node
        is_product = node is not None and node.op.name == "matmul" and value.dtype.kind == "f"
        inputs = [v for other in self.b.graph.nodes for v in other.inputs]
        if is_product and value not in inputs and value.aval == total.aval:
            assert node is not None
            self.b.location = node.where
            return self.b.matmul_add(*node.inputs, total)  # type: ignore[no-any-return]
        return self.b.add(total, value)  # type: ignore[no-any-return]


def _vjp(b: Builder, node: Node, ct: Any) -> list[Value | None]:
    cts = ct if isinstance(ct, tuple) else (ct,)
    body, params = node.params["body"], node.params
    given = [cotangent is not None for cotangent in cts]
    while True:
        adjoint = _adjoint_of(body, tuple(given), params["save"])
        # The cotangent of a carry comes to exist where a later step makes it.
        more = [i for i in range(body.carries) if not given[i] and i in adjoint.with_cotangent]
        if not more:
            break
        for i in more:
            given[i] = True
    outputs = node.outputs
    if adjoint.forward is not body:
        outputs = b.apply(SCAN, node.inputs, {**params, "body": adjoint.forward})
    sources = {"input": node.inputs, "output": outputs, "cotangent": cts}
    inputs = [cts[i] if cts[i] is not None else zeros(b, node.outputs[i]) for i in adjoint.carries]
    inputs += [_total(b, node.inputs[i]) for i in adjoint.constants]
    inputs += [sources[kind][number] for kind, number in adjoint.slices]
    inputs += [node.inputs[i] for i in adjoint.reads]
    cotangents = b.apply(SCAN, inputs, {**params, "body": adjoint.body, "reverse": not params["reverse"]})
    results: list[Value | None] = [None] * len(node.inputs)
    for number, value in zip([*adjoint.carries, *adjoint.constants, *adjoint.parts], cotangents, strict=True):
        results[number] = value
    return results


SCAN = Op(
    name="scan",
    doc="a loop with a carry, whose body is a graph; the adjoint is a scan in the opposite order",
    kind=Kind.LOOP,
    infer=_infer,
    numpy=_numpy,
    vjp=_vjp,
    emit=None,
    samples=(),
    analytic=False,
)
