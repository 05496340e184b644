# SPDX-License-Identifier: BSD-3-Clause
"""A program as JSON data, and back.

Note [programs as data]
The program that is read is the program that was written, to the bit. It is also checked: each kernel, place and size
that a row names exists, each address lies in its memory, and the number and kinds of a row's arguments are those that
the text of its kernel says. The code of a kernel decides how far it reads from an address, so a program is as trusted
as the code that comes with it.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tracejit.aval import FLOAT16, SUPPORTED_DTYPES, Aval, bits_dtype, check_format, part_dtype
from tracejit.codegen.names import NAME, named
from tracejit.errors import CodegenError, TraceJitError
from tracejit.exports.parameters import misfit, parameters
from tracejit.ops import Layout
from tracejit.program import (
    ALIGNMENT,
    Argument,
    Grid,
    Kernel,
    Place,
    Pointer,
    Program,
    Row,
    RowLoop,
    ScalarArgument,
    Symbol,
)
from tracejit.runtime import ufunc_loops

MOST_BYTES = 1 << 46  # of an array or the arena: what a CPU can address
_MOST_AXES = 64
_MOST_BLOCKS, _MOST_THREADS = (1 << 31) - 1, 1024
_WORD = 1 << 63
_SYMBOLS = ("sgemm", "dgemm")
_DTYPES = {str(dtype): dtype for dtype in (*SUPPORTED_DTYPES, FLOAT16)}
_FAULT = Aval((), None, np.dtype(np.int64))


def encoded(program: Program, constants: Sequence[str]) -> dict[str, Any]:
    """Return a program as data.

    Args:
        program: the program.
        constants: the names of its constants.
    """
    kernels = program.kernels
    numbers = {kernel: i for i, kernel in enumerate(kernels)}
    return {
        "inputs": [_aval(aval) for aval in program.inputs],
        "outputs": [_aval(aval) for aval in program.outputs],
        "constants": list(constants),
        "arena_bytes": program.arena_bytes,
        "checked": list(program.checked),
        "guard": program.guard,
        "written": list(program.written),
        "commits": program.commits,
        "by_columns": list(program.by_columns),
        "kernels": [{"name": kernel.name, "text": kernel.text} for kernel in kernels],
        "rows": [
            {
                "kernel": numbers[row.kernel],
                "arguments": [_argument(argument) for argument in row.arguments],
                "operations": row.note,
                "where": [list(where) for where in row.where if where],
                "part": [row.part, row.parts, row.length],
                **({"grid": [*row.grid], "needs": list(row.needs)} if row.grid is not None else {}),
            }
            for row in program.rows
        ],
        "loops": [
            [loop.first, loop.end, loop.most, None if loop.condition is None else _argument(loop.condition)]
            for loop in program.loops
        ],
    }


def _aval(aval: Aval) -> list[Any]:
    return [list(aval.shape), aval.format, str(aval.dtype)]


def _argument(argument: Argument) -> Any:
    if isinstance(argument, Pointer):
        place = argument.place
        steps = [list(argument.steps)] if any(argument.steps) else []
        return [place.kind, place.number, place.offset, argument.offset_bytes, str(argument.dtype), *steps]
    if isinstance(argument, ScalarArgument):
        return ["number", str(argument.dtype), np.asarray(argument.value, argument.dtype).tobytes().hex()]
    if isinstance(argument, Symbol):
        return ["symbol", argument.name]
    return argument


def decoded(data: Any, constants: Mapping[str, np.ndarray], layouts: Sequence[Layout | None] = ()) -> Program:
    """Return the program in `data`.

    Args:
        data: as encoded() returned it.
        constants: arrays by the names of constants.
        layouts: of the inputs, None or absent for contiguous ones.

    Raises:
        CodegenError: if a part of it does not fit.
    """
    try:
        return _Reader(data, constants, layouts).program()
    except CodegenError:
        raise
    except (
        TraceJitError,
        ValueError,
        TypeError,
        KeyError,
        IndexError,
        OverflowError,
        RecursionError,
    ) as error:
        raise CodegenError(
            f"a program is not what was written ({type(error).__name__}: {error!s:.80})"
        ) from error


def _wrong(what: str) -> CodegenError:
    return CodegenError(f"a program is not what was written: {what}")


def _check(holds: bool, what: str) -> None:
    if not holds:
        raise _wrong(what)


def whole(value: Any, least: int, most: int, what: str) -> int:
    """Return an integer from `least` to `most`.

    Raises:
        CodegenError: for any other value; `what` names it in the message.
    """
    if type(value) is not int or not least <= value <= most:
        raise _wrong(f"{what} is {value!r:.40}")
    return value


def aval_of(data: Any, what: str) -> Aval:
    """Return the aval in `data`.

    Raises:
        CodegenError: if there is none; `what` names it in the message.
    """
    shape, format, dtype = data
    _check(isinstance(shape, list) and len(shape) <= _MOST_AXES, f"the shape of {what} is {shape!r:.40}")
    sizes = tuple([whole(size, 0, MOST_BYTES, f"a size of {what}") for size in shape])
    aval = Aval(sizes, check_format(what, format, len(sizes)), dtype_of(dtype, what))
    _check(aval.size * aval.dtype.itemsize <= MOST_BYTES, f"{what} has {aval.size} elements")
    return aval


def dtype_of(name: Any, what: str) -> np.dtype:
    """Return the supported dtype of a name.

    Raises:
        CodegenError: if there is none; `what` names the array in the message.
    """
    dtype = _DTYPES.get(name)
    if dtype is None:
        raise _wrong(f"the dtype of {what} is {name!r:.40}")
    return dtype


class _Reader:
    def __init__(
        self, data: Any, constants: Mapping[str, np.ndarray], layouts: Sequence[Layout | None]
    ) -> None:
        self.data = data
        self.inputs = [aval_of(aval, f"input {i}") for i, aval in enumerate(data["inputs"])]
        self.outputs = [aval_of(aval, f"output {i}") for i, aval in enumerate(data["outputs"])]
        self.constants = [constants[name] for name in data["constants"]]
        self.arena_bytes = whole(data["arena_bytes"], 0, MOST_BYTES, "the size of the arena")
        self.checked = tuple([_text(name, "a checked operation") for name in data["checked"]])
        self.kernels = [self.kernel(kernel) for kernel in data["kernels"]]
        self.parameters = [parameters(kernel) for kernel in self.kernels]
        last = len(self.inputs) - 1
        self.around: list[int] = []  # the steps of the loops around what is read
        self.written = [whole(number, 0, last, "the number of a written input") for number in data["written"]]
        _check(len(set(self.kernels)) == len(self.kernels), "two kernels are the same")
        _check(len(layouts) <= len(self.inputs), f"it has {len(self.inputs)} inputs, not {len(layouts)}")
        self.places: dict[str, list[tuple[int, int, np.dtype]]] = {
            "input": [
                (*_reach(aval, layouts[i] if i < len(layouts) else None), aval.dtype)
                for i, aval in enumerate(self.inputs)
            ],
            "output": [
                (*_reach(aval), aval.dtype) for aval in (*self.outputs, *([_FAULT] if self.checked else []))
            ],
            "constant": [(0, array.nbytes, array.dtype) for array in self.constants],
            "arena": [(0, self.arena_bytes, np.dtype(np.uint8))],
        }

    def program(self) -> Program:
        guard = self.data["guard"]
        if guard is not None:
            whole(guard, 0, len(self.outputs) - 1, "the number of the guard")
            aval = self.outputs[guard]
            _check(aval.shape == () and aval.dtype.kind == "b", f"the guard is {aval}")
        loops = self.loops(len(self.data["rows"]))
        rows = []
        for i, row in enumerate(self.data["rows"]):
            self.around = [loop.most for loop in loops if loop.first <= i < loop.end]
            rows.append(self.row(row, i))
        first = end = 0
        for i, row in enumerate(rows):  # parts follow each other, each with all of its rows
            if i == end:
                first, end = i, i + row.parts * row.length
            parts, length = rows[first].parts, rows[first].length
            follows = (row.part, row.parts, row.length) == ((i - first) // length, parts, length)
            _check(follows, f"row {i} is part {row.part} of {row.parts}")
        _check(end == len(rows), "the last launch lacks parts")
        commits = whole(self.data["commits"], 0, len(rows), "the number of commits")
        _check(commits == 0 or rows[-commits].part == 0, f"row {len(rows) - commits} begins no launch")
        most = len(self.outputs) - 1
        columns = self.data.get("by_columns", ())  # programs that are older lack it
        by_columns = [whole(number, 0, most, "the number of an output by columns") for number in columns]
        return Program(
            rows, self.inputs, self.outputs, self.constants, self.arena_bytes, self.checked, guard,
            tuple(self.written), commits, loops=tuple(loops), by_columns=tuple(by_columns),
        )  # fmt: skip

    def loops(self, rows: int) -> list[RowLoop]:
        """Return the loops, each inside the ones before it that it does not follow."""
        found: list[RowLoop] = []
        for number, (first, end, most, condition) in enumerate(self.data["loops"]):
            what = f"a row of loop {number}"
            whole(first, found[-1].first if found else 0, rows - 1, what)
            whole(end, first + 1, rows, what)
            whole(most, 1, _WORD - 1, f"the steps of loop {number}")
            around = [loop for loop in found if first < loop.end]
            _check(all(end <= loop.end for loop in around), f"loop {number} leaves a loop")
            self.around = [loop.most for loop in around]
            pointer = None if condition is None else self.argument(condition, first)
            is_bool = pointer is None or (isinstance(pointer, Pointer) and pointer.dtype.kind == "b")
            _check(is_bool, f"the condition of loop {number} is {condition!r:.40}")
            found.append(RowLoop(first, end, most, pointer))  # type: ignore[arg-type]
        return found

    def kernel(self, data: Any) -> Kernel:
        name, text = _text(data["name"], "the name of a kernel"), _text(data["text"], "the text of a kernel")
        _check(is_kernel(name, text), f"the text of kernel {name:.40} does not have the hash in its name")
        return Kernel(name, text)

    def row(self, data: Any, number: int) -> Row:
        choice = whole(data["kernel"], 0, len(self.kernels) - 1, f"the kernel of row {number}")
        arguments = tuple([self.argument(argument, number) for argument in data["arguments"]])
        wrong = misfit(self.parameters[choice], arguments, self.written)
        if wrong is not None:
            raise _wrong(f"row {number} has {wrong}")
        part, parts, length = data["part"]
        whole(parts, 1, _WORD - 1, f"the parts of row {number}")
        whole(length, 1, _WORD - 1, f"the rows of a part of row {number}")
        return Row(
            self.kernels[choice],
            arguments,
            _text(data["operations"], f"what row {number} does"),
            tuple([(_text(file, "a file"), whole(line, 0, _WORD, "a line")) for file, line in data["where"]]),
            whole(part, 0, parts - 1, f"the part of row {number}"),
            parts,
            length,
            *self.threads(data, number),
        )

    def threads(self, data: Any, number: int) -> tuple[Grid | None, tuple[int, ...]]:
        """Return the threads of a device that run a row, and the rows that it needs."""
        if "grid" not in data:
            return None, ()
        blocks, threads = data["grid"]
        whole(blocks, 1, _MOST_BLOCKS, f"the blocks of row {number}")
        whole(threads, 1, _MOST_THREADS, f"the threads of row {number}")
        needs = [whole(other, 0, number - 1, f"a row before row {number}") for other in data["needs"]]
        return Grid(blocks, threads), tuple(needs)

    def argument(self, data: Any, row: int) -> Argument:
        # Messages are composed only on failure: there are many arguments.
        if type(data) is int:
            if not -_WORD <= data < _WORD:
                raise _wrong(f"a number of row {row} is {data!r:.40}")
            return data
        kind = data[0] if isinstance(data, list) else "number"
        if kind == "symbol":
            _, name = data
            if name not in _SYMBOLS and not (isinstance(name, str) and ufunc_loops.NAME.fullmatch(name)):
                raise _wrong(f"row {row} calls {name!r:.40}")
            return Symbol(name)
        if kind == "number":
            if not isinstance(data, list):
                raise _wrong(f"a number of row {row} is {data!r:.40}")
            _, dtype_name, digits = data
            dtype = dtype_of(dtype_name, f"a number of row {row}")
            content = bytes.fromhex(digits)
            if len(content) != dtype.itemsize:
                raise _wrong(f"a number of row {row} has {len(content)} bytes")
            return ScalarArgument(np.frombuffer(content, dtype)[0], dtype)
        return self.pointer(data, row)

    def pointer(self, data: list[Any], row: int) -> Pointer:
        what = f"a place of row {row}"
        kind, number, start, offset, dtype_name, *more = data
        steps = self.steps(more, what)
        places = self.places.get(kind)
        if places is None:
            raise _wrong(f"{what} is {kind!r:.40}")
        dtype = _DTYPES.get(dtype_name)
        if dtype is None:
            raise _wrong(f"the dtype of {what} is {dtype_name!r:.40}")
        if type(number) is not int or not 0 <= number < len(places):
            raise _wrong(f"the {kind} of row {row} is {number!r:.40}")
        whole(start, 0, MOST_BYTES, what)
        whole(offset, -MOST_BYTES, MOST_BYTES, what)
        low, high, own_dtype = places[number]
        if kind == "arena":
            if start % ALIGNMENT:
                raise _wrong(f"{what} begins at {start} of the arena")
        elif start or dtype not in (
            own_dtype,
            part_dtype(own_dtype),
            bits_dtype(own_dtype),
        ):  # or parts of numbers
            raise _wrong(
                f"{what} is {dtype} at byte {start} of {kind} {number}, expected {own_dtype} at byte 0"
            )
        at = start + offset
        for step, most in zip(steps, self.around, strict=False):
            _check(low <= at + step * (most - 1) < high or not step, f"{what} moves on by {step} bytes")
        # An array without elements may be pointed to. An arena that holds something is never empty.
        inside = low <= at < high or (low == high == at and kind != "arena")
        if not inside or offset % dtype.itemsize:
            raise _wrong(f"{what} is byte {at} of {low} to {high} ({kind})")
        return Pointer(Place(kind, number, start), offset, dtype, steps)

    def steps(self, more: list[Any], what: str) -> tuple[int, ...]:
        """Return by how much an address moves on in the loops around."""
        if not more:
            return ()
        (steps,) = more
        _check(isinstance(steps, list) and len(steps) <= len(self.around), f"{what} moves on without a loop")
        return tuple([whole(step, -MOST_BYTES, MOST_BYTES, f"a step of {what}") for step in steps])


def is_kernel(name: str, text: str) -> bool:
    """Return whether a kernel's name is the hash of its text."""
    return named(text.replace(name, NAME), name.rpartition("_")[0]).name == name


def _reach(aval: Aval, layout: Layout | None = None) -> tuple[int, int]:
    """Return the first byte of an array, counted from its first element, and the one after its last."""
    if layout is None:
        return 0, aval.size * aval.dtype.itemsize
    steps = [(size - 1) * stride for size, stride in zip(layout.shape, layout.strides, strict=True)]
    low, high = (sum(sign * max(0, sign * step) for step in steps) for sign in (-1, 1))
    return low * aval.dtype.itemsize, (high + 1) * aval.dtype.itemsize


def _text(value: Any, what: str) -> str:
    _check(isinstance(value, str), f"{what} is {value!r:.40}")
    return value  # type: ignore[no-any-return]
