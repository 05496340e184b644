# SPDX-License-Identifier: BSD-3-Clause
"""Times and least costs of launches: profiles, costs, and the rates of the machine."""

import time

import numpy as np
import pytest

from tracejit import pipeline
from tracejit.aval import Aval
from tracejit.describe import roofline
from tracejit.describe.profile import profile
from tracejit.describe.program import describe
from tracejit.describe.roofline import Cost, Rates, costs
from tracejit.ir import Builder, Graph
from tracejit.traces.replay import Replay

F32 = np.dtype(np.float32)


def layer(products: int = 1) -> Graph:
    """Return tanh(x @ w + b), several times."""
    b = Builder(Graph())
    x, w, c = [b.input(Aval(shape, None, F32)) for shape in ((16, 8), (8, 8), (8,))]
    for _ in range(products):
        x = b.tanh(b.add(b.matmul(x, w), c))
    b.graph.outputs = [x]
    return b.graph


def test_a_replay_that_has_not_run_has_no_profile() -> None:
    replay = Replay(layer(), "layer")
    assert replay.profile() is None


def test_a_launch_takes_the_time_of_its_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0

    class Rows:
        """Rows that take 100 ns each, and 5 ns for each call."""

        status = 0

        def __call__(self, first: int, count: int, together: bool = True, /) -> int:
            nonlocal now
            now += 5 + 100 * count
            return 0

    monkeypatch.setattr(time, "perf_counter_ns", lambda: now)
    program = pipeline.build(layer(3))
    measured = profile(program, lambda inputs, outputs: Rows())
    assert measured.launch_ns == [100.0] * program.launches
    assert measured.replay_ns == 100.0 * program.launches


def test_costs_of_launches() -> None:
    description = describe(pipeline.stages(layer()))
    product, loop = costs(description, [0, 1])
    # x, w and the product; the product, the bias and the result.
    assert product == Cost(4 * (16 * 8 + 8 * 8 + 16 * 8), 2 * 16 * 8 * 8, "float32")
    assert loop == Cost(4 * (16 * 8 + 8 + 16 * 8), 2 * 16 * 8, "float32")


def test_costs_of_copies_and_gathers() -> None:
    b = Builder(Graph())
    x, index = b.input(Aval((1000, 3), None, F32)), b.input(Aval((4,), None, np.dtype(np.int64)))
    b.graph.outputs = [b.take(x, index, axis=0), b.transpose(x, axes=(1, 0))]
    stages = pipeline.stages(b.graph)
    description = describe(stages)
    launches = [0] * len(stages.program.rows)
    for number, row in enumerate(stages.program.rows):
        launches[number] = launches[number - 1] + (row.part == 0) if number else 0
    found = costs(description, launches)
    moved = {cost.bytes for cost in found}
    # What is taken, the indices, and whether one was out of range; a copy reads and writes.
    assert moved == {4 * 12 + 8 * 4 + 4 * 12 + 8, 2 * 4 * 3000}
    assert costs(describe(pipeline.stages(Graph())), []) == []


def test_the_longer_of_moving_and_computing_counts() -> None:
    machine = Rates({"float32": 1e9, "float64": 5e8}, ((100, 1e9), (10000, 1e8)))
    assert Cost(100, 50, "float32").least_ns(machine) == (pytest.approx(100), "memory")
    assert Cost(100, 400, "float32").least_ns(machine) == (pytest.approx(400), "arithmetic")
    assert Cost(100, 400, "float64").least_ns(machine) == (pytest.approx(800), "arithmetic")
    assert Cost(100, 400, "int64").least_ns(machine) == (pytest.approx(400), "arithmetic")
    assert Cost(0, 0, "float32").least_ns(machine) == (0, "memory")
    # Between the sizes that were measured by the logarithm, beyond them as the nearest.
    assert [machine.bytes_per_s(size) for size in (1, 100, 1000, 1 << 40)] == [
        pytest.approx(rate) for rate in (1e9, 1e9, 5.5e8, 1e8)
    ]


def test_rates_are_at_least_those_of_launches() -> None:
    machine = Rates({"float32": 1e9}, ((1, 1e9),))
    costs = [Cost(1, 400_000, "float32"), Cost(1, 100, "float32"), Cost(1, 1_000_000, "int64")]
    assert machine.raised(costs, [1e5, 1e-3, 1e-3]).flops_per_s == {"float32": pytest.approx(4e9)}
    assert machine.raised(costs, [1e7, 0, 0]).flops_per_s == {"float32": 1e9}


def test_flops() -> None:
    assert roofline.flops("matmul", [2 * 3 * 4, 4 * 5], (2, 3, 5)) == 2 * 2 * 3 * 4 * 5
    assert roofline.flops("matmul", [3 * 4, 2 * 4 * 5], (2, 3, 5)) == 2 * 2 * 3 * 4 * 5
    assert roofline.flops("add", [12, 3], (4, 3)) == 12
    assert roofline.flops("max", [12], ()) == 12
    assert roofline.flops("transpose", [12], (3, 4)) == 0
    assert roofline.flops("an op of another version", [12], (3, 4)) == 0
