# SPDX-License-Identifier: BSD-3-Clause
"""Whether stored object code does what its source says: the source is compiled again, and both run on random memory.

Note [rebuilding]
A hash says that an entry is as somebody wrote it, not that its code was compiled from its source. So the source is
compiled again. What the kernel is called with, and on how much memory, is taken from launches of programs that use it;
stored and rebuilt code run on equal memory of random numbers and have to leave it the same, bit for bit. Of what no
program on disk uses nothing is known, and nothing is run: then the object code itself is compared, which is the same
whenever the same versions compile the same source.

Nothing is written to the cache, and stored code runs in a process of its own.
"""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tracejit.cache import contents
from tracejit.cache.inspect import Rebuilt
from tracejit.cache.trial import Case, Memory, TrialError, Trials
from tracejit.compile.key import key_of
from tracejit.compile.lower import lower
from tracejit.errors import CodegenError
from tracejit.program import Kernel
from tracejit.store.entry import Entry

_LAUNCHES = 3  # of each kernel, the ones with the least memory
_SEEDS = 2  # of each launch
_MOST_BYTES = 1 << 28  # of a launch


def rebuilt(entries: Mapping[str, Entry]) -> Rebuilt:
    """Compile sources again and compare, of entries by their keys.

    Raises:
        CacheError: if the programs cannot be read.
    """
    cases = _cases()
    work = _Rebuilder()
    try:
        for name, entry in entries.items():
            work.compare(name, entry, cases.get(name, []))
    finally:
        work.close()
    return Rebuilt(work.by_results, work.by_code, work.runs, work.left_out, work.bad)


@dataclass
class _Rebuilder:
    by_results: int = 0
    by_code: int = 0
    runs: int = 0
    left_out: list[tuple[str, str]] = field(default_factory=list)
    bad: list[tuple[str, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.stored, self.rebuilt = Trials(), Trials()

    def close(self) -> None:
        self.stored.close()
        self.rebuilt.close()

    def compare(self, name: str, entry: Entry, cases: list[Case]) -> None:
        """Compare an entry with what its source compiles to."""
        kind = dict(entry.key.parts).get("kind")
        text = entry.source if kind == "kernel" else entry.symbol.removeprefix("tracejit_")
        if hashlib.sha256(text.encode()).hexdigest() != dict(entry.key.parts).get("source"):
            self.bad.append((name, "its source is not the one that it was found by"))
            return
        if key_of(str(kind), text) != entry.key:
            self.left_out.append((name, "it was compiled for another machine, or by another version"))
            return
        try:
            lowered = lower(Kernel(entry.symbol, text) if kind == "kernel" else text)
        except (CodegenError, KeyError):
            self.bad.append((name, "its source cannot be compiled"))
            return
        code, needs = lowered.object_code()
        if not cases:
            if code == entry.code:
                self.by_code += 1
            else:
                self.bad.append(
                    (name, "its code is not what its source compiles to; no program says how to run it")
                )
            return
        try:
            expected = self.rebuilt.run(entry.symbol, code, needs, cases)
        except TrialError as error:
            self.left_out.append((name, f"on the memory of its launches, rebuilt code {error}"))
            return
        self.runs += 2 * len(cases)
        try:
            found = self.stored.run(entry.symbol, entry.code, entry.needs, cases)
        except TrialError as error:
            self.bad.append((name, f"on the memory of its launches, its code {error}"))
            return
        differing = sum(one != other for one, other in zip(found, expected, strict=True))
        if differing:
            self.bad.append(
                (name, f"compiled again, it gives other results in {differing} of {len(cases)} runs")
            )
        else:
            self.by_results += 1


def _cases() -> dict[str, list[Case]]:
    """Return what to run each kernel on, by the key of its entry."""
    found: dict[str, dict[tuple[Any, ...], Case]] = {}
    for each in contents.reading(contents.programs().all):
        for entry, case in _of_program(each.program):
            found.setdefault(entry, {})[_size(case), str(case)] = case
    return {
        entry: [
            case._replace(seed=seed)
            for _, case in sorted(cases.items())[:_LAUNCHES]
            for seed in range(_SEEDS)
        ]
        for entry, cases in found.items()
    }


def _of_program(program: Mapping[str, Any]) -> Iterator[tuple[str, Case]]:
    """Give the entries of a program with their launches, as far as what is written down is whole."""
    try:
        for row in program["rows"]:
            case = _case(row, program["memory"])
            if case is not None and _size(case) <= _MOST_BYTES:
                yield program["kernels"][row["kernel"]]["entry"], case
    except (LookupError, TypeError, ValueError):  # a shared folder has what others wrote
        return


def _size(case: Case) -> int:
    return sum(each.size for each in case.memory)


def _case(row: Mapping[str, Any], buffers: list[Mapping[str, Any]]) -> Case | None:
    """Return a launch as a case, None if the memory of an argument is not known."""
    memory: dict[tuple[Any, ...], int] = {}
    made: list[Memory] = []
    arguments: list[Any] = []
    for argument in row["arguments"]:
        if not isinstance(argument, list) or len(argument) != 4:
            arguments.append(argument)
            continue
        kind, number, offset, dtype = argument
        buffer = next(
            (
                each
                for each in buffers
                if (each["kind"], each["number"]) == (kind, number)
                and each["first"] <= row["number"] <= each["last"]
                and 0 <= offset - each["offset"] < max(each["bytes"], 1)
            ),
            None,
        )
        if buffer is None:
            return None
        key = kind, number, buffer["offset"], buffer["bytes"]
        if key not in memory:
            memory[key] = len(made)
            made.append(Memory(int(buffer["bytes"]), int(buffer["offset"]), str(dtype)))
        arguments.append(["memory", memory[key], offset - buffer["offset"]])
    return Case(made, arguments, 0)
