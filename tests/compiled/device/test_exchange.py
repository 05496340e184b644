# SPDX-License-Identifier: BSD-3-Clause
"""Arrays of a device that are exchanged with other libraries, and the order of their streams, through the stand-in."""

import ctypes
import gc
import weakref
from collections import Counter
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest
from device_cases import address, foreign
from fake_driver import FakeLibrary
from llvm_texts import NEEDS_LLVM_22

import tracejit as tj
from tracejit.runtime.cuda.driver import driver, stream

F32 = np.float32
pytestmark = NEEDS_LLVM_22


def test_arrays_of_other_libraries_are_shared(fake: FakeLibrary) -> None:
    own = tj.gpu(np.arange(12, dtype=F32).reshape(3, 4))
    x = tj.dlarray(foreign(own))
    assert x.device == "cuda:0" and address(x) == address(own) and x.tolist() == own.tolist()
    assert tj.exp(foreign(own)).device == "cuda:0"
    transposed = tj.dlarray(foreign(own, shape=(4, 3), strides=(4, 16)))
    assert transposed.tolist() == np.asarray(own).T.tolist()
    function = tj.dlaccelerate(lambda x: x * 2)
    for _ in range(3):
        assert function(transposed).tolist() == (np.asarray(own).T * 2).tolist()
        assert function(foreign(own)).tolist() == (np.asarray(own) * 2).tolist()
    empty = tj.dlarray(foreign(own, shape=(0, 4), data=(0, False), strides=None))
    assert empty.shape == (0, 4) and (empty + 1).tolist() == []


def test_arrays_that_are_not_aligned_for_wide_accesses(fake: FakeLibrary) -> None:
    own = tj.gpu(np.arange(9, dtype=F32))
    function = tj.dlaccelerate(lambda x: tj.exp(x) + x)
    part = tj.dlarray(foreign(own, shape=(8,), data=(address(own) + 4, False)))
    want = np.exp(np.arange(1, 9, dtype=F32)) + np.arange(1, 9, dtype=F32)
    for _ in range(3):
        np.testing.assert_allclose(np.asarray(function(part)), want, rtol=1e-6)

    def doubled(x: Any) -> None:
        x *= 2

    writing = tj.dlaccelerate(doubled)
    for _ in range(3):
        writing(part)
    assert own.tolist() == [0.0, *[8.0 * n for n in range(1, 9)]]


def test_capsules_of_dlpack(fake: FakeLibrary) -> None:
    x = tj.gpu(np.arange(6, dtype=F32).reshape(2, 3))
    assert x.__dlpack_device__() == (2, 0)
    assert tj.dlarray([1.0]).__dlpack_device__() == (1, 0)
    capsule = x.__dlpack__(stream=1)
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    place = pointer(capsule, b"dltensor")
    words = np.frombuffer(ctypes.string_at(place, 20), np.int32)
    assert ctypes.c_uint64.from_address(place).value == address(x)
    assert words[2:].tolist() == [2, 0, 2]  # the kind and number of the device, and axes
    before = len(fake.sizes)
    del x, capsule
    gc.collect()
    assert len(fake.sizes) == before - 1


def test_a_capsule_of_a_copy(fake: FakeLibrary) -> None:
    """On the device, or where the one who takes it asks for it; a write into it does not reach the array."""
    x = tj.gpu(np.arange(6, dtype=F32).reshape(2, 3))
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    for given, is_own in (({}, True), ({"copy": False, "dl_device": (2, 0)}, True), ({"copy": True}, False)):
        capsule = x.__dlpack__(**given)
        assert (ctypes.c_uint64.from_address(pointer(capsule, b"dltensor")).value == address(x)) == is_own
    for more in ({}, {"copy": True}):
        assert np.from_dlpack(x, device="cpu", **more).tolist() == x.tolist()


@pytest.mark.parametrize(
    ("given", "waits"), [({}, 1), ({"stream": None}, 1), ({"stream": 1}, 1), ({"stream": -1}, 0)]
)
def test_a_capsule_is_ready_on_the_stream_of_who_takes_it(
    given: dict[str, Any], waits: int, fake: FakeLibrary
) -> None:
    """Where none is named, that is the default stream, by the standard of the array API."""
    with stream(77):
        x = tj.gpu(np.zeros(3, F32)) + 1
        fake.calls.clear()
        x.__dlpack__(**given)
        assert Counter(fake.calls)["cuStreamWaitEvent"] == waits
        fake.finish(0)
        assert bool(fake.queues[77]) == (not waits)


def test_capsules_say_all_of_an_array_or_are_refused(fake: FakeLibrary) -> None:
    own = tj.gpu(np.arange(12, dtype=F32))
    turned = tj.dlarray(foreign(own, shape=(3, 2), strides=(-4, 12), data=(address(own) + 8, False)))
    assert turned.__dlpack__(stream=-1) is not None
    for more in ({"data": (address(own), True)}, {"shape": (5,), "strides": (6,)}):
        with pytest.raises(BufferError, match=r"pass a copy \(x.copy\(\)\)"):
            tj.dlarray(foreign(own, **more)).__dlpack__()
    assert tj.dlarray(foreign(own, data=(address(own), True))).copy().__dlpack__() is not None


def test_the_callers_stream(fake: FakeLibrary) -> None:
    x = tj.gpu(np.ones(3, F32))
    with stream(type("Stream", (), {"cuda_stream": 77})()):
        fake.calls.clear()
        assert x.__cuda_array_interface__["stream"] == 77
        y = x + 1
    assert y.tolist() == [2.0] * 3 and driver().stream == 0
    assert Counter(fake.calls)["cuStreamWaitEvent"] >= 1
    fake.calls.clear()
    tj.dlarray(foreign(x, stream=5))
    assert Counter(fake.calls)["cuStreamWaitEvent"] == 1


@pytest.mark.parametrize("answer", ["a capsule", "an error", "no stream", "no capsules"])
@pytest.mark.parametrize("handle", [None, 77], ids=["default", "other"])
def test_an_array_whose_library_names_no_stream_is_waited_for(
    answer: str, handle: int | None, fake: FakeLibrary
) -> None:
    """As those of PyTorch and JAX, which order streams where they give a capsule."""
    own, capsule = tj.gpu(np.zeros(3, F32)), np.empty(0)
    interface = {**own.__cuda_array_interface__, "version": 2}
    del interface["stream"]
    data = np.full(3, 7, F32).view(np.uint8)
    places = np.uint64(address(own)) + np.arange(data.size, dtype=np.uint64)
    fake.put(5, lambda: fake.memory.store(places, data))  # the library works on it

    class Tensor:
        __cuda_array_interface__ = interface

    def export(self: Tensor, *, stream: int) -> Any:
        if answer == "an error":
            raise BufferError("Can't export tensors with the conjugate bit set")
        assert stream == (handle or 1)
        driver().wait(5, on=handle or 0)
        return capsule

    if answer != "no capsules":
        Tensor.__dlpack__ = (lambda self: None) if answer == "no stream" else export  # type: ignore[attr-defined]
    with nullcontext() if handle is None else stream(handle):
        x = tj.dlarray(Tensor())
        assert (x * 2).tolist() == [14.0] * 3
    if answer == "a capsule":
        kept, view = weakref.ref(capsule), x._data[...]
        del capsule, x, export
        gc.collect()
        assert kept() is not None
        del view, Tensor
        gc.collect()
        assert kept() is None
