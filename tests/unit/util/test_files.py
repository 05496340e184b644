# SPDX-License-Identifier: BSD-3-Clause
"""Files that users name are written whole, or stay what they were."""

import errno
import os
from pathlib import Path

import pytest

from tracejit.nn.drawing import Drawing
from tracejit.util import files
from tracejit.util.files import write_text


@pytest.fixture
def full_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(file: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(files.os, "fsync", refuse)


@pytest.mark.parametrize("before", [None, "an older page"])
def test_on_a_full_disk(tmp_path: Path, full_disk: None, before: str | None) -> None:
    page = tmp_path / "page.html"
    if before is not None:
        page.write_text(before)
    for write in (lambda: write_text(page, "new"), lambda: Drawing("new", "new").save(page)):
        with pytest.raises(OSError, match="No space left on device"):
            write()
        assert [file.read_text() for file in tmp_path.iterdir()] == [before] * (before is not None)


def test_written_over(tmp_path: Path) -> None:
    page, link = tmp_path / "page.html", tmp_path / "link.html"
    link.symlink_to(page)
    for text in ("one", "two\nπ\n"):
        write_text(link, text)
        assert page.read_bytes() == text.encode()
    assert link.is_symlink()
    assert len([*tmp_path.iterdir()]) == 2


def test_what_is_no_file(tmp_path: Path) -> None:
    write_text(Path(os.devnull), "text")
    assert not Path(os.devnull).is_file()
    with pytest.raises(IsADirectoryError):
        write_text(tmp_path, "text")


def test_an_error_names_the_file(tmp_path: Path) -> None:
    page = tmp_path / "none" / "page.html"
    with pytest.raises(FileNotFoundError) as raised:
        write_text(page, "text")
    assert raised.value.filename == str(page)
