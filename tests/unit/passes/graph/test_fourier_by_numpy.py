# SPDX-License-Identifier: BSD-3-Clause
"""Transforms that are left to the loops of np.fft: which they are, what they compute, and that a GPU has none."""

from typing import Any

import numpy as np
import pytest

from tracejit.aval import Aval
from tracejit.exports.parameters import parameters
from tracejit.ir import Builder, Graph
from tracejit.ops import fourier_ufuncs
from tracejit.pipeline import build, build_for_device
from tracejit.program import Program, Symbol
from tracejit.runtime.python import PythonExecutable

COMPLEX, REAL = np.dtype(complex), np.dtype(float)


def graph_of(name: str, shape: tuple[int, ...], dtype: Any, **params: Any) -> Graph:
    b = Builder(Graph())
    b.graph.outputs = [getattr(b, name)(b.input(Aval(shape, None, np.dtype(dtype))), **params)]
    return b.graph


def loops(program: Program) -> list[str]:
    """Return the names of the loops that a program calls."""
    words = (argument for row in program.rows for argument in row.arguments)
    return [word.name for word in words if isinstance(word, Symbol)]


@pytest.mark.parametrize("dtype", ["complex128", "complex64"])
@pytest.mark.parametrize("inverse", [False, True])
@pytest.mark.parametrize(("shape", "axis"), [((9, 67), 1), ((67, 40), 0), ((2, 67, 9), 1), ((3, 5, 67), 2)])
def test_lines_of_large_primes(shape: tuple[int, ...], axis: int, inverse: bool, dtype: str) -> None:
    rng = np.random.default_rng(0)
    x = (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(dtype)
    program = build(graph_of("fft", shape, dtype, axis=axis, inverse=inverse, power=0.5))
    char = x.dtype.char
    assert set(loops(program)) == {f"numpy.fft.{'i' * inverse}fft/{char}{char.lower()}->{char}"}
    (found,) = PythonExecutable(program)([x])
    function = np.fft.ifft if inverse else np.fft.fft
    np.testing.assert_allclose(found, function(x, axis=axis, norm="ortho"), rtol=0, atol=1e-6, strict=True)


@pytest.mark.parametrize("n", [67, 134])
@pytest.mark.parametrize("axis", [0, 1])
def test_lines_of_real_numbers(n: int, axis: int) -> None:
    rng = np.random.default_rng(0)
    shape = (n, 9) if axis == 0 else (9, n)
    x = rng.standard_normal(shape)
    program = build(graph_of("rfft", shape, REAL, axis=axis))
    assert set(loops(program)) == {f"numpy.fft.rfft_n_{'odd' if n % 2 else 'even'}/dd->D"}
    (found,) = PythonExecutable(program)([x])
    np.testing.assert_allclose(found, np.fft.rfft(x, axis=axis), rtol=0, atol=1e-13)
    back = build(graph_of("irfft", found.shape, COMPLEX, axis=axis, n=n, power=1.0))
    assert set(loops(back)) == {"numpy.fft.irfft/Dd->d"}
    np.testing.assert_allclose(PythonExecutable(back)([found])[0], x, rtol=0, atol=1e-13)


@pytest.mark.parametrize(
    ("name", "shape", "params", "is_loop"),
    [
        ("fft", (8, 4096), {"axis": 1, "inverse": False}, True),  # lines that leave the near cache
        ("fft", (1, 4096), {"axis": 1, "inverse": False}, False),  # of which there are too few
        ("fft", (8, 512), {"axis": 1, "inverse": False}, False),
        ("fft", (2, 67), {"axis": 1, "inverse": False}, False),
        ("fft", (20000, 16), {"axis": 1, "inverse": False}, True),
        ("fft", (16, 20000), {"axis": 0, "inverse": False}, False),
        ("fft", (2000, 16), {"axis": 1, "inverse": False}, False),
        ("rfft", (1000, 1000), {"axis": 1}, True),
        ("rfft", (100, 100), {"axis": 1}, False),
        ("irfft", (1000, 51), {"axis": 0, "n": 1998}, True),
        ("irfft", (100, 51), {"axis": 1, "n": 100}, False),
        ("fft", (0, 67), {"axis": 1, "inverse": False}, False),
    ],
)
def test_which_sizes_are_left_to_numpy(
    name: str, shape: tuple[int, ...], params: dict[str, Any], is_loop: bool
) -> None:
    program = build(graph_of(name, shape, REAL if name == "rfft" else COMPLEX, **params))
    assert bool(loops(program)) == is_loop


def test_other_sizes_have_the_same_kernel() -> None:
    programs = [
        build(graph_of("fft", shape, COMPLEX, axis=axis, inverse=False))
        for shape, axis in (((9, 67), 1), ((71, 16), 0), ((3, 8, 5000), 2))
    ]
    assert len({kernel.text for program in programs for kernel in program.kernels}) == 1


def test_calls_share_no_bundle_of_lines() -> None:
    program = build(graph_of("fft", (1000, 67), COMPLEX, axis=1, inverse=False))
    ranges = [row.arguments[1:5] for row in program.rows]
    assert len(ranges) > 1
    assert [first for first, *_ in ranges[1:]] == [last for _, last, *_ in ranges[:-1]]
    assert {(bundle, total) for *_, bundle, total in ranges} == {(64, 1000)}


def test_a_stored_program_calls_the_loop_of_its_kernel_only() -> None:
    program = build(graph_of("rfft", (9, 67), REAL, axis=1))
    (kernel,) = program.kernels
    (symbol, *_) = parameters(kernel)
    assert symbol.takes(Symbol("numpy.fft.rfft_n_odd/dd->D"), ())
    assert not symbol.takes(Symbol("numpy.fft.irfft/Dd->d"), ())
    assert not symbol.takes(Symbol("numpy.arctan2/dd->d"), ())


def test_a_device_has_its_own_kernels() -> None:
    program = build_for_device(graph_of("fft", (9, 67), COMPLEX, axis=1, inverse=False))
    assert not loops(program)


def test_another_numpy_may_have_no_such_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fourier_ufuncs, "FOURIER_UFUNCS", ())
    fourier_ufuncs.fourier_ufunc.cache_clear()
    assert not loops(build(graph_of("fft", (9, 67), COMPLEX, axis=1, inverse=False)))
