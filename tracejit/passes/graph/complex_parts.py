# SPDX-License-Identifier: BSD-3-Clause
"""complex_parts: a graph of complex numbers becomes one of their real and imaginary parts.

Note [parts of complex numbers]
Kernels know real numbers only. A complex value of a graph becomes two real ones, and each op on it the same formula on
parts that NumPy computes. So parts lie in arrays of their own while a program runs, and loops fuse, use vectors and
threads, and multiply matrices as those of real numbers do. Complex numbers are in memory only where a program meets
the outside: inputs are seen as parts at every second place (op `real` and `imag`), outputs are assembled from parts
(`complex_of`), whose loops store both at once (codegen/nest_memory.py).
"""

from collections.abc import Callable
from functools import cache
from typing import Any

from tracejit.errors import CodegenError
from tracejit.ir import Builder, Graph, Node, Value
from tracejit.ops import Kind
from tracejit.passes.graph.pairs import Operand, Parts, whole_of


@cache
def _rules() -> dict[str, Callable[..., Any]]:
    """Return the formulas by the name of the op; most programs do without them."""
    from tracejit.passes.graph.complex_arrays import ARRAYS
    from tracejit.passes.graph.complex_fourier import FOURIER
    from tracejit.passes.graph.complex_functions import FUNCTIONS

    return {**FUNCTIONS, **ARRAYS, **FOURIER}


def is_known(name: str) -> bool:
    """Return whether an op of complex numbers has a formula for their parts."""
    return name in _rules()


def complex_parts(graph: Graph) -> Graph:
    """Return an equivalent graph in which only `real`, `imag`, `complex_of` and calls of Python meet complex numbers.

    A graph without complex numbers is returned as it is.

    Raises:
        CodegenError: if an op of complex numbers has no formula for their parts.
    """
    values = [*graph.inputs, *graph.constants, *(v for node in graph.nodes for v in node.outputs)]
    if all(value.aval.dtype.kind != "c" for value in values):
        return graph
    return _Splitter(graph).run()


class _Splitter:
    def __init__(self, graph: Graph) -> None:
        self.old = graph
        self.new = Graph()
        self.b = Builder(self.new)
        self.map: dict[Value, Operand] = {}

    def run(self) -> Graph:
        b = self.b
        for value in self.old.inputs:
            own = b.input(value.aval)
            self.map[value] = Parts(b.real(own), b.imag(own)) if value.dtype.kind == "c" else own
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
        self.new.outputs = [self.whole(value) for value in self.old.outputs]
        return self.new

    def node(self, node: Node) -> list[Operand]:
        """Return the results of a node in the new graph."""
        operands = [self.map[value] for value in node.inputs]
        if not any(value.dtype.kind == "c" for value in (*node.inputs, *node.outputs)):
            results = self.b.node(node.op, tuple(operands), node.params, _avals(node))  # type: ignore[arg-type]
            return [results] if len(node.outputs) == 1 else list(results)
        if node.op.kind is Kind.HOST:
            return self.call(node)
        rule = _rules().get(node.op.name)
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

    def whole(self, value: Value) -> Value:
        """Return a value of the old graph, in complex memory if it is complex."""
        own = self.map[value]
        if not isinstance(own, Parts):
            return own
        whole = whole_of(own)
        if whole is not None:
            return whole
        joined: Value = self.b.complex_of(*own)
        return joined


def _avals(node: Node) -> Any:
    avals = tuple([value.aval for value in node.outputs])
    return avals[0] if len(avals) == 1 else avals
