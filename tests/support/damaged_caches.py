# SPDX-License-Identifier: BSD-3-Clause
"""Caches and archives with one thing changed, and the messages about them: a line for each change."""

import hashlib
import json
import os
import tarfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import tracejit as tj
from tracejit import cli, config
from tracejit.commands.arguments import UsageError
from tracejit.errors import CacheError
from tracejit.store.entry import KernelKey, StoredKernel, encode
from tracejit.store.folder import LARGEST
from tracejit.store.kernels import SUFFIX, KernelStore
from tracejit.store.programs import Programs


class Archive(NamedTuple):
    """The content of an archive, and the text of the error of unpack()."""

    content: bytes
    text: str


class Command(NamedTuple):
    """What is done to a cache of three kernels and three programs, a command, and the text of its error."""

    prepare: Callable[[Path], object]
    arguments: str
    text: str

    @property
    def error(self) -> type[Exception]:
        """UsageError if the arguments are refused."""
        return UsageError if self.text.startswith("argument ") else CacheError


# Archives.


def tar(
    table: Any, members: Sequence[tuple[tarfile.TarInfo | str, bytes]], end: bytes = bytes(1024)
) -> bytes:
    """Return an archive as who means harm would make it: all hashes agree."""
    content = table if isinstance(table, bytes) else json.dumps(table).encode()
    parts = []
    for name, data in ((f"tracejit-cache-{hashlib.sha256(content).hexdigest()}.json", content), *members):
        member = name if isinstance(name, tarfile.TarInfo) else tarfile.TarInfo(name)
        if not isinstance(name, tarfile.TarInfo):
            member.size, member.mode = len(data), 0o600
        parts += [member.tobuf(tarfile.USTAR_FORMAT), data, bytes(-len(data) % 512)]
    return b"".join([*parts, end])


def table(*entries: Any, **changes: Any) -> dict[str, Any]:
    """Return the table of an archive."""
    return {"kind": "tracejit cache", "format": 1, "entries": list(entries)} | changes


def record(name: Any, content: bytes) -> list[Any]:
    """Return the record of a file in a table."""
    return [name, len(content), hashlib.sha256(content).hexdigest()]


def one(name: str, content: bytes) -> bytes:
    """Return an archive of one file."""
    return tar(table(record(name, content)), [(name, content)])


def kernel(number: int, function: str = "add") -> StoredKernel:
    """Return a kernel with a key of its own."""
    key = KernelKey((("kind", "kernel"), ("source", f"hash {number}")))
    return StoredKernel(key, f"{function}_{number}", (), 1, "def f(): pass\n", bytes(100 * number))


def rehashed(body: bytes) -> bytes:
    """Return a body of a kernel's file under a hash that agrees with it."""
    return b"tracejit entry 1 " + hashlib.sha256(body).hexdigest().encode() + b"\n" + body


GOOD = encode(kernel(1))
NAME = f"kernels/{kernel(1).key.name}{SUFFIX}"
OLDER = b'x\n{"schema":1}'

ARCHIVES: tuple[Archive, ...] = (
    Archive(
        b"text",
        "<folder>/cache.tar is not what `tracejit cache pack` writes: it is not a tar file; nothing was "
        "unpacked",
    ),
    Archive(
        tar(table(), [])[512:],
        "<folder>/cache.tar is not what `tracejit cache pack` writes: it is not a tar file; nothing was "
        "unpacked",
    ),
    Archive(
        tarfile.TarInfo("x").tobuf(tarfile.USTAR_FORMAT) + bytes(1024),
        "<folder>/cache.tar is not what `tracejit cache pack` writes: "
        "it does not begin with a table; nothing was unpacked",
    ),
    Archive(
        tar(table(), []).replace(b'"kind"', b'"KIND"'),
        "<folder>/cache.tar is not what `tracejit cache pack` writes: its table does not agree with its "
        "hash; nothing was unpacked",
    ),
    Archive(
        tar(b"{}", []),
        "<folder>/cache.tar is not what `tracejit cache pack` writes: its table cannot be read; nothing "
        "was unpacked",
    ),
    Archive(
        tar(table(kind="cake"), []),
        "<folder>/cache.tar is not what `tracejit cache pack` writes: its table cannot be read; nothing "
        "was unpacked",
    ),
    Archive(
        tar(table(format=2), []),
        "<folder>/cache.tar has format 2, this version of tracejit reads 1; pack it again",
    ),
    Archive(
        tar(table(["../../x", 1, "0" * 64]), []),
        "<folder>/cache.tar is not what `tracejit cache pack` writes: it names '../../x', which no cache"
        " has; nothing was unpacked",
    ),
    Archive(
        tar(table([NAME, -1, "0" * 64]), []),
        "<folder>/cache.tar is not what `tracejit cache pack` writes: its table has no size and hash of "
        "kernels/<hash>.kernel; nothing was unpacked",
    ),
    Archive(
        tar(table(record(NAME, GOOD), record(NAME, GOOD)), [(NAME, GOOD)] * 2),
        "<folder>/cache.tar is not what `tracejit cache pack` writes: its table has "
        "kernels/<hash>.kernel twice or out of order; nothing was unpacked",
    ),
    Archive(
        tar(table(), [], b""),
        "<folder>/cache.tar is not what `tracejit cache pack` writes: it has 1024 bytes, but its table "
        "says 2048; nothing was unpacked",
    ),
    Archive(
        tar(table(), [], bytes(1023) + b"x"),
        "<folder>/cache.tar is not what `tracejit cache pack` writes: its end is damaged; nothing was "
        "unpacked",
    ),
    Archive(
        tar(table(record(NAME, GOOD)), [(NAME.upper(), GOOD)]),
        "<folder>/cache.tar is not what `tracejit cache pack` writes: the header of "
        "kernels/<hash>.kernel is damaged; nothing was unpacked",
    ),
    Archive(
        tar(table(record(NAME, GOOD)), [(NAME, GOOD[:-1] + b"x")]),
        "<folder>/cache.tar is not what `tracejit cache pack` writes: kernels/<hash>.kernel does not "
        "agree with its hash; nothing was unpacked",
    ),
    Archive(
        one(NAME, b"text"),
        "<folder>/cache.tar holds kernels/<hash>.kernel, which this version cannot use: it is not an "
        "entry of the cache; nothing was unpacked",
    ),
    Archive(
        one(NAME, b"tracejit entry 2 "),
        "<folder>/cache.tar holds kernels/<hash>.kernel, which this version cannot use: it was written "
        "by a different version of tracejit; nothing was unpacked",
    ),
    Archive(
        one(NAME, GOOD[:-1]),
        "<folder>/cache.tar holds kernels/<hash>.kernel, which this version cannot use: its content does"
        " not agree with its hash; nothing was unpacked",
    ),
    Archive(
        one(NAME, rehashed(b"{}\n")),
        "<folder>/cache.tar holds kernels/<hash>.kernel, which this version cannot use: its header does "
        "not fit its content; nothing was unpacked",
    ),
    Archive(
        one(NAME, rehashed(GOOD.partition(b"\n")[2][:-1])),
        "<folder>/cache.tar holds kernels/<hash>.kernel, which this version cannot use: its header does "
        "not fit its content; nothing was unpacked",
    ),
    Archive(
        one(NAME, encode(kernel(2))),
        "<folder>/cache.tar holds kernels/<hash>.kernel, which this version cannot use: it belongs to a "
        "different key; nothing was unpacked",
    ),
    Archive(
        one(f"programs/{'a' * 64}.program", b"{}"),
        "<folder>/cache.tar holds programs/<hash>.program, which this version cannot use: its content "
        "does not agree with its hash; nothing was unpacked",
    ),
    Archive(
        one(f"programs/{hashlib.sha256(b'{').hexdigest()}.program", b"{"),
        "<folder>/cache.tar holds programs/<hash>.program, which this version cannot use: it is not a "
        "description of a program; nothing was unpacked",
    ),
    Archive(
        one(f"programs/{hashlib.sha256(OLDER).hexdigest()}.program", OLDER),
        "<folder>/cache.tar holds programs/<hash>.program, which this version cannot use: it was written"
        " by a different version of tracejit; nothing was unpacked",
    ),
)


def unpack(folder: Path, content: bytes) -> None:
    """Unpack an archive of this content."""
    (folder / "cache.tar").write_bytes(content)
    tj.cache.unpack(str(folder / "cache.tar"))


# Caches, by the commands that read them.


def filled() -> Path:
    """Return the cache of the settings after three kernels and three programs were put in."""
    root = Path(config.settings.cache_dir or "")
    for number in (1, 760, 947):  # the keys of the last two begin with 80e6
        KernelStore(str(root), 1 << 30).save(kernel(number))
    for file, name in (("a.py", "step"), ("b.py", "step"), ("c.py", "alone")):
        Programs(str(root)).keep(
            {
                "function": name,
                "defined": [file, 1],
                "inputs": [],
                "kernels": [{"name": "add_1", "entry": kernel(1).key.name}],
            },
            {"at": 1.0},
        )
    return root


def run(command: str) -> None:
    """Run a command as the command line does, up to its output."""
    arguments = cli.parser().parse_args(command.split())
    arguments.run(arguments)


def nothing(root: Path) -> None:
    """Leave a cache as it is."""


def link(root: Path) -> None:
    """Put a link in the place of the cache."""
    os.symlink(root.rename(root.with_name("aside")), root)


def open_to_all(root: Path) -> None:
    """Let everybody write to the cache."""
    root.chmod(0o777)


def file_instead(root: Path) -> None:
    """Put a file in the place of the cache."""
    root.rename(root.with_name("aside"))
    root.write_bytes(b"")


def large(root: Path) -> None:
    """Make the file of a kernel larger than any."""
    os.truncate(root / NAME, LARGEST + 1)


def damage(root: Path) -> None:
    """Change the file of a kernel, and the end of those of the programs."""
    (root / NAME).write_bytes(b"text")
    for path in root.glob("programs/*.program"):
        path.write_bytes(path.read_bytes() + b" ")


FIRST = kernel(1).key.name[:12]

COMMANDS: tuple[Command, ...] = (
    Command(nothing, "cache list --limit 0", "argument --limit: expected a positive integer, not '0'"),
    Command(
        nothing,
        "cache list --since yesterday",
        "argument --since: expected a time such as 30m, 2h, 3d, 1w or 2026-05-04, not 'yesterday'",
    ),
    Command(
        nothing,
        "cache show nothing",
        "no program has the key or the function 'nothing'; `tracejit cache list` shows all",
    ),
    Command(nothing, "cache show *", "3 programs match '*': <key>, <key>, <key>; name one by its key"),
    Command(nothing, "cache show alone", "the description of the program <key> is damaged"),
    Command(
        nothing,
        f"cache why alone {FIRST}",
        "'alone' and '<key>' are a program and a kernel, which have nothing in common; name two of one kind",
    ),
    Command(nothing, "cache why 80e6", "2 kernels match '80e6': <key>, <key>; name one by its key"),
    Command(damage, "cache why step", "the description of the program <key> cannot be read"),
    Command(damage, f"cache why {FIRST}", "the kernel <key> cannot be read: it is not an entry of the cache"),
    Command(
        large,
        f"cache why {FIRST}",
        "the kernel <key> cannot be read: the file <hash>.kernel is too large to be an entry",
    ),
    Command(
        link,
        "cache list",
        "the cache in <cache> cannot be used: the folder <cache> is a link; set TRACEJIT_CACHE_DIR to a "
        "folder of your own",
    ),
    Command(
        open_to_all,
        "cache list",
        "the cache in <cache> cannot be used: other users may write to the folder <cache> (mode 777); "
        "set TRACEJIT_CACHE_DIR to a folder of your own",
    ),
    Command(
        file_instead,
        "cache list",
        "the cache in <cache> cannot be used: Not a directory; set TRACEJIT_CACHE_DIR to a folder of "
        "your own",
    ),
    Command(
        open_to_all,
        "cache verify",
        "the cache in <cache> cannot be used: other users may write to the folder <cache> (mode 777); "
        "set TRACEJIT_CACHE_DIR to a folder of your own",
    ),
    Command(
        nothing,
        "view nothing",
        "no program has the key or the function 'nothing'; `tracejit cache list` shows all",
    ),
    Command(
        nothing,
        "view nothing --file x.py",
        "no program in a file that matches 'x.py' has the key or the function 'nothing'; `tracejit cache"
        " list` shows all",
    ),
    Command(
        nothing,
        "view step",
        "'step' is in several files; choose one with --file, or give a key:\n  step (b.py:1): <key>\n  "
        "step (a.py:1): <key>",
    ),
    Command(
        nothing, "view step --file a.py", "the description of the program <key> is not in tracejit's format"
    ),
)
