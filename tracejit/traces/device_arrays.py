# SPDX-License-Identifier: BSD-3-Clause
"""The inputs of a replay on the device, and its writes to them."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from tracejit.traces.effects import Effects
from tracejit.util.devices import OnDevice, on_host


def inputs_of(data: Sequence[Any], arguments: int) -> list[Any]:
    """Return data on the device: captured arrays, and those of the host, are copied to it where they do not fit.

    Args:
        data: of the arguments and then of the captured arrays.
        arguments: how many of them are arguments, whose layout the program knows.
    """
    from tracejit.runtime.cuda.arrays import DeviceArray, uploaded
    from tracejit.runtime.cuda.driver import driver

    on = driver()
    inputs: list[Any] = []
    for number, part in enumerate(data):
        if not isinstance(part, DeviceArray):
            inputs.append(uploaded(on, part))
        elif number >= arguments and not part.flags.c_contiguous:
            inputs.append(part.copy())
        else:
            inputs.append(part)
    return inputs


def fit(effects: Effects, memory: Sequence[Any], inputs: Sequence[Any]) -> bool:
    """Return whether inputs share memory as they did in the recording, and the targets can be written."""
    writeable = all(memory[number].flags.writeable for number in effects.targets)
    return writeable and effects.aliases == aliases_of(effects.targets, memory)


def aliases_of(targets: Sequence[int], arrays: Sequence[Any]) -> frozenset[tuple[int, int]] | None:
    """Return the pairs of a target and another input that are the same memory; None if two overlap in another way."""
    pairs = set()
    for target in targets:
        for number, other in enumerate(arrays):
            if number != target and share(arrays[target], other):
                if not _is_same(arrays[target], other):
                    return None
                pairs.add((min(target, number), max(target, number)))
    return frozenset(pairs)


def share(x: Any, y: Any) -> bool:
    """Return whether the memory of two arrays may overlap."""
    if isinstance(x, OnDevice) != isinstance(y, OnDevice):
        return False
    if not isinstance(x, OnDevice):
        return bool(np.may_share_memory(x, y))
    (low, high), (first, last) = _span(x), _span(y)
    return low < last and first < high


def _span(x: Any) -> tuple[int, int]:
    span: tuple[int, int] = x.span
    return span


def _is_same(x: Any, y: Any) -> bool:
    if (x.shape, x.strides, x.dtype) != (y.shape, y.strides, y.dtype):
        return False
    return _span(x) == _span(y) if isinstance(x, OnDevice) else x.ctypes.data == y.ctypes.data


def write(memory: Any, content: Any) -> None:
    """Write new elements into the caller's memory, on the device or not."""
    if memory is content:
        return
    if isinstance(memory, OnDevice):
        memory.write(content)  # type: ignore[attr-defined]
    else:
        np.copyto(memory, on_host(content))
