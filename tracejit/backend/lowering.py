# SPDX-License-Identifier: BSD-3-Clause
"""What is compiled to LLVM's source, by Numba or without it; neither is imported before."""

from tracejit.backend.lowered import Lowered
from tracejit.program import Kernel


def lower(wanted: Kernel | str) -> Lowered:
    """Return a kernel, or the function of kernels/ of a name, as LLVM's source.

    Raises:
        CodegenError: if it cannot be compiled.
        KeyError: if there is no function of that name.
    """
    if isinstance(wanted, str):
        from tracejit.backend import wordcode

        return wordcode.lower_function(wanted)
    from tracejit.backend import compiler  # imports Numba

    return compiler.lower(wanted)
