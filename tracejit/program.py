# SPDX-License-Identifier: BSD-3-Clause
"""A Program: what the code generator hands to a backend, and what the executor runs.

A program is data: rows of a kernel and its arguments. Twenty equal layers are twenty rows that share kernels.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tracejit.aval import Aval
from tracejit.errors import BoundsError
from tracejit.ir import Where
from tracejit.record.guards import GuardFailed

ALIGNMENT = 64  # bytes: a cache line, and the widest vector


class Place(NamedTuple):
    """Memory: the `number`-th input, output or constant from its first byte on, or `offset` bytes into the arena."""

    kind: str  # "input", "output", "constant" or "arena"
    number: int
    offset: int


class Kernel(NamedTuple):
    """Emitted source of one kernel, a function of one argument array; its name ends in a hash of the text."""

    name: str
    text: str


class Pointer(NamedTuple):
    """The address `offset_bytes` into a place, at which elements of `dtype` lie."""

    place: Place
    offset_bytes: int
    dtype: np.dtype


class ScalarArgument(NamedTuple):
    """A constant of the function, handed to the kernel at run time so that its value is not in the text."""

    value: Any
    dtype: np.dtype


class Symbol(NamedTuple):
    """The address of a routine outside kernels/, such as a BLAS function."""

    name: str


Argument = int | Pointer | ScalarArgument | Symbol


class Row(NamedTuple):
    """One launch: the kernel, its arguments, and the user's lines that it comes from.

    Of work in several parts, which may run at the same time, each part is `length` rows, one after the other.
    """

    kernel: Kernel
    arguments: tuple[Argument, ...]
    note: str
    where: tuple[Where, ...]
    part: int = 0
    parts: int = 1
    length: int = 1


class Prepared(NamedTuple):
    """What had to be done until kernels were at hand: the names of those compiled and of those loaded, and times."""

    compiled: tuple[str, ...]
    loaded: tuple[str, ...]
    compile_ns: int
    load_ns: int


class Program(NamedTuple):
    """Rows in order, and the memory that they work on.

    If `checked` names operations, the program has one more output, an int64 that starts as 0 and is set if an index
    of theirs was out of range.
    """

    rows: list[Row]
    inputs: list[Aval]
    outputs: list[Aval]
    constants: list[np.ndarray]
    arena_bytes: int
    checked: tuple[str, ...] = ()
    guard: int | None = None  # the output, a bool scalar, that says whether the others count

    @property
    def launches(self) -> int:
        """The number of launches; parts of one launch count as one."""
        return sum(row.part == 0 for row in self.rows)

    @property
    def places(self) -> list[int]:
        """For each row, its number in the part that it belongs to."""
        found: list[int] = []
        while len(found) < len(self.rows):
            row = self.rows[len(found)]
            found += [*range(row.length)] * row.parts
        return found

    @property
    def launch_of_row(self) -> list[int]:
        """For each row, the number of its launch; parts of one launch count as one."""
        found: list[int] = []
        launches = 0
        while len(found) < len(self.rows):
            row = self.rows[len(found)]
            found += [*range(launches, launches + row.length)] * row.parts
            launches += row.length
        return found

    @property
    def kernels(self) -> list[Kernel]:
        """The distinct kernels, in the order of first use."""
        return list(dict.fromkeys(row.kernel for row in self.rows))

    def new_outputs(self) -> tuple[np.ndarray, ...]:
        """Return memory for the outputs."""
        return tuple([np.empty(aval.shape, aval.dtype) for aval in self.outputs])

    def check(self, fault: np.ndarray, outputs: Sequence[np.ndarray]) -> None:
        """Raise GuardFailed if the program does not apply, or a BoundsError if the further output says that an index
        was out of range."""
        if self.guard is not None and not outputs[self.guard]:
            raise GuardFailed
        if fault:
            raise BoundsError(
                f"an index is out of range in a replay of {' or '.join(self.checked)}; valid indices are -n to "
                "n - 1 for an axis of size n. Call the function with enabled = False to see which."
            )
