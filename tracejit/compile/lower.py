# SPDX-License-Identifier: BSD-3-Clause
"""Lowers kernels and int64 functions to LLVM IR; imports Numba at the first kernel."""

from tracejit.compile.llvm import LlvmFunction
from tracejit.program import Kernel


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
