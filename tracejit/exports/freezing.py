# SPDX-License-Identifier: BSD-3-Clause
"""Captured arrays of a program become its constants."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from tracejit.program import Place, Pointer, Program


def frozen(program: Program, memory: Sequence[tuple[np.ndarray, int]], first: int) -> Program:
    """Return a program whose inputs from number `first` on are constants, laid out in `memory` as the inputs were."""
    if not memory:
        return program
    last = first + len(memory)
    starts = [(len(program.constants) + i, start) for i, (_, start) in enumerate(memory)]
    constants = [*program.constants, *[array for array, _ in memory]]

    def moved(argument: Any) -> Any:
        if not isinstance(argument, Pointer) or argument.place.kind != "input":
            return argument
        number = argument.place.number
        if number < first:
            return argument
        if number >= last:
            return argument._replace(place=Place("input", number - len(memory), argument.place.offset))
        constant, start = starts[number - first]
        return argument._replace(
            place=Place("constant", constant, 0),
            offset_bytes=argument.place.offset + argument.offset_bytes + start,
        )

    rows = [row._replace(arguments=tuple(map(moved, row.arguments))) for row in program.rows]
    inputs = [*program.inputs[:first], *program.inputs[last:]]
    loops = tuple([loop._replace(condition=moved(loop.condition)) for loop in program.loops])
    return program._replace(rows=rows, inputs=inputs, constants=constants, loops=loops)


def laid_out(array: np.ndarray) -> tuple[np.ndarray, int]:
    """Return a copy of an array with the same strides in contiguous memory, and the byte at which it begins."""
    if array.flags.c_contiguous:
        return array.copy(), 0
    low, high = np.lib.array_utils.byte_bounds(array)
    start = array.__array_interface__["data"][0] - low
    memory = np.zeros((high - low) // array.itemsize, array.dtype)
    view = np.ndarray(array.shape, array.dtype, memory, start, array.strides)
    view[...] = array
    return memory, start
