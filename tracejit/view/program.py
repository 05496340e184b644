# SPDX-License-Identifier: BSD-3-Clause
"""A program's description as data of the page."""

import re
from collections.abc import Callable, Iterable, Sequence

from tracejit.aval import describe_shape
from tracejit.describe.program import Description, Operation
from tracejit.describe.roofline import Rates, costs
from tracejit.ir import Where
from tracejit.util.named_tuples import NamedTuple
from tracejit.view import data
from tracejit.view.repeats import repeats

PlaceOf = Callable[[Where], data.Place]

_DEFINED = re.compile(r"(?:def|#) (\w+)(?:\(args\)|: not on disk)")
_LAUNCHED = re.compile(r"    (\w+)\(\[")
_ARGUMENT = re.compile(r"in(\d+)")


class LaunchedRow(NamedTuple):
    """A row of a program.

    It has its kernel, the names of its ops, its part, the number of parts, its place in the part, and in words the
    threads of a device.
    """

    kernel: str
    note: str
    part: int
    parts: int
    place: int
    threads: str = ""


class Input(NamedTuple):
    """An input of a program: its name in the user's function, and size, dtype and format in words."""

    name: str
    words: str

    def __str__(self) -> str:
        return f"{self.name}: {self.words}" if self.name else self.words


class Built(NamedTuple):
    """A built program.

    outputs         a description of each output
    constants       by number: size and dtype in words
    emitted         the emitted source, line by line: the kernels, then the function that launches them
    kept            the part of it that is described, in words; "" for all of it
    """

    title: str
    inputs: Sequence[Input]
    outputs: Sequence[str]
    constants: Sequence[str]
    rows: Sequence[LaunchedRow]
    emitted: list[str]
    description: Description
    arena_bytes: int
    facts: Sequence[tuple[str, str]]
    kept: str = ""


class Measured(NamedTuple):
    """The time of each launch alone, () if not measured; the rates of the machine; and both in words."""

    launch_ns: Sequence[float]
    rates: Rates | None
    words: list[str]


def program(
    built: Built, place_of: PlaceOf, measured: Measured, guards: list[data.PageGuard] | None = None
) -> data.PageProgram:
    """Return a program as data of the page.

    Args:
        built: the program.
        place_of: returns the number of a file and the line.
        measured: the times of its launches.
        guards: of its trace, None if the function does not run in this process.
    """
    return _PageBuilder(built, place_of).run(measured, guards)


class _PageBuilder:
    """Collects the data of a program."""

    def __init__(self, built: Built, place_of: PlaceOf) -> None:
        self.built = built
        self.description = built.description
        self.place_of = place_of
        self.by_number = {operation.number: operation for operation in self.description.ops}
        self.launch_of_row: list[int] = []  # the parts of a launch count as one launch
        self.first_rows: list[int] = []
        first = 0  # the first launch of a section
        for number, row in enumerate(built.rows):
            if row.part == 0:
                if row.place == 0:
                    first = len(self.first_rows)
                self.first_rows.append(number)
            self.launch_of_row.append(first + row.place)
        self.values: dict[str, int] = {}  # name of a value -> index into `ops`
        self.shown: dict[int, int] = {}  # number of an operation -> index into `ops`
        self.ops: list[data.PageOp] = []
        self.ops_of_launch = self.computed()

    def run(self, measured: Measured, guards: list[data.PageGuard] | None) -> data.PageProgram:
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
            (launch["kernel"], launch["parts"], *[op.name for op in self.computes(number)])
            for number, launch in enumerate(launches)
        ]
        return {
            "title": built.title,
            "signature": [str(value) for value in built.inputs],
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
        by_launch: list[tuple[int, ...]] = [()] * len(self.first_rows)
        for row in self.description.rows:
            by_launch[self.launch_of_row[row.number]] = row.ops
        return by_launch

    def computes(self, launch: int) -> list[Operation]:
        """Return the operations that a launch computes."""
        return [self.by_number[number] for number in self.ops_of_launch[launch] if number in self.by_number]

    def roots(self) -> None:
        """Add the arguments and constants that operations use."""
        used = dict.fromkeys(name for operation in self.description.ops for name in operation.inputs)
        sizes = {buffer.value: buffer for buffer in self.description.buffers}
        for number, value in enumerate(self.built.inputs):
            name = f"in{number}"
            self.root(name, "argument", value.name or f"argument {number + 1}", value.words)
        for name in used:
            if name.startswith("c") and name[1:].isdigit():
                buffer = sizes.get(name)
                is_listed = buffer is not None and buffer.place.number < len(self.built.constants)
                words = self.built.constants[buffer.place.number] if buffer is not None and is_listed else ""
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
                number, names = buffer.place.number, self.built.outputs
                name = names[number] if number < len(names) else "whether an index is out of range"
                op["output"] = f"{op['output']}, {name}" if op["output"] else name

    def launches(self, kernels: dict[str, int], measured: Measured) -> list[data.PageLaunch]:
        lines, needs = self.launch_lines(), costs(self.description, self.launch_of_row)
        rates = measured.rates.raised(needs, measured.launch_ns) if measured.rates else None
        apart: list[list[tuple[int, str, str]]] = [[] for _ in self.first_rows]
        for pair in self.description.pairs:
            writer, reader = self.launch_of_row[pair.made], self.launch_of_row[pair.read]
            apart[writer].append((reader, pair.value, pair.why))
            apart[reader].append((writer, pair.value, pair.why))
        launches: list[data.PageLaunch] = []
        purposes = {self.launch_of_row[row.number]: row.purpose for row in self.description.rows}
        for number, first in enumerate(self.first_rows):
            row, need = self.built.rows[first], needs[number]
            ns = measured.launch_ns[number] if measured.launch_ns else None
            least_ns, bound = need.least_ns(rates) if rates else (None, "")
            launches.append({
                "kernel": kernels[row.kernel], "note": purposes.get(number) or row.note, "parts": row.parts,
                "line": lines[first] if first < len(lines) else 0, "bytes": need.bytes, "flops": need.flops,
                "ns": ns, "least_ns": least_ns, "bound": bound, "apart": apart[number], "threads": row.threads,
            })  # fmt: skip
        return launches

    def kernel_lines(self) -> dict[str, int]:
        """Return the line of the emitted source on which each kernel begins."""
        matches = ((number, _DEFINED.match(line)) for number, line in enumerate(self.built.emitted))
        return {match[1]: number for number, match in matches if match}

    def launch_lines(self) -> list[int]:
        """Return the line of the emitted source on which each row is launched."""
        names = {row.kernel for row in self.built.rows}
        matches = ((number, _LAUNCHED.match(line)) for number, line in enumerate(self.built.emitted))
        return [number for number, match in matches if match and match[1] in names]

    def links(self, kernel_lines: dict[str, int], launches: list[data.PageLaunch]) -> list[list[int]]:
        """Return lists of a line of the emitted source and of the ops that it computes."""
        ops_of_line: dict[int, dict[int, None]] = {}

        def link(line: int, ops: Iterable[int]) -> None:
            ops_of_line.setdefault(line, {}).update(dict.fromkeys(ops))

        by_kernel: dict[str, list[int]] = {}
        for number, first in enumerate(self.first_rows):
            by_kernel.setdefault(self.built.rows[first].kernel, []).append(number)
        for kernel, numbers in by_kernel.items():
            start = kernel_lines.get(kernel)
            if start is None:
                continue
            is_there = self.built.emitted[start].startswith("def")
            lines = self.description.lines.get(kernel, {}) if is_there else {}
            if not lines:  # a kernel that is not emitted line by line
                link(start, [self.shown[op.number] for number in numbers for op in self.computes(number)])
            for line, ops in self.same_ops(lines, numbers).items():
                link(start + line - 1, ops)
        for number, launch in enumerate(launches):
            ops = [self.shown[op.number] for op in self.computes(number)]
            if ops and launch["line"]:
                link(launch["line"], ops)
        return [[line, *ops] for line, ops in sorted(ops_of_line.items()) if ops]

    def same_ops(self, lines: dict[int, int], launches: Sequence[int]) -> dict[int, list[int]]:
        """Return the ops of each line of a kernel in all its launches, given the ops in the first launch."""
        first = [op.number for op in self.computes(launches[0])]
        names = [op.name for op in self.computes(launches[0])]
        ops_of_line: dict[int, list[int]] = {
            line: [self.shown[op]] for line, op in lines.items() if op in self.shown
        }
        for launch in launches[1:]:
            ops = self.computes(launch)
            if [op.name for op in ops] != names:
                continue
            other = dict(zip(first, ops, strict=True))
            for line, op in lines.items():
                if op in other:
                    ops_of_line.setdefault(line, []).append(self.shown[other[op].number])
        return ops_of_line

    def arena(self) -> data.PageArena:
        values: list[data.PageValue] = []
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
            "missing": f"{left} values are not in the cache" if left else "",
        }  # fmt: skip


def _words(shape: Sequence[int], dtype: str) -> str:
    return f"{describe_shape(shape, None)} {dtype}"
