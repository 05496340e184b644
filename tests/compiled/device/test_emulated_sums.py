# SPDX-License-Identifier: BSD-3-Clause
"""Sums on a device whose results are large: a thread for each element of the result, none of whose copies is made."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from device_cases import agree
from effort import by_turns
from llvm_texts import NEEDS_LLVM_22
from on_device import EmulatedProgram, program_of
from ptx_emulator import PtxError

import tracejit as tj
from tracejit.aval import Aval
from tracejit.ir import Builder, Graph
from tracejit.passes.loops import spread
from tracejit.pipeline import build_for_device
from tracejit.program import Grid

F32 = np.float32
pytestmark = NEEDS_LLVM_22


@pytest.mark.parametrize(
    ("shape", "axes", "grids"),
    [
        # More than spread.MOST_COPIED elements of the result.
        ((3, 5_000_000), (0,), [(39063, 128)]),
        ((3, 3, 2_000_000), (0,), [(46875, 128)]),
        ((3, 2_000_000, 3), (0, 2), [(15625, 128)]),
        # Elements of the result that do not lie as one axis, of which few copies would be made.
        ((64, 50, 1024), (1,), [(512, 128)]),
        ((16, 64, 56, 56), (1,), [(392, 128)]),
        ((3, 200_000, 50), (0, 2), [(1563, 128)]),
        # Copies that keep all multiprocessors busy, which one more launch combines.
        ((100, 100_000), (0,), [(490, 128), (3125, 1024)]),
        ((2000, 262_144), (0,), [(512, 128), (8192, 1024)]),
        ((4, 1_000_000, 64), (1,), [(512, 128), (8, 1024)]),
        ((128, 512), (0,), [(32, 128), (16, 1024)]),
    ],
    ids=str,
)
def test_the_threads_of_a_sum(
    shape: tuple[int, ...], axes: tuple[int, ...], grids: list[tuple[int, int]]
) -> None:
    graph = Graph()
    b = Builder(graph)
    x = b.input(Aval(shape, None, np.dtype(F32)))
    graph.outputs = [b.sum(b.exp(x), axes=axes, keepdims=False)]
    assert [row.grid for row in build_for_device(graph).rows] == [Grid(*grid) for grid in grids]


SUMS: list[tuple[Callable[..., tuple[Any, ...]], tuple[tuple[int, ...], ...]]] = [
    (lambda x: (x.sum(axis=0),), ((3, 5000),)),
    (lambda x: (tj.exp(x).sum(axis=0), x.max(axis=0), (x > 0).all(axis=0)), ((3, 700),)),
    (lambda x: (tj.exp(x).sum(axis=1), tj.tanh(x)), ((5, 4, 170),)),
    (lambda x: (tj.exp(x).sum(axis=(0, 2)),), ((3, 400, 5),)),
    (lambda x: (tj.exp(x).sum(axis=(0, 2)).sum(),), ((3, 400, 5),)),
    (lambda x: (x.sum(axis=1), x.sum(axis=0), x.sum()), ((12, 300),)),
    (lambda x, y: ((x * y).sum(axis=1), (x * y).prod(axis=1)), ((7, 3, 90), (3, 1))),
    (lambda x: ((x**2).mean(axis=(1, 3)),), ((6, 5, 30, 4),)),
    (lambda x: (x[::2, 1:].sum(axis=0), x.T.sum(axis=1)), ((9, 401),)),
    (lambda x: (x.sum(axis=1),), ((1, 3, 300),)),
]


@pytest.mark.parametrize(("number", "dtype"), by_turns(range(len(SUMS)), ["float32", "int32", "float64"]))
def test_sums_without_copies(number: int, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    function, shapes = SUMS[number]
    monkeypatch.setattr(spread, "MOST_COPIED", 64)
    rng = np.random.default_rng(0)
    arrays = [(2 * rng.standard_normal(shape)).astype(dtype) for shape in shapes]
    program, want = program_of(function, arrays)
    if function is SUMS[0][0]:
        ((row),) = program.rows
        assert row.grid == Grid(40, 128)
    agree(EmulatedProgram(program)(arrays), want)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("i0 = thread()", "i0 = group()"),
        ("i0 = index(i0 + threads())", "i0 = index(i0 + threads() + 1)"),
        ("i1 = index(0)", "i1 = index(1)"),
        ("while i1 < n1:", "while i1 <= n1:"),
        ("i1 = index(i1 + 1)", "i1 = index(i1 + 2)"),
    ],
)
def test_planted_faults_are_found(old: str, new: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spread, "MOST_COPIED", 64)
    arrays = [np.random.default_rng(0).standard_normal((3, 500)).astype(F32)]
    program, want = program_of(lambda x: (x.sum(axis=0),), arrays)
    (row,) = program.rows
    assert old in row.kernel.text
    kernel = row.kernel._replace(text=row.kernel.text.replace(old, new))
    faulty = row._replace(kernel=kernel, grid=Grid(2, 128))
    with pytest.raises((PtxError, AssertionError)):
        agree(EmulatedProgram(program._replace(rows=[faulty]))(arrays), want)
