# SPDX-License-Identifier: BSD-3-Clause
"""Operands in forms that NumPy tells apart: its numbers, sizes and dtypes, also in replays, and its errors."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracejit as tj

POINTS = np.random.default_rng(0).normal(size=(60, 2))
X, Y = np.ascontiguousarray(POINTS.T)
C = np.array([3.0, 0.0, 1.0])
Q = np.poly1d([1.0, 2.0])

HOLES = np.array([1.0, 2.0, np.nan, 7.0, 11.0, 16.0, 22.0])

Case = tuple[Callable[..., Any], tuple[Any, ...]]
CASES: dict[str, Case] = {
    "numbers of bins for each axis in an array": (lambda r, b: np.histogramdd(r, bins=b), (POINTS, np.array([4, 5]))),
    "numbers of bins in an array that the function makes": (
        lambda r: np.histogramdd(r, bins=np.array([4, 5]))[0],
        (POINTS,),
    ),
    "edges for each axis in an array": (
        lambda r, b: np.histogramdd(r, bins=b),
        (POINTS, np.array([[-1.0, 0.0, 1.0], [0.0, 1.0, 2.0]])),
    ),
    "one number of bins in an array": (lambda r, b: np.histogramdd(r, bins=b), (POINTS, np.array(4))),
    **{
        f"bins of two axes: {bins}": (lambda x, y, b: np.histogram2d(x, y, bins=b), (X, Y, bins))
        for bins in (
            np.array([3, 4]),
            np.array([-1.0, 0.0, 1.0]),
            np.array([[-1.0, 0.0, 1.0], [0.0, 1.0, 2.0]]),
            [np.array([-1.0, 1.0, 2.0]), 4],
            [3, 4],
            5,
        )
    },
    "a polynomial of a polynomial": (lambda c: np.polyval(c, Q).coeffs, (C,)),
    "a polynomial at a place": (lambda c: np.polyval(np.poly1d(c), 2.0), (C,)),
    **{
        f"{name} of a polynomial and coefficients": (
            lambda c, name=name: [getattr(np, name)(c, Q)(0.5), getattr(np, name)(Q, c).coeffs],
            (C,),
        )
        for name in ("polyadd", "polysub", "polymul")
    },
    "polydiv of a polynomial and coefficients": (lambda c: [part(0.5) for part in np.polydiv(c, Q)], (C,)),
    "polyder of a polynomial": (lambda c: np.polyder(np.poly1d(c))(0.5), (C,)),
    "polyint of a polynomial": (lambda c: np.polyint(np.poly1d(c)).coeffs, (C,)),
    **{
        f"gradient {title}, order {order}": (lambda f, x, order=order: np.gradient(f, x, edge_order=order), (f, x))
        for order in (1, 2)
        for title, f, x in (
            ("with NaN and places as far apart", HOLES, np.arange(7.0)),
            ("with NaN and integer places", HOLES, np.arange(7)),
            ("with NaN and other places", HOLES, np.arange(7.0) ** 2),
            ("with infinities and places as far apart", np.where(np.isnan(HOLES), np.inf, HOLES), np.arange(7.0) / 4),
        )
    },
    "gradient along two axes": (
        lambda f, x: np.gradient(f, x, x[:3]),
        (np.outer(HOLES, np.array([1.0, 2.0, 4.0])), np.arange(7.0)),
    ),
    "roots of a polynomial": (lambda c: np.sort_complex(np.roots(np.poly1d(c))), (C,)),
}  # fmt: skip


def leaves(result: Any) -> list[np.ndarray]:
    return [np.asarray(part) for part in tj.tree.flatten(result)[0]]


@pytest.mark.parametrize("name", CASES)
def test_as_numpy(name: str) -> None:
    function, arguments = CASES[name]
    with np.errstate(all="ignore"):
        expected = leaves(function(*arguments))
        accelerated = tj.dlaccelerate(function)
        runs = [lambda *args: tj.dlfeval(function, *args), *[accelerated] * 4]
        for run in runs:
            found = leaves(run(*arguments))
            assert [(x.dtype, x.shape) for x in found] == [(x.dtype, x.shape) for x in expected]
            for have, want in zip(found, expected, strict=True):
                np.testing.assert_allclose(have, want, rtol=1e-12, atol=1e-14)
    assert accelerated.stats.hits > 1


REFUSED: dict[str, tuple[Callable[..., Any], tuple[Any, ...], str]] = {
    "vectors of two lengths": (
        lambda x, y: np.histogram2d(x, y),
        (X, Y[:9]),
        "np.histogram2d: x and y have 60 and 9 elements, expected the same number.",
    ),
    "one entry of bins for two axes": (
        lambda x, y: np.histogram2d(x, y, bins=[4]),
        (X, Y),
        "np.histogramdd: bins and range have 1 and 2 entries, expected 2, one for each axis.",
    ),
    "a rule for bins of two axes": (
        lambda x, y: np.histogram2d(x, y, bins=["auto", "auto"]),
        (X, Y),
        "np.histogramdd: bins=['auto', 'auto'] is a rule, which histograms of one axis take; pass numbers, or edges.",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_as_by_numpy(name: str) -> None:
    function, arguments, message = REFUSED[name]
    with pytest.raises(Exception) as numpys:  # of any class
        function(*arguments)
    kind = next(kind for kind in numpys.type.__mro__ if kind.__module__ in ("builtins", "numpy.linalg"))
    for run in (tj.dlaccelerate(function), lambda *args: tj.dlfeval(function, *args)):
        with pytest.raises(kind) as ours:
            run(*arguments)
        assert isinstance(ours.value, tj.TraceJitError)
        assert str(ours.value).partition("\n")[0] == message
