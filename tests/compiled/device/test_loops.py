# SPDX-License-Identifier: BSD-3-Clause
"""Loops and branches on a device, through the stand-in for NVIDIA's driver: results, graphs, and what the host does."""

from typing import Any

import numpy as np
import pytest
import random_loops
from device_cases import agree
from device_loops import CASES, Function, branch, check, counted, cumulated, indexed, normal, replay_of
from effort import sweep
from fake_driver import FakeLibrary
from llvm_texts import NEEDS_LLVM_22
from loops import Cube

import tracejit as tj
from tracejit.program import Row
from tracejit.runtime.cuda import steps
from tracejit.runtime.cuda.graph import GraphPlan
from tracejit.runtime.cuda.steps import HostLoop, Steps, steps_of

pytestmark = NEEDS_LLVM_22


@pytest.mark.parametrize(
    ("function", "arrays"), CASES, ids=[f"{case[0].__name__}{i}" for i, case in enumerate(CASES)]
)
def test_loops(function: Function, arrays: list[np.ndarray], fake: FakeLibrary) -> None:
    assert replay_of(check(function, arrays)).program.loops
    assert fake.launched


@pytest.mark.parametrize(
    ("function", "arrays"), CASES, ids=[f"{case[0].__name__}{i}" for i, case in enumerate(CASES)]
)
def test_loops_that_the_host_runs(
    function: Function, arrays: list[np.ndarray], fake: FakeLibrary, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Graphs of few launches, so that the host runs all loops of more than a step or two."""
    monkeypatch.setattr(steps, "MOST_NODES", 3)
    monkeypatch.setattr(steps, "_WHILE_NODES", 1)
    check(function, arrays)


@pytest.mark.parametrize("seed", range(sweep(6, 40)))
@pytest.mark.slow
def test_random_loops(seed: int, fake: FakeLibrary, monkeypatch: pytest.MonkeyPatch) -> None:
    if seed % 2:
        monkeypatch.setattr(steps, "MOST_NODES", 5)
    case = random_loops.Case(seed)
    if case.draws:
        pytest.skip("random numbers differ from call to call")
    leaves, treedef = tj.tree.flatten(case.operands)

    def function(*arrays: Any) -> Any:
        return random_loops.first(case)(*tj.tree.unflatten(treedef, list(arrays)))

    check(function, [np.asarray(leaf, np.float32) for leaf in leaves], calls=3)


def test_each_call_makes_as_many_steps_as_it_needs(fake: FakeLibrary) -> None:
    function = tj.dlaccelerate(counted)
    x = normal(5)
    for n in (3.0, 3.0, 3.0, 0.0, 40.0, 8.0, 9.0):
        found, steps = function(*tj.gpu((x, np.float32(n))))
        want = x
        for _ in range(int(n)):
            want = np.tanh(want)
        assert steps.item() == n
        np.testing.assert_allclose(np.asarray(found), want, rtol=1e-5)


def test_a_branch_that_is_not_taken_does_nothing(fake: FakeLibrary) -> None:
    function = tj.dlaccelerate(branch)
    x = np.ones(5, np.float32)
    for sign in (1, 1, 1, -1, -1, 1, -1):
        want = np.exp(x) if sign > 0 else -2 * x
        np.testing.assert_allclose(np.asarray(function(tj.gpu(sign * x))), want, rtol=1e-6)


def test_a_scan_is_one_launch_of_a_graph_and_nothing_waits(fake: FakeLibrary) -> None:
    function = check(cumulated, [normal(3, 3), normal(2, 3), normal(20, 2, 3)])
    inputs = tj.gpu([normal(3, 3), normal(2, 3), normal(20, 2, 3)])
    function(*inputs)
    fake.calls.clear()
    function(*inputs)
    assert fake.calls.count("cuGraphLaunch") == 1
    assert "cuStreamSynchronize" not in fake.calls


def test_what_is_read_of_a_loop_that_a_value_ends(fake: FakeLibrary) -> None:
    function = check(counted, [normal(5), np.float32(20.0)])
    inputs = tj.gpu((normal(5), np.float32(20.0)))
    function(*inputs)
    fake.calls.clear()
    function(*inputs)
    (_, loop) = steps_of(replay_of(function).program)[0]
    assert isinstance(loop, HostLoop) and not loop.is_moving
    turns = -(-20 // 8)
    assert fake.calls.count("cuMemcpyDtoHAsync_v2") == turns
    assert fake.calls.count("cuGraphLaunch") == 1 + turns


# Graphs as data.


def ancestors(plan: GraphPlan) -> list[set[int]]:
    found: list[set[int]] = []
    for dependencies in plan.dependencies:
        found.append({*dependencies}.union(*[found[number] for number in dependencies]))
    return found


def graphs_of(made: Steps) -> list[GraphPlan]:
    return [
        graph for step in made for graph in (graphs_of(step.body) if isinstance(step, HostLoop) else [step])
    ]


@pytest.mark.parametrize("most", [3, 1024])
@pytest.mark.slow
def test_launches_on_the_same_memory_follow_each_other(
    most: int, fake: FakeLibrary, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a launch of an earlier step writes is there, and what it reads is not written before."""
    monkeypatch.setattr(steps, "MOST_NODES", most)
    for function, arrays in CASES:
        if function is indexed:
            continue
        program = replay_of(check(function, arrays, calls=3)).program
        for graph in graphs_of(steps_of(program)[0]):
            before = ancestors(graph)
            touched: dict[tuple[str, int, int], int] = {}
            for number, node in enumerate(graph.nodes):
                for patch in node.patches:
                    if patch.kind not in ("arena", "output"):
                        continue
                    text = node.kernel.text
                    place = patch.kind, patch.number, patch.offset
                    if "write_" in text and f"(args[{patch.slot}]," in text and place in touched:
                        assert touched[place] in before[number] or touched[place] == number
                    if f"(args[{patch.slot}]," in text:
                        touched[place] = number


def test_long_scans_are_graphs_that_move_on(fake: FakeLibrary, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "MOST_NODES", 6)
    program = replay_of(check(cumulated, [normal(3, 3), normal(2, 3), normal(10, 2, 3)])).program
    before, loop, rest = steps_of(program)[0]
    assert isinstance(before, GraphPlan) and isinstance(loop, HostLoop) and isinstance(rest, GraphPlan)
    (scan,) = program.loops
    rows = scan.end - scan.first
    assert (loop.most, loop.is_moving) == (10 * rows // 6, True)
    (body,) = loop.body
    assert isinstance(body, GraphPlan) and len(body.nodes) == 6
    assert {patch.steps for node in body.nodes for patch in node.patches} == {(), (96,)}


def test_a_row_without_a_loop_needs_what_it_needed(fake: FakeLibrary) -> None:
    replay = replay_of(check(lambda x: (x.sum(), tj.exp(x).max()), [normal(300)]))
    rows: list[Row] = replay.program.rows
    (graph,) = steps_of(replay.program)[0]
    assert isinstance(graph, GraphPlan)
    assert graph.dependencies == tuple([row.needs for row in rows])


# What shows and keeps programs.


def test_loops_are_shown_and_timed(fake: FakeLibrary) -> None:
    replay = replay_of(check(cumulated, [normal(3, 3), normal(2, 3), normal(6, 2, 3)]))
    source = replay.source()
    assert "    for step0 in range(6):\n" in source and " + 32 * step0, 'float32')" in source
    described = replay.describe()
    assert len(described.rows) == len(replay.program.rows)
    assert any(op.name == "scan" for op in described.ops)
    profile = replay.profile()
    assert profile is not None and len(profile.launch_ns) == len(replay.program.rows)


def test_loops_are_exported(fake: FakeLibrary, tmp_path: Any) -> None:
    for number, (function, arrays) in enumerate([CASES[2], CASES[6], CASES[12]]):
        accelerated = check(function, arrays)
        tj.export(accelerated, tmp_path / str(number), target="cuda")
        want = tj.tree.flatten(accelerated(*tj.gpu(arrays)))[0]
        found = tj.tree.flatten(tj.load(tmp_path / str(number))(*arrays))[0]
        assert [x.tolist() for x in found] == [x.tolist() for x in want]


@pytest.mark.parametrize("in_loop", [False, True])
def test_functions_of_python_run_on_the_host(in_loop: bool, fake: FakeLibrary) -> None:
    cube = Cube()

    def function(xs: Any) -> Any:
        if in_loop:
            return tj.dlscan(lambda c, x: (tj.tanh(cube(c) + x), c.sum()), xs[0] * 0, xs)
        return cube(xs) * 2

    xs = normal(4, 3)
    want = tj.tree.flatten(tj.dlfeval(function, tj.dlarray(xs)))[0]
    accelerated = tj.dlaccelerate(function)
    for _ in range(4):
        found = tj.tree.flatten(accelerated(tj.gpu(xs)))[0]
        assert all(array.device == "cuda:0" for array in found)
        agree([np.asarray(array) for array in found], [np.asarray(array) for array in want])
    replay = replay_of(accelerated)
    assert replay.refusal == "Cube: a function of Python cannot run on a device."
    assert replay.target == "cpu, with copies, because Cube: a function of Python cannot run on a device"
    assert accelerated.hit_rate == 50.0
