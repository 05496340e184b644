# SPDX-License-Identifier: BSD-3-Clause
"""Fourier transforms and CTC on a device: lines and observations of all sizes, in PTX that an emulator runs."""

from typing import Any

import numpy as np
import pytest
from effort import by_turns
from llvm_texts import NEEDS_LLVM_22
from on_device import CAPABILITY, EmulatedProgram, ptx_of

from tracejit.aval import Aval
from tracejit.ir import Builder, Graph, Value, evaluate
from tracejit.pipeline import build_for_device
from tracejit.program import Program

pytestmark = NEEDS_LLVM_22


def assert_agree(graph: Graph, arrays: list[np.ndarray], tolerance: float) -> None:
    found = EmulatedProgram(build_for_device(graph))(arrays)
    for have, want in zip(found, evaluate(graph, arrays), strict=True):
        assert have.dtype == want.dtype
        finite = np.where(np.isfinite(want), np.abs(want), 0)
        atol = tolerance * max(1.0, float(finite.max(initial=0)))
        np.testing.assert_allclose(have, want, rtol=tolerance, atol=atol)


def threads_have_no_memory(program: Program) -> bool:
    return all(".local" not in ptx_of(kernel, CAPABILITY) for kernel in program.kernels)


def transforms(shape: tuple[int, ...], axis: int, dtype: str) -> tuple[Graph, list[np.ndarray]]:
    """Return the graph of a transform and its inverse, of a complex array, or of a real one."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal(shape)
    if dtype.startswith("complex"):
        x = x + 1j * rng.standard_normal(shape)
    array = x.astype(dtype)
    graph = Graph()
    b = Builder(graph)
    value: Any = b.input(Aval(shape, None, array.dtype))
    if dtype.startswith("complex"):
        graph.outputs = [b.fft(value, axis=axis, inverse=inverse) for inverse in (False, True)]
    else:
        graph.outputs = [b.rfft(value, axis=axis)]
    return graph, [array]


LINES = [
    ((3, n), 1) for n in (1, 2, 3, 4, 5, 7, 8, 16, 30, 61, 64, 77, 360)
] + [((10, 17), 0), ((2, 12, 5), 1), ((1, 1024), 1), ((4096,), 0), ((134,), 0), ((0, 4), 1)]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["complex64", "complex128", "float32"])
@pytest.mark.parametrize(("shape", "axis"), LINES)
def test_transforms(shape: tuple[int, ...], axis: int, dtype: str) -> None:
    graph, arrays = transforms(shape, axis, dtype)
    assert_agree(graph, arrays, 1e-13 if dtype == "complex128" else 1e-5)


def test_each_step_of_a_transform_is_a_launch_of_many_threads() -> None:
    program = build_for_device(transforms((8, 256), 1, "float32")[0])
    steps = [row.grid for row in program.rows if row.kernel.name.startswith("fft_step")]
    assert steps == [(1, 128), (2, 128), (2, 128)]  # of 8, 4 and 4 elements, of half as many complex numbers
    assert threads_have_no_memory(program)


def alignments(batch: int, steps: int, most: int, classes: int, dtype: str) -> tuple[Graph, list[np.ndarray]]:
    """Return the graph of the loss and its adjoint; many labels repeat, some do not fit, the last class is blank."""
    rng = np.random.default_rng(0)
    y = rng.standard_normal((batch, steps, classes))
    y = y - np.log(np.exp(y).sum(-1, keepdims=True))
    lengths = rng.integers(0, steps + 1, batch)
    lengths[: batch // 2] = steps
    arrays = [
        y.astype(dtype), rng.integers(0, max(1, min(3, classes - 1)), (batch, most)), lengths,
        rng.integers(0, most + 1, batch) * (classes > 1), rng.standard_normal(batch).astype(dtype),
    ]  # fmt: skip
    graph = Graph()
    b = Builder(graph)
    *operands, ct = (b.input(Aval(array.shape, None, array.dtype)) for array in arrays)
    loss: Value
    alpha: Value
    loss, alpha = b.ctc_forward(*operands, blank=classes - 1)
    graph.outputs = [loss, *b.ctc_backward(*operands, alpha, loss, ct, blank=classes - 1)]
    return graph, arrays


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sizes", "dtype"),
    by_turns(
        [
            (6, 9, 3, 5),
            (3, 37, 20, 4),
            (2, 40, 18, 3),
            (2, 4, 0, 2),
            (2, 0, 2, 3),
            (0, 3, 2, 3),
            (2, 3, 2, 1),
        ],
        ["float32", "float64"],
    ),
)
def test_alignments(sizes: tuple[int, int, int, int], dtype: str) -> None:
    graph, arrays = alignments(*sizes, dtype)
    with np.errstate(all="ignore"):
        assert_agree(graph, arrays, 1e-12 if dtype == "float64" else 2e-5)


def test_groups_take_observations() -> None:
    program = build_for_device(alignments(9, 4, 3, 5, "float32")[0])
    assert [row.grid for row in program.rows] == [(3, 128), (3, 128)]
    assert threads_have_no_memory(program)
