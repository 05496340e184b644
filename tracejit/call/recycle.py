# SPDX-License-Identifier: BSD-3-Clause
"""Reuse of results of earlier calls that are no longer referenced.

Note [recycling]
A small program runs for a microsecond. To make an ndarray and a dlarray around it takes 0.4 us, and to free them 0.1
us, for each output of each call. A training loop drops what the step before last returned. So a trace keeps the results
of its last calls, and the entry fills those of the last call, or of the oldest, again. It does so only if nothing but
the recycler and the dlarray refers to the array, and nothing but the recycler to the dlarray. Then nobody can tell that
it is the array of an earlier call: views, memoryviews, and arrays of other libraries that share memory hold a
reference; weak references are looked for; and an array is not filled again if its shape, dtype, labels or write flag
were changed. Results of more than MOST_BYTES are not kept.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tracejit.array import dlarray
from tracejit.call.result import MISS, ResultArray
from tracejit.util.named_tuples import NamedTuple

MOST_BYTES = 1 << 26
_SETS = 2  # what a step takes are the results of the one before; it fills those of the step before that
_MOST_SETS = 3
_TRIES = 2  # arrays replaced one by one, before all of them are

Frame = list[Any]
"""The state of a program; then, for each set of results, a list of arrays and a list of the dlarrays around them."""


class EntryPoint(NamedTuple):
    """The compiled functions by which a call path runs a program (kernels/executor/entry.py).

    enter       runs it on arguments and a frame; returns the result, MISS if the trace does not apply, or the frame if
                the status says why it has not run
    new_state   returns an ndarray with a new state: one for each frame
    status      if negative, the number of the result, counted from 1, that must be replaced
    turn        the number of the next set of results
    mend        removes the reason of a status that is not negative; returns whether it could. By default nothing can
    new_array   returns the data of a result, given its number; by default an ndarray
    """

    enter: Callable[..., Any]
    new_state: Callable[[], np.ndarray]
    status: Callable[[np.ndarray], int]
    turn: Callable[[np.ndarray], int]
    mend: Callable[[np.ndarray], bool] = lambda state: False
    new_array: Callable[[int], Any] | None = None


class Recycler:
    """The results of the last calls of a trace.

    Args:
        outputs: shape, dtype, format and order of each result.
        guarded: whether the program has one more output, which says whether all guards hold.
        entry: runs the program on results that nobody uses.
        checked: whether its last output says whether an index was out of range.

    Attributes:
        frames: the frames that no call is using.
    """

    def __init__(
        self, outputs: Sequence[ResultArray], guarded: bool, entry: EntryPoint, checked: bool = False
    ) -> None:  # fmt: skip
        self._checked = checked
        self._outputs = outputs
        self._guarded = guarded
        self._entry = entry
        self.enter = entry.enter
        self.frames: list[Frame] = []

    def take(self) -> Frame:
        """Return a frame that no call is using."""
        try:
            return self.frames.pop()
        except IndexError:
            return self.new_frame()

    def new_frame(self) -> Frame:
        """Return a frame without results."""
        frame: Frame = [self._entry.new_state()]
        for _ in range(_SETS):
            frame += self._new_set()
        return frame

    def _new_set(self) -> tuple[list[Any], list[Any]]:
        count = len(self._outputs)
        more = [np.empty((), bool)] if self._guarded else []
        more += [np.empty((), np.int64)] if self._checked else []
        return [*[None] * count, *more], [None] * count

    def again(self, frame: Frame, arguments: Any, *read: Any) -> Any:
        """Replace results that are in use and run the program; return the result, or MISS if that is not the reason.

        `arguments` and `read` are those that `enter` was called with.
        """
        for _ in range(_TRIES):
            status = self._entry.status(frame[0])
            if status < 0:
                self._replace(frame, -status - 1)
            elif not self._entry.mend(frame[0]):
                return MISS
            result = self.enter(arguments, frame, *read)
            if result is not frame:
                return result
        if self._entry.status(frame[0]) < 0:
            # Many results are kept by the caller, perhaps all of the last calls.
            if len(frame) < 1 + 2 * _MOST_SETS:
                frame += self._new_set()
            for number in range(len(self._outputs)):
                self._replace(frame, number)
            result = self.enter(arguments, frame, *read)
        if result is frame and self._entry.status(frame[0]) >= 0 and self._entry.mend(frame[0]):
            result = self.enter(arguments, frame, *read)
        return MISS if result is frame else result

    def _replace(self, frame: Frame, number: int) -> None:
        output = self._outputs[number]
        first = 1 + 2 * self._entry.turn(frame[0])
        arrays, results = frame[first], frame[first + 1]
        results[number] = None
        new_array = self._entry.new_array
        arrays[number] = output.new() if new_array is None else new_array(number)
        results[number] = dlarray._wrap(arrays[number], output.format, None)
