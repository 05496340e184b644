# SPDX-License-Identifier: BSD-3-Clause
"""Conditions without which an error is raised: now, in replays, and for all observations of a mapped function."""

from collections.abc import Callable
from typing import Any

from tracejit.record import recorder
from tracejit.record.guards import Decides
from tracejit.record.mapping import Demand, differing


def demand(condition: Any, what: str, fail: Callable[[], None]) -> None:
    """Call what raises an error if a scalar condition does not hold, now or in a replay.

    In a mapped function the condition is checked when it is known for all observations.
    """
    current = recorder.thread.recorder
    mapping = differing(current, condition) if current is not None and current.maps else None
    if mapping is not None:
        mapping.demands.append(Demand(condition, what, fail))
    elif not recorder.need_value(condition, what, Decides.TRUTH):
        fail()
