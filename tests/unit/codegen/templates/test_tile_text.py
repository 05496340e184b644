# SPDX-License-Identifier: BSD-3-Clause
"""Kernels written as text: for the vectors of every CPU, and with arguments of more than one dtype."""

import numpy as np
import pytest
from op_cases import CASES, draw

from tracejit.aval import Aval
from tracejit.codegen import target
from tracejit.codegen.templates import by_op
from tracejit.codegen.templates.tile_text import written
from tracejit.ir import Builder, Graph, evaluate
from tracejit.ops import Op
from tracejit.ops.op import KernelCall, Sample
from tracejit.pipeline import build
from tracejit.runtime.python import PythonExecutable

TEXTS = [
    (op, sample)
    for op, sample in CASES
    if isinstance(op.emit, KernelCall) and op.emit.name in by_op.TEXTS and sample is op.samples[-1]
]


@pytest.mark.parametrize("vector_bytes", [16, 32])
@pytest.mark.parametrize(("op", "sample"), TEXTS, ids=lambda x: getattr(x, "name", ""))
def test_kernels_for_vectors_of_other_cpus(op: Op, sample: Sample, vector_bytes: int) -> None:
    arrays = draw(op, sample, "float32")
    graph = Graph()
    b = Builder(graph)
    result = b.apply(
        op, [b.input(Aval(array.shape, None, array.dtype)) for array in arrays], dict(sample.params)
    )
    graph.outputs = list(result) if isinstance(result, tuple) else [result]
    with target.written_for(vector_bytes):
        program = build(graph)
    for have, want in zip(PythonExecutable(program)(arrays), evaluate(graph, arrays), strict=True):
        np.testing.assert_allclose(have, want, rtol=1e-5, atol=1e-6)


def test_names_in_capitals_stand_for_the_dtype_and_snippets_for_their_lines() -> None:
    with target.written_for(32):
        kernel = written(
            "some", "for i in range(SIZE):\n    LINES\nT_rest = WIDE\n", np.dtype("float64"), ("n",), "x index:i64",
            "out:f32", {"SIZE": 7}, {"LINES": "store_V(out, i, load_W(x, i))\nV(T(0.0))"},
        )  # fmt: skip
    assert kernel.text == (
        f"def {kernel.name}(args):\n"
        "    n = args[0]\n"
        "    x = read_f64(args[1])\n"
        "    index = read_i64(args[2])\n"
        "    out = write_f32(args[3], 0)\n"
        "    for i in range(7):\n"
        "        store_f64x4(out, i, load_f64x8(x, i))\n"
        "        f64x4(f64(0.0))\n"
        "    T_rest = 8\n"
    )
