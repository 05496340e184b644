# SPDX-License-Identifier: BSD-3-Clause
"""Short ways to accelerate a function for a test."""

import gc
import threading
import types

import numpy as np

import tracejit as tj
from tracejit import (
    dlarray,
)


def dlaccelerate(function=None, **options):
    """Accelerate as MATLAB does: traces are replayed at once, without audits (tests of soundness have the rest)."""
    return tj.dlaccelerate(function, **{"confirm": 0, "audit": False, **options})


def hidden(value):
    """Return something with a value that no guard sees: in a list that only an iterator knows."""
    values = [value]
    iterator = iter(values)
    return types.SimpleNamespace(
        get=lambda: gc.get_referents(iterator)[0][0], set=lambda new: values.__setitem__(0, new)
    )


def vector(*numbers):
    return dlarray(np.array(numbers, float))


def in_threads(work, count):
    failed = []

    def run(n):
        try:
            work(n)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=run, args=(n,)) for n in range(1, count + 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
