# SPDX-License-Identifier: BSD-3-Clause
"""Every function of NumPy that dlarrays answer: the same numbers uncompiled, recorded and replayed, and gradients.

The page docs/functions.md lists them, and says what has a gradient.
"""

import effort
import functions_page
import pytest
from accelerated import dlaccelerate
from effort import Effort, sweep
from numpy_grid import BY_FUNCTION, ELEMENTWISE, OF_INTEGERS, PAIRS
from numpy_oracle import (
    assert_same,
    check_gradient,
    check_replayed,
    check_uncompiled,
    chosen,
    computed,
    expected,
    names_in,
    wrapped,
)

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


def test_the_page_is_up_to_date() -> None:
    """What it says of gradients is checked above; another release of NumPy may have functions more or less."""
    have, want = functions_page.PAGE.read_text(), functions_page.page(functions_page.gradients_on_the_page())
    if functions_page.listed(have) == functions_page.listed(want):
        assert have == want
    rows = set(have.splitlines()) ^ set(want.splitlines())
    both = functions_page.listed(have) & functions_page.listed(want)
    assert not {name for row in rows for name in functions_page.listed(row)} & both


def test_every_function_of_numpy_is_accounted_for() -> None:
    answered = {name for name in functions_page.names() if functions_page.subject(name)}
    known = {*answered, *functions_page.outside(), *functions_page.MISSING}
    assert set(functions_page.names()) <= known
    assert not answered & {*functions_page.outside(), *functions_page.MISSING}


def test_every_answer_is_called() -> None:
    answered = {name for name in functions_page.names() if functions_page.subject(name)}
    assert answered <= {*BY_FUNCTION, *functions_page.WRITERS}
