# SPDX-License-Identifier: BSD-3-Clause
"""Refusals: the reasons why a key is not accelerated that follow from its recordings, each with a remedy."""

from collections import Counter
from collections.abc import Sequence
from itertools import chain
from typing import Any

from tracejit.capture.guards import CONTENTS_OF
from tracejit.ir import Where
from tracejit.record.guards import Decides, ValueGuard
from tracejit.record.recorder import Refusal
from tracejit.record.selections import NUMBER_OF_PLACES, SIZE_OF_SELECTION
from tracejit.record.state import OwnChange
from tracejit.traces.confirm import Difference

_AS_DLARRAY = (
    "make an array a dlarray where it is made (x = tj.dlarray(x)), so that its operations are recorded, or pass it "
    "as an argument"
)
_RECORDED_RANDOM = "use the random functions of tracejit with like=, which are recorded"


def unguarded(read: tuple[str, Where]) -> tuple[str, Where, str]:
    """Return the refusal of a function that reads something that no guard can check, as Recorder.refuse takes it."""
    what, where = read
    return (
        f"it reads {what}, which cannot be checked at each call",
        where,
        _AS_DLARRAY,
    )


def copied_at_each_call(where: Where) -> tuple[str, Where, str]:
    """Return the refusal of a function that writes a captured array, because replays read a copy of that array."""
    return (
        "it writes an array, read besides its arguments, whose elements are unaligned in memory",
        where,
        "a replay reads a copy of such an array. Pass it as an argument, or keep the fields of a structured array in "
        "arrays of their own",
    )


def not_stored(place: tuple[str, Where]) -> tuple[str, Where, str]:
    """Return the refusal of a function that assigns what no replay can make again, as Recorder.refuse takes it."""
    name, where = place
    return (
        f"it assigns an object that holds arrays of the call to {name}",
        where if where and where[0] else None,
        "a replay could not make that object. Assign the arrays, or a dict, a list, a named tuple or a dataclass of "
        "them",
    )


def no_field(name: str) -> tuple[str, Where, str]:
    """Return the refusal of a call with a dataclass that has an attribute which is no field, likewise."""
    return (
        f"an argument is a dataclass with an attribute that is no field, {name}",
        None,
        "such attributes do not select a trace. Make it a field",
    )


def view_not_stored(place: tuple[str, Where]) -> tuple[str, Where, str]:
    """Return the refusal of a function that assigns a view of an array that no replay finds, likewise."""
    name, where = place
    return (
        f"it assigns to {name} a view of an array that a replay could not find",
        where if where and where[0] else None,
        "assign a copy (v.copy()), or read the array by a name or an attribute that no other array shares memory with",
    )


def own_change(change: OwnChange) -> Refusal:
    """Return the refusal of a function that changes what it reads."""
    if change.is_made:
        return Refusal(
            f"it assigns an object that it makes to {change.name}",
            change.where,
            "a replay could not make that object. Assign it outside, or assign arrays, numbers, texts, or a dict, a "
            "list, a named tuple or a dataclass of them",
        )
    if change.is_ndarray:
        array = change.name.rpartition(" ")[2]
        remedy = f"a replay would not read it again. {_OWN_ARRAYS[change.stays].format(array)}"
    else:
        remedy = "a replay would not change it. Pass it as an argument and return its new value, or change it outside"
    return Refusal(f"it changes {change.name}, which it also reads", change.where, remedy)


_OWN_ARRAYS = {
    "": "Make it a dlarray before the first call ({0} = tj.dlarray({0})), so that its operations are recorded, or pass "
    "it as an argument and return its new value",
    "fields": "Keep its fields in arrays of their own ({0}_x = {0}['x'].copy()), whose operations are recorded",
    "view": "It is a view: take it inside the function of the array whose memory it shows, or keep a copy of its own",
}
"""The remedies for an ndarray that a function changes, by what keeps it from being a dlarray."""


def moving(guard: Any) -> Refusal:
    """Return the refusal of a function that reads a different value at each call; `guard` compares it."""
    is_of_array = str(guard.name).startswith(CONTENTS_OF)
    remedy = "pass it as an argument; a number that is made a dlarray costs one trace for all its values"
    return Refusal(
        f"{guard.name}, which it reads, changes from call to call",
        guard.where,
        _AS_DLARRAY if is_of_array else remedy,
    )


_OUTSIDE = f"Compute it outside and pass it as an argument, or {_RECORDED_RANDOM}"


def differing(difference: Difference) -> Refusal:
    """Return the refusal of a function that recorded two different programs for the same arguments."""
    return Refusal(
        f"two recordings differ: {difference.what}",
        difference.where,
        f"likely cause: {difference.cause}. {difference.remedy or _OUTSIDE}",
    )


def drawing(draw: tuple[str, Where], have_agreed: bool = True) -> Refusal:
    """Return the refusal of a function that draws random numbers.

    Args:
        draw: from what, and where.
        have_agreed: whether its recordings do not show that.
    """
    what, where = draw
    agreed = ", although two recordings agreed" if have_agreed else ""
    return Refusal(
        f"it draws from {what}, which a replay would not do{agreed}",
        where,
        f"draw outside and pass the numbers as an argument, or {_RECORDED_RANDOM}",
    )


def no_room(error: Exception) -> Refusal:
    """Return the refusal of a function that cannot be compiled in the address space that is left."""
    what, _, remedy = str(error).rstrip(".").rpartition(". ")
    return Refusal(what, None, remedy)


def undecided(guard: ValueGuard) -> Refusal:
    """Return the refusal of a function in which a decision lies within rounding error."""
    return Refusal(
        f"{guard.what} keeps giving different results in the compiled and the uncompiled function, which differ in the "
        "last digits",
        guard.where,
        "a decision within rounding error cannot be replayed; make it outside the function",
    )


def too_many(
    recordings: Sequence[Sequence[ValueGuard]], divergences: Sequence[ValueGuard], most: int
) -> Refusal:
    """Return the refusal of a function with too many variants.

    Args:
        recordings: the guards of each variant.
        divergences: the guards at which the latest diverges from the others.
        most: the number of variants to keep.
    """
    if not divergences:
        return Refusal(
            f"more than {most} traces were recorded, because the values that the function reads keep changing",
            None,
            "pass them as arguments",
        )
    where, count = _varies_most(recordings, divergences)
    guard = next(guard for guard in (*divergences, *chain(*recordings)) if guard.where == where)
    is_in_each = count == len(recordings)
    if guard.decides is Decides.TRUTH:
        outcomes = (
            f"other outcomes in each of {count}"
            if is_in_each
            else f"{count} rows of outcomes in {len(recordings)}"
        )
        return Refusal(
            f"{guard.what} on traced arrays had {outcomes} recordings",
            where,
            "use where(condition, a, b) instead of if, dlwhile instead of while, & and | instead of and and or, and "
            "np.minimum, np.maximum and np.sort instead of min, max and sorted; or raise max_variants",
        )
    numbers = (
        f"a different number in each of {count}"
        if is_in_each
        else f"{count} different numbers in {len(recordings)}"
    )
    what = f"{guard.what} on a traced array gave {numbers} recordings"
    if guard.what in (SIZE_OF_SELECTION, NUMBER_OF_PLACES):
        return Refusal(
            what,
            where,
            "sums, means, extrema and functions of the elements of x[mask] need no size, mask.sum() counts them in "
            "place of len and .size, and np.nanmedian(np.where(mask, x, np.nan)) and its like take the rest; or raise "
            "max_variants",
        )
    return Refusal(
        what,
        where,
        "the number that it takes is a constant of the trace. Keep it an array (the functions of tracejit, "
        "NumPy and math, stop_gradient instead of extractdata), or return it and read it outside; or raise "
        "max_variants",
    )


def _varies_most(
    recordings: Sequence[Sequence[ValueGuard]], divergences: Sequence[ValueGuard]
) -> tuple[Where, int]:
    """Return the place with the most different outcomes, and their number.

    A branch has two of them; a number behind it may have one in each recording.
    """
    outcomes: dict[Where, set[tuple[bytes, ...]]] = {}
    for guards in recordings:
        met: dict[Where, list[bytes]] = {}
        for guard in guards:
            met.setdefault(guard.where, []).append(guard.outcome.tobytes())
        for where, given in met.items():
            outcomes.setdefault(where, set()).add(tuple(given))
    places = Counter(guard.where for guard in divergences)
    where = max(outcomes, key=lambda where: (len(outcomes[where]), places[where]))
    return where, len(outcomes[where])


def unknown_container(kind: type) -> Refusal:
    """Return the refusal of a result in which arrays are in an object that replays do not make."""
    return Refusal(
        f"the result contains a {kind.__name__}, which a replay does not make",
        None,
        "return lists, tuples, dicts, named tuples and dataclasses of arrays, and make it outside, or make its class "
        "one of containers: tj.tree.register(...)",
    )


def no_op(error: Exception) -> Refusal:
    """Return the reason why a function is no operation of an evaluation: its gradient has no derivative."""
    return Refusal(str(error), None, "call it outside of dlfeval, or differentiate once")
