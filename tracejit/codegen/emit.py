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
from tracejit.codegen.numpy_loops import numpy_loop
from tracejit.codegen.templates import by_op, gemm
from tracejit.codegen.templates.extrema import extremum
from tracejit.ir import Node, Where
from tracejit.ops import Kind
from tracejit.ops.op import HANDLED, PythonCall, UserLoop
from tracejit.passes.loops.launches import KernelLaunch, Launch, LoopLaunch, NestLaunch, Section, Single
from tracejit.passes.loops.nest import Access
from tracejit.passes.loops.products import Product
from tracejit.passes.schedule.memory import Plan
from tracejit.program import (
    Argument,
    HostCall,
    Kernel,
    Pointer,
    Program,
    Row,
    RowLoop,
    ScalarArgument,
    Symbol,
)
from tracejit.util.text import count, printable

Origins = dict[str, dict[str, Node]]

COMMIT = "commit"


def emit(plan: Plan, inputs: Sequence[Aval], origins: Origins | None = None) -> Program:
    """Return the program of a plan.

    Args:
        plan: what to launch, on which memory.
        inputs: of the program.
        origins: filled with the nodes that names in the text come from, by kernel, in its first launch.
    """
    emission = _Emission(plan, {} if origins is None else origins)
    at = len(plan.launches) - plan.commits
    emission.run(plan.launches[:at])
    first_commit = len(emission.rows)
    emission.run(plan.launches[at:])
    rows = emission.rows
    checked = tuple(dict.fromkeys(map(op_at, plan.checked)))
    return Program(
        rows, list(inputs), plan.outputs, plan.constants, plan.arena_bytes, checked,
        written=plan.written, commits=len(rows) - first_commit, loops=tuple(emission.loops),
    )  # fmt: skip


def op_at(node: Node) -> str:
    return node.op.title if node.where is None else f"{node.op.title} at {node.where[0]}:{node.where[1]}"


def moved(start: Pointer, step_bytes: int, pointer: Pointer) -> Pointer:
    """Return a pointer of a loop's body as one of the program around.

    Args:
        start: the memory of the pointer's place in the first step.
        step_bytes: how far that moves on after each step.
        pointer: of the body.
    """
    offset = start.offset_bytes + pointer.place.offset + pointer.offset_bytes
    return Pointer(start.place, offset, pointer.dtype, (step_bytes, *pointer.steps))


class _Emission:
    def __init__(self, plan: Plan, origins: Origins) -> None:
        self.plan = plan
        self.origins = origins
        self.nests = Emissions()
        self.hosts: dict[Any, Kernel] = {}
        self.notes: dict[tuple[Node, ...], tuple[str, tuple[Where, ...]]] = {}
        self.rows: list[Row] = []
        self.loops: list[RowLoop] = []

    def run(self, launches: Sequence[Launch]) -> None:
        """Append the rows of launches."""
        for launch in launches:
            if isinstance(launch, Section):
                count, length = len(launch.tasks), len(launch.tasks[0])
                self.rows += [
                    self.row(single, i, count, length)
                    for i, task in enumerate(launch.tasks)
                    for single in task
                ]
            elif isinstance(launch, LoopLaunch):
                self.loop(launch)
            else:
                self.rows.append(self.row(launch))

    def loop(self, launch: LoopLaunch) -> None:
        """Append the rows of a loop's body, with their addresses in the memory of this program."""
        body, first = launch.body, len(self.rows)
        for name, nodes in launch.origins.items():
            self.origins.setdefault(name, nodes)
        condition = None if launch.condition is None else self.pointer(launch.condition)
        self.loops.append(RowLoop(first, first + len(body.rows), launch.most, condition))
        self.loops += [
            RowLoop(
                first + loop.first, first + loop.end, loop.most,
                None if loop.condition is None else self.moved(launch, loop.condition),
            )
            for loop in body.loops
        ]  # fmt: skip
        self.rows += [
            row._replace(
                kernel=row.kernel if row.kernel.host is None else self.host_of_body(launch, row.kernel),
                arguments=tuple(
                    [
                        self.moved(launch, argument) if isinstance(argument, Pointer) else argument
                        for argument in row.arguments
                    ]
                ),
                where=row.where or launch.where,
            )
            for row in body.rows
        ]

    def host_of_body(self, launch: LoopLaunch, kernel: Kernel) -> Kernel:
        """Return the call of a function of Python in a body under a name that nothing else has here."""
        key = id(launch.body), kernel.name
        unique = self.hosts.get(key)
        if unique is None:
            assert kernel.host is not None
            handled = kernel.host.handled or bool(self.plan.checked)
            name = f"{kernel.name.rpartition('_host_')[0]}_host_{len(self.hosts)}"
            text = kernel.text.replace(kernel.name, name)
            unique = self.hosts[key] = Kernel(name, text, kernel.host._replace(handled=handled))
        return unique

    def moved(self, launch: LoopLaunch, pointer: Pointer) -> Pointer:
        """Return a pointer of a body as one of this program, which moves on with the loop."""
        access, step_bytes = launch.memory(pointer.place)
        return moved(self.pointer(access), step_bytes, pointer)

    def row(self, launch: Single, part: int = 0, parts: int = 1, length: int = 1) -> Row:
        assert not isinstance(launch, LoopLaunch)
        if isinstance(launch, NestLaunch):
            launch = numpy_loop(launch.nest) or extremum(launch.nest) or launch
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
            op = re.sub(r"\W+", "_", node.op.name)
            name = f"{op}_host_{len(self.hosts)}"
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
    if launch.name == "transpose":
        return gemm.transpose(dtype)
    if isinstance(launch.whole, Product):
        return _product(launch, launch.whole)
    return by_op.kernel(launch) or _adapter(launch)


def _product(launch: KernelLaunch, whole: Product) -> Kernel:
    """Return the kernel of a product, or of a part of it: of all its parts, the empty ones too, it is the same."""
    dtype = launch.pointers[-1].dtype
    if launch.name == "product":
        return gemm.product(dtype, whole.m, whole.n)
    if launch.name == "panels":
        return gemm.panels(dtype)
    if launch.name == "columns":
        return gemm.columns(dtype, whole.m, whole.n, near=whole.y.column == 1)
    return gemm.dots(dtype, whole.n)


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
        f"{count(program.launches, 'launch')} of {count(len(program.kernels), 'kernel')}{_on_device(program)}; arena "
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
    parts.append(_launches(function, program, 0, at))
    if program.commits:
        parts.append(_launches(COMMIT, program, at, len(program.rows)))
    return "\n".join(parts)


def _on_device(program: Program) -> str:
    return " on a GPU" if any(row.grid is not None for row in program.rows) else ""


def _launches(function: str, program: Program, first: int, end: int) -> str:
    lines: list[str] = []
    around: list[RowLoop] = []
    threads = program.threads
    loops = [loop for loop in program.loops if first <= loop.first < end]
    for number in range(first, end):
        around = [loop for loop in around if number < loop.end]
        while loops and loops[0].first == number:
            lines += _loop_lines(loops[0], len(around))
            around.append(loops.pop(0))
        indent = " " * 4 * len(around)
        lines += [indent + line for line in _launch_lines(program.rows[number], number, threads[number])]
    return f"\ndef {function}(memory):\n" + "".join(lines or ["    pass\n"])


def _loop_lines(loop: RowLoop, depth: int) -> list[str]:
    """Return the head of a loop inside `depth` others."""
    indent = " " * 4 * (depth + 1)
    head = f"{indent}for step{depth} in range({loop.most}):\n"
    if loop.condition is None:
        return [head]
    return [head, f"{indent}    if not {_argument(loop.condition)}[0]:\n", f"{indent}        break\n"]


def _in_docstring(text: str) -> str:
    """Return the user's text, which may be any name, escaped so that it does not end the docstring."""
    return printable(text).replace("\\", "\\\\").replace('"""', '\\"\\"\\"')


def _launch_lines(row: Row, number: int, threads: str) -> list[str]:
    places = ", ".join(f"{printable(where[0])}:{where[1]}" for where in row.where if where)
    part = f", part {row.part + 1} of {row.parts}" if row.parts > 1 else ""
    what = f"{number + 1}: {row.note}, {threads}" if threads else f"{row.note}{part}"
    comment = f"    # {what}" + (f"  ({places})" if places else "")
    return [f"{comment}\n", f"    {row.kernel.name}([{', '.join(map(_argument, row.arguments))}])\n"]


def _argument(argument: Argument) -> str:
    if isinstance(argument, Pointer):
        place = argument.place
        name = "arena" if place.kind == "arena" else f"{place.kind}[{place.number}]"
        offset = str(place.offset + argument.offset_bytes)
        for depth, step in enumerate(argument.steps):
            offset += f" {'+' if step > 0 else '-'} {abs(step)} * step{depth}" if step else ""
        return f"memory({name!r}, {offset}, {str(argument.dtype)!r})"
    if isinstance(argument, ScalarArgument):
        value = argument.value.item()
        text = repr(value) if np.isfinite(value) else f"float({str(value)!r})"
        return f"{SUFFIXES[argument.dtype]}({text})"
    if isinstance(argument, Symbol):
        return f"symbol({argument.name!r})"
    return str(argument)
