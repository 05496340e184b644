# SPDX-License-Identifier: BSD-3-Clause
"""Random programs: TRACEJIT_PROGRAMS of each kind (2,000), from TRACEJIT_PROGRAMS_FROM on (0)."""

import os

import pytest
from interpreted import interpreted
from random_programs import OfSteps, OfText, check

from tracejit import config
from tracejit.traces import replay

FIRST = int(os.environ.get("TRACEJIT_PROGRAMS_FROM", "0"))
SEEDS = range(FIRST, FIRST + int(os.environ.get("TRACEJIT_PROGRAMS", "2000")))


@pytest.mark.parametrize("call_paths", [True, False])
@pytest.mark.parametrize("kind", [OfText, OfSteps])
def test_accelerated_as_uncompiled(kind, call_paths, monkeypatch):
    monkeypatch.setattr(config.settings, "backend", "python")
    if call_paths:
        monkeypatch.setattr(replay, "executable", interpreted)
    check(kind, SEEDS)
