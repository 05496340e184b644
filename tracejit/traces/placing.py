# SPDX-License-Identifier: BSD-3-Clause
"""The place where a call runs, the CPU or the device: it follows from the call's target and arrays."""

from collections.abc import Callable
from typing import Any

from tracejit import tree
from tracejit.array import dlarray
from tracejit.call.signature import ArrayPart, Call
from tracejit.errors import DeviceError
from tracejit.util.devices import OnDevice

PathOf = Callable[[int, tree.TreeDef], str]


def placed(call: Call, target: str, function: str, path_of: PathOf) -> Call:
    """Return a call whose arrays lie where it runs.

    Args:
        call: the call.
        target: "auto" (where its arrays are), "cpu" or "cuda" (arrays of the host are copied there).
        function: its name.
        path_of: names a leaf for error messages.

    Raises:
        DeviceError: if arrays lie on different devices, or not on the target, or there is no device.
    """
    arrays = [i for i, part in enumerate(call.key.parts) if type(part) is ArrayPart]
    there = [i for i in arrays if isinstance(call.leaves[i]._data, OnDevice)]
    if target == "cpu":
        if there:
            raise DeviceError(
                f'{function}: {path_of(there[0], call.treedef)} lies on {call.key.device}, and target="cpu"; pass '
                'gather(x), or set target="auto".'
            )
        return call
    if target == "auto":
        if not there:
            return call
        # As in NumPy, an array without axes is a number, which goes along.
        here = [i for i in arrays if i not in there and call.leaves[i].ndim]
        if here:
            raise DeviceError(
                f"{function}: {path_of(there[0], call.treedef)} lies on {call.key.device} and "
                f"{path_of(here[0], call.treedef)} in the memory of the host; pass gpu(x) of the one, or gather(x) of "
                "the other."
            )
    return _moved(call, [i for i in arrays if i not in there])


def is_moved(call: Call) -> bool:
    """Return whether a call runs on a device without arrays there of its own."""
    parts = enumerate(call.key.parts)
    there = [i for i, part in parts if type(part) is ArrayPart and part.device]
    return call.key.device is not None and all(i in call.originals for i in there)


def _moved(call: Call, numbers: list[int]) -> Call:
    """Return a call whose arrays of the given numbers are copied to the device."""
    from tracejit.runtime.cuda.arrays import uploaded_as_it_is
    from tracejit.runtime.cuda.driver import driver

    on = driver()
    if not call.arrays:
        return call._replace(key=call.key._replace(runs_on=f"cuda:{on.ordinal}"))
    leaves, parts, originals = list(call.leaves), list(call.key.parts), dict(call.originals)
    for i in numbers:
        leaf, part = leaves[i], parts[i]
        assert isinstance(part, ArrayPart)
        originals.setdefault(i, leaf._data)  # what the function writes is written there
        data: Any = uploaded_as_it_is(on, leaf._data)
        leaves[i] = dlarray._wrap(data, leaf._format, leaf._value)
        # Those of an array without axes tell it from a number.
        parts[i] = part._replace(strides=None if part.shape else part.strides, device=data.device)
    arrays: list[Any] = [
        leaf for leaf, part in zip(leaves, parts, strict=True) if type(part) is ArrayPart
    ]  # numbers that vary are not known yet
    return call._replace(
        key=call.key._replace(parts=tuple(parts)), leaves=leaves, arrays=arrays, originals=originals
    )
