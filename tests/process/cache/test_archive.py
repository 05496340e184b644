# SPDX-License-Identifier: BSD-3-Clause
"""The cache as one file: it comes back as it was, and what is not just what pack() writes is refused, whole."""

import hashlib
import io
import json
import os
import random
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from damaged_caches import table, tar

import tracejit as tj
from tracejit import cli, config
from tracejit.cache import archive
from tracejit.errors import CacheError
from tracejit.store.entry import KernelKey, StoredKernel, encode
from tracejit.store.folder import Folder
from tracejit.store.kernels import SUFFIX, KernelStore
from tracejit.store.programs import Programs


def entry(number: int, **parts: str) -> StoredKernel:
    key = KernelKey((("kind", "kernel"), ("source", f"hash {number}"), *parts.items()))
    return StoredKernel(
        key, f"add_{number}", (), 1, "def f(): pass\n", random.Random(number).randbytes(100 * number)
    )


def program(name: str) -> dict[str, Any]:
    return {"function": name, "inputs": [], "kernels": [{"name": "add_1", "entry": entry(1).key.name}]}


def contents(root: Path) -> dict[str, bytes]:
    return {
        str(each.relative_to(root)): each.read_bytes() for each in sorted(root.rglob("*"))
        if each.is_file() and not each.name.endswith(".uses")
    }  # fmt: skip


@pytest.fixture
def go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """Make another cache that of the process."""

    def go(name: str) -> Path:
        monkeypatch.setattr(config.settings, "cache_dir", str(tmp_path / name))
        return tmp_path / name

    return go


@pytest.fixture
def built(go: Callable[[str], Path]) -> Path:
    """The cache of a build machine, with three kernels and two programs."""
    root = go("built")
    kept, programs = KernelStore(str(root), 1 << 30), Programs(str(root))
    for number in (1, 2, 11):
        kept.save(entry(number))
    for name in ("step", "evaluate"):
        programs.keep(program(name), {"at": 1.0})
    (root / "kernels" / ".new-12-ab").write_text("half written")
    (root / "kernels" / "notes.txt").write_text("of somebody")
    return root


@pytest.fixture
def file(built: Path, tmp_path: Path) -> Path:
    """An archive of that cache."""
    archive.pack(str(tmp_path / "cache.tar"))
    return tmp_path / "cache.tar"


def expected(built: Path) -> dict[str, bytes]:
    return {name: content for name, content in contents(built).items() if name.endswith((SUFFIX, ".program"))}


def test_a_cache_comes_back(built: Path, tmp_path: Path, go: Callable[[str], Path]) -> None:
    packed = tj.cache.pack(str(tmp_path / "cache.tar"))
    assert (packed.kernels, packed.programs, packed.left_out) == (3, 2, ())
    assert packed.bytes == (tmp_path / "cache.tar").stat().st_size
    assert packed.sha256 == hashlib.sha256((tmp_path / "cache.tar").read_bytes()).hexdigest()
    fleet = go("fleet")
    before = os.umask(0)
    try:
        found = tj.cache.unpack(str(tmp_path / "cache.tar"), packed.sha256)
    finally:
        os.umask(before)
    assert (found.kernels, found.programs, found.known) == (3, 2, 0)
    assert contents(fleet) == expected(built)
    assert {each.stat().st_mode & 0o777 for each in fleet.rglob("*") if each.is_file()} == {0o600}
    assert tj.cache.verify().kernels == 3
    assert {each.function for each in tj.cache.list()} == {"step", "evaluate"}
    again = tj.cache.unpack(str(tmp_path / "cache.tar"))
    assert (again.kernels, again.programs, again.known) == (0, 0, 5)
    assert tj.cache.pack(str(tmp_path / "again.tar")).sha256 == packed.sha256
    assert (tmp_path / "again.tar").read_bytes() == (tmp_path / "cache.tar").read_bytes()


def test_other_programs_read_it(file: Path, built: Path) -> None:
    with tarfile.open(file) as opened:
        table, *members = opened.getmembers()
        assert {each.name: opened.extractfile(each).read() for each in members} == expected(built)  # type: ignore[union-attr]
        content = opened.extractfile(table).read()  # type: ignore[union-attr]
    assert table.name == f"tracejit-cache-{hashlib.sha256(content).hexdigest()}.json"
    assert {(each.uid, each.gid, each.mtime, each.mode) for each in [table, *members]} == {(0, 0, 0, 0o600)}


def test_damaged_entries_are_left_out_or_written_over(built: Path, tmp_path: Path, go: Any) -> None:
    whole = tj.cache.pack(str(tmp_path / "whole.tar"))
    damaged = built / "kernels" / (entry(2).key.name + SUFFIX)
    content = damaged.read_bytes()
    damaged.write_bytes(content[:-1])
    (described,) = [each for each in Programs(str(built)).all() if each.program["function"] == "step"]
    (built / "programs" / f"{described.name}.program").write_bytes(b"{}")
    packed = tj.cache.pack(str(tmp_path / "cache.tar"))
    assert (packed.kernels, packed.programs) == (2, 1)
    assert sorted(packed.left_out) == sorted(
        [
            (entry(2).key.name, "its content does not agree with its hash"),
            (described.name, "its content does not agree with its hash"),
        ]
    )
    assert f"left out {described.name[:12]}: its content does not agree with its hash" in repr(packed)
    found = tj.cache.unpack(str(tmp_path / "whole.tar"))
    assert (found.kernels, found.programs, found.known) == (1, 1, 3)
    assert tj.cache.pack(str(tmp_path / "again.tar")).sha256 == whole.sha256


def test_kernels_of_other_machines_are_counted(go: Callable[[str], Path], tmp_path: Path) -> None:
    from tracejit.compile.key import key_of

    root = go("built")
    here = key_of("kernel", "")
    assert here is not None
    kept = KernelStore(str(root), 1 << 30)
    for number, changed in ((1, {}), (2, {"cpu": "z80"}), (3, {"cpu": "z80", "system": "cp/m"})):
        key = KernelKey(tuple([(name, changed.get(name, value)) for name, value in here.parts]))
        key = KernelKey(
            tuple([(name, f"{number}" if name == "source" else value) for name, value in key.parts])
        )
        kept.save(entry(number)._replace(key=key))
    tj.cache.pack(str(tmp_path / "cache.tar"))
    go("fleet")
    found = tj.cache.unpack(str(tmp_path / "cache.tar"))
    assert (found.kernels, found.foreign, found.differences) == (3, 2, ("cpu", "system"))
    assert repr(found) == (
        f"unpacked 3 kernels and 0 programs into {tmp_path / 'fleet'}; 0 were there already\n"
        "2 kernels for a different kind of machine, not used here: cpu, system differ"
    )


def test_unpacked_kernels_are_used(tmp_path: Path) -> None:
    code = (
        "import sys, numpy as np, tracejit as tj; f = tj.dlaccelerate(lambda x: np.tanh(x) * 2, confirm=0); "
        "f(np.ones(3)); "
        "f(np.ones(3)); from tracejit.compile.registry import registry; print(registry.compiled, 'numba' in "
        "sys.modules)"
    )

    def run(folder: str, *command: str) -> str:
        environment = os.environ | {"TRACEJIT_CACHE_DIR": str(tmp_path / folder)}
        return subprocess.run(
            [sys.executable, *command], env=environment, capture_output=True, text=True, check=True
        ).stdout  # fmt: skip

    assert run("built", "-c", code) == "4 True\n"
    file = str(tmp_path / "cache.tar")
    assert "packed 4 kernels and 1 program, " in run("built", "-m", "tracejit", "cache", "pack", file)
    out = run("fleet", "-m", "tracejit", "cache", "unpack", file)
    assert out == f"unpacked 4 kernels and 1 program into {tmp_path / 'fleet'}; 0 were there already\n"
    assert run("fleet", "-c", code) == "0 False\n"


def test_commands(file: Path, go: Any, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    def run(*arguments: str) -> tuple[int, str, str]:
        code = cli.main(["cache", *arguments])
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    other = str(tmp_path / "other.tar")
    code, out, err = run("pack", other)
    sha256 = hashlib.sha256(Path(other).read_bytes()).hexdigest()
    assert archive.unpack(other, sha256.upper()).sha256 == sha256
    size = os.path.getsize(other)
    assert (code, out, err) == (
        0, f"packed 3 kernels and 2 programs, {size / 1024:.1f} KiB, into {other}\nsha256 {sha256}\n", "",
    )  # fmt: skip
    code, out, err = run("pack", other, "--json")
    assert json.loads(out)["result"] == {
        "file": other, "sha256": sha256, "kernels": 3, "programs": 2, "bytes": size, "left_out": [],
    }  # fmt: skip
    fleet = go("fleet")
    assert run("unpack", other, "--sha256", "0" * 64) == (
        1, "", f"tracejit cache unpack: the SHA-256 of {other} is {sha256}, expected {'0' * 64}; nothing was "
        "unpacked\n",
    )  # fmt: skip
    assert not fleet.exists()
    code, out, err = run("unpack", other, "--sha256", sha256, "--json")
    result = json.loads(out)["result"]
    assert (result.pop("differences"), result.pop("foreign")) != ([], 0)
    assert result == {"file": other, "sha256": sha256, "kernels": 3, "programs": 2, "known": 0}
    code, out, err = run("unpack", str(tmp_path / "nowhere"), "--json")
    assert (code, json.loads(out)["error"]["kind"]) == (1, "CacheError")
    with pytest.raises(SystemExit, match="2"):
        run("unpack")


def test_the_commands_import_no_numba(file: Path, tmp_path: Path) -> None:
    code = (
        "import sys; from tracejit import cli; code = cli.main(['cache', *sys.argv[1:]]); "
        "sys.exit(code or 'numba' in sys.modules)"
    )
    for verb in ("unpack", "pack"):
        subprocess.run(
            [sys.executable, "-c", code, verb, str(file)], check=True, capture_output=True,
            env=os.environ | {"TRACEJIT_CACHE_DIR": str(tmp_path / "fleet")},
        )  # fmt: skip


# What is refused.


GOOD = encode(entry(1))
NAME = f"kernels/{entry(1).key.name}{SUFFIX}"
TOLD = [NAME, len(GOOD), hashlib.sha256(GOOD).hexdigest()]


def told(name: Any, content: bytes = GOOD) -> list[Any]:
    return [name, len(content), hashlib.sha256(content).hexdigest()]


def special(kind: bytes, **attributes: Any) -> tarfile.TarInfo:
    member = tarfile.TarInfo(NAME)
    member.type, member.size, member.mode = kind, len(GOOD), 0o600
    for name, value in attributes.items():
        setattr(member, name, value)
    return member


def test_the_archives_of_these_tests_would_be_unpacked(tmp_path: Path, go: Any) -> None:
    root = go("fleet")
    (tmp_path / "a.tar").write_bytes(tar(table(TOLD), [(NAME, GOOD)]))
    assert archive.unpack(str(tmp_path / "a.tar")).kernels == 1
    assert contents(root) == {NAME: GOOD}


OTHER = entry(2)
HASH = "a" * 64
NAMES = [
    "../../etc/cron.d/x", "/etc/passwd", "kernels/../../x.kernel", f"kernels/{HASH[1:]}.kernel",
    f"kernels/{HASH.upper()}.kernel", f"kernels/{HASH}.kernel\n", f"kernels/{HASH}.kernel/", f"./kernels/{HASH}.kernel",
    f"programs/{HASH}.uses", f"kernels\\{HASH}.kernel", f"kernels/{HASH}.program", "kernels", "", 7, None,
    f"kernels/{HASH}\0.kernel",
]  # fmt: skip
OLDER = b'x\n{"schema":1}'


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"", "it is not a tar file"),
        (b"PK\x03\x04" * 500, "it is not a tar file"),
        (bytes(10240), "it is not a tar file"),
        (tar(table(), [])[:-1], "it has 2047 bytes, but its table says 2048|it has"),
        (tar(table(), [], b""), "it has 1024 bytes, but its table says 2048"),
        (tar(table(), []) + bytes(512), "it has 2560 bytes, but its table says 2048"),
        (tar(table(), [], bytes(1023) + b"x"), "its end is damaged"),
        (tar(table(TOLD), []), "bytes, but its table says"),
        (tar(table(), [(NAME, GOOD)]), "bytes, but its table says"),
        (tar(b"[" * 300_000, []), "its table cannot be read"),
        (tar(b"9" * 30_000, []), "its table cannot be read"),
        (tar(b"{}", []), "its table cannot be read"),
        (tar(table(kind="cake"), []), "its table cannot be read"),
        (tar(table(entries=3), []), "its table cannot be read"),
        (tar(table([NAME]), []), "its table cannot be read"),
        (tar(table([NAME, 1, 2]), []), "its table cannot be read"),
        (tar(table([NAME, -1, "0" * 64]), []), "its table has no size and hash of kernels/"),
        (tar(table([NAME, 1 << 40, "0" * 64]), []), "its table has no size and hash of kernels/"),
        (tar(table([NAME, 1.0, "0" * 64]), []), "its table has no size and hash of kernels/"),
        (tar(table([NAME, 1, "0" * 63]), []), "its table has no size and hash of kernels/"),
        (tar(table(TOLD, TOLD), [(NAME, GOOD)] * 2), "twice or out of order"),
        (tar(table(TOLD), [(NAME, GOOD[:-1] + b"x")]), "does not agree with its hash"),
        (tar(table(TOLD), [(special(tarfile.SYMTYPE, linkname="/etc/passwd"), GOOD)]), "the header of "
                                                                                       "kernels/.* is damaged"),
        (tar(table(TOLD), [(special(tarfile.LNKTYPE, linkname="/etc/passwd"), GOOD)]), "the header of "
                                                                                       "kernels/.* is damaged"),
        (tar(table(TOLD), [(special(tarfile.CHRTYPE, devmajor=1), GOOD)]), "the header of kernels/.* is damaged"),
        (tar(table(TOLD), [(special(tarfile.FIFOTYPE), GOOD)]), "the header of kernels/.* is damaged"),
        (tar(table(TOLD), [(special(tarfile.GNUTYPE_SPARSE), GOOD)]), "the header of kernels/.* is damaged"),
        (tar(table(TOLD), [(special(tarfile.REGTYPE, mode=0o4755), GOOD)]), "the header of kernels/.* is damaged"),
        (tar(table(TOLD), [(special(tarfile.REGTYPE, uid=7), GOOD)]), "the header of kernels/.* is damaged"),
        (tar(table(TOLD), [(special(tarfile.REGTYPE, name="../../x"), GOOD)]), "the header of kernels/.* is damaged"),
        (tar(table(TOLD), [(special(tarfile.REGTYPE, size=1 << 32), GOOD)]), "the header of kernels/.* is damaged"),
        *[(tar(table(told(name)), [("x", GOOD)]), "it names .*, which no cache has") for name in NAMES],
    ],
)  # fmt: skip
def test_planted_archives_are_refused(content: bytes, text: str, tmp_path: Path, go: Any) -> None:
    root = go("fleet")
    file = tmp_path / "a.tar"
    file.write_bytes(content)
    with pytest.raises(
        CacheError,
        match=rf"^{file} is not what `tracejit cache pack` writes: (.|\n)*({text})(.|\n)*; nothing was unpacked$",
    ):
        archive.unpack(str(file))
    assert not root.exists()
    assert sorted(os.listdir(tmp_path)) == ["a.tar"]


def rest(name: str, content: bytes) -> bytes:
    return tar(table(told(name, content)), [(name, content)])


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (
            rest(NAME, encode(OTHER)),
            "which this version cannot use: it belongs to a different key; nothing was unpacked$",
        ),
        (
            rest(NAME, b"rubbish"),
            "which this version cannot use: it is not an entry of the cache; nothing was unpacked$",
        ),
        (
            rest(NAME, GOOD[:-1]),
            "which this version cannot use: its content does not agree with its hash; nothing was unpacked$",
        ),
        (
            rest(f"programs/{'a' * 64}.program", b"{}"),
            "which this version cannot use: its content does not agree with its hash; nothing was unpacked$",
        ),
        (
            rest(f"programs/{hashlib.sha256(b'{').hexdigest()}.program", b"{"),
            "which this version cannot use: it is not a description of a program; nothing was unpacked$",
        ),
        (
            rest(f"programs/{hashlib.sha256(OLDER).hexdigest()}.program", OLDER),
            "which this version cannot use: it was written by a different version of tracejit; nothing was unpacked$",
        ),
        (tar(table(format=2), []), r"a.tar has format 2, this version of tracejit reads 1; pack it again$"),
    ],
)
def test_entries_that_are_not_entries_are_refused(content: bytes, text: str, tmp_path: Path, go: Any) -> None:
    root = go("fleet")
    (tmp_path / "a.tar").write_bytes(content)
    with pytest.raises(CacheError, match=text):
        archive.unpack(str(tmp_path / "a.tar"))
    assert not root.exists()


def test_an_ordinary_tar_is_refused(tmp_path: Path, go: Any) -> None:
    root = go("fleet")
    with tarfile.open(tmp_path / "a.tar", "w") as opened:
        member = tarfile.TarInfo(NAME)
        member.size = len(GOOD)
        opened.addfile(member, io.BytesIO(GOOD))
    with pytest.raises(CacheError, match="it does not begin with a table; nothing was unpacked"):
        archive.unpack(str(tmp_path / "a.tar"))
    assert not root.exists()


def test_every_changed_bit_is_noticed(file: Path, go: Any, tmp_path: Path) -> None:
    root = go("fleet")
    content = file.read_bytes()
    rng = random.Random(1)
    places = {
        *range(2048),
        *[rng.randrange(len(content)) for _ in range(int(os.environ.get("TRACEJIT_FUZZ", "600")))],
    }
    changed = tmp_path / "changed.tar"
    for at in places:
        data = bytearray(content)
        if at % 7 == 0:
            data = data[:at]
        elif at % 7 == 1:
            data[at:at] = b"\0"
        else:
            data[at] ^= 1 << rng.randrange(8)
        changed.write_bytes(data)
        with pytest.raises(CacheError, match=r"is not what `tracejit cache pack` writes|has format"):
            archive.unpack(str(changed))
    assert not root.exists()


def test_an_archive_that_is_too_large(file: Path, go: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    root = go("fleet")
    monkeypatch.setattr(config.settings, "cache_mib", 0)
    with pytest.raises(
        CacheError,
        match=r"cache.tar has \d\.\d KiB of kernels, more than the limit of 0 bytes; "
        r"raise TRACEJIT_CACHE_MIB$",
    ):
        archive.unpack(str(file))
    assert not root.exists()


def test_old_entries_make_room(file: Path, go: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    root = go("fleet")
    kept = KernelStore(str(root), 1 << 30)
    old = entry(3)._replace(code=bytes((1 << 20) - 1000))
    kept.save(old)
    os.utime(root / "kernels" / (old.key.name + SUFFIX), (1, 1))
    monkeypatch.setattr(config.settings, "cache_mib", 1)
    assert archive.unpack(str(file)).kernels == 3
    assert tj.cache.verify().kernels == 3


def test_where_nothing_can_be_unpacked(
    file: Path, go: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo(tmp_path / "fifo")
    for path, text in (
        ("fifo", "fifo is not an ordinary file"),
        ("none", r"none cannot be read \(No such file"),
        ("", "cannot be read"),
    ):
        with pytest.raises(CacheError, match=text):
            archive.unpack(str(tmp_path / path))
    root = go("fleet")
    root.mkdir(mode=0o777)
    root.chmod(0o777)
    with pytest.raises(CacheError, match=r"fleet cannot be written: other users may write to the folder"):
        archive.unpack(str(file))
    assert os.listdir(root) == []
    monkeypatch.setattr(config.settings, "cache", "off")
    with pytest.raises(
        CacheError,
        match=r"^there is no cache to unpack into, because TRACEJIT_CACHE=off; set it to private or shared$",
    ):
        archive.unpack(str(file))


def test_entries_that_change_or_go_meanwhile(
    built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = Folder.read

    def removing(folder: Folder, name: str, *args: Any, **options: Any) -> Any:
        content = read(folder, name, *args, **options)
        for each in (built / "kernels").glob("*.kernel"):
            each.unlink()
        return content

    monkeypatch.setattr(Folder, "read", removing)
    packed = archive.pack(str(tmp_path / "cache.tar"))
    assert (packed.kernels, packed.programs, packed.left_out) == (1, 2, ())
    monkeypatch.undo()
    assert archive.unpack(str(tmp_path / "cache.tar")).programs == 2


def test_a_file_that_is_not_ordinary_is_not_replaced(built: Path, tmp_path: Path) -> None:
    """As /dev/null would be by the administrator, or /dev/stdout, which is a link."""
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "link").symlink_to(tmp_path / "fifo")
    before = sorted(os.listdir(tmp_path))
    for name in ("fifo", "link"):
        with pytest.raises(CacheError, match=rf"{name} is not an ordinary file; give the path of one$"):
            archive.pack(str(tmp_path / name))
    assert (tmp_path / "link").is_fifo()
    assert sorted(os.listdir(tmp_path)) == before


def test_where_nothing_can_be_packed(built: Path, tmp_path: Path) -> None:
    with pytest.raises(CacheError, match=r"no/cache.tar cannot be written \(No such file or directory\)$"):
        archive.pack(str(tmp_path / "no" / "cache.tar"))
    (tmp_path / "taken").mkdir()
    with pytest.raises(CacheError, match=r"taken cannot be written \(Is a directory\)$"):
        archive.pack(str(tmp_path / "taken"))
    built.chmod(0o777)
    with pytest.raises(CacheError, match=r"built cannot be used: other users may write to the folder"):
        archive.pack(str(tmp_path / "cache.tar"))
    assert sorted(os.listdir(tmp_path)) == ["built", "taken"]


def test_an_archive_that_changes_meanwhile(file: Path, go: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    go("fleet")
    held = archive._current_content

    def changing(folder: Any, name: str) -> Any:
        content = bytearray(file.read_bytes())
        content[-1500] ^= 1
        with file.open("r+b") as stream:
            stream.write(content)
        return held(folder, name)

    monkeypatch.setattr(archive, "_current_content", changing)
    with pytest.raises(
        CacheError,
        match=r"cache.tar changed while it was unpacked; \d files? of it are in "
        r"the cache$",
    ):
        archive.unpack(str(file))
    assert tj.cache.verify().bad == []


def test_several_processes_unpack_at_once(file: Path, go: Any) -> None:
    root = go("fleet")
    code = "import sys; from tracejit.cache import archive; [archive.unpack(sys.argv[1]) for _ in range(20)]"
    environment = os.environ | {"TRACEJIT_CACHE_DIR": str(root)}
    started = [subprocess.Popen([sys.executable, "-c", code, str(file)], env=environment) for _ in range(3)]
    for _ in range(5):
        tj.cache.purge()
    assert [process.wait() for process in started] == [0] * 3
    archive.unpack(str(file))
    assert (tj.cache.verify().kernels, tj.cache.verify().bad) == (3, [])


def test_a_killed_process_leaves_a_usable_cache(file: Path, go: Any) -> None:
    code = (
        "import os, sys\nfrom tracejit.cache import archive\nrename = os.rename\nleft = [int(sys.argv[2])]\n"
        "def dying(*args, **kwargs):\n    left[0] -= 1\n    os.kill(os.getpid(), 9) if left[0] < 0 else "
        "rename(*args, **kwargs)\n"
        "os.rename = dying\narchive.unpack(sys.argv[1])"
    )
    root = go("fleet")
    for count in (0, 1, 1, 1):
        environment = os.environ | {"TRACEJIT_CACHE_DIR": str(root)}
        done = subprocess.run(
            [sys.executable, "-c", code, str(file), str(count)], env=environment, check=False
        )
        assert done.returncode == -9
        assert tj.cache.verify().bad == []
    found = archive.unpack(str(file))
    assert found.known > 0
    assert tj.cache.verify().kernels == 3


def test_results_are_those_of_the_build_machine(tmp_path: Path, go: Any) -> None:
    """An exported level of CPUs and the kernels of this one are packed together."""
    root = go("built")
    double = tj.dlaccelerate(lambda x: 2 * x)
    tj.export(double, tmp_path / "double.tj", args=(np.ones(7),), cpus=("x86-64", "host"))
    packed = tj.cache.pack(str(tmp_path / "cache.tar"))
    assert packed.kernels == len(list((root / "kernels").iterdir()))
    go("fleet")
    found = tj.cache.unpack(str(tmp_path / "cache.tar"))
    assert found.foreign == packed.kernels // 2
    assert found.differences == ("cpu", "cpu features")
