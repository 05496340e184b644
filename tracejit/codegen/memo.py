# SPDX-License-Identifier: BSD-3-Clause
"""Nests that become the same text, such as equal steps of a loop and bands of one launch: emitted once."""

from collections.abc import Hashable

from tracejit.codegen.epilogue import emit_product
from tracejit.codegen.nest import Emitted, emit_nest
from tracejit.ir import Node, Value
from tracejit.passes.loops.launches import KernelLaunch, NestLaunch
from tracejit.passes.loops.lower import (
    Access,
    Accumulate,
    Compute,
    Fold,
    Line,
    Literal,
    Load,
    Nest,
    Operand,
    Reload,
    Store,
)


class Emissions:
    """Emits nests, and products with one, each text once: what has equal sizes and lines differs in addresses only."""

    def __init__(self) -> None:
        self._lines: dict[tuple[int, int], tuple[Nest, Hashable]] = {}  # of bands, which share their lines
        self._known: dict[Hashable, tuple[Emitted, list[int | None]]] = {}

    def emit(self, launch: NestLaunch | KernelLaunch) -> Emitted:
        """Return what the launch is emitted as, or one that differs from it in nothing but addresses.

        Args:
            launch: of a nest, or of a product with an epilogue.
        """
        if isinstance(launch, NestLaunch):
            nest, product, accesses = launch.nest, None, []
        else:
            assert launch.epilogue is not None
            nest, made = launch.epilogue
            product, accesses = (launch.numbers, made), [*launch.pointers]
        key = (
            product,
            nest.extents,
            nest.split,
            tuple([(access.dtype, access.strides) for access in nest.reads]),
            tuple([(access.dtype, access.strides) for access in nest.writes]),
            self._lines_of(nest),
        )
        accesses += [*nest.reads, *nest.writes]
        known = self._known.get(key)
        if known is None:
            emitted = emit_nest(nest) if isinstance(launch, NestLaunch) else emit_product(launch)
            known_as = {id(access): number for number, access in enumerate(accesses)}
            places = [known_as[id(a)] if isinstance(a, Access) else None for a in emitted.arguments]
            self._known[key] = emitted, places
            return emitted
        emitted, places = known
        arguments = [
            argument if place is None else accesses[place]
            for argument, place in zip(emitted.arguments, places, strict=True)
        ]
        return Emitted(emitted.kernel, arguments, emitted.origins)

    def _lines_of(self, nest: Nest) -> Hashable:
        known = self._lines.get((id(nest.row), id(nest.full)))
        if known is None:
            numbers: dict[Value, int] = {}
            lines = tuple(
                [tuple([_likeness(line, numbers) for line in group]) for group in (*nest.row, *nest.full)]
            )
            ops = tuple([node.op.name for node in nest.nodes])  # the name of the kernel comes from them
            known = self._lines[id(nest.row), id(nest.full)] = nest, (len(nest.row), lines, ops)
        return known[1]


def _likeness(line: Line, numbers: dict[Value, int]) -> Hashable:
    """Return a line with values as numbers, in the order in which they appear."""
    if isinstance(line, Load):
        return line
    if isinstance(line, Compute):
        return Compute, *_op(line.node), *[_operand(each, numbers) for each in (line.result, *line.operands)]
    if isinstance(line, Store):
        return Store, line.write, _operand(line.value, numbers)
    if isinstance(line, Reload):
        return Reload, line.write, _operand(line.result, numbers)
    value = _operand(line.value, numbers)
    if isinstance(line, Fold):
        return Fold, *_op(line.node), value, _operand(line.result, numbers)
    return Accumulate, *_op(line.node), value, line.write, line.start


def _op(node: Node) -> tuple[Hashable, ...]:
    return node.op.name, node.inputs[0].aval.dtype, node.output.aval.dtype


def _operand(operand: Operand, numbers: dict[Value, int]) -> Hashable:
    if isinstance(operand, Value):
        return "value", numbers.setdefault(operand, len(numbers))
    return (operand.dtype, operand.number.tobytes()) if isinstance(operand, Literal) else operand
