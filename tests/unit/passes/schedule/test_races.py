# SPDX-License-Identifier: BSD-3-Clause
"""No plan lets a task of a section touch what another one writes, nor two values share memory while both are in use.

What each launch reads and writes is worked out element by element (tests/support/races.py), so nothing has to go
wrong for a race to be seen.
"""

import itertools
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from effort import sweep
from graphs import random_case, strided
from races import check_races

import tracejit as tj
from tracejit import pipeline, tree
from tracejit.ir import Graph
from tracejit.passes import cost
from tracejit.passes.loops import tiles
from tracejit.passes.loops.launches import KernelLaunch, NestLaunch, Section, Single
from tracejit.passes.loops.nest import Access
from tracejit.passes.schedule import epilogues
from tracejit.passes.schedule.memory import Plan
from tracejit.program import Place
from tracejit.record.recorder import Recorder, wrap

Parameters = dict[str, tj.dlarray]


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make sections of any duration."""
    monkeypatch.setattr(cost, "LEAST_SECTION_NS", 0.0)


def tasks_of_random_plans(seeds: range) -> int:
    tasks = 0
    for seed in seeds:
        rnd = random.Random(seed)
        maker = random_case(rnd, 25, ("float64", "float32", "int64"))
        if maker is None:
            continue
        layouts = [strided(rnd, a)[1] for a in maker.arrays] if seed % 2 else ()
        tasks += check_races(pipeline.stages(maker.graph, layouts).plan)
    return tasks


@pytest.mark.usefixtures("always_in_parts")
def test_parts_of_random_graphs() -> None:
    assert tasks_of_random_plans(range(sweep(10, 60, sample=4))) > sweep(80, 600, sample=20)


@pytest.mark.usefixtures("always_in_bands")
def test_bands_of_random_graphs() -> None:
    assert tasks_of_random_plans(range(sweep(40, 300, sample=15))) > sweep(10, 100, sample=2)


def graph_of(function: Callable[..., Any], *args: Any) -> Graph:
    """Return the graph of a function of containers of arrays."""
    leaves, treedef = tree.flatten(args)
    with Recorder("function") as recorder:
        inputs = [recorder.input(wrap(x.astype(np.float32), None)) for x in leaves]
        outputs = tree.flatten(function(*tree.unflatten(treedef, inputs)))[0]
        recorder.graph.outputs = [recorder.value(output) for output in outputs]
    return recorder.graph


def in_time(params: Parameters, x: tj.dlarray, gates: int) -> tj.dlarray:
    """Return a loss of a recurrent network, sums over its hidden rows in several orders; with update gates or not."""
    width = params["wh"].shape[0]
    h, rows = tj.zeros_like(x[0] @ params["wh"][: x.shape[2]]), []
    for t in range(x.shape[0]):
        both = tj.concatenate([x[t] @ params["wx"], h], axis=1)
        new = tj.tanh(both[:, :width] + h @ params["wh"] + params["b"])
        gate = tj.sigmoid(both[:, width:] * x[t][:, :1]) if gates else 0.0
        h = (1 - gate) * new + gate * h
        rows.append(h)
    stacked = tj.stack(rows[::-1], axis=1)
    return (stacked**2).mean() + (stacked.sum(axis=0) ** 2).mean() + (rows[-1].sum(axis=1) ** 2).mean()


def recurrent(params: Parameters, x: tj.dlarray) -> Any:
    loss = in_time(params, x, 0)
    return loss, tj.dlgradient(loss, params)


def gated(params: Parameters, x: tj.dlarray) -> Any:
    loss = in_time(params, x, 1)
    return loss, tj.dlgradient(loss, params, x)


def twice_differentiated(params: Parameters, x: tj.dlarray) -> Any:
    u = tj.tanh(tj.tanh(x[0] @ params["wx"] + params["b"]) @ params["wh"])
    slope = tj.dlgradient(u.sum(), x)
    loss = ((tj.dlgradient(slope.sum(), x)[0] + u.mean(axis=1, keepdims=True)) ** 2).mean()
    return loss, tj.dlgradient(loss, params)


def halves(params: Parameters, x: tj.dlarray) -> Any:
    rows = tj.tanh(x[0] @ params["wx"] + params["b"])
    half = rows.shape[0] // 2
    rows = tj.concatenate([rows[half:], rows[:half]], axis=0) @ params["wh"]
    ends = tj.softmax(rows[::-1] - rows.mean(axis=0, keepdims=True), axis=1)
    loss = (ends[::2] ** 2).sum() + (tj.cumsum(rows, axis=0) ** 2).mean()
    return loss, tj.dlgradient(loss, params), ends.T @ rows


def attention(params: Parameters, x: tj.dlarray) -> Any:
    z = x.transpose(1, 0, 2) @ params["wx"] + params["b"]
    scores = z @ z.transpose(0, 2, 1)
    mixed = tj.exp(scores - tj.logsumexp(scores, axis=-1, keepdims=True)) @ z
    loss = ((mixed @ params["wh"] + z) ** 2).mean()
    return loss, tj.dlgradient(loss, params)


@pytest.mark.sampled(by=lambda case: case["rows"])
@pytest.mark.usefixtures("short")
@pytest.mark.parametrize("function", [recurrent, gated, twice_differentiated, halves, attention])
@pytest.mark.parametrize(
    ("rows", "width"), sweep([(16, 4), (33, 20)], [*itertools.product([16, 31, 33, 64, 100], [4, 20, 64])])
)
def test_typical_training_steps(
    function: Callable[..., Any], rows: int, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tiles, "LEAST", 256)
    shapes = {"wx": (4, width), "wh": (width, width), "b": (width,)}
    params = {name: np.full(shape, 0.1) for name, shape in shapes.items()}
    graph = graph_of(function, params, np.ones((6, rows, 4)))
    for most in (cost.MOST_SECTION_BYTES, 1 << 15):
        monkeypatch.setattr(cost, "MOST_SECTION_BYTES", most)
        plan = pipeline.stages(graph).plan
        assert check_races(plan) >= 2 * sum(isinstance(each, Section) for each in plan.launches) > 0


def section_of(graph: Graph) -> tuple[Plan, int, list[list[Single]]]:
    plan = pipeline.stages(graph).plan
    places = [i for i, each in enumerate(plan.launches) if isinstance(each, Section)]
    section = plan.launches[places[0]]
    assert isinstance(section, Section)
    return plan, places[0], section.tasks


def one_layer() -> Graph:
    return graph_of(lambda x, w: tj.tanh(x @ w) * 2, np.ones((32, 32)), np.ones((32, 32)))


def two_layers() -> Graph:
    return graph_of(lambda x, w: tj.tanh(tj.tanh(x @ w) @ w), np.ones((32, 32)), np.ones((32, 32)))


@pytest.fixture
def apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep products and the loops that read their results apart."""
    monkeypatch.setattr(epilogues, "LONGEST_BYTES", 0)


@pytest.mark.usefixtures("short", "apart")
def test_the_checker_detects_a_band_that_begins_a_row_too_early() -> None:
    plan, at, (first, second) = section_of(one_layer())
    product = second[0]
    assert isinstance(product, KernelLaunch)
    x, y, out = product.pointers
    early: list[Single] = [
        product._replace(pointers=(x, y, out._replace(offset=out.offset - 32))),
        *second[1:],
    ]
    plan.launches[at] = Section([first, early])
    with pytest.raises(AssertionError, match="task 1 touches what task 0 writes of"):
        check_races(plan)


@pytest.mark.usefixtures("short", "apart")
def test_the_checker_detects_a_band_that_reads_rows_of_another_band() -> None:
    plan, at, (first, second) = section_of(one_layer())
    tanh = first[1]
    assert isinstance(tanh, NestLaunch)

    def further(access: Access) -> Access:
        return access._replace(offset=access.offset + 32)

    reads = list(map(further, tanh.nest.reads))
    plan.launches[at] = Section([[first[0], NestLaunch(tanh.nest._replace(reads=reads))], second])
    with pytest.raises(AssertionError, match="task 0 touches what task 1 writes of"):
        check_races(plan)


@pytest.mark.usefixtures("short", "apart")
def test_the_checker_detects_memory_that_is_reused_too_early() -> None:
    plan, _, (first, _) = section_of(two_layers())
    (inner,) = first[1].writes
    (product,) = first[2].writes
    plan.places[product] = plan.places[inner]  # written before all rows of the factor have been read
    with pytest.raises(AssertionError, match="is not its own, or not written"):
        check_races(plan)


@pytest.mark.usefixtures("short")
def test_the_checker_detects_an_output_that_is_never_written() -> None:
    plan, at, _ = section_of(one_layer())
    plan.launches[at:] = []
    with pytest.raises(AssertionError, match="output 0 is not written"):
        check_races(plan)
    assert {place for place in plan.places.values() if place.kind == "output"} == {Place("output", 0, 0)}
