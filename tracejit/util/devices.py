# SPDX-License-Identifier: BSD-3-Clause
"""Arrays whose elements lie on a device, as all but the device's runtime know them.

The data of a dlarray are an ndarray, or an OnDevice, which runtime/cuda makes. The code that computes on the device
stands above this file. It is registered here, so that code below can call it, and need not ask while there is no such
array.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np


class OnDevice:
    """The data of an array on a device: sizes and layout as in an ndarray, elements by host()."""

    __slots__ = ()

    @property
    def device(self) -> str:
        """The name of the device, such as "cuda:0"."""
        raise NotImplementedError

    @property
    def span(self) -> tuple[int, int]:
        """The first address of the elements, and that behind them."""
        raise NotImplementedError

    @property
    def location(self) -> Any:
        """A value that is equal for arrays that show the same elements in the same way."""
        raise NotImplementedError

    def host(self) -> np.ndarray:
        """Return a copy of the elements in the memory of the host, after all work on them."""
        raise NotImplementedError

    def like(self) -> np.ndarray:
        """Return an ndarray of the host that lies in memory as the elements do; its own are not set."""
        raise NotImplementedError

    def copy(self) -> "OnDevice":
        """Return an array on the device with elements of its own."""
        raise NotImplementedError

    def write(self, data: Any) -> None:
        """Replace the elements by those of an array of the same size and dtype, on the device or not."""
        raise NotImplementedError


class _Registered:
    """The functions of the code above the runtime of a device.

    in_use      whether there are arrays on a device
    compute     returns what an op gives: takes its record, the data of its operands, and its parameters
    adopt       returns the elements of another library's array: takes it, a function's name and an argument's
    upload      returns a copy of an ndarray on the device
    """

    in_use: bool = False
    compute: Callable[[Any, Sequence[Any], dict[str, Any]], Any]
    adopt: Callable[[Any, str, str], Any]
    upload: Callable[[np.ndarray], Any]


registered = _Registered()


def any_on_device(data: Sequence[Any]) -> bool:
    """Return whether some data lie on a device."""
    return any(isinstance(part, OnDevice) for part in data)


def computed(op: Any, data: Sequence[Any], params: dict[str, Any]) -> Any:
    """Return what an op gives, on the device if some of its operands lie there."""
    if registered.in_use and any_on_device(data):
        return registered.compute(op, data, params)
    return op.numpy(*data, **params)


def beside(data: Sequence[Any], results: Sequence[np.ndarray]) -> list[Any]:
    """Return what NumPy computed from data, or from copies of them: on the device if some of them lie there."""
    if registered.in_use and any_on_device(data):
        return [registered.upload(result) for result in results]
    return [*results]


def as_data(result: Any) -> Any:
    """Return what an op gave as the data of an array."""
    return result if isinstance(result, OnDevice) else np.asarray(result)


def is_view_of(result: np.ndarray, x: np.ndarray) -> bool:
    """Return whether what a reshape of an array gave shows its elements; most have the array, or its owner, as base."""
    base = result.base
    return base is x or (base is not None and base is x.base) or may_share_memory(result, x)


def may_share_memory(x: Any, y: Any) -> bool:
    """Return whether the elements of two arrays may lie in the same memory."""
    if not (isinstance(x, OnDevice) or isinstance(y, OnDevice)):
        return bool(np.may_share_memory(x, y))
    if not (isinstance(x, OnDevice) and isinstance(y, OnDevice)):
        return False
    (low, high), (first, last) = x.span, y.span
    return x is y or (low < last and first < high)


def is_same_memory(x: Any, y: Any) -> bool:
    """Return whether two arrays show the same elements in the same way."""
    return bool(_location(x) == _location(y))


def _location(x: Any) -> Any:
    if isinstance(x, OnDevice):
        return x.location
    return (address(x), x.shape, x.strides, x.dtype)


def address(array: np.ndarray) -> int:
    """Return the address of the first element of an ndarray."""
    return int(array.__array_interface__["data"][0])


def on_host(data: Any) -> Any:
    """Return data in the memory of the host: themselves, or a copy."""
    return data.host() if isinstance(data, OnDevice) else data


def device_of(data: Any) -> str:
    """Return the name of the device on which data lie, "cpu" for the host's memory."""
    return data.device if isinstance(data, OnDevice) else "cpu"


def write(memory: Sequence[Any], contents: Sequence[Any]) -> None:
    """Replace the elements of arrays, on the device or not, by those of others of the same sizes and dtypes.

    All that goes to the host is copied there first: if a copy fails, nothing of it is written.
    """
    pairs = [
        (target, content if isinstance(target, OnDevice) else on_host(content))
        for target, content in zip(memory, contents, strict=True)
        if target is not content
    ]
    for target, content in pairs:
        if isinstance(target, OnDevice):
            target.write(content)
        else:
            np.copyto(target, content)
