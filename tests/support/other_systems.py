# SPDX-License-Identifier: BSD-3-Clause
"""Object code for another system: ``python other_systems.py FOLDER TRIPLE`` writes it, in a process of its own.

FOLDER/TRIPLE then has NAME.o for each kernel and function, and in needs.json the name of its C function and the names
that the compiler knows it to take from the process.
"""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple
from unittest import mock

import numpy as np


class System(NamedTuple):
    """A system: its name in LLVM, a CPU of it, its names in Python, and the relocations of code for all of memory.

    LLVM's loader may put code farther than 2 GiB from the functions of the process. So a relocation either holds a
    whole address, or is one for which the loader makes a stub.
    """

    triple: str
    cpu: str
    platform: str
    machine: str
    relocations: frozenset[int]


_ARM = frozenset(
    {
        257,  # ABS64
        263, 264, 265, 266, 267, 268, 269,  # MOVW_UABS_G0 to G3: a whole address in four instructions
        282, 283,  # JUMP26, CALL26: by a stub if need be
    }
)  # fmt: skip
SYSTEMS = (
    System("x86_64-unknown-linux-gnu", "x86-64", "linux", "x86_64", frozenset({1})),  # 64
    System("aarch64-unknown-linux-gnu", "generic", "linux", "aarch64", _ARM),
    System("x86_64-apple-macos12", "nehalem", "darwin", "x86_64", frozenset({0})),  # UNSIGNED
    # UNSIGNED, BRANCH26 (by a stub), and two halves of the place of an address in the table GOT
    System("arm64-apple-macos12", "apple-m1", "darwin", "arm64", frozenset({0, 2, 5, 6})),
    System("x86_64-pc-windows-msvc", "x86-64-v3", "win32", "AMD64", frozenset({1})),  # ADDR64
)


def kernels() -> list:
    """Return kernels with constants, tables, calls of C and of one another, and much memory on the stack."""
    from tracejit.aval import Aval
    from tracejit.codegen.names import NAME, named
    from tracejit.ir import Builder, Graph
    from tracejit.pipeline import build

    graph = Graph()
    b = Builder(graph)
    x, y = (b.input(Aval(shape, None, np.dtype(np.float32))) for shape in ((9, 70), (70, 64)))
    z = b.input(Aval((40, 33), None, np.dtype(np.float64)))
    e = b.exp(b.sub(x, b.max(x, axes=(1,), keepdims=True)))
    softmax = b.div(e, b.sum(e, axes=(1,), keepdims=True))
    zeros = b.broadcast_to(b.constant(np.zeros((), np.float32)), shape=(2000,))
    graph.outputs = [
        b.matmul(softmax, y), b.mod(x, b.constant(np.ones((), np.float32))), b.sin(x), b.tanh(z), b.erf(z),
        b.sum(z, axes=(0,), keepdims=False), zeros, b.transpose(z, axes=(1, 0)),
    ]  # fmt: skip
    large = f"""def {NAME}(args):
    x = read_f64(args[0])
    o = write_f64(args[1], 0)
    s = scratch_f64(1000)
    for i in range(1000):
        s[i] = sin_f64(x[i])
    for i in range(1000):
        o[i] = s[999 - i]
"""
    return [*build(graph).kernels, named(large, "large_stack")]


def _replaced(system: System) -> list[tuple[object, str, object]]:
    """Return what to set so that code is written for a system."""
    from tracejit.kernels.executor import machine

    from tracejit.compile import numba_target, objects

    host = system.triple, system.cpu, ""
    with mock.patch.object(objects, "host", lambda: host):
        target = objects.target_machine()
    layout = str(target.target_data)
    functions: dict[str, Callable] = {
        "host": lambda: host, "host_machine": lambda: target, "data_layout": lambda: layout,
    }  # fmt: skip
    values = [(module, *pair) for module in (objects, numba_target) for pair in functions.items()]
    cpu = {"arm64": "aarch64", "AMD64": "x86_64"}.get(system.machine, system.machine)
    return [
        *values, (machine, "CPU", cpu), (machine, "SYSTEM", "nt" if system.platform == "win32" else "posix"),
    ]  # fmt: skip


def write(folder: Path, system: System) -> None:
    """Write the object code for a system."""
    from tracejit.codegen.target import written_for
    from tracejit.compile import machine_words, numba_target
    from tracejit.compile.lower import lower

    for owner, name, value in _replaced(system):
        setattr(owner, name, value)
    context = numba_target._descriptor.target_context
    context._internal_codegen = numba_target._Codegen("tracejit")
    numba_target.namespace.cache_clear()  # it keeps what it has compiled
    needs = {}
    folder.mkdir()
    with written_for(32 if system.cpu == "x86-64-v3" else 16):
        for wanted in (*kernels(), *machine_words.FUNCTIONS):
            name = wanted if isinstance(wanted, str) else wanted.name
            lowered = lower(wanted)
            code, needed = lowered.object_code()
            (folder / f"{name}.o").write_bytes(code)
            needs[name] = lowered.symbol, needed
    (folder / "needs.json").write_text(json.dumps(needs))


if __name__ == "__main__":
    import llvmlite.binding as llvm

    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    chosen = next(system for system in SYSTEMS if system.triple == sys.argv[2])
    write(Path(sys.argv[1], chosen.triple), chosen)
