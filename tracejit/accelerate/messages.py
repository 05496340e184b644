# SPDX-License-Identifier: BSD-3-Clause
"""The texts of the warnings and errors of accelerated functions."""

from collections.abc import Sequence
from typing import Any

from tracejit.call.dynamic import Needed
from tracejit.call.explain import who_needs
from tracejit.errors import (
    ChangedTraceWarning,
    LostChangeWarning,
    NotAcceleratedWarning,
    OutputsDifferWarning,
    RetraceWarning,
)
from tracejit.ir import Where
from tracejit.record.recorder import Refusal, at_location, user_location
from tracejit.record.side_effects import SideEffect
from tracejit.traces.confirm import OF_ONE_DTYPE, Difference
from tracejit.util.named_tuples import NamedTuple

POLICY = 'set_policy("default") allows recordings.'


class PendingWarning(NamedTuple):
    """A warning that is to be given once for each cause; `where` is the user's line, None for that of the call."""

    text: str
    category: type[Warning]
    where: Where
    cause: Any


def not_accelerated(name: str, refusal: Refusal) -> PendingWarning:
    """Return the warning that a function runs uncompiled for some arguments."""
    return PendingWarning(
        f"{name} runs uncompiled for these arguments: {refusal.reason}{at_location(refusal.where)}. "
        f"{refusal.remedy[0].upper()}{refusal.remedy[1:]}.",
        NotAcceleratedWarning, refusal.where, refusal.where or refusal.reason,
    )  # fmt: skip


def trace_replaced(name: str, difference: Difference) -> PendingWarning:
    """Return the warning that an audit has found a trace out of date, or a replay that it does not apply."""
    seen = "" if difference.remedy == OF_ONE_DTYPE else "; replays before this call may have used old values"
    return PendingWarning(
        f"{name}: a trace that was replayed is out of date: {difference.what}"
        f"{at_location(difference.where)}. It has been recorded again{seen}. Likely cause: {difference.cause}. "
        f"{difference.remedy or 'Pass it as an argument'}.",
        ChangedTraceWarning, difference.where, difference.where or difference.what,
    )  # fmt: skip


def retraces_on_each_value(name: str, argument: str, needed: Needed | None) -> PendingWarning:
    """Return the warning that nearly every value of a number argument is recorded; nothing needs a complex one."""
    if needed is None:
        return PendingWarning(
            f"{name} is recorded again for each value of {argument}, because a complex number is a constant of the "
            f"trace. Pass it as a dlarray (tj.dlarray({argument})). If a trace for each value is intended, raise "
            "max_variants.",
            RetraceWarning, user_location(), ("complex", argument),
        )  # fmt: skip
    return PendingWarning(
        f"{name} is recorded again for each value of {argument}, because {who_needs('it', *needed)}. "
        "Pass it as a dlarray, or use operators and functions of math, NumPy or tracejit, which take it as it is. If a "
        "trace for each value is intended, raise max_variants.",
        RetraceWarning, needed.where, (needed.where, argument),
    )  # fmt: skip


def retraces_on_each_object(name: str, argument: str, kind: type, count: int) -> PendingWarning:
    """Return the warning that an argument is a new object in nearly every call."""
    return PendingWarning(
        f"{name} is recorded again for each {kind.__name__} that is passed as {argument}: there were {count} of them, "
        "and each object has traces of its own. Pass the same object again and set its attributes, or pass its arrays "
        "and numbers in a dict, a named tuple or a dataclass.",
        RetraceWarning, user_location(), ("objects", argument),
    )  # fmt: skip


def records_a_long_loop(name: str, length: int, where: Where, times: int) -> PendingWarning:
    """Return the warning that a loop with many steps is recorded step by step."""
    return PendingWarning(
        f"{name} records {length} operations, {times} of them{at_location(where)}: each step of a loop is recorded by "
        "itself, which takes its time in each of the first calls. dlscan records one step for all, and its programs "
        "are short.",
        RetraceWarning, where, ("loop", where),
    )  # fmt: skip


def compares_much(name: str, array: str, mib: int, where: Where) -> PendingWarning:
    """Return the warning that each replay compares the elements of a large array."""
    last = array.rsplit(maxsplit=1)[-1]
    return PendingWarning(
        f"{name} compares the {mib} MiB of {array} at each call{at_location(where)}, because plain NumPy reads "
        f"them while it is recorded. Make it a dlarray ({last} = tj.dlarray({last})), or pass it as an argument.",
        NotAcceleratedWarning, where, (where, array),
    )  # fmt: skip


def changes_by_another_name(name: str, argument: str) -> PendingWarning:
    """Return the warning that a function changes a container, which is an argument too, by another name."""
    return PendingWarning(
        f"{name} changes what it was given as {argument} by another name. Inside the function {argument} is a copy, "
        "which does not show the change. Use one of the two names.",
        LostChangeWarning, user_location(), argument,
    )  # fmt: skip


def happens_once(name: str, effect: SideEffect) -> PendingWarning:
    """Return the warning that an effect of a function happens while it is recorded only."""
    return PendingWarning(
        f"{name} {effect.what}{at_location(effect.where)}, which happens while it is recorded only: a replay does not "
        f"repeat it. Return the value, and {effect.instead} outside.",
        LostChangeWarning, effect.where, effect.what,
    )  # fmt: skip


def turns_over(
    name: str, evicted: int, hit_rate: float, calls: int, miss: str, cache_size: int | None
) -> PendingWarning:
    """Return the warning that keys are evicted before they are used again.

    Args:
        name: of the function.
        evicted: number of keys that were evicted.
        hit_rate: percentage of calls that were replayed.
        calls: number of calls.
        miss: the last miss in words.
        cache_size: the number of keys kept, or None if `miss` speaks of it.
    """
    larger = "" if cache_size is None else f" If so many are intended, raise cache_size ({cache_size})."
    return PendingWarning(
        f"{name} is recorded in most calls: traces for {evicted} different signatures were evicted, and "
        f"{hit_rate:.0f} % of {calls} calls were replayed. {miss}{larger}",
        RetraceWarning, user_location(), "turnover",
    )  # fmt: skip


def retrace(miss: str, key: Any) -> PendingWarning:
    """Return the warning of the policy "warn-on-retrace"."""
    return PendingWarning(f"{miss} {POLICY}", RetraceWarning, user_location(), key)


def outputs_differ(name: str, difference: str) -> PendingWarning:
    """Return the warning of check_mode that a replay and the underlying function differ."""
    return PendingWarning(
        f"Accelerated outputs differ from underlying function outputs. {name}: {difference}. Values that "
        "do not come from array arguments are constants of a trace (NumPy's random numbers, the time, a "
        "counter, a file); pass them as arguments.",
        OutputsDifferWarning, user_location(), None,
    )  # fmt: skip


def unknown_attribute(name: str, options: Sequence[str], read_only: Sequence[str]) -> str:
    """Return the text of the error for an attribute that does not exist; a misspelt name is corrected.

    >>> unknown_attribute("CheckMode", ["check_mode"], ["hit_rate"])
    "an accelerated function has no attribute 'CheckMode'; the option is check_mode."
    """
    meant = _nearest(name, (*options, *read_only))
    head = f"an accelerated function has no attribute {name!r}"
    if meant is None:
        return (
            f"{head}; the options are {', '.join(sorted(options))}. To attach a value of your own, set it on the "
            "function before it is accelerated."
        )
    if meant in options:
        return f"{head}; the option is {meant}."
    return f"{head}; {meant} is the name, and it can only be read."


def unknown_option(name: str, options: Sequence[str]) -> str:
    """Return the text of the error for an option of dlaccelerate that does not exist; a misspelt name is corrected.

    >>> unknown_option("CheckMode", ["check_mode", "enabled"])
    "dlaccelerate: unknown option 'CheckMode'; the option is check_mode."
    """
    meant = _nearest(name, options)
    advice = f"options are {', '.join(options)}" if meant is None else f"the option is {meant}"
    if name.startswith("static_arg"):  # those of JAX
        advice = "leave it out: every argument that is not an array is static"
    return f"dlaccelerate: unknown option {name!r}; {advice}."


def _nearest(name: str, names: Sequence[str]) -> str | None:
    """Return the name that was probably meant, or None."""
    import difflib  # 1 ms, for errors only

    plain = {attribute.replace("_", ""): attribute for attribute in names}
    nearest = difflib.get_close_matches(name.replace("_", "").lower(), plain, 1, 0.75)
    return plain[nearest[0]] if nearest else None


def read_only(name: str) -> str:
    """Return the text of the error for an attribute that cannot be set."""
    if name == "function":
        return "function: it can only be read; dlaccelerate(function) accelerates a different one."
    return f"{name}: it can only be read; calls change it, and clear_cache() resets it."
