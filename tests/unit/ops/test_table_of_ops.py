# SPDX-License-Identifier: BSD-3-Clause
"""The table of ops imports families that few programs need when they are asked for."""

import importlib
from typing import Any

import pytest

from tracejit.ops import OPS
from tracejit.ops.op import Table


def test_threads_that_ask_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another thread may import the same family, and all others, in the middle of an import."""
    table = Table([], late=["bits", "fourier"])
    load = importlib.import_module
    asked: list[int] = []

    def beside(name: str) -> Any:
        if not asked:
            asked.append(0)
            asked.append(len(table))
        return load(name)

    monkeypatch.setattr(importlib, "import_module", beside)
    assert len(table) == asked[1] > 0
    assert all(OPS[name] is op for name, op in table.items())
