# SPDX-License-Identifier: BSD-3-Clause
"""The garbage collector, paused."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collector_paused() -> Iterator[None]:
    """Keep the garbage collector from scanning again and again what passes and compilers make objects of.

    It finds nothing to free there and takes a quarter of the time of a build, a tenth of that of a compilation.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
