# SPDX-License-Identifier: BSD-3-Clause
"""Matrix products by tiles on a device, run by the emulator of PTX, which finds threads that do not wait."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from device_cases import agree
from effort import by_turns
from llvm_texts import NEEDS_LLVM_22
from on_device import EmulatedProgram, program_of
from ptx_emulator import PtxError

from tracejit.codegen.device import product_tiles
from tracejit.program import Kernel

F32 = np.float32
pytestmark = NEEDS_LLVM_22

PRODUCTS: list[tuple[Callable[..., tuple[Any, ...]], tuple[tuple[int, ...], ...]]] = [
    (lambda a, b: (a @ b,), ((33, 40), (40, 72))),
    (lambda a, b: (a @ b,), ((135, 17), (17, 270))),
    (lambda a, b: (a @ b.T,), ((33, 41), (35, 41))),
    (lambda a, b: (a @ b.T,), ((33, 44), (36, 44))),
    (lambda a, b: (a.T @ b,), ((9, 41), (9, 70))),
    (lambda a, b: (a.T @ b,), ((9, 140), (9, 132))),
    (lambda a, b: (a @ b,), ((3, 33, 40), (3, 40, 34))),
    (lambda a, b: (a @ b + a @ b[:, ::-1],), ((8, 8), (8, 8))),
    (lambda a, b: (a[1:, 1:] @ b[1:, 3:],), ((34, 33), (33, 70))),
]


TILES = [product_tiles.HUGE, product_tiles.LARGE, product_tiles.MEDIUM, product_tiles.SMALL]


@pytest.mark.parametrize(
    ("number", "tile", "dtype"),
    [
        case for case in by_turns(range(len(PRODUCTS)), TILES, ["float32", "float64"])
        if case[1:] != (product_tiles.HUGE, "float64")  # these tiles are of float32 alone
    ],
    ids=lambda value: getattr(value, "name", value),
)  # fmt: skip
@pytest.mark.sampled(by=lambda case: case["tile"].name)
def test_products_by_tiles(number: int, tile: Any, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    function, shapes = PRODUCTS[number]
    monkeypatch.setattr(product_tiles, "suitable", lambda product: tile)
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(shape).astype(dtype) for shape in shapes]
    program, want = program_of(function, arrays)
    assert any(kernel.name.startswith(tile.name) for kernel in program.kernels)
    agree(EmulatedProgram(program)(arrays), want)


def test_tiles_follow_from_sizes() -> None:
    def name(m: int, k: int, n: int, dtype: str = "float32") -> str:
        ones = np.ones((m, k), dtype), np.ones((k, n), dtype)
        return program_of(lambda a, b: (a @ b,), ones)[0].kernels[0].name.rpartition("_")[0]

    assert name(2048, 300, 2048) == "product_huge"
    assert name(1024, 300, 2048) == name(2048, 300, 2048, "float64") == "product_large"
    assert name(1024, 300, 1024) == name(70_000, 20, 50) == "product_medium"
    assert name(128, 800, 500) == name(128, 20, 10) == "product_small"
    assert name(128, 3, 500) == name(5, 800, 5) == "product"


FAULTS_OF_TILES = [
    ("        barrier()\n", ""),
    ("piece = index(16 - piece)", "piece = index(0)"),
    ("own_row = index(down * 4)", "own_row = index(down * 3)"),
    ("_inner < k else", "_inner <= k else"),
    ("index(first_column + own_column), n,", "index(first_column + own_column), index(n + 1),"),
    ("add_products(sums, 4, 8, xs,", "add_products(sums, 4, 7, xs,"),
    ("store_inside(out, out_row, sums, 4,", "store_inside(out, out_row, sums, 8,"),
]


@pytest.mark.parametrize(("old", "new"), FAULTS_OF_TILES, ids=range(len(FAULTS_OF_TILES)))
def test_planted_faults_of_tiles_are_found(old: str, new: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(product_tiles, "suitable", lambda product: product_tiles.MEDIUM)
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(shape).astype(F32) for shape in ((66, 33), (33, 67))]
    program, want = program_of(lambda a, b: (a @ b,), arrays)
    (row,) = program.rows
    assert old in row.kernel.text
    faulty = Kernel(row.kernel.name, row.kernel.text.replace(old, new))
    with pytest.raises((PtxError, AssertionError)):
        agree(EmulatedProgram(program._replace(rows=[row._replace(kernel=faulty)]))(arrays), want)
