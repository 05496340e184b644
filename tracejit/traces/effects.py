# SPDX-License-Identifier: BSD-3-Clause
"""The effects of a trace: what a replay writes into the memory of its arguments and of captured arrays."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tracejit.record.memory import is_same_memory


class Effects(NamedTuple):
    """The writes of a trace into its inputs.

    The outputs of a program are the arrays of the result, then the new elements of each target, then the guard.

    targets     the number of the input that each write goes to
    aliases     pairs of inputs, one of them a target, that were the same memory in the recording
    numbers     whether an in-place operator met an input that is a number, for which an array would be written
    """

    targets: tuple[int, ...] = ()
    aliases: frozenset[tuple[int, int]] = frozenset()
    numbers: bool = False

    def fit(self, arrays: Sequence[np.ndarray]) -> bool:
        """Return whether inputs share memory as they did in the recording."""
        return self.aliases == aliases_of(self.targets, arrays)

    def write(self, arrays: Sequence[np.ndarray], contents: Sequence[np.ndarray]) -> None:
        """Write new elements into the targets among the inputs."""
        for target, content in zip(self.targets, contents, strict=True):
            np.copyto(arrays[target], content)


def aliases_of(targets: Sequence[int], arrays: Sequence[np.ndarray]) -> frozenset[tuple[int, int]] | None:
    """Return the pairs of a target and another input that are the same memory; None if two overlap in another way."""
    pairs = set()
    for target in targets:
        for number, other in enumerate(arrays):
            if number != target and np.may_share_memory(arrays[target], other):
                if not is_same_memory(arrays[target], other):
                    return None
                pairs.add((min(target, number), max(target, number)))
    return frozenset(pairs)


NO_EFFECTS = Effects()
