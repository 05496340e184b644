# SPDX-License-Identifier: BSD-3-Clause
"""The cache as one file, for other machines of the same kind.

Note [archives]
An archive is an uncompressed tar file. Its first member, ``tracejit-cache-<sha256 of its content>.json``, is a table
of the other members: name, size and SHA-256 of each, sorted by name. They are the files of kernels and programs, as in
the folder. The same cache gives the same bytes.

Any tar program reads such a file, but unpack() accepts exactly what pack() writes: it compares each header and each
byte between members with the expected one. So an archive cannot contain links, devices, other names, sparse or
compressed members, and every changed bit is noticed. The whole file is checked before the first entry is written; each
entry is then read, checked and written whole (tracejit.store.folder), so a process that is killed leaves a smaller
cache.

Hashes find damage. They do not tell who made an archive, and its kernels run as code.
"""

import hashlib
import json
import os
import re
import shutil
import stat
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from io import BufferedRandom
from typing import IO

from tracejit import config
from tracejit.cache.contents import reading, reason_of, store
from tracejit.cache.inspect import SHOWN
from tracejit.errors import CacheError
from tracejit.store.entry import KernelKey, decode
from tracejit.store.folder import LARGEST, Folder, RefusedError
from tracejit.store.kernels import SUFFIX, root
from tracejit.store.programs import PROGRAM, check
from tracejit.util.files import READ, hash_of, written_whole
from tracejit.util.named_tuples import NamedTuple
from tracejit.util.text import count, size

FORMAT = 1
_KIND = "tracejit cache"
_TABLE = re.compile(r"tracejit-cache-([0-9a-f]{64})\.json")
_NAME = re.compile(rf"kernels/([0-9a-f]{{64}})\{SUFFIX}|programs/([0-9a-f]{{64}})\{PROGRAM}")
_HASH = re.compile(r"[0-9a-f]{64}")
_BLOCK = tarfile.BLOCKSIZE
_END = bytes(2 * _BLOCK)
_OF_ENTRY = ("kind", "source")  # key parts of the kernel; all others are of the machine


class Member(NamedTuple):
    """A file of the cache in an archive, and the offset of its header."""

    name: str
    bytes: int
    sha256: str
    at: int


@dataclass(frozen=True, slots=True)
class Packed:
    """A packed archive.

    file        its path
    sha256      its hash, as `sha256sum` prints it
    kernels, programs   the number of entries
    bytes       its size
    left_out    damaged entries, which were not packed, with what is wrong
    """

    file: str
    sha256: str
    kernels: int
    programs: int
    bytes: int
    left_out: tuple[tuple[str, str], ...]

    def __repr__(self) -> str:
        what = f"{count(self.kernels, 'kernel')} and {count(self.programs, 'program')}"
        lines = [f"packed {what}, {size(self.bytes)}, into {self.file}", f"sha256 {self.sha256}"]
        return "\n".join([*lines, *(f"left out {name[:SHOWN]}: {reason}" for name, reason in self.left_out)])


@dataclass(frozen=True, slots=True)
class Unpacked:
    """An unpacked archive.

    file        its path
    sha256      its hash
    kernels, programs   the number of new entries
    known       the number of entries that the cache had already
    foreign     the number of kernels for a different kind of machine, which are not used here
    differences the key parts in which those differ from this process
    """

    file: str
    sha256: str
    kernels: int
    programs: int
    known: int
    foreign: int
    differences: tuple[str, ...]

    def __repr__(self) -> str:
        what = f"{count(self.kernels, 'kernel')} and {count(self.programs, 'program')}"
        lines = [f"unpacked {what} into {root()}; {self.known} were there already"]
        if self.foreign:
            lines.append(
                f"{count(self.foreign, 'kernel')} for a different kind of machine, not used here: "
                f"{', '.join(self.differences)} differ"
            )
        return "\n".join(lines)


def pack(file: str) -> Packed:
    """Write the kernels and programs of the cache into one file.

    Raises:
        CacheError: if the folder cannot be read, or the file cannot be written.
    """
    members: list[Member] = []
    left_out: list[tuple[str, str]] = []
    # Each entry is read once: it may be replaced or removed meanwhile. The table is complete when all are read.
    with _written(file) as stream, tempfile.TemporaryFile(dir=os.path.dirname(os.path.abspath(file))) as rest:
        for kind, folder in _folders().items():
            for name in sorted(member.name for member in reading(folder.files)):
                path = f"{kind}/{name}"
                if not _NAME.fullmatch(path):
                    continue
                try:
                    content = folder.read(name, use=False)
                    if content is None:
                        continue
                    _checked(path, content)
                except (CacheError, OSError) as error:
                    left_out.append((name.partition(".")[0], str(error)))
                    continue
                _append(rest, path, content)
                members.append(Member(path, len(content), hash_of(content), 0))
        table = json.dumps(
            {"kind": _KIND, "format": FORMAT, "entries": [list(member[:3]) for member in members]}, indent=0
        ).encode()
        _append(stream, f"tracejit-cache-{hash_of(table)}.json", table)
        rest.seek(0)
        shutil.copyfileobj(rest, stream)
        stream.write(_END)
        total = stream.tell()
        stream.seek(0)
        sha256 = hashlib.file_digest(stream, "sha256").hexdigest()
    kernels = sum(member.name.endswith(SUFFIX) for member in members)
    return Packed(os.path.abspath(file), sha256, kernels, len(members) - kernels, total, tuple(left_out))


def unpack(file: str, sha256: str | None = None) -> Unpacked:
    """Put the entries of an archive into the cache.

    Args:
        file: a file that pack() wrote.
        sha256: the hash that the file has to have: `Packed.sha256`.

    Raises:
        CacheError: if the file is not, bit for bit, a result of pack(), or too large for the cache, or the folder
            cannot be trusted; then nothing was written. Or if a file cannot be written.
    """
    if config.settings.cache == "off":
        raise CacheError(
            "there is no cache to unpack into, because TRACEJIT_CACHE=off; set it to private or shared"
        )
    with _opened(file) as stream:
        # The file is read from beginning to end here, so that the hash covers exactly the bytes that are checked.
        whole = _Hashed(stream)
        members = _table(file, whole)
        foreign: list[set[str]] = []
        for member in members:
            content = _content(file, whole, member)
            try:
                key = _checked(member.name, content)
            except CacheError as error:
                raise CacheError(
                    f"{file} holds {member.name}, which this version cannot use: {error}; nothing was unpacked"
                ) from error
            if key is not None:
                foreign.append(_differences(key))
        if whole.read(len(_END) + 1) != _END:
            raise _damaged(file, "its end is damaged")
        digest = whole.hash.hexdigest()
        if sha256 is not None and digest != sha256.lower():
            raise CacheError(f"the SHA-256 of {file} is {digest}, expected {sha256}; nothing was unpacked")
        folders = _folders()
        new: list[Member] = []
        present = 0
        try:
            for member in members:
                kind, _, name = member.name.partition("/")
                stream.seek(member.at)
                try:
                    content = _content(file, stream, member)
                except CacheError:
                    raise CacheError(
                        f"{file} changed while it was unpacked; {count(len(new), 'file')} of it are in the cache"
                    ) from None
                if _current_content(folders[kind], name) == content:
                    present += 1
                else:
                    folders[kind].write(name, content)
                    new.append(member)
            store().make_room(sum(member.bytes for member in new))
        except (RefusedError, OSError) as error:
            raise CacheError(f"the cache in {root()} cannot be written: {reason_of(error)}") from error
    kernels = sum(member.name.endswith(SUFFIX) for member in new)
    others = [differences for differences in foreign if differences]
    return Unpacked(
        os.path.abspath(file), digest, kernels, len(new) - kernels, present, len(others),
        tuple(sorted(set().union(*others))),
    )  # fmt: skip


def _folders() -> dict[str, Folder]:
    shared = config.settings.cache == "shared"
    return {kind: Folder(root(), kind, shared) for kind in ("kernels", "programs")}


def _current_content(folder: Folder, name: str) -> bytes | None:
    with suppress(CacheError, OSError):  # it will be overwritten
        return folder.read(name, use=False)
    return None


def _checked(name: str, content: bytes) -> KernelKey | None:
    """Check the content of a file of the cache; return the key if it is a kernel.

    Raises:
        CacheError: if the content does not match the name.
    """
    kind, _, file = name.partition("/")
    stem = file.partition(".")[0]
    if kind == "kernels":
        return decode(content, stem).key
    check(stem, content)
    return None


def _differences(key: KernelKey) -> set[str]:
    """Return the parts of a kernel's key that differ in this process."""
    from tracejit.compile.key import key_of

    here = key_of("kernel", "")
    mine = {} if here is None else dict(here.parts)
    theirs = dict(key.parts)
    return {part for part in mine.keys() | theirs.keys() if mine.get(part) != theirs.get(part)} - {*_OF_ENTRY}


def _header(name: str, size_bytes: int) -> bytes:
    member = tarfile.TarInfo(name)
    member.size, member.mode = size_bytes, 0o600
    return member.tobuf(tarfile.USTAR_FORMAT, "ascii", "strict")


def _padding(size_bytes: int) -> int:
    return -size_bytes % _BLOCK


def _append(stream: IO[bytes], name: str, content: bytes) -> None:
    stream.write(_header(name, len(content)))
    stream.write(content)
    stream.write(bytes(_padding(len(content))))


@contextmanager
def _written(file: str) -> Iterator[BufferedRandom]:
    """Yield a stream whose content becomes the file when the block ends without an error."""
    with suppress(OSError):
        mode = os.stat(file).st_mode
        if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):  # an administrator could replace a device
            raise CacheError(f"{file} is not an ordinary file; give the path of one")
    try:
        with written_whole(file) as stream:
            yield stream
    except OSError as error:
        raise CacheError(f"{file} cannot be written ({error.strerror or error})") from error


@contextmanager
def _opened(file: str) -> Iterator[IO[bytes]]:
    try:
        descriptor = os.open(file, READ)
        with os.fdopen(descriptor, "rb") as stream:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise CacheError(f"{file} is not an ordinary file; give the path of one")
            yield stream
    except OSError as error:
        raise CacheError(f"{file} cannot be read ({error.strerror or error})") from error


def _damaged(file: str, what: str) -> CacheError:
    return CacheError(f"{file} is not what `tracejit cache pack` writes: {what}; nothing was unpacked")


class _Hashed:
    """A stream and the hash of what was read from it."""

    def __init__(self, stream: IO[bytes]) -> None:
        self.stream = stream
        self.hash = hashlib.sha256()

    def read(self, most: int) -> bytes:
        content = self.stream.read(most)
        self.hash.update(content)
        return content


def _table(file: str, whole: _Hashed) -> list[Member]:
    """Read the table of an archive; return its members."""
    stream = whole.stream
    total = os.fstat(stream.fileno()).st_size
    header = whole.read(_BLOCK)
    try:
        first = tarfile.TarInfo.frombuf(header, "ascii", "strict")
    except (tarfile.HeaderError, UnicodeDecodeError):
        raise _damaged(file, "it is not a tar file") from None
    named = _TABLE.fullmatch(first.name)
    if named is None or not 0 <= first.size <= LARGEST or header != _header(first.name, first.size):
        raise _damaged(file, "it does not begin with a table")
    content = whole.read(first.size)
    if hash_of(content) != named[1] or any(whole.read(_padding(first.size))):
        raise _damaged(file, "its table does not agree with its hash")
    try:
        table = json.loads(content)
        if table["kind"] != _KIND:
            raise ValueError(table["kind"])
        if table["format"] != FORMAT:
            raise CacheError(
                f"{file} has format {table['format']!r:.40}, this version of tracejit reads {FORMAT}; pack it again"
            )
        members: list[Member] = []
        at = stream.tell()
        for name, size_bytes, sha256 in table["entries"]:
            if not isinstance(name, str) or not _NAME.fullmatch(name):
                raise _damaged(file, f"it names {name!r:.100}, which no cache has")
            if type(size_bytes) is not int or not 0 <= size_bytes <= LARGEST or not _HASH.fullmatch(sha256):
                raise _damaged(file, f"its table has no size and hash of {name}")
            if members and members[-1].name >= name:
                raise _damaged(file, f"its table has {name} twice or out of order")
            members.append(Member(name, size_bytes, sha256, at))
            at += _BLOCK + size_bytes + _padding(size_bytes)
    except (ValueError, TypeError, KeyError, RecursionError):
        raise _damaged(file, "its table cannot be read") from None
    if at + len(_END) != total:
        raise _damaged(file, f"it has {total} bytes, but its table says {at + len(_END)}")
    limit = store().limit_bytes
    kernels = sum(member.bytes for member in members if member.name.endswith(SUFFIX))
    if kernels > limit:
        raise CacheError(
            f"{file} has {size(kernels)} of kernels, more than the limit of {size(limit)}; raise TRACEJIT_CACHE_MIB"
        )
    return members


def _content(file: str, stream: "IO[bytes] | _Hashed", member: Member) -> bytes:
    """Read the next member of a stream; return its content."""
    header = stream.read(_BLOCK)
    content = stream.read(member.bytes)
    if header != _header(member.name, member.bytes):
        raise _damaged(file, f"the header of {member.name} is damaged")
    if hash_of(content) != member.sha256 or any(stream.read(_padding(member.bytes))):
        raise _damaged(file, f"{member.name} does not agree with its hash")
    return content
