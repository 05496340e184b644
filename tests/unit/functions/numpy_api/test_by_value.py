# SPDX-License-Identifier: BSD-3-Clause
"""What recorded code asks of traced arrays that NumPy answers by their values, or by their sizes alone."""

import statistics
import warnings
from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np
import pytest

import tracejit as tj

X = np.array([1.0, 2.0, -1.0, 0.5])


def with_rank_warning(function: Callable[..., Any]) -> Callable[..., Any]:
    def quiet(x: Any) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", np.exceptions.RankWarning)
            return function(x)

    return quiet


def objects(*parts: Any) -> Any:
    a = np.array(parts, dtype=object)
    return (a * 2 + 1).sum(), a.shape


def ragged(x: Any) -> Any:
    a = np.array([x, x[:2]], dtype=object)
    return a.shape, a[1] * 2, len(a)


FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "mean": lambda x: statistics.mean(x),
    "mean of a list": lambda x: statistics.mean([x[0], x[1], 2.0]),
    "median by its name": lambda x: median(x),
    "stdev": lambda x: statistics.stdev(x),
    "pvariance": lambda x: statistics.pvariance(x, mu=x[0]),
    "fmean": lambda x: statistics.fmean(x),
    "correlation": lambda x: statistics.correlation(x, x[::-1]),
    "is_integer": lambda x: [v.is_integer() for v in x],
    "is_integer of others": lambda x: (x[0] / 0.0).is_integer(),
    "as_integer_ratio": lambda x: x[0].as_integer_ratio(),
    "hex": lambda x: x[1].hex(),
    "numerator": lambda x: x.astype(int)[1].numerator,
    "where of texts": lambda x: np.where(x > 0, "p", "n").tolist(),
    "where of a text and None": lambda x: np.where(x > 0, "p", None).tolist(),
    "where of texts in an array": lambda x: np.where(x > 0, np.array(["a", "b", "c", "d"]), "z").tolist(),
    "pad": lambda x: np.pad(x, (1, 2), constant_values=(x[0], 0)),
    "pad, matrix": lambda x: np.pad(x.reshape(2, 2), 1, constant_values=((x[0], x[1]), (7, x[3]))),
    "pad, integers": lambda x: np.pad(x.astype(int), (2, 1), constant_values=[x[0] * 1.7, 2]),
    "pad, no border": lambda x: np.pad(x, (0, 1), constant_values=(x[0], x[1])),
    "broadcast": lambda x: (np.broadcast(x, x[:, None]).shape, np.broadcast(x, x).size, np.broadcast(x).nd),
    "broadcast, elements": lambda x: [a * b for a, b in np.broadcast(x[:2], x[:2, None])],
    "objects": lambda x: objects(x, x),
    "objects in rows": lambda x: objects([x[0], 2], [x[1], 3.5]),
    "objects of several sizes": ragged,
    "polyfit": with_rank_warning(lambda x: np.polyfit(np.ones(4) * x[0], np.arange(4.0), 1)),
    "polyfit at times": with_rank_warning(lambda x: np.polyfit(1 + np.arange(4.0) * (x[0] > 1), x, 1)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_they_give_what_numpy_gives(name: str) -> None:
    function = FUNCTIONS[name]
    accelerated = tj.dlaccelerate(lambda x: function(x))
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore", tj.TraceJitWarning)
        for call in range(7):
            x = X + 0.5 * call if call % 2 else X * (call + 1)
            wanted, found = tj.tree.flatten(function(x))[0], tj.tree.flatten(accelerated(x))[0]
            for one, other in zip(wanted, found, strict=True):
                if isinstance(one, (str, bool)) or one is None:
                    assert other == one
                else:
                    np.testing.assert_allclose(np.asarray(other, float), np.asarray(one, float), rtol=1e-9)


def test_a_constant_border_has_a_derivative() -> None:
    def border(x: Any) -> Any:
        y = np.pad(x[1:], (1, 2), constant_values=(x[0], 3 * x[0]))
        return tj.dlgradient((y * np.arange(1.0, 7.0)).sum(), x)

    assert tj.dlfeval(border, X).tolist() == [1.0 + 3 * 5 + 3 * 6, 2.0, 3.0, 4.0]


def test_equal_places_warn_as_numpy_does() -> None:
    fit = tj.dlaccelerate(lambda x: np.polyfit(x, np.arange(4.0), 1))
    with pytest.warns(np.exceptions.RankWarning, match="Polyfit may be poorly conditioned"):
        fit(np.ones(4))
    with pytest.raises(np.linalg.LinAlgError, match="Singular matrix"):
        tj.dlaccelerate(lambda x: np.polyfit(x, np.arange(4.0), 1, cov=True))(np.ones(4))


def test_arrays_with_axes_have_no_attributes_of_numbers() -> None:
    for array in (tj.dlarray(X), tj.dlarray(1)):
        assert not hasattr(array, "as_integer_ratio")
    with pytest.raises(AttributeError, match="'dlarray' object has no attribute 'is_integer'"):
        tj.dlfeval(lambda x: x.is_integer(), X)
