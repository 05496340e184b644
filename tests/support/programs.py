# SPDX-License-Identifier: BSD-3-Clause
"""Programs built of a function of arrays, run without Numba and compared with what was recorded."""

import numpy as np

from tracejit import tree
from tracejit.ir import verify
from tracejit.pipeline import build
from tracejit.record.recorder import Recorder, wrap
from tracejit.runtime.python import PythonExecutable


def program_of(fun, *args, rtol=1e-12):
    """Return the program of ``fun(*args)``, after its outputs were found equal to NumPy's."""
    leaves, treedef = tree.flatten(args)
    leaves = [wrap(np.ascontiguousarray(x), getattr(x, "format", None)) for x in leaves]
    with Recorder("fun") as recorder:
        inputs = [recorder.input(leaf) for leaf in leaves]
        outputs = tree.flatten(fun(*tree.unflatten(treedef, inputs)))[0]
        recorder.graph.outputs = [recorder.value(output) for output in outputs]
        expected = [output._data.copy() for output in outputs]
    verify(recorder.graph)
    program = build(recorder.graph)
    results = PythonExecutable(program)([leaf._data for leaf in leaves])
    for have, want in zip(results, expected, strict=True):
        assert have.dtype == want.dtype
        np.testing.assert_allclose(have, want, rtol=rtol, atol=rtol * 0.1)
    return program
