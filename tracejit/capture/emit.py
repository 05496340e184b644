# SPDX-License-Identifier: BSD-3-Clause
"""The source of the functions that find captured arrays again and compare what was read: GuardTests as text.

Note [guards]
When a recording ends, the snapshot is walked from its roots along the slots that were read (tracejit.capture.writer),
and a function is written that walks the same way at each call. It holds neither the arrays nor the objects on the way,
only their types, the atoms and the code of functions: another array of the same size, or another object of the same
class, is taken as it comes. For a method that computes x @ self.w * self.scale it is

    def fetch():
        try:
            v0 = g0.__self__
            if type(v0) is not g1: return None
            v1 = v0.w
            if type(v1) is not dlarray or v1._format is not None or (v1._value is not None and is_open(v1)): return None
            v1d = v1._data
            v2 = v0.scale
            if v2 is not g2 and differs(v2, g2): return None
            ...
        except (AttributeError, LookupError, TypeError, ValueError, NameError):
            return None
        return (v1d,)

An array that can be reached in two ways is one input, and the second way is compared with the first. There are three
dialects of this function. They differ in how they test dlarrays, and contents that may no longer matter.
"""

from collections.abc import Iterable, Sequence

from tracejit.capture.guards import GuardTest
from tracejit.util.named_tuples import NamedTuple

_ERRORS = "(AttributeError, LookupError, TypeError, ValueError, NameError)"


class Dialect(NamedTuple):
    """Conditions that differ from one generated function to the next.

    on_tape     a dlarray is on a tape that it must not be on
    changed     the contents of a loose array have changed in a way that matters
    """

    on_tape: str
    changed: str


REPLAY = Dialect("({0}._value is not None and is_open({0}))", "{guard}.is_compared and {condition}")
WITHIN = Dialect("({0}._value is not None and check_open({0}))", REPLAY.changed)  # an evaluation that goes on
FAILING = Dialect(
    WITHIN.on_tape,
    "{guard}.is_asked and {guard}.has_changed({data})",
)


def fetching(lines: Iterable[GuardTest], arrays: Sequence[str], dialect: Dialect = REPLAY) -> str:
    """Return the source of fetch(), which returns the arrays, or None where a guard does not hold."""
    return _function([*tested(lines, "return None", dialect), f"return {_tuple(arrays)}"])


def locating(
    lines: Iterable[GuardTest], arrays: Sequence[str], objects: Sequence[str], dialect: Dialect = REPLAY
) -> str:
    """Return the source of fetch() that returns objects too, beside the arrays."""
    body = [*tested(lines, "return None", dialect), f"return {_tuple(arrays)}, {_tuple(objects)}"]
    return _function(body)


def failing(lines: Iterable[GuardTest]) -> str:
    """Return the source of fetch() that returns the number of the first guard that does not hold, or -1."""
    body = ["at = -1", "try:", "    pass"]
    for line in lines:
        body += [f"    at = {line.guard}"]
        body += [f"    {text}" for text in _statements(line, "return at", FAILING)]
    return _function([*body, f"except {_ERRORS}:", "    return at", "return -1"])


def tested(lines: Iterable[GuardTest], miss: str, dialect: Dialect = REPLAY) -> list[str]:
    """Return the statements of guards, with `miss` as the statement where one does not hold."""
    statements = [text for line in lines for text in _statements(line, miss, dialect)]
    return ["try:", *[f"    {text}" for text in statements or ["pass"]], f"except {_ERRORS}:", f"    {miss}"]


def _statements(line: GuardTest, miss: str, dialect: Dialect) -> list[str]:
    condition = line.condition
    if line.dlarray:
        condition += f" or {dialect.on_tape.format(line.dlarray)}"
    if line.content:
        condition = dialect.changed.format(guard=line.content, condition=condition, data=line.data)
    return [text for text in (line.before, f"if {condition}: {miss}", line.after) if text]


def _tuple(parts: Sequence[str]) -> str:
    return f"({''.join(f'{part}, ' for part in parts)})"


def _function(body: list[str]) -> str:
    return "def fetch():\n" + "".join(f"    {line}\n" for line in body)
