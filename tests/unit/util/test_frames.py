# SPDX-License-Identifier: BSD-3-Clause
"""The user's place, of source that has no file, or a file whose folder is gone."""

import os
from pathlib import Path

import pytest

from tracejit.util import frames

USES = "def where(): return user_location()"


def place(name: str) -> object:
    """Return the place of source compiled under a name."""
    defined: dict[str, object] = {"user_location": frames.user_location}
    exec(compile(USES, name, "exec"), defined)
    return defined["where"]()  # type: ignore[operator]


@pytest.fixture(autouse=True)
def unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frames, "_is_internal", {})


@pytest.mark.parametrize("name", ["<stdin>", "program.py"])
def test_the_current_folder_was_removed(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with pytest.raises(FileNotFoundError):
        os.getcwd()
    assert place(name) == (name, 1)


def test_source_without_a_file_is_the_users_in_any_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(frames.PACKAGE)
    assert place("<stdin>") == ("<stdin>", 1)
