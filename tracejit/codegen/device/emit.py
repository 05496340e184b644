# SPDX-License-Identifier: BSD-3-Clause
"""emit: launches become a Program for a device, whose rows say how many threads run them."""

from collections.abc import Iterator, Sequence

from tracejit.aval import Aval
from tracejit.codegen.device.columns import emit_columns
from tracejit.codegen.device.kept_rows import emit_kept_rows
from tracejit.codegen.device.nest import DeviceEmitter
from tracejit.codegen.device.order import is_large, needed, touches_of
from tracejit.codegen.device.product import emit_product
from tracejit.codegen.device.work import ALONE_GRID, emit_kernel
from tracejit.codegen.emit import op_at
from tracejit.codegen.loop_order import joined
from tracejit.codegen.nest import Emitted
from tracejit.passes.loops.nest import Access
from tracejit.passes.loops.products import Product
from tracejit.passes.loops.select import Selection
from tracejit.passes.loops.spread import (
    ALONE,
    BLOCK,
    COLUMN_THREADS,
    COLUMNS,
    DeviceLaunch,
    Spread,
    SpreadLaunch,
)
from tracejit.passes.schedule.memory import Memory
from tracejit.program import Grid, Pointer, Program, Row


def emit_for_device(
    launches: Sequence[DeviceLaunch],
    commits: Sequence[DeviceLaunch],
    memory: Memory,
    selection: Selection,
    inputs: Sequence[Aval],
) -> Program:
    """Return the program of launches that are spread over threads.

    Args:
        launches: in the order of execution.
        commits: those that follow where the results count.
        memory: the places of what they touch.
        selection: the selection that they come from.
        inputs: of the program.
    """
    writes_inputs = bool(selection.written)
    rows, last = (_rows(memory, some, writes_inputs) for some in (launches, commits))
    checked = tuple(dict.fromkeys(map(op_at, selection.checked)))
    return Program(
        rows + last, list(inputs), selection.outputs, memory.constants, memory.arena_bytes, checked,
        written=selection.written, commits=len(last),
    )  # fmt: skip


def emit_spread(spread: Spread) -> Emitted:
    """Return the kernel of a nest for a device, and the arguments of its launch."""
    if spread.form == COLUMNS:
        return emit_columns(spread)
    if spread.kept is not None:
        return emit_kept_rows(spread)
    return DeviceEmitter(spread, joined(spread.nest)).run()


def _rows(memory: Memory, launches: Sequence[DeviceLaunch], writes_inputs: bool) -> list[Row]:
    """Return the rows of launches, each with the numbers of those that it needs."""
    rows: list[Row] = []
    touches, large = [], set()
    for launch in launches:
        for row, emitted in _rows_of(memory, launch):
            if is_large(emitted):
                large.add(len(rows))
            rows.append(row)
            touches.append(touches_of(emitted, memory, writes_inputs))
    return [row._replace(needs=numbers) for row, numbers in zip(rows, needed(touches, large), strict=True)]


def _rows_of(memory: Memory, launch: DeviceLaunch) -> Iterator[tuple[Row, Emitted]]:
    """Give the rows of a launch; all but one of them are left over from equal parts."""
    note = ", ".join([node.op.name for node in launch.nodes])
    where = tuple(dict.fromkeys(node.where for node in launch.nodes if node.where))
    for emitted, grid in _emitted(launch):
        arguments = tuple([
            Pointer(memory.places[a.root], a.offset * a.dtype.itemsize, a.dtype) if isinstance(a, Access) else a
            for a in emitted.arguments
        ])  # fmt: skip
        name = note or emitted.kernel.name.partition("_")[0]
        yield Row(emitted.kernel, arguments, name, where, grid=grid), emitted


def _emitted(launch: DeviceLaunch) -> list[tuple[Emitted, Grid]]:
    if isinstance(launch, SpreadLaunch):
        spread = launch.spread
        threads = COLUMN_THREADS if spread.form == COLUMNS else BLOCK
        grid = ALONE_GRID if spread.form == ALONE else Grid(spread.blocks, threads)
        return [(emit_spread(spread), grid)]
    return [emit_product(launch)] if isinstance(launch.whole, Product) else emit_kernel(launch)
