# SPDX-License-Identifier: BSD-3-Clause
"""Kernels on disk by key, below a total size."""

import os
import re
import time
import warnings
from functools import cache

from tracejit import config
from tracejit.errors import CacheError, CacheWarning
from tracejit.store.entry import KernelKey, StoredKernel, decode, encode
from tracejit.store.folder import CacheFile, Folder, RefusedError
from tracejit.util import logs
from tracejit.util.frames import user_location
from tracejit.util.locks import new_lock

SUFFIX = ".kernel"
_LIST_AGAIN = 16  # a process lists the folder again after it has written 1/16 of the limit
_KEEP = 0.8  # the part of the limit that an eviction leaves
_CLOCK_S = 60.0  # by which the clocks of several machines may differ
_ABANDONED_S = 3600.0  # after which a temporary file counts as one of a process that ended


class KernelStore:
    """Kernels in a folder. A kernel that cannot be read is a miss; one that cannot be written is not stored.

    Args:
        root: the folder of the cache.
        limit_bytes: above it, the least recently used kernels are evicted.
        shared: the folder belongs to a group whose members trust each other.
    """

    def __init__(self, root: str, limit_bytes: int, shared: bool = False) -> None:
        self.root = root
        self.limit_bytes = limit_bytes
        self._kernels = Folder(root, "kernels", shared)
        self._lock = new_lock()
        self._written_bytes: int | None = None  # since the folder was listed; None: not yet
        self._reads = self._writes = True
        self._warned = False
        self._is_missing = False  # whether the last write found no folder

    def load(self, key: KernelKey) -> StoredKernel | None:
        """Return the kernel of a key, or None if there is none that can be trusted."""
        if not self._reads:
            return None
        try:
            content = self._kernels.read(key.name + SUFFIX)
            return None if content is None else decode(content, key.name)
        except RefusedError as refused:
            self._reads = self._writes = False
            self._warn(str(refused))
        except (CacheError, OSError) as error:
            self._log(f"entry {key.name[:12]} is compiled again and written over, because {error}")
        return None

    def save(self, kernel: StoredKernel) -> None:
        """Store a kernel, if that is possible."""
        content = encode(kernel)
        with self._lock:  # what a failure says of the folder is of one write after the other
            self._save(kernel.key.name + SUFFIX, content)

    def _save(self, name: str, content: bytes) -> None:
        if not self._writes:
            return
        try:
            self._kernels.write(name, content)
            self.make_room(len(content))
            self._is_missing = False
        except RefusedError as refused:
            self._reads = self._writes = False
            self._warn(str(refused))
        except FileNotFoundError as error:
            # If the folder was removed meanwhile, the next write creates it again.
            if self._is_missing:
                self._writes = False
                self._warn(f"it cannot be made ({error.strerror or error})")
            self._is_missing = True
        except IsADirectoryError:
            self._log(f"entry {name[:12]} is not kept, because a folder has its name")
        except OSError as error:
            self._writes = False
            self._warn(f"it cannot be written ({error.strerror or error})")

    def entries(self) -> list[CacheFile]:
        """Return the files of the kernels.

        Raises:
            RefusedError: if the folder cannot be trusted.
            OSError: if it cannot be read.
        """
        return [file for file in self._kernels.files() if _is_entry(file.name)]

    def make_room(self, added_bytes: int) -> None:
        """Evict the least recently used kernels if the folder exceeds the limit, after some bytes were written.

        Raises:
            RefusedError: if the folder cannot be trusted.
            OSError: if it cannot be read.
        """
        with self._lock:
            if self._written_bytes is not None:
                self._written_bytes += added_bytes
                if self._written_bytes < self.limit_bytes / _LIST_AGAIN:
                    return
            self._written_bytes = 0
        now = time.time()
        files = self._kernels.files()
        for file in files:
            if file.is_temporary and now - file.used_s > _ABANDONED_S:
                self._kernels.remove(file.name)
        # A time in the future comes from a wrong clock; such an entry would never be evicted.
        entries = sorted(
            (0.0 if file.used_s > now + _CLOCK_S else file.used_s, file)
            for file in files
            if _is_entry(file.name)
        )
        total = sum(file.bytes for _, file in entries)
        if total <= self.limit_bytes:
            return
        before = total
        for _, file in entries:
            if total <= _KEEP * self.limit_bytes:
                break
            self._kernels.remove(file.name)
            total -= file.bytes
        self._log(
            f"{before} bytes exceed the limit of {self.limit_bytes}; the least recently used entries were removed, "
            f"{total} bytes are left"
        )

    def _log(self, what: str) -> None:
        if logs.enabled(logs.INFO):
            logs.write(logs.INFO, "cache", f"cache in {self.root}: {what}.")

    def _warn(self, reason: str) -> None:
        with self._lock:
            if self._warned:
                return
            self._warned = True
        text = (
            f"compiled kernels are not kept in {self.root}, because {reason}. Each process compiles them again. "
            "Set TRACEJIT_CACHE_DIR to a folder of your own, or TRACEJIT_CACHE=off."
        )
        logs.write(logs.WARNING, "cache", text)
        file, line = user_location() or ("<unknown>", 0)
        warnings.warn_explicit(text, CacheWarning, file, line)


def _is_entry(name: str) -> bool:
    stem, dot, _ = name.partition(SUFFIX)
    return dot != "" and name == stem + SUFFIX and re.fullmatch(r"[0-9a-f]{64}", stem) is not None


def store() -> KernelStore | None:
    """Return the store that the settings name, or None if the cache is off."""
    settings = config.settings
    if settings.cache == "off":
        return None
    return _store(root(), settings.cache_mib << 20, settings.cache == "shared")


def root() -> str:
    """Return the folder of the cache that the settings name."""
    return config.settings.cache_dir or default_root()


@cache
def _store(root: str, limit_bytes: int, shared: bool) -> KernelStore:
    return KernelStore(root, limit_bytes, shared)


@cache
def default_root() -> str:
    """Return the default folder: in the place of this system for the caches of a user."""
    try:
        import platformdirs
    except ImportError:  # in a checkout that is not installed
        return os.path.join(os.path.expanduser(os.environ.get("XDG_CACHE_HOME") or "~/.cache"), "tracejit")
    return platformdirs.user_cache_dir("tracejit", appauthor=False)
