# SPDX-License-Identifier: BSD-3-Clause
"""Settings and fixtures of all tests."""

import numpy as np
import pytest
from hypothesis import settings
from interpreted import interpreted

from tracejit import config
from tracejit.record.recorder import Recorder
from tracejit.traces import replay

settings.register_profile("fast", derandomize=True, max_examples=50, deadline=None)
settings.load_profile("fast")

collect_ignore = ["golden"]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write the files of tests/golden anew")


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


@pytest.fixture
def accelerating():
    """A recorder whose graph would be replayed, open while the test runs."""
    with Recorder("step", accelerating=True) as recorder:
        yield recorder


@pytest.fixture
def python_backend(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing compiles, except where a test asks for it; graphs are verified."""
    monkeypatch.setattr(config.settings, "backend", "python")
    monkeypatch.setattr(config.settings, "verify", True)
    monkeypatch.setattr(replay, "executable", interpreted)
