# SPDX-License-Identifier: BSD-3-Clause
"""Attention and its adjoint on a device: heads of all widths, groups, bands and masks, in PTX that an emulator runs."""

from typing import Any, NamedTuple

import numpy as np
import pytest
from llvm_texts import NEEDS_LLVM_22
from on_device import CAPABILITY, EmulatedProgram, ptx_of

from tracejit.aval import Aval
from tracejit.ir import Builder, Graph, evaluate
from tracejit.pipeline import build_for_device

pytestmark = NEEDS_LLVM_22


class Sizes(NamedTuple):
    """Sizes of attention; the mask has 1 or the full size along its axes."""

    batch: int = 2
    queries: int = 5
    keys: int = 7
    heads: int = 2
    key_heads: int = 2
    width: int = 16
    value_width: int = 16
    mask: tuple[bool, bool, bool] | None = None
    causal: bool = False


CASES = [
    Sizes(),
    Sizes(batch=1, queries=37, keys=35, causal=True),  # groups of threads with queries of two heads
    Sizes(width=3, value_width=1, mask=(True, True, True)),
    Sizes(width=1, value_width=19, heads=6, key_heads=2, mask=(False, True, False)),
    Sizes(width=64, value_width=64, mask=(True, False, True), causal=True, keys=4),
    Sizes(width=33, value_width=20, heads=4, key_heads=1),
    Sizes(width=40, value_width=40, queries=33),
    Sizes(width=128, value_width=128, batch=1, causal=True),
    Sizes(width=600, value_width=530, batch=1, heads=1, key_heads=1, queries=3, keys=2),
    Sizes(batch=1, heads=1, key_heads=1, queries=150, keys=20, causal=True),  # the adjoint has bands
    Sizes(keys=0),
    Sizes(queries=0),
    Sizes(batch=0),
    Sizes(value_width=0),
    Sizes(width=0),
]


def case_of(sizes: Sizes, dtype: str) -> tuple[Graph, list[np.ndarray]]:
    """Return the graph of attention and its adjoint, and arrays for it; a row of a mask hides all keys."""
    rng = np.random.default_rng(0)
    q = (sizes.batch, sizes.queries, sizes.heads, sizes.width)
    k, v = ((sizes.batch, sizes.keys, sizes.key_heads, width) for width in (sizes.width, sizes.value_width))
    full = (sizes.batch, sizes.heads, sizes.queries)
    mask = (1, 1, 1, 1)
    if sizes.mask is not None:
        rows = [extent if own else 1 for extent, own in zip(full, sizes.mask, strict=True)]
        mask = (rows[0], rows[1], rows[2], sizes.keys)
    rows_of = q[:3]
    shapes = (q, k, v, mask, (1,), rows_of, rows_of, (*rows_of, sizes.value_width))
    arrays = [rng.uniform(-1, 1, shape).astype(dtype) for shape in shapes]
    if sizes.mask is not None:
        arrays[3][..., ::3] = -np.inf
        arrays[3][-1, -1, -1] = -np.inf
    arrays[5] = np.abs(arrays[5]) + 1
    graph = Graph()
    b = Builder(graph)
    values = [b.input(Aval(array.shape, None, array.dtype)) for array in arrays]
    params: dict[str, Any] = {"causal": sizes.causal, "masked": sizes.mask is not None}
    graph.outputs = [*b.attention_forward(*values[:5], **params), *b.attention_backward(*values, **params)]
    return graph, arrays


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sizes", "dtype"),
    [(sizes, "float32") for sizes in CASES] + [(sizes, "float64") for sizes in CASES[1:6]],
    ids=range(len(CASES) + 5),
)
def test_attention(sizes: Sizes, dtype: str) -> None:
    graph, arrays = case_of(sizes, dtype)
    with np.errstate(all="ignore"):
        want = evaluate(graph, arrays)
        found = EmulatedProgram(build_for_device(graph))(arrays)
    eps = np.finfo(dtype).eps
    for have, expected in zip(found, want, strict=True):
        finite = np.where(np.isfinite(expected), expected, 0)
        atol = 40 * eps * max(1.0, float(np.abs(finite).max(initial=0)))
        np.testing.assert_allclose(have, expected, rtol=40 * eps, atol=atol)


@pytest.mark.parametrize("width", [64, 80, 70])
def test_threads_have_no_memory_of_their_own(width: int) -> None:
    """And rows of widths that fill the columns of threads are loaded by 16 bytes."""
    graph, _ = case_of(Sizes(width=width, value_width=width), "float32")
    rows = build_for_device(graph).rows
    assert len(rows) == 3
    for row in rows:
        text = ptx_of(row.kernel, CAPABILITY)
        assert ".local" not in text and "f64" not in text.partition("{")[2]
        assert ("ld.global.v4.b32" in text) == (width % 4 == 0)


def test_other_lengths_have_the_same_kernels() -> None:
    def names(sizes: Sizes) -> set[str]:
        return {row.kernel.name for row in build_for_device(case_of(sizes, "float32")[0]).rows}

    assert names(Sizes()) == names(Sizes(3, 50, 60, 4, 4, causal=True, mask=(True, True, True)))
