# SPDX-License-Identifier: BSD-3-Clause
"""The page of programs in the cache, from their descriptions and the sources of their kernels."""

import re
from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

from tracejit.cache.inspect import Shown
from tracejit.cache.program_text import UNREADABLE
from tracejit.describe.program import Buffer, DescribedRow, Description, Operation, Pair, ResultValue
from tracejit.errors import CacheError
from tracejit.program import Place
from tracejit.util.text import differing_first, size
from tracejit.view import data
from tracejit.view.about import about
from tracejit.view.page import as_json
from tracejit.view.program import Built, Input, LaunchedRow, Measured, program
from tracejit.view.sources import Sources

_LABEL = re.compile(r"\([A-Z]\)")
_UNTIMED = (
    "Not measured: a program in the cache is not run. accfun.view(), where the function runs, measures it."
)


def page(programs: Sequence[Shown]) -> data.Page:
    """Return the page of programs. Their descriptions are not trusted: in a shared cache, others may have written them.

    Raises:
        CacheError: if none of the descriptions can be read.
    """
    sources = Sources(trusted=False)
    pages, names, notes = [], [], []
    for stored in programs:
        unreadable = f"the description of the program {stored.key[:12]} is not in tracejit's format"
        try:
            shown = _program(stored, _order(stored, programs), sources)
            as_json(shown)  # raises for NaN and infinity
        except UNREADABLE:
            notes.append(f"{unreadable[0].upper()}{unreadable[1:]}; it is left out.")
            continue
        pages.append(shown)
        names.append(str(stored.program["function"]))
        left = stored.program["left_out"]
        if left:
            words = ", ".join(f"{number} {name}" for name, number in left.items())
            notes.append(
                f"{stored.key[:12]} is long: the cache has its first rows and the first row of each kernel; "
                f"left out are {words}."
            )
    if not pages:
        raise CacheError(unreadable)
    return {
        "title": ", ".join(dict.fromkeys(names)),
        "notes": notes,
        "programs": pages,
        "files": sources.files(),
        "keys": None,
        "last": "",
        "history": [],
        "facts": about(),
    }


def _order(shown: Shown, programs: Sequence[Shown]) -> list[int]:
    """Return the numbers of a program's arguments; those that differ between programs of the page come first."""
    number = len(shown.program["signature"])
    signatures = [program.program.get("signature") for program in programs]
    return differing_first(
        [signature for signature in signatures if isinstance(signature, list) and len(signature) == number]
    )


def _program(shown: Shown, order: Sequence[int], sources: Sources) -> data.PageProgram:
    record = shown.program
    numbers = [row["number"] for row in record["rows"]]
    names = [kernel["name"] for kernel in record["kernels"]]
    signature = record["signature"]
    words = [f"{name}: {text}" for name, text in signature]
    arguments = ", ".join(words)
    compiled = [entry.compile_ns for entry in shown.kernels.values()]
    inputs, written = _inputs(record["inputs"], signature), record.get("written", ())
    built = Built(
        f"{shown.key[:12]} {', '.join(words[i] for i in order)}".rstrip(),
        inputs,
        [f"result {number + 1}" for number in range(len(record["outputs"]))],
        (),
        _rows(record["rows"], names),
        _emitted(shown, names),
        _description(record, numbers),
        record["arena_bytes"],
        [
            ("key", shown.key),
            ("function", _defined(record)),
            ("arguments", arguments or ", ".join(record["inputs"]) or "none"),
            ("results", ", ".join(record["outputs"]) or "none"),
            *(
                [("writes", ", ".join([inputs[i].name or f"input {i + 1}" for i in written]))]
                if written
                else []
            ),
            ("constants", size(record["constant_bytes"])),
            ("compiled in", f"{sum(compiled) / 1e6:.1f} ms, {len(compiled)} of {len(names)} kernels on disk"),
            ("target", record["target"]),
        ],
        _extent_in_words(record),
    )
    return program(built, sources.place, Measured((), None, [_UNTIMED]))


def _extent_in_words(record: dict[str, Any]) -> str:
    """Return which part of a long program is described, in words."""
    rows, left = record["rows"], record["left_out"].get("rows", 0)
    what = "rows" if any(row["part"][1] > 1 for row in rows) else "launches"
    return f"the first {len(rows)} of {len(rows) + left} {what}" if left else ""


def _defined(record: dict[str, Any]) -> str:
    defined = record["defined"]
    return f"{record['function']} ({defined[0]}:{defined[1]})" if defined else str(record["function"])


def _inputs(inputs: Sequence[str], signature: Sequence[Sequence[str]]) -> list[Input]:
    """Return the inputs of a program, with the names of their arguments."""
    named: list[Input] = []
    for name, text in signature:
        words = inputs[len(named)] if len(named) < len(inputs) else ""
        plain = _LABEL.sub("", text).replace(" x ", "x").partition(" with ")[0]
        if words and (plain == words or (text.endswith("that varies") and words.startswith("scalar"))):
            named.append(Input(name, text))
    return [*named, *[Input("", text) for text in inputs[len(named) :]]]


def _rows(rows: Sequence[dict[str, Any]], names: Sequence[str]) -> list[LaunchedRow]:
    """Return rows; where some are left out, the parts of a section are numbered without gaps."""
    launched = []
    places: dict[int, int] = {}  # place in a part -> place among the rows that are described
    expected = 0
    for row in rows:
        part, parts, place = row["part"]
        if part == place == 0 or row["number"] != expected:
            places = {}
        expected = row["number"] + 1
        is_new = place not in places
        at = places.setdefault(place, len(places))
        launched.append(
            LaunchedRow(
                names[row["kernel"]],
                row["operations"],
                0 if is_new else max(part, 1),
                parts,
                at,
                row.get("threads", ""),
            )
        )
    return launched


def _description(record: dict[str, Any], numbers: list[int]) -> Description:
    """Return the description of a program; rows are numbered as they are listed, without gaps."""
    at = {number: i for i, number in enumerate(numbers)}

    def nearest(row: int) -> int:
        return max(bisect_right(numbers, row) - 1, 0)

    return Description(
        [
            Operation(
                op["number"], op["name"], tuple(op["inputs"]), op["params"],
                tuple([ResultValue(value, tuple(shape), dtype) for value, shape, dtype in op["outputs"]]),
                op["where"] and tuple(op["where"]), tuple([at[row] for row in op["rows"] if row in at]),
            )
            for op in record["ops"]
        ],
        [DescribedRow(i, tuple(row["ops"]), row["purpose"]) for i, row in enumerate(record["rows"])],
        [
            Pair(at[pair["made"]], at[pair["read"]], pair["value"], pair["why"])
            for pair in record["pairs"]
            if pair["made"] in at and pair["read"] in at
        ],
        [
            Buffer(
                Place(buffer["kind"], buffer["number"], buffer["offset"]),
                buffer["bytes"], buffer["value"], buffer["op"],
                nearest(buffer["first"]), nearest(buffer["last"]),
            )
            for buffer in (record["memory"] if numbers else ())
        ],
        {kernel["name"]: dict(kernel["lines"]) for kernel in record["kernels"]},
        record["left_out"],
    )  # fmt: skip


def _emitted(shown: Shown, names: list[str]) -> list[str]:
    """Return the sources of the kernels that are still on disk, and the launches."""
    lines: list[str] = []
    for name in names:
        entry = shown.kernels.get(name)
        lines += [f"# {name}: not on disk any more"] if entry is None else entry.source.splitlines()
        lines += ["", ""]
    lines.append("def forward(memory):")
    for row in shown.program["rows"]:
        lines.append(f"    # {row['purpose'] or row['operations']}")
        lines.append(f"    {names[row['kernel']]}([{', '.join(map(_argument, row['arguments']))}])")
    return lines


def _argument(argument: Any) -> str:
    """Return an argument of a launch as it stands in emitted source."""
    if not isinstance(argument, list):
        return str(argument)
    if len(argument) == 4:
        kind, number, offset, dtype = argument
        name = kind if kind == "arena" else f"{kind}[{number}]"
        return f"memory({name!r}, {offset}, {dtype!r})"
    kind, value = argument
    return f"symbol({value!r})" if kind == "symbol" else f"{kind}({value})"
