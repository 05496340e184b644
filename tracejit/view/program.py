# SPDX-License-Identifier: BSD-3-Clause
"""From the description of a program to what the page shows of it."""

import re
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from tracejit.aval import describe_shape
from tracejit.describe.program import Description, Operation
from tracejit.describe.roofline import Rates, costs
from tracejit.ir import Where
from tracejit.view import data
from tracejit.view.repeats import repeats

PlaceOf = Callable[[Where], data.Place]

_DEFINED = re.compile(r"(?:def|#) (\w+)(?:\(args\)|: not on disk)")
_LAUNCHED = re.compile(r"    (\w+)\(\[")
_ARGUMENT = re.compile(r"in(\d+)")


class Row(NamedTuple):
    """A row of a program: its kernel, the names of its ops, which part of how many it belongs to, its place there."""

    kernel: str
    note: str
    part: int
    parts: int
    place: int


class Input(NamedTuple):
    """An input of a program: what the user calls it, and size, dtype and format in words."""

    name: str
    words: str

    def __str__(self) -> str:
        return f"{self.name}: {self.words}" if self.name else self.words


class Built(NamedTuple):
    """A program that was built.

    outputs         what each of them is
    constants       by number: size and dtype in words
    emitted         the emitted source, line by line: the kernels, then the function that launches them
    kept            how much of it is known, in words; "" for all
    """

    title: str
    inputs: Sequence[Input]
    outputs: Sequence[str]
    constants: Sequence[str]
    rows: Sequence[Row]
    emitted: list[str]
    description: Description
    arena_bytes: int
    facts: Sequence[tuple[str, str]]
    kept: str = ""


class Measured(NamedTuple):
    """What each launch took alone in nanoseconds, nothing if that was not measured; the machine; words about both."""

    launch_ns: Sequence[float]
    rates: Rates | None
    words: list[str]


def program(
    built: Built, place_of: PlaceOf, measured: Measured, guards: list[data.GuardLine] | None = None
) -> data.Program:
    """Return what the page shows of a program.

    Args:
        built: the program.
        place_of: gives the number of a file for its name, and the line.
        measured: what its launches take.
        guards: of the trace that it belongs to, None if there is no running function.
    """
    return _Shower(built, place_of).run(measured, guards)


class _Shower:
    def __init__(self, built: Built, place_of: PlaceOf) -> None:
        self.built = built
        self.description = built.description
        self.place_of = place_of
        self.by_number = {operation.number: operation for operation in self.description.ops}
        self.launch_of_row: list[int] = []  # parts of a launch count as one
        self.first_rows: list[int] = []
        first = 0  # launch of those that run together
        for number, row in enumerate(built.rows):
            if row.part == 0:
                if row.place == 0:
                    first = len(self.first_rows)
                self.first_rows.append(number)
            self.launch_of_row.append(first + row.place)
        self.values: dict[str, int] = {}  # places among the ops that are shown, by the name of the value
        self.shown: dict[int, int] = {}  # the same by the number of an operation
        self.ops: list[data.Op] = []
        self.ops_of_launch = self.computed()

    def run(self, measured: Measured, guards: list[data.GuardLine] | None) -> data.Program:
        built = self.built
        kernels: dict[str, int] = {}
        for number in self.first_rows:
            kernels.setdefault(built.rows[number].kernel, len(kernels))
        self.roots()
        self.operations()
        self.outputs()
        lines = self.kernel_lines()
        launches = self.launches(kernels, measured)
        signatures = [
            (launch["kernel"], launch["parts"], *[each.name for each in self.computes(number)])
            for number, launch in enumerate(launches)
        ]
        return {
            "title": built.title,
            "signature": [str(each) for each in built.inputs],
            "ops": self.ops,
            "launches": launches,
            "kernels": [{"name": name, "line": lines.get(name, 0)} for name in kernels],
            "emitted": built.emitted,
            "links": self.links(lines, launches),
            "repeats": repeats(signatures),
            "arena": self.arena(),
            "timing": measured.words,
            "is_timed": bool(measured.launch_ns),
            "kept": built.kept,
            "guards": guards,
            "facts": list(built.facts),
        }

    def computed(self) -> list[tuple[int, ...]]:
        """Return the numbers of the operations that each launch computes."""
        found: list[tuple[int, ...]] = [()] * len(self.first_rows)
        for row in self.description.rows:
            found[self.launch_of_row[row.number]] = row.ops
        return found

    def computes(self, launch: int) -> list[Operation]:
        """Return the operations that a launch computes."""
        return [self.by_number[number] for number in self.ops_of_launch[launch] if number in self.by_number]

    def roots(self) -> None:
        """Show the arguments and constants that operations use."""
        used = dict.fromkeys(name for operation in self.description.ops for name in operation.inputs)
        sizes = {buffer.value: buffer for buffer in self.description.buffers}
        for number, each in enumerate(self.built.inputs):
            name = f"in{number}"
            self.root(name, "argument", each.name or f"argument {number + 1}", each.words)
        for name in used:
            if name.startswith("c") and name[1:].isdigit():
                buffer = sizes.get(name)
                known = buffer is not None and buffer.place.number < len(self.built.constants)
                words = self.built.constants[buffer.place.number] if buffer is not None and known else ""
                self.root(name, "constant", "constant", words)

    def root(self, value: str, kind: str, name: str, words: str) -> None:
        self.values[value] = len(self.ops)
        self.ops.append({
            "kind": kind, "name": name, "result": words, "detail": value, "inputs": [], "place": None, "launch": None,
            "output": "",
        })  # fmt: skip

    def operations(self) -> None:
        for operation in self.description.ops:
            params = [f"{name}={value}" for name, value in operation.params.items()]
            results = ", ".join(result.value for result in operation.outputs)
            inputs = [self.values[name] for name in operation.inputs if name in self.values]
            self.shown[operation.number] = len(self.ops)
            for result in operation.outputs:
                self.values[result.value] = len(self.ops)
            self.ops.append({
                "kind": "op",
                "name": operation.name,
                "result": "; ".join(_words(result.shape, result.dtype) for result in operation.outputs),
                "detail": f"{results} = {operation.name}({', '.join([*operation.inputs, *params])})",
                "inputs": inputs,
                "place": self.place_of(operation.where),
                "launch": self.launch_of_row[operation.rows[0]] if operation.rows else None,
                "output": "",
            })  # fmt: skip

    def outputs(self) -> None:
        for buffer in self.description.buffers:
            if buffer.place.kind == "output" and buffer.op in self.shown:
                op = self.ops[self.shown[buffer.op]]
                number, named = buffer.place.number, self.built.outputs
                each = named[number] if number < len(named) else "whether an index is out of range"
                op["output"] = f"{op['output']}, {each}" if op["output"] else each

    def launches(self, kernels: dict[str, int], measured: Measured) -> list[data.Launch]:
        lines, needs = self.launch_lines(), costs(self.description, self.launch_of_row)
        rates = measured.rates.raised(needs, measured.launch_ns) if measured.rates else None
        apart: list[list[tuple[int, str, str]]] = [[] for _ in self.first_rows]
        for pair in self.description.pairs:
            made, read = self.launch_of_row[pair.made], self.launch_of_row[pair.read]
            apart[made].append((read, pair.value, pair.why))
            apart[read].append((made, pair.value, pair.why))
        found: list[data.Launch] = []
        purposes = {self.launch_of_row[row.number]: row.purpose for row in self.description.rows}
        for number, first in enumerate(self.first_rows):
            row, need = self.built.rows[first], needs[number]
            ns = measured.launch_ns[number] if measured.launch_ns else None
            least_ns, bound = need.least_ns(rates) if rates else (None, "")
            found.append({
                "kernel": kernels[row.kernel], "note": purposes.get(number) or row.note, "parts": row.parts,
                "line": lines[first] if first < len(lines) else 0, "bytes": need.bytes, "flops": need.flops,
                "ns": ns, "least_ns": least_ns, "bound": bound, "apart": apart[number],
            })  # fmt: skip
        return found

    def kernel_lines(self) -> dict[str, int]:
        """Return the line of the emitted source on which each kernel begins."""
        matches = ((number, _DEFINED.match(line)) for number, line in enumerate(self.built.emitted))
        return {match[1]: number for number, match in matches if match}

    def launch_lines(self) -> list[int]:
        """Return the line of the emitted source on which each row is launched."""
        names = {row.kernel for row in self.built.rows}
        matches = ((number, _LAUNCHED.match(line)) for number, line in enumerate(self.built.emitted))
        return [number for number, match in matches if match and match[1] in names]

    def links(self, kernel_lines: dict[str, int], launches: list[data.Launch]) -> list[list[int]]:
        """Return lists of a line of the emitted source and of the ops that it computes."""
        found: dict[int, dict[int, None]] = {}

        def link(line: int, ops: Iterable[int]) -> None:
            found.setdefault(line, {}).update(dict.fromkeys(ops))

        by_kernel: dict[str, list[int]] = {}
        for launch, first in enumerate(self.first_rows):
            by_kernel.setdefault(self.built.rows[first].kernel, []).append(launch)
        for kernel, ran in by_kernel.items():
            start = kernel_lines.get(kernel)
            if start is None:
                continue
            is_there = self.built.emitted[start].startswith("def")
            lines = self.description.lines.get(kernel, {}) if is_there else {}
            if not lines:  # written by hand, or by a table
                link(start, [self.shown[op.number] for launch in ran for op in self.computes(launch)])
            for line, ops in self.same_ops(lines, ran).items():
                link(start + line - 1, ops)
        for launch, made in enumerate(launches):
            ops = [self.shown[op.number] for op in self.computes(launch)]
            if ops and made["line"]:
                link(made["line"], ops)
        return [[line, *ops] for line, ops in sorted(found.items()) if ops]

    def same_ops(self, lines: dict[int, int], launches: Sequence[int]) -> dict[int, list[int]]:
        """Return what each line of a kernel computes in each of its launches, given what it does in the first."""
        first = [op.number for op in self.computes(launches[0])]
        names = [op.name for op in self.computes(launches[0])]
        found: dict[int, list[int]] = {
            line: [self.shown[op]] for line, op in lines.items() if op in self.shown
        }
        for launch in launches[1:]:
            ops = self.computes(launch)
            if [op.name for op in ops] != names:
                continue
            other = dict(zip(first, ops, strict=True))
            for line, op in lines.items():
                if op in other:
                    found.setdefault(line, []).append(self.shown[other[op].number])
        return found

    def arena(self) -> data.Arena:
        values: list[data.Held] = []
        for buffer in self.description.buffers:
            if buffer.place.kind != "arena":
                continue
            op = None if buffer.op is None else self.shown.get(buffer.op)
            name = self.ops[op]["name"] if op is not None else ""
            values.append({
                "what": f"{buffer.value or 'scratch of'} {name}" if name else buffer.value or "scratch",
                "op": op, "offset": buffer.place.offset, "bytes": buffer.bytes,
                "first": self.launch_of_row[buffer.first], "last": self.launch_of_row[buffer.last],
            })  # fmt: skip
        left = self.description.left_out.get("buffers", 0)
        return {
            "bytes": self.built.arena_bytes, "values": values,
            "missing": f"{left} values are not written down" if left else "",
        }  # fmt: skip


def _words(shape: Sequence[int], dtype: str) -> str:
    return f"{describe_shape(shape, None)} {dtype}"
