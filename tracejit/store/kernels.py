# SPDX-License-Identifier: BSD-3-Clause
"""The store: entries on disk by key, kept below a size."""

import re
import time
import warnings
from functools import cache

from tracejit import config
from tracejit.errors import CacheError, CacheWarning
from tracejit.store.entry import KernelKey, StoredKernel, decode, encode
from tracejit.store.folder import CacheFile, Folder, RefusedError
from tracejit.util import logs
from tracejit.util.frames import user_frame
from tracejit.util.locks import new_lock

SUFFIX = ".kernel"
_NAME = re.compile(r"[0-9a-f]{64}")
_LOOK_AGAIN = 16  # the folder is listed again when a process has written this part of the limit
_KEEP = 0.8  # of the limit, when entries are removed
_CLOCK_S = 60.0  # what clocks of several machines may differ by
_ABANDONED_S = 3600.0  # a file that has been written for that long is of a process that ended


class KernelStore:
    """Entries in a folder; what cannot be read is missing, and what cannot be written is not kept.

    Args:
        root: the folder of the cache.
        limit_bytes: the least recently used entries go when there is more.
        shared: the folder belongs to a group that trusts each other.
    """

    def __init__(self, root: str, limit_bytes: int, shared: bool = False) -> None:
        self.root = root
        self.limit_bytes = limit_bytes
        self._kernels = Folder(root, "kernels", shared)
        self._lock = new_lock()
        self._written_bytes: int | None = None  # since the folder was listed; None: not yet
        self._reads = self._writes = True
        self._warned = False

    def load(self, key: KernelKey) -> StoredKernel | None:
        """Return the entry of a key, or None if there is none that can be trusted."""
        if not self._reads:
            return None
        try:
            content = self._kernels.read(key.name + SUFFIX)
            return None if content is None else decode(content, key.name)
        except RefusedError as refused:
            self._reads = self._writes = False
            self._warn(str(refused))
        except (CacheError, OSError) as error:
            self._tell(f"entry {key.name[:12]} is compiled again and written over, because {error}")
        return None

    def save(self, entry: StoredKernel) -> None:
        """Keep an entry, if that is possible."""
        if not self._writes:
            return
        content = encode(entry)
        try:
            self._kernels.write(entry.key.name + SUFFIX, content)
            self.make_room(len(content))
        except RefusedError as refused:
            self._reads = self._writes = False
            self._warn(str(refused))
        except FileNotFoundError:
            pass  # the folder was removed meanwhile; the next entry makes it again
        except OSError as error:
            self._writes = False
            self._warn(f"it cannot be written ({error.strerror or error})")

    def entries(self) -> list[CacheFile]:
        """Return the files of the entries.

        Raises:
            RefusedError: if the folder is not to be used.
            OSError: if it cannot be read.
        """
        return [file for file in self._kernels.files() if _is_entry(file.name)]

    def make_room(self, added_bytes: int) -> None:
        """Remove what was not used for longest, if there is too much, now that some bytes were written.

        Raises:
            RefusedError: if the folder is not to be used.
            OSError: if it cannot be read.
        """
        with self._lock:
            if self._written_bytes is not None:
                self._written_bytes += added_bytes
                if self._written_bytes < self.limit_bytes / _LOOK_AGAIN:
                    return
            self._written_bytes = 0
        now = time.time()
        files = self._kernels.files()
        for file in files:
            if file.is_temporary and now - file.used_s > _ABANDONED_S:
                self._kernels.remove(file.name)
        # A time in the future is of a clock that was wrong; such an entry would stay for ever.
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
        self._tell(
            f"{before} bytes are more than the limit of {self.limit_bytes}; entries that were not used for longest "
            f"were removed, {total} bytes are left"
        )

    def _tell(self, what: str) -> None:
        if logs.enabled(logs.INFO):
            logs.write(logs.INFO, "cache", f"cache in {self.root}: {what}.")

    def _warn(self, reason: str) -> None:
        with self._lock:
            if self._warned:
                return
            self._warned = True
        text = (
            f"compiled kernels are not kept in {self.root}, because {reason}. They are compiled anew in each process. "
            "Set TRACEJIT_CACHE_DIR to a folder of your own, or TRACEJIT_CACHE=off."
        )
        logs.write(logs.WARNING, "cache", text)
        frame = user_frame()
        file, line = ("<unknown>", 0) if frame is None else (frame.f_code.co_filename, frame.f_lineno)
        warnings.warn_explicit(text, CacheWarning, file, line)


def _is_entry(name: str) -> bool:
    stem, dot, _ = name.partition(SUFFIX)
    return dot != "" and name == stem + SUFFIX and _NAME.fullmatch(stem) is not None


def store() -> KernelStore | None:
    """Return the store that is set, or None if there is to be none."""
    settings = config.settings
    if settings.cache == "off":
        return None
    return _store(root(), settings.cache_mib << 20, settings.cache == "shared")


def root() -> str:
    """Return the folder of the cache that is set."""
    return config.settings.cache_dir or default_root()


@cache
def _store(root: str, limit_bytes: int, shared: bool) -> KernelStore:
    return KernelStore(root, limit_bytes, shared)


@cache
def default_root() -> str:
    """Return the folder of the cache in the place that this system has for caches of a user."""
    import platformdirs

    return platformdirs.user_cache_dir("tracejit", appauthor=False)
