# SPDX-License-Identifier: BSD-3-Clause
"""The address space that compilers need, and the stack that kernels need, where they are limited.

LLVM ends the process where it gets no memory (RLIMIT_AS, ``ulimit -v``), and so does the C library that starts a thread
for it. So the space that is left is checked before they are imported, and before each kernel. A kernel that finds no
room for its scratch memory on the stack (RLIMIT_STACK, ``ulimit -s``, ``threading.stack_size``) ends the process, too.
"""

import sys
import threading
from collections.abc import Iterable

from tracejit.errors import CodegenError

_MIB = 1 << 20
_IMPORTS = {"llvmlite.binding": 256 * _MIB, "numba": 48 * _MIB}  # with the threads that use them
_WORK = 64 * _MIB  # for the kernels of a program
_KIB = 1 << 10
_CALLERS = 128 * _KIB  # of a stack, for the functions that call a kernel
_LITTLE = 64 * _KIB  # of scratch memory, which any stack has room for


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


def check_stack(scratch_bytes: Iterable[int]) -> None:
    """Check that stacks of threads have room for the scratch memory of kernels.

    Args:
        scratch_bytes: of each kernel.

    Raises:
        NoRoomError: if they have less.
    """
    largest = max(scratch_bytes, default=0)
    limit = None if largest <= _LITTLE else _stack_limit()
    if limit is not None and limit < largest + _CALLERS:
        raise NoRoomError(
            f"its kernels cannot run: they need {(largest + _CALLERS) // _KIB} KiB of stack, and a stack in this "
            f"process may have {limit // _KIB} KiB. Raise the limit (ulimit -s, threading.stack_size)."
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


def _stack_limit() -> int | None:
    """Return how large stacks of threads may be, None if that is not known."""
    size = threading.stack_size()  # 0 for the default, which this call sets
    threading.stack_size(size)
    limits = [size]
    if sys.platform != "win32":
        import resource

        limit = resource.getrlimit(resource.RLIMIT_STACK)[0]
        limits.append(0 if limit == resource.RLIM_INFINITY else limit)
    return min([limit for limit in limits if limit], default=None)
