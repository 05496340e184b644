# SPDX-License-Identifier: BSD-3-Clause
"""attention, compiled: against PyTorch, without a kernel for each length, and alike on any number of threads."""

from typing import Any

import numpy as np
import pytest
from peers import pytorch

import tracejit as tj
from tracejit import config


def step(q: Any, k: Any, v: Any, ct: Any, heads: int, options: dict[str, Any]) -> Any:
    y = tj.attention(q, k, v, heads, data_format="BTC", **options)
    return [y, *tj.dlgradient((y * ct).sum(), q, k, v)]


def operands(dtype: str, queries: int, keys: int, heads: int, key_heads: int, width: int) -> list[tj.dlarray]:
    rng = np.random.default_rng(queries)
    shapes = [
        (2, queries, heads * width), (2, keys, key_heads * width), (2, keys, key_heads * width),
        (2, queries, heads * width),
    ]  # fmt: skip
    return [tj.dlarray(rng.standard_normal(shape).astype(dtype)) for shape in shapes]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("causal", [False, True])
def test_values_and_gradients_are_those_of_pytorch(dtype: str, causal: bool) -> None:
    torch = pytorch()
    for queries, keys, heads, key_heads, width in (
        (1, 1, 1, 1, 1),
        (130, 131, 4, 2, 33),
        (65, 300, 2, 2, 64),
    ):
        arrays = operands(dtype, queries, keys, heads, key_heads, width)
        accelerated = tj.dlaccelerate(step, confirm=0)
        options = {"attention_mask": "causal" if causal else "none"}
        accelerated(*arrays, heads, options)
        found, *gradients = accelerated(*arrays, heads, options)
        assert accelerated.hit_rate == 50
        tensors = [torch.tensor(np.asarray(x), requires_grad=True) for x in arrays[:3]]
        counts = (heads, key_heads, key_heads)
        parts = [x.reshape(2, -1, n, width).transpose(1, 2) for x, n in zip(tensors, counts, strict=True)]
        wanted = torch.nn.functional.scaled_dot_product_attention(*parts, is_causal=causal, enable_gqa=True)
        wanted = wanted.transpose(1, 2).reshape(2, queries, heads * width)
        wanted.backward(torch.tensor(np.asarray(arrays[3])))
        tolerance = 3e-5 if dtype == "float32" else 1e-12
        np.testing.assert_allclose(found, wanted.detach(), rtol=tolerance, atol=tolerance)
        for have, tensor in zip(gradients, tensors, strict=True):
            np.testing.assert_allclose(have, tensor.grad, rtol=tolerance, atol=tolerance * 10)


@pytest.mark.parametrize("width", [20, 64])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_compiled_is_uncompiled(dtype: str, width: int) -> None:
    rng = np.random.default_rng(0)
    mask = np.where(rng.random((130, 70)) < 0.4, -np.inf, rng.standard_normal((130, 70))).astype(dtype)
    mask[5] = -np.inf
    padding = rng.random((2, 70)) < 0.5
    for options in ({"attention_mask": mask}, {"padding_mask": padding}, {"attention_mask": "causal"}):
        arrays = operands(dtype, 130, 70, 2, 1, width)
        accelerated = tj.dlaccelerate(step, confirm=0)
        accelerated(*arrays, 2, options)
        found = accelerated(*arrays, 2, options)
        wanted = tj.dlfeval(step, *arrays, 2, options)
        for have, want in zip(found, wanted, strict=True):
            np.testing.assert_allclose(have, want, rtol=1e-4 if dtype == "float32" else 1e-11, atol=1e-5)


def test_a_query_that_sees_no_key_is_0_whatever_values_hold() -> None:
    q, k, v, _ = operands("float32", 70, 130, 2, 1, 20)
    v = np.where(np.arange(130)[:, None] % 50 == 7, np.float32(np.nan), v)
    mask = np.arange(70)[:, None] % 3 != np.zeros((1, 130))
    accelerated = tj.dlaccelerate(
        lambda q, k, v: tj.attention(q, k, v, 2, attention_mask=mask, data_format="BTC"), confirm=0
    )
    accelerated(q, k, v)
    found = np.asarray(accelerated(q, k, v))
    assert accelerated.hit_rate == 50
    assert not found[:, ::3].any() and np.isnan(found[:, 1::3]).all()


def test_a_new_length_compiles_nothing() -> None:
    accelerated = tj.dlaccelerate(step, confirm=0)
    kernels = []
    for length in (100, 150, 33):
        arrays = operands("float32", length, length, 2, 2, 16)
        for _ in range(2):
            accelerated(*arrays, 2, {})
        kernels.append(accelerated.stats.kernels)
    assert kernels[0] == kernels[-1]


@pytest.mark.parametrize("width", [32, 64])
def test_results_do_not_depend_on_threads(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    arrays = operands("float32", 300, 300, 2, 1, width)
    found = []
    for threads in (1, 2):
        monkeypatch.setattr(config.settings, "threads", threads)
        accelerated = tj.dlaccelerate(step, confirm=0)
        for _ in range(2):
            result = accelerated(*arrays, 2, {"attention_mask": "causal"})
        found.append([np.asarray(x).copy() for x in result])
    for one, two in zip(*found, strict=True):
        np.testing.assert_array_equal(one, two)
