# SPDX-License-Identifier: BSD-3-Clause
"""complex_parts: turns a graph of complex numbers into one of their real and imaginary parts.

Note [parts of complex numbers]
Kernels know real numbers only. A complex value of a graph becomes two real ones. Each op on it becomes a formula on the
parts, the same that NumPy computes. So parts lie in arrays of their own while a program runs, and loops fuse, use
vectors and threads, and multiply matrices as with real numbers. Complex numbers are in memory only where a program
meets the outside. Inputs are seen as parts at every second place (the ops `real` and `imag`). Outputs are assembled
from parts (`complex_of`), by loops that store both at once (codegen/nest_memory.py). A loop of a recording carries
parts as well: its body gets two inputs, and gives two outputs, for each that is complex.
"""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from tracejit.aval import Aval, part_dtype
from tracejit.errors import CodegenError
from tracejit.ir import Builder, Graph, Node, Value
from tracejit.ops import Kind
from tracejit.ops.op import Strided
from tracejit.passes.graph.bodies import Body
from tracejit.passes.graph.pairs import Operand, Parts, number, whole_of


@cache
def _rules(for_device: bool) -> dict[str, Callable[..., Any]]:
    """Return the formulas by the name of the op; most programs do without them."""
    from tracejit.passes.graph.complex_arrays import ARRAYS
    from tracejit.passes.graph.complex_fourier import FOURIER
    from tracejit.passes.graph.complex_functions import FUNCTIONS
    from tracejit.passes.graph.fourier_by_numpy import BY_NUMPY

    return {**FUNCTIONS, **ARRAYS, **FOURIER, **({} if for_device else BY_NUMPY)}


def is_known(name: str) -> bool:
    """Return whether an op of complex numbers has a formula for their parts."""
    return name in _rules(False)


def complex_parts(graph: Graph, for_device: bool = False) -> Graph:
    """Return an equivalent graph in which only `real`, `imag`, `complex_of` and calls of Python meet complex numbers.

    A graph without complex numbers is returned as it is. One `for_device` calls no functions of the CPU.

    Raises:
        CodegenError: if an op of complex numbers has no formula for their parts.
    """
    values = [*graph.inputs, *graph.constants, *(v for node in graph.nodes for v in node.outputs)]
    if all(value.aval.dtype.kind != "c" for value in values):
        return graph
    return _Splitter(graph, for_device).run()


class _Splitter:
    def __init__(self, graph: Graph, for_device: bool) -> None:
        self.old = graph
        self.for_device = for_device
        self.new = Graph()
        self.b = Builder(self.new)
        self.map: dict[Value, Operand] = {}

    def run(self) -> Graph:
        b = self.b
        for value in self.old.inputs:
            own = b.input(value.aval)
            self.map[value] = Parts(b.real(own), b.imag(own)) if value.dtype.kind == "c" else own
        self.copy()
        self.new.outputs = [self.whole(value) for value in self.old.outputs]
        return self.new

    def body(self) -> Graph:
        """Return the graph with two inputs and outputs for each that is complex."""
        for value in self.old.inputs:
            self.map[value] = (
                Parts(*[self.b.input(_part(value.aval)) for _ in range(2)])
                if value.dtype.kind == "c"
                else self.b.input(value.aval)
            )
        self.copy()
        self.new.outputs = self.apart(self.old.outputs)
        return self.new

    def copy(self) -> None:
        """Append the constants and the nodes."""
        b = self.b
        for value in self.old.constants:
            data = value.data
            if value.dtype.kind == "c":
                self.map[value] = Parts(b.constant(data.real.copy()), b.constant(data.imag.copy()))
            else:
                self.map[value] = b.constant(data)
        for node in self.old.nodes:
            b.location = node.where
            results = self.node(node)
            self.map.update(zip(node.outputs, results, strict=True))

    def node(self, node: Node) -> list[Operand]:
        """Return the results of a node in the new graph."""
        operands = [self.map[value] for value in node.inputs]
        if not any(value.dtype.kind == "c" for value in (*node.inputs, *node.outputs)):
            results = self.b.node(node.op, tuple(operands), node.params, _avals(node))  # type: ignore[arg-type]
            return [results] if len(node.outputs) == 1 else list(results)
        if node.op.kind is Kind.HOST:
            return self.call(node)
        if node.op.kind is Kind.LOOP:
            return self.loop(node)
        rule = _rules(self.for_device).get(node.op.name)
        if rule is None:
            raise CodegenError(
                f"{node.op.name}: an op of complex numbers that has no formula for their parts cannot be compiled."
            )
        results = rule(self.b, node, *operands)
        return [results] if len(node.outputs) == 1 else list(results)

    def call(self, node: Node) -> list[Operand]:
        """Return the results of a call of Python, which takes and gives complex numbers in memory."""
        b = self.b
        outputs = b.node(
            node.op, tuple([self.whole(value) for value in node.inputs]), node.params, _avals(node)
        )
        results = (outputs,) if len(node.outputs) == 1 else outputs
        return [Parts(b.real(v), b.imag(v)) if v.dtype.kind == "c" else v for v in results]

    def loop(self, node: Node) -> list[Operand]:
        """Return the results of a loop, or of a choice of bodies, whose bodies take and give parts."""
        params = {
            name: _body_of_parts(value, self.for_device) if isinstance(value, Body) else value
            for name, value in node.params.items()
        }
        avals = [
            _part(value.aval) if value.dtype.kind == "c" else value.aval
            for value in node.outputs
            for _ in range(_count(value))
        ]
        found = iter(self.b.node(node.op, tuple(self.apart(node.inputs)), params, tuple(avals)))
        return [
            Parts(next(found), next(found)) if value.dtype.kind == "c" else next(found)
            for value in node.outputs
        ]

    def apart(self, values: Sequence[Value]) -> list[Value]:
        """Return values of the old graph, two parts for each complex one."""
        own = [self.map[value] for value in values]
        return [part for operand in own for part in (operand if isinstance(operand, Parts) else (operand,))]

    def whole(self, value: Value) -> Value:
        """Return a value of the old graph, in complex memory if it is complex."""
        own = self.map[value]
        if not isinstance(own, Parts):
            return own
        whole = whole_of(own)
        if whole is not None:
            return whole
        joined: Value = self.b.complex_of(*self.computed(own))
        return joined

    def computed(self, parts: Parts) -> Parts:
        """Return parts such that either both are computed, and stored by one loop, or none is.

        A part that is seen in memory beside one that is computed would be copied by a loop of its own. To add -0.0
        changes no number.
        """
        seen = [_is_seen(part) for part in parts]
        other = [part.node is not None and part.node.op.kind is Kind.ELEMENTWISE for part in parts]
        if sum(seen) != 1 or sum(other) != 1:
            return parts
        return Parts(*[
            self.b.add(part, number(self.b, -0.0, part)) if is_seen else part
            for part, is_seen in zip(parts, seen, strict=True)
        ])  # fmt: skip


def _is_seen(value: Value) -> bool:
    """Return whether a value is a view of parts of complex numbers in memory."""
    node = value.node
    while node is not None and isinstance(node.op.emit, Strided) and node.op.name not in ("real", "imag"):
        node = node.inputs[0].node
    return node is not None and node.op.name in ("real", "imag")


def _body_of_parts(body: Body, for_device: bool) -> Body:
    """Return a body whose complex inputs and outputs are two real ones each."""
    inputs, first = body.graph.inputs, body.carries
    carries, slices = (
        sum(map(_count, some)) for some in (inputs[:first], inputs[first : first + body.slices])
    )
    return Body(_Splitter(body.graph, for_device).body(), carries, slices)


def _count(value: Value) -> int:
    """Return how many values stand for one."""
    return 2 if value.dtype.kind == "c" else 1


def _part(aval: Aval) -> Aval:
    """Return what a part of a complex value is."""
    return aval._replace(dtype=part_dtype(aval.dtype))


def _avals(node: Node) -> Any:
    avals = tuple([value.aval for value in node.outputs])
    return avals[0] if len(avals) == 1 else avals
