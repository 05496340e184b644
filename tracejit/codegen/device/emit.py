# SPDX-License-Identifier: BSD-3-Clause
"""emit: launches become a Program for a device, whose rows say how many threads run them."""

from collections.abc import Iterator, Sequence

from tracejit.aval import Aval
from tracejit.codegen.device.block_rows import emit_block_rows
from tracejit.codegen.device.columns import emit_columns
from tracejit.codegen.device.kept_rows import emit_kept_rows
from tracejit.codegen.device.loops import ends, placed, rows_of_loop
from tracejit.codegen.device.nest import DeviceEmitter
from tracejit.codegen.device.order import Written, is_large, needed, touches_of, touches_of_loop
from tracejit.codegen.device.product import blas_product, emit_product
from tracejit.codegen.device.sizes import in_64_bits, is_too_large, refuse_if_too_large, refuse_if_too_many
from tracejit.codegen.device.work import ALONE_GRID, emit_kernel, is_text
from tracejit.codegen.emit import Origins, op_at
from tracejit.codegen.loop_order import joined
from tracejit.codegen.nest import Emitted
from tracejit.passes.loops.launches import KernelLaunch, LoopLaunch
from tracejit.passes.loops.nest import Access, Nest
from tracejit.passes.loops.products import Product
from tracejit.passes.loops.select import Selection
from tracejit.passes.loops.spread import (
    ALONE,
    BLOCKS,
    COLUMNS,
    DeviceLaunch,
    Spread,
    SpreadLaunch,
)
from tracejit.passes.schedule.memory import Memory
from tracejit.program import Grid, Pointer, Program, Row, RowLoop


def emit_for_device(
    launches: Sequence[DeviceLaunch],
    commits: Sequence[DeviceLaunch],
    memory: Memory,
    selection: Selection,
    inputs: Sequence[Aval],
    origins: Origins | None = None,
    is_body: bool = False,
) -> tuple[Program, list[int]]:
    """Return the program of launches that are spread over threads, and the number of rows of each launch.

    Args:
        launches: in the order of execution.
        commits: those that follow where the results count.
        memory: the places of what they touch.
        selection: the selection that they come from.
        inputs: of the program.
        origins: filled with the nodes that names in the text come from, by kernel, in its first launch.
        is_body: whether this is the body of a loop, of whose inputs those that are written share no memory.
    """
    written = None if not selection.written else Written.APART if is_body else Written.TOGETHER
    emission = _DeviceEmission(memory, written, {} if origins is None else origins)
    rows = emission.rows(launches, 0)
    last = emission.rows(commits, len(rows))
    checked = tuple(dict.fromkeys(map(op_at, selection.checked)))
    program = Program(
        rows + last, list(inputs), selection.outputs, memory.constants, memory.arena_bytes, checked,
        written=selection.written, commits=len(last), loops=tuple(emission.loops),
    )  # fmt: skip
    return program, emission.counts


def emit_spread(spread: Spread) -> Emitted:
    """Return the kernel of a nest for a device, and the arguments of its launch."""
    if spread.form == COLUMNS:
        return emit_columns(spread)
    if spread.form == BLOCKS:
        return emit_block_rows(spread)
    if spread.kept is not None:
        return emit_kept_rows(spread)
    return DeviceEmitter(spread, joined(spread.nest)).run()


class _DeviceEmission:
    """Makes the rows of launches.

    Attributes:
        counts: the number of rows of each launch.
        loops: around rows.
    """

    def __init__(self, memory: Memory, written: Written | None, origins: Origins) -> None:
        self.memory, self.written, self.origins = memory, written, origins
        self.counts: list[int] = []
        self.loops: list[RowLoop] = []

    def rows(self, launches: Sequence[DeviceLaunch], before: int) -> list[Row]:
        """Return the rows of launches, each with the numbers of those that it needs.

        Args:
            launches: in the order of execution.
            before: the number of rows before them, which are not counted by these numbers.
        """
        parts: list[list[Row]] = []  # a row, or the rows of a loop, which need rows among themselves
        touches, large = [], set()
        for launch in launches:
            first = sum(map(len, parts))
            if isinstance(launch, LoopLaunch):
                parts.append(self.loop(launch, before + first))
                touches.append(touches_of_loop(launch, self.memory, self.written))
            else:
                for row, emitted in self.of_launch(launch):
                    if is_large(emitted):
                        large.add(len(parts))
                    parts.append([row])
                    touches.append(touches_of(emitted, self.memory, self.written))
            self.counts.append(sum(map(len, parts)) - first)
        rows: list[Row] = []
        ends_of: list[tuple[int, ...]] = []
        for part, numbers in zip(parts, needed(touches, large), strict=True):
            needs = sorted({end for number in numbers for end in ends_of[number]})
            ends_of.append(ends(part, len(rows)))
            rows += placed(part, len(rows), needs)
        return rows

    def loop(self, launch: LoopLaunch, first: int) -> list[Row]:
        """Return the rows of a loop, given the number of its first row in the program."""
        for name, nodes in launch.origins.items():
            self.origins.setdefault(name, nodes)
        made = rows_of_loop(launch, self.pointer)
        self.loops += [loop._replace(first=loop.first + first, end=loop.end + first) for loop in made.loops]
        return made.rows

    def of_launch(self, launch: SpreadLaunch | KernelLaunch) -> Iterator[tuple[Row, Emitted]]:
        """Give the rows of a launch; all but one of them are left over from equal parts."""
        note = ", ".join([node.op.name for node in launch.nodes])
        where = tuple(dict.fromkeys(node.where for node in launch.nodes if node.where))
        for emitted, grid in _emitted(launch):
            self.origins.setdefault(emitted.kernel.name, emitted.origins)
            arguments = tuple([
                self.pointer(a) if isinstance(a, Access) else a for a in emitted.arguments
            ])  # fmt: skip
            name = note or emitted.kernel.name.partition("_")[0]
            refuse_if_too_many(emitted.kernel.name.rpartition("_")[0], arguments)
            whole = launch.whole if isinstance(launch, KernelLaunch) else None
            product = blas_product(whole, emitted.arguments) if isinstance(whole, Product) else None
            yield Row(emitted.kernel, arguments, name, where, grid=grid, product=product), emitted

    def pointer(self, access: Access) -> Pointer:
        return Pointer(self.memory.places[access.root], access.offset * access.dtype.itemsize, access.dtype)


def _emitted(launch: SpreadLaunch | KernelLaunch) -> list[tuple[Emitted, Grid]]:
    if isinstance(launch, SpreadLaunch):
        spread = launch.spread
        grid = ALONE_GRID if spread.form == ALONE else Grid(spread.blocks, spread.threads)
        return [_fitting(emit_spread(spread), grid, spread.nest)]
    if isinstance(launch.whole, Product):
        return [_fitting(*emit_product(launch), launch.whole)]
    made = emit_kernel(launch)
    if not is_text(launch):
        return [_fitting(*each) for each in made]
    for emitted, _ in made:
        refuse_if_too_large(launch.name, emitted.arguments)
    return made


def _fitting(emitted: Emitted, grid: Grid, whole: Product | Nest | None = None) -> tuple[Emitted, Grid]:
    """Return a kernel whose indices are large enough for its launch, and its threads."""
    return in_64_bits(emitted) if is_too_large(emitted.arguments, whole) else emitted, grid
