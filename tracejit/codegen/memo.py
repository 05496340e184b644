# SPDX-License-Identifier: BSD-3-Clause
"""Nests that become the same text, such as equal steps of a loop and bands of one launch: emitted once."""

from collections.abc import Hashable
from typing import Any

from tracejit.codegen.epilogue import emit_product
from tracejit.codegen.nest import Emitted, emit_nest
from tracejit.ir import Node, Value
from tracejit.passes.loops.launches import KernelLaunch, NestLaunch
from tracejit.passes.loops.nest import Access, Literal, Nest


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


def _likeness(part: Any, numbers: dict[Value, int]) -> Hashable:
    """Return a line, or a part of one, with values as numbers in the order in which they appear."""
    if isinstance(part, Value):
        return "value", numbers.setdefault(part, len(numbers))
    if isinstance(part, Node):
        return part.op.name, part.inputs[0].aval.dtype, part.output.aval.dtype
    if isinstance(part, Literal):
        return part.dtype, part.number.tobytes()
    if isinstance(part, tuple):
        return (type(part), *[_likeness(each, numbers) for each in part])
    return part  # type: ignore[no-any-return]  # the number of a read or a write
