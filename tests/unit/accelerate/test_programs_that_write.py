# SPDX-License-Identifier: BSD-3-Clause
"""Programs that write into arrays give what NumPy gives: results, arguments, errors, and derivatives by differences."""

import numpy as np
from write_oracle import CALLS, DifferenceError, compare, function_of, run
from write_statements import program_of


def test_random_programs_are_the_same_each_time_and_run_with_numpy():
    refused = 0
    for seed in range(50):
        program = program_of(seed)
        assert program == program_of(seed)
        with np.errstate(all="ignore"):
            for call in range(CALLS):
                first, again = (run(function_of(program), program, call) for _ in range(2))
                compare("NumPy", call, again, first, again[1], 0)
        refused += isinstance(first[0], Exception)
    assert 0 < refused < 10


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
