# SPDX-License-Identifier: BSD-3-Clause
"""Loops that compute little from several arrays have vectors of 32 bytes (Note [streams])."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tracejit.aval import Aval
from tracejit.codegen.target import written_for
from tracejit.ir import Builder, Graph
from tracejit.pipeline import build
from tracejit.runtime.python import PythonExecutable

LINE = "vectors_of_32_bytes()"
Body = Callable[[Builder, Any, Any, Any], Any]
STREAMS: dict[str, Body] = {
    "a sum": lambda b, x, y, p: b.add(x, y),
    "a quotient": lambda b, x, y, p: b.div(x, y),
    "two ops": lambda b, x, y, p: b.mul(b.add(x, y), 2.0),
}
OTHERS: dict[str, Body] = {
    "one array": lambda b, x, y, p: b.add(x, 1.0),
    "a dear op": lambda b, x, y, p: b.pow(b.abs(x), y),
    "many ops": lambda b, x, y, p: b.sub(b.mul(b.sub(x, y), x), y),
    "a narrower result": lambda b, x, y, p: b.less(x, y),
    "rows": lambda b, x, y, p: b.add(x, p),
    "a fold": lambda b, x, y, p: b.sum(b.add(x, y), axes=(1,), keepdims=False),
}


def graph(body: Body) -> Graph:
    b = Builder(Graph())
    shapes = ((6, 20), (6, 20), (1, 20))
    b.graph.outputs = [body(b, *[b.input(Aval(shape, None, np.dtype(np.float32))) for shape in shapes])]
    return b.graph


def text(body: Body, vector_bytes: int = 64) -> str:
    with written_for(vector_bytes):
        return "".join(kernel.text for kernel in build(graph(body)).kernels)


@pytest.mark.parametrize("name", STREAMS)
def test_streams(name: str) -> None:
    assert LINE in text(STREAMS[name])
    assert LINE not in text(STREAMS[name], 32)


@pytest.mark.parametrize("name", OTHERS)
def test_other_loops(name: str) -> None:
    assert LINE not in text(OTHERS[name])


def test_the_line_means_nothing_to_python() -> None:
    x, y, p = (np.ones(shape, np.float32) for shape in ((6, 20), (6, 20), (1, 20)))
    with written_for(64):
        (found,) = PythonExecutable(build(graph(STREAMS["a sum"])))([x, y, p])
    np.testing.assert_array_equal(found, x + y)
