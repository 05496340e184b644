# SPDX-License-Identifier: BSD-3-Clause
"""The places of the largest and smallest elements on a device, which groups of threads look for, in an emulator."""

from typing import Any

import numpy as np
import pytest
from bits import same_bits
from effort import by_turns
from llvm_texts import NEEDS_LLVM_22
from on_device import EmulatedProgram, program_of
from ptx_emulator import PtxError

import tracejit as tj
from tracejit.passes.loops import spread
from tracejit.program import Grid

pytestmark = NEEDS_LLVM_22
SHAPES: list[tuple[tuple[int, ...], int | None]] = [
    ((1,), None), ((9,), None), ((600,), None), ((5000,), None), ((5, 1100), None), ((3, 5, 7), None),
    ((9, 600), 1), ((40, 33), 1), ((4, 3, 70), 2), ((2, 513), -1), ((1, 2000), 1), ((150, 3), 0), ((0, 5), 1),
]  # fmt: skip


KINDS = ("several", "different", "equal", "NaN", "last")


def numbers(shape: tuple[int, ...], dtype: str, kind: str) -> np.ndarray:
    """Return numbers: several extrema in a row, one, all of a row, some NaN, or NaN at the end."""
    rng = np.random.default_rng(0)
    x = rng.integers(-4, 5, shape).astype(dtype)
    if kind == "different":
        x = rng.permutation(x.size).reshape(shape).astype(dtype)
    if kind == "equal":
        x[...] = 1
    if kind == "NaN":
        x[rng.random(shape) < 0.01] = np.nan
    if kind == "last":
        x.reshape(-1)[-1:] = np.nan
    return x


CASES = [
    *[(*each, "float32", kind) for each, kind in by_turns(SHAPES, KINDS)],
    *[(*each, "float32", kind) for each in (((600,), None), ((9, 600), 1)) for kind in KINDS],
    *[((2, 513), -1, dtype, kind) for dtype in ("int64", "int32", "bool", "float16") for kind in ("several", "equal")],
    *[((2, 513), None, "float64", kind) for kind in ("several", "NaN", "last")],
]  # fmt: skip


@pytest.mark.parametrize(("shape", "axis", "dtype", "kind"), CASES)
@pytest.mark.slow
def test_places_are_those_of_numpy(shape: tuple[int, ...], axis: int | None, dtype: str, kind: str) -> None:
    x = numbers(shape, dtype, kind)
    program, _ = program_of(lambda x: (np.argmax(x, axis=axis), np.argmin(x, axis=axis)), [x])
    found = EmulatedProgram(program)([x])
    want = [np.asarray(function(x, axis=axis)) for function in (np.argmax, np.argmin)]
    assert all(map(same_bits, found, want))


def rows_of(shape: tuple[int, ...], axis: int | None) -> list[Any]:
    program, _ = program_of(lambda x: (np.argmax(x, axis=axis),), [np.ones(shape, np.float32)])
    return [row for row in program.rows if row.kernel.name.startswith(("first_place", "min"))]


def test_long_rows_have_several_groups() -> None:
    search, least = rows_of((1_000_000,), None)
    assert search.grid == Grid(489, 128) and least.grid == Grid(1, spread.COLUMN_THREADS)
    assert rows_of((100_000,), None)[0].grid == Grid(49, 128)
    (search,) = rows_of((5000, 600), 1)
    assert search.grid == Grid(1250, 128)


def test_groups_take_several_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    x = numbers((30, 70), "float32", "several")
    program, _ = program_of(lambda x: (np.argmax(x, axis=1),), [x])
    rows = [
        row._replace(grid=Grid(1, 128)) if row.kernel.name.startswith("first_places") else row
        for row in program.rows
    ]
    (found,) = EmulatedProgram(program._replace(rows=rows))([x])
    assert same_bits(found, np.argmax(x, axis=1))


def test_a_view_and_a_gradient() -> None:
    x = numbers((3, 700), "float32", "several")
    program, want = program_of(lambda x: (np.argmax(x[:, ::2]), np.argmax(x.T), tj.exp(x).argmin()), [x])
    assert all(map(same_bits, EmulatedProgram(program)([x]), want))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("place = other if other < place else place", "place = other if other > place else place"),
        ("k = n if is_hit else index(k + apart)", "k = index(k + apart)"),
        ("index(piece * 32 + lane())", "index(piece * 32 + lane() + 1)"),
        ("found[team] = place", "found[row] = place"),
        ("row = remainder(team, rows)", "row = quotient(team, rows)"),
    ],
)
def test_planted_faults_are_found(old: str, new: str) -> None:
    x = numbers((3, 1300), "float32", "several")
    for row, first in enumerate((0, 640, 40)):
        x[row, first::3] = 9
    program, _ = program_of(lambda x: (np.argmax(x, axis=1),), [x])
    rows = []
    for row in program.rows:
        if row.kernel.name.startswith("first_places"):
            assert old in row.kernel.text
            row = row._replace(kernel=row.kernel._replace(text=row.kernel.text.replace(old, new)))
        rows.append(row)
    with pytest.raises((PtxError, AssertionError)):
        (found,) = EmulatedProgram(program._replace(rows=rows))([x])
        assert same_bits(found, np.argmax(x, axis=1))
