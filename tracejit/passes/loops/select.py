# SPDX-License-Identifier: BSD-3-Clause
"""select: turns fused steps into launches, and decides what is stored, which kernel computes it, and what is copied.

Every value that another step reads, and every output, has memory; all others live in registers of one kernel.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tracejit.aval import Aval, part_dtype
from tracejit.errors import CodegenError
from tracejit.ir import Graph, Node, Value
from tracejit.ops import Kind
from tracejit.ops.op import KernelCall, Layout, Pieces, Strided, UserLoop, contiguous
from tracejit.passes.fusion.fuse import Fused, Loop
from tracejit.passes.loops import tiles
from tracejit.passes.loops.builder import LaunchBuilder
from tracejit.passes.loops.contract import contract
from tracejit.passes.loops.convolution_epilogues import join_convolutions
from tracejit.passes.loops.first_extrema import with_first_extrema
from tracejit.passes.loops.interleaving import interleaved
from tracejit.passes.loops.launches import KernelLaunch, Single
from tracejit.passes.loops.lower import lower
from tracejit.passes.loops.nest import Access, Line, Literal, Load, Nest, Store, copy_nest
from tracejit.passes.loops.pieces import Assemblies, nest_in_place
from tracejit.passes.loops.strided_reads import with_copies
from tracejit.program import NO_WRITES, Place, Writes
from tracejit.util.named_tuples import NamedTuple

if TYPE_CHECKING:
    from tracejit.passes.loops.bodies import BuildBody
    from tracejit.passes.loops.inputs import Contents

# Modules that only a few graphs need, such as launches of convolutions, are imported where a graph needs them.
_CONVOLUTIONS = ("convolution", "convolution_input", "convolution_weights")


class Selection(NamedTuple):
    """The launches of a graph, in order.

    launches    of loop nests and of kernels
    external    the places of roots that are inputs or outputs of the program
    checked     the nodes whose indices are checked while they run
    outputs     shapes and dtypes of the outputs
    commits     launches that follow where the results count
    written     the numbers of the inputs that are written
    """

    launches: list[Single]
    external: dict[Value, Place]
    checked: list[Node]
    outputs: list[Aval]
    commits: Sequence[Single] = ()
    written: tuple[int, ...] = ()


def select(
    graph: Graph,
    fused: Fused,
    writes: Writes = NO_WRITES,
    build: "BuildBody | None" = None,
    for_device: bool = False,
) -> Selection:
    """Return the launches of a graph whose steps are `fused`.

    Args:
        graph: the graph.
        fused: its steps.
        writes: the outputs that are new contents of inputs.
        build: returns the program of the body of a loop; None for graphs without loops.
        for_device: whether kernels of a device are chosen, not those of the CPU.
    """
    return _Selector(graph, fused, writes, build, for_device).run()


class _Selector:
    def __init__(
        self, graph: Graph, fused: Fused, writes: Writes, build: "BuildBody | None", for_device: bool
    ) -> None:
        self.graph = graph
        self.build = build
        self.writes = writes
        self.outputs = [value for i, value in enumerate(graph.outputs) if i not in writes.targets]
        self.fused = fused
        self.builder = LaunchBuilder(fused, for_device)
        self.assemblies = Assemblies(graph, fused)
        self.uses = Counter([v for node in graph.nodes for v in node.inputs])
        self.external = {value: Place("input", i, 0) for i, value in enumerate(graph.inputs)}
        self.checked: list[Node] = []
        self._fault: Value | None = None

    def run(self) -> Selection:
        stored = stored_values(self.graph, self.fused, self.assemblies)
        copied_outputs = self.place_outputs()
        for step in self.fused.steps:
            if isinstance(step, Loop):
                self.loop(step, stored.get(step, {}))
            else:
                self.call(step.node)
        for index, value in copied_outputs:
            target = Value(value.aval, None)
            self.external[target] = Place("output", index, 0)
            source = self.fused.view(value)
            self.copy_of(value)(source, (target, contiguous(value.shape)))
        outputs = [value.aval for value in self.outputs]
        if not self.writes.targets:
            launches = self.finished(self.builder.launches)
            return Selection(launches, self.external, self.checked, outputs)
        from tracejit.passes.loops.inputs import write_inputs

        contents = self.contents()
        condition = [] if self._fault is None else [self._fault]
        # What is called in Python may fail, and then nothing is written.
        condition += [v for node in self.graph.nodes if node.op.kind is Kind.HOST for v in node.outputs]
        if self.writes.guarded:
            condition += [root for root, place in self.external.items() if place == self.guard]
        launches, commits = write_inputs(self.builder, contents, condition, self.external)
        launches, commits = self.finished(launches, commits), self.finished(commits, launches)
        written = tuple(sorted(self.writes.targets.values()))
        return Selection(launches, self.external, self.checked, outputs, commits, written)

    def finished(self, launches: list[Single], others: Sequence[Single] = ()) -> list[Single]:
        """Return launches in which those that are faster as one are one, and short rows run several at a time.

        Args:
            launches: in order.
            others: those before or after them.
        """
        if self.builder.for_device:
            return launches  # threads share short rows in a different way
        kept = self.external.keys() | {root for launch in others for root in launch.touched}
        joined = with_first_extrema(join_convolutions(launches, kept), kept)
        return tiles.in_tiles(with_copies(joined))

    @property
    def guard(self) -> Place:
        """The place of the guard, which is the last output."""
        return Place("output", len(self.outputs) - 1, 0)

    def contents(self) -> "list[Contents]":
        """Return the new contents of inputs, each in memory of its own."""
        from tracejit.passes.loops.inputs import Contents, store_twice

        contents: list[Contents] = []
        taken: set[Value] = set()
        for number, target in self.writes.targets.items():
            value, old = self.graph.outputs[number], self.graph.inputs[target]
            root, layout = self.fused.view(value)
            before = self.fused.view(old)
            if (root, layout) == before:
                continue  # it was written, and then its former contents again
            if root in taken or root in self.external or not self.is_whole(value, root, layout):
                own = Value(value.aval, None)
                if not self.is_whole(value, root, layout) or not store_twice(self.builder, root, own):
                    self.copy_of(value)((root, layout), (own, contiguous(value.shape)))
                root = own
            taken.add(root)
            contents.append(Contents(root, *before))
        return contents

    def copy_of(self, value: Value) -> Callable[..., None]:
        """Return how a value is copied: a part of complex numbers is a real one, although its memory is complex."""
        return self.builder.copy_whole if value.dtype.kind == "c" else self.builder.copy

    def is_whole(self, value: Value, root: Value, layout: Layout) -> bool:
        """Return whether a value is all of memory that a step computes."""
        return (
            root in self.fused.home
            and layout.offset == 0
            and value.aval.size == root.aval.size
            and value.dtype == root.dtype
            and layout == contiguous(value.shape)
        )

    def place_outputs(self) -> list[tuple[int, Value]]:
        """Place roots that are outputs as they are; return the outputs that have to be copied at the end."""
        copied = []
        for index, value in enumerate(self.outputs):
            root, layout = self.fused.view(value)
            if root not in self.external and self.is_whole(value, root, layout):
                self.external[root] = Place("output", index, 0)
            else:
                copied.append((index, value))
        return copied

    def loop(self, loop: Loop, stored: dict[Value, bool]) -> None:
        """Launch a loop, which writes pieces of assembled arrays where they belong if it can."""
        nest = lower(loop, self.fused, stored)
        destinations = self.assemblies.of_loops.get(loop)
        if destinations:
            read = [value for value, is_read in stored.items() if is_read]
            placed = nest_in_place(nest, loop, destinations, read)
            if placed is not None:
                nest = placed
                self.assemblies.in_place.update((piece.node, piece.number) for piece in destinations)
        self.builder.add_nest(nest)

    def call(self, node: Node) -> None:
        """Launch a node that is a step of its own."""
        emit = node.op.emit
        if isinstance(emit, Strided):
            # A view that the operand's layout does not allow: the operand is copied, the view is then free.
            source, out = node.inputs[0], node.output
            self.copy_of(out)(self.fused.view(source), (out, contiguous(source.shape)))
        elif isinstance(emit, Pieces):
            self.assemble(node)
        elif node.op.kind is Kind.CONTRACT:
            destination = self.assemblies.of_products.get(node.output)
            is_shared = self.uses[node.inputs[1]] > 1
            if contract(self.builder, node, is_shared, destination) and destination is not None:
                self.assemblies.in_place.add((destination.node, destination.number))
        elif isinstance(emit, KernelCall):
            if not self.convolution(node):
                self.kernel_call(node, emit)
        elif node.op.kind is Kind.LOOP:
            from tracejit.passes.loops.bodies import launch_loop

            self.checked += launch_loop(self.builder, node, self.build, self.fault)
        elif isinstance(emit, UserLoop):
            self.user_loop(node, emit)
        elif node.op.kind is Kind.HOST:
            pointers = [_of_whole(self.builder.contiguous(v), v) for v in node.inputs]
            pointers += [Access(v, 0, (), v.dtype) for v in node.outputs]
            self.builder.add(KernelLaunch(node.op.name, (), tuple(pointers), len(node.outputs), node))
        else:
            raise CodegenError(f"{node.op.name}: an op of kind {node.op.kind.name} cannot be compiled.")

    def convolution(self, node: Node) -> bool:
        """Launch a node if it is a convolution that a kernel of windows computes, and return whether it is."""
        if node.op.name not in _CONVOLUTIONS:
            return False
        from tracejit.passes.loops.convolve import convolve

        return convolve(self.builder, node)

    def kernel_call(self, node: Node, emit: KernelCall) -> None:
        """Launch a hand-written kernel, which takes contiguous operands."""
        results = [v.aval for v in node.outputs]
        result = results[0] if len(results) == 1 else tuple(results)
        avals: list[Any] = [result, *[v.aval for v in node.inputs]]
        name = emit.name if emit.variant is None else emit.variant(*avals, **node.params)
        symbol, operands = None, list(node.inputs)
        if emit.routine is not None:
            symbol = emit.routine(*[v.aval for v in node.inputs], **node.params)
        if emit.is_aligned:
            operands = [self.builder.expanded(v, node.outputs[0].shape) for v in node.inputs]
            avals[1:] = [v.aval for v in operands]
        numbers = list(emit.numbers(*avals, **node.params))
        if emit.tells_saved:
            numbers.append(
                int(any(self.uses[v] or v in self.graph.outputs for v in node.outputs[-node.op.saved :]))
            )
        if emit.onto and (not self.builder.for_device or not node.output.aval.size):
            first, *operands = operands
            self.builder.copy(self.fused.view(first), (node.output, contiguous(first.shape)))
        pointers = [self.builder.contiguous(v) for v in operands]
        pointers += [Access(v, 0, (), part_dtype(v.dtype)) for v in node.outputs]
        if emit.checked:
            pointers.append(Access(self.fault(), 0, (), np.dtype(np.int64)))
            self.checked.append(node)
        written = len(node.outputs) + emit.checked
        self.builder.add(
            KernelLaunch(name, tuple(numbers), tuple(pointers), written, node, symbol, whole=emit.cut)
        )

    def user_loop(self, node: Node, emit: UserLoop) -> None:
        """Launch loops that a user has written."""
        pointers = [self.builder.contiguous(v) for v in node.inputs]
        pointers += [Access(v, 0, (), v.dtype) for v in node.outputs]
        pointers.append(Access(self.fault(), 0, (), np.dtype(np.int64)))
        self.checked.append(node)
        self.builder.add(KernelLaunch(node.op.name, emit.sizes, tuple(pointers), len(node.outputs) + 1, node))

    def fault(self) -> Value:
        """Return the value that kernels set where an index is out of range: one more output, which starts as 0."""
        if self._fault is None:
            self._fault = Value(Aval((), None, np.dtype(np.int64)), None)
            self.external[self._fault] = Place("output", len(self.outputs), 0)
        return self._fault

    def assemble(self, node: Node) -> None:
        """Copy the pieces that are not yet where they belong."""
        out, pieces = node.output, self.assemblies.pieces[node]
        nests: list[Nest] = []
        is_whole = not any((node, number) in self.assemblies.in_place for number in range(len(pieces)))
        if is_whole and interleaved(self.builder, node, pieces):
            return
        for number, (piece, target) in enumerate(pieces):
            if (node, number) in self.assemblies.in_place:
                continue
            if piece.fill:
                self.builder.copy(Literal(out.dtype.type(piece.source), out.dtype), (out, target))
                continue
            root, layout = self.fused.view(node.inputs[int(piece.source)])
            added = len(piece.shape) - len(layout.shape)
            own = tuple([
                0 if extent == 1 else stride for extent, stride in zip(layout.shape, layout.strides, strict=True)
            ])  # fmt: skip
            source = Layout(layout.offset, piece.shape, (0,) * added + own)
            if node.op.name == "complex_of" and out.aval.size:
                nests.append(copy_nest((root, source), (out, target)))
            else:
                self.builder.copy((root, source), (out, target))
        if nests:
            self.builder.add_nest(_together(nests))


def _together(nests: list[Nest]) -> Nest:
    """Return the nest that makes several copies of equal extents: both parts of complex numbers are stored at once."""
    lines: list[Line] = [
        line for number in range(len(nests)) for line in (Load(number, number), Store(number, number))
    ]
    reads, writes = [nest.reads[0] for nest in nests], [nest.writes[0] for nest in nests]
    return nests[0]._replace(reads=reads, writes=writes, full=[lines])


def _of_whole(access: Access, value: Value) -> Access:
    """Return an access to the parts of complex numbers as one to the numbers."""
    if value.dtype.kind != "c":
        return access
    return access._replace(offset=access.offset // 2, dtype=value.dtype)


def stored_values(graph: Graph, fused: Fused, assemblies: Assemblies) -> dict[Loop, dict[Value, bool]]:
    """Return the values of each loop that need memory.

    They are True if something reads them there, or if they are outputs, and False if they are only pieces of assembled
    arrays.
    """
    home, sources, views = fused.home, fused.sources, fused.views
    stored: dict[Loop, dict[Value, bool]] = {}

    def store(value: Value, is_read: bool = True) -> None:
        step = home.get(value)
        if isinstance(step, Loop):
            values = stored.setdefault(step, {})
            values[value] = is_read or values.get(value, False)

    for step in fused.steps:
        if isinstance(step, Loop):
            for node in step.nodes:
                for value in node.inputs:
                    base = sources[value][0]
                    if home.get(base) is not step or base in step.accumulates:
                        store(views[value][0])
        else:
            direct = assemblies.direct_inputs.get(step.node, ())
            for number, value in enumerate(step.node.inputs):
                store(views[value][0], number not in direct)
    for value in graph.outputs:
        store(views[value][0])
    return stored
