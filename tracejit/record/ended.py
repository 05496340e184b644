# SPDX-License-Identifier: BSD-3-Clause
"""Arrays that outlive their recording.

Note [arrays that are kept]
The user's code can keep an array anywhere: in an attribute, in a list, in a closure. When the recording has ended, the
array is an untraced one with the elements that it had. Views remain views of the same arrays, and an input is the
caller's own array again. The recording knows all of these, and they become untraced when it ends (Memories.clear). For
any other array it knows only the Value. Such an array becomes untraced, with elements of its own, when it is used next.

A recording inside another evaluation is appended to the tape of that evaluation. An array that was kept has no place
there: it would have no derivative. So it is an error to use it before the outer evaluation has ended too.
"""

from collections.abc import Sequence
from typing import Any

from tracejit.errors import TraceError
from tracejit.record.places import describe_location, user_location


def is_open(array: Any) -> bool:
    """Return whether an array is on a trace that goes on; an array that was kept becomes untraced.

    Raises:
        TraceError: if it was kept of a recording inside an evaluation that goes on.
    """
    value = array._value
    if value is None:
        return False
    owner = value.owner
    if not owner.closed:
        return True
    around = owner.around and owner.around()
    if around is not None and not around.closed:
        origin = "passed as an argument"
        if value.node is not None:
            origin = f"made at {describe_location(value.node.where)}"
        raise TraceError(
            f"an array that was {origin} while {owner.name} was evaluated is used after that evaluation ended, inside "
            f"{around.name}, where it has no derivative. Return it from the function."
        )
    array._data, array._value = array._data.copy(), None
    return False


def check_open(array: Any) -> None:
    """Have an array become untraced if it is kept of a recording that has ended.

    Raises:
        TraceError: as is_open().
    """
    if array._value is not None:
        is_open(array)


class Ended:
    """A stand-in for the recorder of a Value whose recording is known to have ended."""

    closed = True
    accelerating = False
    around = None
    name = "a function"


def refuse_other_thread(name: str, arrays: Sequence[Any]) -> None:
    """Refuse the recordings in other threads whose arrays an operation uses here, where nothing is recorded."""
    for array in arrays:
        if array._value is not None and is_open(array):
            array._value.owner.refuse(
                f"{name} uses an array of the trace in another thread",
                user_location(),
                "what a thread computes is not recorded; compute it in the thread of the function",
            )
