# SPDX-License-Identifier: BSD-3-Clause
"""Programs that write into arrays give what NumPy gives: results, arguments, errors, and derivatives by differences."""

import numpy as np
import pytest
from effort import sample, sweep
from users_oracle import check_program
from users_programs import PROGRAMS
from write_oracle import (
    CALLS,
    DifferenceError,
    compare,
    compare_all,
    described,
    difference_of,
    function_of,
    run,
)
from write_statements import program_of

from tracejit.record import views

BLOCK = 25


@pytest.mark.parametrize("block", range(sweep(4, 200, sample=1)))
def test_random_programs_do_what_numpy_does(block):
    seeds = sample(range(BLOCK * block, BLOCK * (block + 1)))
    wrong = [seed for seed in seeds if difference_of(program_of(seed))]
    assert not wrong, f"programs {wrong} differ from NumPy\n{described(program_of(wrong[0]))}"


@pytest.mark.slow
def test_most_random_programs_are_replayed():
    hits = [compare_all(program_of(seed))[0] for seed in range(sweep(30, 30, sample=8))]
    assert sum(hits) >= sweep(40, 40, sample=10)


@pytest.mark.sampled
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_of_users_do_what_numpy_does_and_are_replayed(name):
    check_program(name)


@pytest.mark.slow
def test_the_oracle_finds_views_that_do_not_follow(monkeypatch):
    monkeypatch.setattr(views, "_renew", lambda *args: None)
    seed = next(seed for seed in range(30) if difference_of(program_of(seed)))
    text = described(program_of(seed))
    assert text.startswith(f"program {seed}: ") and "NumPy gives" in text and "def program(" in text


@pytest.mark.slow
def test_random_programs_are_the_same_each_time_and_run_with_numpy():
    refused = 0
    for seed in range(sweep(50, 50, sample=12)):
        program = program_of(seed)
        assert program == program_of(seed)
        with np.errstate(all="ignore"):
            for call in range(CALLS):
                first, again = (run(function_of(program), program, call) for _ in range(2))
                compare("NumPy", call, again, first, again[1], 0)
        refused += isinstance(first[0], Exception)
    assert 0 < refused < 10


@pytest.mark.slow
def test_the_oracle_finds_an_argument_that_is_not_written():
    found = 0
    for seed in range(20):
        program = program_of(seed)
        lost = program._replace(statements=program.statements[:-1])
        with np.errstate(all="ignore"):
            try:
                compare(
                    "NumPy", 0, run(function_of(lost), lost, 0), run(function_of(program), program, 0), [], 0
                )
            except DifferenceError:
                found += 1
    assert found > 5
