# SPDX-License-Identifier: BSD-3-Clause
"""Object code into memory, by LLVM alone: Numba is not imported."""

import ctypes
import sys
import threading
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from typing import Any, NamedTuple

import llvmlite.binding as llvm

from tracejit.compile import elf
from tracejit.errors import CodegenError

_FUNCTION = "function of that name in it"
_lock = threading.Lock()


class Cpu(NamedTuple):
    """A kind of CPU as LLVM names it, and what code may use beyond what its name says."""

    name: str
    features: str


def load(symbol: str, code: bytes, needs: Iterable[str] = (), engine: Any = None) -> int:
    """Return the address of the function `symbol` of an object file, which stays loaded as long as its engine.

    Args:
        symbol: its name.
        code: the object file.
        needs: names that it takes from the process.
        engine: what new_engine() gave; without it, one that lasts as long as the process.

    Raises:
        CodegenError: if the object file cannot be loaded here.
    """
    # LLVM ends the process where a name is missing, or if this is something else.
    missing = [name for name in needs if not _provide(name)]
    if not missing:
        missing = _missing(symbol, code)
    if missing:
        raise CodegenError(f"object code of {symbol} cannot be loaded: there is no {', '.join(missing)}")
    with _lock:
        engine = _engine() if engine is None else engine
        engine.add_object_file(llvm.ObjectFileRef.from_data(code))
        engine.finalize_object()
        return int(engine.get_function_address(symbol))


def _missing(symbol: str, code: bytes) -> list[str]:
    """Return the names that an object file lacks, and those that it needs and the process lacks."""
    if not sys.platform.startswith("linux"):
        return [] if symbol.encode() in code else [_FUNCTION]
    try:
        found = elf.symbols(code)
    except CodegenError:
        return [_FUNCTION]
    return [
        *([] if symbol in found.functions else [_FUNCTION]),
        *[name for name in sorted(found.missing) if not _provide(name)],
    ]


@cache
def _provide(name: str) -> bool:
    """Tell LLVM where a function of the C library is; return whether there is one."""
    for library in (None, "libm.so.6"):
        with suppress(OSError, AttributeError):
            address = ctypes.cast(getattr(ctypes.CDLL(library), name), ctypes.c_void_p).value
            llvm.add_symbol(name, address)
            return True
    return False


@cache
def host() -> tuple[str, str, str]:
    """Return the kind of this machine, the name of its CPU, and the features that code may use."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    try:
        features = llvm.get_host_cpu_features().flatten()
    except RuntimeError:  # LLVM does not know them all
        features = ""
    return llvm.get_process_triple(), llvm.get_host_cpu_name(), features


def target_machine(cpu: Cpu | None = None) -> Any:
    """Return a new target machine of LLVM: for a CPU, or for that of this process and nothing less."""
    triple, name, features = host()
    if cpu is not None:
        name, features = cpu
    # Addresses are known when code is loaded.
    relocation = "static" if triple.startswith("x86") else "default"
    return llvm.Target.from_triple(triple).create_target_machine(
        cpu=name, features=features, opt=3, reloc=relocation, codemodel="jitdefault", jit=True
    )


@cache
def host_machine() -> Any:
    """Return the target machine for this process."""
    return target_machine()


@cache
def data_layout() -> str:
    """Return how LLVM lays out data on this machine; to ask it again would wait until it has compiled what it has."""
    return str(host_machine().target_data)


def new_engine() -> Any:
    """Return an engine of LLVM: memory for object code that goes with it, and names that others do not see."""
    with _lock:
        host()  # LLVM is set up
        return llvm.create_mcjit_compiler(llvm.parse_assembly(""), target_machine())


@cache
def _engine() -> Any:
    return llvm.create_mcjit_compiler(llvm.parse_assembly(""), target_machine())
