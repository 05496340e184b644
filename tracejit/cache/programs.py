# SPDX-License-Identifier: BSD-3-Clause
"""Programs on disk: what was built in which function, and how often a process came to use it.

Note [programs]
Nothing is run from these files; they are for who looks into the cache. ``<hash>.program`` describes a program as JSON,
under the hash of its content. ``<hash>.uses`` has a line of JSON for each process that used it: times, and no more.
"""

import hashlib
import json
import re
from contextlib import suppress
from typing import Any, NamedTuple

from tracejit.cache.folder import Folder, RefusedError
from tracejit.errors import CacheError

SCHEMA = 1
PROGRAM, USES = ".program", ".uses"
_NAME = re.compile(r"([0-9a-f]{64})\.program")
_USES_BYTES = 1 << 16  # of one program
_MOST = 2000  # programs that are kept


class Described(NamedTuple):
    """A program on disk.

    name        the hash of its description
    program     the description (tracejit.backend.inventory)
    uses        for each process that used it: when ("at", in seconds), and what building and compiling took
    """

    name: str
    program: dict[str, Any]
    uses: list[dict[str, Any]]


class Programs:
    """The programs of a cache folder.

    Args:
        root: the folder of the cache.
        shared: the folder belongs to a group that trusts each other.
    """

    def __init__(self, root: str, shared: bool = False) -> None:
        self._folder = Folder(root, "programs", shared)

    def keep(self, program: dict[str, Any], use: dict[str, Any]) -> None:
        """Write down that a process uses a program, if that is possible."""
        # Of kernels it is said why they cannot be kept; nobody waits for these.
        with suppress(OSError, CacheError, RefusedError):
            content = _json({"schema": SCHEMA} | program)
            name = hashlib.sha256(content).hexdigest()
            if self._folder.read(name + PROGRAM) is None:
                self._make_room()
                self._folder.write(name + PROGRAM, content)
            self._folder.append(name + USES, _json(use) + b"\n", _USES_BYTES)

    def all(self) -> list[Described]:
        """Return all programs, the one that was used last first; what cannot be read is left out.

        Raises:
            RefusedError: if the folder is not to be used.
            OSError: if it cannot be read.
        """
        found = []
        for file in sorted(self._folder.files(), key=lambda file: file.used_s, reverse=True):
            match = _NAME.fullmatch(file.name)
            if match:
                with suppress(OSError, CacheError, ValueError, RecursionError):
                    found.append(self._described(match[1]))
        return found

    def remove(self, name: str) -> bool:
        """Remove a program; return whether it was there.

        Raises:
            RefusedError: if the folder is not to be used.
            OSError: if it cannot be opened.
        """
        if not _NAME.fullmatch(name + PROGRAM):
            return False
        self._folder.remove(name + USES)
        return self._folder.remove(name + PROGRAM)

    def _described(self, name: str) -> Described:
        content = self._folder.read(name + PROGRAM, use=False) or b""
        if hashlib.sha256(content).hexdigest() != name:
            raise CacheError("its content does not agree with its hash")
        program = json.loads(content)
        if program.get("schema") != SCHEMA:
            raise CacheError("it was written by another version of tracejit")
        uses = []
        for line in (self._folder.read(name + USES, use=False) or b"").splitlines():
            with suppress(ValueError, RecursionError):
                use = json.loads(line)
                if isinstance(use, dict):
                    uses.append(use)
        return Described(name, program, uses)

    def _make_room(self) -> None:
        files = sorted(
            (file.used_s, file.name) for file in self._folder.files() if _NAME.fullmatch(file.name)
        )
        for _, name in files[: max(0, len(files) - _MOST + 1)]:
            self.remove(name.removesuffix(PROGRAM))


def _json(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":"), sort_keys=True).encode()
