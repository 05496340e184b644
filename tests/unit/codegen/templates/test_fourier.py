# SPDX-License-Identifier: BSD-3-Clause
"""Transforms of lines for every step of the kernel, for lines along either axis, with vectors of every CPU."""

from math import prod

import numpy as np
import pytest

from tracejit.aval import Aval
from tracejit.codegen.target import written_for
from tracejit.ir import Builder, Graph
from tracejit.ops.fourier import primes, radices
from tracejit.pipeline import build
from tracejit.runtime.python import PythonExecutable


def test_steps_multiply_to_the_size() -> None:
    assert all(prod(radices(n)) == n for n in range(1, 300))
    assert [radices(n) for n in (2, 4, 8, 16, 32, 64, 128)] == [
        [2],
        [4],
        [8],
        [4, 4],
        [8, 4],
        [8, 8],
        [8, 4, 4],
    ]
    assert radices(360) == [8, 3, 3, 5]
    assert primes(360) == (2, 2, 2, 3, 3, 5)


@pytest.mark.parametrize("vector_bytes", [16, 64])
@pytest.mark.parametrize("inverse", [False, True])
@pytest.mark.parametrize(
    ("shape", "axis"),
    [((3, n), 1) for n in (2, 3, 4, 5, 7, 8, 9, 10, 16, 20, 25, 30, 35)]
    + [((10, 17), 0), ((17, 10), 1), ((3, 64), 1), ((3, 22), 1), ((10, 26), 0)],
)
def test_transforms(shape: tuple[int, int], axis: int, inverse: bool, vector_bytes: int) -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal(shape) + 1j * rng.standard_normal(shape)
    b = Builder(Graph())
    b.graph.outputs = [b.fft(b.input(Aval(shape, None, x.dtype)), axis=axis, inverse=inverse)]
    with written_for(vector_bytes):
        program = build(b.graph)
    (found,) = PythonExecutable(program)([x])
    expected = np.fft.ifft(x, axis=axis, norm="forward") if inverse else np.fft.fft(x, axis=axis)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-14 * np.abs(expected).max())


@pytest.mark.parametrize("power", [0.5, 1.0])
@pytest.mark.parametrize("inverse", [False, True])
@pytest.mark.parametrize(
    ("shape", "axis"), [((3, 10), 1), ((10, 17), 0), ((2, 64), 1), ((2, 67), 1), ((1, 2), 0)]
)
def test_factors(shape: tuple[int, int], axis: int, inverse: bool, power: float) -> None:
    """Of lines in one step and in two, and of convolutions with a chirp."""
    x = np.random.default_rng(0).standard_normal(shape) + 1j
    b = Builder(Graph())
    b.graph.outputs = [b.fft(b.input(Aval(shape, None, x.dtype)), axis=axis, inverse=inverse, power=power)]
    program = build(b.graph)
    assert all("numpy.fft" not in str(row.arguments[0]) for row in program.rows)
    (found,) = PythonExecutable(program)([x])
    function = np.fft.ifft if inverse else np.fft.fft
    norm = "ortho" if power == 0.5 else "backward" if inverse else "forward"
    np.testing.assert_allclose(found, function(x, axis=axis, norm=norm), rtol=0, atol=1e-14)


@pytest.mark.parametrize("vector_bytes", [16, 64])
@pytest.mark.parametrize("shape", [(1, 4), (3, 10), (17, 16), (2, 3, 18), (9, 34)])
def test_rows_of_real_numbers_are_read_in_pairs(shape: tuple[int, ...], vector_bytes: int) -> None:
    x = np.random.default_rng(0).standard_normal(shape)
    b = Builder(Graph())
    b.graph.outputs = [b.rfft(b.input(Aval(shape, None, x.dtype)), axis=x.ndim - 1)]
    with written_for(vector_bytes):
        program = build(b.graph)
    assert len(program.rows) == 2  # the transform, and what is made of its elements from both ends
    (found,) = PythonExecutable(program)([x])
    np.testing.assert_allclose(found, np.fft.rfft(x), rtol=0, atol=1e-13)


def test_a_kernel_has_the_steps_of_its_size() -> None:
    def steps(n: int) -> list[int]:
        b = Builder(Graph())
        b.graph.outputs = [b.fft(b.input(Aval((9, n), None, np.dtype(complex))), axis=1, inverse=False)]
        (kernel,) = build(b.graph).kernels
        return [r for r in range(9) if f"r == {r}:" in kernel.text]

    assert [steps(8), steps(20), steps(21), steps(51)] == [[8], [4, 5], [3, 7], [3]]
