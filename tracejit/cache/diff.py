# SPDX-License-Identifier: BSD-3-Clause
"""The reason for a miss: the key parts of an entry beside those of the nearest entry, and of this process.

Each entry is a list of parts, pairs of a name and a value. A kernel has the parts of its key; a program its function,
its arguments, the names of its kernels (which end in a hash of their source) and the parts of their keys.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tracejit.cache.contents import begins, described, entry, heads, kernel_names, meant, several
from tracejit.cache.inspect import SHOWN
from tracejit.errors import CacheError
from tracejit.store.entry import KernelKey, StoredKernel
from tracejit.store.programs import ProgramSummary, StoredProgram
from tracejit.util.text import printable

Parts = Iterable[tuple[str, str]]

_TITLES = {  # of the parts of a kernel's key
    "kind": "kind", "format": "format of entries", "tracejit": "tracejit's own kernels", "numba": "Numba",
    "llvmlite": "llvmlite", "numpy": "NumPy", "python": "Python", "system": "system", "cpu": "CPU",
}  # fmt: skip
_MOST = 8  # values of one part that are shown


@dataclass(frozen=True, slots=True)
class KeyDifference:
    """A part that differs: its values on one side only, "" if there are none; `text` says it in words."""

    what: str
    here: str
    there: str
    text: str

    def __repr__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class Why:
    """An entry compared with another one; ``str()`` says it in words.

    key, name           of the entry: a program with its function, or a kernel
    other, other_name   of the entry compared with; None if there is none
    differences         between the two
    process             between the entry's kernels and those this process looks for; None if two entries were named
    """

    key: str
    name: str
    other: str | None
    other_name: str | None
    differences: tuple[KeyDifference, ...]
    process: tuple[KeyDifference, ...] | None = None

    def __repr__(self) -> str:
        lines = [f"here   {self.key[:SHOWN]}  {self.name}"]
        if self.other is None:
            lines.append("there  nothing: no other entry is like it")
        else:
            same = "nothing differs" if self.key == self.other else "only numbers in the launches differ"
            lines.append(f"there  {self.other[:SHOWN]}  {self.other_name}")
            lines += map(str, self.differences or [same])
        if self.process is not None:
            lines.append("")
            lines += map(str, self.process or ["this process finds every kernel"])
        return "\n".join(map(printable, lines))


def why(key: str, other: str | None = None) -> Why:
    """Return the differences between two entries.

    Args:
        key: of a program or a kernel, or the beginning of one; a function's name means its program used last.
        other: the same. By default the most similar program of the same function, or kernel of the same source; then
            the result also gives the reason if this process does not find its kernels.

    Raises:
        CacheError: if there is no such entry, or there are several, or one is a program and the other a kernel, or the
            folder cannot be read.
    """
    programs = heads()
    here = _resolve(key, programs)
    there = _nearest(here, programs) if other is None else _resolve(other, programs)
    if there is not None and type(here) is not type(there):
        raise CacheError(
            f"{key!r} and {other!r} are a program and a kernel, which have nothing in common; name two of one kind"
        )
    process = _process(here) if other is None else None
    if there is None:
        return Why(*_named(here), None, None, (), process)
    differences = [*differing(_parts(here), _parts(there))]
    if not differences and isinstance(here, StoredProgram) and isinstance(there, StoredProgram):
        # Told only now: another shape of an argument changes the launches too.
        differences = [*differing(_launches(here.program), _launches(there.program))]
    return Why(*_named(here), *_named(there), tuple(differences), process)


def differing(
    here: Parts, there: Parts, places: tuple[str, str] = ("here", "there")
) -> Iterator[KeyDifference]:
    """Give the differences between two lists of parts; a part may have several values."""
    mine, other = _grouped(here), _grouped(there)
    for what in dict.fromkeys([*mine, *other]):
        first, second = mine.get(what, ()), other.get(what, ())
        only = _listed(first, second), _listed(second, first)
        sides = [f"{values} {place}" for values, place in zip(only, places, strict=True) if values]
        if sides:
            text = f"{what}: {', '.join(sides)}{' only' if len(sides) == 1 else ''}"
            yield KeyDifference(what, *only, text)


def key_parts(key: KernelKey) -> Iterator[tuple[str, str]]:
    """Give the parts of a kernel's key in words, without its source."""
    for name, value in key.parts:
        if name == "cpu features":
            yield from (("CPU features", f[1:]) for f in sorted(value.split(",")) if f.startswith("+"))
        elif name != "source":
            yield _TITLES.get(name, name), value[:SHOWN] if name == "tracejit" else value


def _grouped(parts: Parts) -> dict[str, dict[str, None]]:
    grouped: dict[str, dict[str, None]] = {}
    for name, value in parts:
        grouped.setdefault(name, {})[value] = None
    return grouped


def _listed(values: Iterable[str], besides: Iterable[str]) -> str:
    """Return the values that are not among others; if there are many, the first ones."""
    excluded = {*besides}
    only = [value for value in values if value not in excluded]
    more = [f"{len(only) - _MOST} more"] if len(only) > _MOST else []
    return ", ".join([*only[:_MOST], *more])


def _parts(here: StoredProgram | StoredKernel) -> Iterator[tuple[str, str]]:
    if isinstance(here, StoredKernel):
        yield "kernel", here.symbol
        yield from key_parts(here.key)
        return
    program = here.program
    yield "function", program["function"]
    yield "defined", _place(program.get("defined"))
    signature = program.get("signature") or enumerate(program["inputs"], 1)
    yield from ((f"argument {name}", text) for name, text in signature)
    yield from ((f"output {number}", text) for number, text in enumerate(program["outputs"], 1))
    yield from ((f"input {number + 1}", "written") for number in program.get("written", ()))
    yield "target", program["target"]
    for kernel in program["kernels"]:
        yield "kernel", kernel["name"]
        stored = entry(kernel["entry"])
        if isinstance(stored, StoredKernel):
            yield from key_parts(stored.key)


def _launches(program: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for op in program.get("ops", ()):
        params = ", ".join(f"{name}={value}" for name, value in op["params"].items())
        yield "operation", f"{op['name']}({params}) at {_place(op['where'])}"
    yield "launches", str(program["row_count"])
    yield "constants", f"{program['constant_bytes']} bytes"
    yield "arena", f"{program['arena_bytes']} bytes"


def _place(where: Sequence[Any] | None) -> str:
    return f"{where[0]}:{where[1]}" if where else "no line"


def _named(here: StoredProgram | StoredKernel) -> tuple[str, str]:
    """Return the key of an entry, and its name for people."""
    if isinstance(here, StoredKernel):
        return here.key.name, here.symbol
    where = here.program.get("defined")
    return here.name, f"{here.program['function']}{f' ({_place(where)})' if where else ''}"


def _resolve(key: str, programs: Sequence[ProgramSummary]) -> StoredProgram | StoredKernel:
    """Return the program or kernel that a key stands for, given all programs."""
    fits = meant(programs, key)
    if fits:
        return described(fits[0].name)
    kernels = [name for name in kernel_names() if begins(name, key)]
    if len(kernels) > 1:
        raise several(key, kernels, "kernels")
    if not kernels:
        raise CacheError(
            f"no program or kernel has the key or the name {key!r}; `tracejit cache list` shows all programs"
        )
    kernel = entry(kernels[0])
    if not isinstance(kernel, StoredKernel):
        raise CacheError(f"the kernel {kernels[0][:SHOWN]} cannot be read: {kernel or 'it is gone'}")
    return kernel


def _nearest(
    here: StoredProgram | StoredKernel, programs: Sequence[ProgramSummary]
) -> StoredProgram | StoredKernel | None:
    """Return the most similar program of the same function, or kernel of the same source."""
    if isinstance(here, StoredKernel):
        kernels = (kernel for kernel in map(entry, kernel_names()) if isinstance(kernel, StoredKernel))
        same = [
            k for k in kernels if (k.symbol, k.source) == (here.symbol, here.source) and k.key != here.key
        ]
        return max(same, key=lambda kernel: len({*kernel.key.parts} & {*here.key.parts}), default=None)
    own = next(program.head for program in programs if program.name == here.name)
    others = [p for p in programs if p.head["function"] == own["function"] and p.name != here.name]
    similar: Callable[[ProgramSummary], tuple[int, int]] = lambda program: (
        -len({*map(tuple, own["signature"])} ^ {*map(tuple, program.head["signature"])}),
        -len({*own["kernels"]} ^ {*program.head["kernels"]}),
    )
    nearest = max(others, key=similar, default=None)
    return None if nearest is None else described(nearest.name)


def _process(here: StoredProgram | StoredKernel) -> tuple[KeyDifference, ...]:
    """Return the differences between an entry's kernels and those that this process looks for."""
    from tracejit.compile.key import key_of  # imports llvmlite

    if isinstance(here, StoredKernel):
        kernels: dict[str, Any] = {here.symbol: here}
    else:
        kernels = {kernel["name"]: entry(kernel["entry"]) for kernel in here.program["kernels"]}
    stored = [kernel for kernel in kernels.values() if isinstance(kernel, StoredKernel)]
    missing = [
        KeyDifference("kernel", name, "", f"kernel: {name} is not on disk")
        for name, kernel in kernels.items()
        if not isinstance(kernel, StoredKernel)
    ]
    kinds = {dict(kernel.key.parts).get("kind", "") for kernel in stored}
    on_disk = [part for kernel in stored for part in key_parts(kernel.key)]
    wanted = [part for kind in sorted(kinds) for part in key_parts(key_of(kind, "") or KernelKey(()))]
    return (*missing, *differing(on_disk, wanted, ("on disk", "in this process")))
