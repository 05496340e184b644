# SPDX-License-Identifier: BSD-3-Clause
"""The attributes that code asks for by names which it computes: ``getattr(self, name)``, ``vars(layer)``.

Note [attributes by name]
No byte code tells which attribute ``getattr(self, f"w{i}")`` reads. But each call of getattr, setattr, vars and the
like is seen before it happens (record/monitor.py), with the object and the name. So that attribute is read, as
``self.w1`` would be, and no other. A function of Python's library that goes through all attributes, as copy.deepcopy
does, reads all of its argument, and of what that leads to.

Where such a function is called by code in C (``map(getattr, ...)``), no call shows what it reads. Then all objects
count as read whose attributes are read by names (Snapshot.read_dynamically).
"""

import builtins
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tracejit.capture import bytecode
from tracejit.capture.callables import ObservedFunction
from tracejit.capture.named import (
    ObservedClass,
    ObservedInstance,
    ObservedMember,
    ObservedModule,
    ObservedNames,
)
from tracejit.capture.objects import ObservedArray, ObservedContainer
from tracejit.capture.observed import Observed, Slot
from tracejit.capture.reads import AccessPath
from tracejit.capture.slots import AttributeSlot, LibrarySlot, PresenceSlot, SuperSlot
from tracejit.capture.snapshot import Snapshot
from tracejit.capture.values import MISSING, UNKNOWN, elements, is_closed
from tracejit.record import monitor, stack


class AskedByName:
    """The reader of what is asked for by names (Note [attributes by name]), which notes it in a snapshot.

    Args:
        snapshot: the notes.
        met: is told of objects that were first observed.
    """

    def __init__(self, snapshot: Snapshot, met: Callable[[Sequence[Observed]], None]) -> None:
        self._snapshot = snapshot
        self._tell = met
        self._read: set[int] = set()  # ids of objects all of which was read

    def asked(self, frame: types.FrameType, function: Any, arguments: Sequence[Any] | None) -> None:
        """Note what is about to be read.

        Args:
            frame: of the user's code.
            function: one of monitor.ASKING; None for a function of Python's library that reads all of its argument.
            arguments: that the function gets; None if they are not known.
        """
        snapshot = self._snapshot
        reads = bytecode.reads_of(frame.f_code)
        if function is not None and frame.f_lasti in reads.named_at:
            return
        try:
            snapshot.where = (frame.f_code.co_filename, frame.f_lineno)
            known = len(snapshot.objects)
            if arguments is None and not reads.is_dynamic:  # otherwise all that such code can reach is read
                raise LookupError(f"the arguments of {function.__name__}()")
            if arguments:
                self._note(function, *arguments)
            if len(snapshot.objects) > known:
                self._tell([*snapshot.objects.values()][known:])
        except Exception as error:
            snapshot.refuse(error)

    def _note(self, function: Any, owner: Any, name: Any = None, *_: Any) -> None:
        snapshot = self._snapshot
        if is_closed(owner):
            return
        if function is dir:
            if isinstance(observed := snapshot.observe(owner), ObservedNames):
                observed.note_names(snapshot)
        elif type(name) is not str:
            self._read_all(owner, is_deep=function is None)
        elif type(owner) is super:
            of: Any = owner
            root = snapshot.root_of(of.__self_class__)
            snapshot.read_whole(snapshot.read(root, SuperSlot, (of.__thisclass__, name)))
        elif function is setattr or function is delattr:
            observed = snapshot.observe(owner)
            (snapshot.assign if function is setattr else snapshot.delete)(observed, AttributeSlot, name)
        else:
            self._read_one(owner, name, is_probed=function is hasattr)

    def _read_one(self, owner: Any, name: str, is_probed: bool) -> None:
        """Note that one attribute of an object is read, or only whether it is there."""
        snapshot = self._snapshot
        observed = snapshot.observe(owner)
        kind: type[Slot] = AttributeSlot
        if isinstance(observed, ObservedArray):
            observed.follow((("attr", name),), snapshot.where)
            return
        if isinstance(observed, ObservedModule) and observed.is_of_library:
            observed, kind = snapshot.root(vars(owner), owner.__name__), LibrarySlot
        if is_probed and kind is AttributeSlot and snapshot.read(observed, PresenceSlot, name) is not UNKNOWN:
            return
        value = snapshot.read(observed, kind, name)
        if value is UNKNOWN:
            observed.is_loose = True
            if not has_names(observed):
                snapshot.read_whole(owner)  # by a method
        elif value is not MISSING:
            snapshot.read_whole(value)

    def _read_all(self, owner: Any, is_deep: bool) -> None:
        """Note that all attributes of an object are read; if that is deep, of the objects that they lead to, too."""
        snapshot = self._snapshot
        waiting = [owner]
        while waiting:
            value = waiting.pop()
            if is_closed(value) or value is MISSING or value is UNKNOWN or id(value) in self._read:
                continue
            observed = snapshot.observe(value)  # which keeps it, so that no other object gets its id
            if observed.is_code and (value is not owner or value in snapshot.made):
                continue
            if is_deep:
                self._read.add(id(value))
            snapshot.read_whole(value)
            if isinstance(observed, ObservedNames):
                observed.note_names(snapshot)
                names = [*observed.own_names(True)]
                snapshot.read_named(observed, names)
                slots = [observed.slots.get((AttributeSlot, name)) for name in names]
                waiting += [slot.value for slot in slots if slot is not None and is_deep]
            elif isinstance(observed, ObservedContainer) and is_deep:
                waiting += elements(value)


def are_shown(callee: AccessPath | None, scope: Mapping[str, Any], observed: Observed) -> bool:
    """Return whether the calls of a function show which attributes are read of an object.

    Args:
        callee: leads to the function; its name is that of one of monitor.ASKING.
        scope: the global names of the code that calls it.
        observed: the object.
    """
    function = None if callee is None else scope.get(callee.name, getattr(builtins, callee.name))
    is_known = isinstance(function, types.BuiltinFunctionType) and function in monitor.ASKING
    return is_known and stack.is_readable() and has_names(observed)


def has_names(observed: Observed) -> bool:
    """Return whether nothing but attributes with names is read of an object where it is asked for one."""
    if isinstance(observed, ObservedInstance):
        return monitor.is_user_class(type(observed.value))
    if isinstance(observed, ObservedModule):
        return not observed.is_of_library
    return isinstance(observed, (ObservedClass, ObservedMember, ObservedFunction))
