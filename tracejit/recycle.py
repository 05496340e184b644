# SPDX-License-Identifier: BSD-3-Clause
"""Results that a call path filled before and nobody uses any more, to be filled again.

Note [recycling]
A small program runs for a microsecond; to make an ndarray and a dlarray around it takes 0.4 us, and to free them 0.1,
for each output of each call. A training loop drops what the step before last returned. So a trace keeps the results of
its last calls, and the executor looks whether it may fill them again: an array to which nobody has a reference but
the recycler and the dlarray that holds it, which nobody else has. So nobody can tell that it is the array of an
earlier call: views, memoryviews, and arrays of other libraries that share memory hold a reference, weak references
are looked for, and what somebody changed (its shape, its dtype, its labels, whether it may be written) is not filled
again. Results of more than MOST_BYTES are not kept.
"""

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tracejit.array import dlarray
from tracejit.aval import Aval

MOST_BYTES = 1 << 26
_SETS = 2  # what a step takes are the results of the one before; it fills those of the step before that
_MOST_SETS = 3
_TRIES = 2  # arrays replaced one by one, before all of them are

Kept = tuple[list[Any], list[Any]]


class Recycler:
    """The results of a trace's last calls.

    Args:
        outputs: shape, dtype and format of each result.
        guarded: whether the program has one more output, which says whether the others count.
        refill: runs the program on outputs that nobody uses; gives the negative number of one that somebody uses.

    Attributes:
        sets: of results, the one used longest ago first: a list of arrays, and a list of the dlarrays around them.
    """

    def __init__(
        self, outputs: Sequence[tuple[Aval, str | None]], guarded: bool, refill: Callable[..., int]
    ) -> None:
        self._outputs = outputs
        self._guarded = guarded
        self.refill = refill
        self.sets: deque[Kept] = deque()
        for _ in range(_SETS):
            self.sets.append(self.new_set())

    def new_set(self) -> Kept:
        """Return lists without results."""
        count = len(self._outputs)
        return [*[None] * count, *([np.empty((), bool)] if self._guarded else [])], [None] * count

    def renew(self, inputs: tuple[np.ndarray, ...], kept: Kept, status: int) -> int:
        """Replace results that cannot be filled until the program has run, or an input is wrong; return the status."""
        for _ in range(_TRIES):
            if status >= 0:
                return status
            self._replace(kept, -status - 1)
            status = self.refill(inputs, *kept)
        if status >= 0:
            return status
        # Somebody keeps many of them, perhaps all results of the last calls.
        if len(self.sets) < _MOST_SETS - 1:
            self.sets.append(self.new_set())
        for number in range(len(self._outputs)):
            self._replace(kept, number)
        return self.refill(inputs, *kept)

    def _replace(self, kept: Kept, number: int) -> None:
        aval, format = self._outputs[number]
        arrays, results = kept
        results[number] = None
        arrays[number] = np.empty(aval.shape, aval.dtype)
        results[number] = dlarray._wrap(arrays[number], format, None)
