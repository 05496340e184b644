# SPDX-License-Identifier: BSD-3-Clause
"""Lowers kernels and int64 functions to LLVM IR; imports Numba at the first kernel."""

from collections.abc import Iterator
from contextlib import contextmanager

from tracejit.compile.llvm import LlvmFunction
from tracejit.program import Kernel
from tracejit.util.locks import check_compiler, compiling, wait_before_logging
from tracejit.util.room import check_room


@contextmanager
def lowering() -> Iterator[None]:
    """Hold the lock of the compiler while the block imports Numba, or lowers.

    Raises:
        CodegenError: if this process cannot compile, or has too little memory for it.
    """
    check_compiler()
    check_room(compiles=True)
    wait_before_logging()
    with compiling:
        yield


def lower(wanted: Kernel | str) -> LlvmFunction:
    """Return a kernel, or the int64 function of a name, as LLVM IR.

    Raises:
        CodegenError: if it cannot be lowered.
        KeyError: if there is no function of that name.
    """
    if isinstance(wanted, str):
        from tracejit.compile import machine_words

        return machine_words.lower_function(wanted)
    from tracejit.compile import numba_target  # imports Numba

    return numba_target.lower(wanted)
