# SPDX-License-Identifier: BSD-3-Clause
"""A stored program (tracejit.describe.inventory) as text, in sections."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tracejit.store.entry import StoredKernel
from tracejit.util.annotate import annotated, comment, short_names
from tracejit.util.text import milliseconds, printable, size, table

_PARAMETER = 40  # characters of a parameter that are printed
_OPERATIONS = 8  # operations of a launch that are printed

Program = Mapping[str, Any]


UNREADABLE = (LookupError, TypeError, ValueError, AttributeError)
"""The errors of damaged descriptions; a shared folder may hold anything."""


class ProgramText:
    """The sections of a program; each is a list of lines.

    Args:
        key: the key of the program.
        program: its description.
        kernels: its kernels that are on disk, by name.
    """

    def __init__(self, key: str, program: Program, kernels: Mapping[str, StoredKernel]) -> None:
        self.key = key
        self.program = program
        self.kernels = kernels
        self.ops = {op["number"]: op for op in program["ops"]}
        self.names = short_names(
            dict.fromkeys(
                file for part in (*program["ops"], *program["rows"]) for file, _ in _places(part["where"])
            )
        )

    def where(self, where: Sequence[Any] | None) -> str:
        """Return a line of user code, with the shortest unambiguous name of its file."""
        return "" if where is None else f"{self.names[where[0]]}:{where[1]}"

    def all(self) -> list[str]:
        """Return all sections."""
        sections = [self.head(), self.operations(), self.launches(), self.memory()]
        sections += [self.source(kernel) for kernel in self.program["kernels"]]
        return "\n\n".join("\n".join(lines) for lines in sections).splitlines()

    def head(self) -> list[str]:
        """Return the properties of the program."""
        program, defined = self.program, self.program["defined"]
        arguments = ", ".join(f"{name}: {text}" for name, text in program["signature"])
        lines = [
            self.key,
            f"function  {program['function']}",
            *([f"defined   {defined[0]}:{defined[1]}"] if defined else []),
            *([f"call      {arguments}"] if arguments else []),
            *(
                f"input     {text}{', written' if number in program.get('written', ()) else ''}"
                for number, text in enumerate(program["inputs"])
            ),
            *(f"output    {text}" for text in program["outputs"]),
            *(f"file      {short}  {file}" for file, short in self.names.items()),
            f"arena     {size(program['arena_bytes'])}",
            f"constants {size(program['constant_bytes'])}",
        ]
        return list(map(printable, lines))

    def operations(self) -> list[str]:
        """Return the operations: value, operands, result type, line, and the launches that compute it."""
        rows = []
        for op in self.program["ops"]:
            params = [f"{name}={_short(text)}" for name, text in op["params"].items()]
            outputs = [(value, f"{_shape(shape)} {dtype}") for value, shape, dtype in op["outputs"]]
            rows.append(
                (
                    ", ".join(value for value, _ in outputs),
                    f"{op['name']}({', '.join([*op['inputs'], *params])})",
                    ", ".join(kind for _, kind in outputs),
                    self.where(op["where"]),
                    _ranges(op["rows"]) or "none: a view",
                )
            )
        text = table(("value", "operation", "result", "where", "launches"), rows)
        return ["operations", *_indented(text), *self.more("ops", "operations")]

    def launches(self) -> list[str]:
        """Return the launches: kernel, operations, lines, and why a launch is separate from those it reads."""
        lines = ["launches"]
        apart: dict[int, list[Any]] = {}
        for pair in self.program["pairs"]:
            apart.setdefault(pair["read"], []).append(pair)
        for rows in self.together():
            row = rows[0]
            places = ", ".join(self.where(where) for where in row["where"])
            numbers = _ranges([part["number"] for part in rows])
            kernel = self.program["kernels"][row["kernel"]]["name"]
            what = f"{kernel}  {self.fused(row)}{f'  ({places})' if places else ''}"
            lines.append(printable(f"{numbers:>6}  {what}"))
            for pair in apart.get(row["number"], ()):
                value = f"{pair['value']} of " if pair["value"] else ""
                lines.append(printable(f"        apart from {value}{pair['made']}: {pair['why']}"))
        return [*lines, *self.more("rows", "launches")]

    def together(self) -> Iterator[list[Any]]:
        """Yield the rows, grouped by launch."""
        launches: dict[tuple[int, int], list[Any]] = {}  # by section and place in it
        section = -1
        for row in self.program["rows"]:
            part, _, place = row["part"]
            if part == place == 0:
                section += 1
            launches.setdefault((section, place), []).append(row)
        yield from launches.values()

    def fused(self, row: Any) -> str:
        """Return the operations that a launch computes, or its purpose."""
        if row["purpose"]:
            return str(row["purpose"])
        values = [
            f"{self.ops[op]['name']} {self.ops[op]['outputs'][0][0]}" if op in self.ops else f"op {op}"
            for op in row["ops"]
        ]
        more = [f"{len(values) - _OPERATIONS} more"] if len(values) > _OPERATIONS else []
        return ", ".join([*values[:_OPERATIONS], *more])

    def memory(self) -> list[str]:
        """Return the memory plan: place, size, value, the operation that writes it, first and last launch."""
        rows = [
            (
                buffer["kind"] if buffer["kind"] == "arena" else f"{buffer['kind']} {buffer['number']}",
                str(buffer["offset"]),
                str(buffer["bytes"]),
                buffer["value"] or "scratch",
                self.writer(buffer["op"]),
                f"{buffer['first']}-{buffer['last']}"
                if buffer["first"] != buffer["last"]
                else str(buffer["first"]),
            )
            for buffer in self.program["memory"]
        ]
        header = ("place", "offset", "bytes", "value", "written by", "launches")
        text = table(header, rows, numbers=("offset", "bytes"))
        return ["memory", *_indented(text), *self.more("buffers", "buffers")]

    def writer(self, op: int | None) -> str:
        """Return the operation that writes a buffer."""
        if op is None:
            return ""
        return f"{self.ops[op]['name']} {self.where(self.ops[op]['where'])}" if op in self.ops else f"op {op}"

    def source(self, kernel: Any) -> list[str]:
        """Return the emitted source of a kernel, with the lines that it comes from."""
        entry = self.kernels.get(kernel["name"])
        if entry is None:
            return [f"# {printable(kernel['name'])}: not on disk any more"]
        launched = [row["number"] for row in self.program["rows"] if self.of(row) == kernel["name"]]
        lines = [
            f"# {kernel['name']}: {size(len(entry.code))}, compiled in {milliseconds(entry.compile_ns)} ms, "
            f"launched as {_ranges(launched)}"
        ]
        comments = dict(self.comments(kernel))
        if not comments:
            lines += [f"# {text}" for text in self.lines_of(launched[:1])]
        elif len(launched) > 1:
            lines.append(f"# Lines are those of launch {launched[0]}.")
        return [*map(printable, lines), *map(printable, annotated(entry.source, comments).splitlines())]

    def of(self, row: Any) -> str:
        """Return the name of a row's kernel."""
        return str(self.program["kernels"][row["kernel"]]["name"])

    def comments(self, kernel: Any) -> Iterator[tuple[int, str]]:
        """Give the operation that each line of a kernel comes from."""
        for line, number in kernel["lines"]:
            op = self.ops.get(number)
            if op is not None:
                yield line, comment(op["name"], op["where"], self.names)

    def lines_of(self, launched: Sequence[int]) -> Iterator[str]:
        """Give the operations of launches whose kernels have no lines of their own."""
        for row in self.program["rows"]:
            if row["number"] in launched:
                for number in row["ops"]:
                    if number in self.ops:
                        op = self.ops[number]
                        yield comment(op["name"], op["where"], self.names)

    def more(self, name: str, what: str) -> list[str]:
        """Return a line with the number of those left out."""
        left = self.program["left_out"].get(name, 0)
        return [f"  and {left} more {what}, not written down"] if left else []


def _places(where: Any) -> list[Any]:
    """Return a list of places, given None, one place or several."""
    if where is None:
        return []
    return [where] if where and isinstance(where[0], str) else list(where)


def _indented(text: str) -> list[str]:
    return [f"  {line}" for line in text.splitlines()]


def _shape(shape: Sequence[int]) -> str:
    return "x".join(map(str, shape)) or "scalar"


def _short(text: str) -> str:
    return text if len(text) <= _PARAMETER else f"{text[: _PARAMETER - 3]}..."


def _ranges(numbers: Sequence[int]) -> str:
    """Return numbers in words, with runs as ranges."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1] = [runs[-1][0], number]
        else:
            runs.append([number])
    return ", ".join("-".join(map(str, run)) for run in runs)
