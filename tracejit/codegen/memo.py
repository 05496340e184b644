# SPDX-License-Identifier: BSD-3-Clause
"""Emissions: nests with the same text, such as equal steps of a loop and bands of one launch, are emitted once."""

from collections.abc import Hashable, Sequence
from typing import Any

from tracejit.codegen.epilogue import emit_product
from tracejit.codegen.nest import Emitted
from tracejit.codegen.row_sums import emit_nest
from tracejit.ir import Node, Value
from tracejit.passes.loops.launches import KernelLaunch, NestLaunch
from tracejit.passes.loops.nest import Access, Literal, Nest, is_of_part, read_in_place


class Emissions:
    """Emits nests, and kernels with an epilogue. Launches of equal sizes and lines share their text."""

    def __init__(self) -> None:
        # By the ids of a nest's lists of lines, which bands share; the nest keeps them alive.
        self._keys_of_lines: dict[tuple[int, int], tuple[Nest, Hashable]] = {}
        # With the number of the access behind each argument, None for other arguments.
        self._emitted: dict[Hashable, tuple[Emitted, list[int | None]]] = {}

    def emit(self, launch: NestLaunch | KernelLaunch) -> Emitted:
        """Return the kernel and the arguments of a launch.

        Args:
            launch: of a nest, or of a product or a convolution with an epilogue.
        """
        own: Hashable = None
        range_numbers: tuple[int, ...] = ()
        accesses: list[Access] = []
        if isinstance(launch, NestLaunch):
            nest = launch.nest
        else:
            assert launch.epilogue is not None
            nest, product_read = launch.epilogue
            if launch.name != "product":
                range_numbers = launch.numbers[:2]  # of a convolution; its bands differ in nothing else
            accesses = [*launch.pointers]
            own = launch.name, launch.numbers[len(range_numbers) :], len(accesses), product_read
        key = (
            own,
            nest.extents,
            nest.split,
            tuple([(access.dtype, access.strides) for access in nest.reads]),
            tuple([(access.dtype, access.strides) for access in nest.writes]),
            _places_of_parts(nest.reads),
            _places_of_parts(nest.writes),
            self._key_of_lines(nest),
            tuple(read_in_place(nest).items()),
        )
        accesses += [*nest.reads, *nest.writes]
        memo = self._emitted.get(key)
        if memo is None:
            emitted = _emitted(launch)
            numbers = {id(access): number for number, access in enumerate(accesses)}
            places = [numbers[id(a)] if isinstance(a, Access) else None for a in emitted.arguments]
            self._emitted[key] = emitted, places
            return emitted
        emitted, places = memo
        arguments = [
            argument if place is None else accesses[place]
            for argument, place in zip(emitted.arguments, places, strict=True)
        ]
        arguments[: len(range_numbers)] = range_numbers
        return Emitted(emitted.kernel, arguments, emitted.origins)

    def _key_of_lines(self, nest: Nest) -> Hashable:
        ids = id(nest.row), id(nest.full)
        if ids not in self._keys_of_lines:
            numbers: dict[Value, int] = {}
            lines = tuple(
                [tuple([_likeness(line, numbers) for line in group]) for group in (*nest.row, *nest.full)]
            )
            ops = tuple([node.op.name for node in nest.nodes])  # the name of the kernel comes from them
            self._keys_of_lines[ids] = nest, (len(nest.row), lines, ops)
        return self._keys_of_lines[ids][1]


def _emitted(launch: NestLaunch | KernelLaunch) -> Emitted:
    if isinstance(launch, NestLaunch):
        return emit_nest(launch.nest)
    if launch.name == "product":
        return emit_product(launch)
    # Imported here, because few programs have convolutions.
    from tracejit.codegen.convolution_epilogue import emit_convolution

    return emit_convolution(launch)


def _places_of_parts(accesses: Sequence[Access]) -> Hashable:
    """Return which accesses are parts of the same complex numbers."""
    numbers: dict[Value, int] = {}
    return tuple([
        (numbers.setdefault(access.root, k), access.offset - accesses[numbers[access.root]].offset)
        if is_of_part(access) else None
        for k, access in enumerate(accesses)
    ])  # fmt: skip


def _likeness(part: Any, numbers: dict[Value, int]) -> Hashable:
    """Return a line, or a part of one, with values numbered in the order in which they appear."""
    if isinstance(part, Value):
        return "value", numbers.setdefault(part, len(numbers))
    if isinstance(part, Node):
        return part.op.name, part.inputs[0].aval.dtype, part.output.aval.dtype
    if isinstance(part, Literal):
        return part.dtype, part.number.tobytes()
    if isinstance(part, tuple):
        return (type(part), *[_likeness(field, numbers) for field in part])
    return part  # type: ignore[no-any-return]  # the number of a read or a write
