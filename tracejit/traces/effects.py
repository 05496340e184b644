# SPDX-License-Identifier: BSD-3-Clause
"""The effects of a trace: the writes of a replay into the memory of its arguments and of captured arrays."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from tracejit.ops import Layout
from tracejit.util.devices import is_same_memory, may_share_memory, write
from tracejit.util.named_tuples import NamedTuple


class Effects(NamedTuple):
    """The writes of a trace into its inputs.

    The outputs of a graph are the arrays of the result, then the new elements of each target, then the guard. A program
    writes the elements into the targets itself, if it can (`by_program`); otherwise they are outputs of it too.

    targets     the number of the input that each write goes to
    aliases     pairs of inputs, one of them a target, that shared memory in the recording, and whether they were the
                same elements in the same places
    numbers     whether an in-place operator met an input that is a number, for which an array would be written
    """

    targets: tuple[int, ...] = ()
    aliases: frozenset[tuple[int, int, bool]] = frozenset()
    numbers: bool = False

    def by_program(self, layouts: Sequence[Layout | None]) -> bool:
        """Return whether a program can write the targets itself, given the layouts of inputs.

        It takes all inputs as disjoint, and all elements of a target.
        """
        return not self.aliases and all(map(_is_injective, [layouts[number] for number in self.targets]))

    def fit(self, arrays: Sequence[np.ndarray]) -> bool:
        """Return whether inputs share memory as they did in the recording, and the targets can be written."""
        writeable = all(arrays[number].flags.writeable for number in self.targets)
        return writeable and self.aliases == aliases_of(self.targets, arrays)

    def write(self, arrays: Sequence[Any], contents: Sequence[Any]) -> None:
        """Write new elements into the targets among the inputs, where they are not there already."""
        write([arrays[target] for target in self.targets], contents)


def aliases_of(targets: Sequence[int], arrays: Sequence[np.ndarray]) -> frozenset[tuple[int, int, bool]]:
    """Return the pairs of a target and another input that share memory, and whether they show it in the same way."""
    return frozenset(
        (min(target, number), max(target, number), is_same_memory(arrays[target], other))
        for target in targets
        for number, other in enumerate(arrays)
        if number != target and may_share_memory(arrays[target], other)
    )


def _is_injective(layout: Layout | None) -> bool:
    """Return whether elements of an array certainly lie in different places."""
    if layout is None:
        return True
    reach = 0
    for stride, extent in sorted(zip(map(abs, layout.strides), layout.shape, strict=True)):
        if extent > 1 and stride <= reach:
            return False
        reach += stride * (extent - 1)
    return True


NO_EFFECTS = Effects()
