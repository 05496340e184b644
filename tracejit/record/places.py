# SPDX-License-Identifier: BSD-3-Clause
"""Places in the user's code, in words, and the refusals that name them."""

from tracejit.ir import Where
from tracejit.util.frames import line_of, user_frame
from tracejit.util.named_tuples import NamedTuple


def user_location() -> Where:
    """Return the file and line of the innermost frame outside this package and NumPy."""
    frame = user_frame()
    return None if frame is None else (frame.f_code.co_filename, line_of(frame))


def describe_location(where: Where) -> str:
    """Return ``file:line`` of a location, or a statement that it is unknown."""
    return f"{where[0]}:{where[1]}" if where else "an unknown place"


def at_location(where: Where) -> str:
    """Return the place of an operation as the end of a clause, "" if it is unknown."""
    return f" at {describe_location(where)}" if where else ""


class Refusal(NamedTuple):
    """The reason why a recording cannot be replayed, the place, and the remedy."""

    reason: str
    where: Where
    remedy: str


def under_settings(wanted: dict[str, str], where: Where) -> tuple[str, Where, str]:
    """Return the refusal of a recording in which errors of floating point raise exceptions."""
    error, setting = next(iter(wanted.items()))
    return (
        f'it computes under np.errstate({error}="{setting}")',
        where,
        "a replay raises no FloatingPointError. Check its results outside (np.isfinite), or raise there",
    )
