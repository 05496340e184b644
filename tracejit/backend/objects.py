# SPDX-License-Identifier: BSD-3-Clause
"""Object code into memory, by LLVM alone: Numba is not imported."""

import threading
from functools import cache
from typing import Any

import llvmlite.binding as llvm

from tracejit.errors import CodegenError

_lock = threading.Lock()


def load(symbol: str, code: bytes) -> int:
    """Return the address of the function `symbol` of an object file, which stays loaded.

    Raises:
        CodegenError: if the object file does not define it.
    """
    with _lock:
        engine = _engine()
        engine.add_object_file(llvm.ObjectFileRef.from_data(code))
        engine.finalize_object()
        address = engine.get_function_address(symbol)
    if not address:
        raise CodegenError(f"object code of the kernel {symbol} defines no function of that name")
    return int(address)


@cache
def _engine() -> Any:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine(jit=True)
    return llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
