# SPDX-License-Identifier: BSD-3-Clause
"""Rows of the table of messages (messages.py) of statistics and of missing names: a call, the error, its text."""

from collections.abc import Callable

import numpy as np

import tracejit as tj
from tracejit.errors import ArgumentError, DimsError

X = np.arange(4.0)


ROWS: tuple[tuple[Callable[[], object], type[Exception], str], ...] = (
    (
        lambda: tj.stats.zscore(X, nan_policy="omit"),
        ArgumentError,
        "stats.zscore: nan_policy must be 'propagate', not 'omit'; leave NaN out, as x[~np.isnan(x)].",
    ),
    (lambda: tj.stats.moment(X, order=-1), ArgumentError, "stats.moment: order is -1, expected at least 0."),
    (
        lambda: tj.stats.moment(X, center=X),
        DimsError,
        "stats.moment: center has shape (4,), expected a number.",
    ),
    (
        lambda: tj.stats.gmean(np.ones((3, 4)), weights=X),
        DimsError,
        "stats.gmean: weights have shape (4,) and the samples (3, 4), expected the same, or a vector for the last "
        "axis.",
    ),
    (
        lambda: tj.stats.entropy(np.ones((2, 3)), X),
        DimsError,
        "stats.entropy: samples of sizes (2, 3) and (4,) do not broadcast.",
    ),
    (
        lambda: tj.stats.ttest_1samp(np.ones((3, 4)), X),
        DimsError,
        "stats.ttest_1samp: popmean has shape (4,) and the samples (3, 4), expected a number, or the sizes of the "
        "samples with 1 along the axis.",
    ),
    (
        lambda: tj.stats.ttest_ind(np.ones((3, 4)), X),
        DimsError,
        "stats.ttest_ind: samples have shapes (3, 4) and (4,), expected sizes that differ along the axis only.",
    ),
    (
        lambda: tj.stats.entropy(X, base=-2),
        ArgumentError,
        "stats.entropy: base is -2, expected a positive number or None.",
    ),
    (
        lambda: tj.stats.pearsonr(X, X[:2]),
        DimsError,
        "stats.pearsonr: x has shape (4,) and y (2,), expected samples of one size.",
    ),
    (
        lambda: tj.stats.linregress(X[:2], X[:2]),
        DimsError,
        "stats.linregress: there are 2 samples, expected at least 3.",
    ),
    (
        lambda: tj.stats.linregress(np.ones((3, 2)), np.ones((3, 2))),
        DimsError,
        "stats.linregress: x has shape (3, 2), expected vectors.",
    ),
    (
        lambda: tj.stats.ttest_1samp(X, 1.0, alternative="more"),
        ArgumentError,
        "stats.ttest_1samp: alternative must be 'two-sided', 'less' or 'greater', not 'more'.",
    ),
    (lambda: tj.stats.iqr(X, rng=25), ArgumentError, "stats.iqr: rng must be a pair of percentages, not 25."),
    (
        lambda: tj.stats.iqr(X, scale="raw"),
        ArgumentError,
        "stats.iqr: scale must be a number or 'normal', not 'raw'.",
    ),
    (
        lambda: tj.stats.norm.rvs(np.zeros(3), size=2),
        DimsError,
        "stats.norm.rvs: size is (2,), expected one that parameters of size (3,) broadcast to.",
    ),
    (
        lambda: tj.stats.norm.rvs(random_state="shuffle"),
        ArgumentError,
        "stats.norm.rvs: random_state must be None, a seed or a tj.Generator, not 'shuffle'.",
    ),
    (
        lambda: tj.stats.norm._fit,
        AttributeError,
        "'Distribution' object has no attribute '_fit'",
    ),
    (
        lambda: tj.stats._zscore,
        AttributeError,
        "module 'tracejit.stats' has no attribute '_zscore'",
    ),
    (
        lambda: tj.stats.norm(1, 2, 3),
        ArgumentError,
        "stats.norm: there are 3 parameters; parameters are loc, scale.",
    ),
    (
        lambda: tj.stats.multivariate_normal(np.zeros(2)).cdf(X),
        ArgumentError,
        "stats.multivariate_normal.cdf: there is no such method; there are pdf, logpdf, entropy, rvs.",
    ),
    (
        lambda: tj.stats.gamma.fit(X),
        AttributeError,
        "stats.gamma.fit: there is no such method. Parameters that fit data minimise "
        "-tj.stats.gamma.logpdf(data, ...).sum(), whose gradient is that by dlgradient; "
        "scipy.stats.gamma computes with ndarrays.",
    ),
    (
        lambda: tj.stats.poisson.expect(X),
        AttributeError,
        "stats.poisson.expect: there is no such method. Parameters that fit data minimise "
        "-tj.stats.poisson.logpmf(data, ...).sum(), whose gradient is that by dlgradient; "
        "scipy.stats.poisson computes with ndarrays.",
    ),
    (
        lambda: tj.stats.zscores(X),
        AttributeError,
        "tj.stats.zscores: there is no such name; tj.stats.zscore is similar, and tj.stats.__all__ lists"
        " those there are. If SciPy has it, forward of a tj.DifferentiableFunction can call "
        "scipy.stats.zscores, in replays too; its backward gives the derivative.",
    ),
    (
        lambda: tj.linalg.ldl(np.eye(2)),
        AttributeError,
        "tj.linalg.ldl: there is no such name; tj.linalg.__all__ lists those there are. If SciPy has it,"
        " forward of a tj.DifferentiableFunction can call scipy.linalg.ldl, in replays too; its backward"
        " gives the derivative.",
    ),
    (
        lambda: tj.integrate.quad(np.sin, 0, 1),
        AttributeError,
        "tj.integrate.quad: there is no such name; solvers of scipy.integrate call an accelerated "
        "function like any other, as in scipy.integrate.quad(f, 0, 1).",
    ),
    (
        lambda: tj.linalg.funm(np.eye(2), np.exp),
        AttributeError,
        "tj.linalg.funm: there is no such name; tj.linalg.funmh(A, func) is that of symmetric and "
        "Hermitian matrices, with derivatives.",
    ),
    (
        lambda: tj.linalg.funmh(np.eye(2), np.sum),
        DimsError,
        "linalg.funmh: func returns an array of shape () for one of (2,), expected the same.",
    ),
    (lambda: tj.fft.dct(X, 5), ArgumentError, "fft.dct: type must be 1, 2, 3 or 4, not 5."),
    (
        lambda: tj.fft.dct(X, norm="unit"),
        ArgumentError,
        "fft.dct: norm must be 'backward', 'ortho', 'forward' or None, not 'unit'.",
    ),
    (
        lambda: tj.fft.dst(X, n=0),
        DimsError,
        "fft.dst: there are 0 elements along the axis, expected at least 1.",
    ),
    (
        lambda: tj.fft.dct(X[:1], 1),
        DimsError,
        "fft.dct: there is 1 element along the axis, expected at least 2 for type 1.",
    ),
    (
        lambda: tj.fft.dctn(X, s=(2, 3), axes=0),
        DimsError,
        "fft.dctn: s has 2 sizes for 1 axes, expected as many.",
    ),
)
