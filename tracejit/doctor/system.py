# SPDX-License-Identifier: BSD-3-Clause
"""What is asked of the operating system, in one place, so that tests can answer."""

import os
import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path


class System:
    """The operating system and this process; what it does not tell is None."""

    environment: Mapping[str, str] = os.environ

    def read(self, path: str) -> str | None:
        """Return the text of a small file."""
        with suppress(OSError):
            return Path(path).read_text(errors="replace")
        return None

    def names(self, folder: str) -> list[str]:
        """Return what is in a folder."""
        with suppress(OSError):
            return sorted(os.listdir(folder))
        return []

    def cpus(self) -> int:
        """Return how many CPUs there are."""
        return os.cpu_count() or 1

    def allowed(self) -> int:
        """Return on how many of them this process may run."""
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else self.cpus()

    def load(self) -> float | None:
        """Return how many processes wanted to run, on average of the last minute."""
        with suppress(OSError, AttributeError):
            return round(os.getloadavg()[0], 2)
        return None

    def free_bytes(self, folder: str) -> int | None:
        """Return how much space is left on the disk of a folder."""
        with suppress(OSError):
            return shutil.disk_usage(folder).free
        return None

    def owner(self, path: str) -> tuple[str, int] | None:
        """Return who owns a file, and its mode."""
        with suppress(OSError):
            status = os.stat(path)
            return _name(status.st_uid), status.st_mode & 0o7777
        return None

    def writable(self, folder: str) -> bool:
        """Return whether this process may write to a folder."""
        return os.access(folder, os.W_OK | os.X_OK)


def _name(user: int) -> str:
    with suppress(ImportError, KeyError):
        import pwd

        return pwd.getpwuid(user).pw_name
    return str(user)
