# SPDX-License-Identifier: BSD-3-Clause
"""Random programs over large arrays, whose launches run in parts and in sections, compared with NumPy."""

import pytest
from large_programs import checked


@pytest.mark.parametrize("start", range(0, 2000, 50))
@pytest.mark.filterwarnings("ignore")
def test_random_programs_of_large_arrays(start: int) -> None:
    assert checked(range(start, start + 50)) > 20
