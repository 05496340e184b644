# SPDX-License-Identifier: BSD-3-Clause
"""What is known of one key: the variants of its trace, and whether it can be accelerated.

A variant is a trace and the guards under which it is right. It is replayed after as many later recordings agreed
with it as are asked for. Later still, audits record again and compare.
"""

from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import Any

from tracejit.call.signature import Key
from tracejit.errors import ChangedTraceWarning, NotAcceleratedWarning
from tracejit.ir import Where
from tracejit.record.guards import Decides
from tracejit.record.recorder import Refusal, describe_location
from tracejit.traces.confirm import Difference, Parting, Verdict, compare
from tracejit.traces.trace import Trace

_MOST_RESTLESS = (
    2  # recordings of a function that changes what it reads: the first may only have set something up
)
FIRST_AUDIT = 8  # the call; then every FIRST_AUDIT times as many
NEVER = 1 << 62


class Entry:
    """The variants of one key.

    Attributes:
        variants: oldest first.
        refusal: why the key is not accelerated, or None.
        calls: of this key; the call in which it was used last.
        audit_at: the next call that records again, whatever fits.
        pause_at: the call after which the next one must not take the short way (an audit or a check is due).
        confirmed, audits, replaced: recordings that confirmed a trace, that audited one, that replaced one.
    """

    def __init__(self, key: Key) -> None:
        self.key = key
        self.variants: list[Trace] = []
        self.refusal: Refusal | None = None
        self.calls = 0
        self.used = 0
        self.audit_at = FIRST_AUDIT
        self.pause_at = self.audit_at - 1
        self.confirmed = self.audits = self.replaced = 0
        self._repeated = 0
        self._learnt = 0  # the call that recorded last
        self._restless = 0  # recordings in a row because what the function reads had changed
        self.retry_at = NEVER  # of a key that is refused: the call that records again

    def replayable(self, confirm: int) -> list[Trace]:
        """Return the variants that are confirmed, latest first."""
        return [known for known in reversed(self.variants) if known.agreed >= confirm]

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
        self.variants = []

    def add(
        self, name: str, made: Trace, failed: Sequence[Trace], confirm: int, most: int, audit: bool
    ) -> "Finding":
        """Take a new recording in; return what came of it.

        Args:
            name: of the function, for messages.
            made: the recording.
            failed: variants that were tried in this call and did not apply.
            confirm: recordings that have to agree with a trace before it is replayed.
            most: variants kept.
            audit: whether this is an audit.
        """
        if made.refusal is not None:
            return self._give_up(name, made.refusal)
        self.audits += audit
        if self.calls != self._learnt + 1:  # there were replays meanwhile
            self._restless = 0
        self._learnt = self.calls
        if made.state.changed is not None:
            self._restless += 1
            if self._restless > _MOST_RESTLESS:
                return self._give_up(name, _own_change(made.state.changed), self.calls)
            return Finding("unsettled", None)
        loosened = [known for known in self.variants if known.state.loosen(partial(_is_same, known, made))]
        changed = [known.state.failed() for known in self.variants]
        self._restless += bool(changed) and None not in changed
        if self._restless > most:
            return self._give_up(name, _moving(changed[-1]), self.calls)
        partings: list[Parting] = []
        for known in list(self.variants):
            if not known.state.applies():
                continue  # what it read has changed: it does not apply, and says nothing about this one
            found = compare(known, made)
            if isinstance(found, Parting):
                partings.append(found)
            elif isinstance(found, Difference):
                if known.agreed < confirm:
                    return self._give_up(name, _changing(found))
                self.variants.remove(known)
                self.variants.append(made)
                self.replaced += 1
                return _changed(name, found, made)
            else:
                if known.agreed < confirm and made.state.drew is not None:
                    return self._give_up(name, _drawing(made.state.drew))
                if known.agreed < confirm:
                    self.confirmed += 1
                elif known in failed and known not in loosened:
                    self._repeated += 1
                    if self._repeated > most:
                        return self._give_up(name, _undecided(made))
                known.agreed += 1
                return Finding("audited" if audit else "confirmed", known)
        why = _why(partings, changed)
        self.refusal = None
        self.variants.append(made)
        for known in list(self.variants):
            if len(self.variants) > most and known.state.failed() is not None:
                self.variants.remove(known)  # what it read is something else now; the oldest of these go
        if len(self.variants) > most:
            return self._give_up(name, _too_many(partings, most))
        return Finding("recorded", made, why=why)

    def _give_up(self, name: str, refusal: Refusal, retry_after: int = NEVER) -> "Finding":
        self.refuse(refusal)
        self.retry_at = min(NEVER, self.calls + retry_after)
        self._restless = 0
        text = (
            f"{name} runs uncompiled for these arguments: {refusal.reason} at {describe_location(refusal.where)}. "
            f"{refusal.remedy[0].upper()}{refusal.remedy[1:]}."
        )
        return Finding(
            "refused",
            None,
            Notice(text, NotAcceleratedWarning, refusal.where, refusal.where or refusal.reason),
        )


def _is_same(known: Trace, made: Trace) -> bool:
    return compare(known, made) is Verdict.SAME


class Notice:
    """A warning to give, and what tells whether it was given before."""

    def __init__(self, text: str, category: type[Warning], where: Where, cause: Any) -> None:
        self.text = text
        self.category = category
        self.where = where
        self.cause = cause


class Finding:
    """What came of a recording.

    Attributes:
        outcome: "recorded", "confirmed", "audited", "replaced" or "refused".
        trace: the trace that stands for it now, or None.
        notice: what is to be said, or None.
        why: what differed from the traces that there were, or None.
    """

    def __init__(
        self, outcome: str, trace: Trace | None, notice: Notice | None = None, why: str | None = None
    ) -> None:
        self.why = why
        self.outcome = outcome
        self.trace = trace
        self.notice = notice


def _own_change(found: tuple[str, Where]) -> Refusal:
    what, where = found
    return Refusal(
        f"it changes {what}, which it also reads",
        where,
        "a replay would not change it. Pass it as an argument and return what it becomes, or change it outside",
    )


def _moving(guard: Any) -> Refusal:
    return Refusal(
        f"{guard.name}, which it reads, is another at each call",
        guard.where,
        "pass it as an argument; a number that is made a dlarray costs one trace for all its values",
    )


def _changing(found: Difference) -> Refusal:
    return Refusal(
        f"two recordings differ: {found.what}",
        found.where,
        f"likely cause: {found.cause}. Compute it outside and pass it as an argument, or use what is recorded "
        "(the random functions of tracejit with like=)",
    )


def _drawing(found: tuple[str, Where]) -> Refusal:
    what, where = found
    return Refusal(
        f"it draws from {what}, which a replay would not do, though it came to the same in two recordings",
        where,
        "draw outside and pass what is drawn as an argument, or use what is recorded (the random functions of "
        "tracejit with like=)",
    )


def _changed(name: str, found: Difference, made: Trace) -> Finding:
    text = (
        f"{name}: a trace that was replayed is no longer what the function does: {found.what} at "
        f"{describe_location(found.where)}. It has been recorded anew; replays before this call may have used what "
        f"was. Likely cause: {found.cause}. Pass it as an argument."
    )
    notice = Notice(text, ChangedTraceWarning, found.where, found.where or found.what)
    return Finding("replaced", made, notice, f"{found.what} at {describe_location(found.where)}")


def _why(partings: Sequence[Parting], changed: Sequence[Any]) -> str | None:
    """Return why there is another variant, given the guards of the others on what is read, None if it holds."""
    if partings:
        return f"unlike in the trace recorded last, {partings[-1].guard}"
    return changed[-1].no_longer() if changed and changed[-1] is not None else None


def _undecided(made: Trace) -> Refusal:
    guard = made.guards[0]
    return Refusal(
        f"what {guard.what} gives differs between the compiled and the uncompiled function in the last digits, "
        "again and again",
        guard.where,
        "a decision that lies on the edge of rounding cannot be replayed; leave it outside",
    )


def _too_many(partings: Sequence[Parting], most: int) -> Refusal:
    """Return why there are too many variants: the guard at which most of them part."""
    if not partings:
        return Refusal(
            f"more than {most} traces were recorded, because what the function reads keeps changing",
            None,
            "pass what changes as an argument",
        )
    places = Counter(found.guard.where for found in partings)
    where = places.most_common(1)[0][0]
    guard = next(found.guard for found in partings if found.guard.where == where)
    if guard.decides is Decides.TRUTH:
        return Refusal(
            f"{guard.what} on a traced array went another way in each of {most + 1} recordings",
            where,
            "use where(condition, a, b) instead of if, & and | instead of and and or, or a fixed number of steps "
            "instead of while; or raise max_variants",
        )
    return Refusal(
        f"{guard.what} on a traced array gave another number in each of {most + 1} recordings",
        where,
        "a number taken out of an array is a constant of the trace. Keep it an array (the functions of tracejit "
        "and NumPy instead of math, stop_gradient instead of extractdata), or return it and read it outside; or raise "
        "max_variants",
    )
