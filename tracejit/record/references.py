# SPDX-License-Identifier: BSD-3-Clause
"""The count of the references to an ndarray that an evaluation has made."""

import sys
from collections.abc import Iterator
from functools import cache, lru_cache
from types import CodeType, FrameType
from typing import Any

import numpy as np

from tracejit.record import stack
from tracejit.record.current import thread
from tracejit.util.frames import is_internal

_SNAPSHOTS_END = (3, 13)
# Before, a frame keeps a dict of its local variables, once it was asked for them.
_HAS_SNAPSHOTS = sys.version_info < _SNAPSHOTS_END
UNKNOWN = -1000  # number of references, less than any that is computed from it
OF_VARIABLE = 2 if _HAS_SNAPSHOTS else 1
"""References to what a local variable of a frame holds that was asked."""

# Names in code that asks an array for what dlarrays lack, or finds by its id what belongs to it.
_ASKING = frozenset({
    "__array_interface__", "__array_struct__", "byteswap", "ctypes", "dumps", "frombuffer", "id", "locals",
    "memoryview", "setflags", "tofile", "weakref",
})  # fmt: skip


@lru_cache(maxsize=4096)
def asks(code: CodeType) -> bool:
    """Return whether code asks arrays for what only ndarrays have, by a name or a text."""
    texts = [constant for constant in code.co_consts if type(constant) is str]
    return not _ASKING.isdisjoint((*code.co_names, *texts))


def references_to(array: np.ndarray) -> int:
    """Return how many references to an ndarray there are, with those of all frames of the evaluation.

    UNKNOWN if one of them asks arrays for what only ndarrays have.
    """
    all_frames = [*frames(thread.recorder.frame)]
    if any(asks(frame.f_code) for frame in all_frames if not is_internal(frame.f_code.co_filename)):
        return UNKNOWN
    for frame in all_frames:
        snapshot(frame)
    return sys.getrefcount(array) - 2  # that of the variable here, and an argument


def frames(outermost: int) -> Iterator[FrameType]:
    """Return the frames in the evaluation whose block has a frame of an id, the innermost first."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and id(frame) != outermost:
        yield frame
        frame = frame.f_back


def snapshot(frame: FrameType) -> dict[str, Any]:
    """Return the dict of its local variables that a frame keeps, as they are now; an empty one if it keeps none."""
    return frame.f_locals if _HAS_SNAPSHOTS else {}


class _Meter:
    """An operand that counts the references to an array while ``array += operand`` is under way."""

    references = 0

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        self.references = sys.getrefcount(inputs[0]) - 1
        return inputs[0]


@cache
def _of_code_in_c() -> int:
    """Return how many references NumPy takes to an array for ``array += operand``, with that of the stack.

    The arguments of the method of the operand that it calls are not counted: two tuples.
    """
    array: Any = np.zeros(1)
    meter: Any = _Meter()
    array += meter
    return int(meter.references) - 2 - 1  # that of the variable


def besides_operation(array: np.ndarray, taken: int | None) -> int:
    """Return how many references to an array there are besides those of the operation that the user's code is at.

    Args:
        array: an operand of ``array += operand`` or an argument of a call, which has called us.
        taken: how many references the call takes for each time that the array is an argument, besides those of the
            frame of the function: none by a function of Python; two by the method of an object (on the stack, and in a
            tuple), three where there are keywords, too. None of the statement.
    """
    count = references_to(array) - OF_VARIABLE
    holders: dict[int, Any] = {}
    for frame in frames(thread.recorder.frame):
        if not is_internal(frame.f_code.co_filename):
            count -= _of_code_in_c() if taken is None else taken * stack.arguments_of(frame).count(id(array))
            break
        for held in frame.f_locals.values():
            count -= OF_VARIABLE * (held is array)
            for part in (held, *held.values()) if type(held) is dict else (held,):
                if type(part) in (tuple, dict):
                    holders[id(part)] = part
    for holder in holders.values():
        count -= sum(part is array for part in (holder.values() if type(holder) is dict else holder))
    return count
