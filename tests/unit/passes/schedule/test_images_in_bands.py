# SPDX-License-Identifier: BSD-3-Clause
"""Images of a batch go through the layers of a network in bands, as rows of other batches do."""

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from convolved import ORDERS, WEIGHTS, normalised
from effort import sweep
from launches import launches_of, name
from races import check_races

import tracejit as tj
from tracejit import pipeline
from tracejit.ir import Graph, evaluate
from tracejit.passes import cost
from tracejit.passes.loops import bands
from tracejit.passes.loops.launches import Section
from tracejit.program import Program
from tracejit.record.recorder import Recorder, wrap
from tracejit.runtime.python import PythonExecutable

F32 = np.float32


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make sections of any duration."""
    monkeypatch.setattr(cost, "LEAST_SECTION_NS", 0.0)


def graph_of(function: Callable[..., Any], *arrays: np.ndarray) -> Graph:
    with Recorder("function") as recorder:
        inputs = [recorder.input(wrap(array.astype(F32), None)) for array in arrays]
        results = function(*inputs)
        results = results if isinstance(results, tuple) else (results,)
        recorder.graph.outputs = [recorder.value(result) for result in results]
    return recorder.graph


def network(order: str, pooling: bool = True) -> Callable[..., Any]:
    """Return two layers of convolutions with a pooling between them."""
    layer = normalised(order)

    def function(x: Any, w: Any, v: Any, *numbers: Any) -> Any:
        y = layer(x, w, *numbers)
        if pooling:
            y = tj.maxpool(y, 2, stride=2, data_format=order)
        return layer(y, v, *numbers)

    return function


def arrays_of(order: str, images: int = 8, side: int = 6, filters: int = 5) -> list[np.ndarray]:
    rng = np.random.default_rng(images)
    sizes = {"B": images, "C": 3, "S": side}
    shapes = [[sizes[label] for label in order], (filters, 3, 3, 3), (filters, 3, 3, filters)]
    return [
        *[rng.standard_normal(shape) for shape in shapes],
        *[np.abs(rng.standard_normal(filters)) + 0.5] * 4,
    ]


def sections(graph: Graph) -> list[list[str]]:
    """Return the number of bands of each section, and its launches in words."""
    return [
        [str(len(each.tasks)), *[name(launch).partition(" ")[0] for launch in each.tasks[0]]]
        for each in launches_of(graph)
        if isinstance(each, Section)
    ]


def backwards(program: Program) -> Program:
    """Return a program that runs the bands of each section in the other order."""
    rows, first = [], 0
    while first < len(program.rows):
        row = program.rows[first]
        bands_of = [program.rows[first + i * row.length :][: row.length] for i in range(row.parts)]
        rows += [each for band in reversed(bands_of) for each in band]
        first += row.parts * row.length
    return program._replace(rows=rows)


def agrees(graph: Graph, arrays: list[np.ndarray]) -> None:
    inputs = [array.astype(F32) for array in arrays]
    program = pipeline.build(graph)
    expected = evaluate(graph, inputs)
    for each in (program, backwards(program)):
        for found, want in zip(PythonExecutable(each)(inputs), expected, strict=True):
            np.testing.assert_allclose(found, want, rtol=2e-4, atol=2e-4)
    check_races(pipeline.stages(graph).plan)


@pytest.mark.parametrize("order", ["BSSC", "BCSS"])
def test_a_band_takes_its_images_through_all_layers(order: str) -> None:
    arrays = arrays_of(order)
    graph = graph_of(network(order), *arrays)
    assert sections(graph) == [["8", "laid_out", "maxpool_pairs", "laid_out"]]
    agrees(graph, arrays)


def test_images_that_do_not_lie_apart_are_transposed_as_a_whole() -> None:
    arrays = arrays_of("SSCB")
    graph = graph_of(network("SSCB", pooling=False), *arrays)
    assert not any("laid_out" in launches for _, *launches in sections(graph))
    agrees(graph, arrays)


@pytest.mark.parametrize(("images", "count"), [(1, 0), (2, 2), (3, 2), (5, 4), (8, 8), (30, 8)])
def test_bands_have_an_image_or_more(images: int, count: int) -> None:
    found = sections(graph_of(network("BSSC"), *arrays_of("BSSC", images)))
    assert [int(bands_of) for bands_of, *_ in found] == [count] * bool(count)


def test_a_product_of_few_rows_does_not_change_the_bands_of_images() -> None:
    def classes(x: Any, w: Any, v: Any, b: Any, *numbers: Any) -> Any:
        y = network("BSSC")(x, w, v, b, *numbers)
        return tj.softmax(tj.tanh(y.reshape(32, -1)) @ tj.ones((45, 64), "single"), data_format="BC")

    arrays = arrays_of("BSSC", 32)
    ((count, *launches),) = sections(graph_of(classes, *arrays))[:1]
    assert (count, launches[0]) == ("8", "laid_out")


def test_long_convolutions_take_parts_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bands, "LONGEST_NS", 1.0)
    assert not any(
        "laid_out" in launches for _, *launches in sections(graph_of(network("BSSC"), *arrays_of("BSSC")))
    )


def test_what_follows_a_deferred_launch_may_begin_a_section() -> None:
    def by_statistics(x: Any, w: Any, v: Any, b: Any, *numbers: Any) -> Any:
        y = tj.dlconv(x, w, b, padding="same", data_format="BSSC", weights_format=WEIGHTS)
        y, *_ = tj.batchnorm(y, b, b, data_format="BSSC")
        return tj.dlconv(tj.relu(y), v, b, padding="same", data_format="BSSC", weights_format=WEIGHTS)

    graph = graph_of(by_statistics, *arrays_of("BSSC", 32, 8, 10))
    assert ["8", "sub", "laid_out"] in sections(graph)


def test_images_that_share_blocks_stay_together() -> None:
    """Winograd's method takes several small images at a time."""
    for images, count in ((32, 4), (16, 2), (30, 0)):
        arrays = arrays_of("BSSC", images, 8, 16)
        arrays[1:3] = [np.ones((16, 5, 5, 3)), arrays[2]]
        graph = graph_of(network("BSSC", pooling=False), *arrays)
        found = [each for each in sections(graph) if "winograd" in each]
        assert [int(bands_of) for bands_of, *_ in found] == [count] * bool(count)
    agrees(graph_of(network("BSSC"), *arrays_of("BSSC", 8, 8, 16)), arrays_of("BSSC", 8, 8, 16))


def test_other_numbers_of_images_need_no_other_kernel() -> None:
    def kernels(images: int) -> set[str]:
        program = pipeline.build(graph_of(network("BSSC"), *arrays_of("BSSC", images)))
        return {row.kernel.name for row in program.rows}

    assert all(kernels(images) == kernels(8) for images in (2, 3, 16, 31))


def trained(order: str, pooling: bool) -> Callable[..., Any]:
    """Return the mean of squares of what a network computes, and gradients."""
    layers = network(order, pooling)

    def step(x: Any, w: Any, v: Any, *numbers: Any) -> Any:
        loss = (layers(x, w, v, *numbers) ** 2).mean()
        return loss, *tj.dlgradient(loss, x, w, v, numbers[0])

    return step


def test_random_networks() -> None:
    for seed in range(sweep(3, 30, sample=1)):
        rnd = random.Random(seed)
        order = rnd.choice(ORDERS)
        arrays = arrays_of(order, rnd.randint(1, 9), rnd.randint(4, 7), rnd.choice([3, 5, 17]))
        agrees(graph_of(trained(order, rnd.random() < 0.5), *arrays), arrays)
