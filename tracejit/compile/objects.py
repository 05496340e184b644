# SPDX-License-Identifier: BSD-3-Clause
"""Loads object code into memory, by LLVM alone: Numba is not imported."""

import ctypes
import sys
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from typing import Any

import llvmlite.binding as llvm

from tracejit.compile.symbols import symbols
from tracejit.errors import CodegenError
from tracejit.util.locks import check_compiler, compiling, forks_wait_for
from tracejit.util.named_tuples import NamedTuple
from tracejit.util.room import check_room

forks_wait_for("numba.core.compiler_lock", "global_compiler_lock", "_lock")
forks_wait_for("llvmlite.binding.ffi", "lib", "_lock", "_lock")
LIBRARIES: dict[str, tuple[str | None, ...]] = {
    "linux": (None, "libm.so.6"), "win32": ("ucrtbase", "vcruntime140", "kernel32", "ntdll"),
}  # fmt: skip
"""The libraries of each system that have the functions of C; None is what the process has loaded. ntdll of Windows has
__chkstk, which functions with much memory on the stack call."""
_FUNCTION = "function of that name in it"  # ends the sentence "there is no ..."


class Cpu(NamedTuple):
    """A CPU by its LLVM name, and the features that code may use besides those of the name."""

    name: str
    features: str


def load(symbol: str, code: bytes, needs: Iterable[str] = (), engine: Any = None) -> int:
    """Return the address of the function `symbol` of an object file, which stays loaded as long as its engine.

    Args:
        symbol: the name of the function.
        code: the object file.
        needs: the names that it takes from the process.
        engine: a result of new_engine(); by default one that lasts as long as the process.

    Raises:
        CodegenError: if the object file cannot be loaded here.
    """
    # LLVM ends the process if a name is missing, or if the bytes are not an object file.
    missing = [name for name in needs if not _provide(name)]
    if not missing:
        missing = _missing(symbol, code)
    if missing:
        raise CodegenError(f"object code of {symbol} cannot be loaded: there is no {', '.join(missing)}")
    check_compiler()
    check_room()
    with compiling:
        engine = _engine() if engine is None else engine
        engine.add_object_file(llvm.ObjectFileRef.from_data(code))
        engine.finalize_object()
        return int(engine.get_function_address(symbol))


def _missing(symbol: str, code: bytes) -> list[str]:
    """Return the names that are missing: from the object file, or from the process."""
    try:
        table = symbols(code)
    except CodegenError:
        return [_FUNCTION]
    return [
        *([] if symbol in table.functions else [_FUNCTION]),
        *[name for name in sorted(table.missing) if not _provide(name)],
    ]


@cache
def _provide(name: str) -> bool:
    """Give LLVM the address of a function of the C library; return whether there is one."""
    for library in LIBRARIES.get(sys.platform, (None,)):
        with suppress(
            OSError, AttributeError, ValueError
        ):  # a name with a zero byte comes from a damaged file
            address = ctypes.cast(getattr(ctypes.CDLL(library), name), ctypes.c_void_p).value
            llvm.add_symbol(name, address)
            return True
    return False


@cache
def host() -> tuple[str, str, str]:
    """Return the triple of this machine, the name of its CPU, and the features that code may use."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    try:
        features = llvm.get_host_cpu_features().flatten()
    except RuntimeError:  # LLVM does not know this CPU
        features = ""
    return llvm.get_process_triple(), llvm.get_host_cpu_name(), features


def target_machine(cpu: Cpu | None = None) -> Any:
    """Return a new target machine of LLVM: for a CPU, or for exactly that of this process."""
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
    """Return LLVM's data layout of this machine; kept, as LLVM would answer only after it has compiled all it has."""
    return str(host_machine().target_data)


def new_engine() -> Any:
    """Return an LLVM engine: memory for object code that is freed with it, and symbols of its own."""
    check_compiler()
    with compiling:
        host()  # LLVM is set up
        return llvm.create_mcjit_compiler(llvm.parse_assembly(""), target_machine())


@cache
def _engine() -> Any:
    return llvm.create_mcjit_compiler(llvm.parse_assembly(""), target_machine())
