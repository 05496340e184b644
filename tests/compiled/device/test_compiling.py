# SPDX-License-Identifier: BSD-3-Clause
"""The preparation of kernels for a GPU: from the disk, or compiled in several threads."""

import threading
from typing import Any

import numpy as np
import pytest
from device_cases import agree
from fake_driver import FakeLibrary
from llvm_texts import NEEDS_LLVM_22
from on_device import program_of

import tracejit as tj
from tracejit.compile import device_code, device_target, link
from tracejit.compile.capability import Capability
from tracejit.errors import CodegenError, DeviceError
from tracejit.program import Kernel, Prepared
from tracejit.runtime.cuda.arrays import uploaded
from tracejit.runtime.cuda.driver import Driver, driver, replaced
from tracejit.runtime.cuda.executable import DeviceExecutable

F32 = np.float32
pytestmark = NEEDS_LLVM_22


def step(w: Any, b: Any, x: Any) -> tuple[Any, ...]:
    y = tj.tanh(x @ w + b)
    loss = (y * y).mean()
    return loss, *tj.dlgradient(loss, w, b)


def arrays_of_step() -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [rng.standard_normal(shape).astype(F32) for shape in ((3, 7), (7,), (5, 3))]


def test_sine_and_cosine_in_one_kernel(fake: FakeLibrary) -> None:
    """Both call the same functions of Numba's, which are in the text of each."""
    x = np.linspace(-3, 3, 50, dtype=F32)
    function = tj.dlaccelerate(lambda x: tj.sin(x) * tj.cos(x) + tj.tan(x))
    for _ in range(3):
        agree([np.asarray(function(tj.gpu(x)))], [np.sin(x) * np.cos(x) + np.tan(x)])


def test_code_comes_from_the_disk(fake: FakeLibrary, monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.setattr("tracejit.config.settings.cache", "private")
    monkeypatch.setattr("tracejit.config.settings.cache_dir", str(tmp_path))
    program = program_of(lambda x: (tj.exp(x) * 3.25,), [np.ones(5, F32)])[0]
    (kernel,) = program.kernels

    def prepared(major: int) -> Prepared:
        fake.attributes[75] = major
        with replaced(Driver(fake)):
            return DeviceExecutable(program).prepared

    def names(prepared: Prepared) -> tuple[tuple[str, ...], tuple[str, ...]]:
        return prepared.compiled, prepared.loaded

    assert names(prepared(8)) == ((kernel.name,), ())
    code = device_code.stored_code(kernel, Capability(8, 0))
    assert code is not None and b".target sm_80" in code
    assert names(prepared(8)) == ((), (kernel.name,))
    assert names(prepared(9)) == ((kernel.name,), ()), "each capability has code of its own"
    for path in tmp_path.rglob("*.kernel"):
        path.write_bytes(path.read_bytes()[:-7])
    assert names(prepared(8)) == ((kernel.name,), ()), "a damaged entry is compiled again"
    assert device_code.stored_code(kernel, Capability(8, 0)) == code


def test_a_driver_that_refuses_cubins_gets_ptx(
    fake: FakeLibrary, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    """The linker of CUDA 13 is preferred, and a driver for CUDA 12 does not load what it makes."""
    monkeypatch.setattr("tracejit.config.settings.cache", "private")
    monkeypatch.setattr("tracejit.config.settings.cache_dir", str(tmp_path))
    monkeypatch.setattr(link, "linker_version", lambda: "nvidia-nvjitlink 13.0.88")
    made: list[str] = []

    def cubin_of(ptx: str, capability: Capability) -> bytes:
        made.append(ptx)
        return b"\x7fELF of CUDA 13"

    monkeypatch.setattr(link, "cubin_of", cubin_of)
    program, want = program_of(step, arrays_of_step())
    every = sorted(kernel.name for kernel in program.kernels)

    def prepared() -> Prepared:
        executable = DeviceExecutable(program)
        agree([part.host() for part in executable([uploaded(driver(), x) for x in arrays_of_step()])], want)
        return executable.prepared

    first = prepared()
    assert sorted(first.compiled) == every and not first.loaded and len(made) == len(every)
    other, _ = program_of(lambda x: (tj.exp(x) * 1.75,), [np.ones(5, F32)])
    assert DeviceExecutable(other).prepared.compiled and len(made) == len(every), (
        "the linker is asked no more"
    )
    with replaced(Driver(fake)):  # as in the next process, which finds both on the disk
        again = prepared()
        assert sorted(again.loaded) == every and not again.compiled
    for status, error in ((719, "lost"), (2, "not enough memory")):
        fake.faults["cuModuleLoadDataEx"] = status
        with replaced(Driver(fake)), pytest.raises(DeviceError, match=error):
            DeviceExecutable(program)
        fake.faults.clear()


def test_kernels_are_finished_beside_the_next_ones(
    fake: FakeLibrary, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Numba lowers one kernel after the other; the rest happens in other threads, and no signal handler runs there."""
    threads: dict[str, set[int]] = {"lowered": set(), "ptx_of_lowered": set()}
    for name, used in threads.items():
        step_of_compiler = getattr(device_target, name)

        def noted(*arguments: Any, step: Any = step_of_compiler, used: set[int] = used) -> Any:
            used.add(threading.get_ident())
            return step(*arguments)

        monkeypatch.setattr(device_target, name, noted)
    monkeypatch.setattr("tracejit.config.settings.cache", "off")
    program, want = program_of(step, arrays_of_step())
    executable = DeviceExecutable(program)
    assert [*executable.prepared.compiled] == [kernel.name for kernel in program.kernels]
    assert len(threads["lowered"]) == 1 and not threads["lowered"] & threads["ptx_of_lowered"]
    agree([part.host() for part in executable([uploaded(driver(), x) for x in arrays_of_step()])], want)


def test_a_kernel_that_cannot_be_compiled(fake: FakeLibrary) -> None:
    program, _ = program_of(step, arrays_of_step())
    faulty = [
        row._replace(kernel=Kernel("faulty", "def faulty(args):\n    nowhere(args[0])\n"))
        for row in program.rows
    ]
    with pytest.raises(CodegenError, match="the emitted kernel faulty could not be compiled"):
        DeviceExecutable(program._replace(rows=[*program.rows[:2], *faulty[2:]]))
    fake.faults["cuModuleLoadDataEx"] = 218
    other, _ = program_of(lambda x: (tj.exp(x * 1.5), x.T @ x), [np.ones((40, 3), F32)])
    with pytest.raises(DeviceError, match=r"cuModuleLoadDataEx: CUDA_ERROR_218"):
        DeviceExecutable(other)
