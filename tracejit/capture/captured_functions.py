# SPDX-License-Identifier: BSD-3-Clause
"""The places of functions of NumPy and SciPy that something holds, which hold what stands for them in a recording.

``self.sqrt = scipy.linalg.cholesky``, a table of functions, a partial object, a variable of an enclosing function and a
default of an argument lead to a function besides its name in NumPy (record/patches.py). They, too, hold what stands for
the function from when they are first looked at, which is before the code that can read them runs, until the recorded
function has ended.
"""

import functools
import types
from typing import Any

from tracejit.capture.captured_places import note_again
from tracejit.capture.exchanges import Exchanged, holder_of
from tracejit.capture.observed import Observed, Slot
from tracejit.capture.places import look
from tracejit.capture.slots import AttributeSlot, ClosureSlot, ItemSlot
from tracejit.capture.snapshot import Snapshot
from tracejit.capture.values import MAPPINGS
from tracejit.record import patches, stack
from tracejit.util.named_tuples import NamedTuple


class _InPartial(NamedTuple):
    """The function of a functools.partial, which holds something else for the time of a recording.

    owner    the partial object
    before   its function
    through  what it holds
    """

    owner: Any
    before: Any
    through: Any

    def put(self) -> None:
        """Put there what it is to hold."""
        self._set(self.through)

    def put_back(self) -> None:
        """Put back what was there, unless the function has put something else there."""
        if self.owner.func is self.through:
            self._set(self.before)

    def _set(self, function: Any) -> None:
        self.owner.__setstate__((function, self.owner.args, self.owner.keywords, self.owner.__dict__))


class CapturedFunctions:
    """The functions of NumPy and SciPy that the user's objects hold, in a recording."""

    def __init__(self) -> None:
        self._places: list[Exchanged | _InPartial] = []
        self._is_open = True

    def met(self, observed: Observed, slot: Slot) -> None:
        """Exchange a function in a slot that is looked at for the first time."""
        kind = type(slot)
        if (
            not self._is_open
            or not patches.is_patched(slot.value)
            or isinstance(observed.value, types.ModuleType)
        ):
            return
        is_item = kind is ItemSlot and (type(observed.value) is list or type(observed.value) in MAPPINGS)
        if not is_item and kind not in (AttributeSlot, ClosureSlot):
            return
        owner = holder_of(observed.value, slot)
        if look(owner, kind, slot.name) is slot.value:
            through = patches.standing_for(slot.value)
            place: Exchanged | _InPartial = Exchanged(owner, kind, slot.name, slot.value, through)
            if isinstance(owner, functools.partial) and slot.name == "func":
                place = _InPartial(owner, slot.value, through)
            place.put()
            self._places.append(place)

    def started(self, frame: types.FrameType) -> None:
        """Exchange functions among the arguments of a function that begins to run, which may be defaults."""
        code = frame.f_code
        names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        if not names or not self._is_open:
            return
        variables = frame.f_locals
        given = {name: variables[name] for name in names if patches.is_patched(variables.get(name))}
        if given:
            stack.assign(frame, {name: patches.standing_for(held) for name, held in given.items()})

    def end(self, snapshot: Snapshot | None) -> None:
        """Put all functions back, also in what was noted since, and exchange none any more."""
        self._is_open = False
        exchanged = {id(place.through): place.before for place in self._places}
        while self._places:
            self._places.pop().put_back()
        if snapshot is not None:
            note_again(snapshot, exchanged)
