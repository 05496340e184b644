# SPDX-License-Identifier: BSD-3-Clause
"""Profiles: times of launches, one by one and together."""

import numpy as np
import pytest

from tracejit import dlaccelerate, dlarray, pipeline, tanh
from tracejit.aval import Aval
from tracejit.describe.profile import profile, synthetic_inputs
from tracejit.describe.roofline import rates
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


def test_launches_run_in_order_on_separate_memory() -> None:
    program = pipeline.build(layer(3))
    executable = CpuExecutable(program)
    inputs = synthetic_inputs(program.inputs)
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
        CodegenError, match="a program does not take the synthetic input 2 that it is profiled with"
    ):
        profile(
            program, lambda inputs, outputs: executable.stepwise((inputs[0], inputs[0], inputs[2]), outputs)
        )


@pytest.mark.parametrize("strides", [(1, 4), (-3, 1), (3, -1), (0, 1)])
def test_synthetic_inputs_have_their_layouts(strides: tuple[int, int]) -> None:
    aval, layout = Aval((4, 3), None, F32), Layout(0, (4, 3), strides)
    x, counts = synthetic_inputs([aval, Aval((2,), None, np.dtype(np.int32))], [layout])
    assert x.strides == tuple(4 * stride for stride in strides)
    assert (x >= 0.5).all() and (x <= 1).all()
    assert counts.tolist() == [0, 0]
    b = Builder(Graph())
    b.graph.outputs = [b.mul(b.input(aval), 2.0)]
    replay = Replay(b.graph, "double", [layout])
    np.testing.assert_array_equal(replay([x])[0], 2 * x)
    assert replay.profile() is not None


def test_a_profile_leaves_the_users_arrays_and_results_alone() -> None:
    step = dlaccelerate(lambda x: tanh(x) * 2)
    x = dlarray(np.linspace(-1, 1, 12, dtype=F32).reshape(3, 4))
    kept = [step(x) for _ in range(5)]
    before = [array.tolist() for array in (x, *kept)]
    known = step._cache.last_trace
    assert known is not None and known.replay.profile() is not None
    assert [array.tolist() for array in (x, *kept)] == before
    assert step(x).tolist() == before[-1]


def test_the_machine_is_measured_once() -> None:
    found = rates()
    assert rates() is found
    assert set(found.flops_per_s) == {"float32", "float64"}
    assert all(rate > 0 for rate in found.flops_per_s.values())
    sizes = [size for size, _ in found.copies]
    assert sizes == sorted(sizes)
    assert all(rate > 0 for _, rate in found.copies)
