# SPDX-License-Identifier: BSD-3-Clause
"""The part of the table of messages that is about files (tests/support/messages_on_disk.py)."""

from pathlib import Path

import pytest
from messages_on_disk import ROWS, met

from tracejit import config


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.text[:40])
def test_a_message(row, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(config.settings, "cache_dir", str(tmp_path / "cache"))
    (tmp_path / "folder").mkdir()
    assert met(row, tmp_path / "folder") == (row.error, row.text)
