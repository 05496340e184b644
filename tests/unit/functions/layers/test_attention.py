# SPDX-License-Identifier: BSD-3-Clause
"""attention: against a sum over all keys, in NumPy, and gradients against differences."""

import itertools
import math
from typing import Any

import effort
import numpy as np
import pytest

import tracejit as tj
from tracejit.autodiff import gradient
from tracejit.aval import Aval
from tracejit.ir import Builder, Graph, evaluate
from tracejit.ops import OPS
from tracejit.pipeline import build
from tracejit.record.recorder import Recorder
from tracejit.runtime.python import PythonExecutable


def oracle(
    q: np.ndarray, k: np.ndarray, v: np.ndarray, heads: int, mask: np.ndarray, scale: float | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return attention of (batch, length, channels), one query at a time, and the weights."""
    batch, queries, channels = q.shape
    keys, width = k.shape[1], channels // heads
    key_heads = k.shape[2] // width
    value_width = v.shape[2] // key_heads
    mask = np.broadcast_to(mask, (batch, heads, queries, keys))
    out = np.zeros((batch, queries, heads * value_width))
    weights = np.zeros((batch, heads, queries, keys))
    for b, h, i in itertools.product(range(batch), range(heads), range(queries)):
        own = h * key_heads // heads
        scores = np.array([
            (1 / math.sqrt(width) if scale is None else scale)
            * (q[b, i, h * width : (h + 1) * width] @ k[b, j, own * width : (own + 1) * width]) + mask[b, h, i, j]
            for j in range(keys)
        ])  # fmt: skip
        powers = np.exp(scores - max(0.0, scores.max(initial=0.0)))
        if powers.sum():
            weights[b, h, i] = powers / powers.sum()
        out[b, i, h * value_width : (h + 1) * value_width] = (
            weights[b, h, i] @ v[b, :, own * value_width : (own + 1) * value_width]
        )
    return out, weights


def operands(
    rng: np.random.Generator, batch: int, queries: int, keys: int, widths: tuple[int, int, int]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    lengths = (queries, keys, keys)
    q, k, v = (rng.standard_normal((batch, n, width)) for n, width in zip(lengths, widths, strict=True))
    return q, k, v


GRID = [
    (batch, queries, keys, heads, key_heads, width, value_width)
    for batch, (queries, keys), (heads, key_heads), (width, value_width) in itertools.product(
        (1, 2), ((1, 1), (3, 7), (7, 3), (0, 2), (2, 0)), ((1, 1), (2, 2), (4, 2), (3, 1)), ((1, 1), (3, 2))
    )
]  # fmt: skip


@pytest.mark.parametrize("sizes", GRID[:: effort.sweep(5, 1)], ids=str)
@pytest.mark.parametrize("masked", ["none", "causal", "bool", "added", "padding", "all"])
def test_values_and_weights(sizes: tuple[int, ...], masked: str) -> None:
    batch, queries, keys, heads, key_heads, width, value_width = sizes
    rng = np.random.default_rng(sum(sizes))
    q, k, v = operands(rng, batch, queries, keys, (heads * width, key_heads * width, key_heads * value_width))
    options: dict[str, Any] = {}
    mask = np.zeros((1, 1, 1, 1))
    if masked == "causal":
        options["attention_mask"] = "causal"
        mask = np.where(np.tri(queries, keys, dtype=bool), 0, -np.inf)
    if masked in ("bool", "all"):
        seen = rng.random((batch, 1, queries, keys)) < 0.6
        options["attention_mask"] = seen
        mask = np.where(seen, 0, -np.inf)
    if masked == "added":
        options["attention_mask"] = mask = rng.standard_normal((heads, queries, 1))
    if masked in ("padding", "all"):
        options["padding_mask"] = padding = rng.random((batch, keys)) < 0.6
        mask = mask + np.where(padding, 0, -np.inf)[:, None, None]
    wanted, wanted_weights = oracle(q, k, v, heads, mask)
    found = tj.attention(q, k, v, heads, data_format="BTC", **options)
    np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-13)
    found, weights = tj.attention(q, k, v, heads, data_format="BTC", return_weights=True, **options)
    np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(weights, wanted_weights, rtol=1e-12, atol=1e-13)
    assert not np.asarray(weights)[wanted_weights == 0].any()  # exactly 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sizes", "causal"),
    effort.by_turns(
        [(70, 130, 2, 1, 5, 3), (65, 64, 1, 1, 1, 40), (3, 131, 2, 2, 2, 2), (70, 130, 2, 1, 64, 32)],
        [False, True],
    ),
    ids=str,
)
def test_the_kernels_at_the_edges_of_their_blocks(sizes: tuple[int, ...], causal: bool) -> None:
    queries, keys, heads, key_heads, width, value_width = sizes
    rng = np.random.default_rng(1)
    arrays = [
        rng.standard_normal(shape)
        for shape in (
            (1, queries, heads, width),
            (1, keys, key_heads, width),
            (1, keys, key_heads, value_width),
        )
    ]
    mask = np.where(rng.random((1, 1, queries, keys)) < 0.3, -np.inf, 0.0)
    mask[:, :, queries // 2] = -np.inf
    arrays += [mask, np.array([0.7]), rng.standard_normal((1, queries, heads, value_width))]
    graph = Graph()
    b = Builder(graph)
    inputs = [b.input(Aval(array.shape, None, array.dtype)) for array in arrays]
    out, _ = b.apply(OPS["attention_forward"], inputs[:5], {"causal": causal, "masked": True})
    graph.outputs = [out, *gradient(b, [out], [inputs[5]], inputs[:3])]  # type: ignore[list-item]
    found = PythonExecutable(build(graph))(arrays)
    for have, want in zip(found, evaluate(graph, arrays), strict=True):
        np.testing.assert_allclose(have, want, rtol=1e-11, atol=1e-12)
    assert not found[0][0, queries // 2].any()
    assert not found[1][0, queries // 2].any()


@pytest.mark.parametrize("format", ["CBT", "BTC", "TBC", "CTB", "BSC"])
def test_labels_in_any_order(format: str) -> None:
    rng = np.random.default_rng(2)
    q, k, v = operands(rng, 2, 3, 4, (6, 6, 8))
    wanted, _ = oracle(q, k, v, 2, np.zeros(()))
    order = ["BTC".index("T" if label == "S" else label) for label in format]
    found = tj.attention(
        tj.dlarray(q.transpose(order), format), tj.dlarray(k, "BTC"), tj.dlarray(v, "BTC"), 2
    )
    assert tj.dims(found) == format
    np.testing.assert_allclose(found, wanted.transpose(order), rtol=1e-12)
    alone = tj.attention(q[0], k[0], v[0], 2, data_format="TC")
    assert tj.dims(alone) == ""
    np.testing.assert_allclose(alone, wanted[0], rtol=1e-12)


def test_a_padding_mask_with_labels() -> None:
    rng = np.random.default_rng(3)
    q, k, v = (tj.dlarray(x, "BTC") for x in operands(rng, 2, 3, 4, (2, 2, 2)))
    mask = np.array([[1, 1, 0, 0], [1, 0, 1, 1]])
    wanted = tj.attention(q, k, v, 1, padding_mask=mask)
    for given in (tj.dlarray(mask, "BT"), tj.dlarray(mask.T, "TB"), tj.dlarray(mask[None], "CBT")):
        np.testing.assert_array_equal(tj.attention(q, k, v, 1, padding_mask=given), wanted)


@pytest.mark.parametrize("return_weights", [False, True])
def test_a_query_that_sees_no_key_is_0_whatever_values_hold(return_weights: bool) -> None:
    rng = np.random.default_rng(3)
    q, k, v = operands(rng, 1, 3, 4, (2, 2, 2))
    v[0, 2] = [np.nan, np.inf]
    mask = np.arange(3)[:, None] != [[1, 1, 1, 1]]
    y = tj.attention(q, k, v, 1, attention_mask=mask, return_weights=return_weights, data_format="BTC")
    y = y[0] if return_weights else y
    np.testing.assert_array_equal(y[0, 1], [0, 0])
    np.testing.assert_array_equal(np.asarray(y)[0, [0, 2]], [[np.nan, np.inf]] * 2)


@pytest.mark.parametrize(
    "options",
    [{}, {"attention_mask": "causal"}, {"attention_mask": np.tri(3, 4) > 0}, {"scale": 0.3}],
    ids=str,
)
def test_gradients_and_second_derivatives(options: dict[str, Any]) -> None:
    rng = np.random.default_rng(4)
    q, k, v = (tj.dlarray(x, "BTC") for x in operands(rng, 2, 3, 4, (4, 2, 2)))

    def loss(q: Any, k: Any, v: Any) -> Any:
        return (tj.attention(q, k, v, 2, **options) ** 3).sum()

    tj.testing.check_gradients(loss, q, k, v)

    def of_gradients(q: Any, k: Any, v: Any) -> Any:
        return sum((g**2).sum() for g in tj.dlgradient(loss(q, k, v), q, k, v))

    tj.testing.check_gradients(of_gradients, q, k, v)


def test_gradients_of_masks_and_scale() -> None:
    rng = np.random.default_rng(5)
    q, k, v = operands(rng, 2, 3, 4, (4, 4, 6))
    shape = [(2, 2, 3, 4), (2, 1, 4), (1, 4), (3, 1)]
    for mask in (tj.dlarray(rng.standard_normal(size)) for size in shape):
        tj.testing.check_gradients(
            lambda mask, scale: (
                tj.attention(q, k, v, 2, scale=scale, attention_mask=mask, data_format="BTC") ** 2
            ).sum(),
            mask,
            tj.dlarray(0.7),
        )


def test_dropout_leaves_the_mean() -> None:
    ones = np.ones((1, 200, 2))
    with tj.rng(0):
        found, weights = tj.attention(
            ones, ones, ones, 1, dropout_probability=0.25, return_weights=True, data_format="BTC"
        )
    assert abs(np.asarray(found).mean() - 1) < 0.01
    assert np.asarray(found).std() > 0.01
    np.testing.assert_allclose(weights, 1 / 200)


def planned_bytes(length: int) -> tuple[int, int]:
    """Return the bytes that a program of value and gradients plans, and those of its inputs and results."""
    graph = Graph()
    b = Builder(graph)
    aval = Aval((1, length, 8, 64), None, np.dtype(np.float32))
    q, k, v, ct = (b.input(aval) for _ in range(4))
    mask, scale = b.constant(np.zeros((1, 1, 1, 1), np.float32)), b.constant(np.ones(1, np.float32))
    out, _ = b.apply(OPS["attention_forward"], [q, k, v, mask, scale], {"causal": True, "masked": False})
    graph.outputs = [out, *gradient(b, [out], [ct], [q, k, v])]  # type: ignore[list-item]
    program = build(graph)
    needed = sum(aval.size * aval.dtype.itemsize for aval in [*program.inputs, *program.outputs])
    return program.arena_bytes + needed, needed


def test_memory_is_linear_in_the_length() -> None:
    planned, needed = planned_bytes(4096)
    assert planned <= 1.2 * needed
    assert planned <= 2.1 * planned_bytes(2048)[0]


def test_the_function_copies_nothing_of_its_operands() -> None:
    with Recorder("step", accelerating=True) as recorder:
        q, k, v, ct = (
            recorder.input(tj.dlarray(np.zeros((1, 256, 64), np.float32), "BTC")) for _ in range(4)
        )
        y = tj.attention(q, k, v, 4, attention_mask="causal")
        gradients = tj.dlgradient((y * ct).sum(), q, k, v)
        recorder.graph.outputs = [recorder.value(array) for array in (y, *gradients)]
    program = build(recorder.graph)
    needed = sum(aval.size * aval.dtype.itemsize for aval in [*program.inputs, *program.outputs])
    assert program.arena_bytes <= 0.2 * needed
