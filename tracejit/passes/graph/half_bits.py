# SPDX-License-Identifier: BSD-3-Clause
"""half_bits: turns a graph of 16-bit numbers into one of the integers with the same bits.

Kernels know integers and numbers of 32 and 64 bits (Note [numbers of 16 bits] in ops/halves.py). A recording computes
in float32, so only casts, and ops that move numbers, meet those of 16 bits. Moves work on integers as well; casts
become the ops of ops/half_bits.py, which fuse with their neighbours. So a loop loads 16 bits, widens them, computes,
rounds, and stores 16 bits. A number that is rounded and computed with again stays in float32.
"""

from typing import Any

import numpy as np

from tracejit.aval import FLOAT16, FLOAT32, FLOAT64, Aval, is_half
from tracejit.ir import Builder, Graph, Node, Value
from tracejit.ops import Kind
from tracejit.passes.graph.bodies import Body

_BITS = np.dtype(np.uint16)


def half_bits(graph: Graph) -> Graph:
    """Return an equivalent graph in which inputs and outputs of 16-bit numbers are the integers of their bits.

    A graph without such numbers is returned as it is. Bodies of loops become bodies of the same integers.
    """
    values = [*graph.inputs, *graph.constants, *(v for node in graph.nodes for v in node.outputs)]
    if not any(is_half(value.aval.dtype) for value in values):
        return graph
    return _Replacement(graph).run()


class _Replacement:
    def __init__(self, graph: Graph) -> None:
        self.old = graph
        self.new = Graph()
        self.b = Builder(self.new)
        self.map: dict[Value, Value] = {}
        self.wide: dict[Value, Value] = {}  # the rounded numbers of values that have their bits

    def run(self) -> Graph:
        for value in self.old.inputs:
            self.map[value] = self.b.input(_aval(value))
        for value in self.old.constants:
            data = value.data
            self.map[value] = self.b.constant(data.view(_BITS) if is_half(data.dtype) else data)
        for node in self.old.nodes:
            self.b.location = node.where
            self.map.update(zip(node.outputs, self.node(node), strict=True))
        self.new.outputs = [self.map[value] for value in self.old.outputs]
        return self.new

    def node(self, node: Node) -> tuple[Value, ...]:
        """Return the results of a node in the new graph."""
        operands = tuple([self.map[value] for value in node.inputs])
        halves = [is_half(value.dtype) for value in (*node.inputs, *node.outputs)]
        if any(halves) and node.op.name == "cast":
            return (self.cast(operands[0], node.inputs[0].dtype, node.output.dtype),)
        params = node.params
        if node.op.name == "pad" and any(halves):
            value = np.asarray(params["value"], node.output.dtype).view(_BITS)
            params = {**params, "value": int(value)}
        if node.op.kind is Kind.LOOP and any(halves):
            params = {name: _body(x) if type(x) is Body else x for name, x in params.items()}
        avals: Any = tuple([_aval(value) for value in node.outputs])
        found = self.b.node(node.op, operands, params, avals[0] if len(avals) == 1 else avals)
        return (found,) if len(avals) == 1 else tuple(found)

    def cast(self, x: Value, source: np.dtype, target: np.dtype) -> Value:
        """Return a cast of numbers from or to 16 bits."""
        b = self.b
        if source == target:
            return x
        if is_half(source):
            wide = self.wide.get(x)
            value_of = b.half_value if source == FLOAT16 else b.brain_value
            x = value_of(b.cast(x, dtype=FLOAT32)) if wide is None else wide
        if not is_half(target):
            return x if x.dtype == target else b.cast(x, dtype=target)
        if x.dtype not in (FLOAT32, FLOAT64):
            x = b.cast(x, dtype=FLOAT32 if x.dtype.itemsize < 4 else FLOAT64)
        if target == FLOAT16:
            rounded = b.half_round(x)
            bits: Value = b.cast(b.half_bits(rounded), dtype=_BITS)
            if x.dtype == FLOAT64:
                # LLVM would join this rounding and the next one into a call of a function that is not there.
                rounded = b.half_value(b.cast(bits, dtype=FLOAT32))
        else:  # bfloat16, which is rounded from float32 in eager mode, too
            rounded = b.brain_round(x)
            bits = b.cast(b.brain_bits(rounded), dtype=_BITS)
        self.wide[bits] = b.cast(rounded, dtype=FLOAT32)
        return bits


def _body(body: Body) -> Body:
    return Body(half_bits(body.graph), body.carries, body.slices)


def _aval(value: Value) -> Aval:
    return value.aval._replace(dtype=_BITS) if is_half(value.dtype) else value.aval
