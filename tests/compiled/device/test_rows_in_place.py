# SPDX-License-Identifier: BSD-3-Clause
"""Rows that are written where they are read, on a stand-in for a device: no thread reads what another one stores."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from device_cases import agree
from device_loops import check, normal
from effort import by_turns
from fake_driver import FakeLibrary
from llvm_texts import NEEDS_LLVM_22
from on_device import program_of

import tracejit as tj

pytestmark = NEEDS_LLVM_22
COLUMNS = (20, 32, 33, 132, 1000, 1500, 9001)


def centred(x: Any) -> Any:
    x -= x.mean(axis=-1, keepdims=True)
    return x.sum()


def residual(x: Any) -> Any:
    x += tj.softmax(x * 2, axis=-1)
    return x.max()


def doubled(x: Any) -> Any:
    x *= 2
    return x.sum(axis=0)


def less_its_sum(x: Any) -> Any:
    x -= x.sum()
    return x.max()


def compare(function: Callable[..., Any], arrays: list[np.ndarray]) -> None:
    """Compare the arguments that calls on the device write with those that the function in Python does."""
    accelerated = tj.dlaccelerate(function)
    found, want = tj.gpu([*map(np.copy, arrays)]), [tj.dlarray(array.copy()) for array in arrays]
    for _ in range(3):
        accelerated(*found)
        function(*want)
    agree([np.asarray(array) for array in found], [np.asarray(array) for array in want], scale=1e-3)


@pytest.mark.parametrize(
    ("function", "columns", "dtype"),
    by_turns([centred, residual, doubled, less_its_sum], [*COLUMNS], ["float32", "float64"]),
)
def test_rows(function: Callable[..., Any], columns: int, dtype: str, fake: FakeLibrary) -> None:
    compare(function, [normal(3, columns, dtype=dtype)])
    assert fake.launched


def add_to_each(b: Any, x: Any) -> Any:
    b += x.sum(axis=-1)
    return b.max()


def add_to_two(b: Any, x: Any) -> Any:
    b += (x * b[..., None]).sum(axis=-1)
    x += b[..., None] * x.sum(axis=-1, keepdims=True)
    return x.max()


@pytest.mark.parametrize("columns", COLUMNS)
@pytest.mark.parametrize("function", [add_to_each, add_to_two])
def test_one_number_of_each_row(function: Callable[..., Any], columns: int, fake: FakeLibrary) -> None:
    """All threads of a team load it, and one of them stores the new one."""
    compare(function, [normal(3), normal(3, columns)])
    assert fake.launched


@pytest.mark.parametrize("columns", [20, 32, 132])
def test_the_carry_of_a_scan(columns: int, fake: FakeLibrary) -> None:
    def function(c: Any, xs: Any) -> Any:
        return tj.dlscan(lambda c, x: (c - c.mean() + x, c * 2), c, xs)

    check(function, [normal(columns), normal(5, columns)])


def test_rows_that_fill_a_chunk_are_loaded_without_a_branch() -> None:
    """Only a row that may have no elements for a thread asks before it loads."""
    for columns, loads in ((128, 1), (132, 0), (1000, 0)):
        program, _ = program_of(lambda x: (tj.softmax(x, axis=1),), [np.ones((3, columns), np.float32)])
        (row,) = program.rows
        assert (
            sum("load_x4" in line and " if is_in" in line for line in row.kernel.text.splitlines()) == loads
        )
