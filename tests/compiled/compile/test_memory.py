# SPDX-License-Identifier: BSD-3-Clause
"""A compiled kernel leaves its machine code behind: nothing of Numba's and of LLVM's work on it."""

import gc
import linecache
from collections import Counter
from typing import Any

import llvmlite.binding as llvm
import pytest
from llvmlite import ir as llvm_ir
from llvmlite.binding.newpassmanagers import ModulePassManager, NewPassManager
from numba.core import compiler
from numba.core import ir as numba_ir

from tracejit.aval import Aval
from tracejit.codegen.names import DTYPES
from tracejit.compile import numba_target
from tracejit.compile.objects import load, new_engine
from tracejit.errors import CodegenError
from tracejit.ir import Builder, Graph
from tracejit.pipeline import build
from tracejit.program import Kernel

WORKED_ON = (
    llvm_ir.Module, llvm_ir.Function, llvm_ir.Instruction, numba_ir.FunctionIR, numba_ir.Expr,
    numba_target._Library, compiler.CompileResult, llvm.ModuleRef, llvm.context.ContextRef,
)  # fmt: skip


def kernel(number: int, rows: int = 3) -> Kernel:
    """Return a kernel whose text only this number gives."""
    graph = Graph()
    b = Builder(graph)
    y = b.input(Aval((rows, 5), None, DTYPES["f64"]))
    for bit in f"{number:b}":
        y = b.tanh(y) if bit == "1" else b.square(b.sub(y, 0.25))
    graph.outputs = [y, b.sum(y, axes=(1,), keepdims=False)]
    (found,) = build(graph).kernels
    return found


def alive() -> Counter[str]:
    """Count the objects that a compilation makes."""
    gc.collect()
    return Counter(type(item).__name__ for item in gc.get_objects() if isinstance(item, WORKED_ON))


@pytest.fixture
def managers(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Counts pass managers that are made and freed; LLVM has them, not Python."""
    found: Counter[str] = Counter()

    def counting(owner: Any, name: str, what: str) -> None:
        function = getattr(owner, name)

        def counted(*args: Any) -> Any:
            found[what] += 1
            return function(*args)

        monkeypatch.setattr(owner, name, counted)

    counting(ModulePassManager, "__init__", "made")
    counting(NewPassManager, "_dispose", "freed")
    return found


def test_nothing_of_a_compilation_is_kept(managers: Counter[str]) -> None:
    engine = new_engine()

    def compiled(number: int) -> int:
        lowered = numba_target.lower(kernel(number))
        code, needs = lowered.object_code()
        return load(lowered.symbol, code, needs, engine)

    compiled(16)  # what all kernels share
    before, lines = alive(), set(linecache.cache)
    made = {compiled(number) for number in (17, 18, 19)}
    assert len(made) == 3
    assert alive() == before
    assert set(linecache.cache) == lines
    assert managers == {"made": 4, "freed": 4}


def test_an_error_keeps_nothing_either() -> None:
    def refused(name: str) -> None:
        with pytest.raises(CodegenError):
            numba_target.lower(Kernel(name, f"def {name}(args):\n    x = args[0] + nowhere\n"))

    refused("first")
    before, lines = alive(), set(linecache.cache)
    for name in ("second", "third", "fourth"):
        refused(name)
    assert alive() == before
    assert set(linecache.cache) == lines
