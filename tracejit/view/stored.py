# SPDX-License-Identifier: BSD-3-Clause
"""The page of programs in the cache: what is written down of them, and the sources of their kernels."""

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
from tracejit.view.program import Built, Input, Measured, Row, program
from tracejit.view.sources import Sources

_LABEL = re.compile(r"\([A-Z]\)")
_UNTIMED = (
    "Not measured: a program in the cache is not run. accfun.view(), where the function runs, measures it."
)


def page(programs: Sequence[Shown]) -> data.Page:
    """Return what the page shows of programs, whose descriptions may be what others wrote.

    Raises:
        CacheError: if none of them is what tracejit writes.
    """
    sources = Sources(trusted=False)
    made, names, notes = [], [], []
    for each in programs:
        unreadable = f"the description of the program {each.key[:12]} is not what tracejit writes"
        try:
            shown = _program(each, _order(each, programs), sources)
            as_json(shown)  # what is no number cannot be shown
        except UNREADABLE:
            notes.append(f"{unreadable[0].upper()}{unreadable[1:]}; it is left out.")
            continue
        made.append(shown)
        names.append(str(each.program["function"]))
        left = each.program["left_out"]
        if left:
            words = ", ".join(f"{number} {name}" for name, number in left.items())
            notes.append(
                f"Of {each.key[:12]}, which is long, the cache has the first rows and the first row of each kernel; "
                f"left out are {words}."
            )
    if not made:
        raise CacheError(unreadable)
    return {
        "title": ", ".join(dict.fromkeys(names)),
        "notes": notes,
        "programs": made,
        "files": sources.files(),
        "keys": None,
        "last": "",
        "history": [],
        "facts": about(),
    }


def _order(shown: Shown, programs: Sequence[Shown]) -> list[int]:
    """Return the numbers of a program's arguments, those first in which it differs from others on the page."""
    number = len(shown.program["signature"])
    signatures = [each.program.get("signature") for each in programs]
    return differing_first(
        [found for found in signatures if isinstance(found, list) and len(found) == number]
    )


def _program(shown: Shown, order: Sequence[int], sources: Sources) -> data.Program:
    made = shown.program
    numbers = [row["number"] for row in made["rows"]]
    names = [kernel["name"] for kernel in made["kernels"]]
    signature = made["signature"]
    words = [f"{name}: {text}" for name, text in signature]
    arguments = ", ".join(words)
    compiled = [entry.compile_ns for entry in shown.kernels.values()]
    built = Built(
        f"{shown.key[:12]} {', '.join(words[i] for i in order)}".rstrip(),
        _inputs(made["inputs"], signature),
        [f"result {number + 1}" for number in range(len(made["outputs"]))],
        (),
        _rows(made["rows"], names),
        _emitted(shown, names),
        _description(made, numbers),
        made["arena_bytes"],
        [
            ("key", shown.key),
            ("function", _defined(made)),
            ("arguments", arguments or ", ".join(made["inputs"]) or "none"),
            ("results", ", ".join(made["outputs"]) or "none"),
            ("constants", size(made["constant_bytes"])),
            ("compiled in", f"{sum(compiled) / 1e6:.1f} ms, {len(compiled)} of {len(names)} kernels on disk"),
            ("target", made["target"]),
        ],
        _kept(made),
    )
    return program(built, sources.place, Measured((), None, [_UNTIMED]))


def _kept(made: dict[str, Any]) -> str:
    """Return in words how much of a long program is there."""
    rows, left = made["rows"], made["left_out"].get("rows", 0)
    what = "rows" if any(row["part"][1] > 1 for row in rows) else "launches"
    return f"the first {len(rows)} of {len(rows) + left} {what}" if left else ""


def _defined(made: dict[str, Any]) -> str:
    defined = made["defined"]
    return f"{made['function']} ({defined[0]}:{defined[1]})" if defined else str(made["function"])


def _inputs(inputs: Sequence[str], signature: Sequence[Sequence[str]]) -> list[Input]:
    """Return the inputs of a program, with the names of the arguments that they are."""
    found: list[Input] = []
    for name, text in signature:
        words = inputs[len(found)] if len(found) < len(inputs) else ""
        plain = _LABEL.sub("", text).replace(" x ", "x").partition(" with ")[0]
        if words and (plain == words or (text.endswith("that varies") and words.startswith("scalar"))):
            found.append(Input(name, text))
    return [*found, *[Input("", text) for text in inputs[len(found) :]]]


def _rows(rows: Sequence[dict[str, Any]], names: Sequence[str]) -> list[Row]:
    """Return rows, of which some are left out: those that run together are numbered by what is there of them."""
    found = []
    places: dict[int, int] = {}  # of a launch among those that it runs together with
    expected = 0
    for row in rows:
        part, parts, place = row["part"]
        if part == place == 0 or row["number"] != expected:
            places = {}
        expected = row["number"] + 1
        is_new = place not in places
        at = places.setdefault(place, len(places))
        found.append(Row(names[row["kernel"]], row["operations"], 0 if is_new else max(part, 1), parts, at))
    return found


def _description(made: dict[str, Any], numbers: list[int]) -> Description:
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
            for op in made["ops"]
        ],
        [DescribedRow(i, tuple(row["ops"]), row["purpose"]) for i, row in enumerate(made["rows"])],
        [
            Pair(at[pair["made"]], at[pair["read"]], pair["value"], pair["why"])
            for pair in made["pairs"]
            if pair["made"] in at and pair["read"] in at
        ],
        [
            Buffer(
                Place(each["kind"], each["number"], each["offset"]), each["bytes"], each["value"], each["op"],
                nearest(each["first"]), nearest(each["last"]),
            )
            for each in (made["memory"] if numbers else ())
        ],
        {kernel["name"]: dict(kernel["lines"]) for kernel in made["kernels"]},
        made["left_out"],
    )  # fmt: skip


def _emitted(shown: Shown, names: list[str]) -> list[str]:
    """Return the sources of the kernels, as far as they are on disk, and the launches."""
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
