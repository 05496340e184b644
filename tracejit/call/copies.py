# SPDX-License-Identifier: BSD-3-Clause
"""Copies of the arguments of a call, which share memory with each other as the arguments do."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from tracejit.array import dlarray
from tracejit.call.signature import Call
from tracejit.util.devices import OnDevice

_ALIGNMENT = 64  # bytes: a copy is aligned as its array is


def given(call: Call) -> list[Any]:
    """Return the leaves of a call as the caller gave them: arrays of the caller's memory, not copies in their place."""
    leaves = list(call.leaves)
    for number, original in call.originals.items():
        leaf = leaves[number]
        if original.dtype.isnative:
            leaves[number] = dlarray._wrap(original, leaf._format, leaf._value)
        else:
            leaves[number] = original  # an ndarray: no dlarray has such elements
    return leaves


def copied(leaves: Sequence[Any]) -> list[Any]:
    """Return leaves with untraced copies of the arrays, with their strides, that share memory as the arrays do."""
    copies = list(leaves)
    intervals = []
    on_devices: dict[Any, OnDevice] = {}
    for number, leaf in enumerate(leaves):
        data = leaf._data if type(leaf) is dlarray else leaf
        if isinstance(data, OnDevice):
            if data.location not in on_devices:
                on_devices[data.location] = data.copy()
            copies[number] = _like(leaf, on_devices[data.location])
        if not isinstance(data, np.ndarray) or data.dtype.hasobject:
            continue
        if not data.size or (type(leaf) is dlarray and not data.ndim and data.base is None):
            copies[number] = _like(leaf, data)  # nothing to write, or a number, which is never written
        else:
            intervals.append((*np.lib.array_utils.byte_bounds(data), number))
    intervals.sort()
    while intervals:
        low, high, _ = intervals[0]
        together = []
        while intervals and intervals[0][0] < high:
            _, end, number = intervals.pop(0)
            high = max(high, end)
            together.append(number)
        memory = np.empty(high - low + _ALIGNMENT, np.uint8)
        start = (low - memory.ctypes.data) % _ALIGNMENT - low
        for number in together:
            leaf = leaves[number]
            data = leaf._data if type(leaf) is dlarray else leaf
            at = start + data.__array_interface__["data"][0]
            copy = np.ndarray(data.shape, data.dtype, memory, at, data.strides)
            np.copyto(copy, data)
            copy.flags.writeable = data.flags.writeable
            copies[number] = _like(leaf, copy)
    return copies


def _like(leaf: Any, data: Any) -> Any:
    return dlarray._wrap(data, leaf._format, None) if type(leaf) is dlarray else data
