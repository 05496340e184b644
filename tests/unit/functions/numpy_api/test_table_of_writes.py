# SPDX-License-Identifier: BSD-3-Clause
"""The tables of docs/views_and_writes.md say what the code does."""

import pytest
from table_of_writes import outcome, rows


@pytest.mark.sampled(by=lambda case: case["claim"])
@pytest.mark.parametrize(("code", "claim"), list(rows()), ids=lambda text: text if len(text) < 50 else "")
def test_a_row(code, claim):
    found = outcome(code)
    assert found.startswith(claim.removesuffix("...")) if claim.endswith("...") else found == claim
