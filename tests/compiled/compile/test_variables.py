# SPDX-License-Identifier: BSD-3-Clause
"""Kernels are lowered without a type for each assignment of a variable, unless a variable has two types."""

import ctypes

import numpy as np
import pytest

from tracejit.aval import Aval
from tracejit.codegen.names import DTYPES
from tracejit.codegen.templates.convolution import _windows
from tracejit.compile import numba_target
from tracejit.compile.objects import load, new_engine
from tracejit.ir import Builder, Graph
from tracejit.pipeline import build
from tracejit.program import Kernel

F32 = DTYPES["f32"]

TWO_TYPES = """def two_types(args):
    out = write_f64(args[0], 0)
    for i in range(args[2]):
        if i == 0:
            x = args[1]
            out[0] = f64(x % 2)
        else:
            x = f64(0.25)
        out[1] = f64(x) + f64(x)
"""
NO_COMMON_TYPE = """def no_common_type(args):
    for i in range(args[2]):
        if i == 0:
            x = write_f64(args[0], 0)
            x[0] = f64(args[1] % 2)
            y = x
        x = f64(0.25)
    y[1] = x + x
"""
TWO_PARTS = """def two_parts(args):
    for i in range(args[2]):
        x = write_f64(args[0], 0)
        x[0] = f64(args[1] % 2)
        y = x
        x = f64(0.25)
        y[1] = x + x
"""
ONE_TYPE = """def one_type(args):
    out = write_f64(args[0], 0)
    x = args[1]
    out[0] = f64(x % 2)
    x = 0
    y = f64(0)
    for i in range(5):
        x += i
        y = y + f64(0.05)
    out[1] = y + f64(x - 10) + f64(0.25)
"""


@pytest.fixture
def used(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the pipelines that are used."""
    found: list[str] = []
    for name in ("_Pipeline", "_ShortPipeline"):

        class Noted(getattr(numba_target, name)):  # type: ignore[misc]
            name_of_it = name

            def define_pipelines(self) -> list[object]:
                found.append(self.name_of_it)
                pipelines: list[object] = super().define_pipelines()
                return pipelines

        monkeypatch.setattr(numba_target, name, Noted)
    return found


@pytest.mark.parametrize(
    ("text", "pipelines"),
    [
        (ONE_TYPE, ["_ShortPipeline"]),
        (TWO_TYPES, ["_ShortPipeline", "_Pipeline"]),
        (NO_COMMON_TYPE, ["_ShortPipeline", "_Pipeline"]),
        (TWO_PARTS, ["_ShortPipeline"]),
    ],
)
def test_values_keep_their_types(text: str, pipelines: list[str], used: list[str]) -> None:
    """As float64, a common type, 2**53 + 1 would be even."""
    name = text.partition("(")[0].removeprefix("def ")
    code, needs = numba_target.lower(Kernel(name, text)).object_code()
    assert used == pipelines
    engine = new_engine()
    function = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(load(name, code, needs, engine))
    out = np.zeros(2)
    arguments = np.array([out.ctypes.data, 2**53 + 1, 2], np.intp)
    function(arguments.ctypes.data)
    assert out.tolist() == [1.0, 0.5]


@pytest.mark.slow
def test_object_code_is_the_same(monkeypatch: pytest.MonkeyPatch, used: list[str]) -> None:
    """That of the longest kernels, which have no variable of two types."""
    graph = Graph()
    b = Builder(graph)
    x, y = b.input(Aval((5, 30), None, F32)), b.input(Aval((30, 10), None, F32))
    graph.outputs = [b.sum(b.tanh(b.matmul(x, y)), axes=(0,), keepdims=False)]
    kernels = [*build(graph).kernels, _windows(F32, 8, 32, True, ("s", "s"), False, True, None)]
    found = [numba_target.lower(kernel).object_code() for kernel in kernels]
    used.clear()  # functions that kernels call were lowered too
    for kernel in kernels:
        numba_target.lower(kernel)
    assert used == ["_ShortPipeline"] * len(kernels)
    monkeypatch.setattr(numba_target, "_ShortPipeline", numba_target._Pipeline)
    assert [numba_target.lower(kernel).object_code() for kernel in kernels] == found


@pytest.mark.parametrize(("count", "is_probed"), [(1 << 17, False), ((1 << 17) + 1, True)])
def test_much_scratch_memory_is_probed(count: int, is_probed: bool) -> None:
    text = f"def f(args):\n    s = scratch_f32({count})\n    o = write_f32(args[0], 0)\n    o[1] = s[0]\n"
    texts = numba_target.lower(Kernel("f", text)).texts
    assert any("probe-stack" in module for module in texts) == is_probed
