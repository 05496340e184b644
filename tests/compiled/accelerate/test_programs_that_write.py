# SPDX-License-Identifier: BSD-3-Clause
"""Programs that write into arrays, compiled, give what NumPy gives."""

import pytest
from users_oracle import check_program
from users_programs import PROGRAMS


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_of_users_do_what_numpy_does(name):
    check_program(name)
