# SPDX-License-Identifier: BSD-3-Clause
"""Nests that become the same text, such as equal steps of a loop and bands of one launch: emitted once."""

from collections.abc import Hashable
from typing import Any

from tracejit.codegen.nest import Emitted, emit_nest
from tracejit.passes.lower import Access, Compute, Line, Literal, Nest


class Emissions:
    """Emits nests, each text once: what has equal extents, strides and lines differs in addresses only."""

    def __init__(self) -> None:
        self._lines: dict[tuple[int, int], tuple[Nest, Hashable]] = {}  # of bands, which share their lines
        self._known: dict[Hashable, tuple[Emitted, list[int | None]]] = {}

    def emit(self, nest: Nest) -> Emitted:
        """Return what emit_nest returns for this nest, or for one that differs in nothing but addresses."""
        key = (
            nest.extents,
            nest.split,
            tuple([(access.dtype, access.strides) for access in nest.reads]),
            tuple([(access.dtype, access.strides) for access in nest.writes]),
            self._lines_of(nest),
        )
        accesses = [*nest.reads, *nest.writes]
        known = self._known.get(key)
        if known is None:
            emitted = emit_nest(nest)
            numbers = {id(access): number for number, access in enumerate(accesses)}
            places = [numbers[id(a)] if isinstance(a, Access) else None for a in emitted.arguments]
            self._known[key] = emitted, places
            return emitted
        emitted, places = known
        arguments = [
            argument if place is None else accesses[place]
            for argument, place in zip(emitted.arguments, places, strict=True)
        ]
        return emitted._replace(arguments=arguments)

    def _lines_of(self, nest: Nest) -> Hashable:
        known = self._lines.get((id(nest.row), id(nest.full)))
        if known is None:
            numbers: dict[Any, int] = {}
            lines = tuple(
                [tuple([_likeness(line, numbers) for line in group]) for group in (*nest.row, *nest.full)]
            )
            ops = tuple([node.op.name for node in nest.nodes])  # the name of the kernel comes from them
            known = self._lines[id(nest.row), id(nest.full)] = nest, (len(nest.row), lines, ops)
        return known[1]


def _likeness(line: Line, numbers: dict[Any, int]) -> Hashable:
    """Return a line with values as numbers, in the order in which they appear."""
    found: list[Hashable] = [type(line).__name__]
    for field in line:
        parts = field if isinstance(line, Compute) and type(field) is tuple else (field,)
        for part in parts:
            if isinstance(part, Literal):
                found.append((part.dtype, part.number.tobytes()))
            elif isinstance(part, int) or part is None:
                found.append(part)
            elif hasattr(part, "op"):
                found.append((part.op.name, part.inputs[0].dtype, part.output.dtype))
            else:
                found.append(("value", numbers.setdefault(part, len(numbers))))
    return tuple(found)
