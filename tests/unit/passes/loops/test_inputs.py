# SPDX-License-Identifier: BSD-3-Clause
"""Programs that write new contents into their inputs: without a copy where that is right."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from effort import sweep
from races import check_races
from written_inputs import check_written

from tracejit import pipeline
from tracejit.aval import Aval
from tracejit.codegen.emit import module_source
from tracejit.describe.stages import Stages
from tracejit.errors import BoundsError
from tracejit.ir import Builder, Graph, Value, evaluate
from tracejit.ops.op import Layout
from tracejit.program import Writes
from tracejit.record.guards import GuardFailed
from tracejit.runtime.python import PythonExecutable

Make = Callable[..., tuple[list[Value], list[Value]]]
DTYPES = ("float64", "float32", "int64")


def random_graphs(seeds: range) -> tuple[int, int]:
    found = [check_written(seed, 4 + seed % 20, DTYPES[: 2 + seed % 2]) for seed in seeds]
    return sum(written for written, _ in found), sum(direct for _, direct in found)


def test_random_graphs_that_write_inputs() -> None:
    written, direct = random_graphs(range(sweep(30, 2000, sample=6)))
    assert written > sweep(50, 50, sample=4) and direct > sweep(5, 5, sample=0)


@pytest.mark.usefixtures("always_in_parts")
def test_random_graphs_in_parts() -> None:
    random_graphs(range(sweep(15, 1500, sample=4)))


@pytest.mark.usefixtures("always_in_bands")
def test_random_graphs_in_bands() -> None:
    random_graphs(range(sweep(30, 2000, sample=6)))


def staged(
    make: Make, *shapes: tuple[int, ...], guarded: bool = False, layouts: Any = ()
) -> tuple[Graph, Stages]:
    """Return the stages of a graph whose first inputs get the contents that `make` returns behind the results."""
    graph = Graph()
    b = Builder(graph)
    results, contents = make(b, *[b.input(Aval(shape, None, np.dtype(np.float64))) for shape in shapes])
    guard = [results.pop()] if guarded else []
    graph.outputs = [*results, *contents, *guard]
    targets = {len(results) + i: i for i in range(len(contents))}
    stages = pipeline.stages(graph, layouts, Writes(targets, guarded))
    check_races(stages.plan)
    return graph, stages._replace(program=stages.program._replace(guard=len(results) if guarded else None))


def check(made: tuple[Graph, Stages], results: int = 0) -> None:
    """Run a program on random numbers, and compare results and inputs with the graph."""
    graph, stages = made
    arrays = [np.random.default_rng(i).standard_normal(v.shape) for i, v in enumerate(graph.inputs)]
    want = evaluate(graph, arrays)
    given = [array.copy() for array in arrays]
    outputs = PythonExecutable(stages.program)(given)
    for have, expected in zip([*outputs[:results], *given], want, strict=False):
        np.testing.assert_allclose(have, expected, rtol=1e-12, atol=1e-12)


def adam(b: Builder, p: Value, m: Value, v: Value, g: Value) -> tuple[list[Value], list[Value]]:
    m = b.add(b.mul(m, 0.9), b.mul(g, 0.1))
    v = b.add(b.mul(v, 0.999), b.mul(b.square(g), 0.001))
    return [], [b.sub(p, b.div(b.mul(m, 0.01), b.add(b.sqrt(b.square(v)), 1e-8))), m, v]


def test_an_optimiser_step_is_one_loop_on_the_memory_of_its_arguments() -> None:
    made = staged(adam, (40,), (40,), (40,), (40,))
    program = made[1].program
    assert (len(program.rows), program.commits, program.arena_bytes, program.outputs) == (1, 0, 0, [])
    assert program.written == (0, 1, 2)
    check(made)
    source = module_source(program, "adam")
    assert "input[2]: 40 float64, written\ninput[3]: 40 float64\n" in source
    assert source.count("write_f64(args") == 3 and source.count("read_f64(args") == 1


def launches(make: Make, *shapes: tuple[int, ...], guarded: bool = False, results: int = 0) -> list[str]:
    """Return the names of a program's kernels, those of commits behind a bar."""
    made = staged(make, *shapes, guarded=guarded)
    if not guarded:
        check(made, results)
    program = made[1].program
    names = [row.kernel.name.rpartition("_")[0] for row in program.rows]
    at = len(names) - program.commits
    return [*names[:at], *(["|"] if program.commits else []), *names[at:]]


def test_contents_that_are_read_after_they_would_be_overwritten_are_copied() -> None:
    def swapped(b: Builder, x: Value, y: Value) -> Any:
        return [], [y, x]

    def backwards(b: Builder, x: Value) -> Any:
        return [], [b.slice(x, starts=(6,), stops=(-1,), steps=(-1,))]

    def turned(b: Builder, x: Value) -> Any:
        return [], [b.add(x, b.transpose(x, axes=(1, 0)))]

    def squared(b: Builder, x: Value) -> Any:
        return [], [b.sub(x, b.matmul(x, x))]

    assert launches(swapped, (7,), (7,)) == ["copy", "copy", "|", "copy"]
    assert launches(backwards, (7,)) == ["copy", "|", "copy"]
    assert launches(turned, (7, 7)) == ["add", "|", "copy"]
    assert launches(squared, (40, 40)) == ["product", "sub"]


def test_a_row_is_written_when_it_has_been_read() -> None:
    def softmax(b: Builder, x: Value) -> Any:
        e = b.exp(b.sub(x, b.max(x, axes=(1,), keepdims=True)))
        return [], [b.div(e, b.sum(e, axes=(1,), keepdims=True))]

    def centred(b: Builder, x: Value) -> Any:
        y = b.sub(x, b.div(b.sum(x, axes=(1,), keepdims=True), float(x.shape[1])))
        return [b.sum(b.square(y), axes=(1,), keepdims=False)], [y]

    for columns in (3, 10, 100):
        assert len(launches(softmax, (30, columns))) == 1
        assert "|" not in launches(centred, (30, columns), results=1)


def test_only_the_slice_that_is_written_is_copied() -> None:
    def one_row(b: Builder, x: Value, y: Value) -> Any:
        return [], [b.setslice(x, y, starts=(3, 0), stops=(4, 5), steps=(1, 1))]

    made = staged(one_row, (1000, 5), (1, 5))
    (row,) = made[1].program.rows
    assert row.arguments[0] == 5
    check(made)

    def inner(b: Builder, u: Value) -> Any:
        between = {"starts": (1,), "stops": (99,), "steps": (1,)}
        left, right = (b.slice(u, starts=(start,), stops=(start + 98,), steps=(1,)) for start in (0, 2))
        new = b.add(b.slice(u, **between), b.mul(b.add(left, right), 0.1))
        return [], [b.setslice(u, new, **between)]

    assert launches(inner, (100,)) == ["slice_mul_add", "copy"] or launches(inner, (100,))[-1] == "copy"
    assert "|" not in launches(inner, (100,))


def test_rows_that_are_written_one_after_the_other_are_not_copied_with_all_others() -> None:
    def filled(b: Builder, x: Value, y: Value) -> Any:
        for i in range(6):
            row = {"starts": (i, 0), "stops": (i + 1, 50), "steps": (1, 1)}
            above = b.slice(x, **{**row, "starts": (i - 1, 0), "stops": (i, 50)}) if i else y
            x = b.setslice(x, b.tanh(b.add(above, b.slice(x, **row))), **row)
        return [], [x]

    _, stages = made = staged(filled, (8, 50), (1, 50))
    check(made)
    program = stages.program
    assert program.commits == 0 and program.arena_bytes < 8 * 50 * 8
    assert {row.arguments[0] for row in program.rows} == {50}  # elements: never the whole array

    def back(b: Builder, x: Value, y: Value) -> Any:
        """A version is read after the next one was written."""
        row = {"starts": (2, 0), "stops": (3, 50), "steps": (1, 1)}
        first = b.setslice(x, y, **row)
        second = b.setslice(first, b.slice(x, **row), **row)
        return [b.sum(first, axes=(0,), keepdims=False)], [second]

    check(staged(back, (8, 50), (1, 50)), results=1)


def test_a_result_that_is_also_written_is_computed_once() -> None:
    def returned(b: Builder, p: Value, g: Value) -> Any:
        new = b.tanh(b.sub(p, g))
        return [new], [new]

    assert launches(returned, (40,), (40,), results=1) == ["sub_tanh"]


def test_guards_hold_before_anything_is_written() -> None:
    def guarded(b: Builder, p: Value, g: Value) -> Any:
        norm = b.sum(b.square(g), axes=(0,), keepdims=False)
        return [b.less(norm, 1.0)], [b.sub(p, b.mul(g, 0.1))]

    def late(b: Builder, p: Value, g: Value) -> Any:
        new = b.sub(p, g)
        return [b.less(b.sum(b.tanh(new), axes=(0,), keepdims=False), 1.0)], [new]

    *_, bar, last = launches(guarded, (40,), (40,), guarded=True)
    assert (bar, last) == ("|", "mul_sub")  # no copy
    assert launches(late, (40,), (40,), guarded=True)[-2:] == ["|", "copy"]
    for make in (guarded, late):
        _, stages = staged(make, (40,), (40,), guarded=True)
        run = PythonExecutable(stages.program)
        p, g = np.zeros(40), np.full(40, 0.01)
        run([p, g])
        assert (p == (-0.1 * g if make is guarded else -g)).all()
        kept = p.copy()
        with pytest.raises(GuardFailed):
            run([p, np.full(40, -9.0 if make is late else 9.0)])
        assert (p == kept).all()


def test_an_input_with_strides_gets_a_copy() -> None:
    layout = Layout(0, (4, 5), (10, -2))
    graph, stages = staged(lambda b, x: ([], [b.tanh(x)]), (4, 5), layouts=[layout])
    memory = np.random.default_rng(0).standard_normal((4, 10))
    x = memory[:, ::-2]
    kept = memory.copy()
    want = evaluate(graph, [x])[0]
    PythonExecutable(stages.program)([x])
    np.testing.assert_allclose(x, want, rtol=1e-14)
    assert (memory[:, ::2] == kept[:, ::2]).all()
    assert stages.program.commits == 1


def test_what_an_input_held_before_is_not_written_again() -> None:
    _, stages = staged(lambda b, x, y: ([b.add(x, y)], [x]), (4,), (4,))
    assert [row.note for row in stages.program.rows] == ["add"] and stages.program.written == (0,)


def at_places(b: Builder, buffer: Value, v: Value, places: Value) -> tuple[list[Value], list[Value]]:
    return [], [b.put(buffer, places, v, axis=0)]


def run_at(make: Make, *arrays: np.ndarray) -> tuple[Stages, list[np.ndarray]]:
    """Run a program whose inputs have these values, the first of which is written, and compare it with the graph."""
    graph = Graph()
    b = Builder(graph)
    results, contents = make(b, *[b.input(Aval(array.shape, None, array.dtype)) for array in arrays])
    graph.outputs = [*results, *contents]
    stages = pipeline.stages(graph, (), Writes({len(results): 0}, False))
    check_races(stages.plan)
    given = [array.copy() for array in arrays]
    outputs = PythonExecutable(stages.program)(given)
    for have, want in zip([*outputs[: len(results)], given[0]], evaluate(graph, list(arrays)), strict=True):
        np.testing.assert_array_equal(have, want)
    return stages, given


def noted(stages: Stages) -> list[str]:
    """Return the names of a program's kernels, those of commits behind a bar."""
    names = [row.kernel.name.rpartition("_")[0] for row in stages.program.rows]
    at = len(names) - stages.program.commits
    return [*names[:at], "|", *names[at:]]


def check_refused(stages: Stages, *arrays: np.ndarray) -> None:
    """Check that a program writes nothing into arrays for which it finds a place that is out of range."""
    given = [array.copy() for array in arrays]
    with pytest.raises(BoundsError, match=r"an index is out of range in a replay of put"):
        PythonExecutable(stages.program)(given)
    np.testing.assert_array_equal(given[0], arrays[0])


BUFFER, PLACES = np.arange(12.0).reshape(4, 3), np.array([2, -1])


def test_elements_at_computed_places_are_written_where_they_are() -> None:
    stages, _ = run_at(at_places, BUFFER, np.full((2, 3), 9.0), PLACES)
    assert noted(stages) == ["check_places", "|", "put"]
    stages, _ = run_at(at_places, BUFFER, np.full(3, 9.0), np.array(1))
    assert noted(stages) == ["check_places", "|", "put"]


def test_several_writes_at_places_go_to_one_memory() -> None:
    def several(b: Builder, buffer: Value, v: Value, places: Value) -> Any:
        first = b.put(buffer, places, v, axis=0)
        second = b.scatter_add(first, places, b.take(buffer, places, axis=0), axis=0)
        return [b.sum(buffer, axes=(0,), keepdims=False)], [
            b.put(second, b.constant(np.array([0])), 1.0, axis=0)
        ]

    stages, _ = run_at(several, BUFFER, np.full((2, 3), 9.0), PLACES)
    names = noted(stages)
    assert names[names.index("|") :] == ["|", "put", "scatter_add", "put"] and "copy" not in names


def test_what_a_write_at_places_reads_of_its_memory_is_copied_before() -> None:
    def own_rows(b: Builder, buffer: Value, places: Value) -> Any:
        rows = b.slice(buffer, starts=(0, 0), stops=(2, 3), steps=(1, 1))
        return [], [b.put(buffer, places, rows, axis=0)]

    stages, _ = run_at(own_rows, BUFFER, np.array([1, 2]))
    assert noted(stages) == ["copy", "check_places", "|", "put"]
    assert stages.program.rows[0].arguments[0] == 6  # elements: not the whole array

    def own_places(b: Builder, buffer: Value) -> Any:
        return [], [
            b.put(
                buffer, b.slice(buffer, starts=(0,), stops=(2,), steps=(1,)), b.constant(np.int64(3)), axis=0
            )
        ]

    stages, given = run_at(own_places, np.array([1, 0, 5]))
    assert given[0].tolist() == [3, 3, 5] and noted(stages) == ["copy", "check_places", "|", "put"]


def test_nothing_is_written_where_a_place_is_out_of_range() -> None:
    stages, _ = run_at(at_places, BUFFER, np.full((2, 3), 9.0), PLACES)
    for wrong in ([0, 4], [-5, 0], [2**62, 0]):
        check_refused(stages, BUFFER, np.full((2, 3), 9.0), np.array(wrong))


def test_contents_that_decide_whether_a_write_counts_are_not_written_in_place() -> None:
    def found(b: Builder, buffer: Value, places: Value, v: Value) -> Any:
        """The second write is at places that the first one has made."""
        first = b.put(buffer, places, v, axis=0)
        return [], [b.put(first, b.slice(first, starts=(0,), stops=(1,), steps=(1,)), v, axis=0)]

    stages, given = run_at(found, np.array([7, 7, 7, 7]), np.array([0]), np.array([2]))
    assert given[0].tolist() == [2, 7, 2, 7] and noted(stages)[-3:] == ["|", "copy", "put"]
    check_refused(stages, np.array([7, 7, 7, 7]), np.array([0]), np.array([4]))
