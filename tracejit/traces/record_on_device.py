# SPDX-License-Identifier: BSD-3-Clause
"""The recording of a call whose arrays lie on the device: the function runs once with copies of them on the host."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tracejit import tree
from tracejit.array import dlarray
from tracejit.call.signature import Call
from tracejit.errors import WriteError
from tracejit.record.state import Exchange
from tracejit.traces.record import Met, Recording, record
from tracejit.util.devices import OnDevice, is_same_memory, may_share_memory


def record_on_device(
    name: str, function: Callable[..., Any], call: Call, write: bool, exchange: Exchange
) -> Recording:
    """Run a function once, as record() does; the results, and arrays that it stores, lie on the device.

    Raises:
        NotTakenError: as record() does.
        WriteError: if it writes into an array whose memory an argument, or what it reads besides, shows in another way
            or has from before the call.
    """
    originals = {number: data for number, data in call.originals.items() if isinstance(data, OnDevice)}
    here = {number: data for number, data in call.originals.items() if number not in originals}
    copies = _Copies(name, [*here.values()])
    leaves = [
        copies.of(leaf, originals.get(number, leaf._data)) if type(leaf) is dlarray else leaf
        for number, leaf in enumerate(call.leaves)
    ]
    by_array = {id(old): new for old, new in zip(call.leaves, leaves, strict=True) if type(old) is dlarray}
    arrays = [by_array.get(id(array), array) for array in call.arrays]  # numbers that vary are the host's
    copied = call._replace(leaves=leaves, arrays=arrays, originals=here)

    def place(result: Any, met: Met) -> Any:
        copies.check([arrays[number]._data for number in met.arguments], met)
        return result_on_device(result)

    recording = record(name, function, copied, None, write, place, exchange)
    copies.write_back()
    return recording


def result_on_device(result: Any) -> Any:
    """Return a result with its arrays on the device, for which there may be too little memory."""
    from tracejit.runtime.cuda.arrays import uploaded
    from tracejit.runtime.cuda.driver import driver

    leaves, treedef = tree.flatten(result)
    for number, leaf in enumerate(leaves):
        if type(leaf) is dlarray and not isinstance(leaf._data, OnDevice):
            data: Any = uploaded(driver(), leaf._data)
            leaves[number] = dlarray._wrap(data, leaf._format, None)
    return tree.unflatten(treedef, leaves)


class _Copies:
    """Copies of arrays on the device, in the memory of the host; one for arrays that are the same memory.

    Args:
        name: of the function.
        of_host: the caller's memory of arguments that were copied to the device.
    """

    def __init__(self, name: str, of_host: Sequence[np.ndarray] = ()) -> None:
        self._name, self._of_host = name, of_host
        self._copies: list[tuple[Any, np.ndarray, bytes]] = []

    def of(self, array: dlarray, data: Any) -> dlarray:
        """Return the copy of an array, given the caller's memory of it."""
        for other, copy, _ in self._copies:
            if is_same_memory(other, data):
                return dlarray._wrap(copy, array._format, None)
        copy = data.host()
        copy.flags.writeable = data.flags.writeable
        self._copies.append((data, copy, copy.tobytes()))
        return dlarray._wrap(copy, array._format, None)

    def check(self, written: Sequence[np.ndarray], met: Met) -> None:
        """Check that what is written is seen by all that show it, given the copies that are written."""
        for data, copy, _ in self._copies:
            if not any(copy is other for other in written):
                continue
            if any(other is not data and may_share_memory(data, other) for other, _, _ in self._copies):
                raise WriteError(
                    f"{self._name}: an array on {data.device} is written, and another argument shows the same memory "
                    "in another way; pass a copy of one of them (x.copy())."
                )
            if any(may_share_memory(data, other) for other in met.read):
                raise self._also_read(data)
        for data in met.written:
            arguments = [*[other for other, _, _ in self._copies], *self._of_host]
            if any(may_share_memory(data, other) for other in arguments):
                raise self._also_read(data)

    def _also_read(self, data: Any) -> WriteError:
        place = f"on {data.device}" if isinstance(data, OnDevice) else "of the host"
        return WriteError(
            f"{self._name}: an array {place} is written, and is both an argument and met besides the "
            "arguments (a global, a closure or an attribute), where the new elements would not be seen; use it in one "
            "of these ways, or return the new array."
        )

    def write_back(self) -> None:
        """Write to the device what the function wrote into copies."""
        for data, copy, before in self._copies:
            if copy.tobytes() != before:
                data.write(copy)
