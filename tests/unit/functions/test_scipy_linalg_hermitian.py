# SPDX-License-Identifier: BSD-3-Clause
"""Functions of Hermitian matrices, above all of those whose eigenvalues are equal or close."""

from typing import Any

import numpy as np
import pytest
import scipy.linalg
from accelerated import dlaccelerate
from effort import by_turns

import tracejit as tj

RNG = np.random.default_rng(6)
SPECTRA = (
    [0.5, 1.0, 2.0, 3.0],
    [1.0, 1.0, 1.0, 2.0],
    [1.0] * 4,
    [1.0, 1.0 + 1e-9, 1.0 + 1e-4, 2.0],
    [2.0, 2.0, 1.0, 1.0],
)
FUNCTIONS: dict[str, tuple[Any, Any]] = {
    "exp": (np.exp, scipy.linalg.expm),
    "log": (np.log, scipy.linalg.logm),
    "sqrt": (np.sqrt, scipy.linalg.sqrtm),
    "phase": (lambda w: np.exp(-1j * w), lambda a: scipy.linalg.expm(-1j * a)),
}


def matrix(spectrum: list[float], is_complex: bool) -> np.ndarray:
    x = RNG.normal(size=(4, 4)) + (1j * RNG.normal(size=(4, 4)) if is_complex else 0.0)
    q = np.linalg.qr(x)[0]
    made = (q * np.array(spectrum)) @ q.conj().T
    return (made + made.conj().T) / 2


def direction(is_complex: bool) -> np.ndarray:
    x = RNG.normal(size=(4, 4)) + (1j * RNG.normal(size=(4, 4)) if is_complex else 0.0)
    return x + x.conj().T


def by_blocks(
    ref: Any, a: np.ndarray, first: np.ndarray, second: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return derivatives of first and second order, blocks of the function of a matrix of 4 by 4 blocks."""
    one, none = np.eye(2), np.array([[0.0, 1.0], [0.0, 0.0]])
    inner = np.kron(one, a) + np.kron(none, first)
    whole = ref(np.kron(one, inner) + np.kron(none, np.kron(one, second)))
    return whole[:4, 4:8], whole[:4, 12:]


@pytest.mark.slow
@pytest.mark.sampled
@pytest.mark.parametrize(
    ("spectrum", "name", "is_complex"), by_turns(SPECTRA, [*FUNCTIONS], [False, True]), ids=str
)
def test_values_and_derivatives_of_both_modes(spectrum: list[float], name: str, is_complex: bool) -> None:
    func, ref = FUNCTIONS[name]
    a, e, g = matrix(spectrum, is_complex), direction(is_complex), direction(is_complex)
    along, twice = by_blocks(ref, a, e, g)
    of = lambda x: tj.linalg.funmh(x, func)
    np.testing.assert_allclose(tj.extractdata(of(a)), ref(a), rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(tj.extractdata(tj.jvp(of, (a,), (e,))[1]), along, rtol=1e-10, atol=1e-10)
    weights = RNG.normal(size=(4, 4))

    def slope(x: Any) -> Any:
        return (tj.dlgradient((of((x + x.conj().T) / 2).real * weights).sum(), x) * e.conj()).sum().real

    assert abs(tj.dlfeval(slope, a).item() - (along.real * weights).sum()) < 1e-9
    have = tj.dlfeval(lambda x: (tj.dlgradient(slope(x), x) * g.conj()).sum().real, a)
    assert abs(have.item() - (twice.real * weights).sum()) < 1e-7


def test_many_matrices_in_replays_and_in_float32() -> None:
    many = np.stack([matrix(spectrum, False) for spectrum in SPECTRA])
    step = dlaccelerate(lambda x: tj.dlgradient(np.sin(tj.linalg.funmh(x, np.exp)).sum(), x))
    want = np.stack([tj.extractdata(tj.dlfeval(step.function, x)) for x in many])
    for _ in range(3):
        np.testing.assert_allclose(tj.extractdata(step(many)), want, rtol=1e-10, atol=1e-10)
    assert step.stats.hits > 0
    narrow = tj.linalg.funmh(many.astype(np.float32), np.exp)
    assert narrow.dtype == np.float32
    np.testing.assert_allclose(
        tj.extractdata(narrow), np.stack([scipy.linalg.expm(x) for x in many]), rtol=1e-3, atol=1e-3
    )
    assert tj.linalg.funmh(np.zeros((0, 0)), np.exp).shape == (0, 0)
    upper = np.triu(many[0])
    np.testing.assert_allclose(
        tj.extractdata(tj.linalg.funmh(upper, np.exp, lower=False)), scipy.linalg.expm(many[0]), rtol=1e-10
    )


def test_third_derivatives_are_nan() -> None:
    def total(x: Any) -> Any:
        y = tj.linalg.funmh(x, np.exp).sum()
        for _ in range(3):
            y = tj.dlgradient(y, x).sum()
        return y

    assert np.isnan(tj.dlfeval(total, np.eye(2)).item())


@pytest.mark.slow
def test_a_function_of_other_variables_that_is_made_anew_in_each_call() -> None:
    a, e = matrix(SPECTRA[1], False), direction(False)

    def slopes(x: Any, p: Any) -> Any:
        y = (tj.linalg.funmh(x, lambda w: w**p) * e).sum()
        return tj.dlgradient(y, (x, p))

    step = dlaccelerate(slopes)
    for p in (1.5, 1.5, 1.5, 2.5):
        have = [tj.extractdata(slope) for slope in step(a, np.array(p))]
        power = lambda q: scipy.linalg.fractional_matrix_power(a, q)
        want = (power(p) @ scipy.linalg.logm(a) * e).sum()
        np.testing.assert_allclose(have[1], want, rtol=1e-9)
    assert step.stats.hits > 0
    mixed = tj.dlfeval(lambda x, p: tj.dlgradient((slopes(x, p)[0] * e).sum(), p), a, np.array(1.5))
    near = [(tj.extractdata(tj.dlfeval(slopes, a, np.array(1.5 + h))[0]) * e).sum() for h in (1e-4, -1e-4)]
    np.testing.assert_allclose(mixed.item(), (near[0] - near[1]) / 2e-4, rtol=1e-6)


def test_a_singular_matrix_has_a_root() -> None:
    a = np.diag([0.0, 0.0, 4.0])
    np.testing.assert_allclose(tj.extractdata(tj.linalg.funmh(a, np.sqrt)), np.sqrt(a))
