# SPDX-License-Identifier: BSD-3-Clause
"""Ops alone are NumPy's loops where these are faster; a program names a loop, and has no address."""

import sys

import numpy as np
import pytest

from tracejit.aval import Aval
from tracejit.codegen import numpy_loops
from tracejit.codegen.target import written_for
from tracejit.ir import Builder, Graph
from tracejit.ops.op import contiguous
from tracejit.pipeline import build
from tracejit.program import Program, Symbol
from tracejit.runtime import ufunc_loops
from tracejit.runtime.python import PythonExecutable

NAMES = [(dtype, op, ufunc) for dtype, ops in numpy_loops._UFUNCS.items() for op, ufunc in ops.items()]


@pytest.fixture(autouse=True)
def fast_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let NumPy have its vector functions on this machine."""
    monkeypatch.setattr(numpy_loops, "of_this_machine", lambda: 64)
    monkeypatch.setattr(sys, "platform", "linux")


def program_of(graph: Graph, vector_bytes: int = 64) -> Program:
    with written_for(vector_bytes):
        return build(graph)


def symbols(program: Program) -> list[str]:
    """Return the names of the loops that a program calls."""
    return [word.name for row in program.rows for word in row.arguments if isinstance(word, Symbol)]


@pytest.mark.parametrize(("dtype", "op", "ufunc"), NAMES, ids=lambda part: str(part))
def test_bits_are_those_of_numpy(dtype: str, op: str, ufunc: str) -> None:
    function = getattr(np, ufunc)
    b = Builder(Graph())
    inputs = [b.input(Aval((3, 5), None, np.dtype(dtype))) for _ in range(function.nin)]
    b.graph.outputs = [getattr(b, op)(*inputs)]
    program = program_of(b.graph)
    types = f"{dtype * function.nin}->{dtype}"
    assert symbols(program) == [f"numpy.{ufunc}/{types}"]
    assert types in function.types
    assert ufunc_loops.address(f"numpy.{ufunc}/{types}")
    rng = np.random.default_rng(0)
    arrays = [rng.uniform(0.1, 3.0, (3, 5)).astype(dtype) for _ in inputs]
    with np.errstate(all="ignore"):
        (found,) = PythonExecutable(program)(arrays)
        np.testing.assert_array_equal(found, function(*arrays))


def test_a_number_that_all_elements_have_in_common() -> None:
    b = Builder(Graph())
    x, y = (b.input(Aval(shape, None, np.dtype("f"))) for shape in ((4,), (1,)))
    b.graph.outputs = [b.pow(x, y)]
    program = program_of(b.graph)
    assert symbols(program) == ["numpy.power/ff->f"]
    arrays = [np.arange(4, dtype="f"), np.full(1, 2.5, "f")]
    (found,) = PythonExecutable(program)(arrays)
    np.testing.assert_array_equal(found, np.power(*arrays))


def test_what_keeps_our_own_code(monkeypatch: pytest.MonkeyPatch) -> None:
    def graph(dtype: str = "f", fused: bool = False) -> Graph:
        b = Builder(Graph())
        x = b.log10(b.input(Aval((8,), None, np.dtype(dtype))))
        b.graph.outputs = [b.neg(x) if fused else x]
        return b.graph

    assert symbols(program_of(graph()))
    assert not symbols(program_of(graph(fused=True)))
    assert not symbols(program_of(graph("d")))
    assert not symbols(program_of(graph(), 32))
    strided = contiguous((8,))._replace(strides=(2,))
    with written_for(64):
        assert not symbols(build(graph(), [strided]))
    monkeypatch.setattr(sys, "platform", "darwin")
    assert not symbols(program_of(graph()))
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(numpy_loops, "of_this_machine", lambda: 32)
    assert not symbols(program_of(graph()))
