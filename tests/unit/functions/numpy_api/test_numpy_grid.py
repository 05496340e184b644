# SPDX-License-Identifier: BSD-3-Clause
"""Every function of NumPy that dlarrays answer: the same numbers uncompiled, recorded and replayed, and gradients.

The page docs/functions.md lists them, and says what has a gradient.
"""

from typing import Any

import effort
import functions_page
import numpy as np
import pytest
from accelerated import dlaccelerate
from effort import Effort, sweep
from numpy_grid import BY_FUNCTION, BY_LABEL, ELEMENTWISE, OF_INTEGERS, PAIRS, UNLIKE_NUMPY, VARIANTS
from numpy_oracle import (
    assert_same,
    check_arguments,
    check_gradient,
    check_labels,
    check_replayed,
    check_uncompiled,
    check_variant,
    chosen,
    computed,
    expected,
    names_in,
    wrapped,
)

import tracejit as tj
from tracejit import dlarray

SIMPLE = [
    name for name in f"{ELEMENTWISE} {PAIRS} {OF_INTEGERS}".split() if name in BY_FUNCTION
]  # one op each, or a few


@pytest.mark.parametrize("name", sorted(BY_FUNCTION))
def test_a_function(name: str) -> None:
    for call in BY_FUNCTION[name]:
        check_uncompiled(call)
    some = BY_FUNCTION[name][: sweep(1, 99)]
    is_all = effort.EFFORT is Effort.LONG
    if name not in SIMPLE or is_all:
        for call in some:
            check_replayed(call)
    found = [call for call in some if check_gradient(call)]
    said = functions_page.gradients_on_the_page().get(name.partition(".")[0], True)
    assert said or not found
    assert found or not said or not is_all or "." in name


def test_simple_functions_in_one_program() -> None:
    calls = [BY_FUNCTION[name][0] for name in SIMPLE]
    names = sorted({name for call in calls for name in names_in(call)})
    step = dlaccelerate(lambda **given: [computed(call, given) for call in calls])
    for seed in (0, 1):
        arrays = {name: chosen(name, seed)[name] for name in names}
        for call, result in zip(calls, step(**wrapped(arrays)), strict=True):
            assert_same(result, expected(call, arrays), call)
    assert step.hit_rate == 50


CALLS = [call for calls in BY_FUNCTION.values() for call in calls]


@pytest.mark.parametrize("variant", VARIANTS)
def test_other_dtypes_sizes_and_numbers(variant: str) -> None:
    arrays = VARIANTS[variant]()
    for call in effort.sample(CALLS, variant):
        # A transform spreads NaN and infinities over all elements, in real numbers or in complex ones.
        spreads = variant == "NaN and infinities" and call.startswith("np.fft.")
        if call not in UNLIKE_NUMPY and not spreads:
            check_variant(call, arrays)


CALLED_BACK = {"apply_along_axis", "apply_over_axes", "piecewise"}  # whose functions raise what they like
LISTS = {
    "block",
    "choose",
    "column_stack",
    "dstack",
    "histogram2d",
    "histogramdd",
    "lexsort",
    "ravel_multi_index",
}
LATE = sorted(
    name
    for name in BY_FUNCTION
    if functions_page.subject(name.partition(".")[0]) in functions_page.LATE and "." not in name
)


@pytest.mark.parametrize("name", [name for name in LATE if name not in CALLED_BACK | LISTS | {"select"}])
def test_arguments_of_any_kind(name: str) -> None:
    with np.errstate(all="ignore"):
        check_arguments(name, sweep(9, 1))


def test_labels_leave_the_numbers_as_they_are() -> None:
    for call in effort.sample(CALLS):
        if call not in BY_LABEL:
            check_labels(call)


FORMATS_OF_RESULTS = """
np.diff(A, n=2, axis=0) CB | np.sort(A, axis=0) CB | np.argsort(A) CB | np.median(A, axis=0) B
np.nanmax(A, axis=1) C | np.quantile(A, [0.1, 0.2], axis=0) UB | np.cumprod(A, axis=1) CB
np.gradient(A, axis=1) CB | np.trapezoid(A) C | np.rot90(A) BC | np.fliplr(A) CB | np.insert(A, 1, 2.0, axis=1) CB
np.delete(A, 1, axis=0) CB | np.hypot(A, 1.0) CB | np.add.outer(A, x) CBU | np.maximum.accumulate(A) CB
np.subtract.reduce(A) B | np.vecdot(A, A) C | np.interp(A, x, x) CB | np.select([A > 0], [A]) CB
np.nan_to_num(A) CB | np.digitize(A, x) CB | np.isin(A, x) CB | np.diagonal(A) U | np.ravel(A, order="F") None
np.unique(A) None | np.kron(A, A) None | np.cov(A) None | np.bincount(A.astype(int)[0] * 0) None
"""
ROWS = [row.strip() for row in FORMATS_OF_RESULTS.replace("|", "\n").splitlines() if row.strip()]


@pytest.mark.parametrize("row", ROWS)
def test_format_of_a_result(row: str) -> None:
    call, _, format = row.rpartition(" ")
    arrays = {"A": dlarray(chosen("A", 0)["A"], "CB"), "x": np.arange(4.0)}
    assert str(computed(call, arrays).format) == format


class TestSpecialPoints:
    """Derivatives where a function has a kink or a division by 0, apart from the generated checks."""

    def gradient(self, function: Any, *numbers: float) -> list[float]:
        return tj.dlfeval(lambda x: tj.dlgradient(function(x).sum(), x), np.array(numbers)).tolist()

    def test_products_with_zeros(self) -> None:
        assert self.gradient(np.cumprod, 2.0, 0.0, 3.0) == [1.0, 2.0 + 2.0 * 3.0, 0.0]
        assert self.gradient(np.cumprod, 0.0, 0.0, 3.0) == [1.0, 0.0, 0.0]

    def test_ties_go_to_one_element_each(self) -> None:
        weights = np.array([1.0, 10.0, 100.0])
        assert self.gradient(lambda x: np.sort(x) * weights, 2.0, 1.0, 2.0) == [10.0, 1.0, 100.0]
        assert self.gradient(np.median, 1.0, 1.0) == [0.5, 0.5]
        assert self.gradient(lambda x: np.maximum.accumulate(x), 1.0, 1.0, 0.0) == [3.0, 0.0, 0.0]

    def test_the_origin(self) -> None:
        assert self.gradient(lambda x: np.hypot(x, 0 * x), 0.0) == [0.0]
        assert self.gradient(np.sinc, 0.0) == [0.0]
        assert self.gradient(np.i0, 0.0) == [0.0]

    def test_infinities_and_ties_of_sums_of_exponentials(self) -> None:
        pair = lambda x: np.logaddexp(x[:1], x[1:])
        assert self.gradient(pair, 3.0, 3.0) == [0.5, 0.5]
        assert self.gradient(pair, 3.0, -np.inf) == [1.0, 0.0]

    def test_what_is_left_out_has_no_derivative(self) -> None:
        for function in (np.nansum, np.nanvar, np.nanmedian, np.nanmax, np.nanstd):
            found = self.gradient(function, 1.0, np.nan, 3.0)
            assert found[1] == 0.0 and np.isfinite(found).all(), function
        assert self.gradient(np.nan_to_num, np.nan, np.inf, 2.0) == [0.0, 0.0, 1.0]

    def test_beyond_the_ends(self) -> None:
        places = np.array([0.0, 1.0, 2.0])
        assert self.gradient(lambda x: np.interp(x, places, places**2), -1.0, 0.5, np.inf) == [0.0, 1.0, 0.0]


def test_the_page_is_up_to_date() -> None:
    """What it says of gradients is checked above; another release of NumPy may have functions more or less."""
    have, want = functions_page.PAGE.read_text(), functions_page.page(functions_page.gradients_on_the_page())
    if np.__version__.startswith("2.4."):  # with which it was written
        assert have == want
    rows = set(have.splitlines()) ^ set(want.splitlines())
    both = functions_page.listed(have) & functions_page.listed(want)
    assert not {name for row in rows for name in functions_page.listed(row)} & both


def test_every_function_of_numpy_is_accounted_for() -> None:
    answered = {name for name in functions_page.names() if functions_page.subject(name)}
    known = {*answered, *functions_page.outside(), *functions_page.IN_PYTHON}
    assert set(functions_page.names()) <= known
    assert not answered & {*functions_page.outside(), *functions_page.IN_PYTHON}


def test_every_answer_is_called() -> None:
    answered = {name for name in functions_page.names() if functions_page.subject(name)}
    assert answered <= {*BY_FUNCTION, *functions_page.WRITERS}
