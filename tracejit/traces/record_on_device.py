# SPDX-License-Identifier: BSD-3-Clause
"""The recording of a call whose arrays lie on the device: the function runs once with copies of them on the host."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tracejit import tree
from tracejit.array import dlarray
from tracejit.call.signature import Call
from tracejit.errors import WriteError
from tracejit.traces.record import Recording, record
from tracejit.util.devices import OnDevice, may_share_memory


def record_on_device(name: str, function: Callable[..., Any], call: Call, write: bool = True) -> Recording:
    """Run a function once, as record() does; the results, and arrays that it stores, lie on the device.

    Raises:
        WriteError: if it writes into an array whose memory another argument shows in another way, or which it also
            reads besides its arguments: there it found the elements of before the call.
    """
    copies = _Copies(name)
    there = {number: data for number, data in call.originals.items() if isinstance(data, OnDevice)}
    leaves = [
        copies.of(leaf, there.get(number, leaf._data)) if type(leaf) is dlarray else leaf
        for number, leaf in enumerate(call.leaves)
    ]
    by_array = {id(old): new for old, new in zip(call.leaves, leaves, strict=True) if type(old) is dlarray}
    arrays = [by_array.get(id(array), array) for array in call.arrays]  # numbers that vary are the host's
    here = {number: data for number, data in call.originals.items() if number not in there}
    copied = call._replace(leaves=leaves, arrays=arrays, originals=here)
    recording = record(name, function, copied, None, write, _there)
    copies.write_back(recording.read)
    return recording


def _there(result: Any) -> Any:
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
    """Copies of arrays on the device, in the memory of the host; one for arrays that are the same memory."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._copies: list[tuple[Any, np.ndarray, bytes]] = []

    def of(self, array: dlarray, data: Any) -> dlarray:
        """Return the copy of an array, given the caller's memory of it."""
        for other, copy, _ in self._copies:
            same = (other.address, other.shape, other.strides, other.dtype)
            if same == (data.address, data.shape, data.strides, data.dtype):
                return dlarray._wrap(copy, array._format, None)
        copy = data.host()
        # As the array is: a number has no base (is_scalar in record/views.py).
        copy = copy if data.ndim or data.base is None else copy[...]
        copy.flags.writeable = data.flags.writeable
        self._copies.append((data, copy, copy.tobytes()))
        return dlarray._wrap(copy, array._format, None)

    def write_back(self, read: Sequence[OnDevice]) -> None:
        """Write to the device what the function wrote into copies, given the arrays that it read besides them."""
        written = [(data, copy) for data, copy, before in self._copies if copy.tobytes() != before]
        for data, _ in written:
            if any(other is not data and may_share_memory(data, other) for other, _, _ in self._copies):
                raise WriteError(
                    f"{self._name}: an array on {data.device} is written, and another argument shows the same memory "
                    "in another way; pass a copy of one of them (x.copy())."
                )
            if any(may_share_memory(data, other) for other in read):
                raise WriteError(
                    f"{self._name}: an array on {data.device} is written as an argument, and also read besides the "
                    "arguments (a global, a closure or an attribute), where the new elements would not be seen; use "
                    "the argument in both places, or return the new array."
                )
        for data, copy in written:
            data.write(copy)
