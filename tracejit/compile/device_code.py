# SPDX-License-Identifier: BSD-3-Clause
"""The code of kernels for a GPU: from the cache on disk, or compiled.

PTX is kept, which the driver translates (and keeps in a cache of its own). Where NVIDIA's linker is installed (the
package of nvJitLink) cubins are made and kept, which load faster.
"""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from tracejit.compile import link
from tracejit.compile.capability import Capability
from tracejit.compile.key import key_of
from tracejit.compile.llvm import LlvmFunction
from tracejit.compile.lower import lowering
from tracejit.compile.stages import in_two_stages
from tracejit.program import Kernel
from tracejit.store.entry import KernelKey, StoredKernel
from tracejit.store.kernels import store
from tracejit.util.uninterrupted import Stopping

CUBIN = b"\x7fELF"  # with which one begins
_MOST_THREADS = 8
_T = TypeVar("_T")


def stored_code(kernel: Kernel, capability: Capability, linked: bool = True) -> bytes | None:
    """Return the PTX or, where linked, the cubin of a kernel that is on the disk, None if there is none."""
    key, kept = device_key(kernel, capability, linked), store()
    found = kept.load(key) if kept is not None and key is not None else None
    return None if found is None else found.code


def compiled(
    kernels: Sequence[Kernel],
    capability: Capability,
    use: Callable[[Kernel, bytes], _T],
    stopping: Stopping,
    linked: bool = True,
) -> Iterator[tuple[Kernel, _T]]:
    """Compile kernels, and yield what `use` makes of the PTX or cubin of each.

    Numba lowers one after the other; what LLVM, the linker and `use` do goes on beside that (Note [compiling] in
    registry.py).

    Args:
        kernels: what is compiled.
        capability: of the GPU.
        use: called with each kernel and its code.
        stopping: tells whether to stop.
        linked: whether the linker makes cubins, where it is installed.

    Raises:
        CodegenError: if one cannot be compiled.
    """

    def lower(kernel: Kernel) -> tuple[LlvmFunction, int]:
        started = time.perf_counter_ns()
        with lowering():
            from tracejit.compile import device_target  # imports Numba

            return device_target.lowered(kernel), started

    def finish(kernel: Kernel, between: tuple[LlvmFunction, int]) -> _T:
        from tracejit.compile import device_target

        function, started = between
        ptx = device_target.ptx_of_lowered(function, kernel, capability)
        code = (link.cubin_of(ptx, capability) if linked else None) or ptx.encode()
        key, kept = device_key(kernel, capability, linked), store()
        if kept is not None and key is not None:
            took_ns = time.perf_counter_ns() - started
            kept.save(StoredKernel(key, kernel.name, (), took_ns, kernel.text, code))
        return use(kernel, code)

    return in_two_stages(kernels, lower, finish, stopping, min(_MOST_THREADS, os.cpu_count() or 1))


def device_key(kernel: Kernel, capability: Capability, linked: bool = True) -> KernelKey | None:
    """Return the key of a kernel's code for a GPU, None if it is not kept."""
    key = key_of("kernel", kernel.text)
    if key is None:
        return None
    device = ("device", f"cuda {capability.major}.{capability.minor}")
    linker = link.linker_version() if linked else None
    return KernelKey((*key.parts, device, ("linker", linker or "none")))
