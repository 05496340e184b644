# SPDX-License-Identifier: BSD-3-Clause
"""Complex numbers compiled by Numba: elementwise ops, products, transforms, and programs as the field writes them."""

from typing import Any

import numpy as np
import pytest
from accelerated import dlaccelerate
from effort import sample, sweep
from op_cases import graph_of

import tracejit as tj
from tracejit.ir import evaluate
from tracejit.ops import OPS
from tracejit.pipeline import build
from tracejit.runtime.cpu import CpuExecutable

ONE = [
    "neg",
    "square",
    "reciprocal",
    "abs",
    "sign",
    "conj",
    "exp",
    "expm1",
    "exp2",
    "log",
    "log2",
    "log10",
    "log1p",
    "sqrt",
    "sin",
    "cos",
    "tan",
    "sinh",
    "cosh",
    "tanh",
    "arcsin",
    "arccos",
    "arctan",
    "arcsinh",
    "arccosh",
    "arctanh",
    "isnan",
    "isinf",
    "isfinite",
    "logical_not",
    "rint",
]
TWO = [
    "add",
    "sub",
    "mul",
    "div",
    "pow",
    "equal",
    "less",
    "greater_equal",
    "maximum",
    "minimum",
    "logical_and",
]


def draw(shape: tuple[int, ...], dtype: str, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return (rng.normal(size=shape) + 1j * rng.normal(size=shape)).astype(dtype)


def near(have: Any, want: Any, eps: int = 64) -> None:
    have, want = np.asarray(have), np.asarray(want)
    assert (have.dtype, have.shape) == (want.dtype, want.shape)
    scale = eps * np.finfo(want.dtype).eps if want.dtype.kind in "fc" else 0
    np.testing.assert_allclose(
        have, want, rtol=scale, atol=scale * max(1.0, float(np.abs(want).max(initial=0)))
    )


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("size", [3, 100])
def test_elementwise_ops(dtype: str, size: int) -> None:
    arrays = [draw((2, size), dtype), draw((size,), dtype, 1)]

    def make(b: Any, x: Any, y: Any) -> list[Any]:
        return [b.apply(OPS[name], [x], {}) for name in ONE] + [
            b.apply(OPS[name], [x, y], {}) for name in TWO
        ]

    graph = graph_of(make, arrays)
    for name, have, want in zip(
        ONE + TWO, CpuExecutable(build(graph))(arrays), evaluate(graph, arrays), strict=True
    ):
        assert have.dtype == want.dtype, name
        near(have, want)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_products_and_reductions(dtype: str) -> None:
    x, y = draw((5, 40), dtype), draw((40, 7), dtype, 1)
    functions = (
        lambda x, y: x @ y, lambda x, y: np.vdot(x, x), lambda x, y: x.sum(axis=0), lambda x, y: np.prod(x, axis=0),
        lambda x, y: np.linalg.norm(y), lambda x, y: x.max(axis=1), lambda x, y: np.sort(y, axis=0),
        lambda x, y: np.var(x), lambda x, y: np.cumsum(x, axis=1), lambda x, y: np.einsum("ij,jk->ki", x, y.conj()),
    )  # fmt: skip
    accelerated = dlaccelerate(lambda x, y: [function(x, y) for function in functions])
    for _ in range(3):
        found = accelerated(tj.dlarray(x), tj.dlarray(y))
    for have, function in zip(found, functions, strict=True):
        near(have, function(x, y), 512)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("n", [16, 65])
def test_large_products(n: int, dtype: str) -> None:
    """By NumPy's loop: operands in any order of memory, batches, and a matrix times its own transpose."""
    x, y = draw((3, n, n + 1), dtype), draw((n + 1, n + 2), dtype, 1)
    functions = (
        lambda x, y: x @ y, lambda x, y: x[:, ::-1] @ y, lambda x, y: y.T @ np.swapaxes(x, 1, 2),
        lambda x, y: x[0] @ x[0].T, lambda x, y: y.T @ y, lambda x, y: x[1] @ x[1].conj().T,
        lambda x, y: y.T @ y.conj(), lambda x, y: x @ y.real, lambda x, y: np.einsum("bij,jk->bik", x, y) + 1j,
        lambda x, y: np.exp(x[2] @ y / n).real,
    )  # fmt: skip
    for layout in (lambda z: z, np.asfortranarray, lambda z: np.repeat(z, 2, axis=-1)[..., ::2]):
        a, b = layout(x), layout(y)
        accelerated = dlaccelerate(lambda x, y: [function(x, y) for function in functions])
        for _ in range(3):
            found = accelerated(tj.dlarray(a), tj.dlarray(b))
        for have, function in zip(found, functions, strict=True):
            near(have, function(a, b), 64 * n)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_transforms_of_many_sizes(dtype: str) -> None:
    """Short and long lines, few and many, primes, and sizes beyond the cache, along either axis."""
    sizes = [
        (1, 1),
        (3, 2),
        (2, 31),
        (20, 32),
        (1, 67),
        (9, 100),
        (1, 128),
        (3, 134),
        (17, 243),
        (1, 1009),
        (2, 4096),
    ]
    for count, n in sample(sweep(sizes[dtype == "complex64" :: 2], sizes), dtype):
        z = draw((count, n), dtype)
        accelerated = dlaccelerate(lambda z: (np.fft.fft(z), np.fft.ifft(z.T, axis=0), np.fft.rfft(z.real)))
        for _ in range(3):
            found = accelerated(tj.dlarray(z))
        for have, want in zip(
            found, (np.fft.fft(z), np.fft.ifft(z.T, axis=0), np.fft.rfft(z.real)), strict=True
        ):
            near(have, want)


# A program of each kind, in NumPy's names alone


def vorticity_step(w: Any, k2: Any, kx: Any, ky: Any, dt: float, viscosity: float) -> Any:
    """Return the Fourier coefficients of a vortex field after a step of the Navier-Stokes equations on a torus."""
    psi = w / k2
    u, v = np.fft.irfft2(1j * ky * psi), np.fft.irfft2(-1j * kx * psi)
    wx, wy = np.fft.irfft2(1j * kx * w), np.fft.irfft2(1j * ky * w)
    advection = np.fft.rfft2(u * wx + v * wy)
    return (w - dt * advection) / (1 + dt * viscosity * k2)


def flow(w0: Any, steps: int = 4) -> Any:
    """Return the field after some steps, and its energy."""
    n = w0.shape[0]
    ky, kx = np.fft.fftfreq(n, 1 / n)[:, None], np.fft.rfftfreq(n, 1 / n)[None, :]
    k2 = kx**2 + ky**2
    k2[0, 0] = 1.0
    w = np.fft.rfft2(w0)
    for _ in range(steps):
        w = vorticity_step(w, k2, kx, ky, 0.01, 0.05)
    return np.fft.irfft2(w), np.sum(np.abs(w) ** 2 / k2) / n**4


def gate(theta: Any, kind: int) -> Any:
    """Return a rotation of a qubit about an axis."""
    pauli = np.array([[[0, 1], [1, 0]], [[0, -1j], [1j, 0]], [[1, 0], [0, -1]]])[kind]
    return np.cos(theta / 2) * np.eye(2) - 1j * np.sin(theta / 2) * pauli


def circuit(angles: Any) -> Any:
    """Return the energy of an Ising chain in the state that layers of rotations and controlled signs prepare."""
    layers, qubits, _ = angles.shape
    state = np.zeros(2**qubits, complex)
    state[0] = 1.0
    bits = (np.arange(2**qubits)[:, None] >> np.arange(qubits)[::-1]) & 1
    signs = np.prod(1 - 2 * bits[:, :-1] * bits[:, 1:], axis=1)
    for layer in range(layers):
        for qubit in range(qubits):
            for kind in range(2):
                state = np.reshape(state, (2**qubit, 2, -1))
                state = np.einsum("ij,ajb->aib", gate(angles[layer, qubit, kind], 1 + kind), state)
        state = np.reshape(state, -1) * signs
    spins = 1 - 2 * bits
    probabilities = np.abs(state) ** 2
    flipped = sum(np.real(np.vdot(state, state[np.arange(2**qubits) ^ (1 << q)])) for q in range(qubits))
    return np.sum(probabilities * np.sum(spins[:, :-1] * spins[:, 1:], axis=1)) - flipped


def check_program(loss: Any, x: np.ndarray) -> None:
    """Compare a replay with NumPy, and its gradient with a difference."""
    accelerated = dlaccelerate(lambda x: (loss(x), tj.dlgradient(loss(x), x)))
    for _ in range(3):
        value, gradient = accelerated(tj.dlarray(x))
    assert accelerated.stats.hits > 0
    np.testing.assert_allclose(float(value), loss(x), rtol=1e-12)
    along = np.random.default_rng(1).normal(size=x.shape)
    difference = (loss(x + 1e-6 * along) - loss(x - 1e-6 * along)) / 2e-6
    np.testing.assert_allclose(np.sum(np.asarray(gradient) * along), difference, rtol=1e-6)


@pytest.mark.slow
def test_a_spectral_solver() -> None:
    w0 = np.random.default_rng(0).normal(size=(16, 16))
    found = dlaccelerate(lambda w: flow(w)[0])
    for _ in range(3):
        result = found(tj.dlarray(w0))
    np.testing.assert_allclose(np.asarray(result), flow(w0)[0], rtol=1e-10, atol=1e-12)
    check_program(lambda w: flow(w)[1] + (flow(w)[0] ** 2).sum(), w0)


def test_a_quantum_circuit() -> None:
    check_program(circuit, np.random.default_rng(0).uniform(0, 2, (2, 3, 2)))


def test_exported_functions_multiply_complex_matrices(tmp_path: Any) -> None:
    x = draw((20, 20), "complex128")
    accelerated = dlaccelerate(lambda x: (x @ x.T, x @ x))
    for _ in range(3):
        accelerated(tj.dlarray(x))
    tj.export(accelerated, tmp_path / "exported")
    for have, want in zip(tj.load(tmp_path / "exported")(tj.dlarray(x)), (x @ x.T, x @ x), strict=True):
        near(have, want, 512)


def test_exported_functions_take_complex_numbers(tmp_path: Any) -> None:
    z, w = draw((3, 4), "complex128"), draw((4,), "complex128", 1)
    accelerated = dlaccelerate(lambda z, w: (np.fft.fft(z * w), np.exp(z) @ w))
    for _ in range(3):
        want = accelerated(tj.dlarray(z), tj.dlarray(w))
    tj.export(accelerated, tmp_path / "exported")
    for have, expected in zip(
        tj.load(tmp_path / "exported")(tj.dlarray(z), tj.dlarray(w)), want, strict=True
    ):
        np.testing.assert_array_equal(np.asarray(have), np.asarray(expected))
