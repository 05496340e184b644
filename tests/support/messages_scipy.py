# SPDX-License-Identifier: BSD-3-Clause
"""Rows of the table of messages (messages.py) of functions under SciPy's names: a call, the error, its text."""

from collections.abc import Callable

import numpy as np

import tracejit as tj
from tracejit.errors import ArgumentError, DimsError, MatrixError

ROWS: tuple[tuple[Callable[[], object], type[Exception], str], ...] = (
    (
        lambda: tj.linalg.companion([1.0]),
        DimsError,
        "linalg.companion: a has 1 element, expected at least 2 coefficients.",
    ),
    (
        lambda: tj.linalg.khatri_rao(np.ones((2, 2)), np.ones((2, 3))),
        DimsError,
        "linalg.khatri_rao: a has shape (2, 2) and b (2, 3), expected matrices with as many columns.",
    ),
    (
        lambda: tj.linalg.solve_banded((1, 1), np.ones(3), np.ones(3)),
        MatrixError,
        "linalg.solve_banded: ab has shape (3,), expected (..., m, n): matrices along the last two axes.",
    ),
    (
        lambda: tj.linalg.solve_banded((1, 1), np.ones((2, 3)), np.ones(3)),
        DimsError,
        "linalg.solve_banded: ab has 2 rows and l_and_u is (1, 1), expected a pair of numbers of "
        "diagonals with l + u + 1 rows.",
    ),
    (
        lambda: tj.linalg.solve_banded((1, 0), np.ones((2, 3)), np.ones((2, 3, 1))),
        DimsError,
        "linalg.solve_banded: b has shape (2, 3, 1), expected a vector or a matrix.",
    ),
    (
        lambda: tj.linalg.solve_banded((1, 0), np.ones((2, 3)), np.ones(2)),
        DimsError,
        "linalg.solve_banded: b has shape (2,), expected (3,) or (..., 3, k), with as many rows as there "
        "are equations.",
    ),
    (
        lambda: tj.linalg.cho_solve_banded(None, np.ones(3)),
        ArgumentError,
        "linalg.cho_solve_banded: cb_and_lower must be the pair (factor, lower) of cholesky_banded, not "
        "None.",
    ),
    (
        lambda: tj.linalg.lu_solve(None, np.ones(3)),
        ArgumentError,
        "linalg.lu_solve: lu_and_piv must be the pair (lu, piv) that lu_factor returns, not None.",
    ),
    (
        lambda: tj.linalg.lu_solve((np.eye(2), np.arange(2)), np.ones(2), trans=3),
        ArgumentError,
        "linalg.lu_solve: trans must be 0, 1 or 2, not 3.",
    ),
    (
        lambda: tj.linalg.qr(np.eye(2), mode="raw"),
        ArgumentError,
        "linalg.qr: mode must be 'full', 'economic' or 'r', not 'raw'.",
    ),
    (
        lambda: tj.linalg.polar(np.eye(2), side="up"),
        ArgumentError,
        "linalg.polar: side must be 'right' or 'left', not 'up'.",
    ),
    (
        lambda: tj.linalg.schur(np.eye(2), output="x"),
        ArgumentError,
        "linalg.schur: output must be 'real' or 'complex', not 'x'.",
    ),
    (
        lambda: tj.linalg.expm_frechet(np.eye(2), np.eye(3)),
        DimsError,
        "linalg.expm_frechet: A has shape (2, 2) and E (3, 3), expected the same.",
    ),
    (
        lambda: tj.linalg.solve(np.eye(2), np.ones(2), assume_a="x"),
        ArgumentError,
        "linalg.solve: assume_a must be one of gen, general, sym, symmetric, her, hermitian, pos, "
        "positive definite, diagonal, tridiagonal, banded, upper triangular, lower triangular, or None, "
        "not 'x'.",
    ),
    (
        lambda: tj.linalg.solve_sylvester(np.eye(2), np.eye(2), np.ones((2, 3))),
        DimsError,
        "linalg.solve_sylvester: a has shape (2, 2), b (2, 2) and q (2, 3), expected (m, m), (n, n) and "
        "(m, n).",
    ),
    (
        lambda: tj.linalg.solve_discrete_lyapunov(np.eye(2), np.eye(3)),
        DimsError,
        "linalg.solve_discrete_lyapunov: a has shape (2, 2) and q (3, 3), expected the same.",
    ),
    (
        lambda: tj.linalg.solve_continuous_are(np.eye(2), np.ones((3, 1)), np.eye(2), np.eye(1)),
        DimsError,
        "linalg.solve_continuous_are: a has shape (2, 2), b (3, 1), q (2, 2) and r (1, 1), expected (m, "
        "m), (m, n), (m, m) and (n, n).",
    ),
    (
        lambda: tj.linalg.solve_toeplitz((np.ones(2),), np.ones(2)),
        ArgumentError,
        "linalg.solve_toeplitz: c_or_cr must be a vector or a pair of vectors, not (array([1., 1.]),).",
    ),
    (
        lambda: tj.linalg.eigvalsh(np.eye(2), subset_by_index=(0, 1), subset_by_value=(0, 1)),
        ArgumentError,
        "linalg.eigvalsh: subset_by_index and subset_by_value are given both, expected one of them.",
    ),
    (
        lambda: tj.linalg.eigvalsh(np.eye(2), subset_by_index=3),
        ArgumentError,
        "linalg.eigvalsh: a subset must be a pair (first, last), not 3.",
    ),
    (
        lambda: tj.linalg.eigvalsh(np.eye(2), subset_by_index=(1, 5)),
        ArgumentError,
        "linalg.eigvalsh: subset_by_index is (1, 5), expected 0 <= first <= last < 2.",
    ),
    (
        lambda: tj.linalg.eigvalsh(np.ones((2, 2, 2)), subset_by_value=(0, 1)),
        ArgumentError,
        "linalg.eigvalsh: subset_by_value is for one matrix.",
    ),
    (
        lambda: tj.linalg.eigh(np.eye(2), np.eye(3)),
        DimsError,
        "linalg.eigh: a has shape (2, 2) and b (3, 3), expected matrices of one size.",
    ),
    (
        lambda: tj.linalg.orth(np.ones((2, 2, 2))),
        DimsError,
        "linalg.orth: A has shape (2, 2, 2), expected a matrix.",
    ),
    (
        lambda: tj.integrate.simpson(np.ones(3), np.ones(2)),
        DimsError,
        "integrate.simpson: x has shape (2,), expected as many places as the 3 samples along the axis.",
    ),
    (
        lambda: tj.integrate.romb(np.ones(4)),
        DimsError,
        "integrate.romb: y has 4 samples along the axis, expected 2^k + 1.",
    ),
    (
        lambda: tj.integrate.cumulative_trapezoid(np.ones(3), initial=1),
        ArgumentError,
        "integrate.cumulative_trapezoid: initial must be None or 0, not 1.",
    ),
    (
        lambda: tj.signal.lfilter(np.eye(2), [1.0], np.ones(3)),
        DimsError,
        "signal.lfilter: b has shape (2, 2), expected a vector of coefficients.",
    ),
    (
        lambda: tj.signal.sosfilt(np.ones((1, 5)), np.ones(3)),
        DimsError,
        "signal.sosfilt: sos has shape (1, 5), expected (sections, 6).",
    ),
    (
        lambda: tj.signal.detrend(np.ones(3), type="x"),
        ArgumentError,
        "signal.detrend: type must be 'linear' or 'constant', not 'x'.",
    ),
    (
        lambda: tj.signal.hilbert(np.ones(3) * 1j),
        ArgumentError,
        "signal.hilbert: x is complex, expected real signals.",
    ),
    (
        lambda: tj.signal.hilbert(np.ones(3), N=0),
        ArgumentError,
        "signal.hilbert: N is 0, expected a positive number of elements.",
    ),
    (
        lambda: tj.signal.resample(np.ones(3) * 1j, 2),
        ArgumentError,
        "signal.resample: x is complex, expected real signals.",
    ),
    (
        lambda: tj.signal.resample(np.ones(3), 0),
        ArgumentError,
        "signal.resample: num is 0, expected a positive number of samples.",
    ),
    (
        lambda: tj.signal.convolve2d(np.eye(2), np.eye(2), boundary="x"),
        ArgumentError,
        "signal.convolve2d: boundary must be 'fill', 'wrap' or 'symm', not 'x'.",
    ),
    (
        lambda: tj.signal.convolve2d(np.eye(2), np.ones(2)),
        DimsError,
        "signal.convolve2d: in1 has 2 axes and in2 1, expected 2 of both.",
    ),
    (
        lambda: tj.special.factorial(3, exact=True),
        ArgumentError,
        "special.factorial: exact=True is not supported on dlarrays; use math.factorial.",
    ),
    (
        lambda: tj.special.sph_harm_y(-1, 0, 0.0, 0.0),
        ArgumentError,
        "special.sph_harm_y: n is -1, expected a degree of at least 0.",
    ),
    (
        lambda: tj.stats.betabinom.cdf(2.0, 5000.0, 1.0, 1.0),
        ArgumentError,
        "stats.betabinom.cdf: n is 5000, and as many probabilities would be added; expected up to 1000.",
    ),
    (
        lambda: tj.stats.zipf.mean(2.0),
        ArgumentError,
        "stats.zipf.mean: there is no formula for it; scipy.stats computes it from numbers.",
    ),
    (
        lambda: tj.stats.zipf.cdf(2.0, 3.0),
        ArgumentError,
        "stats.zipf.cdf: there is no formula for it; there are formulas for logpmf.",
    ),
    (
        lambda: tj.stats.multinomial.pmf([1.0], 1, [0.5, 0.5]),
        DimsError,
        "stats.multinomial.logpmf: x has size (1,) and p (2,); counts and probabilities lie along the "
        "last axis, as many of both.",
    ),
    (
        lambda: tj.stats.wishart.pdf(np.eye(2), 2, np.eye(3)),
        DimsError,
        "stats.wishart.logpdf: x has size (2, 2) and scale (3, 3), expected matrices (n, n) along the "
        "last two axes.",
    ),
    (
        lambda: tj.stats.multivariate_t.pdf(np.ones(2), np.ones(3)),
        DimsError,
        "stats.multivariate_t.logpdf: x has 2 components, loc and shape 3; vectors lie along the last axis.",
    ),
    (
        lambda: tj.linalg.solveh_banded(np.ones((1, 2, 2)), np.ones(2)),
        DimsError,
        "linalg.solveh_banded: ab has shape (1, 2, 2), expected a matrix of diagonals.",
    ),
)
