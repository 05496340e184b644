# SPDX-License-Identifier: BSD-3-Clause
"""Kernels for more elements than indices of 32 bits can count: they have 64 bits, and mean the same."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from device_cases import agree
from device_programs import LONG_ROWS, PROGRAMS
from llvm_texts import NEEDS_LLVM_22
from on_device import EmulatedProgram, program_of

import tracejit as tj
from tracejit.aval import Aval
from tracejit.codegen.device import sizes
from tracejit.errors import CodegenError
from tracejit.ir import Builder, Graph, Value
from tracejit.ops import OPS
from tracejit.pipeline import build_for_device
from tracejit.program import Program

F32 = np.dtype(np.float32)
pytestmark = NEEDS_LLVM_22
MOVED: list[tuple[Callable[..., tuple[Any, ...]], tuple[tuple[int, ...], ...]]] = [
    (lambda x, y: (x @ y, (x @ y).sum()), ((70, 33), (33, 65))),
    (lambda x, y: (x[1:].T @ y[1:, 3:],), ((34, 68), (34, 67))),
    (lambda x, y: (x @ y,), ((3, 5, 4), (3, 4, 6))),
    (lambda x: (np.sort(x, axis=1), np.cumsum(x, axis=0), x.argmax(axis=1)), ((7, 9),)),
    *LONG_ROWS.values(),
]


def program(op: str, *shapes: tuple[int, ...], **params: Any) -> Program:
    """Return the program of one operation on arrays that are nowhere."""
    builder = Builder(Graph())
    result = builder.apply(OPS[op], [builder.input(Aval(shape, None, F32)) for shape in shapes], params)
    assert isinstance(result, Value)
    builder.graph.outputs = [result]
    return build_for_device(builder.graph)


@pytest.mark.parametrize(("function", "shapes"), [*PROGRAMS, *MOVED])
def test_indices_of_64_bits_mean_the_same(
    function: Callable[..., tuple[Any, ...]], shapes: tuple[tuple[int, ...], ...],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(shape).astype(F32) for shape in shapes]
    monkeypatch.setattr(sizes, "MOST_ELEMENTS", -1)
    wide, want = program_of(function, arrays)
    assert not any("index(" in row.kernel.text for row in wide.rows)
    agree(EmulatedProgram(wide)(arrays), want)


@pytest.mark.parametrize(
    ("op", "shapes"),
    [
        ("exp", ((1 << 31,),)),
        ("exp", (((1 << 30) + 1,),)),  # the next index of a thread would not fit
        ("add", ((40_000, 1, 1, 3), (1, 40_000, 3, 1))),
        ("matmul", ((50_000, 50_000), (50_000, 9))),
    ],
)
def test_large_launches_have_indices_of_64_bits(op: str, shapes: tuple[tuple[int, ...], ...]) -> None:
    rows = program(op, *shapes).rows
    assert rows and all("index64(" in row.kernel.text for row in rows)


def test_other_launches_have_indices_of_32_bits() -> None:
    assert "index64" not in program("exp", (1 << 30,)).rows[0].kernel.text


def test_a_sum_over_more_pairs_than_32_bits_count() -> None:
    """No array is large, but threads count pairs."""
    builder = Builder(Graph())
    x, y = [builder.input(Aval(shape, None, F32)) for shape in ((100_001, 1), (1, 100_001))]
    pairs = builder.apply(OPS["sub"], [x, y], {})
    assert isinstance(pairs, Value)
    total = builder.apply(OPS["sum"], [pairs], {"axes": (0, 1), "keepdims": False})
    assert isinstance(total, Value)
    builder.graph.outputs = [total]
    first, *_ = build_for_device(builder.graph).rows
    assert "index64(" in first.kernel.text


def test_kernels_whose_indices_have_32_bits_alone_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The function runs on the CPU then, and the log says why."""
    monkeypatch.setattr(sizes, "MOST_ELEMENTS", 10)
    arrays = [np.ones(shape, F32) for shape in ((1, 1, 5, 5), (1, 1, 3, 3))]
    with pytest.raises(CodegenError, match=r"a GPU's kernel takes arrays of up to 10 elements\.$"):
        program_of(lambda x, w: (tj.dlconv(x, w, None, data_format="BCSS", weights_format="UCSS"),), arrays)
