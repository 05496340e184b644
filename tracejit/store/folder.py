# SPDX-License-Identifier: BSD-3-Clause
"""A folder whose files may be loaded as code: a file is trusted only if no other user could have written it.

Note [folders]
The folder is opened once for each use, without following links, and the open descriptor is checked: it has to be a
directory of this user to which no other user may write. Files are opened relative to it, again without following links,
and checked in the same way. So nothing can be exchanged between check and use. A folder that a group shares has no such
checks: its users trust everybody who may write to it. Windows has checks of its own: Note [Windows] in store/opened.py.
"""

import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import accumulate

from tracejit.errors import CacheError
from tracejit.store.opened import ByDescriptor, ByPath, Opened, is_in_profile, is_link
from tracejit.util.files import APPEND, IS_WINDOWS, NO_LINK, READ, WRITE_NEW
from tracejit.util.named_tuples import NamedTuple

LARGEST = 1 << 26  # bytes of a file that is read; kernels have some thousands
_LINE = 1 << 12  # bytes read at once in search of the first line
_LONGEST_LINE = 1 << 17  # bytes
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
_SUPPORTED = NO_LINK and {os.open, os.mkdir, os.stat, os.unlink, os.rename} <= os.supports_dir_fd
_BY_PATH = IS_WINDOWS
_TEMPORARY = ".new-"


class RefusedError(Exception):
    """The folder cannot be trusted; the message says why."""


class CacheFile(NamedTuple):
    """A file of the folder."""

    name: str
    bytes: int
    used_s: float

    @property
    def is_temporary(self) -> bool:
        """True for a file that a process is writing, or was writing when it ended."""
        return self.name.startswith(_TEMPORARY)


class Folder:
    """The folder `name` in the folder `root`; the first write creates both.

    Args:
        root: the outermost folder that is checked.
        name: the path of a folder in `root`; "" for `root` itself.
        shared: the folder belongs to a group whose members trust each other.
        of_root: the administrator may own the folder too.
    """

    def __init__(self, root: str, name: str, shared: bool = False, of_root: bool = False) -> None:
        self.root = root
        self.name = name
        self._shared = shared
        self._owners = {os.geteuid(), *([0] if of_root else [])} if hasattr(os, "geteuid") else set()

    def read(self, name: str, use: bool = True, most: int = LARGEST) -> bytes | None:
        """Return the content of a file, None if there is none.

        Args:
            name: the name of the file.
            use: record the current time as the file's last use.
            most: the largest size that is read, in bytes.

        Raises:
            RefusedError: if the folder cannot be trusted.
            CacheError: if the file cannot be trusted or is too large.
            OSError: if the file cannot be read.
        """
        with self._opened(make=False) as folder:
            return None if folder is None else self._content(folder, name, use, most=most)

    def contents(self, names: Iterable[str], line: bool = False) -> Iterator[bytes | None]:
        """Yield the content of each file, or its first line; None for a file that is missing or cannot be trusted.

        This is not recorded as a use.

        Raises:
            RefusedError: if the folder cannot be trusted.
            OSError: if it cannot be read.
        """
        with self._opened(make=False) as folder:
            for name in names:
                content = None
                if folder is not None:
                    with suppress(OSError, CacheError):
                        content = self._content(folder, name, False, line)
                yield content

    def _content(
        self, folder: Opened, name: str, use: bool, line: bool = False, most: int = LARGEST
    ) -> bytes | None:
        try:
            file = folder.open(name, READ)
        except FileNotFoundError:
            return None
        try:
            size = self._checked_file(file, name).st_size
            if size > most:
                raise CacheError(f"the file {name} is too large to be an entry")
            if use:
                with suppress(OSError):  # a folder may be read-only
                    folder.touch(file, name)
            content = b""
            while part := os.read(file, _LINE if line else size + 1):
                content += part
                if line and b"\n" in part:
                    return content.partition(b"\n")[0]
                if len(content) > (_LONGEST_LINE if line else most):
                    raise CacheError(f"the file {name} is too large to be an entry")
            return content
        finally:
            os.close(file)

    def write(self, name: str, content: bytes) -> None:
        """Write a file, whole or not at all.

        Raises:
            RefusedError: if the folder cannot be trusted.
            OSError: if it cannot be written.
        """
        with self._opened(make=True) as folder:
            assert folder is not None
            temporary = f"{_TEMPORARY}{os.getpid()}-{os.urandom(8).hex()}"
            file = folder.open(temporary, WRITE_NEW, 0o666 if self._shared else 0o600)
            try:
                with os.fdopen(file, "wb") as stream:
                    stream.write(content)
                folder.put(temporary, name)
            except BaseException:
                with suppress(OSError):
                    folder.remove(temporary)
                raise

    def append(self, name: str, line: bytes, limit_bytes: int) -> None:
        """Append a line to a file, which may be new; a file that has reached the limit does not change.

        Raises:
            RefusedError: if the folder cannot be trusted.
            CacheError: if the file cannot be trusted.
            OSError: if it cannot be written.
        """
        with self._opened(make=True) as folder:
            assert folder is not None
            file = folder.open(name, APPEND, 0o666 if self._shared else 0o600)
            try:
                if self._checked_file(file, name).st_size + len(line) <= limit_bytes:
                    os.write(file, line)  # one call: lines of several processes do not mix
            finally:
                os.close(file)

    def files(self) -> list[CacheFile]:
        """Return the files of the folder.

        Raises:
            RefusedError: if the folder cannot be trusted.
            OSError: if it cannot be read.
        """
        with self._opened(make=False) as folder:
            files: list[CacheFile] = []
            if folder is not None:
                for name in folder.names():
                    with suppress(OSError):  # removed meanwhile
                        status = folder.status(name)
                        if stat.S_ISREG(status.st_mode):
                            files.append(CacheFile(name, status.st_size, status.st_mtime))
            return files

    def remove(self, name: str, *, must: bool = False) -> bool:
        """Remove a file; return whether it was removed.

        Args:
            name: of the file.
            must: whether a file that stays, as in a read-only folder, is an error.

        Raises:
            RefusedError: if the folder cannot be trusted.
            OSError: if it cannot be opened, or with `must` if the file cannot be removed.
        """
        with self._opened(make=False) as folder:
            if folder is None:
                return False
            try:
                folder.remove(name)
            except FileNotFoundError:  # removed meanwhile
                return False
            except OSError:
                if must:
                    raise
                return False
            return True

    @contextmanager
    def _opened(self, make: bool) -> Iterator[Opened | None]:
        """Yield the folder, open; None if it does not exist and `make` is false."""
        if _BY_PATH:
            yield self._by_path(make)
            return
        if not _SUPPORTED:
            raise RefusedError("this system cannot open files relative to a folder")
        descriptors: list[int] = []
        try:
            for path in (self.root, *filter(None, self.name.split("/"))):
                parent = descriptors[-1] if descriptors else None
                try:
                    descriptors.append(self._open(path, parent))
                except FileNotFoundError:
                    if not make:
                        yield None
                        return
                    self._make(path, parent)
                    descriptors.append(self._open(path, parent))
            yield ByDescriptor(descriptors[-1])
        finally:
            for descriptor in descriptors:
                os.close(descriptor)

    def _by_path(self, make: bool) -> ByPath | None:
        path = self.root
        if not self._shared and not is_in_profile(path):
            raise RefusedError(
                f"the folder {path} does not lie in the profile of this user, so others may be able to write to it"
            )
        for place in accumulate(filter(None, self.name.split("/")), os.path.join, initial=path):
            if not os.path.lexists(place):
                if not make:
                    return None
                self._make(place, None)
            status = os.lstat(place)
            if is_link(status):
                raise RefusedError(f"the folder {place} is a link")
            self._check(status, stat.S_ISDIR, f"the folder {place}", "a folder")
        return ByPath(place)

    def _open(self, path: str, parent: int | None) -> int:
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            folder = os.open(path, flags, dir_fd=parent)
        except OSError as error:
            if os.path.islink(path) if parent is None else _is_link(path, parent):
                raise RefusedError(f"{self._place(path, parent)} is a link") from error
            raise
        try:
            self._check(os.fstat(folder), stat.S_ISDIR, self._place(path, parent), "a folder")
        except RefusedError:
            os.close(folder)
            raise
        return folder

    def _make(self, path: str, parent: int | None) -> None:
        mode = 0o777 if self._shared else 0o700
        with suppress(FileExistsError):  # another process made it
            if parent is None:
                os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
            os.mkdir(path, mode, dir_fd=parent)

    def _checked_file(self, file: int, name: str) -> os.stat_result:
        status = os.fstat(file)
        try:
            self._check(status, stat.S_ISREG, f"the file {name}", "an ordinary file")
        except RefusedError as refused:
            raise CacheError(str(refused)) from refused
        return status

    def _check(self, status: os.stat_result, is_kind: object, what: str, kind: str) -> None:
        if not is_kind(status.st_mode):  # type: ignore[operator]
            raise RefusedError(f"{what} is not {kind}")
        if self._shared or _BY_PATH:
            return
        if status.st_uid not in self._owners:
            raise RefusedError(f"{what} belongs to another user (number {status.st_uid})")
        if status.st_mode & _OTHERS_WRITE:
            raise RefusedError(f"other users may write to {what} (mode {stat.S_IMODE(status.st_mode):o})")

    def _place(self, path: str, parent: int | None) -> str:
        return f"the folder {path if parent is None else os.path.join(self.root, path)}"


def _is_link(name: str, parent: int) -> bool:
    with suppress(OSError):
        return stat.S_ISLNK(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode)
    return False


def cannot_be_made(path: str) -> str | None:
    """Return why a folder that does not exist cannot be made; None if it exists, or can be made."""
    missing: list[str] = []
    while not os.path.lexists(path):
        missing.append(path)
        path = os.path.dirname(path)
    if missing and not os.path.isdir(path):
        return f"it cannot be made, as {path} is no folder"
    created: list[str] = []
    try:
        for folder in reversed(missing):
            os.mkdir(folder, 0o700)
            created.append(folder)
    except FileExistsError:  # another process made it
        return None
    except OSError as error:
        return f"it cannot be made ({error.strerror or error})"
    finally:
        for folder in reversed(created):
            with suppress(OSError):
                os.rmdir(folder)
    return None
