# SPDX-License-Identifier: BSD-3-Clause
"""Why there is another entry: two entries compared, or one with the entry that is nearest and with this process."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tracejit.cache.contents import described, entry, fitting, heads, kernel_names, several
from tracejit.cache.differences import Difference, of_kernels, of_keys, of_programs
from tracejit.cache.inspect import SHOWN
from tracejit.errors import CacheError
from tracejit.store.entry import Entry
from tracejit.store.programs import Described, Head
from tracejit.util.text import count, printable

_PLACES = ("in the entry", "in this process")


@dataclass(frozen=True, slots=True)
class Process:
    """Whether this process finds an entry's kernels.

    found           how many are on disk and have the key that this process looks for
    kernels         how many there are
    missing         names of those that are not on disk
    differences     what the keys of the others have and this process has not
    """

    found: int
    kernels: int
    missing: tuple[str, ...]
    differences: tuple[Difference, ...]

    def __repr__(self) -> str:
        lines = [f"this process finds {self.found} of {count(self.kernels, 'kernel')}"]
        lines += [f"{name} is not on disk" for name in self.missing]
        return "\n".join([*lines, *map(str, self.differences)])


@dataclass(frozen=True, slots=True)
class Why:
    """Two entries compared, or one; ``str()`` says it in words.

    key, name       of the one: a program with its function, or a kernel
    other, other_name   of the other one; None if there is none to compare with
    differences     what differs between both
    process         where one entry was asked for: whether this process finds its kernels
    """

    key: str
    name: str
    other: str | None
    other_name: str | None
    differences: tuple[Difference, ...]
    process: Process | None = field(default=None)

    def __repr__(self) -> str:
        lines = [f"here   {self.key[:SHOWN]}  {self.name}"]
        if self.other is None:
            lines.append("there  nothing: no other entry is like it")
        else:
            lines.append(f"there  {self.other[:SHOWN]}  {self.other_name}")
            lines += map(str, self.differences or ["nothing differs"])
        if self.process is not None:
            lines += ["", *str(self.process).splitlines()]
        return "\n".join(map(printable, lines))


def why(key: str, other: str | None = None) -> Why:
    """Return in what two entries differ.

    With one key the other one is the entry that is most like it: a program of the same function, or a kernel of the
    same source; and it is said whether this process finds its kernels.

    Args:
        key: of a program or a kernel, or the beginning of one; or the name of a function, of whose programs the one
            used last is meant.
        other: the same.

    Raises:
        CacheError: if there is no such entry, or there are several, or one is a program and the other a kernel, or the
            folder cannot be read.
    """
    known = heads()
    here = _resolved(key, known)
    if other is None:
        return _nearest_program(here, known) if isinstance(here, Head) else _nearest_kernel(here)
    there = _resolved(other, known)
    if isinstance(here, Head) and isinstance(there, Head):
        return _programs(described(here.name), described(there.name))
    if isinstance(here, Head) or isinstance(there, Head):
        raise CacheError(
            f"{key!r} and {other!r} are a program and a kernel, which have nothing in common; name two of one kind"
        )
    return _kernels(here, there)


def _resolved(key: str, known: Sequence[Head]) -> Head | Entry:
    """Return the program or kernel that a key is meant to be, given all programs."""
    found = [each for each in known if key and each.name.startswith(key)]
    if not found:
        found = fitting(known, key)
        if len({each.head["function"] for each in found}) == 1:
            return found[0]
    if len(found) == 1:
        return found[0]
    kernels = [] if found else [name for name in kernel_names() if key and name.startswith(key)]
    if len(found) + len(kernels) > 1:
        raise several(key, [each.name for each in found] or kernels, "entries")
    if not kernels:
        raise CacheError(
            f"no program or kernel has the key or the name {key!r}; `tracejit cache list` shows all programs"
        )
    kernel = entry(kernels[0])
    if not isinstance(kernel, Entry):
        raise CacheError(f"the kernel {kernels[0][:SHOWN]} cannot be read: {kernel or 'it is gone'}")
    return kernel


def _entry(name: str) -> Entry | None:
    found = entry(name) if name else None
    return found if isinstance(found, Entry) else None


def _programs(here: Described, there: Described | None, process: Process | None = None) -> Why:
    if there is None:
        return Why(here.name, _title(here.program), None, None, (), process)
    differences = of_programs(here.program, there.program, _entry) if here.name != there.name else []
    return Why(
        here.name, _title(here.program), there.name, _title(there.program), tuple(differences), process
    )


def _kernels(here: Entry, there: Entry | None, process: Process | None = None) -> Why:
    if there is None:
        return Why(here.key.name, here.symbol, None, None, (), process)
    return Why(
        here.key.name, here.symbol, there.key.name, there.symbol, tuple(of_kernels(here, there)), process
    )


def _title(program: Mapping[str, Any]) -> str:
    where = program.get("defined")
    return f"{program['function']}{f' ({where[0]}:{where[1]})' if where else ''}"


def _nearest_program(here: Head, known: Sequence[Head]) -> Why:
    """Compare a program with the one of the same function that has most in common with it."""
    others = [
        each for each in known if each.head["function"] == here.head["function"] and each.name != here.name
    ]
    program = described(here.name)
    nearest = max(others, key=lambda each: _in_common(here.head, each.head), default=None)
    kernels = [(kernel["name"], _entry(kernel["entry"])) for kernel in program.program["kernels"]]
    return _programs(program, None if nearest is None else described(nearest.name), _process(kernels))


def _in_common(here: Mapping[str, Any], there: Mapping[str, Any]) -> tuple[int, int]:
    signatures = [{tuple(pair) for pair in each["signature"]} for each in (here, there)]
    kernels = [set(each["kernels"]) for each in (here, there)]
    return -len(signatures[0] ^ signatures[1]), -len(kernels[0] ^ kernels[1])


def _nearest_kernel(here: Entry) -> Why:
    """Compare a kernel with one of the same source that has most in common with it."""
    others = [
        each
        for each in map(_entry, kernel_names())
        if each is not None
        and (each.symbol, each.source) == (here.symbol, here.source)
        and each.key != here.key
    ]
    nearest = max(others, key=lambda each: len({*each.key.parts} & {*here.key.parts}), default=None)
    return _kernels(here, nearest, _process([(here.symbol, here)]))


def _process(kernels: Sequence[tuple[str, Entry | None]]) -> Process:
    """Return whether this process finds kernels, given their names and entries."""
    from tracejit.compile.key import key_of  # imports llvmlite

    found = 0
    differences: dict[str, Difference] = {}
    for _, kernel in kernels:
        if kernel is None:
            continue
        parts = dict(kernel.key.parts)
        own = key_of(parts.get("kind", ""), "")
        differ = [*of_keys(parts, dict(own.parts) if own is not None else {}, _PLACES)]
        found += not differ
        differences.update({each.text: each for each in differ})
    missing = tuple([name for name, kernel in kernels if kernel is None])
    return Process(found, len(kernels), missing, tuple(differences.values()))
