# SPDX-License-Identifier: BSD-3-Clause
"""The functions of np.polynomial, which do not dispatch: with dlarrays they return NumPy's numbers, or raise."""

import inspect
import warnings
from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
import pytest

import tracejit as tj
from tracejit.errors import TraceJitError

FAMILIES = ("polynomial", "chebyshev", "legendre", "hermite", "hermite_e", "laguerre")
X, C = np.array([0.3, 0.7]), np.array([1.0, 2.0, 3.0])
TABLE = np.arange(6.0).reshape(3, 2) / 5
ARGUMENTS: list[tuple[Any, ...]] = [
    (X, TABLE), (X, C), (C,), (TABLE,), (C, C), (C, 2), (X, X, TABLE), (X, X, X, TABLE.reshape(3, 2, 1)), (X, 2),
    (X, X, [1, 1]),
]  # fmt: skip


def calls(family: str) -> Iterator[tuple[Any, tuple[Any, ...], Any]]:
    """Give the functions of a family with arguments that they take, and what NumPy returns."""
    module = getattr(np.polynomial, family)
    for name, arguments in product(module.__all__, ARGUMENTS):
        function = getattr(module, name)
        if inspect.isfunction(function) and not name.endswith("fit"):
            try:
                yield function, arguments, function(*arguments)
            except Exception:  # it takes others
                continue


def with_dlarrays(arguments: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    """Give the arguments with dlarrays in place of some ndarrays."""
    arrays = [i for i, argument in enumerate(arguments) if isinstance(argument, np.ndarray)]
    for chosen in product((False, True), repeat=len(arrays)):
        if any(chosen):
            replaced = {i for i, is_chosen in zip(arrays, chosen, strict=True) if is_chosen}
            yield tuple([tj.dlarray(a) if i in replaced else a for i, a in enumerate(arguments)])


def same(found: Any, want: Any) -> bool:
    pairs = zip(found, want, strict=True) if isinstance(want, tuple) else [(found, want)]
    return all(np.shape(a) == np.shape(b) and np.allclose(np.asarray(a), b) for a, b in pairs)


@pytest.mark.parametrize("family", FAMILIES)
def test_results_are_those_of_numpy(family: str) -> None:
    tried = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", np.exceptions.RankWarning)
        for function, arguments, want in calls(family):
            for changed in with_dlarrays(arguments):
                try:
                    found = function(*changed)
                except (TraceJitError, ValueError, TypeError):
                    continue
                assert same(found, want), (function.__name__, [np.shape(a) for a in changed])
                tried += 1
    assert tried > 60


def test_points_that_are_traced() -> None:
    @tj.dlaccelerate
    def slope(x: Any) -> Any:
        return tj.dlgradient(np.polynomial.polynomial.polyval(x, TABLE).sum(), x)

    for _ in range(3):
        found = slope(tj.dlarray(X))
    powers = np.polynomial.polynomial.polyder(TABLE)
    np.testing.assert_allclose(found, np.polynomial.polynomial.polyval(X, powers).sum(axis=0))
