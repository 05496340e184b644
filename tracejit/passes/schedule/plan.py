# SPDX-License-Identifier: BSD-3-Clause
"""plan: steps become launches on memory: what is stored, where, for how long, and what is copied.

Every value that some other step reads, and every output, has memory; everything else lives in
registers of one kernel. Outputs are written straight into the arrays that the call returns. The rest shares one
arena, in which memory is reused as soon as its last reader has run.
"""

import math
from bisect import bisect_left, insort
from collections import Counter
from typing import NamedTuple

import numpy as np

from tracejit.aval import Aval
from tracejit.errors import CodegenError
from tracejit.ir import Graph, Node, Value
from tracejit.ops import Kind
from tracejit.ops.op import KernelCall, Layout, Piece, Pieces, Strided, contiguous
from tracejit.passes.fusion.fuse import Fused, Loop
from tracejit.passes.loops import products, tiles
from tracejit.passes.loops.launches import KernelLaunch, Launch, NestLaunch, Single, product_launch
from tracejit.passes.loops.lower import Access, Literal, Nest, copy_nest, lower
from tracejit.passes.loops.pieces import Destination, destinations_of, pieces_of, place, result
from tracejit.passes.loops.products import Matrices, Product
from tracejit.passes.schedule import epilogues
from tracejit.passes.schedule.sections import schedule
from tracejit.program import ALIGNMENT, Place


class Plan(NamedTuple):
    """Launches in order, the place of every root, the sizes of outputs, constants and arena, and the nodes whose
    indices are checked while they run: if there are some, one more output says whether one was out of range."""

    launches: list[Launch]
    places: dict[Value, Place]
    outputs: list[Aval]
    constants: list[np.ndarray]
    arena_bytes: int
    checked: list[Node]


def plan(graph: Graph, fused: Fused) -> Plan:
    """Return the plan of a graph whose steps are `fused`."""
    return _Planner(graph, fused).run()


class _Planner:
    def __init__(self, graph: Graph, fused: Fused) -> None:
        self.graph = graph
        self.fused = fused
        self.checked: list[Node] = []
        self._fault: Value | None = None
        self.launches: list[Single] = []
        self.places: dict[Value, Place] = {}
        self.copies: dict[Value, Value] = {}
        self.uses = Counter([v for node in graph.nodes for v in node.inputs])
        self.outputs = frozenset(graph.outputs)
        self.turned: dict[tuple[Matrices, int, int, int], Value] = {}  # copies of matrices, by rows
        self.destinations: dict[int, list[Destination]] = {}  # of what loops make, by loop
        self.put_together: dict[Node, list[tuple[Piece, Layout]]] = {}
        self.results: dict[Value, Destination] = {}  # of products that are only pieces
        self.there: set[tuple[Node, int]] = set()  # pieces that are where they belong

    def run(self) -> Plan:
        for i, value in enumerate(self.graph.inputs):
            self.places[value] = Place("input", i, 0)
        stored = self.stored()
        copied_outputs = self.place_outputs()
        for step in self.fused.steps:
            if isinstance(step, Loop):
                self.loop(step, stored.get(id(step), {}))
            else:
                self.call(step.node)
        for index, value in copied_outputs:
            target = Value(value.aval, None)
            self.places[target] = Place("output", index, 0)
            self.copy(self.fused.view(value), (target, contiguous(value.shape)))
        launches = epilogues.join(schedule(self.launches, self.places), self.places)
        touched = [list(dict.fromkeys(launch.touched)) for launch in launches]
        constants = self.place_constants(touched)
        arena_bytes = self.place_arena(touched)
        outputs = [v.aval for v in self.graph.outputs]
        return Plan(launches, self.places, outputs, constants, arena_bytes, self.checked)

    def stored(self) -> dict[int, dict[Value, bool]]:
        """Return, for each loop, the values that need memory, and whether they are read there, or are an output.

        If not, they are only pieces of what is put together.
        """
        home, sources, views = self.fused.home, self.fused.sources, self.fused.views
        result: dict[int, dict[Value, bool]] = {}

        def store(value: Value, is_read: bool = True) -> None:
            step = home.get(value)
            if isinstance(step, Loop):
                values = result.setdefault(id(step), {})
                values[value] = is_read or values.get(value, False)

        for step in self.fused.steps:
            if isinstance(step, Loop):
                for node in step.nodes:
                    for value in node.inputs:
                        base = sources[value][0]
                        if home.get(base) is not step or base in step.accumulates:
                            store(views[value][0])
            else:
                wanted = self.wanted(step.node)
                for number, value in enumerate(step.node.inputs):
                    store(views[value][0], number not in wanted)
        for value in self.graph.outputs:
            store(views[value][0])
        return result

    def place_outputs(self) -> list[tuple[int, Value]]:
        """Place roots that are outputs as they are; return the outputs that have to be copied at the end."""
        copied = []
        for index, value in enumerate(self.graph.outputs):
            root, layout = self.fused.view(value)
            if (
                root in self.fused.home
                and root not in self.places
                and layout.offset == 0
                and value.aval.size == root.aval.size
                and layout == contiguous(value.shape)
            ):
                self.places[root] = Place("output", index, 0)
            else:
                copied.append((index, value))
        return copied

    def place_constants(self, touched: list[list[Value]]) -> list[np.ndarray]:
        """Place the constants among what launches touch, and return them."""
        constants: list[np.ndarray] = []
        for roots in touched:
            for root in roots:
                if root not in self.places and root.node is None and root.data is not None:
                    self.places[root] = Place("constant", len(constants), 0)
                    constants.append(np.ascontiguousarray(root.data))
        return constants

    def place_arena(self, touched: list[list[Value]]) -> int:
        """Place what launches touch and has no place yet in the arena, and return its size in bytes."""
        places = self.places
        last_use: dict[Value, int] = {}
        for number, roots in enumerate(touched):
            for root in roots:
                if root not in places:
                    last_use[root] = number
        arena = Arena()
        dying: list[list[Value]] = [[] for _ in touched]
        for root, number in last_use.items():
            dying[number].append(root)
        for roots, last in zip(touched, dying, strict=True):
            for root in roots:
                if root not in places:
                    places[root] = Place("arena", 0, arena.take(_bytes(root)))
            for root in last:
                arena.give(places[root].offset, _bytes(root))
        return arena.size_bytes

    def loop(self, loop: Loop, stored: dict[Value, bool]) -> None:
        """Launch a loop, which writes pieces where they belong if it can."""
        nest = lower(loop, self.fused, stored)
        destinations = self.destinations.get(id(loop))
        if destinations:
            placed = place(nest, loop, destinations, [value for value, is_read in stored.items() if is_read])
            if placed is not None:
                nest = placed
                self.there.update((each.node, each.number) for each in destinations)
        self.run_nest(nest)

    def run_nest(self, nest: Nest) -> None:
        """Launch a nest, over several short rows at a time."""
        tiled = tiles.tile(nest)
        if tiled is not None:
            for part in tiled:
                self.run_nest(part)
            return
        self.launches.append(NestLaunch(nest))

    def copy(self, source: tuple[Value, Layout] | Literal, target: tuple[Value, Layout]) -> None:
        if 0 not in target[1].shape:
            self.run_nest(copy_nest(source, target))

    def contiguous(self, value: Value) -> Access:
        """Return access to a contiguous copy of `value`, or to `value` itself where it is contiguous."""
        root, layout = self.fused.view(value)
        if layout.strides != contiguous(value.shape).strides and value.aval.size > 1:
            known = self.copies.get(value)
            if known is None:
                known = self.copies[value] = Value(value.aval, None)
                self.copy((root, layout), (known, contiguous(value.shape)))
            return Access(known, 0, (), value.dtype)
        return Access(root, layout.offset, (), value.dtype)

    def call(self, node: Node) -> None:
        emit = node.op.emit
        if isinstance(emit, Strided):
            # A view that the operand's layout does not allow: the operand is copied, the view is then free.
            source, out = node.inputs[0], node.output
            self.copy(self.fused.view(source), (out, contiguous(source.shape)))
        elif isinstance(emit, Pieces):
            self.pieces(node)
        elif node.op.kind is Kind.CONTRACT:
            self.contract(node)
        elif isinstance(emit, KernelCall):
            avals = [v.aval for v in node.outputs]
            numbers = emit.numbers(
                avals[0] if len(avals) == 1 else tuple(avals), *[v.aval for v in node.inputs], **node.params
            )
            pointers = [self.contiguous(v) for v in node.inputs]
            pointers += [Access(v, 0, (), v.dtype) for v in node.outputs]
            if emit.checked:
                pointers.append(Access(self.fault(), 0, (), np.dtype(np.int64)))
                self.checked.append(node)
            writes = len(node.outputs) + emit.checked
            self.launches.append(
                KernelLaunch(emit.name, tuple(numbers), tuple(pointers), writes, node, whole=emit.cut)
            )
        else:
            raise CodegenError(f"{node.op.name}: an op of kind {node.op.kind.name} cannot be compiled.")

    def fault(self) -> Value:
        """Return the value that kernels set where an index is out of range: one more output, which starts as 0."""
        if self._fault is None:
            self._fault = Value(Aval((), None, np.dtype(np.int64)), None)
            self.places[self._fault] = Place("output", len(self.graph.outputs), 0)
        return self._fault

    def wanted(self, node: Node) -> set[int]:
        """Note which inputs of a step loops are to write where the step puts them together; return their numbers."""
        if not isinstance(node.op.emit, Pieces):
            return set()
        pieces = self.put_together[node] = pieces_of(node)
        found = destinations_of(node, pieces, self.fused)
        for each in found:
            home = self.fused.home[each.value]
            if isinstance(home, Loop):
                self.destinations.setdefault(id(home), []).append(each)
            elif self.is_only(node.inputs[int(pieces[each.number][0].source)], each.value):
                self.results[each.value] = each
        return {int(pieces[each.number][0].source) for each in found}

    def is_only(self, piece: Value, value: Value) -> bool:
        """Return whether all that is done with a value is that it, or a view of it, is this piece."""
        while piece is not value:
            if self.uses[piece] > 1 or piece in self.outputs or piece.node is None:
                return False
            piece = piece.node.inputs[0]
        return self.uses[value] == 1 and value not in self.outputs

    def pieces(self, node: Node) -> None:
        """Copy the pieces that are not where they belong."""
        out = node.output
        for number, (piece, target) in enumerate(self.put_together[node]):
            if (node, number) in self.there:
                continue
            if piece.fill:
                self.copy(Literal(out.dtype.type(piece.source), out.dtype), (out, target))
                continue
            value = node.inputs[int(piece.source)]
            root, layout = self.fused.view(value)
            extra = len(piece.shape) - len(layout.shape)
            own = tuple([
                0 if extent == 1 else stride for extent, stride in zip(layout.shape, layout.strides, strict=True)
            ])  # fmt: skip
            self.copy((root, Layout(layout.offset, piece.shape, (0,) * extra + own)), (out, target))

    def contract(self, node: Node) -> None:
        """Launch a matrix product, by tiles or by BLAS."""
        x, y, *added = node.inputs
        out = node.output
        if out.dtype.kind != "f":
            emit = node.op.emit
            assert isinstance(emit, KernelCall)
            operands = [*(self.spread(v, out.shape[:-2]) for v in (x, y)), *added]
            numbers = emit.numbers(out.aval, *[v.aval for v in operands])
            pointers = (*map(self.contiguous, operands), Access(out, 0, (), out.dtype))
            self.launches.append(KernelLaunch(emit.name, tuple(numbers), pointers, 1, node))
            return
        if out.aval.size == 0:
            return
        target = Access(self.fused.view(out)[0], 0, (), out.dtype)
        if added and target.root is out:
            self.copy(self.fused.view(added[0]), (out, contiguous(out.shape)))
        batch = out.shape[:-2]
        count = math.prod(batch)
        (m, n), k = out.shape[-2:], x.shape[-1]
        left, right = self.matrices(x, batch), self.matrices(y, batch)
        if m == 1:
            left = left._replace(row=left.batch)
        if right.batch == 0 and left.batch == m * left.row:
            count, m = 1, count * m  # all the rows are those of one matrix
        own = Matrices(target, n, 1, m * n)
        product = Product(count, m, n, k, left, right, own, len(added))
        if n == 1 and left.row == 1:
            # A tile of out' = y' x' has many columns, that of out = x y one.
            product = Product(count, n, m, k, right.turned, left.turned, own._replace(row=m), len(added))
        who = products.multiplier(product, self.uses[y] > 1)
        destination = self.results.get(out)
        placed = None if destination is None else result(product, destination, who)
        if destination is not None and placed is not None:
            product = product._replace(out=placed)
            self.there.add((destination.node, destination.number))
        if who == "gemm":
            self.launch_blas(node, product)
            return
        self.launches.append(product_launch(self.readable(product, who), who, node))

    def readable(self, product: Product, who: str) -> Product:
        """Return a product of ours with factors that its kernel can read, copying them where it cannot."""
        if who in ("columns", "dots"):  # which are chosen where they can
            return product
        panels = who == "panels"
        count, m, n, k, x, y, _, _ = product
        if panels and x.row != 1 and x.column != 1:
            x = self.by_rows(x, count, m, k)
        if not product.by_rows and not (panels and y.row == 1):
            y = self.by_rows(y, count, k, n)
        return product if x is product.x and y is product.y else product._replace(x=x, y=y)

    def launch_blas(self, node: Node, product: Product) -> None:
        """Launch a product by BLAS, which takes transposes and batch strides as numbers."""
        count, m, n, k, *factors, out, add = product
        numbers = [count, m, n, k]
        pointers = []
        for matrices, rows, columns in zip(factors, (m, k), (k, n), strict=True):
            flags = matrices.leading(rows, columns)
            if flags is None:
                matrices = self.by_rows(matrices, count, rows, columns)
                flags = (0, columns)
            numbers += (*flags, matrices.batch)
            pointers.append(matrices.access)
        numbers.append(add)
        pointers.append(out.access)
        symbol = "sgemm" if node.output.dtype == np.float32 else "dgemm"
        self.launches.append(KernelLaunch("gemm", tuple(numbers), tuple(pointers), 1, node, symbol))

    def matrices(self, value: Value, batch: tuple[int, ...]) -> Matrices:
        """Return how the matrices of `value`, broadcast to batch axes, lie in memory."""
        root, layout = self.fused.views[value]
        strides = products.strides(layout, batch)
        if strides is None:
            value = self.spread(value, batch)
            access = self.contiguous(value)
            strides = products.strides(contiguous(value.shape), batch)
            assert strides is not None
            return Matrices(access, *strides)
        return Matrices(Access(root, layout.offset, (), value.dtype), *strides)

    def by_rows(self, matrices: Matrices, count: int, rows: int, columns: int) -> Matrices:
        """Return copies of matrices that lie by rows."""
        count = count if matrices.batch else 1
        key = (matrices, count, rows, columns)
        target = self.turned.get(key)
        if target is None:
            source, row, column, batch = matrices
            target = self.turned[key] = Value(Aval((count, rows, columns), None, source.dtype), None)
            if row == 1:
                written = Access(target, 0, (), source.dtype)
                numbers = (count, columns, rows, column, batch)
                self.launches.append(KernelLaunch("transpose", numbers, (source, written), 1, None))
            else:
                layout = Layout(source.offset, target.shape, (batch, row, column))
                self.copy((source.root, layout), (target, contiguous(target.shape)))
        copied = Access(target, 0, (), target.dtype)
        return Matrices(copied, columns, 1, rows * columns if matrices.batch else 0)

    def spread(self, value: Value, batch: tuple[int, ...]) -> Value:
        """Return a value whose view is `value` broadcast to the batch axes."""
        shape = (*batch, *value.shape[-2:])
        if shape == value.shape:
            return value
        root, layout = self.fused.view(value)
        spread = Value(Aval(shape, None, value.dtype), None)
        extra = len(shape) - value.ndim
        strides = [0] * extra + [
            0 if extent == 1 else stride for extent, stride in zip(layout.shape, layout.strides, strict=True)
        ]
        self.fused.views[spread] = (root, Layout(layout.offset, shape, tuple(strides)))
        return spread


class Arena:
    """Hands out byte ranges, best fit first, and joins ranges that are given back."""

    def __init__(self) -> None:
        self.size_bytes = 0
        self._by_size: list[tuple[int, int]] = []  # (size, offset) of free ranges, sorted
        self._by_start: dict[int, int] = {}
        self._by_end: dict[int, int] = {}

    def take(self, size_bytes: int) -> int:
        """Return the offset of a range of at least `size_bytes`."""
        size = _rounded(size_bytes)
        at = bisect_left(self._by_size, (size, -1))
        if at < len(self._by_size):
            found, offset = self._by_size[at]
            self._remove(offset, found)
            if found > size:
                self._insert(offset + size, found - size)
            return offset
        offset = self.size_bytes
        self.size_bytes += size
        return offset

    def give(self, offset: int, size_bytes: int) -> None:
        """Take back a range handed out by take."""
        size = _rounded(size_bytes)
        before = self._by_end.get(offset)
        if before is not None:
            self._remove(before, offset - before)
            offset, size = before, size + offset - before
        after = self._by_start.get(offset + size)
        if after is not None:
            self._remove(offset + size, after)
            size += after
        self._insert(offset, size)

    def _insert(self, offset: int, size: int) -> None:
        insort(self._by_size, (size, offset))
        self._by_start[offset] = size
        self._by_end[offset + size] = offset

    def _remove(self, offset: int, size: int) -> None:
        del self._by_size[bisect_left(self._by_size, (size, offset))]
        del self._by_start[offset]
        del self._by_end[offset + size]


def _bytes(root: Value) -> int:
    return root.aval.size * root.aval.dtype.itemsize


def _rounded(size_bytes: int) -> int:
    return max(ALIGNMENT, -(-size_bytes // ALIGNMENT) * ALIGNMENT)
