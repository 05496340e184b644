# SPDX-License-Identifier: BSD-3-Clause
"""Descriptions: operations, rows, reasons between steps, memory, and the lines of kernels."""

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from effort import sweep
from graphs import random_case

from tracejit import dlaccelerate, dlarray, pipeline
from tracejit.autodiff import gradient
from tracejit.aval import Aval
from tracejit.describe.program import Description, Operation, Pair, ResultValue, describe
from tracejit.describe.stages import Stages
from tracejit.ir import Builder, Graph, Value
from tracejit.ops import OPS
from tracejit.ops.op import Layout, Pieces
from tracejit.passes.fusion.chop import LARGEST
from tracejit.passes.fusion.reasons import Apart
from tracejit.passes.graph.bodies import Body
from tracejit.passes.graph.scan import SCAN
from tracejit.program import Place
from tracejit.traces.replay import Replay

F32 = np.dtype(np.float32)


def staged(make: Callable[[Any], Any]) -> Stages:
    """Return the stages of the graph that `make` makes with a builder; what it returns are the outputs."""
    b = Builder(Graph())
    made = make(b)
    b.graph.outputs = list(made) if isinstance(made, tuple) else [made]
    return pipeline.stages(b.graph)


def inputs(b: Any, *shapes: tuple[int, ...]) -> list[Value]:
    return [b.input(Aval(shape, None, F32)) for shape in shapes]


def scaled(b: Any) -> Value:
    """Return x * 0.5 and its transpose multiplied by itself: an elementwise op, a view, and a product."""
    (x,) = inputs(b, (4, 3))
    b.location = ("train.py", 3)
    y = b.mul(x, 0.5)
    b.location = ("train.py", 4)
    return b.matmul(b.transpose(y, axes=(1, 0)), y)  # type: ignore[no-any-return]


def test_a_description() -> None:
    found = describe(staged(scaled))
    assert found == Description(
        ops=[
            Operation(
                0, "mul", ("in0", "0.5"), {}, (ResultValue("v0", (4, 3), "float32"),), ("train.py", 3), (0,)
            ),
            Operation(
                1, "transpose", ("v0",), {"axes": "(1, 0)"}, (ResultValue("v1", (3, 4), "float32"),),
                ("train.py", 4), (),
            ),
            Operation(
                2, "matmul", ("v1", "v0"), {}, (ResultValue("v2", (3, 3), "float32"),), ("train.py", 4), (1,)
            ),
        ],
        rows=[(0, (0,), ""), (1, (2,), "")],  # type: ignore[list-item]
        pairs=[Pair(0, 1, "v0", "matmul is a matrix product, which has a kernel of its own")],
        buffers=[
            (Place("input", 0, 0), 48, "in0", None, 0, 0),
            (Place("arena", 0, 0), 48, "v0", 0, 0, 1),
            (Place("output", 0, 0), 36, "v2", 2, 1, 1),
        ],  # type: ignore[list-item]
        lines=found.lines,
        left_out={},
    )  # fmt: skip


def test_operations_of_the_lines_of_a_kernel() -> None:
    def make(b: Any) -> tuple[Value, Value]:
        (x,) = inputs(b, (8, 20))
        y = b.tanh(b.mul(x, x))
        return y, b.sum(y, axes=(0,), keepdims=False)

    stages = staged(make)
    found = describe(stages)
    (kernel,) = stages.program.kernels
    lines = {
        line.strip(): found.ops[found.lines[kernel.name][number]].name
        for number, line in enumerate(kernel.text.splitlines(), 1)
        if number in found.lines[kernel.name]
    }
    assert lines == {
        "o1[i1] = f32(0)": "sum",
        "v1 = v0 * v0": "square",
        "v2 = tanh_f32(v1)": "tanh",
        "o0[i0 * o0_0 + i1] = v2": "tanh",
        "o1[i1] = fold_sum_f32(o1[i1], v2)": "sum",
    }


def kernel_apart(b: Any) -> Any:
    x, i = b.input(Aval((4, 3), None, F32)), b.input(Aval((2,), None, np.dtype(np.int64)))
    return b.take(b.tanh(x), i, axis=0)


def copied(b: Any) -> Any:
    (x,) = inputs(b, (4, 3))
    y = b.tanh(x)
    return b.tanh(b.reshape(b.transpose(y, axes=(1, 0)), shape=(6, 2)))


def pieces(b: Any) -> Any:
    x, y = inputs(b, (4, 3), (4, 3))
    return b.concatenate(b.transpose(b.tanh(x), axes=(1, 0)), b.transpose(y, axes=(1, 0)), axis=0)


def written_by_two(b: Any) -> Any:
    x, y = inputs(b, (4, 64), (4, 64))
    return b.tanh(b.concatenate(b.tanh(x), b.tanh(y), axis=1))


def folded(b: Any) -> Any:
    (x,) = inputs(b, (40, 30))
    return b.tanh(b.sum(x, axes=(0,), keepdims=False))


def long(b: Any) -> Any:
    (x,) = inputs(b, ())
    for _ in range(LARGEST + 40):
        x = b.sin(x)
    return x


def extents(b: Any) -> Any:
    x, y = inputs(b, (4, 3), (3,))
    return b.mul(x, b.tanh(y))


def axes(b: Any) -> Any:
    (x,) = inputs(b, (4, 4))
    y = b.tanh(x)
    return b.add(y, b.transpose(y, axes=(1, 0)))


def sliced(b: Any) -> Any:
    (x,) = inputs(b, (4, 3))
    return b.tanh(b.slice(b.tanh(x), starts=(0, 0), stops=(2, 3), steps=(1, 1)))


def rows_differ(b: Any) -> Any:
    (x,) = inputs(b, (4, 3))
    y = b.tanh(b.sub(x, b.max(x, axes=(1,), keepdims=True)))
    z = b.add(b.matmul(x, b.transpose(x, axes=(1, 0))), 1.0)
    w = b.slice(z, starts=(0, 0), stops=(4, 3), steps=(1, 1))
    return b.mul(b.sum(b.mul(w, y), axes=(0, 1), keepdims=True), b.mul(w, y))


def maker(b: Any) -> Any:
    x, y, z = inputs(b, (4,), (3, 4), (2, 4))
    a = b.tanh(x)
    return b.mul(a, y), b.add(a, b.tanh(z))


def together(b: Any) -> Any:
    x, y, z = inputs(b, (4,), (3, 4), (2, 4))
    a = b.tanh(x)
    return b.add(a, b.matmul(y, b.matmul(b.transpose(z, axes=(1, 0)), z))), b.mul(a, y), b.mul(a, z)


def start(b: Any) -> Any:
    x, w = inputs(b, (4, 4), (4, 4))
    y = b.tanh(x)
    total = b.slice(b.matmul(y, w), starts=(0, 0), stops=(1, 4), steps=(1, 1))
    return b.sum_add(y, b.reshape(total, shape=(4,)), axes=(0,), keepdims=False)


def broadcast(b: Any) -> Any:
    (x,) = inputs(b, (3,))
    return b.sum(b.broadcast_to(b.tanh(x), shape=(4, 3)), axes=(0,), keepdims=False)


def first(b: Any) -> Any:
    x, w = inputs(b, (4, 4), (4, 4))
    y = b.tanh(x)
    z = b.matmul(b.add(y, b.matmul(x, w)), w)
    return b.add(y, z)


def reader(b: Any) -> Any:
    (x,) = inputs(b, (4, 4))
    y = b.tanh(x)
    z = b.matmul(y, x)
    return b.add(z, y)


def operand(b: Any) -> Any:
    x, y = inputs(b, (40, 30), (30, 40))
    return b.matmul(b.transpose(y, axes=(1, 0)), b.transpose(x, axes=(1, 0)))


def tiled(b: Any) -> Any:
    x, y = inputs(b, (1000, 8), (8,))
    return b.tanh(b.add(x, y))


def parts(b: Any) -> Any:
    (x,) = inputs(b, (10000, 8))
    return b.sum(b.tanh(x), axes=(0,), keepdims=False)


def output(b: Any) -> Any:
    (x,) = inputs(b, (4, 3))
    y = b.tanh(x)
    return y, b.transpose(y, axes=(1, 0))


def steps(b: Any) -> Any:
    step = Builder(Graph())
    carry = step.input(Aval((3,), None, F32))
    step.graph.outputs = [step.tanh(carry)]
    (x,) = inputs(b, (3,))
    params = {"body": Body(step.graph, 1, 0), "length": 4, "reverse": False, "save": True}
    (last,) = b.apply(SCAN, [x], params)
    return b.exp(last)


@pytest.mark.parametrize(
    ("make", "reason", "words"),
    [
        (kernel_apart, Apart.KERNEL, {"op": "take"}),
        (steps, Apart.STEPS, {"op": "scan"}),
        (copied, Apart.COPY, {"op": "reshape"}),
        (pieces, Apart.PIECES, {"op": "concatenate"}),
        (written_by_two, Apart.PIECES, {"op": "concatenate"}),
        (folded, Apart.FOLDED, {"op": "sum"}),
        (long, Apart.LONG, {"count": LARGEST + 40}),
        (extents, Apart.EXTENTS, {"made_over": "3", "read_over": "4 x 3"}),
        (axes, Apart.AXES, {"value": "v0"}),
        (sliced, Apart.SLICE, {"op": "slice", "value": "v0"}),
        (rows_differ, Apart.ROWS, {}),
        (maker, Apart.OTHER_MAKER, {"reader": "add"}),
        (reader, Apart.OTHER_READER, {"value": "v0"}),
        (together, Apart.TOGETHER, {"value": "v0"}),
        (start, Apart.START, {"reader": "sum_add"}),
        (broadcast, Apart.BROADCAST, {"reader": "sum"}),
        (first, Apart.FIRST, {}),
        (operand, Apart.OPERAND, {"op": "matmul"}),
        (tiled, Apart.TILES, {}),
        (parts, Apart.PARTS, {}),
        (output, Apart.OUTPUT, {}),
    ],
    ids=lambda value: value.name if isinstance(value, Apart) else "",
)
def test_reasons_between_rows(make: Callable[[Any], Any], reason: Apart, words: dict[str, Any]) -> None:
    found = describe(staged(make))
    assert reason.value.format(**words) in [pair.why for pair in found.pairs]


@pytest.mark.parametrize("seed", range(sweep(12, 60, sample=3)))
def test_descriptions_agree_with_programs(seed: int) -> None:
    case = random_case(random.Random(seed), 25)
    if case is None:
        return
    stages = pipeline.stages(case.graph)
    found, program = describe(stages), stages.program
    assert found.left_out == {}
    assert [row.number for row in found.rows] == list(range(len(program.rows)))
    assert [op.number for op in found.ops] == list(range(len(stages.graph.nodes)))
    for row, of_program in zip(found.rows, program.rows, strict=True):
        assert bool(row.ops) != bool(row.purpose)
        for op in row.ops:
            assert row.number in found.ops[op].rows
            name = found.ops[op].name
            is_put_together = isinstance(OPS[name].emit, Pieces)  # loops that make pieces write them, too
            assert name in of_program.note or "," not in of_program.note or is_put_together
    for pair in found.pairs:
        assert pair.made < pair.read
        assert "{" not in pair.why
    known = {"in", "c"}
    for op in found.ops:
        for name in op.inputs:
            assert name
        known.update(result.value for result in op.outputs)
    for buffer in found.buffers:
        assert 0 <= buffer.first <= buffer.last < len(program.rows)
        assert buffer.place.kind != "arena" or buffer.place.offset + buffer.bytes <= program.arena_bytes


def test_loops_that_write_pieces_compute_the_whole() -> None:
    def make(b: Any) -> Any:
        x, y = inputs(b, (4, 64), (4, 32))
        return b.matmul(x, b.transpose(b.concatenate(b.tanh(y), b.exp(y), axis=1), axes=(1, 0)))

    stages = staged(make)
    found = describe(stages)
    (loop,) = [row for row in found.rows if "tanh" in stages.program.rows[row.number].note]
    both = next(op for op in found.ops if op.name == "concatenate")
    assert both.rows == (loop.number,)
    assert [found.ops[number].name for number in loop.ops] == ["tanh", "exp", "concatenate"]
    (buffer,) = [each for each in found.buffers if each.value == both.outputs[0].value]
    assert (buffer.op, buffer.first, buffer.bytes) == (both.number, loop.number, 4 * 64 * 4)
    assert [op.rows for op in found.ops if op.name in ("tanh", "exp")] == [(loop.number,)] * 2


def test_a_bounded_description_has_each_kernel_and_counts_what_is_left_out() -> None:
    def make(b: Any) -> Any:
        x, w = inputs(b, (4, 4), (4, 4))
        for _ in range(30):
            x = b.tanh(b.matmul(x, w))
        return b.sum(x, axes=(0, 1), keepdims=False)

    stages = staged(make)
    whole, found = describe(stages), describe(stages, 6)
    kernels = [row.kernel.name for row in stages.program.rows]
    assert {kernels[row.number] for row in found.rows} == set(kernels)
    assert [row.number for row in found.rows][:6] == list(range(6))
    assert found.pairs == whole.pairs[:5]
    assert [op.number for op in found.ops] == [
        *range(6),
        59,
        60,
    ]  # the last ones are in a kernel that is shown
    assert found.buffers == [each for each in whole.buffers if each.first <= 5 or each.last >= 59]
    assert found.left_out == {
        "ops": len(whole.ops) - 8,
        "rows": len(whole.rows) - len(found.rows),
        "buffers": len(whole.buffers) - len(found.buffers),
    }
    assert found.ops[:6] == [op._replace(rows=tuple(n for n in op.rows if n < 6)) for op in whole.ops[:6]]
    assert found.lines == whole.lines


def test_a_replay_describes_its_program() -> None:
    b: Any = Builder(Graph())
    b.graph.outputs = [scaled(b)]
    replay = Replay(b.graph, "scaled")
    assert replay.describe() == describe(pipeline.stages(b.graph))
    assert not replay.is_built


def test_lines_lie_in_the_function() -> None:
    @dlaccelerate
    def loss(x: Any) -> Any:
        return (x * 3.0).sum()

    for _ in range(3):
        loss(dlarray(np.ones(5, np.float32)))
    trace = loss._cache.last_trace
    assert trace is not None
    found = trace.replay.describe()
    first = loss.__wrapped__.__code__.co_firstlineno
    assert [(op.name, op.where[1] - first) for op in found.ops if op.where] == [("mul", 2), ("sum", 2)]


def test_memory_of_inputs_with_negative_strides() -> None:
    b: Any = Builder(Graph())
    x, y = inputs(b, (4, 3), (3,))
    b.graph.outputs = [b.add(x, y)]
    stages = pipeline.stages(b.graph, [Layout(0, (4, 3), (-3, 2)), Layout(0, (3,), (0,))])
    found = {buffer.value: (buffer.place.offset, buffer.bytes) for buffer in describe(stages).buffers}
    assert found == {"in0": (-36, 56), "in1": (0, 4), "v0": (0, 48)}


def test_emitted_source_has_the_lines_of_the_user() -> None:
    b: Any = Builder(Graph())
    (x,) = inputs(b, (4, 3))
    b.location = ("/home/me/train.py", 3)
    y = b.tanh(x)
    b.location = ("/home/me/layers.py", 9)
    b.graph.outputs = [b.mul(y, y)]
    replay = Replay(b.graph, "squared")
    commented = [line.strip() for line in replay.source().splitlines() if "#" in line]
    assert commented == [
        "v1 = tanh_f32(v0)  # train.py:3 tanh",
        "v2 = v1 * v1       # layers.py:9 square",
        "o0[i0] = v2        # layers.py:9 square",
        "# tanh, square  (/home/me/train.py:3, /home/me/layers.py:9)",
    ]
    (kernel,) = replay.program.kernels
    assert "#" not in kernel.text


def test_partial_sums_that_the_next_loop_continues(monkeypatch: pytest.MonkeyPatch) -> None:
    """The gradient of a bias in a loop over time: each band adds to memory of its own, in one loop after the other."""
    for name, value in (
        ("cost.LEAST_FOLDED", 0.01), ("cost.LEAST_SECTION_NS", 0.0), ("loops.bands.BAND_ROWS", 1),
        ("loops.bands.LEAST_ROWS", 1), ("loops.bands.MOST_BANDS", 3),
    ):  # fmt: skip
        monkeypatch.setattr(f"tracejit.passes.{name}", value)

    def recurrent(b: Any) -> tuple[Value, ...]:
        x, u, bias = inputs(b, (8, 8), (8, 8), (8,))
        h = x
        for _ in range(3):
            h = b.tanh(b.add(b.matmul(h, u), bias))
        loss = b.sum(b.square(h), axes=(0, 1), keepdims=False)
        return loss, *gradient(b, [loss], [b.constant(np.ones((), F32))], [u, bias])  # type: ignore[misc]

    found = describe(staged(recurrent))
    assert "each part of the loop accumulates in memory of its own; these sums are added up after them" in {
        pair.why for pair in found.pairs
    }


def test_a_sum_of_band_sums_that_is_cut_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """It stands for the product: what adds it up is no operation of the graph."""
    monkeypatch.setattr("tracejit.passes.cost.LEAST_SPLIT_NS", 100.0)
    monkeypatch.setattr("tracejit.passes.cost.PART_NS", 50.0)

    def layers(b: Any) -> tuple[Value, ...]:
        x, w = inputs(b, (256, 20), (20, 20))
        for _ in range(6):
            x = b.tanh(b.matmul(x, w))
        loss = b.sum(b.square(x), axes=(0, 1), keepdims=False)
        return loss, *gradient(b, [loss], [b.constant(np.ones((), F32))], [w])  # type: ignore[misc]

    found = describe(staged(layers))
    products = [op for op in found.ops if op.name.startswith("matmul")]
    assert products
    assert all(op.rows for op in products)
