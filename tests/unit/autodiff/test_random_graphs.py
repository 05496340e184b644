# SPDX-License-Identifier: BSD-3-Clause
"""Random graphs: tangents are transposed to adjoints, a batch is each of its observations, Laplacians are sums."""

import random
from collections.abc import Sequence

import numpy as np
from graphs import Maker, max_of, random_case
from hypothesis import assume, given
from small_graphs import fuzz, seeds

from tracejit.autodiff import gradient, tangents
from tracejit.autodiff.laplacian import laplacian
from tracejit.autodiff.many import many_gradients, many_tangents
from tracejit.batching import batch
from tracejit.ir import Builder, Graph, evaluate, verify


def drawn(seed: int, steps: int = 12) -> tuple[Maker, np.random.Generator]:
    maker = random_case(random.Random(seed), steps, ("float64",))
    assume(maker is not None)
    assert maker is not None
    return maker, np.random.default_rng(seed)


def tolerance(graph: Graph, arrays: Sequence[np.ndarray]) -> float:
    """Return the error allowed, relative to the largest value, of derivatives too; some graphs compute in float32."""
    single = any(value.dtype == np.float32 for node in graph.nodes for value in node.outputs)
    return max_of(graph, arrays) * (1e-5 if single else 1e-11)


@fuzz
@given(seeds)
def test_tangents_are_transposed_to_adjoints(seed: int) -> None:
    maker, rng = drawn(seed)
    graph = maker.graph
    outputs = [value for value in graph.outputs if value.dtype.kind == "f"]
    wrt = [value for value in graph.inputs if value.dtype.kind == "f"]
    assume(outputs and wrt)
    b = Builder(graph)
    v = [rng.standard_normal((2, *value.shape)) for value in wrt]
    ct = [rng.standard_normal((2, *value.shape)) for value in outputs]
    forward = tangents(b, outputs, wrt, [b.constant(each[0]) for each in v])
    backward = gradient(b, outputs, [b.constant(each[0]) for each in ct], wrt)
    many = many_tangents(b, outputs, wrt, [b.constant(each) for each in v], "test")
    back = many_gradients(b, outputs, [b.constant(each) for each in ct], wrt, "test")
    found = [*forward, *backward, *many, *back]
    graph.outputs = [value for value in found if value is not None]
    verify(graph)
    values = iter(evaluate(graph, maker.arrays))
    data = [None if value is None else next(values) for value in found]
    forward, backward = data[: len(outputs)], data[len(outputs) : len(outputs) + len(wrt)]
    pushed = sum((t * c[0]).sum() for t, c in zip(forward, ct, strict=True) if t is not None)
    pulled = sum((g * d[0]).sum() for g, d in zip(backward, v, strict=True) if g is not None)
    np.testing.assert_allclose(
        pushed, pulled, rtol=0, atol=tolerance(graph, maker.arrays), err_msg=str(graph)
    )
    for one, several in zip([*forward, *backward], data[len(outputs) + len(wrt) :], strict=True):
        assert (one is None) == (several is None)
        if one is not None:
            np.testing.assert_allclose(
                several[0], one, rtol=0, atol=tolerance(graph, maker.arrays), err_msg=str(graph)
            )


@fuzz
@given(seeds)
def test_a_batch_is_each_of_its_observations(seed: int) -> None:
    maker, rng = drawn(seed)
    graph, arrays = maker.graph, maker.arrays
    count = 3
    differs = [array.dtype.kind == "f" and bool(rng.integers(0, 2)) for array in arrays]
    each = [
        [
            rng.permutation(a.ravel()).reshape(a.shape) if own else a
            for a, own in zip(arrays, differs, strict=True)
        ]
        for _ in range(count)
    ]
    outputs = list(graph.outputs)
    expected = [np.stack(parts) for parts in zip(*[evaluate(graph, one) for one in each], strict=True)]
    scale = max(max_of(graph, one) for one in each)
    assume(np.isfinite(scale) and scale < 1e8)
    b = Builder(graph)
    columns = [np.stack(parts) for parts in zip(*each, strict=True)]
    known = {
        value: b.input(value.aval._replace(shape=column.shape))
        for value, column, own in zip(list(graph.inputs), columns, differs, strict=True)
        if own
    }
    found = batch(b, graph.nodes[:], outputs, known, count, "test")
    graph.outputs = [own if own is not None else value for own, value in zip(found, outputs, strict=True)]
    verify(graph)
    given = [column for column, own in zip(columns, differs, strict=True) if own]
    given = [*arrays, *given]
    for own, have, want in zip(found, evaluate(graph, given), expected, strict=True):
        want = want if own is not None else want[0]
        np.testing.assert_allclose(have, want, rtol=0, atol=tolerance(graph, given), err_msg=str(graph))


@fuzz
@given(seeds)
def test_a_laplacian_is_the_sum_of_second_derivatives(seed: int) -> None:
    maker, rng = drawn(seed, steps=8)
    graph = maker.graph
    inputs = [value for value in graph.inputs if value.dtype.kind == "f" and value.aval.size]
    outputs = [value for value in graph.outputs if value.dtype.kind == "f"]
    assume(outputs and inputs)
    x, y = inputs[0], outputs[0]
    directions = rng.standard_normal((2, *x.shape))
    b = Builder(graph)
    total = laplacian(b, y, x, b.constant(directions), "test")
    seconds = []
    for direction in directions:
        v = b.constant(direction)
        (first,) = tangents(b, [y], [x], [v])
        if first is not None:
            seconds += [t for t in tangents(b, [first], [x], [v]) if t is not None]
    graph.outputs = [value for value in (total, *seconds) if value is not None]
    verify(graph)
    with np.errstate(all="ignore"):
        data = evaluate(graph, maker.arrays)
    expected = sum(data[1:] if total is not None else data, np.zeros(y.shape))
    assume(np.isfinite(expected).all())
    found = np.zeros(y.shape) if total is None else data[0]
    np.testing.assert_allclose(
        found, expected, rtol=0, atol=tolerance(graph, maker.arrays), err_msg=str(graph)
    )
