# SPDX-License-Identifier: BSD-3-Clause
"""Locks in a process that forks.

Note [forks]
A forked child has one thread, the one that forked. Locks of other threads stay locked in it, and whatever they were
changing stays half changed. There are two kinds of locks, for the two ways out:

    new_lock()          free in the child, whoever held it: what it guards is never seen between two states, so the
                        child goes on with it as any other thread would
    forks_wait_for()    taken by the thread that forks, before it forks: what such a lock guards is seen between two
                        states while it is held. They are `compiling`, which is held while a module of a compiler is
                        imported, a kernel is lowered, or object code is loaded, the locks of Numba and LLVM, and those
                        of new_compiler_lock()

So a fork waits until the kernel that another thread compiles is done, some tens of milliseconds. It waits no longer
than WAIT_S in all, as the other thread may itself wait for the one that forks. After that the child counts as one that
can neither compile nor load: check_compiler() raises an error in it, and it never hangs.

Note [order of hooks]
Before a fork Python lists the hooks to run, and runs the newest first. That of `logging` takes a lock, which a thread
that imports Numba needs: so ours has to be newer, or the fork waits for that thread, and the thread for the fork. And
if that thread is the first to import `logging`, it must not do so while a fork waits: the fork would run only the
second hook of that module's pair. So before Numba is imported wait_before_logging() imports `logging`, and then
registers our hooks once more. Both then take the locks; _Fork keeps a stack, so one after the other gives them back.
"""

import os
import sys
import threading
import time
import weakref
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from tracejit.errors import CodegenError

WAIT_S = 10.0
_made: "weakref.WeakSet[Any]" = weakref.WeakSet()


def new_lock() -> Any:
    """Return a lock that a thread can take again while it holds it, and that is free in a forked child."""
    lock = threading.RLock()
    _made.add(lock)
    return lock


compiling: Any = threading.RLock()
"""Held by the thread that imports a compiler, lowers a kernel or loads object code."""
_waited_for: list[Callable[[], Any]] = [lambda: compiling]


def new_compiler_lock() -> Any:
    """Return a lock that a thread holds while it uses a compiler, and for which each fork waits."""
    lock = threading.RLock()
    _waited_for.append(lambda: lock)
    return lock


def forks_wait_for(module: str, *names: str) -> None:
    """Have each fork wait for a lock: an attribute of an attribute ... of a module, once that is imported.

    Threads that take several of these locks take them in the order in which they were given here.
    """

    def find() -> Any:
        value: Any = sys.modules.get(module)
        for name in names:
            value = getattr(value, name, None)
        return value

    _waited_for.append(find)


class _Fork(threading.local):
    """The locks that this thread takes in order to fork, a tuple for each hook that ran, and whether it got all."""

    def __init__(self) -> None:
        self.taken: list[tuple[Any, ...]] = []
        self.complete = True


_fork = _Fork()
_can_compile = True


def check_compiler() -> None:
    """Check that this process can compile and load.

    Raises:
        CodegenError: in a child that was forked while another thread compiled, and did not finish.
    """
    if not _can_compile:
        raise CodegenError(
            "nothing can be compiled or loaded in this process: it was forked while another thread was compiling, and "
            f"did not finish within {WAIT_S:g} s. Fork before that thread starts, or start processes that share "
            'nothing (multiprocessing.get_context("spawn")).'
        )


def _before() -> None:
    if not _fork.taken:
        _fork.complete = True
    _fork.taken.append(())
    deadline = time.monotonic() + WAIT_S * _fork.complete
    for find in _waited_for:
        lock = find()
        if lock is None:
            continue
        _fork.taken[-1] += (lock,)  # first: an exception of a signal handler may follow the next line
        if not lock.acquire(timeout=max(0.0, deadline - time.monotonic())):
            _fork.complete = False


def _release() -> None:
    for lock in reversed(_fork.taken.pop() if _fork.taken else ()):
        with suppress(RuntimeError):  # it could not be taken
            lock.release()


def _in_child() -> None:
    global _can_compile
    for lock in list(_made):
        if not lock._is_owned():  # by this thread, whose code goes on in the child
            lock._at_fork_reinit()
    _can_compile = _can_compile and _fork.complete and not _half_imported()
    _release()


def _half_imported() -> bool:
    """Return whether a thread that the child does not have was importing a compiler."""
    return any(
        name.partition(".")[0] in ("numba", "llvmlite")
        and getattr(getattr(module, "__spec__", None), "_initializing", False)
        for name, module in list(sys.modules.items())
    )


def _register() -> None:
    global _waits_before_logging
    if hasattr(os, "register_at_fork"):
        _waits_before_logging = "logging" in sys.modules
        os.register_at_fork(before=_before, after_in_parent=_release, after_in_child=_in_child)


def wait_before_logging() -> None:
    """Import `logging`, and have forks wait for compilers before they take its lock (Note [order of hooks])."""
    if not _waits_before_logging:
        import logging  # noqa: F401

        _register()


_waits_before_logging = False
_register()
