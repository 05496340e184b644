# SPDX-License-Identifier: BSD-3-Clause
"""Emitted recurrent layers on the Python backend: what they save is overwritten where nothing reads it."""

import numpy as np
import pytest
from op_cases import CASES, draw

from tracejit.aval import Aval
from tracejit.ir import Builder, Graph, evaluate
from tracejit.ops import Op
from tracejit.ops.op import Sample
from tracejit.pipeline import build
from tracejit.runtime.python import PythonExecutable

SAVING = [(op, sample) for op, sample in CASES if op.name in ("lstm_forward", "gru_forward")]


@pytest.mark.parametrize("count", [1, -1])
@pytest.mark.parametrize(("op", "sample"), SAVING, ids=lambda x: getattr(x, "name", ""))
def test_results_are_the_same_with_and_without_what_is_saved(op: Op, sample: Sample, count: int) -> None:
    arrays = draw(op, sample, "float64")
    graph = Graph()
    b = Builder(graph)
    results = b.apply(
        op, [b.input(Aval(array.shape, None, array.dtype)) for array in arrays], dict(sample.params)
    )
    graph.outputs = [results[0], results[count]]
    program = build(graph)
    (row,) = [row for row in program.rows if row.kernel.name.startswith(op.name)]
    numbers = [argument for argument in row.arguments if isinstance(argument, int)]
    assert numbers[-1] == (count == -1)
    for have, want in zip(PythonExecutable(program)(arrays), evaluate(graph, arrays), strict=True):
        np.testing.assert_allclose(have, want, rtol=1e-10, atol=1e-12)
