# SPDX-License-Identifier: BSD-3-Clause
"""DeviceArray: the data of an array on the device, its own or those of another library."""

import math
import operator
import weakref
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

import numpy as np

from tracejit.aval import check_dtype
from tracejit.errors import ArgumentError, DeviceError, DTypeError
from tracejit.runtime.cuda.dlpack import CUDA, capsule_of
from tracejit.runtime.cuda.driver import DEFAULT_STREAM, UNIT, Driver, driver, stream_of
from tracejit.runtime.cuda.lanes import Lane
from tracejit.util.devices import OnDevice, registered
from tracejit.util.locks import new_lock

_LEGACY_STREAM, _NO_STREAM = 1, -1  # the names of the default stream, and of none, where arrays are exchanged
_CONTIGUOUS, _ALIGNED, _OWNED, _WRITEABLE = 0x1, 0x100, 0x4, 0x400  # flags of an ndarray


class DeviceMemory:
    """Memory on the device, freed with this object; it belongs to a lane as an array does."""

    __slots__ = ("address", "belongs", "driver", "size")

    def __init__(self, on: Driver, size: int) -> None:
        self.driver = on
        self.size = size
        self.belongs = [on.lane]
        self.address = on.allocate(size) if size else 0

    def __del__(self) -> None:
        if getattr(self, "address", 0):
            self.driver.free(self.address, self.size, self.belongs[0])


class ArrayKind:
    """The shape, dtype and layout of arrays on the device; equal ones are one object (ArrayKind.of).

    Attributes:
        shape, dtype, strides: as in an ndarray.
        ndim, size, itemsize, nbytes: what follows from them.
        is_contiguous: whether elements lie in C order.
        room: the bytes of the memory that is allocated for them.
    """

    __slots__ = (
        "__weakref__", "dtype", "is_contiguous", "itemsize", "nbytes", "ndim", "room", "shape", "size", "strides",
    )  # fmt: skip

    @classmethod
    def of(
        cls, shape: tuple[int, ...], dtype: np.dtype, strides: tuple[int, ...] | None = None
    ) -> "ArrayKind":
        """Return the kind of a shape, a dtype, and strides in bytes, None for C order."""
        key = shape, dtype, strides
        kind = _kinds.get(key)
        if kind is None:
            plain = contiguous_strides(shape, dtype.itemsize)
            if strides is not None and (_is_contiguous(shape, strides, plain) or not math.prod(shape)):
                return cls.of(shape, dtype)
            with _lock:  # two threads that make the same kind get one
                kind = _kinds.setdefault(key, cls(shape, dtype, strides or plain, strides is None))
        return kind

    def __init__(
        self, shape: tuple[int, ...], dtype: np.dtype, strides: tuple[int, ...], is_contiguous: bool
    ) -> None:
        self.shape, self.dtype, self.strides = shape, dtype, strides
        self.ndim, self.size, self.itemsize = len(shape), math.prod(shape), dtype.itemsize
        self.nbytes = self.size * self.itemsize
        self.is_contiguous = is_contiguous
        self.room = -(-self.nbytes // UNIT) * UNIT


_kinds: "weakref.WeakValueDictionary[Any, ArrayKind]" = weakref.WeakValueDictionary()
_lock = new_lock()


def _is_contiguous(shape: tuple[int, ...], strides: tuple[int, ...], plain: tuple[int, ...]) -> bool:
    return all(n == 1 or have == want for n, have, want in zip(shape, strides, plain, strict=True))


def _of_kind(name: str) -> property:
    return property(operator.attrgetter(f"kind.{name}"))


class DeviceArray(OnDevice):
    """Elements on the device, with the attributes that the data of a dlarray have.

    Args:
        on: the device.
        kind: the shape, dtype and layout.
        address: of the first element.
        owner: what keeps the memory, None for the array itself.
        writeable: False for memory that is not to be written.
        base: what the elements are shared with, None if they are the array's own.
    """

    __slots__ = ("__weakref__", "address", "base", "belongs", "is_writeable", "kind", "on", "owner")

    __array_priority__ = 2000.0
    __hash__ = object.__hash__

    def __init__(
        self, on: Driver, kind: ArrayKind, address: int, owner: Any, writeable: bool = True, base: Any = None
    ) -> None:
        self.on, self.kind, self.address, self.owner = on, kind, address, owner
        self.is_writeable, self.base = writeable, base
        # The lane that used the memory last (Note [streams] in lanes.py), in a list that arrays of one memory share.
        self.belongs: list[Lane] = owner.belongs if type(owner) is DeviceArray else [on.lane]
        registered.in_use = True

    def __del__(self) -> None:
        if self.owner is None and self.address:
            self.on.free(self.address, self.kind.room, self.belongs[0])

    shape, dtype, strides = _of_kind("shape"), _of_kind("dtype"), _of_kind("strides")
    ndim, size, itemsize, nbytes = (
        _of_kind("ndim"),
        _of_kind("size"),
        _of_kind("itemsize"),
        _of_kind("nbytes"),
    )

    @property
    def flags(self) -> SimpleNamespace:
        """The flags, as in an ndarray."""
        is_contiguous, is_writeable = self.kind.is_contiguous, self.is_writeable
        is_aligned = self.address % self.kind.dtype.alignment == 0
        return SimpleNamespace(
            num=_CONTIGUOUS * is_contiguous | _ALIGNED * is_aligned | _WRITEABLE * is_writeable,
            c_contiguous=is_contiguous, aligned=is_aligned, writeable=is_writeable, owndata=self.base is None,
        )  # fmt: skip

    @property
    def device(self) -> str:
        """The name of the device."""
        return f"cuda:{self.on.ordinal}"

    @property
    def span(self) -> tuple[int, int]:
        """The first address of the elements, and that behind them."""
        low = high = self.address
        if self.size:
            for n, stride in zip(self.shape, self.strides, strict=True):
                low, high = low + min(0, (n - 1) * stride), high + max(0, (n - 1) * stride)
            high += self.itemsize
        return low, high

    @property
    def location(self) -> Any:
        """A value that is equal for arrays that show the same elements in the same way."""
        return self.device, self.address, self.kind

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        strides = None if self.flags.c_contiguous else self.strides
        with self.on.lanes.order:
            self.on.lanes.take_over([self])
        return {
            "shape": self.shape, "typestr": self.dtype.str, "data": (self.address, not self.flags.writeable),
            "strides": strides, "version": 3, "stream": self.on.stream or _LEGACY_STREAM,
        }  # fmt: skip

    def __dlpack_device__(self) -> tuple[int, int]:
        return CUDA, self.on.ordinal

    def __dlpack__(self, *, stream: Any = None) -> Any:
        if not self.is_writeable:  # NumPy refuses the same
            raise BufferError("the array is read-only, which a capsule cannot say; pass a copy (x.copy()).")
        if any(step % self.itemsize for step in self.strides):
            raise BufferError(
                f"the elements lie {self.strides} bytes apart, which are no multiples of their size, as DLPack "
                "expects; pass a copy (x.copy())."
            )
        if stream != _NO_STREAM:  # on which the elements are to be ready; None is the default one
            with self.on.lanes.order:
                self.on.lanes.take_over([self])
            self.on.wait(self.on.stream, on=DEFAULT_STREAM if stream in (None, _LEGACY_STREAM) else stream)
        return capsule_of(self)

    def host(self) -> np.ndarray:
        """Return a copy of the elements in the memory of the host: of a number one, of an array without axes one."""
        data, shown = self._memory_like()
        with self.on.lanes.order:
            self.on.lanes.take_over([self])
            self.on.begin_download(data, self.span[0])
        self.on.synchronize()
        result = np.empty(self.shape, self.dtype)
        result[...] = shown
        return result if self.ndim or self.base is None else result[...]

    def like(self) -> np.ndarray:
        """Return an ndarray of the host that lies in memory as the elements do; its own are not set."""
        return self._memory_like()[1]

    def _memory_like(self) -> tuple[np.ndarray, np.ndarray]:
        """Return memory of the host as that of the elements and what is between them, and the elements in it."""
        low, high = self.span
        data = np.empty(high - low, np.uint8)
        return data, np.ndarray(self.shape, self.dtype, data, self.address - low, self.strides)

    def copy(self, order: str = "C") -> "DeviceArray":
        """Return an array with elements of its own in C order."""
        if not self.flags.c_contiguous:
            return uploaded(self.on, self.host())
        result = empty(self.on, self.shape, self.dtype)
        with self.on.lanes.order:
            self.on.lanes.take_over([self])
            self.on.copy(result.address, self.address, self.nbytes)
        return result

    def write(self, data: Any) -> None:
        """Replace the elements by those of an array of the same size and dtype, on the device or not."""
        if not self.flags.c_contiguous:
            (low, _), (whole, shown) = self.span, self._memory_like()
            with self.on.lanes.order:
                self.on.lanes.take_over([self])
                self.on.download(whole, low)
                shown[...] = data.host() if isinstance(data, DeviceArray) else data
                self.on.upload(low, whole)
        elif isinstance(data, DeviceArray) and data.flags.c_contiguous:
            with self.on.lanes.order:
                self.on.lanes.take_over([self, data])
                self.on.copy(self.address, data.address, self.nbytes)
        else:
            on_host = data.host() if isinstance(data, DeviceArray) else data
            with self.on.lanes.order:
                self.on.lanes.take_over([self])
                self.on.upload(self.address, np.ascontiguousarray(on_host, self.dtype))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if copy is False:
            raise ValueError("an array on a device has no elements in the memory of the host without a copy.")
        return self.host().astype(self.dtype if dtype is None else dtype, copy=False)

    def __getitem__(self, key: Any) -> Any:
        if key is Ellipsis:
            base = self if self.base is None else self.base
            return DeviceArray(self.on, self.kind, self.address, self, self.is_writeable, base)
        return self.host()[key]

    def __len__(self) -> int:
        return int(self.shape[0])

    def __str__(self) -> str:
        return str(self.host())

    def __repr__(self) -> str:
        return f"DeviceArray({self.shape}, {self.dtype}, {self.device})"

    def __reduce__(self) -> Any:
        return np.array, (self.host(),)

    def item(self, *index: int) -> Any:
        """Return one element."""
        return self.host().item(*index)

    def tolist(self) -> Any:
        """Return the elements as (nested lists of) Python numbers."""
        return self.host().tolist()

    def tobytes(self) -> bytes:
        """Return the bytes of the elements in C order."""
        return self.host().tobytes()


def contiguous_strides(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    """Return the strides in bytes of an array in C order."""
    strides: list[int] = []
    step = itemsize
    for n in reversed(shape):
        strides.insert(0, step)
        step *= n
    return tuple(strides)


def empty(on: Driver, shape: tuple[int, ...], dtype: np.dtype) -> DeviceArray:
    """Return an array on the device whose elements are not set."""
    return empty_of(on, ArrayKind.of(shape, dtype))


def empty_of(on: Driver, kind: ArrayKind) -> DeviceArray:
    """Return an array of a kind in C order whose elements are not set."""
    return DeviceArray(on, kind, on.allocate(kind.room) if kind.room else 0, None)


def uploaded(on: Driver, data: np.ndarray) -> DeviceArray:
    """Return a copy of an ndarray on the device."""
    array = empty(on, data.shape, data.dtype)
    on.upload(array.address, np.ascontiguousarray(data))
    return array


def uploaded_as_it_is(on: Driver, data: np.ndarray) -> DeviceArray:
    """Return a copy of an ndarray on the device; of an array without axes one that can be written.

    Such an array has a base, and a number has none (is_scalar in record/views.py).
    """
    array = uploaded(on, data)
    return array if data.ndim or data.base is None else array[...]


def adopted(x: Any, function: str, argument: str) -> DeviceArray:
    """Return the elements of an array of another library, which are shared.

    Args:
        x: an object with ``__cuda_array_interface__``.
        function: on whose behalf errors are raised.
        argument: the name of its argument.

    Raises:
        ArgumentError: if the interface is not that of an array of numbers.
        DTypeError: if its dtype is not supported, or has the byte order of other machines.
        DeviceError: if the array lies on another device.
    """
    on = driver()
    interface = x.__cuda_array_interface__
    try:
        shape = tuple(map(int, interface["shape"]))
        dtype = np.dtype(interface["typestr"])
        (address, read_only), given = interface["data"], interface.get("strides")
        strides = None if given is None else tuple(map(int, given))
        if min(shape, default=0) < 0 or (strides is not None and len(strides) != len(shape)):
            raise ValueError(f"shape is {shape} and strides are {strides}")
        masked = interface.get("mask") is not None
    except (KeyError, TypeError, ValueError) as error:
        raise ArgumentError(
            f"{function}: {argument} is a {type(x).__name__} whose __cuda_array_interface__ cannot be read "
            f"({error}); pass an array of CuPy, PyTorch, JAX or Numba."
        ) from error
    if masked:
        raise ArgumentError(
            f"{function}: {argument} has a mask, which would be lost; pass an array without one."
        )
    native = check_dtype(function, dtype, argument)
    if not dtype.isnative:
        raise DTypeError(
            f"{function}: {argument} lies on a GPU in the byte order of other machines ({dtype.str}); copy it to the "
            "host and back, in that of this one."
        )
    ordinal = on.device_of(address) if math.prod(shape) else on.ordinal
    if ordinal != on.ordinal:
        place = "memory of no device" if ordinal is None else f"cuda:{ordinal}"
        raise DeviceError(
            f"{function}: {argument} lies on {place}, and tracejit uses cuda:{on.ordinal}. Copy it there first, or "
            f"start the process with CUDA_VISIBLE_DEVICES={ordinal or 0}."
        )
    keeper = x, _waited_for(on, x, interface)
    kind = ArrayKind.of(shape, native, strides)
    return DeviceArray(on, kind, address, keeper, not read_only, base=x)


def _waited_for(on: Driver, x: Any, interface: Any) -> Any:
    """Let the stream of this thread wait for work on an array of another library; return what has to live as long.

    In the interface PyTorch and JAX name no stream; they order streams where they give a capsule.
    """
    if "stream" in interface:
        if interface["stream"] is not None:
            other = stream_of(interface["stream"])
            on.wait(DEFAULT_STREAM if other == _LEGACY_STREAM else other, on=on.stream)
        return None
    if hasattr(x, "__dlpack__"):
        # A tensor that no capsule can describe, or a library that takes no stream.
        with suppress(BufferError, RuntimeError, TypeError):
            return x.__dlpack__(stream=on.stream or _LEGACY_STREAM)
    on.call("cuCtxSynchronize")
    return None
