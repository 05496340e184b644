# SPDX-License-Identifier: BSD-3-Clause
"""Writes into elements that a function drew out of a pool, and uses that outlive it (Note [pools] in record/pools.py).

A recording has copies of them, so that it must not write or keep them.
"""

from collections import deque
from collections.abc import Iterable
from operator import is_not
from typing import Any

import numpy as np

from tracejit.array import dlarray
from tracejit.record import recorder as recorders
from tracejit.record.memory import root_of
from tracejit.record.pools import Taken


def note_kept(recorder: recorders.Recorder, assigned: Iterable[Any]) -> None:
    """Refuse a recording whose function has put a list or a dict that it drew into an object around it."""
    draws = [taken for taken in _draws(recorder) if taken.taking.layout.kind in (list, dict)]
    given = {id(element): taken for taken in draws for element, _ in taken.given}
    waiting = [*assigned] if given else []
    seen: set[int] = set()
    while waiting:
        value = waiting.pop()
        if id(value) in given:
            recorder.refuse(*_kept(given[id(value)]))
        elif isinstance(value, (list, tuple, dict, deque)) and id(value) not in seen:
            seen.add(id(value))
            waiting += value.values() if isinstance(value, dict) else value


def check(recorder: recorders.Recorder, stored: Iterable[Any], writes_arguments: bool) -> None:
    """Refuse a recording that writes or keeps elements that it drew; what it wrote reaches the elements.

    Args:
        recorder: of the recording.
        stored: what the function puts into objects around it.
        writes_arguments: whether it writes an argument, which may be an element too.
    """
    draws = _draws(recorder)
    columns = {id(array) for taken in draws for array in taken.arrays}
    if any(type(leaf) is dlarray and id(root_of(leaf)) in columns for leaf in stored):
        recorder.refuse(*_kept(draws[0]))
    if writes_arguments and columns:
        reason = "it writes an argument and draws elements out of a list, which may share memory"
        recorder.refuse(reason, draws[0].where, _COPY)
    end(recorder)


def end(recorder: recorders.Recorder) -> None:
    """Write into the elements that a function drew what it has written, which runs it uncompiled."""
    for taken in _draws(recorder):
        if _write_back(recorder, taken) or _put_back(taken):
            recorder.refuse("it writes into an element that it drew out of a list", taken.where, _COPY)
        taken.given.clear()  # Numbers in it would count as kept


def share(recorder: recorders.Recorder, memory: Any) -> bool:
    """Return whether an element that a recording drew has elements in some memory."""
    arrays = [leaf for taken in _draws(recorder) for leaf in taken.taking.layout.arrays_in(taken.elements)]
    return isinstance(memory, np.ndarray) and any(np.may_share_memory(leaf, memory) for leaf in arrays)


def _draws(recorder: recorders.Recorder) -> list[Taken]:
    return [draw.taken for draw in recorder.generator_draws if draw.taken is not None]


def _kept(taken: Taken) -> tuple[str, Any, str]:
    return "it keeps an element that it drew out of a list", taken.where, "keep a copy of it (x.copy())"


_COPY = "write into a copy of it (x.copy())"


def _write_back(recorder: recorders.Recorder, taken: Taken) -> bool:
    """Write what a recording has written into rows of columns into the elements; return whether it has."""
    written = False
    for number, (array, value) in enumerate(zip(taken.arrays, taken.values, strict=True)):
        now = recorder.value(array)
        if now is not value:
            written = True
            for element, row in zip(taken.elements, now.data, strict=True):
                leaf = taken.taking.layout.parts(element)[number]
                if not np.array_equal(leaf, row):
                    leaf[...] = row
    return written


def _put_back(taken: Taken) -> bool:
    """Put what a recording has put into lists and dicts that stand for elements into these; return whether it has."""
    layout = taken.taking.layout
    if layout.kind not in (list, dict):
        return False
    changed = False
    for element, (given, parts) in zip(taken.elements, taken.given, strict=True):
        now = layout.parts(given)
        if (
            len(now) != len(parts)
            or any(map(is_not, now, parts))
            or (layout.kind is dict and (*given,) != layout.keys)
        ):
            changed = True
            # What it has not changed stays the element's own.
            own = {id(part): mine for part, mine in zip(parts, layout.parts(element), strict=True)}
            values = [own.get(id(part), _settled(part)) for part in now]
            element.clear()
            element.update(zip(given, values, strict=True)) if layout.kind is dict else element.extend(values)
    return changed


def _settled(part: Any) -> Any:
    """Return a value that a function has put somewhere, as the function itself would have computed it."""
    if recorders.is_number(part):
        return part._number
    return recorders.wrap(part._data.copy(), part._format) if type(part) is dlarray else part
