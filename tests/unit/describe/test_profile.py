# SPDX-License-Identifier: BSD-3-Clause
"""What launches take and what they need at least: profiles, costs, and the machine's rates."""

import numpy as np
import pytest

from tracejit import dlaccelerate, dlarray, pipeline, tanh
from tracejit.aval import Aval
from tracejit.describe import roofline
from tracejit.describe.profile import made_up, profile
from tracejit.describe.program import describe
from tracejit.describe.roofline import Cost, Rates, costs, rates
from tracejit.errors import CodegenError
from tracejit.ir import Builder, Graph
from tracejit.ops import Layout
from tracejit.runtime.cpu import CpuExecutable
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


def test_each_launch_is_measured_alone() -> None:
    program = pipeline.build(layer(3))
    found = profile(program, CpuExecutable(program).stepwise)
    assert len(found.launch_ns) == program.launches == 6
    assert all(ns >= 0 for ns in found.launch_ns)
    assert found.replay_ns > 0
    assert 3 <= found.replays <= 200


def test_launches_run_in_order_on_memory_of_their_own() -> None:
    program = pipeline.build(layer(3))
    executable = CpuExecutable(program)
    inputs = made_up(program.inputs)
    outputs = program.new_outputs()
    run = executable.stepwise(inputs, outputs)
    for number in range(len(program.rows)):
        assert run(number, 1) == 0
    np.testing.assert_array_equal(outputs[0], executable(inputs)[0])
    # The other calls of the program go on where they were.
    np.testing.assert_array_equal(executable(inputs)[0], outputs[0])


def test_a_program_that_checks_indices_is_measured() -> None:
    b = Builder(Graph())
    x, index = b.input(Aval((5, 3), None, F32)), b.input(Aval((4,), None, np.dtype(np.int64)))
    b.graph.outputs = [b.take(x, index, axis=0)]
    program = pipeline.build(b.graph)
    assert program.checked
    assert len(profile(program, CpuExecutable(program).stepwise).launch_ns) == program.launches


def test_a_program_without_launches() -> None:
    program = pipeline.build(Graph())
    found = profile(program, CpuExecutable(program).stepwise)
    assert found.launch_ns == []


def test_inputs_that_the_executor_does_not_take() -> None:
    program = pipeline.build(layer())
    executable = CpuExecutable(program)
    with pytest.raises(
        CodegenError, match="input 2 that was made up for a program is not as the program wants it"
    ):
        profile(
            program, lambda inputs, outputs: executable.stepwise((inputs[0], inputs[0], inputs[2]), outputs)
        )


def test_a_long_program_takes_as_long_as_its_launches() -> None:
    b = Builder(Graph())
    x = b.input(Aval((64, 64), None, F32))
    for _ in range(500):
        x = b.matmul(x, x)
    b.graph.outputs = [x]
    program = pipeline.build(b.graph)
    found = profile(program, CpuExecutable(program).stepwise)
    assert sum(ns > 0 for ns in found.launch_ns) > 450  # what a call takes by itself does not hide a launch


@pytest.mark.parametrize("strides", [(1, 4), (-3, 1), (3, -1), (0, 1)])
def test_made_up_inputs_lie_as_they_should(strides: tuple[int, int]) -> None:
    aval, layout = Aval((4, 3), None, F32), Layout(0, (4, 3), strides)
    x, counts = made_up([aval, Aval((2,), None, np.dtype(np.int32))], [layout])
    assert x.strides == tuple(4 * stride for stride in strides)
    assert (x >= 0.5).all() and (x <= 1).all()
    assert counts.tolist() == [0, 0]
    b = Builder(Graph())
    b.graph.outputs = [b.mul(b.input(aval), 2.0)]
    replay = Replay(b.graph, "double", [layout])
    np.testing.assert_array_equal(replay([x])[0], 2 * x)
    assert replay.profile() is not None


def test_a_replay_that_has_not_run_has_no_profile(python_backend: None) -> None:
    replay = Replay(layer(), "layer")
    assert replay.profile() is None


def test_a_profile_leaves_the_users_arrays_and_results_alone() -> None:
    step = dlaccelerate(lambda x: tanh(x) * 2)
    x = dlarray(np.linspace(-1, 1, 12, dtype=F32).reshape(3, 4))
    kept = [step(x) for _ in range(5)]
    before = [array.tolist() for array in (x, *kept)]
    known = step._cache.last_trace
    assert known is not None and known.replay.profile() is not None
    assert [array.tolist() for array in (x, *kept)] == before
    assert step(x).tolist() == before[-1]


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


def test_the_larger_of_moving_and_computing_counts() -> None:
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


def test_the_machine_can_do_what_a_launch_did() -> None:
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


def test_the_machine_is_measured_once() -> None:
    found = rates()
    assert rates() is found
    assert set(found.flops_per_s) == {"float32", "float64"}
    assert all(rate > 0 for rate in found.flops_per_s.values())
    sizes = [size for size, _ in found.copies]
    assert sizes == sorted(sizes)
    assert all(rate > 0 for _, rate in found.copies)
