# SPDX-License-Identifier: BSD-3-Clause
"""Every op for many observations at once, against the op of each: whichever of its operands differ between them."""

import itertools
from typing import Any

import effort
import numpy as np
import pytest
from op_cases import CASES, draw
from op_derivatives import computed, graph_of, name_of

from tracejit.batching import MOST_REPEATED, batch
from tracejit.errors import BoundsError, TraceError
from tracejit.ir import Builder, Graph, evaluate, verify
from tracejit.ops import OPS, Kind, Op
from tracejit.ops.batch import drawn
from tracejit.ops.op import Sample

COUNT = 3
every_op = pytest.mark.parametrize(
    "case", [case for case in CASES if case[0].batch is not drawn], ids=name_of
)


def batched(
    op: Op, sample: Sample, many: list[list[np.ndarray]], differs: tuple[bool, ...]
) -> list[np.ndarray]:
    """Return what the op gives of all observations at once."""
    graph = graph_of(op, sample.params, many[0])
    b = Builder(graph)
    given = [np.stack(values) for values in zip(*many, strict=True)]
    known = {
        value: b.input(value.aval._replace(shape=array.shape))
        for value, array, own in zip(list(graph.inputs), given, differs, strict=True)
        if own
    }
    outputs = graph.outputs
    graph.outputs = [v for v in batch(b, graph.nodes[:], outputs, known, len(many), "dlmap") if v is not None]
    assert len(graph.outputs) == len(outputs)
    verify(graph)
    return evaluate(graph, [*many[0], *[array for array, own in zip(given, differs, strict=True) if own]])


def ways(op: Op, sample: Sample) -> list[tuple[bool, ...]]:
    """Return which operands differ: each one, all, and any of few."""
    k = len(sample.shapes)
    found = [way for way in itertools.product([False, True], repeat=k) if any(way)]
    return [way for way in found if k <= 3 or sum(way) in (1, k)]


@pytest.mark.sampled(by=lambda case: case["case"][0].name)
@every_op
def test_a_batch_is_the_op_of_each_observation(case: tuple[Op, Sample]) -> None:
    op, sample = case
    many = [draw(op, sample, "float64", seed=seed) for seed in range(COUNT)]
    for differs in effort.sample(ways(op, sample), name_of(case), share=2):
        each = [
            [x if own else same for x, same, own in zip(arrays, many[0], differs, strict=True)]
            for arrays in many
        ]
        with np.errstate(all="ignore"):
            try:
                expected = [computed(op, arrays, sample.params) for arrays in each]
            except BoundsError:  # drawn places that the op of one observation refuses
                with pytest.raises(BoundsError):
                    batched(op, sample, many, differs)
                continue
            found = batched(op, sample, many, differs)
        for have, want in zip(found, map(np.stack, zip(*expected, strict=True)), strict=True):
            assert (have.shape, have.dtype) == (want.shape, want.dtype), differs
            np.testing.assert_allclose(have, want, rtol=1e-12, atol=1e-12, err_msg=str(differs))


def test_only_ops_with_kernels_are_repeated_for_each_observation() -> None:
    """The others are in every program, so that each has a rule; see docs/derivatives.md for those that are repeated."""
    derived = (Kind.ELEMENTWISE, Kind.REDUCE, Kind.HOST)
    without = [op for op in OPS.values() if op.batch is None and op.kind not in derived]
    assert {op.kind for op in without} == {Kind.KERNEL}
    assert {"lstm_forward", "ctc_forward", "permutation"} <= {op.name for op in without}


@pytest.mark.parametrize("name", ["take", "put", "scatter_add", "embed"])
def test_a_place_outside_of_one_observation_is_not_one_of_another(name: str) -> None:
    x = np.arange(6.0).reshape(2, 3, 1)
    for place in (3, -4) if name != "embed" else (3, -1):
        index = np.array([[0], [place]])
        arrays = [x, index, *([np.zeros((2, 1, 1))] if name in ("put", "scatter_add") else [])]
        many: Any = [list(parts) for parts in zip(*arrays, strict=True)]
        sample = Sample((), {} if name == "embed" else {"axis": 0})
        with pytest.raises(BoundsError):
            batched(OPS[name], sample, many, (True,) * len(arrays))


def test_an_op_that_would_be_repeated_too_often_says_so() -> None:
    graph = Graph()
    b = Builder(graph)
    u = b.constant(np.zeros(4))
    order = b.permutation(u)
    known = {u: b.constant(np.zeros((MOST_REPEATED + 1, 4)))}
    with pytest.raises(TraceError, match=r"^dlmap: permutation works on one observation at a time"):
        batch(b, graph.nodes[:], [order], known, MOST_REPEATED + 1, "dlmap")


@pytest.mark.parametrize(
    "shapes", [((3, 1), (1, 4)), ((2, 3, 1), (1, 4)), ((3, 1), (2, 1, 4)), ((3, 2), (2, 1))]
)
@pytest.mark.parametrize("differs", [(True, False), (False, True), (True, True)])
@pytest.mark.parametrize("is_turned", [False, True])
def test_products_of_thin_and_of_transposed_matrices(shapes: Any, differs: Any, is_turned: bool) -> None:
    rng = np.random.default_rng(0)
    many = [[rng.standard_normal(shape) for shape in shapes] for _ in range(COUNT)]
    graph = Graph()
    b = Builder(graph)
    x, y = (b.constant(array) for array in many[0])
    columns = [np.stack(parts) for parts in zip(*many, strict=True)]
    known = {v: b.constant(c) for v, c, own in zip((x, y), columns, differs, strict=True) if own}
    if is_turned and differs[1]:  # as the operands of adjoints are
        axes = (*range(columns[1].ndim - 2), columns[1].ndim - 1, columns[1].ndim - 2)
        turned = b.constant(np.swapaxes(columns[1], -1, -2).copy())
        known[y] = b.transpose(turned, axes=axes)
    product = b.matmul(x, y)
    graph.outputs = [v for v in batch(b, [product.node], [product], known, COUNT, "dlmap") if v is not None]
    verify(graph)
    each = [[a if own else same for a, same, own in zip(one, many[0], differs, strict=True)] for one in many]
    expected = np.stack([first @ second for first, second in each])
    np.testing.assert_allclose(evaluate(graph, [])[0], expected, rtol=1e-12)
