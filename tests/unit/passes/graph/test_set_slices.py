# SPDX-License-Identifier: BSD-3-Clause
"""An array of which most is set anew is put together from pieces."""

from collections.abc import Sequence
from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from launched import agrees, graph_of

from tracejit.aval import Aval
from tracejit.ir import Builder, Graph, Value, evaluate, verify
from tracejit.passes.graph.set_slices import set_slices

Block = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]


@st.composite
def blocks(draw: st.DrawFn) -> Block:
    """Return the shape of an array, and where a block of it begins and ends."""
    shape = tuple(draw(st.lists(st.integers(0, 5), min_size=0, max_size=3)))
    starts = tuple([draw(st.integers(0, extent)) for extent in shape])
    stops = tuple([
        draw(st.integers(start, extent)) for start, extent in zip(starts, shape, strict=True)
    ])  # fmt: skip
    return shape, starts, stops


def setting(block: Block, amid: str, repeated: Sequence[bool] = ()) -> Graph:
    """Return the graph of an assignment to a block: amid zeros, amid an input or amid what is computed."""
    shape, starts, stops = block
    b = Builder(Graph())
    extents = [stop - start for start, stop in zip(starts, stops, strict=True)]
    for axis, is_one in enumerate(repeated[: len(extents)]):
        extents[axis] = 1 if is_one else extents[axis]
    value = b.mul(b.input(Aval(tuple(extents), None, np.dtype(np.float32))), 2.0)
    base = b.input(Aval(shape, None, np.dtype(np.float32)))
    if amid == "zeros":
        base = b.broadcast_to(b.constant(np.float32(0)), shape=shape)
    elif amid == "computed":
        base = b.add(b.neg(base), 1.0)
    b.graph.outputs = [b.setslice(base, value, starts=starts, stops=stops, steps=(1,) * len(shape))]
    return b.graph


@pytest.mark.slow
@given(blocks(), st.sampled_from(["zeros", "input", "computed"]), st.lists(st.booleans(), max_size=3))
@settings(max_examples=150, deadline=None)
def test_the_results_stay_as_they_are(block: Block, amid: str, repeated: list[bool]) -> None:
    graph = setting(block, amid, repeated)
    arrays = [
        np.random.default_rng(0).standard_normal(value.shape).astype(np.float32) for value in graph.inputs
    ]
    for array in arrays:
        array[array < -1] = -0.0
    (want,) = evaluate(graph, arrays)
    name = graph.nodes[-1].op.name
    set_slices(graph)
    verify(graph)
    (found,) = evaluate(graph, arrays)
    np.testing.assert_array_equal(found.view(np.uint32), want.view(np.uint32))
    shape, starts, stops = block
    part = prod([stop - start for start, stop in zip(starts, stops, strict=True)])
    is_most = prod(shape) > part >= prod(shape) / 2 and part > 0
    assert graph.nodes[-1].op.name == (
        name if not is_most else "pad" if amid == "zeros" else "assemble"
    )  # fmt: skip


@pytest.mark.parametrize("amid", ["zeros", "input", "computed"])
@pytest.mark.parametrize(
    "block", [((20,), (1,), (19,)), ((6, 40), (0, 1), (6, 40)), ((6, 40), (1, 2), (5, 38))]
)
def test_a_loop_writes_what_is_set_where_it_belongs(block: Block, amid: str) -> None:
    """Only the border is copied or filled, and what was computed around the block is computed at the border."""
    shape, starts, stops = block
    names = agrees(setting(block, amid))
    borders = sum(
        (start > 0) + (stop < extent) for start, stop, extent in zip(starts, stops, shape, strict=True)
    )
    assert names.count("mul") == 1
    if amid == "computed":
        columns = (starts[-1] > 0) + (stops[-1] < shape[-1]) if len(shape) > 1 else 0
        assert " ".join(names).count("neg add") == borders and names.count("copy") <= columns
    else:
        assert names.count("copy") == borders


def stencil(b: Builder, u: Value, speed: Value) -> Value:
    n = u.shape[0]
    left, middle, right = [
        b.slice(u, starts=(i,), stops=(n - 2 + i,), steps=(1,)) for i in range(3)
    ]  # fmt: skip
    curved = b.mul(speed, b.add(b.sub(left, b.mul(middle, 2.0)), right))
    return b.setslice(u, b.add(middle, curved), starts=(1,), stops=(n - 1,), steps=(1,))


def test_a_stencil_copies_its_ends() -> None:
    names = agrees(graph_of(stencil, (30,), (28,)))
    assert names.count("copy") == 2 and len(names) == 3


def test_inputs_that_are_written_are_left_alone() -> None:
    graph = setting(((6,), (1,), (5,)), "input")
    set_slices(graph, [graph.inputs[1]])
    assert graph.nodes[-1].op.name == "setslice"
    set_slices(graph, [graph.inputs[0]])
    assert graph.nodes[-1].op.name == "assemble"


def test_steps_and_other_dtypes_are_left_alone() -> None:
    b = Builder(Graph())
    x, v = b.input(Aval((8,), None, np.dtype(np.float32))), b.input(Aval((4,), None, np.dtype(np.float32)))
    b.graph.outputs = [b.setslice(x, v, starts=(0,), stops=(8,), steps=(2,))]
    set_slices(b.graph)
    assert [node.op.name for node in b.graph.nodes] == ["setslice"]
