# SPDX-License-Identifier: BSD-3-Clause
"""Programs on disk: descriptions of the programs built for each function, and of their use by processes.

Note [programs]
Nothing is run from these files; they are for inspection of the cache. ``<hash>.program`` describes a program, under the
hash of its content. Its first line is the summary that a list shows, ``<sha256 of the JSON object> <JSON object>``, so
that a list of a thousand programs reads a thousand lines; the second line is the whole description, as JSON.
``<hash>.uses`` has a line of JSON for each process that used the program: times only.
"""

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from tracejit.errors import CacheError
from tracejit.store.folder import CacheFile, Folder, RefusedError
from tracejit.util.files import hash_of
from tracejit.util.named_tuples import NamedTuple

SCHEMA = 4
PROGRAM, USES = ".program", ".uses"
_NAME = r"([0-9a-f]{64})\.program"
_USES_BYTES = 1 << 16  # of the file of uses of one program
_MOST = 2000  # programs in the folder
_LARGEST = 2.0**62  # the largest number in a line of uses
_ARGUMENTS, _CHARACTERS = 128, 200  # that a list shows: arguments of a signature, characters of an argument


class StoredProgram(NamedTuple):
    """A program on disk.

    name        the hash of its description
    program     the description (tracejit.describe.inventory)
    uses        for each process that used it: when ("at", in seconds), and the times of building and compiling
    """

    name: str
    program: dict[str, Any]
    uses: list[dict[str, Any]]


class ProgramSummary(NamedTuple):
    """A program as a line of a list.

    name        the hash of its description
    bytes       the size of the description
    head        the first line of the description: function, defined, signature, arguments, target, kernels,
                row_count, arena_bytes
    uses        number of processes that used it
    first       the first use, {} if it is unknown
    used_s      time of the last use
    """

    name: str
    bytes: int
    head: dict[str, Any]
    uses: int
    first: dict[str, Any]
    used_s: float


class Programs:
    """The programs of a cache folder.

    Args:
        root: the folder of the cache.
        shared: the folder belongs to a group whose members trust each other.
    """

    def __init__(self, root: str, shared: bool = False) -> None:
        self._folder = Folder(root, "programs", shared)

    def keep(self, program: dict[str, Any], use: dict[str, Any]) -> None:
        """Record that a process uses a program, if that is possible."""
        # Silent: the store of kernels already warns of a folder that cannot be written.
        with suppress(OSError, CacheError, RefusedError):
            program = {"schema": SCHEMA} | program
            head = _json(_head(program))
            content = b"%s %s\n%s\n" % (hash_of(head).encode(), head, _json(program))
            name = hash_of(content)
            if not self._has(name, content):
                self._make_room()
                self._folder.write(name + PROGRAM, content)
            self._folder.append(name + USES, _json(use) + b"\n", _USES_BYTES)

    def _has(self, name: str, content: bytes) -> bool:
        """Return whether a program is there, whole and readable; its last use is now."""
        with suppress(OSError, CacheError):
            return self._folder.read(name + PROGRAM) == content
        return False

    def all(self) -> list[StoredProgram]:
        """Return all programs that can be read, the last used first.

        Raises:
            RefusedError: if the folder cannot be trusted.
            OSError: if it cannot be read.
        """
        files = sorted(self.files(), key=lambda file: file.used_s, reverse=True)
        programs = [self.read(file.name.removesuffix(PROGRAM)) for file in files]
        return [program for program in programs if program is not None]

    def heads(self) -> list[ProgramSummary]:
        """Return the summaries of all programs, the last used first.

        Raises:
            RefusedError: if the folder cannot be trusted.
            OSError: if it cannot be read.
        """
        files = self.files()
        lines = self._folder.contents([file.name for file in files], line=True)
        uses = self._folder.contents([file.name.removesuffix(PROGRAM) + USES for file in files])
        summaries = []
        for file, line, used in zip(files, lines, uses, strict=True):
            with suppress(ValueError, RecursionError, KeyError, TypeError):
                summaries.append(_read_head(file, line or b"", used or b""))
        return sorted(summaries, key=lambda summary: summary.used_s, reverse=True)

    def read(self, name: str) -> StoredProgram | None:
        """Return a program, or None if there is none that can be read.

        Raises:
            RefusedError: if the folder cannot be trusted.
        """
        with suppress(OSError, CacheError, ValueError, RecursionError):
            return self._described(name)
        return None

    def bad(self) -> Iterator[tuple[str, str]]:
        """Yield the keys of damaged programs, with what is wrong.

        Raises:
            RefusedError: if the folder cannot be trusted.
            OSError: if it cannot be read.
        """
        for file in self.files():
            name = file.name.removesuffix(PROGRAM)
            try:
                content = self._folder.read(file.name, use=False)
                if content is not None and hash_of(content) != name:
                    raise CacheError("its content does not agree with its hash")
            except CacheError as error:
                yield name, str(error)
            except OSError as error:
                yield name, f"it cannot be read ({error.strerror or error})"

    def remove(self, name: str, *, must: bool = False) -> bool:
        """Remove a program; return whether it existed.

        Args:
            name: of the program.
            must: whether a file that stays, as in a read-only folder, is an error.

        Raises:
            RefusedError: if the folder cannot be trusted.
            OSError: if it cannot be opened, or with `must` if a file cannot be removed.
        """
        if not re.fullmatch(_NAME, name + PROGRAM):
            return False
        self._folder.remove(name + USES, must=must)
        return self._folder.remove(name + PROGRAM, must=must)

    def files(self) -> list[CacheFile]:
        """Return the files of the programs.

        Raises:
            RefusedError: if the folder cannot be trusted.
            OSError: if it cannot be read.
        """
        return [file for file in self._folder.files() if re.fullmatch(_NAME, file.name)]

    def _described(self, name: str) -> StoredProgram:
        program = check(name, self._folder.read(name + PROGRAM, use=False) or b"")
        lines = (self._folder.read(name + USES, use=False) or b"").splitlines()
        return StoredProgram(name, program, [use for use in map(_use, lines) if use])

    def _make_room(self) -> None:
        files = sorted((file.used_s, file.name) for file in self.files())
        for _, name in files[: max(0, len(files) - _MOST + 1)]:
            self.remove(name.removesuffix(PROGRAM))


def check(name: str, content: bytes) -> dict[str, Any]:
    """Return the description in the content of a file, given its name without the ending.

    Raises:
        CacheError: if the content is not what belongs there.
    """
    if hash_of(content) != name:
        raise CacheError("its content does not agree with its hash")
    try:
        program = json.loads(content.partition(b"\n")[2])
        schema = program["schema"]
    except (ValueError, RecursionError, KeyError, TypeError) as error:
        raise CacheError("it is not a description of a program") from error
    if schema != SCHEMA:
        raise CacheError("it was written by a different version of tracejit")
    return program  # type: ignore[no-any-return]


def _head(program: dict[str, Any]) -> dict[str, Any]:
    """Return the first line of a description, for lists."""
    signature = program.get("signature") or [["", text] for text in program.get("inputs", [])]
    named = [[name, text[:_CHARACTERS]] for name, text in signature[:_ARGUMENTS]]
    return {
        "schema": SCHEMA,
        "function": program.get("function", ""),
        "defined": program.get("defined"),
        "signature": named,
        "arguments": len(signature),
        "target": program.get("target", ""),
        "kernels": [kernel["entry"] for kernel in program.get("kernels", [])],
        "row_count": program.get("row_count", 0),
        "arena_bytes": program.get("arena_bytes", 0),
    }


def _read_head(file: CacheFile, line: bytes, uses: bytes) -> ProgramSummary:
    hashed, _, text = line.partition(b" ")
    if hash_of(text) != hashed.decode():
        raise ValueError("its content does not agree with its hash")
    head = _decoded(text.decode())
    if head["schema"] != SCHEMA:
        raise ValueError("it was written by a different version of tracejit")
    first, _, others = uses.partition(b"\n")
    _check_head(head)
    begun = _use(first)
    last = _use(others.rstrip(b"\n").rpartition(b"\n")[2]) if others else begun
    # A file of uses may be full; the time of the program's own file still shows its last use.
    used_s = max(last.get("at", 0.0), file.used_s)
    return ProgramSummary(file.name.removesuffix(PROGRAM), file.bytes, head, uses.count(b"\n"), begun, used_s)


def _check_head(head: dict[str, Any]) -> None:
    """Raise a TypeError or ValueError if a head is not a result of _head(): a shared folder may hold anything."""
    texts = [head["function"], head["target"], *head["kernels"]]
    for name, text in head["signature"]:
        texts += (name, text)
    counts = [head["arguments"], head["row_count"], head["arena_bytes"]]
    if head["defined"] is not None:
        file, line = head["defined"]
        texts.append(file)
        counts.append(line)
    if {*map(type, texts)} - {str} or {*map(type, counts)} - {int}:
        raise TypeError("a head with values of wrong types")


def _use(line: bytes) -> dict[str, Any]:
    """Return the numbers in a line of uses, {} if it is damaged: lines have no hash."""
    with suppress(ValueError, RecursionError):
        use = _decoded(line.decode())
        if isinstance(use, dict):
            return {
                name: number
                for name, number in use.items()
                if type(number) in (int, float) and 0 <= number < _LARGEST
            }
    return {}


# json.loads() first guesses how bytes are encoded, which takes as long as reading a short line.
_decoded = json.JSONDecoder().decode


def _json(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":"), sort_keys=True).encode()
