# SPDX-License-Identifier: BSD-3-Clause
"""Results that a call path filled before and nobody uses any more, to be filled again.

Note [recycling]
A small program runs for a microsecond; to make an ndarray and a dlarray around it takes 0.4 us, and to free them 0.1,
for each output of each call. A training loop drops what the step before last returned. So a trace keeps the results of
its last calls, and the entry looks whether it may fill them again: an array to which nobody has a reference but
the recycler and the dlarray that holds it, which nobody else has. So nobody can tell that it is the array of an
earlier call: views, memoryviews, and arrays of other libraries that share memory hold a reference, weak references
are looked for, and what somebody changed (its shape, its dtype, its labels, whether it may be written) is not filled
again. Results of more than MOST_BYTES are not kept.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from tracejit.array import dlarray
from tracejit.aval import Aval

MOST_BYTES = 1 << 26
_SETS = 2  # what a step takes are the results of the one before; it fills those of the step before that
_MOST_SETS = 3
_TRIES = 2  # arrays replaced one by one, before all of them are

Frame = list[Any]
"""The state of a program, then for each set of results the list of arrays and the list of dlarrays around them."""


class EntryPoint(NamedTuple):
    """The compiled functions by which a call path runs a program (kernels/executor/entry.py).

    enter       runs it on arguments and a frame; gives the result, or the frame if it has not run
    new_state   gives an ndarray with a new state: one for each frame
    status      why it has not run: the negative number of a result, counted from 1, that must be replaced, or another
    turn        the number of the set of results that is next
    """

    enter: Callable[..., Any]
    new_state: Callable[[], np.ndarray]
    status: Callable[[np.ndarray], int]
    turn: Callable[[np.ndarray], int]


class Recycler:
    """The results of a trace's last calls.

    Args:
        outputs: shape, dtype and format of each result.
        guarded: whether the program has one more output, which says whether the others count.
        entry: runs the program on results that nobody uses.

    Attributes:
        frames: those that no call uses.
    """

    def __init__(self, outputs: Sequence[tuple[Aval, str | None]], guarded: bool, entry: EntryPoint) -> None:
        self._outputs = outputs
        self._guarded = guarded
        self._entry = entry
        self.enter = entry.enter
        self.frames: list[Frame] = []

    def new_frame(self) -> Frame:
        """Return a frame without results."""
        frame: Frame = [self._entry.new_state()]
        for _ in range(_SETS):
            frame += self._new_set()
        return frame

    def _new_set(self) -> tuple[list[Any], list[Any]]:
        count = len(self._outputs)
        return [*[None] * count, *([np.empty((), bool)] if self._guarded else [])], [None] * count

    def again(self, frame: Frame, *given: Any) -> Any:
        """Replace results that somebody uses and run the program; return the frame if that is not why it has not run.

        `given` is what `enter` was called with besides the frame.
        """
        arguments, *read = given
        for _ in range(_TRIES):
            status = self._entry.status(frame[0])
            if status >= 0:
                return frame
            self._replace(frame, -status - 1)
            found = self.enter(arguments, frame, *read)
            if found is not frame:
                return found
        if self._entry.status(frame[0]) >= 0:
            return frame
        # Somebody keeps many of them, perhaps all results of the last calls.
        if len(frame) < 1 + 2 * _MOST_SETS:
            frame += self._new_set()
        for number in range(len(self._outputs)):
            self._replace(frame, number)
        return self.enter(arguments, frame, *read)

    def _replace(self, frame: Frame, number: int) -> None:
        aval, format = self._outputs[number]
        first = 1 + 2 * self._entry.turn(frame[0])
        arrays, results = frame[first], frame[first + 1]
        results[number] = None
        arrays[number] = np.empty(aval.shape, aval.dtype)
        results[number] = dlarray._wrap(arrays[number], format, None)
