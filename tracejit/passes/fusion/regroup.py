# SPDX-License-Identifier: BSD-3-Clause
"""regroup: improves steps after the greedy fusion, by looking at their readers.

Note [sinking]
A loop can still join its readers late. Sometimes `fuse` keeps a loop apart because its readers come much later (the
decayed moments of an optimiser, read only when the gradient is complete). Such a loop is moved into its first reader,
if that is a loop over the same domain. That is legal if every other reader is deeper than the first.

Note [siblings]
Loops of equal depth over the same domain that read the same array become one loop, which reads it once. An example is
the sine and the cosine of one input. Loops of equal depth cannot depend on each other. Loops that share only a bias
stay apart: a bias is read fast anyway, and each of them may belong to another loop that reads its result. A loop that
only sums an array (the cotangent, for the gradient of a bias) runs along the rows of the other loop, if that has rows.
It also joins a deeper loop that sums over the same array, if nothing needs its result before. It cannot depend on the
deeper loop, because its own operands are complete earlier.

Note [recomputing]
A value that is cheap to compute from arrays in memory (1 - y*y from y) is computed again by its readers rather than
stored by one loop and loaded by another.
"""

import math

from tracejit.ir import Graph, Node, Value
from tracejit.ops import Kind
from tracejit.passes import cost
from tracejit.passes.fusion.fuse import AxisMap, Fused, Loop, Step
from tracejit.passes.fusion.reasons import Apart
from tracejit.util.named_tuples import NamedTuple

_FEW = 2  # an array that many times smaller than another is loaded fast beside it


class _Use(NamedTuple):
    step: Step
    node: Node
    position: int


def regroup(graph: Graph, fused: Fused) -> None:
    """Merge loops that read the same array, move loops into their readers, and cheap values to where they are read."""
    _join_siblings(graph, fused)
    _join_later_siblings(graph, fused)
    _sink(graph, fused)
    _recompute(graph, fused)
    _prune(graph, fused)


def _uses(graph: Graph, fused: Fused) -> tuple[dict[Value, list[_Use]], set[Value]]:
    """Return the readers of each value of a loop that rearrange its axes only, and the values that need memory."""
    home, views, sources = fused.home, fused.views, fused.sources
    uses: dict[Value, list[_Use]] = {}
    in_memory: set[Value] = {views[v][0] for v in graph.outputs}
    for step in fused.steps:
        if not isinstance(step, Loop):
            in_memory.update([views[v][0] for v in step.node.inputs])
            continue
        for node in step.nodes:
            for position, value in enumerate(node.inputs):
                base = sources[value][0]
                producer = home.get(base)
                if producer is step and base not in step.accumulates:
                    continue
                if isinstance(producer, Loop):
                    uses.setdefault(base, []).append(_Use(step, node, position))
                else:
                    in_memory.add(views[value][0])
    return uses, in_memory


def _axes_in_reader(loop: Loop, node: Node, position: int, base_axes: AxisMap) -> AxisMap:
    """Return the domain axes of a reader on which the axes of an operand's base lie."""
    out = node.output
    value = node.inputs[position]
    axes = loop.reduced_from.get(out)
    if axes is None:
        own = loop.maps[out]
        axes = own[len(own) - value.ndim :]
    return tuple([-1 if a < 0 else axes[a] for a in base_axes])


def _reads_as_it_lies(fused: Fused, producer: Loop, base: Value, use: _Use) -> bool:
    """Return whether a reader walks over `base` with the same domain axes as the loop that computes it."""
    if not isinstance(use.step, Loop) or use.step.domain != producer.domain:
        return False
    axes = fused.source(use.node.inputs[use.position])[1]
    folded = use.step.reduced_from.get(use.node.output)
    if folded is not None and use.position > 0:
        return False  # the array that a sum adds to is complete before the loop begins
    if folded is not None and {a for a in folded if a >= 0} != {a for a in producer.maps[base] if a >= 0}:
        return False  # a reduction over axes along which `base` is broadcast has to run along them
    return _axes_in_reader(use.step, use.node, use.position, axes) == producer.maps[base]


def _join_siblings(graph: Graph, fused: Fused) -> None:
    """Merge loops of one depth that read the same array (Note [siblings])."""
    home, views, sources = fused.home, fused.views, fused.sources
    first: dict[tuple[int, tuple[int, ...], Value], Loop] = {}
    gone: set[Step] = set()
    changed: dict[Loop, None] = {}
    for step in fused.steps:
        if not isinstance(step, Loop):
            continue
        size = math.prod(step.domain)
        roots = [
            views[v][0]
            for node in step.nodes
            for v in node.inputs
            if home.get(sources[v][0]) is not step and v.aval.size == size > 1
        ]
        keys = [(step.depth, step.domain, root) for root in dict.fromkeys(roots)]
        target = next((first[key] for key in keys if key in first), None)
        if target is not None and _have_rows_in_common(target, step):
            split = step.split if _only_sums(target) else target.split
            fused.merge(target, step)
            target.split = split
            gone.add(step)
            changed[target] = None
        else:
            target = step
        for key in keys:
            first.setdefault(key, target)
    if gone:
        fused.steps = [step for step in fused.steps if step not in gone]
        _sort_nodes(graph, list(changed))


def _only_sums(loop: Loop) -> bool:
    """Return whether all results of a loop are complete only after it."""
    return all(node.output in loop.accumulates for node in loop.nodes)


def _have_rows_in_common(loop: Loop, other: Loop) -> bool:
    """Return whether two loops run over the same rows, or one only sums, which it can do along the other's rows."""
    if loop.split == other.split:
        return True
    sums, *rest = sorted((loop, other), key=_only_sums, reverse=True)
    return _only_sums(sums) and not _only_sums(rest[0]) and rest[0].split is not None


def _roots(fused: Fused, loop: Loop) -> dict[Value, None]:
    """Return the arrays as large as a loop's domain that it reads, in order."""
    size = math.prod(loop.domain)
    return dict.fromkeys([
        fused.views[v][0]
        for node in loop.nodes
        for v in node.inputs
        if fused.home.get(fused.sources[v][0]) is not loop and v.aval.size == size > 1
    ])  # fmt: skip


def _join_later_siblings(graph: Graph, fused: Fused) -> None:
    """Merge loops that only sum an array into deeper ones that read it too (Note [siblings])."""
    home, views = fused.home, fused.views
    needed: dict[Step, int] = {}  # the least depth of a reader
    deeper: dict[tuple[tuple[int, ...], Value], list[Loop]] = {}
    for step in fused.steps:
        for node in step.nodes if isinstance(step, Loop) else [step.node]:
            for value in node.inputs:
                for producer in (home.get(views[value][0]), home.get(fused.sources[value][0])):
                    if producer is not None and producer is not step:
                        needed[producer] = min(needed.get(producer, step.depth), step.depth)
        if isinstance(step, Loop):
            for root in _roots(fused, step):
                deeper.setdefault((step.domain, root), []).append(step)
    gone: set[Step] = set()
    changed: dict[Loop, None] = {}
    for step in fused.steps:
        if not isinstance(step, Loop) or not _only_sums(step):
            continue
        for root in _roots(fused, step):
            target = next((
                loop for loop in deeper[step.domain, root]
                if loop not in gone and step.depth < loop.depth < needed.get(step, loop.depth + 1)
                and loop.split == step.split and any(node.output in loop.accumulates for node in loop.nodes)
            ), None)  # fmt: skip
            if target is not None:
                fused.merge(target, step)
                needed[target] = min(needed.get(step, target.depth + 1), needed.get(target, target.depth + 1))
                gone.add(step)
                changed[target] = None
                break
    if gone:
        fused.steps = [step for step in fused.steps if step not in gone]
        _sort_nodes(graph, list(changed))


class _Readers(NamedTuple):
    """The readers of a loop's values: loops that rearrange axes only, and the least depth of all others."""

    loops: list[tuple[Value, _Use]]
    others: int | None


def _readers(graph: Graph, fused: Fused) -> dict[Loop, _Readers]:
    """Return the readers of each loop that has any, except loops that are read through slices."""
    uses, _ = _uses(graph, fused)
    home, views, sources = fused.home, fused.views, fused.sources
    others: dict[Step, int] = {}
    sliced: set[Step] = set()
    for step in fused.steps:
        for node in step.nodes if isinstance(step, Loop) else [step.node]:
            for value in node.inputs:
                root = views[value][0]
                producer = home.get(root)
                if producer is None or producer is step:
                    continue
                if not isinstance(step, Loop):
                    others[producer] = min(others.get(producer, step.depth), step.depth)
                elif sources[value][0] is not root:
                    sliced.add(producer)  # it needs memory before the reader starts
    readers: dict[Loop, _Readers] = {}
    for step in fused.steps:
        if isinstance(step, Loop):
            loops = [(node.output, use) for node in step.nodes for use in uses.get(node.output, ())]
            if loops and step in sliced:
                fused.unsunk[step] = None, Apart.SLICE
            elif loops:
                readers[step] = _Readers(loops, others.get(step))
    return readers


def _sink(graph: Graph, fused: Fused) -> None:
    """Merge loops into their first readers (Note [sinking])."""
    readers = _readers(graph, fused)
    gone: dict[Step, Loop] = {}

    def current(step: Step) -> Step:
        while step in gone:
            step = gone[step]
        return step

    for loop in sorted(readers, key=lambda loop: -loop.depth):
        uses = [(base, use, current(use.step)) for base, use in readers[loop].loops]
        target = min((reader for _, _, reader in uses), key=lambda reader: reader.depth)
        if not isinstance(target, Loop):
            continue
        refused = _why_not_sink(fused, loop, target, uses, readers[loop].others)
        if refused is None:
            fused.merge(target, loop)
            gone[loop] = target
        else:
            fused.unsunk[loop] = target, refused
    if gone:
        fused.steps = [step for step in fused.steps if step not in gone]
        _sort_nodes(graph, [s for s in dict.fromkeys(map(current, gone)) if isinstance(s, Loop)])


def _why_not_sink(
    fused: Fused, loop: Loop, target: Loop, uses: list[tuple[Value, _Use, Step]], others: int | None
) -> Apart | None:
    """Return why `loop` cannot become part of `target`, its first reader, or None if it can."""
    if target is loop or loop.accumulates:
        return Apart.FOLDED
    if others is not None and others <= target.depth:
        return Apart.OTHER_READER
    if any(reader is not target and reader.depth <= target.depth for _, _, reader in uses):
        return Apart.TOGETHER
    if loop.split is not None and (
        target.split not in (None, loop.split) or (target.split is None and target.accumulates)
    ):
        return Apart.ROWS
    for base, use, reader in uses:
        if reader is target and not _reads_as_it_lies(fused, loop, base, use._replace(step=target)):
            return Apart.AXES if target.domain == loop.domain else Apart.EXTENTS
    return None


def _sort_nodes(graph: Graph, loops: list[Loop]) -> None:
    position = {node: i for i, node in enumerate(graph.nodes)}
    for loop in loops:
        loop.nodes.sort(key=position.__getitem__)


def _recompute(graph: Graph, fused: Fused) -> None:
    """Give cheap values to their readers as recipes (Note [recomputing])."""
    uses, in_memory = _uses(graph, fused)
    home, views = fused.home, fused.views
    kept: set[Value] = set(in_memory)  # values of loops that stay in memory
    reads: dict[Step, set[Value]] = {}
    for step in fused.steps:
        if isinstance(step, Loop):
            roots = {views[v][0] for node in step.nodes for v in node.inputs}
            reads[step] = {root for root in roots if home.get(root) is not step}
    for step in fused.steps:
        if not isinstance(step, Loop):
            continue
        for node in step.nodes:
            value = node.output
            if value not in uses or value in kept:
                continue
            recipe = _recipe(value, step, fused, kept)
            if recipe is None or not all(
                _accepts(fused, step, value, use, recipe, reads) for use in uses[value]
            ):
                kept.add(value)
                continue
            copies: dict[Step, Value] = {}
            for use in uses[value]:
                assert isinstance(use.step, Loop)
                if use.step not in copies:
                    copies[use.step] = _copy(fused, step, use.step, recipe)
                    reads[use.step].update([views[v][0] for step_node in recipe for v in step_node.inputs])
                inputs = list(use.node.inputs)
                inputs[use.position] = copies[use.step]
                use.node.inputs = tuple(inputs)


def _recipe(value: Value, loop: Loop, fused: Fused, kept: set[Value]) -> list[Node] | None:
    """Return the nodes that compute `value` from arrays in memory, or None if that is not cheap."""
    recipe = _Recomputation(loop, fused, kept)
    return list(recipe.nodes) if recipe.add(value) and recipe.nodes else None


class _Recomputation:
    """Nodes of a loop that compute a value from arrays in memory."""

    def __init__(self, loop: Loop, fused: Fused, kept: set[Value]) -> None:
        self.loop = loop
        self.fused = fused
        self.kept = kept
        self.nodes: dict[Node, None] = {}
        self.budget = cost.RECIPE

    def add(self, value: Value) -> bool:
        """Add the nodes that compute a value if that is cheap; return whether it is."""
        fused, loop, node = self.fused, self.loop, value.node
        if value in self.kept or node is None or fused.home.get(value) is not loop:
            base = fused.sources[value][0]
            return base is value or fused.home.get(base) is not loop
        own = cost.op_cost(node)
        if node.op.kind is not Kind.ELEMENTWISE or own is None or own > cost.CHEAP:
            return False
        if len([axis for axis in loop.maps[value] if axis >= 0]) != len(loop.domain):
            return False
        if node in self.nodes:
            return True
        self.budget -= max(own, 1)
        if self.budget < 0 or not all(self.add(v) for v in node.inputs):
            return False
        self.nodes[node] = None
        return True


def _accepts(
    fused: Fused, loop: Loop, value: Value, use: _Use, recipe: list[Node], reads: dict[Step, set[Value]]
) -> bool:
    """Return whether a reader can compute `value` itself and load at most one array of its size more."""
    if use.node.inputs[use.position] is not value or not _reads_as_it_lies(fused, loop, value, use):
        return False
    if not isinstance(use.step, Loop):
        return False
    inner = {node.output for node in recipe}
    leaves = {fused.view(v)[0] for node in recipe for v in node.inputs if v not in inner}
    new = [v for v in leaves - reads[use.step] if v.data is None or v.data.size > 1]
    # Numbers for each channel are few beside an image.
    new = [v for v in new if v.aval.size * _FEW > value.aval.size]
    return len(new) <= 1


def _copy(fused: Fused, source: Loop, target: Loop, recipe: list[Node]) -> Value:
    """Add copies of the nodes of a recipe to `target` and return the last one's value."""
    mapping: dict[Value, Value] = {}
    for at, node in enumerate(recipe):
        copy = Node(node.op, tuple([mapping.get(v, v) for v in node.inputs]), node.params, node.where)
        value = Value(node.output.aval, node.output.owner, copy)
        copy.makes((value,))
        mapping[node.output] = value
        fused.copies[value] = node.output
        target.nodes.insert(at, copy)
        target.maps[value] = source.maps[node.output]
        fused.home[value] = target
    return mapping[recipe[-1].output]


def _prune(graph: Graph, fused: Fused) -> None:
    """Remove the nodes of loops that nothing reads any more."""
    views, sources = fused.views, fused.sources
    needed = {base for v in graph.outputs for base in (views[v][0], sources[v][0])}
    for step in reversed(fused.steps):
        nodes = step.nodes if isinstance(step, Loop) else [step.node]
        kept: list[Node] = []
        for node in reversed(nodes):
            if not isinstance(step, Loop) or node.output in needed:
                kept.append(node)
                for value in node.inputs:
                    needed.add(views[value][0])
                    needed.add(sources[value][0])
        if isinstance(step, Loop):
            step.nodes = kept[::-1]
    fused.steps = [step for step in fused.steps if not isinstance(step, Loop) or step.nodes]
