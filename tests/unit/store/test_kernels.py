# SPDX-License-Identifier: BSD-3-Clause
"""The store on disk: what is damaged, planted or in the way is a miss, never an error and never loaded."""

import contextlib
import errno
import hashlib
import os
import random
import stat
import sys
import time
from pathlib import Path

import pytest

from tracejit import config
from tracejit.errors import CacheError, CacheWarning
from tracejit.store import entry, folder
from tracejit.store.entry import KernelKey, StoredKernel, decode, encode
from tracejit.store.folder import Folder, RefusedError
from tracejit.store.kernels import SUFFIX, KernelStore, default_root, store
from tracejit.store.programs import Programs

MIB = 1 << 20


def made(number: int = 0, code: bytes = bytes(range(256))) -> StoredKernel:
    key = KernelKey((("kind", "kernel"), ("source", f"hash {number}"), ("cpu", "any")))
    return StoredKernel(
        key, f"add_{number}", ("memset",), 12, f"def add_{number}(args):\n    # größer\n", code
    )


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "cache"


@pytest.fixture
def kept(root: Path) -> KernelStore:
    return KernelStore(str(root), MIB)


def path_of(root: Path, one: StoredKernel) -> Path:
    return root / "kernels" / (one.key.name + SUFFIX)


def test_an_entry_comes_back_as_it_was(kept: KernelStore, root: Path) -> None:
    one = made()
    assert kept.load(one.key) is None
    assert not root.exists()  # nothing is made before something is written
    kept.save(one)
    assert kept.load(one.key) == one
    assert KernelStore(str(root), MIB).load(one.key) == one
    assert [file.name for file in kept.entries()] == [one.key.name + SUFFIX]


def test_folders_and_files_are_private_whatever_the_umask(kept: KernelStore, root: Path) -> None:
    before = os.umask(0)
    try:
        kept.save(made())
    finally:
        os.umask(before)
    for path, mode in ((root, 0o700), (root / "kernels", 0o700), (path_of(root, made()), 0o600)):
        assert stat.S_IMODE(path.stat().st_mode) == mode


def test_a_shared_folder_keeps_the_umask(root: Path) -> None:
    before = os.umask(0o007)
    try:
        KernelStore(str(root), MIB, shared=True).save(made())
    finally:
        os.umask(before)
    for path, mode in ((root, 0o770), (root / "kernels", 0o770), (path_of(root, made()), 0o660)):
        assert stat.S_IMODE(path.stat().st_mode) == mode
    assert KernelStore(str(root), MIB, shared=True).load(made().key) == made()
    with pytest.warns(CacheWarning, match="other users may write to the folder .*cache .mode 770."):
        assert KernelStore(str(root), MIB).load(made().key) is None


def test_the_content_is_readable_up_to_the_code() -> None:
    content = encode(made())
    first, second, *_ = content.split(b"\n")
    assert first.startswith(b"tracejit entry 1 ")
    assert second == (
        b'{"key":[["kind","kernel"],["source","hash 0"],["cpu","any"]],"symbol":"add_0","needs":["memset"],'
        b'"compile_ns":12,"source_bytes":32,"code_bytes":256}'
    )


def rehashed(body: bytes) -> bytes:
    """Return a body under a hash that agrees with it."""
    return b"tracejit entry 1 " + hashlib.sha256(body).hexdigest().encode() + b"\n" + body


def body_of(one: StoredKernel) -> bytes:
    return encode(one).partition(b"\n")[2]


BODY = body_of(made())


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "it is not an entry of the cache"),
        (b"\x7fELF", "it is not an entry of the cache"),
        (b"tracejit entry 2 " + b"0" * 64 + b"\n", "it was written by a different version of tracejit"),
        (b"tracejit entry 1 ", "its content does not agree with its hash"),
        (encode(made())[:-1], "its content does not agree with its hash"),
        (encode(made()) + b"\0", "its content does not agree with its hash"),
        (rehashed(b""), "its header does not fit its content"),
        (rehashed(b"[" * 100_000), "its header does not fit its content"),
        (rehashed(b"{}\n"), "its header does not fit its content"),
        (rehashed(b"[]\n"), "its header does not fit its content"),
        (rehashed(b"\xff\n"), "its header does not fit its content"),
        (rehashed(BODY[:-1]), "its header does not fit its content"),
        (
            rehashed(BODY.replace(b'"code_bytes":256', b'"code_bytes":-1')),
            "its header does not fit its content",
        ),
        (
            rehashed(BODY.replace(b'"code_bytes":256', b'"code_bytes":1e9')),
            "its header does not fit its content",
        ),
        (rehashed(BODY.replace(b'"symbol":"add_0"', b'"symbol":7')), "its header does not fit its content"),
        (rehashed(BODY.replace(b'["cpu","any"]', b'["cpu"]')), "its header does not fit its content"),
        (rehashed(BODY.replace("ö".encode(), b"\xff\xff")), "its header does not fit its content"),
        (rehashed(BODY.replace(b'"any"', b'"one"')), "it belongs to a different key"),
        (encode(made(1)), "it belongs to a different key"),
    ],
)
def test_why_content_is_refused(content: bytes, why: str, kept: KernelStore, root: Path) -> None:
    with pytest.raises(CacheError, match=f"^{why}$"):
        decode(content, made().key.name)
    kept.save(made())
    path_of(root, made()).write_bytes(content)
    assert kept.load(made().key) is None
    kept.save(made())  # what is refused is written over
    assert kept.load(made().key) == made()


def damaged(content: bytes, others: list[bytes], rng: random.Random) -> bytes:
    """Return content with bits flipped, cut, stretched, filled, or with parts of other entries in it."""
    data = bytearray(content)
    way = rng.randrange(7)
    at = rng.randrange(len(data))
    if way == 0:
        for _ in range(rng.randint(1, 8)):
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    elif way == 1:
        del data[at:]
    elif way == 2:
        data[at:at] = rng.randbytes(rng.randint(1, 50))
    elif way == 3:
        end = min(len(data), at + rng.randint(1, 200))
        data[at:end] = bytes(end - at)
    elif way == 4:
        other = rng.choice(others)
        data[at:] = other[at:]
    elif way == 5:
        del data[at : at + rng.randint(1, 50)]
    else:
        data = bytearray(rng.randbytes(rng.randrange(600)))
    return bytes(data)


def overwrite(path: Path, content: bytes) -> None:
    with path.open("r+b") as file:  # some file systems take milliseconds to empty a file first
        file.write(content)
        file.truncate()


def fuzz(root: Path, count: int, seed: int) -> int:
    """Load `count` damaged entries; return how many were noticed."""
    kept, rng, noticed = KernelStore(str(root), MIB), random.Random(seed), 0
    entries = [made(i, random.Random(i).randbytes(100 + 50 * i)) for i in range(5)]
    contents = [encode(one) for one in entries]
    for one in entries:
        kept.save(one)
    for _ in range(count):
        one, content = rng.choice(list(zip(entries, contents, strict=True)))
        changed = damaged(content, [other for other in contents if other != content], rng)
        overwrite(path_of(root, one), changed)
        found = kept.load(one.key)
        assert found is None or (changed == content and found == one)
        noticed += found is None
        overwrite(path_of(root, one), content)
    assert [kept.load(one.key) for one in entries] == entries
    return noticed


@pytest.mark.slow
def test_damaged_entries_are_noticed(root: Path) -> None:
    # TRACEJIT_FUZZ=100000 runs as many.
    count = int(os.environ.get("TRACEJIT_FUZZ", "2000"))
    assert fuzz(root, count, seed=1) >= 0.98 * count  # a few changes write what was there


def refused(kept: KernelStore, reason: str) -> None:
    """Check that a store warns once, says why, and does no more after that."""
    with pytest.warns(CacheWarning) as caught:
        line = sys._getframe().f_lineno + 1
        assert kept.load(made().key) is None
        kept.save(made())
        assert kept.load(made().key) is None
    assert [str(warning.message) for warning in caught] == [
        f"compiled kernels are not kept in {kept.root}, because {reason}. Each process compiles them again. "
        "Set TRACEJIT_CACHE_DIR to a folder of your own, or TRACEJIT_CACHE=off."
    ]
    assert (caught[0].filename, caught[0].lineno) == (__file__, line)  # not one of the package's


def test_a_folder_that_others_may_write_to_is_not_used(kept: KernelStore, root: Path) -> None:
    kept.save(made())
    root.chmod(0o777)
    refused(KernelStore(str(root), MIB), f"other users may write to the folder {root} (mode 777)")
    root.chmod(0o700)
    (root / "kernels").chmod(0o720)
    refused(KernelStore(str(root), MIB), f"other users may write to the folder {root}/kernels (mode 720)")


def test_a_folder_that_others_may_read_is_used(kept: KernelStore, root: Path) -> None:
    kept.save(made())
    root.chmod(0o755)
    assert KernelStore(str(root), MIB).load(made().key) == made()


def test_a_folder_of_another_user_is_not_used(
    kept: KernelStore, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept.save(made())
    own = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: own + 1)
    refused(KernelStore(str(root), MIB), f"the folder {root} belongs to another user (number {own})")


def test_links_are_not_followed(kept: KernelStore, root: Path, tmp_path: Path) -> None:
    kept.save(made())
    link = tmp_path / "link"
    link.symlink_to(root)
    refused(KernelStore(str(link), MIB), f"the folder {link} is a link")
    (root / "kernels").rename(tmp_path / "kernels")
    (root / "kernels").symlink_to(tmp_path / "kernels")
    refused(KernelStore(str(root), MIB), f"the folder {root}/kernels is a link")


def test_a_file_in_the_place_of_the_folder(root: Path) -> None:
    root.write_text("")
    kept = KernelStore(str(root), MIB)
    assert kept.load(made().key) is None
    with pytest.warns(CacheWarning, match="because it cannot be written .Not a directory."):
        kept.save(made())


def plant_link(path: Path, elsewhere: Path) -> None:
    path.rename(elsewhere)
    path.symlink_to(elsewhere)


def plant_pipe(path: Path, elsewhere: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def plant_folder(path: Path, elsewhere: Path) -> None:
    path.unlink()
    path.mkdir()


def plant_open_file(path: Path, elsewhere: Path) -> None:
    path.chmod(0o666)


def plant_large_file(path: Path, elsewhere: Path) -> None:
    os.truncate(path, folder.LARGEST + 1)


@pytest.mark.parametrize("plant", [plant_link, plant_pipe, plant_folder, plant_open_file, plant_large_file])
def test_a_file_that_is_not_private_is_a_miss(plant, kept: KernelStore, root: Path, tmp_path: Path) -> None:
    kept.save(made())
    plant(path_of(root, made()), tmp_path / "elsewhere")
    fresh = KernelStore(str(root), MIB)
    assert fresh.load(made().key) is None
    if plant is not plant_folder:
        fresh.save(made())
        assert fresh.load(made().key) == made()
        assert stat.S_ISREG(path_of(root, made()).lstat().st_mode)


def test_swapped_entries_are_noticed(kept: KernelStore, root: Path, tmp_path: Path) -> None:
    for number in (0, 1):
        kept.save(made(number))
    first, second = (path_of(root, made(number)) for number in (0, 1))
    first.rename(tmp_path / "aside")
    second.rename(first)
    (tmp_path / "aside").rename(second)
    assert kept.load(made(0).key) is None
    assert kept.load(made(1).key) is None


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS, errno.EDQUOT, errno.EACCES, errno.EIO])
def test_a_disk_that_takes_nothing(code: int, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = KernelStore(str(root), MIB)
    kept.save(made(0))
    rename = os.rename

    def fail(*args: object, **kwargs: object) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "rename", fail)
    with pytest.warns(CacheWarning, match=f"because it cannot be written .{os.strerror(code)}.") as caught:
        kept.save(made(1))
        kept.save(made(2))
    assert len(caught) == 1
    monkeypatch.setattr(os, "rename", rename)
    assert os.listdir(root / "kernels") == [made(0).key.name + SUFFIX]  # nothing half-written is left
    assert kept.load(made(0).key) == made(0)
    assert kept.load(made(1).key) is None


def test_a_folder_of_the_version_before_is_a_miss(kept: KernelStore, root: Path) -> None:
    kernel, summary = made(), b'{"schema":3}'
    kept.save(kernel)
    content = path_of(root, kernel).read_bytes()
    path_of(root, kernel).write_bytes(content.replace(b"tracejit entry 1 ", b"tracejit entry 0 ", 1))
    description = b"%s %s\n%s\n" % (
        hashlib.sha256(summary).hexdigest().encode(),
        summary,
        b'{"schema":3,"rows":[]}',
    )
    name = hashlib.sha256(description).hexdigest()
    programs = Programs(str(root))
    programs.keep({"function": "step"}, {"at": 1.0})
    (new,) = programs.all()
    path = root / "programs" / f"{name}.program"
    path.write_bytes(description)
    path.chmod(0o600)
    assert (kept.load(kernel.key), programs.read(name)) == (None, None)
    assert (
        [program.name for program in programs.all()] == [head.name for head in programs.heads()] == [new.name]
    )
    kept.save(kernel)
    assert kept.load(kernel.key) == kernel


def test_a_key_with_the_parts_of_the_version_before_is_a_miss(kept: KernelStore) -> None:
    kernel = made()
    old = kernel._replace(key=KernelKey((*kernel.key.parts, ("handwritten", "a hash of five files"))))
    kept.save(old)
    assert (kept.load(kernel.key), kept.load(old.key)) == (None, old)


def test_a_disk_that_cannot_be_read(kept: KernelStore, monkeypatch: pytest.MonkeyPatch) -> None:
    kept.save(made())

    def fail(*args: object, **kwargs: object) -> int:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "open", fail)
    assert kept.load(made().key) is None


def test_a_folder_removed_while_in_use_is_made_again(kept: KernelStore, root: Path) -> None:
    kept.save(made(0))
    path_of(root, made(0)).unlink()
    (root / "kernels").rmdir()
    assert kept.load(made(0).key) is None
    root.rmdir()
    assert kept.entries() == []
    kept.save(made(1))
    assert kept.load(made(1).key) == made(1)


def test_a_folder_removed_while_a_file_is_written(
    kept: KernelStore, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*args: object, **kwargs: object) -> None:
        raise FileNotFoundError(errno.ENOENT, "gone")

    with monkeypatch.context() as patch:
        patch.setattr(os, "rename", fail)
        kept.save(made())
    kept.save(made())
    assert kept.load(made().key) == made()


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    """Under a link to nothing; a folder that somebody removes meanwhile looks the same the first time."""
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    root = tmp_path / "link" / "cache"
    kept = KernelStore(str(root), MIB)
    kept.save(made(0))
    with pytest.warns(
        CacheWarning, match=r"because it cannot be made \(No such file or directory\)\."
    ) as found:
        kept.save(made(1))
    assert found[0].filename == __file__
    kept.save(made(2))
    assert kept.load(made(0).key) is None
    assert folder.cannot_be_made(str(root)) == f"it cannot be made, as {tmp_path}/link is no folder"


def test_whether_a_folder_can_be_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert folder.cannot_be_made(str(tmp_path)) is None
    assert folder.cannot_be_made(str(tmp_path / "a" / "b")) is None
    assert not (tmp_path / "a").exists()
    (tmp_path / "file").write_text("")
    assert (
        folder.cannot_be_made(str(tmp_path / "file" / "b"))
        == f"it cannot be made, as {tmp_path}/file is no folder"
    )

    def fail(path: str, mode: int) -> None:
        raise error

    error: OSError = PermissionError(errno.EACCES, "Permission denied")
    with monkeypatch.context() as patch:
        patch.setattr(os, "mkdir", fail)
        assert folder.cannot_be_made(str(tmp_path / "a")) == "it cannot be made (Permission denied)"
        error = FileExistsError(errno.EEXIST, "made by another process")
        assert folder.cannot_be_made(str(tmp_path / "a")) is None


def test_a_folder_in_place_of_an_entry_costs_that_entry(kept: KernelStore, root: Path) -> None:
    kept.save(made(0))
    path_of(root, made(1)).mkdir()
    kept.save(made(1))
    kept.save(made(2))
    assert [kept.load(made(i).key) for i in range(3)] == [made(0), None, made(2)]


def test_a_system_without_descriptors_of_folders(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder, "_SUPPORTED", False)
    refused(KernelStore(str(root), MIB), "this system cannot open files relative to a folder")


def fill(kept: KernelStore, count: int, code_bytes: int, now: float) -> list[StoredKernel]:
    """Save entries whose last uses are a second apart, up to `now`."""
    entries = [made(i, bytes(code_bytes)) for i in range(count)]
    for i, one in enumerate(entries):
        kept.save(one)
        used = now - count + i
        os.utime(path_of(Path(kept.root), one), (used, used))
    return entries


def test_the_least_recently_used_entries_go(root: Path) -> None:
    now = time.time()
    size = len(encode(made(0, bytes(1000))))
    roomy = KernelStore(str(root), 100 * size)
    entries = fill(roomy, 10, 1000, now)
    assert roomy.load(entries[0].key) == entries[0]  # a use
    tight = KernelStore(str(root), 10 * size + size // 2)
    tight.save(made(10, bytes(1000)))
    left = {file.name.removesuffix(SUFFIX) for file in tight.entries()}
    assert len(left) == 8  # four fifths of the limit
    assert left == {one.key.name for one in [entries[0], *entries[4:], made(10, bytes(1000))]}


def test_an_entry_from_the_future_is_evicted_too(root: Path) -> None:
    now = time.time()
    size = len(encode(made(0, bytes(1000))))
    entries = fill(KernelStore(str(root), 100 * size), 4, 1000, now)
    os.utime(path_of(root, entries[0]), (now + 1e6, now + 1e6))
    tight = KernelStore(str(root), 2 * size)
    tight.save(made(4, bytes(1000)))
    assert [file.name for file in tight.entries()] == [made(4).key.name + SUFFIX]


def test_files_left_by_processes_that_ended_are_removed(kept: KernelStore, root: Path) -> None:
    kept.save(made(0))
    old, new = (root / "kernels" / f".new-{name}" for name in ("1-a", "2-b"))
    for path, age in ((old, 7200), (new, 10)):
        path.write_bytes(b"half")
        os.utime(path, (time.time() - age,) * 2)
    KernelStore(str(root), MIB).save(made(1))
    assert not old.exists()
    assert new.exists()
    assert len(kept.entries()) == 2


def test_other_files_are_left_alone(kept: KernelStore, root: Path) -> None:
    kept.save(made(0))
    (root / "kernels" / "notes.txt").write_text("mine")
    (root / "kernels" / ("A" * 64 + SUFFIX)).write_text("no hash")
    tight = KernelStore(str(root), 1)
    tight.save(made(1))
    assert sorted(os.listdir(root / "kernels")) == ["A" * 64 + SUFFIX, "notes.txt"]


def test_concurrent_removal_is_not_an_error(
    kept: KernelStore, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(kept, 3, 100, time.time())
    listed = os.listdir

    def listed_and_removed(path: object) -> list[str]:
        names = listed(path)  # type: ignore[arg-type]
        for name in names[:2]:
            with contextlib.suppress(OSError):
                (root / "kernels" / name).unlink()
        return names

    monkeypatch.setattr(os, "listdir", listed_and_removed)
    KernelStore(str(root), 1).save(made(9))
    assert len(kept.entries()) <= 1


def test_removing(kept: KernelStore, root: Path) -> None:
    kernels = Folder(str(root), "kernels")
    assert not kernels.remove("nothing")
    kept.save(made())
    assert kernels.remove(made().key.name + SUFFIX)
    assert not kernels.remove(made().key.name + SUFFIX)


def test_listing_a_refused_folder_raises_an_error(root: Path) -> None:
    root.mkdir(mode=0o777)
    root.chmod(0o777)
    with pytest.raises(RefusedError, match="other users may write"):
        KernelStore(str(root), MIB).entries()


def test_the_store_that_is_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(config.settings, "cache_dir", str(tmp_path))
    monkeypatch.setattr(config.settings, "cache_mib", 3)
    found = store()
    assert found is not None and found is store()
    assert (found.root, found.limit_bytes) == (str(tmp_path), 3 * MIB)
    monkeypatch.setattr(config.settings, "cache", "off")
    assert store() is None


@pytest.mark.parametrize("is_installed", [True, False])
def test_the_place_of_the_system(is_installed: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A checkout that is not installed may lack the package that knows it."""
    if not is_installed:
        monkeypatch.setitem(sys.modules, "platformdirs", None)
    for cache_home, place in ((str(tmp_path), tmp_path), ("", tmp_path / ".cache")):
        monkeypatch.setenv("XDG_CACHE_HOME", cache_home)
        monkeypatch.setenv("HOME", str(tmp_path))
        default_root.cache_clear()
        try:
            assert default_root() == str(place / "tracejit")
        finally:
            default_root.cache_clear()


def test_key_parts_decide() -> None:
    one, other = KernelKey((("a", "b"), ("c", "d"))), KernelKey((("a", "bc"), ("", "d")))
    assert one.name != other.name
    assert entry.KernelKey((("a", "b"), ("c", "d"))).name == one.name
