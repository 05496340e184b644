# SPDX-License-Identifier: BSD-3-Clause
"""Emission of a convolution with an epilogue: a loop whose lines run on each tile before it is stored.

See Note [epilogues of convolutions] in passes/loops/convolution_epilogues.py.
"""

import math
from collections.abc import Callable

import numpy as np

from tracejit.codegen.loop_order import LoopOrder
from tracejit.codegen.names import SUFFIXES
from tracejit.codegen.nest import Argument, Emitted, Frame, Hoisted, NestEmitter, stem
from tracejit.codegen.target import vector_bytes
from tracejit.codegen.templates import convolution, convolution_laid_out, winograd
from tracejit.codegen.templates.convolution import GEOMETRY
from tracejit.codegen.templates.kernel_text import Finish
from tracejit.codegen.templates.tile_text import lanes_of
from tracejit.passes.loops.launches import KernelLaunch
from tracejit.passes.loops.nest import Load, Nest, Store
from tracejit.program import Kernel


def emit_convolution(launch: KernelLaunch) -> Emitted:
    """Return the kernel of a convolution with an epilogue, and the arguments to launch it with."""
    assert launch.epilogue is not None
    nest, result = launch.epilogue
    filters = dict(zip(GEOMETRY, launch.numbers, strict=False))["filters"]
    kernel, width, first_filter = _kernel(launch.name, filters, nest.writes[0].dtype)
    emitter = _TileEmitter(nest, result, width, first_filter)
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


def _kernel(name: str, filters: int, dtype: np.dtype) -> tuple[Callable[..., Kernel], int, str]:
    """Return the function that writes a kernel, the width of its tiles, and the name of the first filter of a tile's
    rows, "" if each row is a filter."""
    lanes = vector_bytes() // dtype.itemsize
    if name == "winograd":
        return winograd.kernel, lanes_of(dtype), "f"
    if name == "windows":
        return convolution.kernel, convolution.tile_width(filters, lanes), "j"
    height = convolution_laid_out.tile_height(filters, lanes)
    return convolution_laid_out.kernel, convolution_laid_out.tile_width(height, lanes), ""


class _TileEmitter(NestEmitter):
    """The writer of the lines of a nest for a tile, whose rows are windows of several filters, or filters."""

    def __init__(self, nest: Nest, result: int, width: int, first_filter: str) -> None:
        axes = tuple(range(len(nest.extents)))
        order = LoopOrder((math.prod(nest.extents),), None, (axes,), width)
        super().__init__(nest, order, Frame(order))
        self.result = result
        self.first_filter = first_filter
        self.kind = f"{SUFFIXES[nest.writes[0].dtype]}x{width}"

    def finish(self) -> Finish:
        """Return the lines, and what they need."""
        outer: list[str] = []
        row: list[str] = []
        if self.first_filter:
            outer.append(f"few = min({self.order.lanes}, filters - {self.first_filter})")
        else:
            row.append("channel = g * filters + j + ROW")
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
        elif self.first_filter:
            name = self.define(line.result, False, True)
            hoisted[0].append(
                f"{name} = load_first_{self.kind}({pointer}, g * filters + {self.first_filter}, few)"
            )
        else:
            out.append(f"{self.define(line.result, False, False)} = {pointer}[channel]")

    def emit_store(self, line: Store, out: list[str]) -> None:
        value = self.operand(line.value)
        out.append(f"doneROW = {self.widened(value, self.nest.writes[line.write].dtype)}")
