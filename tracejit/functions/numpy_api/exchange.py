# SPDX-License-Identifier: BSD-3-Clause
"""The methods of a dlarray by which other libraries take its elements, and those that name its device."""

from typing import Any

from tracejit.array import dlarray
from tracejit.errors import ArgumentError
from tracejit.record import recorder
from tracejit.util.devices import OnDevice, device_of, on_host
from tracejit.util.text import brief


def cuda_array_interface(self: dlarray) -> Any:
    """Return what libraries for GPUs ask of an array that lies on one.

    Raises:
        AttributeError: if it does not.
    """
    if not isinstance(self._data, OnDevice):
        raise AttributeError("the array lies in the memory of the host, and has no __cuda_array_interface__.")
    return self._data.__cuda_array_interface__  # type: ignore[attr-defined]


def dlpack(
    self: dlarray, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: Any = None
) -> Any:
    """Return a capsule with the elements, for any library that knows DLPack."""
    data: Any = self._data
    is_elsewhere = dl_device is not None and tuple(dl_device) != tuple(data.__dlpack_device__())
    if isinstance(data, OnDevice) and not (is_elsewhere and copy is not False):
        if is_elsewhere:
            raise BufferError(
                f"the array lies on {data.device}, and nowhere else without a copy; leave copy= out."
            )
        return (data.copy() if copy else data).__dlpack__(stream=stream)  # type: ignore[attr-defined]
    given = {"stream": stream, "max_version": max_version, "dl_device": dl_device, "copy": copy}
    data = on_host(recorder.need_value(self, "__dlpack__()"))
    # Whoever takes it may write to it, and a tape that holds it must not change.
    source = data if self._value is None else data.copy()
    return source.__dlpack__(**{name: value for name, value in given.items() if value is not None})


def dlpack_device(self: dlarray) -> tuple[int, int]:
    """Return the kind and the number of the device: the CPU, or a GPU."""
    return self._data.__dlpack_device__()


def device(self: dlarray) -> str:
    """Return "cpu", or the name of the GPU that the elements lie on, such as "cuda:0"."""
    return device_of(self._data)


def to_device(self: dlarray, device: Any, /, *, stream: Any = None) -> dlarray:
    """Return the array itself if it is on the device, otherwise a copy in the memory of the host ("cpu")."""
    if device == device_of(self._data):
        return self
    if device != "cpu":
        raise ArgumentError(
            f"to_device: device must be 'cpu', not {brief(device)}; gpu(x) copies an array to the GPU."
        )
    return dlarray._wrap(recorder.need_value(self, "to_device()"), self._format, None)
