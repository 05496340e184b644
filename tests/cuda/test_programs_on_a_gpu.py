# SPDX-License-Identifier: BSD-3-Clause
"""Loops, times by events, exports, long rows and convolutions on a GPU, none of which a GPU has run yet."""

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from convolutions import assert_same, graph_of, operands_of, square_windows
from device_cases import FUNCTIONS, Case, agree, run_case
from device_loops import CASES, Function, check, normal, replay_of
from device_programs import LONG_ROWS

import tracejit as tj
from tracejit.runtime.cuda import steps
from tracejit.runtime.cuda.arrays import uploaded
from tracejit.runtime.cuda.driver import driver
from tracejit.traces.devices import compute

LOOPS = pytest.mark.parametrize(
    ("function", "arrays"), CASES, ids=[f"{case[0].__name__}{i}" for i, case in enumerate(CASES)]
)


@LOOPS
def test_loops(function: Function, arrays: list[np.ndarray]) -> None:
    assert replay_of(check(function, arrays, calls=6)).program.loops


@LOOPS
def test_loops_that_the_host_runs(
    function: Function, arrays: list[np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(steps, "MOST_NODES", 3)
    monkeypatch.setattr(steps, "_WHILE_NODES", 1)
    check(function, arrays)


def test_a_loop_of_more_steps_than_a_graph_has() -> None:
    def function(w: Any, h: Any, xs: Any) -> Any:
        return tj.dlscan(lambda h, x: (tj.tanh(h @ w + x),) * 2, h, xs)

    check(function, [normal(32, 32) / 32, normal(16, 32), normal(3000, 16, 32)])


def test_times_are_those_of_events() -> None:
    x, w = (np.random.default_rng(0).standard_normal((2048, 2048)).astype(np.float32) for _ in range(2))
    function = tj.dlaccelerate(lambda x, w: tj.tanh(x @ w).sum(axis=0))
    for _ in range(4):
        function(*tj.gpu((x, w)))
    replay = replay_of(function)
    profile = replay.profile()
    assert profile is not None
    assert len(profile.launch_ns) == len(replay.program.rows)
    # 17 billion operations take at least 0.05 ms on any GPU, and less than a second.
    assert 5e4 < max(profile.launch_ns) < 1e9 and 5e4 < profile.replay_ns < 1e9
    assert min(profile.launch_ns) >= 0


@pytest.mark.parametrize("case", FUNCTIONS, ids=lambda case: case.name)
def test_exports(case: Case, tmp_path: Path) -> None:
    arrays = case.arrays()
    want = tj.tree.flatten(tj.dlfeval(case.function, *map(tj.dlarray, arrays)))[0]
    tj.export(
        tj.dlaccelerate(case.function),
        tmp_path / "f",
        args=arrays,
        target="cuda",
        capabilities=("8.0", "9.0"),
    )
    loaded = tj.load(tmp_path / "f")
    for args in (arrays, tj.gpu(arrays), tj.gpu(arrays)):
        results = tj.tree.flatten(loaded(*args))[0]
        assert all(result.device == "cuda:0" for result in results)
        agree([np.asarray(result) for result in results], want)


@pytest.mark.parametrize("columns", [1028, 2047, 4096, 4095, 8192, 8191, 40_000])
@pytest.mark.parametrize("name", [name for name, (_, shapes) in LONG_ROWS.items() if len(shapes[0]) == 2])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_long_rows(name: str, columns: int, dtype: str) -> None:
    function, shapes = LONG_ROWS[name]
    rows = 300 * bool(shapes[0][0])
    sizes = [(rows, columns) if len(shape) == 2 else (columns,) for shape in shapes]
    run_case(Case(name, function, tuple(sizes), dtype))


def run_convolution(operands: Any, dtype: str, seed: int) -> None:
    """Compare a convolution and its gradients with the references."""
    graph, arrays = graph_of(operands, dtype, seed)
    values = {value: uploaded(driver(), array) for value, array in zip(graph.inputs, arrays, strict=True)}
    for node in graph.nodes:
        values[node.output] = compute(node.op, [values[value] for value in node.inputs], node.params)
    assert_same(graph, arrays, [values[value].host() for value in graph.outputs], operands)


@pytest.mark.parametrize(
    "order", [("BCSS", "UCSS", "BUSS"), ("BSSC", "SSCU", "BSSU"), ("SSCB", "SSCU", "SSUB")]
)
@pytest.mark.parametrize("seed", range(6))
def test_convolutions(order: tuple[str, str, str], seed: int) -> None:
    rnd = random.Random(seed)
    run_convolution(square_windows(rnd, (3, 20, 64), (20, 50, 100), order), "float32", seed)
    run_convolution(operands_of(rnd, (1, 3, 16), (4, 20, 32), order), ("float32", "float64")[seed % 2], seed)
