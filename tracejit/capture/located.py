# SPDX-License-Identifier: BSD-3-Clause
"""The guards of objects that a replay stores to."""

from collections.abc import Mapping, Sequence
from typing import Any

from tracejit.capture.guards import GuardList, Site
from tracejit.capture.objects import ForeignArray, ObservedArray
from tracejit.capture.observed import Observed
from tracejit.capture.snapshot import Snapshot
from tracejit.record.monitor import is_user_class

_ARRAYS = (ObservedArray, ForeignArray)


def compare_located(
    located: Sequence[Any], guards: GuardList, snapshot: Snapshot, reached: Mapping[int, tuple[str, str]]
) -> None:
    """Add the guards of objects that a replay stores to.

    Args:
        located: the objects, and others that it stores.
        guards: to add to.
        snapshot: what was observed.
        reached: by the id of an object: its variable and its name in words.
    """
    _apart(located, guards, snapshot, reached)
    _setters(located, guards, reached)


def _apart(
    located: Sequence[Any], guards: GuardList, snapshot: Snapshot, reached: Mapping[int, tuple[str, str]]
) -> None:
    """Compare that objects which a replay stores to are still apart from others of their class that are read."""
    kinds = {type(value): value for value in located if id(value) in reached}
    alike: dict[type, list[Observed]] = {kind: [] for kind in kinds}
    for ident in reached:
        observed = snapshot.objects.get(ident)
        if observed is not None and type(observed.value) in alike and not isinstance(observed, _ARRAYS):
            alike[type(observed.value)].append(observed)
    for kind, group in alike.items():
        if any(not observed.is_fixed and id(observed.value) not in snapshot.roots for observed in group):
            owner = kinds[kind]
            others = [observed.value for observed in group if observed.value is not owner]
            name = reached[id(owner)][1]
            site = Site("", "", name, snapshot.objects[id(owner)].where)
            variables = [reached[id(value)][0] for value in (owner, *others)]
            if len(others) == 1:
                of_other = reached[id(others[0])][1]
                shown = f"another object than {of_other}"
                guards.add(site, shown, " is ".join(variables))
            elif others:
                distinct = ", ".join(f"id({variable})" for variable in variables)
                guards.add(site, "an object of its own", f"len({{{distinct}}}) != {len(variables)}")


def _setters(located: Sequence[Any], guards: GuardList, reached: Mapping[int, tuple[str, str]]) -> None:
    """Compare that attributes which a replay stores to are set by the method that the recording has run."""
    for value in located:
        if id(value) in reached and is_user_class(type(value)):
            variable, name = reached[id(value)]
            setter = guards.constant(type(value).__setattr__)
            site = Site("", "", name, ("", 0))
            guards.add(
                site,
                "an object whose attributes are set by the same method",
                f"type({variable}).__setattr__ is not {setter}",
            )
