# SPDX-License-Identifier: BSD-3-Clause
"""fuse: groups the nodes of a graph into steps; each step becomes one kernel launch or a few.

A Loop is a nest over a domain of axes. Its nodes are elementwise ops and reductions; moves that only
permute, add, drop or broadcast axes cost nothing, because each value has an axis map: the domain axis of each of
its own axes, -1 for an axis of size 1. A KernelStep is any other node.

Note [row split]
A domain (B, C) with split 1 runs C inside B. A value is at *full* level (it varies over all axes), or at
*row* level (over the axes before the split only). A reduction over exactly the axes after the split
gives a row-level value, after which further loops over the row may follow: softmax is one Loop with three passes
over each row. Any other reduction *accumulates* into memory while the loop runs and is not ready
before the loop ends, so nothing that depends on it can join.

Note [depth]
Nodes join greedily in graph order, in linear time. Each step has a depth, one more than the deepest step that it
reads. A node may join a loop only if all its other operands are less deep than the loop. A step that is less deep
cannot depend on the loop, so joining cannot make a cycle. Loops of equal depth are independent of each other and may be
merged.
"""

from collections import Counter
from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType

from tracejit.ir import Graph, Node, Value
from tracejit.ops import Kind
from tracejit.ops.op import Layout, Strided, contiguous
from tracejit.passes.fusion.reasons import Apart

AxisMap = tuple[int, ...]


class Loop:
    """A fused loop nest."""

    __slots__ = ("accumulates", "depth", "domain", "maps", "nodes", "reduced_from", "split", "whole")

    def __init__(self, domain: tuple[int, ...], depth: int) -> None:
        self.domain = domain
        self.depth = depth
        self.split: int | None = None
        self.nodes: list[Node] = []
        self.maps: dict[Value, AxisMap] = {}  # of the values computed here, in terms of the domain
        self.reduced_from: dict[Value, AxisMap] = {}  # of each reduction: the axis map of its input
        self.accumulates: set[Value] = set()  # reductions that are complete only after the loop
        self.whole: Loop | None = None  # the loop that this one is a piece of


class KernelStep:
    """A node that is a kernel of its own."""

    __slots__ = ("depth", "node")

    def __init__(self, node: Node, depth: int) -> None:
        self.node = node
        self.depth = depth


Step = Loop | KernelStep


class _Views(dict[Value, tuple[Value, Layout]]):
    """Value -> (root, layout). Default: contiguous memory of its own."""

    def __missing__(self, value: Value) -> tuple[Value, Layout]:
        own = self[value] = (value, contiguous(value.shape))
        return own


class _Sources(dict[Value, tuple[Value, AxisMap]]):
    """Value -> (base, axis map). Default: the value itself."""

    def __missing__(self, value: Value) -> tuple[Value, AxisMap]:
        own = self[value] = (value, _own_axes(value.shape))
        return own


class Fused:
    """Steps in an order of execution, and where each value comes from.

    `sources[v]` is (base, axis map of base in terms of v's axes) for a value that is a mere
    rearrangement of axes of `base`. `views[v]` is (root, layout) for a value that is seen in the memory of
    `root`: a graph input, a constant, or an output of a step.

    For inspection: `apart[v, base]` is the reason why the node of `v` did not join the loop that computes `base`,
    `unsunk[loop]` the reason why a loop did not move into its first reader, and `copies[v]` the value that `v` computes
    again.
    """

    __slots__ = ("apart", "copies", "home", "sources", "steps", "unsunk", "views")

    def __init__(self, layouts: Mapping[Value, Layout]) -> None:
        self.steps: list[Step] = []
        self.home: dict[Value, Step] = {}
        self.sources = _Sources()
        self.views = _Views({v: (v, layout) for v, layout in layouts.items()})
        self.apart: dict[tuple[Value, Value], Apart] = {}
        self.unsunk: dict[Loop, tuple[Loop | None, Apart]] = {}
        self.copies: dict[Value, Value] = {}

    def view(self, value: Value) -> tuple[Value, Layout]:
        """Return the value in whose memory `value` lies, and where."""
        return self.views[value]

    def merge(self, into: Loop, loop: Loop) -> None:
        """Move the nodes of `loop`, of the same domain, into `into`."""
        for node in loop.nodes:
            self.home[node.output] = into
        into.nodes += loop.nodes
        into.maps.update(loop.maps)
        into.reduced_from.update(loop.reduced_from)
        into.accumulates |= loop.accumulates
        if into.split is None:
            into.split = loop.split

    def source(self, value: Value) -> tuple[Value, AxisMap]:
        """Return the value that `value` rearranges (itself if none) and its axis map."""
        return self.sources[value]


@lru_cache(maxsize=4096)
def _own_axes(shape: tuple[int, ...]) -> AxisMap:
    return tuple([axis if extent != 1 else -1 for axis, extent in enumerate(shape)])


def fuse(
    graph: Graph,
    layouts: Mapping[Value, Layout] | None = None,
    accumulated: Mapping[Value, Value] = MappingProxyType({}),
) -> Fused:
    """Return the steps of a graph.

    Args:
        graph: the graph.
        layouts: of the inputs that are not contiguous.
        accumulated: inputs in whose memory sums may go on, by these sums.
    """
    return _Fuser(graph, layouts or {}, accumulated).run()


class _Fuser:
    def __init__(
        self, graph: Graph, layouts: Mapping[Value, Layout], accumulated: Mapping[Value, Value]
    ) -> None:
        self.graph = graph
        self.fused = Fused(layouts)
        self.accumulated = accumulated
        self.loops: dict[Loop, None] = {}  # an ordered set
        self.kernels: list[KernelStep] = []
        self.depth: dict[Value, int] = {}  # of the step that computes a value; absent: 0
        self.uses = Counter([v for node in graph.nodes for v in node.inputs])
        self.uses.update(graph.outputs)
        self.refused = Apart.OTHER_MAKER  # the reason if the last search gave no candidate

    def run(self) -> Fused:
        for node in self.graph.nodes:
            kind = node.op.kind
            if kind is Kind.ELEMENTWISE:
                self.elementwise(node)
            elif kind is Kind.REDUCE:
                self.reduce(node)
            elif kind is not Kind.MOVE or not self.move(node):
                self.kernel(node)
        self.fused.steps = self.order()
        return self.fused

    def move(self, node: Node) -> bool:
        """Record a move as a view; return False if it needs a step of its own."""
        emit = node.op.emit
        if not isinstance(emit, Strided):
            return False
        source, out = node.inputs[0], node.output
        root, layout = self.fused.views[source]
        seen = emit.layout(layout, **node.params)
        if seen is None:
            return False
        self.fused.views[out] = (root, seen)
        axes = None if emit.axes is None else emit.axes(source.ndim, source.shape, **node.params)
        base, outer = self.fused.sources[source]
        if axes is not None:
            composed = [-1 if a < 0 or axes[a] is None else axes[a] for a in outer]
            self.fused.sources[out] = (base, tuple(composed))  # type: ignore[arg-type]
        self.depth[out] = self.depth.get(base, 0)
        return True

    def kernel(self, node: Node) -> None:
        sources, depths = self.fused.sources, self.depth
        depth = 1 + max([depths.get(sources[v][0], 0) for v in node.inputs], default=0)
        step = KernelStep(node, depth)
        self.kernels.append(step)
        for value in node.outputs:
            self.fused.home[value] = step
            self.depth[value] = depth
        if node.op.name == "matmul_add" and node.output.dtype.kind == "f":
            total = node.inputs[2]
            of_product = (
                total.node is not None and total.node.op.kind is Kind.CONTRACT and self.uses[total] == 1
            )
            is_dense = total not in self.fused.views or self.fused.views[total][1] == contiguous(total.shape)
            if of_product or (self.accumulated.get(node.output) is total and is_dense):
                self.fused.views[node.output] = self.fused.view(total)  # it is added to in place

    def elementwise(self, node: Node) -> None:
        sources = [self.fused.sources[v] for v in node.inputs]
        depths = [self.depth.get(base, 0) for base, _ in sources]
        deepest = max(depths)
        shape = node.output.shape
        bases = [base for (base, _), depth in zip(sources, depths, strict=True) if depth == deepest]
        loop = self.candidate(bases)
        if loop is not None:
            axes = self.place(loop, node, sources)
            if axes is not None:
                self.join(loop, node, axes)
                return
            self.refused = Apart.AXES if len(shape) == len(loop.domain) else Apart.EXTENTS
        self.note_apart(node, bases)
        domain = tuple([extent for extent in shape if extent != 1])
        loop = self.new_loop(domain, deepest + 1)
        position = iter(range(len(domain)))
        self.join(loop, node, tuple([next(position) if extent != 1 else -1 for extent in shape]))

    def candidate(self, bases: list[Value]) -> Loop | None:
        """Return the one loop that computes all of `bases`, merging loops if possible, or None."""
        loops: list[Loop] = []
        for base in bases:
            home = self.fused.home.get(base)
            if not isinstance(home, Loop) or base in home.accumulates:
                self.refused = Apart.OTHER_MAKER
                return None
            if home not in loops:
                loops.append(home)
        if len(loops) < 2:
            return loops[0] if loops else None
        if len({loop.domain for loop in loops}) > 1 or len({loop.split for loop in loops} - {None}) > 1:
            self.refused = Apart.OTHER_MAKER
            return None
        loops.sort(key=lambda loop: -len(loop.nodes))
        for other in loops[1:]:
            self.fused.merge(loops[0], other)
            del self.loops[other]
        return loops[0]

    def place(self, loop: Loop, node: Node, sources: list[tuple[Value, AxisMap]]) -> AxisMap | None:
        """Return the axis map of the output of a node within `loop`, or None if it does not fit there.

        Args:
            loop: the one that computes some of the operands.
            node: an elementwise node.
            sources: of its operands.
        """
        shape = node.output.shape
        placed = [-1] * len(shape)
        for value, (base, axes) in zip(node.inputs, sources, strict=True):
            inside = loop.maps.get(base)
            if inside is None:
                continue
            added = len(shape) - value.ndim  # broadcasting aligns the last axes
            for own, domain_axis in zip(axes, inside, strict=True):
                if own >= 0:
                    if placed[own + added] not in (-1, domain_axis):
                        return None
                    placed[own + added] = domain_axis
        free = [d for d in range(len(loop.domain)) if d not in placed]
        for axis, extent in enumerate(shape):
            if extent != 1 and placed[axis] < 0:
                while free and loop.domain[free[0]] != extent:
                    free.pop(0)
                if not free:
                    return None
                placed[axis] = free.pop(0)
        used = [d for d in placed if d >= 0]
        if len(set(used)) != len(used):
            return None
        if len(used) == len(loop.domain) or (
            loop.split is not None and sorted(used) == list(range(loop.split))
        ):
            return tuple(placed)
        return None

    def reduce(self, node: Node) -> None:
        value = node.inputs[0]
        base, axes = self.fused.source(value)
        depth = self.depth.get(base, 0)
        # The array that a sum adds to has to be complete before the loop begins.
        before = max([self.depth.get(self.fused.source(v)[0], 0) for v in node.inputs[1:]], default=-1)
        reduced = set(node.params["axes"])
        loop = self.candidate([base])
        inside: tuple[int, ...] | None = None
        if loop is not None and loop.depth == depth and before < depth:
            # An axis that a broadcast added has no axis of the loop to run along, whether reduced or kept.
            covered = {a for a in axes if a >= 0}
            if all(a in covered for a, extent in enumerate(value.shape) if extent != 1):
                inside = loop.maps[base]
            else:
                self.refused = Apart.BROADCAST
        elif loop is not None:
            self.refused = Apart.START
        if loop is None or inside is None:
            self.note_apart(node, [base])
            domain = tuple([extent for extent in value.shape if extent != 1])
            loop = self.new_loop(domain, max(depth, before) + 1)
            position = iter(range(len(domain)))
            of_value = [next(position) if extent != 1 else -1 for extent in value.shape]
        else:
            of_value = [-1] * value.ndim
            for own, domain_axis in zip(axes, inside, strict=True):
                if own >= 0:
                    of_value[own] = domain_axis
        self.fold(loop, node, of_value, reduced)

    def fold(self, loop: Loop, node: Node, of_value: list[int], reduced: set[int]) -> None:
        """Add a reduction whose input's axes lie at `of_value` in the domain (Note [row split])."""
        kept = [d for axis, d in enumerate(of_value) if axis not in reduced]
        folded = {of_value[axis] for axis in reduced if of_value[axis] >= 0}
        rank = len(loop.domain)
        full = len([d for d in of_value if d >= 0]) == rank
        ready = False
        if full:
            split = loop.split
            if split is None:
                split = rank
                while split > 0 and split - 1 in folded:
                    split -= 1
            if split < rank and all(d in folded for d in range(split, rank)):
                loop.split = split
                ready = all(d >= split for d in folded) and len(node.inputs) == 1
        if node.params["keepdims"]:
            out = tuple([-1 if axis in reduced else d for axis, d in enumerate(of_value)])
        else:
            out = tuple(kept)
        loop.reduced_from[node.output] = tuple(of_value)
        if not ready:
            loop.accumulates.add(node.output)
        self.join(loop, node, out)

    def note_apart(self, node: Node, bases: list[Value]) -> None:
        if self.depth.get(bases[0], 0):  # inputs and constants have no step
            self.fused.apart.update(dict.fromkeys([(node.output, base) for base in bases], self.refused))

    def new_loop(self, domain: tuple[int, ...], depth: int) -> Loop:
        loop = Loop(domain, depth)
        self.loops[loop] = None
        return loop

    def join(self, loop: Loop, node: Node, axes: AxisMap) -> None:
        loop.nodes.append(node)
        loop.maps[node.output] = axes
        self.fused.home[node.output] = loop
        self.depth[node.output] = loop.depth

    def delay(self) -> None:
        """Put kernels that read only inputs and constants next to their first readers."""
        early = [step for step in self.kernels if step.depth == 1]
        if not early:
            return
        steps: list[Step] = [*self.loops, *self.kernels]
        never = 1 + max([step.depth for step in steps])
        first = dict.fromkeys([v for kernel in early for v in kernel.node.outputs], never)
        views = self.fused.views
        for step in steps:
            depth = step.depth
            for node in step.nodes if isinstance(step, Loop) else [step.node]:
                for value in node.inputs:
                    root = views[value][0]  # a slice is no rearrangement, but a view
                    if first.get(root, 0) > depth:
                        first[root] = depth
        for kernel in early:
            read = min([first[v] for v in kernel.node.outputs])
            if read < never:
                kernel.depth = max(1, read - 1)

    def order(self) -> list[Step]:
        """Return the steps sorted by depth, within a depth by where they stand in the graph."""
        position = {node: i for i, node in enumerate(self.graph.nodes)}
        self.delay()
        for loop in self.loops:
            loop.nodes.sort(key=position.__getitem__)
        steps: list[Step] = [*self.loops, *self.kernels]
        steps.sort(key=lambda s: (s.depth, position[s.nodes[0] if isinstance(s, Loop) else s.node]))
        return steps
