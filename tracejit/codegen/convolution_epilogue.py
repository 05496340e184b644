# SPDX-License-Identifier: BSD-3-Clause
"""Emission of a convolution with an epilogue: a loop whose lines run on each tile before it is stored.

See Note [epilogues of convolutions] in passes/loops/convolution_epilogues.py.
"""

import math

from tracejit.codegen.loop_order import LoopOrder
from tracejit.codegen.names import SUFFIXES
from tracejit.codegen.nest import Argument, Emitted, Frame, Hoisted, NestEmitter, stem
from tracejit.codegen.target import vector_bytes
from tracejit.codegen.templates import convolution, convolution_laid_out
from tracejit.codegen.templates.convolution import WINDOWS_ARGUMENTS
from tracejit.codegen.templates.kernel_text import Finish
from tracejit.passes.loops.launches import KernelLaunch
from tracejit.passes.loops.nest import Load, Nest, Store


def emit_convolution(launch: KernelLaunch) -> Emitted:
    """Return the kernel of a convolution with an epilogue, and the arguments to launch it with."""
    assert launch.epilogue is not None
    nest, result = launch.epilogue
    filters = dict(zip(WINDOWS_ARGUMENTS, launch.numbers, strict=True))["filters"]
    lanes = vector_bytes() // nest.writes[0].dtype.itemsize
    is_by_window = launch.name == "windows"
    if is_by_window:
        kernel, width = convolution.kernel, convolution.tile_width(filters, lanes)
    else:
        kernel = convolution_laid_out.kernel
        width = convolution_laid_out.tile_width(convolution_laid_out.tile_height(filters, lanes), lanes)
    emitter = _TileEmitter(nest, result, width, is_by_window)
    finish = emitter.finish()
    operands = [access for k, access in enumerate(nest.reads) if k != result]
    numbers = [number for _, number in emitter.numbers.arguments]
    arguments: list[Argument] = [
        *launch.numbers,
        *launch.pointers[:-1],
        *operands,
        *nest.writes,
        *numbers,
    ]
    return Emitted(kernel(launch, finish), arguments, emitter.values.origins)


class _TileEmitter(NestEmitter):
    """The writer of the lines of a nest for a tile, whose rows are windows of several filters, or filters."""

    def __init__(self, nest: Nest, result: int, width: int, is_by_window: bool) -> None:
        axes = tuple(range(len(nest.extents)))
        order = LoopOrder((math.prod(nest.extents),), None, (axes,), width)
        super().__init__(nest, order, Frame(order))
        self.result = result
        self.is_by_window = is_by_window
        self.kind = f"{SUFFIXES[nest.writes[0].dtype]}x{width}"

    def finish(self) -> Finish:
        """Return the lines, and what they need."""
        outer: list[str] = [f"few = min({self.order.lanes}, filters - j)"] if self.is_by_window else []
        row: list[str] = [] if self.is_by_window else ["channel = g * filters + j + ROW"]
        self.emit_lines(self.nest.full[0], 1, row, {0: outer})
        pointers = tuple([f"p{k}" for k in range(len(self.nest.reads)) if k != self.result])
        constants = tuple(
            [
                f"{name} = number_{SUFFIXES[number.dtype]}(args[{{}}])"
                for name, number in self.numbers.arguments
            ]
        )
        return Finish(stem(self.nest), pointers, constants, tuple(outer), tuple(row))

    def emit_load(self, line: Load, depth: int, out: list[str], hoisted: Hoisted) -> None:
        pointer = f"p{line.read}"
        if line.read == self.result:
            out.append(f"{self.define(line.result, False, True)} = tile[ROW]")
        elif not any(self.nest.reads[line.read].strides):
            hoisted[0].append(f"{self.define(line.result, False, False)} = {pointer}[0]")
        elif self.is_by_window:
            name = self.define(line.result, False, True)
            hoisted[0].append(f"{name} = load_first_{self.kind}({pointer}, g * filters + j, few)")
        else:
            out.append(f"{self.define(line.result, False, False)} = {pointer}[channel]")

    def emit_store(self, line: Store, out: list[str]) -> None:
        value = self.operand(line.value)
        out.append(f"doneROW = {self.widened(value, self.nest.writes[line.write].dtype)}")
