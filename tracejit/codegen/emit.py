# SPDX-License-Identifier: BSD-3-Clause
"""emit: a Plan becomes a Program, and a Program becomes one readable Python module."""

import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from tracejit.aval import Aval
from tracejit.codegen.memo import Emissions
from tracejit.codegen.names import NAME, SUFFIXES, named
from tracejit.codegen.templates import by_op, gemm
from tracejit.ir import Node, Where
from tracejit.ops import Kind
from tracejit.ops.op import HANDLED, PythonCall, UserLoop
from tracejit.passes.loops.launches import KernelLaunch, Launch, Section, Single
from tracejit.passes.loops.nest import Access
from tracejit.passes.schedule.memory import Plan
from tracejit.program import Argument, HostCall, Kernel, Pointer, Program, Row, ScalarArgument, Symbol
from tracejit.util.text import count, printable

Origins = dict[str, dict[str, Node]]

COMMIT = "commit"
_NO_NAME = re.compile(r"\W+")


def emit(plan: Plan, inputs: Sequence[Aval], origins: Origins | None = None) -> Program:
    """Return the program of a plan.

    Args:
        plan: what to launch, on which memory.
        inputs: of the program.
        origins: filled with the nodes that names in the text come from, by kernel, in its first launch.
    """
    emission = _Emission(plan, {} if origins is None else origins)
    at = len(plan.launches) - plan.commits
    rows, commits = emission.run(plan.launches[:at]), emission.run(plan.launches[at:])
    checked = tuple(dict.fromkeys(map(op_at, plan.checked)))
    return Program(
        rows + commits, list(inputs), plan.outputs, plan.constants, plan.arena_bytes, checked,
        written=plan.written, commits=len(commits),
    )  # fmt: skip


def op_at(node: Node) -> str:
    return node.op.name if node.where is None else f"{node.op.name} at {node.where[0]}:{node.where[1]}"


class _Emission:
    def __init__(self, plan: Plan, origins: Origins) -> None:
        self.plan = plan
        self.origins = origins
        self.nests = Emissions()
        self.hosts: dict[Any, Kernel] = {}
        self.notes: dict[tuple[Node, ...], tuple[str, tuple[Where, ...]]] = {}

    def run(self, launches: Sequence[Launch]) -> list[Row]:
        """Return the rows of launches."""
        rows: list[Row] = []
        for launch in launches:
            if isinstance(launch, Section):
                count, length = len(launch.tasks), len(launch.tasks[0])
                rows += [
                    self.row(single, i, count, length)
                    for i, task in enumerate(launch.tasks)
                    for single in task
                ]
            else:
                rows.append(self.row(launch))
        return rows

    def row(self, launch: Single, part: int = 0, parts: int = 1, length: int = 1) -> Row:
        if isinstance(launch, KernelLaunch) and launch.epilogue is None:
            node = launch.node
            is_host = node is not None and node.op.kind is Kind.HOST
            kernel = self.host(node) if is_host and node is not None else _kernel(launch)
            arguments: list[Argument] = [] if launch.symbol is None else [Symbol(launch.symbol)]
            arguments += launch.numbers
            arguments += map(self.pointer, launch.pointers)
        else:
            emitted = self.nests.emit(launch)
            kernel = emitted.kernel
            self.origins.setdefault(kernel.name, emitted.origins)
            arguments = [self.pointer(a) if isinstance(a, Access) else a for a in emitted.arguments]
        note, where = self.note(tuple(launch.nodes))
        return Row(
            kernel, tuple(arguments), note or kernel.name.partition("_")[0], where, part, parts, length
        )

    def host(self, node: Node) -> Kernel:
        """Return what a row that calls a function of Python has for a kernel; equal calls have the same."""
        inputs, outputs = [tuple(v.aval for v in values) for values in (node.inputs, node.outputs)]
        key = node.op, str(node.params), inputs
        kernel = self.hosts.get(key)
        if kernel is None:
            name = f"{_NO_NAME.sub('_', node.op.name)}_host_{len(self.hosts)}"
            text = f"def {name}(args):\n    call_python({name!r}, args)\n"
            emission = node.op.emit
            function = emission.function if isinstance(emission, PythonCall) else node.op.numpy
            params = {name: value for name, value in node.params.items() if name != HANDLED}
            # After an index out of range the function may get anything.
            handled = HANDLED in node.params or bool(self.plan.checked)
            function = partial(function, **params) if params else function
            kernel = self.hosts[key] = Kernel(name, text, HostCall(function, inputs, outputs, handled))
        return kernel

    def note(self, nodes: tuple[Node, ...]) -> tuple[str, tuple[Where, ...]]:
        """Return the names of operations, and the user's lines that they come from."""
        note = self.notes.get(nodes)
        if note is None:
            where = tuple(dict.fromkeys(node.where for node in nodes if node.where))
            note = self.notes[nodes] = ", ".join([node.op.name for node in nodes]), where
        return note

    def pointer(self, access: Access) -> Pointer:
        root, offset, _, dtype = access
        return Pointer(self.plan.places[root], offset * dtype.itemsize, dtype)


def _kernel(launch: KernelLaunch) -> Kernel:
    if (
        launch.node is not None
        and isinstance(launch.node.op.emit, UserLoop)
        and launch.name == launch.node.op.name
    ):
        return named(launch.node.op.emit.text, launch.name)
    dtype = launch.pointers[-1].dtype
    if launch.name == "product":
        _, m, n, *_ = launch.numbers
        return gemm.product(dtype, m, n)
    if launch.name == "panels":
        return gemm.panels(dtype)
    if launch.name == "columns":
        _, m, n, *_ = launch.numbers
        return gemm.columns(dtype, m, n, near=launch.numbers[8] == 1)
    if launch.name == "dots":
        return gemm.dots(dtype, launch.numbers[2])
    if launch.name == "transpose":
        return gemm.transpose(dtype)
    return by_op.kernel(launch) or _adapter(launch)


def _adapter(launch: KernelLaunch) -> Kernel:
    """Return a kernel that calls a hand-written function with the arguments of the launch."""
    arguments = [f"args[{i}]" for i in range(len(launch.numbers) + (launch.symbol is not None))]
    reads = len(launch.pointers) - launch.written
    for i, access in enumerate(launch.pointers):
        suffix = SUFFIXES[access.dtype]
        place = f"args[{len(arguments)}]"
        if launch.name == "gemm":
            arguments.append(place)  # BLAS takes plain addresses
            continue
        arguments.append(f"read_{suffix}({place})" if i < reads else f"write_{suffix}({place}, {i - reads})")
    lines = "".join(f"        {argument},\n" for argument in arguments)
    function = f"gemm_{suffix}" if launch.name == "gemm" else launch.name
    return named(f"def {NAME}(args):\n    {function}(\n{lines}    )\n", launch.name)


def module_source(
    program: Program, title: str, function: str = "forward", texts: Mapping[str, str] | None = None
) -> str:
    """Return a program as the text of a Python module: its kernels, then `function`, which launches them.

    A function COMMIT has the launches that run only where the results count.

    The text runs unchanged in a namespace that defines the functions that it calls, as tracejit.runtime.python does.
    `texts` replaces the text of kernels, by name.
    """
    parts = [
        f'"""{_in_docstring(title)}\n\n'
        f"{count(program.launches, 'launch')} of {count(len(program.kernels), 'kernel')}; arena "
        f"{program.arena_bytes} bytes.\n"
        + "".join(
            f"input[{i}]: {aval}{', written' if i in program.written else ''}\n"
            for i, aval in enumerate(program.inputs)
        )
        + "".join(f"output[{i}]: {aval}\n" for i, aval in enumerate(program.outputs))
        + '"""\n'
    ]
    parts += ["\n" + (texts or {}).get(kernel.name, kernel.text) for kernel in program.kernels]
    at = len(program.rows) - program.commits
    parts.append(_launches(function, program.rows[:at]))
    if program.commits:
        parts.append(_launches(COMMIT, program.rows[at:]))
    return "\n".join(parts)


def _launches(function: str, rows: Sequence[Row]) -> str:
    body = [_launch_line(row) for row in rows] or ["    pass\n"]
    return f"\ndef {function}(memory):\n" + "".join(body)


def _in_docstring(text: str) -> str:
    """Return the user's text, which may be any name, escaped so that it does not end the docstring."""
    return printable(text).replace("\\", "\\\\").replace('"""', '\\"\\"\\"')


def _launch_line(row: Row) -> str:
    places = ", ".join(f"{printable(where[0])}:{where[1]}" for where in row.where if where)
    part = f", part {row.part + 1} of {row.parts}" if row.parts > 1 else ""
    comment = f"    # {row.note}{part}" + (f"  ({places})" if places else "")
    return f"{comment}\n    {row.kernel.name}([{', '.join(map(_argument, row.arguments))}])\n"


def _argument(argument: Argument) -> str:
    if isinstance(argument, Pointer):
        place = argument.place
        name = "arena" if place.kind == "arena" else f"{place.kind}[{place.number}]"
        offset = place.offset + argument.offset_bytes
        return f"memory({name!r}, {offset}, {str(argument.dtype)!r})"
    if isinstance(argument, ScalarArgument):
        value = argument.value.item()
        text = repr(value) if np.isfinite(value) else f"float({str(value)!r})"
        return f"{SUFFIXES[argument.dtype]}({text})"
    if isinstance(argument, Symbol):
        return f"symbol({argument.name!r})"
    return str(argument)
