# SPDX-License-Identifier: BSD-3-Clause
"""Plain numbers that the user's code asks of traced values, by float(x), int(x), x.item(): they vary, as the values do.

Note [conversions]
x.item() returns what it likes, so it returns a Number. But float(x) insists that x.__float__() returns a true float. So
the Number takes the shape of that float in place (become.py), and is a Number again before the next instruction of the
user's code runs, which the watch over calls sees (crossings.py). In between, Python does nothing but look at its type.

That is known only where the instruction is a call of float or int itself, with the value alone, or takes elements of
map(float, x) and does nothing else with them. Elsewhere, as in max(map(float, x)) or "%d" % x, C code may compute with
the number, and its value is a guard. So it is where nobody refers to the number when the call has ended, because what
Python has is a copy.

Such a number has the derivative of its value, in dlfeval too: in code for NumPy float(x) is x. An integer has none.
That it fits 64 bits is a guard; dlfeval, which has no guards, gives true integers.
"""

import sys
import types
from typing import Any

import numpy as np

from tracejit.aval import is_inexact
from tracejit.record import arithmetic, become, monitor, recorder, stack
from tracejit.record.ended import is_open
from tracejit.util.devices import on_host
from tracejit.util.frames import user_frame
from tracejit.util.named_tuples import NamedTuple

_KINDS: dict[str, type] = {"i": int, "u": int, "f": float, "c": complex}
_MOST_LISTED = 100  # elements
_LIMIT = 2.0**63  # of the size of an integer
_REFERENCES = 4  # to a number that nobody has: of the recorder, of what was lent (two), and of the count
_FLOAT = np.dtype(np.float64)


class Lent(NamedTuple):
    """A Number in the shape of a true number.

    frame   in whose next instruction it is a Number again
    number  the object
    shape   what it was (become.py)
    """

    frame: types.FrameType
    number: Any
    shape: bytes


def varies(x: Any) -> bool:
    """Return whether the elements of an array may be others in a replay: it is traced, or one from outside."""
    return x._value is not None or recorder.is_captured(x)


def _traced(x: Any) -> Any:
    """Return an array from outside as the input of the trace that an operation would make of it."""
    if x._value is not None or not recorder.is_captured(x):
        return x
    value = recorder.thread.recorder.value(x)
    return recorder.wrap(value.data, x._format, value)


def element(x: Any, kind: type | None = None) -> Any:
    """Return the only element of an array that varies as a number that varies; None if it has to be a guard.

    Args:
        x: the array.
        kind: int, float or complex; that of the array's dtype if there is none.
    """
    kind = kind or _KINDS.get(x._data.dtype.kind)
    return None if kind is None or not _is_for_user() else _of_array(x, kind)


def elements(x: Any) -> Any:
    """Return the elements of an array that varies as numbers that vary, in lists; None if they have to be guards."""
    data, kind = x._data, _KINDS.get(x._data.dtype.kind)
    if kind is None or not 0 < data.size <= _MOST_LISTED or not _is_for_user():
        return None
    x = _traced(x)
    if not _is_possible(x, kind):
        return None
    x = x if x._format is None else recorder.wrap(data, None, x._value)
    return _listed(x, kind)


def _listed(x: Any, kind: type) -> Any:
    if not x._data.ndim:
        return _of_array(x, kind)
    return [part.item() if recorder.is_number(part) else _listed(part, kind) for part in x]


def _is_for_user() -> bool:
    """Return whether the user's code asks, and what it is given stays there."""
    owner, frame = recorder.thread.recorder, user_frame()
    return owner is not None and frame is not None and owner.calls.is_for_user(frame)


def whole(x: Any, op: str) -> Any:
    """Return the integer that an op makes of a value, as a number that varies; None if its value has to be a guard.

    Args:
        x: a traced array of one element, or a Number.
        op: "trunc", "floor", "ceil" or "rint".
    """
    if not _is_for_user():
        return None
    return _of_number(x, int, op) if recorder.is_number(x) else _of_array(x, int, op)


def shown(x: Any, kind: type, frame: types.FrameType) -> Any:
    """Return what kind(x) gives: a number that varies, in the shape of a true one; None if it has to be a guard.

    Args:
        x: an array that varies, or a Number.
        kind: int or float; complex(x) copies what x.__complex__() returns.
        frame: that asks.
    """
    owner = recorder.thread.recorder
    if owner is None or owner.maps or not stack.is_readable():
        return None
    if not _is_kept(owner, kind, x._array if recorder.is_number(x) else x):
        return None
    if monitor.is_library(frame.f_code.co_filename) or not owner.calls.is_for_user(frame):
        return None
    if stack.is_taking_map_of(frame, kind):
        give_back(owner, frame)  # the element before, which is kept by now
    elif not stack.is_call_of(frame, kind, x):
        return None
    if owner.lent is not None:
        return None
    number = _of_number(x, kind) if recorder.is_number(x) else _of_array(x, kind)
    if number is None or not owner.calls.follows(frame):
        return None
    shape = become.shape_of(number, number._number)
    if shape is None:
        return None
    # Noted first, and forgotten last: a signal handler may raise an error in between.
    owner.lent = Lent(frame, number, shape)
    become.take_shape(number, number._number)
    return number


def give_back(owner: Any, frame: types.FrameType) -> None:
    """Have what was lent be a Number again, if this is the frame that it was lent to."""
    if owner.lent is not None and owner.lent.frame is frame:
        _give_back(owner, sys.getrefcount(owner.lent.number) <= _REFERENCES)


def restore(owner: Any) -> None:
    """Have what is lent be a Number again, because it is about to become a true number."""
    if owner.lent is not None:
        _give_back(owner, is_needed=False)


def end(owner: Any) -> None:
    """End a recording: what is still lent has been taken for a true number."""
    if owner.lent is not None:
        _give_back(owner, is_needed=True)


def _give_back(owner: Any, is_needed: bool) -> None:
    number = owner.lent.number
    become.restore(number, owner.lent.shape)
    owner.lent = None
    if is_needed:
        number.needed(f"{number._kind.__name__}()", drops=False)


def _of_array(x: Any, kind: type, op: str = "trunc") -> Any:
    if x._data.size != 1:
        return None
    x = _traced(x)
    if not _is_possible(x, kind):
        return None
    data = x._data
    array = recorder.apply("reshape", x, shape=()) if data.ndim else x
    array = array if array._format is None else recorder.wrap(array._data, None, array._value)
    return _number(array, kind, None, op)


def _is_possible(x: Any, kind: type) -> bool:
    """Return whether elements of an array can be numbers that vary."""
    owner, value, dtype = recorder.thread.recorder, x._value, x._data.dtype
    if owner is None or owner.maps or not owner.has_values or not _is_kept(owner, kind, x):
        return False
    if value is None or not is_open(x) or value.owner is not owner or value.is_constant:
        return False
    return dtype != np.uint64 and (dtype.kind != "c" or kind is complex)


def _is_kept(owner: Any, kind: type, array: Any) -> bool:
    """Return whether a recording needs a number of a kind made of an array, for its later values or its derivative."""
    return owner.accelerating or (kind is not int and is_inexact(array._data.dtype))


def _of_number(x: Any, kind: type, op: str = "trunc") -> Any:
    owner = x._array._value.owner
    if owner is not recorder.thread.recorder or not owner.has_values or not is_open(x._array):
        return None
    if x._kind is np.uint64 or (x.is_complex and kind is not complex):
        return None
    return _number(x._array, kind, x._sources, op)


def _number(array: Any, kind: type, sources: frozenset[int] | None, op: str) -> Any:
    """Return the number of a kind that an array without axes gives, or None if that raises an error."""
    if kind is int and array._data.dtype.kind == "f":
        wide = _cast(array, _FLOAT)
        size = recorder.apply("less", recorder.apply("abs", wide), _LIMIT)
        if not arithmetic.holds(size, "the size of an integer"):
            return None
        array = recorder.apply(op, wide)
    array = _cast(array, np.dtype(kind))
    number = kind(on_host(array._data).item())
    return recorder.number_class()(number, array, sources, is_asked_for=True)


def _cast(array: Any, dtype: np.dtype) -> Any:
    return array if array._data.dtype == dtype else recorder.apply("cast", array, dtype=dtype)
