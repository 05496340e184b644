# SPDX-License-Identifier: BSD-3-Clause
"""Folders by path, as on Windows, run here: what is trusted, and files that somebody has open."""

import os
import threading
import time
from pathlib import Path

import pytest

from tracejit.errors import CacheError
from tracejit.store import folder
from tracejit.store.folder import Folder, RefusedError
from tracejit.store.opened import ByPath, is_in_profile, is_link
from tracejit.util import files

FLAGS = files.APPEND, files.READ, files.WRITE_NEW


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The profile of the user of a system without descriptors of folders."""
    home = tmp_path / "Users" / "me"
    home.mkdir(parents=True)
    monkeypatch.setattr(folder, "_BY_PATH", True)
    monkeypatch.setattr(files, "IS_WINDOWS", True)
    monkeypatch.setattr(files, "_PATIENCE_S", 0.03)
    monkeypatch.setenv("USERPROFILE", str(home))
    monkeypatch.delenv("LOCALAPPDATA", raising=False)
    return home


def test_a_file_comes_back_as_it_was_written(home: Path) -> None:
    kept = Folder(str(home / "cache"), "a/b")
    assert kept.read("x") is None
    assert not (home / "cache").exists()
    kept.write("x", b"1\r\n\x1a2\n")
    assert kept.read("x") == b"1\r\n\x1a2\n"
    assert [*kept.contents(["x", "y"])] == [b"1\r\n\x1a2\n", None]
    kept.append("log", b"one\n", 8)
    kept.append("log", b"two\n", 8)
    kept.append("log", b"three\n", 8)
    assert kept.read("log") == b"one\ntwo\n"
    kept.write("x", b"3")
    assert sorted(file.name for file in kept.files()) == ["log", "x"]
    assert kept.remove("x")
    assert not kept.remove("x")
    assert os.listdir(home / "cache" / "a" / "b") == ["log"]


def test_reading_is_a_use(home: Path) -> None:
    kept = Folder(str(home), "cache")
    kept.write("x", b"")
    os.utime(home / "cache" / "x", (1.0, 1.0))
    kept.read("x", use=False)
    assert kept.files()[0].used_s == 1.0
    kept.read("x")
    assert time.time() - kept.files()[0].used_s < 100


def test_the_path_itself_may_be_the_folder(home: Path) -> None:
    Folder(str(home / "cache"), "").write("x", b"1")
    assert (home / "cache" / "x").read_bytes() == b"1"


@pytest.mark.parametrize("place", ["Users/you/cache", "Users/me-too/cache", "cache", "Users/me/../cache"])
def test_folders_outside_of_the_profile(place: str, home: Path, tmp_path: Path) -> None:
    path = str(tmp_path / place)
    with pytest.raises(RefusedError) as caught:
        Folder(path, "kernels").write("x", b"")
    assert str(caught.value) == (
        f"the folder {path} does not lie in the profile of this user, so others may be able to write to it"
    )
    Folder(path, "kernels", shared=True).write("x", b"1")
    assert Folder(path, "kernels", shared=True).read("x") == b"1"


def test_the_places_of_a_profile(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "local"))
    (tmp_path / "link").symlink_to(home)
    (home / "away").symlink_to(tmp_path)
    assert is_in_profile(str(tmp_path / "local" / "tracejit"))
    assert is_in_profile(str(tmp_path / "link" / "cache"))
    assert not is_in_profile(str(home / "away" / "cache"))
    assert is_in_profile(str(home))
    assert not is_in_profile(str(home) + "-2")
    for variable in ("USERPROFILE", "LOCALAPPDATA"):
        monkeypatch.setenv(variable, "")
    assert not is_in_profile(str(home / "cache"))


def test_links_are_refused(home: Path) -> None:
    kept = Folder(str(home / "cache"), "kernels")
    kept.write("x", b"1")
    (home / "cache" / "kernels" / "link").symlink_to("x")
    with pytest.raises(OSError, match="symbolic links"):
        kept.read("link")
    with pytest.raises(OSError, match="symbolic links"):
        kept.append("link", b"2", 100)
    assert [file.name for file in kept.files()] == ["x"]
    (home / "other").symlink_to("cache")
    with pytest.raises(RefusedError, match=r"other is a link$"):
        Folder(str(home / "other"), "kernels").read("x")
    (home / "cache" / "linked").symlink_to("kernels")
    with pytest.raises(RefusedError, match=r"linked is a link$"):
        Folder(str(home / "cache"), "linked").read("x")


def test_a_junction_is_a_link() -> None:
    class Status:
        st_mode = 0o40777
        st_file_attributes = 0x410

    assert is_link(Status())  # type: ignore[arg-type]
    Status.st_file_attributes = 0x10
    assert not is_link(Status())  # type: ignore[arg-type]


def test_other_kinds_of_files(home: Path) -> None:
    (home / "cache").write_bytes(b"")
    with pytest.raises(RefusedError, match=r"cache is not a folder$"):
        Folder(str(home / "cache"), "kernels").write("x", b"1")
    kept = Folder(str(home), "real")
    (home / "real" / "x").mkdir(parents=True)
    with pytest.raises(CacheError, match="not an ordinary file"):
        kept.read("x")
    with pytest.raises(IsADirectoryError):
        kept.write("x", b"1")
    assert os.listdir(home / "real") == ["x"]


def busy_until(moment: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have renaming fail until a moment, as if a process had the target open."""
    for name in ("replace", "rename"):

        def rename(*paths: str, real: object = getattr(os, name)) -> None:
            if time.monotonic() < moment:
                raise PermissionError(13, "Access is denied")
            real(*paths)  # type: ignore[operator]

        monkeypatch.setattr(os, name, rename)


def test_a_file_that_is_open_for_a_while_is_replaced(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = Folder(str(home), "cache")
    kept.write("x", b"1")
    monkeypatch.setattr(files, "_PATIENCE_S", 10.0)
    busy_until(time.monotonic() + 0.03, monkeypatch)
    kept.write("x", b"2")
    assert kept.read("x") == b"2"


def test_a_file_that_stays_open_stays_as_it_is(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = Folder(str(home), "cache")
    kept.write("x", b"1")
    busy_until(float("inf"), monkeypatch)
    kept.write("x", b"2")
    assert kept.read("x") == b"1"
    with pytest.raises(PermissionError):  # nobody has it open, as there is none
        kept.write("y", b"2")
    assert os.listdir(home / "cache") == ["x"]


def test_other_systems_do_not_wait(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "IS_WINDOWS", False)
    monkeypatch.setattr(files, "_PATIENCE_S", 100.0)
    busy_until(float("inf"), monkeypatch)
    started = time.monotonic()
    with pytest.raises(PermissionError):
        files.rename(str(home), str(home) + "-moved")
    assert time.monotonic() - started < 10


def test_two_threads_write_the_same_file(home: Path) -> None:
    kept = Folder(str(home), "cache")
    content = [bytes([i]) * 1000 for i in range(4)]
    threads = [threading.Thread(target=kept.write, args=("x", each)) for each in content]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert kept.read("x") in content
    assert os.listdir(home / "cache") == ["x"]


def test_flags_that_a_system_lacks_are_left_out() -> None:
    assert all(isinstance(flags, int) for flags in FLAGS)
    assert ByPath("x").path == "x"
