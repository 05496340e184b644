# SPDX-License-Identifier: BSD-3-Clause
"""Emission of hand-written kernels for a device.

Some kernels have a text of their own for a device, in other files of this folder. For the others, each thread runs a
part: a kernel of kernels/loops says how its work can be cut (Cut, RangeCut), or its operands hold as many rows as its
first integer says (_OF_ROWS), and its integers are those of a part. Where the integers grow by the same steps from part
to part, a thread computes those of its own part. A kernel that cannot be cut runs on one thread.
"""

import math
from collections.abc import Callable, Mapping, Sequence

from tracejit.codegen.device.attention import emit_attention
from tracejit.codegen.device.convolution import emit_convolution
from tracejit.codegen.device.ctc import emit_ctc
from tracejit.codegen.device.elements import emit_elements
from tracejit.codegen.device.first_places import emit_first_places
from tracejit.codegen.device.fourier import emit_fourier
from tracejit.codegen.device.recurrent import emit_recurrent
from tracejit.codegen.names import INDENT, NAME, SUFFIXES, named
from tracejit.codegen.nest import Argument, Emitted
from tracejit.errors import CodegenError
from tracejit.ops import Kind
from tracejit.ops.op import Cut, RangeCut
from tracejit.passes.loops.launches import KernelLaunch
from tracejit.passes.loops.nest import Access
from tracejit.passes.loops.spread import BLOCK, blocks_of
from tracejit.program import Grid
from tracejit.util.named_tuples import NamedTuple

ALONE_GRID = Grid(1, 1)

_TEXTS: Mapping[str, Callable[[KernelLaunch], list[tuple[Emitted, Grid]]]] = {
    "attention_forward": emit_attention,
    "attention_backward": emit_attention,
    "convolution": emit_convolution,
    "convolution_bias": emit_convolution,
    "convolution_input": emit_convolution,
    "convolution_weights": emit_convolution,
    "ctc_forward": emit_ctc,
    "ctc_backward": emit_ctc,
    "fft_lines": emit_fourier,
    "gru_forward": emit_recurrent,
    "gru_backward": emit_recurrent,
    "lstm_forward": emit_recurrent,
    "lstm_backward": emit_recurrent,
    "rnn_forward": emit_recurrent,
    "rnn_backward": emit_recurrent,
}
"""Those that write the kernels that are text, by the name of a launch."""

_Sizes = Callable[[Sequence[int]], tuple[int, ...]]


def _matrices(*sizes: str) -> _Sizes:
    """Return a function of a kernel's integers: the elements of one matrix, or vector, of each pointer.

    A size such as "nk" names the integers that are multiplied: count n k, or count m n in kernels with an m.
    """
    has_m = any("m" in size for size in sizes)

    def of(numbers: Sequence[int]) -> tuple[int, ...]:
        known = dict(zip("mn" if has_m else "nk", numbers[1:], strict=False))
        return tuple([math.prod([known[name] for name in size]) for size in sizes])

    return of


_OF_ROWS: Mapping[str, _Sizes] = {
    "cholesky": _matrices("nn", "nn", "n", "nn"),
    "cholesky_columns": _matrices("nn", "nn"),
    "cummax": lambda numbers: (numbers[1] * numbers[2],) * 3,
    "cummin": lambda numbers: (numbers[1] * numbers[2],) * 3,
    "eigh": _matrices("nn", "n", "nn", "nn"),
    "first_of_pieces": lambda numbers: (numbers[1], numbers[1], 1, 1),
    "first_place": lambda numbers: (numbers[1] * numbers[2], numbers[2], numbers[2]),
    "lu": _matrices("nn", "nn", "n"),
    "lu_logdet": _matrices("nn", "nn", "n", "n", "", ""),
    "lu_solve": _matrices("nn", "nn", "n", "nk", "nk"),
    "lu_solve_vector": _matrices("nn", "nn", "n", "nk", "nk"),
    "solve_triangular": _matrices("nn", "nk", "nk"),
    "svd": _matrices("mn", "mn", "n", "nn", "mn", "n", "nn"),
    "svd_columns": _matrices("mn", "mn", "n", "nn"),
}
"""Kernels whose first integer counts rows, or matrices, and the elements that each pointer has of one."""


def is_text(launch: KernelLaunch) -> bool:
    """Return whether the kernel of a launch is text of its own, with indices of 32 bits."""
    return launch.name in _TEXTS


class _Parts(NamedTuple):
    """Equal parts of the work of a launch.

    total       how many there are
    numbers     the integers of the first part
    steps       by how much each of them grows from part to part
    moved       how many elements lie between what a pointer leads to in two parts; empty for pointers that stay
    """

    total: int
    numbers: tuple[int, ...]
    steps: tuple[int, ...]
    moved: tuple[int, ...] = ()


def emit_kernel(launch: KernelLaunch) -> list[tuple[Emitted, Grid]]:
    """Return kernels that call a function of kernels/ on the parts of its work, with their arguments and threads.

    Raises:
        CodegenError: if the function is one of the CPU's alone.
    """
    if launch.symbol is not None or launch.epilogue is not None:
        raise CodegenError(f"{launch.name}: a kernel of the CPU cannot run on a device.")
    if launch.node is not None and launch.node.op.kind is Kind.HOST:
        raise CodegenError(f"{launch.name}: a function of Python cannot run on a device.")
    writer = _TEXTS.get(launch.name)
    if writer is not None:
        return writer(launch)
    if launch.name == "first_places":
        return [emit_first_places(launch)]
    of_elements = emit_elements(launch)
    if of_elements is not None:
        return of_elements
    return [_emit_parts(launch._replace(pointers=pointers), parts) for parts, pointers in _divided(launch)]


def _emit_parts(launch: KernelLaunch, parts: _Parts) -> tuple[Emitted, Grid]:
    call: list[str] = []
    arguments: list[Argument] = []

    def argument(value: Argument) -> str:
        arguments.append(value)
        return f"args[{len(arguments) - 1}]"

    is_alone = parts.total == 1
    lines = (
        ["if thread() == 0:"] if is_alone else ["part = thread()", f"while part < {argument(parts.total)}:"]
    )
    for number, step in zip(parts.numbers, parts.steps, strict=True):
        text = argument(number)
        call.append(f"{text} + part * {argument(step)}" if step and not is_alone else text)
    reads = len(launch.pointers) - launch.written
    for i, access in enumerate(launch.pointers):
        place = argument(access)
        if parts.moved and parts.moved[i] and not is_alone:
            place = f"{place} + part * {argument(parts.moved[i] * access.dtype.itemsize)}"
        suffix = SUFFIXES[access.dtype]
        call.append(f"read_{suffix}({place})" if i < reads else f"write_{suffix}({place}, {i - reads})")
    lines += [f"{INDENT}{launch.name}(", *[f"{INDENT * 2}{text}," for text in call], f"{INDENT})"]
    if not is_alone:
        lines.append(f"{INDENT}part = index(part + threads())")
    text = "\n".join([f"def {NAME}(args):", *[INDENT + line for line in lines]]) + "\n"
    grid = ALONE_GRID if is_alone else Grid(blocks_of(parts.total), BLOCK)
    return Emitted(named(text, launch.name), arguments, {}), grid


def _divided(launch: KernelLaunch) -> list[tuple[_Parts, tuple[Access, ...]]]:
    """Return the work of a launch in equal parts, with its pointers; what is left over is a part by itself."""
    whole, numbers, pointers = launch.whole, launch.numbers, launch.pointers
    if launch.name in _OF_ROWS and numbers[0] > 1:
        moved = _OF_ROWS[launch.name](numbers)
        assert len(moved) == len(pointers), launch.name
        return [(_Parts(numbers[0], (1, *numbers[1:]), (0,) * len(numbers), moved), pointers)]
    if launch.name == "searchsorted" and numbers[1] > 1:
        n, m, right = numbers
        return [(_Parts(m, (n, 1, right), (0,) * len(numbers), (0, 1, 1)), pointers)]
    alone = _Parts(1, numbers, (0,) * len(numbers))
    if isinstance(whole, RangeCut):
        rows = whole.rows(numbers)
        if rows > 1:
            return [(_Parts(rows, (0, 1, *numbers[2:]), (1, 1, *(0,) * len(numbers[2:]))), pointers)]
    if isinstance(whole, Cut):
        *read, out = pointers
        size = out.root.aval.size
        count = size // whole.unit
        first, *others = [
            tuple(whole.numbers(numbers, part * whole.unit, (part + 1) * whole.unit)) for part in range(count)
        ] or [()]
        steps = tuple([b - a for a, b in zip(first, others[0], strict=True)]) if others else ()
        is_even = all(
            part == tuple([a + number * step for a, step in zip(first, steps, strict=True)])
            for number, part in enumerate(others, 1)
        )
        if others and is_even:
            divided = [(_Parts(count, first, steps, (*[0] * len(read), whole.unit)), pointers)]
            start = count * whole.unit
            if start < size:
                rest = tuple(whole.numbers(numbers, start, size))
                divided.append((_Parts(1, rest, (0,) * len(rest)), (*read, out.moved(start))))
            return divided
    return [(alone, pointers)]
