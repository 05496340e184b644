# SPDX-License-Identifier: BSD-3-Clause
"""Quotients by the divisor of a whole loop are rounded as by a division (Note [shared divisors])."""

from collections.abc import Iterator

import numpy as np
import pytest

import tracejit as tj
from tracejit import config
from tracejit.aval import Aval
from tracejit.codegen.target import written_for
from tracejit.ir import Builder, Graph
from tracejit.pipeline import build

COLUMNS = 64


@pytest.fixture(params=[True, False])
def flush(request: pytest.FixtureRequest) -> Iterator[bool]:
    before = config.settings.flush_denormals
    config.settings.flush_denormals = request.param
    yield request.param
    config.settings.flush_denormals = before


def graph(dtype: np.dtype, rows: int = 3) -> Graph:
    b = Builder(Graph())
    x, d = b.input(Aval((rows, COLUMNS), None, dtype)), b.input(Aval((rows, 1), None, dtype))
    b.graph.outputs = [b.div(x, d)]
    return b.graph


def text_of(vector_bytes: int) -> str:
    with written_for(vector_bytes):
        (kernel,) = build(graph(np.dtype(np.float32))).kernels
    return kernel.text


def test_where_divisions_are_shared() -> None:
    for vector_bytes in (64, 32):
        text = text_of(vector_bytes)
        assert text.count("divided_f32(") == 1
        scale = next(line for line in text.splitlines() if "divisor_scale_f32(" in line)
        inner = next(line for line in text.splitlines() if "for i1" in line)
        assert text.index(scale) < text.index(inner)
    assert "divided" not in text_of(16)  # such CPUs may have no fused multiply-add


def numbers(dtype: np.dtype, count: int, spread: int) -> np.ndarray:
    rng = np.random.default_rng(3)
    info = np.finfo(dtype)
    special = [0.0, np.inf, np.nan, 1.0, 3.0, info.max, info.max / 3, info.tiny, info.tiny * 3, 1 + info.eps]
    bits = rng.uniform(1, 2, count) * 2.0 ** rng.integers(-spread, spread, count)
    found = np.concatenate([[s * n for n in special for s in (1, -1)], bits * rng.choice((-1, 1), count)])
    return found.astype(dtype)


def quotients(x: np.ndarray, d: np.ndarray) -> np.ndarray:
    """Return x / d[i] for all i, by a compiled loop over each row."""
    divide = tj.dlaccelerate(lambda x, d: x / d, confirm=0, audit=False)
    left = np.ascontiguousarray(np.broadcast_to(x, (d.size, x.size)))
    for _ in range(3):
        found = divide(tj.dlarray(left), tj.dlarray(d[:, None]))
    assert divide.stats.programs == 1
    return np.array(tj.extractdata(found))


def distance(found: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Return how many numbers lie between two arrays."""
    whole = np.int32 if found.dtype == np.float32 else np.int64

    def place(values: np.ndarray) -> np.ndarray:
        bits = values.view(whole).astype(object)
        return np.where(bits < 0, -(bits & np.iinfo(whole).max), bits)

    return np.abs(place(found) - place(wanted))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_quotients_are_those_of_a_division(dtype: type, flush: bool) -> None:
    info = np.finfo(dtype)
    spread = 126 if dtype is np.float32 else 1022
    x, d = numbers(np.dtype(dtype), 3000, spread), numbers(np.dtype(dtype), 200, spread)
    found = quotients(x, d)
    with np.errstate(all="ignore"):
        wanted = x / d[:, None]
    nan = np.isnan(wanted)
    np.testing.assert_array_equal(np.isnan(found), nan)
    np.testing.assert_array_equal(np.signbit(found[~nan]), np.signbit(wanted[~nan]))
    is_tiny = ~nan & (np.abs(wanted) < info.tiny)
    assert (np.abs(found[is_tiny]) <= info.tiny).all()
    is_zero = ~nan & (wanted == 0)
    assert (found[is_zero] == 0).all()
    normal = ~nan & ~is_tiny
    # The remainder of very small numbers is lost, and with it the last bit of the quotient.
    scale = np.where(np.abs(d) > 2.0 ** (64 if dtype is np.float32 else 512), info.tiny**0.5, 1)[:, None]
    is_exact = (x == 0) | (np.abs(x) * scale > info.tiny * 2.0 ** (info.nmant + 3))
    away = distance(found[normal & is_exact], wanted[normal & is_exact])
    assert not away.any()
    assert distance(found[normal], wanted[normal]).max() <= 1


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_divisors_of_all_ones(dtype: type) -> None:
    rng = np.random.default_rng(5)
    ones = np.nextafter(np.array([1.0, 2.0, 4.0, 1024.0], dtype), np.array(0, dtype))
    x = rng.uniform(1, 2, 20000).astype(dtype)
    found = quotients(x, ones)
    assert distance(found.ravel(), (x / ones[:, None]).ravel()).max() <= 1


def test_gradients_of_a_normalisation() -> None:
    rng = np.random.default_rng(0)
    x, scale = rng.standard_normal((6, 40)), rng.standard_normal(40)

    def loss(x: tj.dlarray, scale: tj.dlarray) -> tuple[tj.dlarray, list[tj.dlarray]]:
        centred = x - x.mean(axis=1, keepdims=True)
        y = centred / tj.sqrt((centred**2).mean(axis=1, keepdims=True) + 1e-5) * scale
        value = (y**3).sum()
        return value, tj.dlgradient(value, [x, scale])

    step = tj.dlaccelerate(loss, confirm=0, audit=False)
    arguments = tj.dlarray(x), tj.dlarray(scale)
    wanted = tj.dlfeval(loss, *arguments)
    for _ in range(3):
        found = step(*arguments)
    for one, other in zip([found[0], *found[1]], [wanted[0], *wanted[1]], strict=True):
        np.testing.assert_allclose(tj.extractdata(one), tj.extractdata(other), rtol=1e-12, atol=1e-13)
