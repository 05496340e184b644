# SPDX-License-Identifier: BSD-3-Clause
"""Methods of classes written in C that are exchanged for as long as something is recorded."""

import os

from tracejit.record.current import thread
from tracejit.record.exchanged_methods import Exchangeable, ExchangedMethods

_methods: list[Exchangeable] = []
_BLOCKS = ExchangedMethods(_methods)


def add(method: Exchangeable) -> None:
    """Have a method exchanged from now on, also in recordings that are open."""
    _methods.append(method)
    _BLOCKS.put_new()


def begin(recording: object) -> None:
    """Exchange the methods while a recording is open."""
    _BLOCKS.begin(id(recording))


def end(recording: object) -> None:
    """Put the methods back, if this was the last recording that was open; may be called twice."""
    _BLOCKS.end(id(recording))


def _in_child() -> None:
    """Put the methods back in a forked child, which does not have the threads that recorded."""
    if thread.recorder is None:
        _BLOCKS.end_all()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
