# SPDX-License-Identifier: BSD-3-Clause
"""Rows of more than 1024 elements on a device, each of which a block takes, in PTX that an emulator runs."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from device_cases import agree
from device_programs import FULL_ROWS, LONG_ROWS, affine, squashed
from effort import by_turns
from llvm_texts import NEEDS_LLVM_22
from on_device import EmulatedProgram, program_of
from ptx_emulator import PtxError

import tracejit as tj
from tracejit.passes.loops import kept_values, spread
from tracejit.program import Grid

F32 = np.float32
pytestmark = NEEDS_LLVM_22


@pytest.mark.parametrize(
    ("name", "spare", "dtype"),
    # In registers, and read again by each pass.
    by_turns([*LONG_ROWS], [kept_values.SPARE, 1000], ["float32", "float64"]),
)
@pytest.mark.slow
def test_long_rows(name: str, spare: int, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_values, "SPARE", spare)
    function, shapes = LONG_ROWS[name]
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(shape).astype(dtype) for shape in shapes]
    program, want = program_of(function, arrays)
    agree(EmulatedProgram(program)(arrays), want, 2e-5 if dtype == "float32" else 1e-12)


@pytest.mark.parametrize("name", FULL_ROWS)
@pytest.mark.slow
def test_rows_of_which_a_group_has_too_many_elements(name: str) -> None:
    function, shapes = FULL_ROWS[name]
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(shape) for shape in shapes]
    program, want = program_of(function, arrays)
    assert any("thread_of_block" in row.kernel.text for row in program.rows)
    agree(EmulatedProgram(program)(arrays), want, 1e-12)


@pytest.mark.slow
def test_blocks_take_several_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spread, "MOST_BLOCKS", 2)
    monkeypatch.setattr(spread, "MOST_TURNS", 2)
    for name, spare in (("norm", 64), ("softmax", 64), ("norm", 1000), ("a fold alone", 64)):
        monkeypatch.setattr(kept_values, "SPARE", spare)
        function, shapes = LONG_ROWS[name]
        arrays = [np.random.default_rng(0).standard_normal(shape).astype(F32) for shape in shapes]
        program, want = program_of(function, arrays)
        assert program.rows[0].grid is not None and program.rows[0].grid.blocks <= 2
        agree(EmulatedProgram(program)(arrays), want)


def rows_of(function: Callable[..., tuple[Any, ...]], *shapes: tuple[int, ...]) -> list[Any]:
    return program_of(function, [np.ones(shape, F32) for shape in shapes])[0].rows


@pytest.mark.parametrize(
    ("columns", "threads"),
    [(1028, 96), (1027, 160), (2048, 128), (2052, 160), (4096, 256), (4099, 512), (8192, 512), (8196, 512)],
)
def test_a_block_has_the_threads_that_its_row_takes(columns: int, threads: int) -> None:
    (row,) = rows_of(lambda x: (tj.softmax(x, axis=1),), (3, columns))
    assert row.grid == Grid(3, threads)


@pytest.mark.parametrize(
    ("dtype", "columns", "threads"),
    [
        ("float32", 128, 128), ("float32", 256, 128), ("float32", 1024, 64), ("float32", 2048, 128),
        ("float64", 128, 128), ("float64", 256, 32), ("float64", 1024, 128), ("float64", 2048, 256),
        ("float64", 4096, 256), ("float64", 1027, 160), ("float64", 2051, 256), ("float32", 8192, 512),
    ],
)  # fmt: skip
def test_a_thread_has_as_many_elements_as_it_has_registers_for(
    dtype: str, columns: int, threads: int
) -> None:
    arrays = [np.ones(shape, dtype) for shape in ((3, columns), (columns,), (columns,))]
    row = program_of(affine, arrays)[0].rows[0]
    assert row.grid is not None and row.grid.threads == threads


def test_other_lengths_have_the_same_kernels() -> None:
    def names(columns: int) -> tuple[str, ...]:
        return tuple([row.kernel.name for row in rows_of(squashed, (3, columns))])

    for same in ((1028, 2000, 3100, 4096), (4100, 6000, 8192), (20000, 100_000)):
        assert len({names(columns) for columns in same}) == 1
    assert len({names(columns) for columns in (1024, 1028, 4100, 20000)}) == 4


def test_rows_that_are_kept_are_loaded_once() -> None:
    (row,) = rows_of(lambda x: (tj.softmax(x, axis=1),), (3, 4096))
    assert row.kernel.text.count("= load_x4(p0") == 4
    (row,) = rows_of(lambda x: (tj.softmax(x, axis=1),), (3, 40960))
    assert "while column < n1" in row.kernel.text


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("i0 = block()", "i0 = group()"),
        ("i0 = index(i0 + blocks())", "i0 = index(i0 + blocks() + 1)"),
        ("        barrier()\n        v0 =", "        v0 ="),
        ("if lane() == 0:\n            folded4", "if lane() == 33:\n            folded4"),
        ("apart = index(threads_of_block() * 4)", "apart = index(threads_of_block() * 3)"),
        ("is_of_group = lane() < groups_of_block", "is_of_group = lane() <= groups_of_block"),
        ("        barrier()\n        i0", "        i0"),
    ],
)
def test_planted_faults_are_found(old: str, new: str) -> None:
    arrays = [np.random.default_rng(0).standard_normal((3, 1300)).astype(F32)]
    program, want = program_of(lambda x: (tj.exp(x).sum(axis=1),), arrays)
    (row,) = program.rows
    assert old in row.kernel.text
    kernel = row.kernel._replace(text=row.kernel.text.replace(old, new))
    faulty = row._replace(kernel=kernel, grid=Grid(2, 96))
    with pytest.raises((PtxError, AssertionError)):
        agree(EmulatedProgram(program._replace(rows=[faulty]))(arrays), want)
