# SPDX-License-Identifier: BSD-3-Clause
"""What is compiled to LLVM's source, by Numba or without it; neither is imported before."""

from tracejit.compile.llvm import LlvmFunction
from tracejit.program import Kernel


def lower(wanted: Kernel | str) -> LlvmFunction:
    """Return a kernel, or the function of kernels/ of a name, as LLVM's source.

    Raises:
        CodegenError: if it cannot be compiled.
        KeyError: if there is no function of that name.
    """
    if isinstance(wanted, str):
        from tracejit.compile import machine_words

        return machine_words.lower_function(wanted)
    from tracejit.compile import numba_target  # imports Numba

    return numba_target.lower(wanted)
