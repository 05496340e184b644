# SPDX-License-Identifier: BSD-3-Clause
"""Writes into elements that a function drew out of a pool, and uses that outlive it (Note [pools] in record/pools.py).

A recording has copies of them, so that it must not write or keep them.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np

from tracejit.array import dlarray
from tracejit.record import recorder as recorders
from tracejit.record.memory import root_of
from tracejit.record.pools import Taken


def check(recorder: recorders.Recorder, stored: Iterable[Any], writes_arguments: bool) -> None:
    """Refuse a recording that writes or keeps elements that it drew; what it wrote reaches the elements.

    Args:
        recorder: of the recording.
        stored: what the function puts into objects around it.
        writes_arguments: whether it writes an argument, which may be an element too.
    """
    draws = [draw.taken for draw in recorder.generator_draws if draw.taken is not None]
    columns = {id(array) for taken in draws for array in taken.arrays}
    where = draws[0].where if draws else None
    if any(type(leaf) is dlarray and id(root_of(leaf)) in columns for leaf in stored):
        recorder.refuse(
            "it keeps an element that it drew out of a list", where, "keep a copy of it (x.copy())"
        )
    if writes_arguments and columns:
        recorder.refuse(
            "it writes an argument and draws elements out of a list, which may share memory", where, _COPY
        )
    for taken in draws:
        if _write_back(recorder, taken):
            recorder.refuse("it writes into an element that it drew out of a list", taken.where, _COPY)


_COPY = "write into a copy of it (x.copy())"


def _write_back(recorder: recorders.Recorder, taken: Taken) -> bool:
    """Write what a recording has written into rows of columns into the elements; return whether it has."""
    written = False
    for number, (array, value) in enumerate(zip(taken.arrays, taken.values, strict=True)):
        now = recorder.value(array)
        if now is not value:
            written = True
            for element, row in zip(taken.elements, now.data, strict=True):
                leaf = element if taken.taking.layout.kind is None else _part(element, number)
                if not np.array_equal(leaf, row):
                    leaf[...] = row
    return written


def _part(element: Any, number: int) -> Any:
    """Return the array at a place of an element."""
    return [*element.values()][number] if type(element) is dict else element[number]
