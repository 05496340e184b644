# SPDX-License-Identifier: BSD-3-Clause
"""In what two entries of the cache differ, in words: two programs, two kernels, or a kernel and this process."""

import difflib
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tracejit.store.entry import Entry

_PARTS = {  # of a kernel's key, in words
    "kind": "kind", "source": "source", "format": "format of entries", "tracejit": "tracejit's own kernels",
    "numba": "Numba", "llvmlite": "llvmlite", "numpy": "NumPy", "python": "Python", "system": "system", "cpu": "CPU",
}  # fmt: skip
_FEATURES = "cpu features"
_HASHES = ("source", "tracejit")  # of which the beginning tells enough
_HASH = 12
_MOST = 8  # kernels, inputs or outputs that are compared one by one


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing that differs: what it is, and what it is here and there; "" where there is none, or nothing to show."""

    what: str
    here: str
    there: str
    text: str

    def __repr__(self) -> str:
        return self.text


def between(
    what: str, here: str, there: str, places: tuple[str, str] = ("here", "there")
) -> Iterator[Difference]:
    """Give the difference between two texts, if there is one."""
    if here == there:
        return
    first, second = places
    if here and there:
        text = f"{what}: {here} {first}, {there} {second}"
    else:
        text = f"{what}: {here or there} {first if here else second} only"
    yield Difference(what, here, there, text)


def of_keys(
    here: Mapping[str, str], there: Mapping[str, str], places: tuple[str, str] = ("here", "there")
) -> Iterator[Difference]:
    """Give the parts in which the keys of two kernels differ, but their sources."""
    for name in dict.fromkeys([*here, *there]):
        mine, other = here.get(name, ""), there.get(name, "")
        if name == _FEATURES:
            yield from _of_features(mine, other, places)
        elif name != "source":
            if name in _HASHES:
                mine, other = mine[:_HASH], other[:_HASH]
            yield from between(_PARTS.get(name, name), mine, other, places)


def _of_features(here: str, there: str, places: tuple[str, str]) -> Iterator[Difference]:
    mine, other = ({each[1:] for each in text.split(",") if each.startswith("+")} for text in (here, there))
    only = [", ".join(sorted(each)) for each in (mine - other, other - mine)]
    if any(only):
        told = " and ".join(
            f"{names} {place} only" for names, place in zip(only, places, strict=True) if names
        )
        yield Difference("CPU features", only[0], only[1], f"CPU features: {told}")


def of_kernels(here: Entry, there: Entry) -> Iterator[Difference]:
    """Give what differs between two kernels."""
    if here.source != there.source:
        yield _of_sources(f"source ({here.symbol} here, {there.symbol} there)", here, there)
    yield from of_keys(dict(here.key.parts), dict(there.key.parts))


def _of_sources(what: str, here: Entry | None, there: Entry | None) -> Difference:
    """Return in what two sources differ first."""
    if here is None or there is None:
        return Difference(what, "", "", what)
    mine, other = ([line.strip() for line in entry.source.splitlines()] for entry in (here, there))
    # The first line has a name that ends in a hash of the rest.
    for number in range(1, max(len(mine), len(other))):
        lines = [lines[number] if number < len(lines) else "its end" for lines in (mine, other)]
        if lines[0] != lines[1]:
            break
    else:
        return Difference(what, "", "", what)
    return Difference(
        what,
        lines[0],
        lines[1],
        f"{what}: line {number + 1} is `{lines[0]}` here and `{lines[1]}` there",
    )


def of_programs(
    here: Mapping[str, Any], there: Mapping[str, Any], entry: Callable[[str], Entry | None]
) -> list[Difference]:
    """Return what differs between two programs (tracejit.describe.inventory).

    What follows from something else is not told: another shape of an input makes other numbers in each launch.

    Args:
        here: one of them.
        there: the other one.
        entry: gives a kernel on disk by its key.
    """
    found = [
        *between("function", here["function"], there["function"]),
        *between("defined", _place(here.get("defined")), _place(there.get("defined"))),
        *_of_signatures(here, there),
        *_of_lists("output", here["outputs"], there["outputs"]),
        *between("target", here["target"], there["target"]),
        *_of_operations(here.get("ops", ()), there.get("ops", ())),
        *_of_launched(here["kernels"], there["kernels"], entry),
    ]
    return found or [*_of_rows(here, there)]


def _place(where: Sequence[Any] | None) -> str:
    return f"{where[0]}:{where[1]}" if where else ""


def _of_signatures(here: Mapping[str, Any], there: Mapping[str, Any]) -> Iterator[Difference]:
    mine, other = (dict(each.get("signature") or ()) for each in (here, there))
    found = 0
    for name in dict.fromkeys([*mine, *other]):
        for each in between(name, mine.get(name, ""), other.get(name, "")):
            found += 1
            yield each
    if not found:
        yield from _of_lists("input", here["inputs"], there["inputs"])


def _of_lists(what: str, here: Sequence[str], there: Sequence[str]) -> Iterator[Difference]:
    for number in range(max(len(here), len(there))):
        mine, other = (texts[number] if number < len(texts) else "" for texts in (here, there))
        yield from between(f"{what} {number + 1}", mine, other)


def _of_operations(
    here: Sequence[Mapping[str, Any]], there: Sequence[Mapping[str, Any]]
) -> Iterator[Difference]:
    """Give the first operation that is another one; those after it are often others for that."""
    for number, (mine, other) in enumerate(itertools.zip_longest(here, there)):
        if mine is None or other is None:
            name, place = (_operation(mine), "here") if other is None else (_operation(other), "there")
            what = f"operation {number}"
            yield Difference(
                what, *((name, "") if other is None else ("", name)), f"{what}: {name} {place} only"
            )
            return
        if mine["name"] != other["name"]:
            yield from between(f"operation {number}", _operation(mine), _operation(other))
            return
        if mine["params"] != other["params"]:
            for name in dict.fromkeys([*mine["params"], *other["params"]]):
                values = [each["params"].get(name, "") for each in (mine, other)]
                yield from between(f"{name} of operation {number}, {_operation(mine)}", *values)
            return


def _operation(op: Mapping[str, Any]) -> str:
    where = _place(op["where"])
    return f"{op['name']} at {where}" if where else str(op["name"])


def _of_launched(
    here: Sequence[Mapping[str, str]],
    there: Sequence[Mapping[str, str]],
    entry: Callable[[str], Entry | None],
) -> Iterator[Difference]:
    """Give in what the kernels of two programs differ; their names end in a hash of their source."""
    told: set[str] = set()
    compared = 0
    first, second = ([kernel["name"] for kernel in kernels] for kernels in (here, there))
    for kind, a, b, c, d in difflib.SequenceMatcher(a=first, b=second, autojunk=False).get_opcodes():
        for i in range(max(b - a, d - c)):
            mine, other = (
                kernels[start + i] if start + i < end else None
                for kernels, start, end in ((here, a, b), (there, c, d))
            )
            if mine is None or other is None:
                number, place = (a + i, "here") if mine else (c + i, "there")
                name = (mine or other or {})["name"]
                what = f"kernel {number + 1}"
                one = Difference(
                    what, name if mine else "", "" if mine else name, f"{what} ({name}): {place} only"
                )
            elif kind != "equal":
                what = f"source of kernel {a + i + 1} ({mine['name']} here, {other['name']} there)"
                one = _of_sources(what, entry(mine["entry"]), entry(other["entry"]))
            else:
                yield from _of_same_source(mine, other, entry, told)
                continue
            compared += 1
            if compared <= _MOST:
                yield one
    if compared > _MOST:
        text = f"{compared - _MOST} more kernels"
        yield Difference(text, "", "", f"{text} differ")


def _of_same_source(
    mine: Mapping[str, str], other: Mapping[str, str], entry: Callable[[str], Entry | None], told: set[str]
) -> Iterator[Difference]:
    if mine["entry"] == other["entry"]:
        return
    first, second = entry(mine["entry"]), entry(other["entry"])
    if first is None or second is None:
        missing = Difference("kernels", mine["entry"], other["entry"], "kernels: keys that are not on disk")
        differences = [missing]
    else:
        differences = [
            Difference(each.what, each.here, each.there, f"kernels: {each.text}")
            for each in of_keys(dict(first.key.parts), dict(second.key.parts))
        ]
    for each in differences:
        if each.text not in told:
            told.add(each.text)
            yield each


def _of_rows(here: Mapping[str, Any], there: Mapping[str, Any]) -> Iterator[Difference]:
    """Give in what programs differ that have the same arguments and kernels."""
    yield from between("launches", str(here["row_count"]), str(there["row_count"]))
    for number, (mine, other) in enumerate(zip(here["rows"], there["rows"], strict=False), 1):
        what = f"launch {number} ({mine['operations']})"
        if mine["operations"] != other["operations"]:
            yield from between(f"launch {number}", mine["operations"], other["operations"])
        elif mine["where"] != other["where"]:
            yield from between(what, _places(mine), _places(other))
        elif mine != other:
            yield Difference(what, "", "", f"{what}: its sizes, addresses or numbers differ")
        else:
            continue
        break
    yield from between("constants", f"{here['constant_bytes']} bytes", f"{there['constant_bytes']} bytes")
    yield from between("arena", f"{here['arena_bytes']} bytes", f"{there['arena_bytes']} bytes")


def _places(row: Mapping[str, Any]) -> str:
    return ", ".join(map(_place, row["where"])) or "no line"
