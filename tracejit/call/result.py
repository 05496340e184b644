# SPDX-License-Identifier: BSD-3-Clause
"""The structure of a result: its containers, its constants, and the outputs of the program among its leaves."""

from collections.abc import Iterable, Sequence
from typing import Any, Literal

import numpy as np

from tracejit import tree
from tracejit.array import dlarray
from tracejit.aval import Aval
from tracejit.program import Program
from tracejit.record.argument_containers import PassedContainer
from tracejit.record.number import as_result
from tracejit.util.named_tuples import NamedTuple

MISS = object()
"""The result of a call path for a call that its trace does not apply to."""


class ArrayLeaf(NamedTuple):
    """A stand-in for an array among the leaves of a result."""

    format: str | None


class NumberLeaf(NamedTuple):
    """A stand-in for a computed number among the leaves of a result."""

    kind: type
    format: str | None = None


class ResultArray(NamedTuple):
    """An output of a program that is an array of the result: its size and dtype, its labels, and NumPy's order."""

    aval: Aval
    format: str | None
    order: Literal["C", "F"] = "C"

    def new(self) -> np.ndarray:
        """Return memory for it."""
        return np.empty(self.aval.shape, self.aval.dtype, self.order)


class ResultLayout(NamedTuple):
    """The structure of a result.

    leaves      for each leaf an ArrayLeaf or NumberLeaf (the next output of the program), a PassedContainer, or the
                constant itself
    treedef     of the result
    """

    leaves: Sequence[Any]
    treedef: tree.TreeDef

    @property
    def formats(self) -> list[str | None]:
        """The formats of the outputs."""
        return [leaf.format for leaf in self.leaves if is_output(leaf)]

    def outputs(self, program: Program) -> list[ResultArray]:
        """Return the outputs of a program that are arrays of the result."""
        return [
            ResultArray(aval, format, program.order(number))
            for number, (aval, format) in enumerate(zip(program.outputs, self.formats, strict=False))
        ]

    def assemble(self, arrays: Iterable[dlarray], containers: Sequence[Any] | None = None) -> Any:
        """Return the result, given its outputs; arrays among its constants are copied.

        Args:
            arrays: the outputs.
            containers: among the arguments of the call; None leaves what stands for them.
        """
        outputs = iter(arrays)
        leaves = [
            next(outputs) if type(leaf) is ArrayLeaf
            else as_result(leaf.kind, next(outputs)) if type(leaf) is NumberLeaf
            else containers[leaf.number] if type(leaf) is PassedContainer and containers is not None
            else leaf.copy() if isinstance(leaf, np.ndarray) else leaf
            for leaf in self.leaves
        ]  # fmt: skip
        return tree.unflatten(self.treedef, leaves)


def with_containers(result: Any, containers: Sequence[Any]) -> Any:
    """Return a result with the containers of the arguments that something stands for in it."""
    leaves, treedef = tree.flatten(result)
    if not any(type(leaf) is PassedContainer for leaf in leaves):
        return result
    return tree.unflatten(
        treedef, [containers[leaf.number] if type(leaf) is PassedContainer else leaf for leaf in leaves]
    )


def is_output(leaf: Any) -> bool:
    """Return whether a leaf stands for an output of the program."""
    return type(leaf) is ArrayLeaf or type(leaf) is NumberLeaf
