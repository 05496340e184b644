# SPDX-License-Identifier: BSD-3-Clause
"""Whether the arguments of a call fit a trace in which numbers may vary."""

from typing import Any

from tracejit.call.signature import Key, NumberPart, ValuePart

_LEAST, _MOST = -(1 << 63), (1 << 63) - 1  # of int64


def fits(wanted: Any, given: Any) -> bool:
    """Return whether a part of a call's key equals that of a trace, or is a number where the trace lets one vary."""
    if wanted == given:
        return True
    if type(wanted) is not NumberPart or type(given) is not ValuePart or given.kind is not wanted.kind:
        return False
    return wanted.kind is float or _LEAST <= given.value <= _MOST


def covers(wanted: Key, given: Key) -> bool:
    """Return whether a trace with the key `wanted` serves a call with the key `given`."""
    return (
        wanted.structure == given.structure
        and wanted.orders == given.orders
        and all(map(fits, wanted.parts, given.parts))
    )
