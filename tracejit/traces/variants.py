# SPDX-License-Identifier: BSD-3-Clause
"""The variants of one key: its traces, and the refusal if it cannot be accelerated.

A variant is a trace and the guards under which it is right. It is replayed once the required number of later recordings
have agreed with it. After that, audits record again from time to time, and compare.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from tracejit.call.dynamic import VALUES
from tracejit.call.signature import Key
from tracejit.ir import Where
from tracejit.record.guards import Decides
from tracejit.record.memory import MIXED_WRITES
from tracejit.record.number import KEPT
from tracejit.record.recorder import Refusal, at_location
from tracejit.record.state import CapturedPlace, OwnChange
from tracejit.traces import refusals
from tracejit.traces.confirm import Difference, Divergence, compare
from tracejit.traces.trace import Trace
from tracejit.util.named_tuples import NamedTuple

# Most recordings of a function that changes what it reads; the first one may only have set something up.
_MOST_OWN_CHANGES = 2
# Operations of all traces of a key that branches lead to, up to which more of them are recorded.
_MOST_OPERATIONS = 20_000
# Most recordings in a row that each find other places that vary, as those of a list do that grows.
_MOST_ROUNDS = 32
FIRST_AUDIT = 8  # the call; then every FIRST_AUDIT times as many
NEVER = 1 << 62


class Most(NamedTuple):
    """The largest number of traces of one key.

    values    of those that differ by numbers that they take
    branches  of those that differ by branches, and by what is read besides the arguments
    """

    values: int
    branches: int


class Variants:
    """The variants of one key.

    Attributes:
        traces: oldest first.
        refusal: why the key is not accelerated, or None.
        retry_at: the call that records again although the key is refused.
        calls: number of calls with this key.
        used: the call of the function in which the key was used last.
        audit_at: the next call that records again, even if a variant applies.
        pause_at: the call after which the next one must not take a call path (an audit or a check is due).
        confirmed, audits, replaced: recordings that confirmed a trace, that audited one, that replaced one.
    """

    def __init__(self, key: Key) -> None:
        self.key = key
        self.traces: list[Trace] = []
        self.refusal: Refusal | None = None
        self.retry_at = NEVER
        self.calls = 0
        self.used = 0
        self.audit_at = FIRST_AUDIT
        self.pause_at = self.audit_at - 1
        self.confirmed = self.audits = self.replaced = 0
        self._recorded_at = 0  # the call that recorded last
        # Confirmations of variants whose guards failed in the call itself.
        self._undecided = 0
        # Recordings in a row because something that the function reads had changed.
        self._changes = 0
        self._varying: set[CapturedPlace] = set()  # the places that were found to vary
        self._rounds = 0  # recordings in a row that found some

    def replayable(self, confirm: int) -> list[Trace]:
        """Return the variants that are confirmed, latest first."""
        return [trace for trace in reversed(self.traces) if trace.agreed >= confirm]

    def schedule(self, audit: bool, check_every: int) -> None:
        """Set the call to pause at; `check_every` is 0 if replays are not checked."""
        while self.audit_at <= self.calls:
            self.audit_at *= FIRST_AUDIT
        due = self.audit_at if audit else NEVER
        if check_every:
            due = min(due, (self.calls // check_every + 1) * check_every)
        self.pause_at = due - 1

    def refuse(self, refusal: Refusal) -> None:
        """Mark the key as not accelerable."""
        self.refusal = refusal
        self.traces = []

    def add(
        self, recording: Trace, failed: Sequence[Trace], fits: Callable[[Trace], bool],
        confirm: int, most: Most, audit: bool,
    ) -> "Outcome":  # fmt: skip
        """Take in a new recording and return what it led to.

        Args:
            recording: the new trace.
            failed: variants that were tried in this call and did not apply.
            fits: whether a variant applies to this call, but for guards of values.
            confirm: recordings that have to agree with a trace before it is replayed.
            most: numbers of variants to keep.
            audit: whether this is an audit.
        """
        if recording.refusal is not None:
            varying = self._new_varying(recording.state.changed_places)
            is_mixed = recording.refusal.reason == MIXED_WRITES[0]
            if varying is None and is_mixed and recording.state.has_exchanged:
                return Outcome("unsettled", None, keeps_arrays=True)
            # What keeps a number may do so in some calls only.
            retry_after = self.calls if recording.refusal.reason.startswith(KEPT) else NEVER
            return varying or self._give_up(recording.refusal, retry_after)
        self.audits += audit
        if self.calls != self._recorded_at + 1:  # there were replays since
            self._changes = self._rounds = 0
        self._recorded_at = self.calls
        if recording.state.changed is not None:
            varying = self._new_varying(recording.state.changed_places)
            return varying or self._own_change(recording.state.changed, recording.state.drew)
        if recording.state.drew is not None and not confirm:  # no other recording would tell
            return self._give_up(refusals.drawing(recording.state.drew, have_agreed=False))
        loosened = [trace for trace in self.traces if trace.state.loosen(partial(_agree, trace, recording))]
        broken = [trace.state.failed() for trace in self.traces]
        varying = self._new_varying(_moving(broken))
        if varying is not None:
            return varying
        self._changes += bool(broken) and None not in broken
        if self._changes > most.values:
            return self._give_up(refusals.moving(broken[-1]), self.calls)
        divergences: list[Divergence] = []
        for trace in self.traces:
            # `fits` does not look at the memory of a device; how arrays shared it there is known of both recordings.
            on_device = trace.key.device is not None
            if (
                not fits(trace)
                or trace.state.has_missed
                or (on_device and trace.effects.aliases != recording.effects.aliases)
            ):
                continue  # it says nothing about the recording
            departure = compare(trace, recording)
            if departure is None:
                was_tried = trace in failed and trace not in loosened
                return self._agreement(trace, recording, was_tried, confirm, most.values, audit)
            if isinstance(departure, Difference):
                return self._difference(trace, recording, departure, confirm)
            divergences.append(departure)
        return self._new_variant(recording, divergences, broken, most)

    def try_again(self, recording: Trace) -> "Outcome":
        """Return the outcome of a recording that only looked at what functions get the ndarrays that vary."""
        return self._new_varying(recording.state.changed_places) or Outcome("unsettled", None)

    def _new_varying(self, places: Sequence[CapturedPlace]) -> "Outcome | None":
        """Return the outcome of a recording that showed that numbers or ndarrays vary; None if none or that is known.

        The recording, and all traces of the function, have the values as constants: forget() drops these.
        """
        new = {*places} - self._varying
        if not new or self._rounds >= _MOST_ROUNDS:
            return None
        self._rounds += 1
        self._varying |= new
        return Outcome("unsettled", None, varying=tuple(new))

    def forget(self) -> None:
        """Drop all traces, because what they have as constants are inputs from now on, or the reverse."""
        self.traces = []
        self._changes = 0

    def _own_change(self, change: OwnChange, draw: tuple[str, Where] | None) -> "Outcome":
        """Handle a recording that changed what it read: right for its own call only.

        If it drew random numbers too, what it keeps of them is the usual change, as the mask of a dropout.
        """
        self._changes += 1
        if self._changes > _MOST_OWN_CHANGES:
            refusal = (
                refusals.own_change(change) if draw is None else refusals.drawing(draw, have_agreed=False)
            )
            return self._give_up(refusal, self.calls)
        return Outcome("unsettled", None)

    def _agreement(
        self, trace: Trace, recording: Trace, was_tried: bool, confirm: int, most: int, audit: bool
    ) -> "Outcome":
        """Handle a recording that agrees with a variant; `was_tried` if its guards failed in this very call."""
        if trace.agreed < confirm:
            if recording.state.drew is not None:
                return self._give_up(refusals.drawing(recording.state.drew))
            self.confirmed += 1
        elif was_tried:
            self._undecided += 1
            if self._undecided > most:
                return self._give_up(refusals.undecided(recording.guards[0]))
        effect = trace.side_effect
        if effect is not None and effect.may_end and recording.side_effect is None:
            # It held already what only the first recording put into a container, and compares that.
            self.traces[self.traces.index(trace)] = recording
            recording.agreed = trace.agreed
            trace = recording
        trace.agreed += 1
        return Outcome("audited" if audit else "confirmed", trace)

    def _difference(self, trace: Trace, recording: Trace, difference: Difference, confirm: int) -> "Outcome":
        """Handle a recording that differs from a variant without a reason that a guard could tell."""
        if trace.agreed < confirm:
            return self._give_up(refusals.differing(difference))
        self.traces.remove(trace)
        self.traces.append(recording)
        self.replaced += 1
        place = at_location(difference.where)
        return Outcome("replaced", recording, f"{difference.what}{place}", difference=difference)

    def _new_variant(
        self, recording: Trace, divergences: Sequence[Divergence], broken: Sequence[Any], most: Most
    ) -> "Outcome":
        """Keep a recording that no variant applies to; drop variants whose state has changed if there are too many."""
        self.refusal = None
        self.traces.append(recording)
        number = self._number(most)
        for trace in list(self.traces):
            if len(self.traces) > number and trace.state.failed() is not None:
                self.traces.remove(trace)
        if len(self.traces) > number:
            guards = [trace.guards for trace in self.traces]
            return self._give_up(refusals.too_many(guards, [found.guard for found in divergences], number))
        why = None
        if divergences:
            why = f"unlike in the latest trace, {divergences[-1].guard}"
        elif broken and broken[-1] is not None:
            why = broken[-1].no_longer()
        return Outcome("recorded", recording, why)

    def _number(self, most: Most) -> int:
        """Return how many traces are kept: branches come back, numbers may be others in each call."""
        values: dict[Where, set[bytes]] = {}
        for trace in self.traces:
            for guard in trace.guards:
                if guard.decides is not Decides.TRUTH:
                    values.setdefault(guard.where, set()).add(guard.outcome.tobytes())
        vary = any(len(outcomes) > most.values for outcomes in values.values())
        length = sum(trace.length for trace in self.traces)
        return most.values if vary or length > _MOST_OPERATIONS else most.branches

    def _give_up(self, refusal: Refusal, retry_after: int = NEVER) -> "Outcome":
        self.refuse(refusal)
        self.retry_at = min(NEVER, self.calls + retry_after)
        self._changes = 0
        return Outcome("refused", None, refusal=refusal)


def _moving(broken: Sequence[Any]) -> list[CapturedPlace]:
    """Return the places of what traces have two values of, neither of which is the present one.

    Args:
        broken: a guard of each trace, which does not hold, or None.
    """
    values: dict[CapturedPlace, set[Any]] = {}
    for trace, guard in enumerate(broken):
        for place in () if guard is None else guard.places:
            # Of an ndarray, whose elements it does not tell, each trace has other ones.
            values.setdefault(place, set()).add(trace if guard.is_of_elements else guard.value)
    return [place for place, known in values.items() if len(known) >= VALUES - 1]


def _agree(trace: Trace, recording: Trace) -> bool:
    return compare(trace, recording) is None


class Outcome(NamedTuple):
    """The outcome of a recording.

    kind        "recorded", "confirmed", "audited", "replaced", "refused" or "unsettled"
    trace       the trace that stands for the recording now, or None
    why         how it differs from the traces that there were, or None
    refusal     why the key is not accelerated from now on, or None
    difference  what differs from the trace that was replaced, or None
    varying     the places of captured numbers and ndarrays that are inputs from now on
    keeps_arrays  whether ndarrays stay where they are from now on, because a recording that exchanged some was refused
    """

    kind: str
    trace: Trace | None
    why: str | None = None
    refusal: Refusal | None = None
    difference: Difference | None = None
    varying: Sequence[CapturedPlace] = ()
    keeps_arrays: bool = False
