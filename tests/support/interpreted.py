# SPDX-License-Identifier: BSD-3-Clause
"""Programs run without Numba, with call paths as the compiled ones have."""

from itertools import zip_longest

import numpy as np
from tracejit.kernels.executor.state import HALTED

from tracejit.record.guards import GuardFailed
from tracejit.runtime import python


def interpreted(program, title, layouts=()):
    """Return what runs a program without Numba, with a launch() that checks its inputs as the compiled one does."""
    run = python.PythonExecutable(program, title)
    written = [*program.written]

    def launch(inputs, outputs):
        for i, (array, aval, layout) in enumerate(zip_longest(inputs, program.inputs, layouts)):
            if layout is None:
                fits = array.flags.c_contiguous and array.flags.aligned
            else:
                fits = array.strides == tuple(s * array.itemsize for s in layout.strides)
            if not fits or array.shape != aval.shape or array.dtype != aval.dtype:
                return i + 1
        if any(
            i != n and np.may_share_memory(inputs[n], other)
            for n in written
            for i, other in enumerate(inputs)
        ):
            return HALTED
        try:
            results = run(inputs)
        except GuardFailed:
            return HALTED
        for out, result in zip(outputs, results, strict=True):
            out[...] = result
        return 0

    run.launch = launch
    return run
