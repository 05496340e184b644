# SPDX-License-Identifier: BSD-3-Clause
"""The address space that compilers need, where it is limited (RLIMIT_AS, ``ulimit -v``).

LLVM ends the process where it gets no memory, and so does the C library that starts a thread for it. So what is left is
looked at before they are imported, and before each kernel.
"""

import sys

from tracejit.errors import CodegenError

_MIB = 1 << 20
_IMPORTS = {"llvmlite.binding": 256 * _MIB, "numba": 48 * _MIB}  # with the threads that use them
_WORK = 64 * _MIB  # for the kernels of a program


class NoRoomError(CodegenError):
    """Less address space is left than compilers need; nothing was tried."""


def check_room(compiles: bool = False) -> None:
    """Check that enough address space is left to load kernels.

    Args:
        compiles: whether to compile them, too.

    Raises:
        NoRoomError: if there is less.
    """
    left = _left_bytes()
    if left is None:
        return
    modules = ("llvmlite.binding", "numba") if compiles else ("llvmlite.binding",)
    needed = _WORK + sum(_IMPORTS[module] for module in modules if module not in sys.modules)
    if left < needed:
        raise NoRoomError(
            f"nothing can be compiled or loaded: {left // _MIB} MiB of address space are left to this process, and "
            f"the compiler needs {needed // _MIB} MiB. Raise the limit (ulimit -v)."
        )


def is_limited() -> bool:
    """Return whether the address space of this process is limited."""
    return _left_bytes() is not None


def _left_bytes() -> int | None:
    """Return how much address space this process may still take, None if it is not limited or not known."""
    if not sys.platform.startswith("linux"):
        return None
    import resource

    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit == resource.RLIM_INFINITY:
        return None
    try:
        with open("/proc/self/statm", "rb") as file:
            pages = int(file.read().split()[0])
    except OSError:
        return None
    return max(0, limit - pages * resource.getpagesize())
