# SPDX-License-Identifier: BSD-3-Clause
"""The code of kernels for a GPU: from the cache on disk, or compiled.

PTX is kept, which the driver translates (and keeps in a cache of its own). Where NVIDIA's linker is installed (the
package of nvJitLink) cubins are made and kept, which load faster.
"""

import time

from tracejit.compile import link
from tracejit.compile.capability import Capability
from tracejit.compile.key import key_of
from tracejit.program import Kernel
from tracejit.store.entry import KernelKey, StoredKernel
from tracejit.store.kernels import store


def code_of(kernel: Kernel, capability: Capability) -> tuple[bytes, bool, int]:
    """Return PTX or a cubin of a kernel, whether it was compiled, and the nanoseconds that this took.

    Raises:
        CodegenError: if it cannot be compiled.
    """
    started = time.perf_counter_ns()
    key = device_key(kernel, capability)
    kept = store()
    found = kept.load(key) if kept is not None and key is not None else None
    if found is not None:
        return found.code, False, time.perf_counter_ns() - started
    from tracejit.compile.device_target import ptx_of  # imports Numba

    ptx = ptx_of(kernel, capability)
    code = link.cubin_of(ptx, capability) or ptx.encode()
    took_ns = time.perf_counter_ns() - started
    if kept is not None and key is not None:
        kept.save(StoredKernel(key, kernel.name, (), took_ns, kernel.text, code))
    return code, True, took_ns


def device_key(kernel: Kernel, capability: Capability) -> KernelKey | None:
    """Return the key of a kernel's code for a GPU, None if it is not kept."""
    key = key_of("kernel", kernel.text)
    if key is None:
        return None
    device = ("device", f"cuda {capability.major}.{capability.minor}")
    return KernelKey((*key.parts, device, ("linker", link.linker_version() or "none")))
