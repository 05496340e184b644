# SPDX-License-Identifier: BSD-3-Clause
"""Reports for explain(): the last call in words, and the traces of each key, in words and as data."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from tracejit.call.explain import describe, who_needs_what_varies, why_missed
from tracejit.call.signature import Key
from tracejit.ir import Where
from tracejit.record.recorder import Refusal, at_location
from tracejit.traces.variants import Variants
from tracejit.util.named_tuples import NamedTuple
from tracejit.util.text import count

_MOST_GUARDS = 8  # of a trace that are told in words


class Miss:
    """A call that was not replayed.

    key         of the call
    cached      the keys in the cache
    evicted     whether its own had been evicted
    outcome     the kind of an Outcome, "raised", "forbidden", "needed", "moved" or "alone"
    why         how it differs from the traces of its key, if there were any
    """

    __slots__ = ("cached", "evicted", "key", "outcome", "why")

    def __init__(self, key: Key, cached: list[Key], evicted: bool, outcome: str = "raised") -> None:
        self.key = key
        self.cached = cached
        self.evicted = evicted
        self.outcome = outcome
        self.why: str | None = None


class GuardReport(NamedTuple):
    """One guard: its subject, the user's file and line (or None), and a sentence."""

    what: str
    where: Where
    text: str


class VariantReport(NamedTuple):
    """One trace of a key.

    guards          decisions by values of arrays, and values that were read besides the arguments
    confirmed       number of recordings that agreed with it
    replayable      whether these are enough
    operations      number of operations
    """

    guards: tuple[GuardReport, ...]
    confirmed: int
    replayable: bool
    operations: int


class KeyReport(NamedTuple):
    """The traces of one key.

    arguments       in words
    calls           number of calls
    variants        its traces, oldest first
    confirmations, audits, replaced     recordings that confirmed a trace, audited one, replaced one
    refusal         why it is not accelerated, where, and what to do; or None
    """

    arguments: str
    calls: int
    variants: tuple[VariantReport, ...]
    confirmations: int
    audits: int
    replaced: int
    refusal: Refusal | None

    @property
    def state(self) -> str:
        """The state of the key in words."""
        if self.refusal is not None:
            place = at_location(self.refusal.where)
            return f"runs uncompiled: {self.refusal.reason}{place}; {self.refusal.remedy}"
        if any(variant.replayable for variant in self.variants):
            return "replayed"
        return "to be confirmed by another call" if self.variants else "no trace was kept"


class Explanation(str):
    """The text of explain(); `keys` is the same as data, oldest key first, with all guards."""

    keys: tuple[KeyReport, ...]

    def __new__(cls, last: str, keys: Sequence[KeyReport]) -> "Explanation":
        lines = [last, *[line for key in keys for line in _lines(key)]]
        explanation = super().__new__(cls, "\n".join(lines))
        explanation.keys = tuple(keys)
        return explanation

    def __reduce__(self) -> Any:
        return (str, (str(self),))


def report_of(
    function: Callable[..., Any], variants: Variants, confirm: int, cached: Iterable[Key] = ()
) -> KeyReport:
    """Return the report of one key of a function that has the keys `cached`."""
    reports = tuple([
        VariantReport(
            tuple([
                GuardReport(getattr(guard, "what", str(guard)), guard.where, str(guard))
                for guard in (*trace.guards, *trace.state.guards())
            ]),
            trace.agreed, trace.agreed >= confirm, trace.length,
        )
        for trace in variants.traces
    ])  # fmt: skip
    return KeyReport(
        describe(function, variants.key, cached), variants.calls, reports, variants.confirmed, variants.audits,
        variants.replaced, variants.refusal,
    )  # fmt: skip


def _lines(key: KeyReport) -> list[str]:
    """Return the lines of a key: nothing if its arguments say it all."""
    if key.refusal is None and not key.replaced and not any(variant.guards for variant in key.variants):
        return []
    counts = f"{count(key.calls, 'call')}, {key.confirmations} confirmed, {count(key.audits, 'audit')}"
    if key.replaced:
        counts += f", {key.replaced} replaced"
    if key.refusal is not None:
        place = at_location(key.refusal.where)
        reason = f"{key.refusal.reason}{place}; {key.refusal.remedy}"
        return [f"  {key.arguments}: runs uncompiled ({counts}): {reason}."]
    lines = [f"  {key.arguments}: {count(len(key.variants), 'trace')} ({counts})"]
    for number, variant in enumerate(key.variants, 1):
        state = "" if variant.replayable else ", to be confirmed"
        lines.append(f"    trace {number}, {count(variant.operations, 'operation')}{state}")
        shown = variant.guards if len(variant.guards) <= _MOST_GUARDS else variant.guards[: _MOST_GUARDS - 1]
        lines += [f"      {guard.text}" for guard in shown]
        if len(shown) < len(variant.guards):
            lines.append(f"      and {len(variant.guards) - len(shown)} more")
    return lines


def explain_hit(name: str, function: Callable[..., Any], key: Key, cached: Iterable[Key] = ()) -> str:
    """Return the explanation of a call that was replayed; the function has the keys `cached`."""
    return f"{name}: hit. The call was replayed from the trace for {describe(function, key, cached)}."


def explain_miss(
    name: str, function: Callable[..., Any], miss: Miss, variants: Variants | None, cache_size: int,
    needed: Mapping[int, tuple[str, Where]],
) -> str:  # fmt: skip
    """Return the explanation of a call that was not replayed.

    Args:
        name: of the function.
        function: what was called.
        miss: the call.
        variants: of its key, or None.
        cache_size: how many keys are kept.
        needed: the code that needs arguments as Python numbers, by the number of the leaf.
    """
    described = describe(function, miss.key, miss.cached)
    if miss.outcome == "refused" and variants is not None and variants.refusal is not None:
        refusal = variants.refusal
        place = at_location(refusal.where)
        return f"{name}: not accelerated for {described}: {refusal.reason}{place}. The call ran uncompiled."
    sentence = {
        "moved": f"A call for {described} was recorded, and met arrays on a GPU besides its arguments; later calls run "
        "there, and are recorded there.",
        "raised": f"The function raised an error for {described}, and no trace was kept.",
        "alone": f"A call for {described} was recorded while another thread drew random numbers from the same "
        "generator, so no trace was kept.",
        "needed": f"The call was recorded for {described}, but "
        f"{who_needs_what_varies(function, miss.key, needed)}, so its value selects the trace again.",
        "unsettled": f"The call was recorded for {described}, but the function changed something that it reads, so "
        "no trace was kept.",
        "confirmed": f"The call was recorded again, and confirmed the trace for {described}.",
        "audited": f"The call was recorded again by an audit, and agreed with the trace for {described}.",
        "replaced": f"The trace for {described} was replaced: {miss.why}.",
    }.get(miss.outcome)  # fmt: skip
    if sentence is not None:
        return f"{name}: miss. {sentence}"
    verb = "would be" if miss.outcome == "forbidden" else "was"
    head = f"{name}: miss. A new trace {verb} recorded for {described}"
    if miss.key in miss.cached:
        return f"{head}, because {miss.why or 'no trace for these arguments both applies and is confirmed'}."
    if miss.evicted:
        return (
            f"{head}, because its trace had been evicted: more than cache_size ({cache_size}) "
            "signatures are in use. Increase cache_size, or pass arrays of fewer sizes."
        )
    return f"{head}, {why_missed(function, miss.key, miss.cached, needed)}"
