# SPDX-License-Identifier: BSD-3-Clause
"""Kernels for more elements than indices of 32 bits can count, which mean the same, and for many arrays."""

from collections.abc import Callable, Sequence
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
from tracejit.ops import OPS, Layout
from tracejit.passes.loops.few_arguments import MOST_WORDS
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


def program(op: str, *shapes: tuple[int, ...], layouts: Sequence[Layout] = (), **params: Any) -> Program:
    """Return the program of one operation on arrays that are nowhere."""
    builder = Builder(Graph())
    result = builder.apply(OPS[op], [builder.input(Aval(shape, None, F32)) for shape in shapes], params)
    assert isinstance(result, Value)
    builder.graph.outputs = [result]
    return build_for_device(builder.graph, layouts)


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


@pytest.mark.parametrize(("op", "params"), [("exp", {}), ("sum", {"axes": (0,), "keepdims": False})])
@pytest.mark.parametrize(("strides", "bits"), [((1 << 29, 1), 64), ((1, -(1 << 29)), 64), ((1 << 20, 1), 32)])
def test_arrays_of_few_elements_that_lie_far_apart(
    op: str, params: dict[str, Any], strides: tuple[int, ...], bits: int
) -> None:
    """Such as some columns of a large array of another library: the last row is more than 2^31 elements away."""
    first, *_ = program(op, (5, 5), layouts=[Layout(0, (5, 5), strides)], **params).rows
    assert ("index64(" in first.kernel.text) == (bits == 64)


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


def many_sums(*x: Any) -> tuple[Any, ...]:
    """Return sums of many arrays over axes that do not lie in memory as one."""
    return sum(x, 0.0).sum(axis=(0, 2, 4)), *[z.sum(axis=(0, 2, 4)) for z in x]


def many_rows(*x: Any) -> tuple[Any, ...]:
    """Return rows of many arrays whose axes are turned, and products with them."""
    turned = [z.transpose(3, 0, 4, 2, 1) for z in x]
    total = sum(turned[1:], turned[0])
    centred = total - total.mean(axis=(1, 3), keepdims=True)
    return centred, *[(centred * z).sum(axis=(0, 2)) for z in turned]


@pytest.mark.parametrize("function", [many_sums, many_rows])
def test_loops_over_many_arrays_are_cut(function: Callable[..., tuple[Any, ...]]) -> None:
    """A kernel takes 4096 bytes of arguments, and the emulator no more."""
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal((3, 2, 4, 3, 2)).astype(F32) for _ in range(90)]
    program, want = program_of(function, arrays)
    assert max(len(row.arguments) for row in program.rows) <= MOST_WORDS
    agree(EmulatedProgram(program)(arrays), want, 1e-5)


def test_a_loop_that_would_fit_is_not_cut() -> None:
    program, _ = program_of(lambda *x: (sum(x, 0.0),), [np.ones((3, 4), F32)] * 90)
    assert len(program.rows) == 1


def test_a_kernel_that_takes_too_many_arguments_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The function runs on the CPU then."""
    monkeypatch.setattr(sizes, "MOST_WORDS", 5)
    with pytest.raises(CodegenError, match=r"^tanh: a GPU's kernel takes 5 arguments; this one has 7\.$"):
        program_of(lambda x: (tj.tanh(x[::2, ::2]),), [np.ones((6, 8), F32)])
