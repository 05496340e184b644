# SPDX-License-Identifier: BSD-3-Clause
"""Parts of nests that fold: what each of them accumulates, and how that is combined."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from effort import by_turns

import tracejit as tj
from tracejit import tree
from tracejit.aval import Aval
from tracejit.ir import Builder, Graph
from tracejit.pipeline import build
from tracejit.program import Program
from tracejit.record.recorder import Recorder
from tracejit.runtime.python import PythonExecutable


def program_of(op: str, shape: tuple[int, ...]) -> Program:
    b = Builder(Graph())
    b.graph.outputs = [
        getattr(b, op)(b.input(Aval(shape, None, np.dtype(np.float32))), axes=(0,), keepdims=False)
    ]
    return build(b.graph)


@pytest.mark.parametrize("op", ["sum", "max", "prod"])
def test_long_rows_are_cut_along_columns(op: str) -> None:
    shape = (200, 4200)
    program = program_of(op, shape)
    assert len(program.kernels) == 1 and program.arena_bytes == 0
    assert [{*row.arguments[:2]} for row in program.rows] == [{200, 2112}, {200, 2088}]


@pytest.mark.slow
def test_long_rows_in_parts_give_numpys_result() -> None:
    x = np.random.default_rng(0).standard_normal((3, 300_000)).astype(np.float32)
    program = program_of("max", x.shape)
    assert len(program.rows) == 32
    (found,) = PythonExecutable(program)([x])
    np.testing.assert_array_equal(found, x.max(0))


def test_many_rows_are_summed_in_parts() -> None:
    """Each part sums some rows, so that errors stay those of few additions."""
    program = program_of("sum", (2000, 4200))
    assert program.arena_bytes > 0
    assert program_of("max", (2000, 4200)).arena_bytes == 0


REDUCTIONS = {
    "sum": np.sum, "prod": np.prod, "max": np.max, "min": np.min, "any": np.any, "all": np.all, "mean": np.mean,
    "count_nonzero": np.count_nonzero,
}  # fmt: skip
FOLLOWED = {
    "nothing": lambda reduced, x: reduced,
    "a cast": lambda reduced, x: reduced.astype(np.int32),
    "arithmetic": lambda reduced, x: reduced * 3 + 1,
    "elements": lambda reduced, x: (reduced == reduced, x * reduced.sum()),  # noqa: PLR0124 (NaN)
}


@pytest.fixture(params=["parts", "bands"])
def in_parts(request: pytest.FixtureRequest) -> None:
    request.getfixturevalue(f"always_in_{request.param}")


@pytest.mark.usefixtures("in_parts")
@pytest.mark.parametrize(
    ("name", "dtype", "axis"),
    by_turns(
        [*REDUCTIONS],
        ["bool", "int8", "uint8", "int16", "int32", "uint32", "int64", "float16", "float32"],
        [None, 0, 1],
    ),
)
def test_reductions_in_parts_of_any_dtype(name: str, dtype: str, axis: int | None) -> None:
    """What parts fold is combined in the dtype of the result, which is wider than that of narrow integers."""
    x = (np.random.default_rng(0).integers(0, 3, (9, 7)) > 0).astype(dtype)
    for followed in FOLLOWED.values():

        def function(x: Any, followed: Callable[..., Any] = followed) -> Any:
            return followed(REDUCTIONS[name](x + x, axis=axis), x)

        with Recorder("function", accelerating=True) as recorder:
            results = tree.flatten(function(recorder.input(tj.dlarray(x))))[0]
            recorder.graph.outputs = [recorder.value(result) for result in results]
        program = build(recorder.graph)
        found = PythonExecutable(program)([x])
        for have, want in zip(found, tree.flatten(function(x))[0], strict=True):
            np.testing.assert_allclose(have, want, rtol=1e-6)  # means in float32
