# SPDX-License-Identifier: BSD-3-Clause
"""Object code ahead of time: for this machine, or for all CPUs of a level."""

import time

from tracejit.compile.key import key_of
from tracejit.compile.lower import lower
from tracejit.compile.objects import Cpu, host
from tracejit.program import Kernel
from tracejit.store.entry import KernelKey, StoredKernel
from tracejit.store.kernels import store
from tracejit.util.named_tuples import NamedTuple

FUNCTIONS = ("run", "enter", "loop", "run_parts", "work")
"""The executor, its entry for Python, the loops in programs, and the functions of its threads."""


class Level(NamedTuple):
    """A level of the x86-64 architecture: its vector size, and the features it adds to the level below."""

    vector_bytes: int
    features: tuple[str, ...]


LEVELS = {
    "x86-64": Level(16, ("sse2",)),
    "x86-64-v2": Level(16, ("cx16", "popcnt", "sahf", "sse3", "sse4.1", "sse4.2", "ssse3")),
    "x86-64-v3": Level(32, ("avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe")),
    "x86-64-v4": Level(64, ("avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl")),
}


def runs_here(level: str) -> bool:
    """Return whether the CPU of this process has all features of a level."""
    if not host()[0].startswith("x86_64"):
        return False
    features = set(host()[2].split(","))
    names = list(LEVELS)
    needed = [name for lower in names[: names.index(level) + 1] for name in LEVELS[lower].features]
    return all(f"+{name}" in features for name in needed)


def object_code(wanted: Kernel | str, cpu: Cpu | None = None) -> StoredKernel:
    """Return the object code of a kernel or of one of FUNCTIONS, from the disk or compiled now.

    Args:
        wanted: the kernel, or the name of the function.
        cpu: the CPU to compile for; by default that of this process.
    """
    name, source = (wanted, "") if isinstance(wanted, str) else (wanted.name, wanted.text)
    key = key_of("function", name, cpu) if not source else key_of("kernel", source, cpu)
    cache = store()
    stored = None if cache is None or key is None else cache.load(key)
    if stored is not None:
        return stored
    started = time.perf_counter_ns()
    lowered = lower(wanted)
    code, needs = lowered.object_code(cpu)
    stored = StoredKernel(
        key or KernelKey(()), lowered.symbol, needs, time.perf_counter_ns() - started, source, code
    )
    if cache is not None and key is not None:
        cache.save(stored)
    return stored
