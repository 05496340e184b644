# SPDX-License-Identifier: BSD-3-Clause
"""An open folder: by a descriptor where files are found relative to one, by its path on Windows.

Note [Windows]
Windows has no descriptors of folders, and its modes do not say who may write. So there a folder is trusted if it lies
in the profile of its user, whose access list lets in this user, the system and administrators only; a link on the way,
or a junction, is refused. Between that check and the use of a file only the same user could exchange something.
"""

import errno
import os
import stat
from typing import Protocol

from tracejit.util.files import NO_LINK, rename

_PROFILE = ("USERPROFILE", "LOCALAPPDATA")  # the second may lie elsewhere
_REPARSE = getattr(stat, "FILE_ATTRIBUTE_REPARSE_POINT", 0x400)


class Opened(Protocol):
    """An open folder."""

    def open(self, name: str, flags: int, mode: int = 0o777) -> int:
        """Open a file without following a link; return its descriptor."""

    def put(self, temporary: str, name: str) -> None:
        """Rename a file, to a name that may exist."""

    def remove(self, name: str) -> None:
        """Remove a file."""

    def touch(self, file: int, name: str) -> None:
        """Set the time of the last use of an open file to the current one."""

    def status(self, name: str) -> os.stat_result:
        """Return the status of a file, or of a link."""

    def names(self) -> list[str]:
        """Return the names of the files."""


class ByDescriptor:
    """A folder by its descriptor."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor

    def open(self, name: str, flags: int, mode: int = 0o777) -> int:
        """Open a file without following a link; return its descriptor."""
        return os.open(name, flags | NO_LINK, mode, dir_fd=self.descriptor)

    def put(self, temporary: str, name: str) -> None:
        """Rename a file, to a name that may exist."""
        os.rename(temporary, name, src_dir_fd=self.descriptor, dst_dir_fd=self.descriptor)

    def remove(self, name: str) -> None:
        """Remove a file."""
        os.unlink(name, dir_fd=self.descriptor)

    def touch(self, file: int, name: str) -> None:
        """Set the time of the last use of an open file to the current one."""
        os.utime(file)

    def status(self, name: str) -> os.stat_result:
        """Return the status of a file, or of a link."""
        return os.stat(name, dir_fd=self.descriptor, follow_symlinks=False)

    def names(self) -> list[str]:
        """Return the names of the files."""
        return os.listdir(self.descriptor)


class ByPath:
    """A folder by its path (Note [Windows])."""

    def __init__(self, path: str) -> None:
        self.path = path

    def open(self, name: str, flags: int, mode: int = 0o777) -> int:
        """Open a file without following a link; return its descriptor."""
        path = os.path.join(self.path, name)
        if os.path.lexists(path) and is_link(os.lstat(path)):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
        return os.open(path, flags, mode)

    def put(self, temporary: str, name: str) -> None:
        """Rename a file, to a name that may exist. A file that another process keeps open stays as it is."""
        source, target = (os.path.join(self.path, file) for file in (temporary, name))
        try:
            rename(source, target, replace=True)
        except PermissionError:
            if os.path.isdir(target):
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), target) from None
            if not os.path.isfile(target):
                raise
            os.unlink(source)

    def remove(self, name: str) -> None:
        """Remove a file."""
        os.unlink(os.path.join(self.path, name))

    def touch(self, file: int, name: str) -> None:
        """Set the time of the last use of an open file to the current one."""
        os.utime(os.path.join(self.path, name))

    def status(self, name: str) -> os.stat_result:
        """Return the status of a file, or of a link."""
        return os.lstat(os.path.join(self.path, name))

    def names(self) -> list[str]:
        """Return the names of the files."""
        return os.listdir(self.path)


def is_link(status: os.stat_result) -> bool:
    """Return whether a status is that of a link, or of a junction of Windows."""
    return stat.S_ISLNK(status.st_mode) or bool(getattr(status, "st_file_attributes", 0) & _REPARSE)


def is_in_profile(path: str) -> bool:
    """Return whether a path lies in the profile of the user of this process."""
    path = os.path.join(os.path.normcase(os.path.realpath(path)), "")
    for variable in _PROFILE:
        home = os.environ.get(variable)
        if home and path.startswith(os.path.join(os.path.normcase(os.path.realpath(home)), "")):
            return True
    return False
