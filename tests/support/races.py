# SPDX-License-Identifier: BSD-3-Clause
"""Checks a plan for races: the elements that each launch reads and writes, and all orders of threads."""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from tracejit.codegen.templates.convolution import GEOMETRY
from tracejit.ir import Node, Value
from tracejit.ops.op import KernelCall, RangeCut
from tracejit.passes.loops.launches import Blocks, KernelLaunch, NestLaunch, Section, Single
from tracejit.passes.loops.nest import IN_PLACE, Access, Accumulate
from tracejit.passes.schedule.memory import Plan
from tracejit.program import Place


class Touch(NamedTuple):
    """Elements of `root` that a launch reads or writes."""

    root: Value
    elements: np.ndarray
    is_written: bool


def touches(launch: Single, stop: int | None = None) -> list[Touch]:
    """Return the elements that a launch touches, reads first; `stop` is the end of a part of a kernel's output."""
    if isinstance(launch, KernelLaunch) and isinstance(launch.whole, Blocks) and launch.whole.result:
        return list(_of_convolution(launch, launch.whole))
    if isinstance(launch, KernelLaunch) and isinstance(launch.whole, RangeCut) and launch.whole.images:
        return list(_of_images(launch, launch.whole.images))
    if isinstance(launch, KernelLaunch) and launch.epilogue is not None:
        nest, product_read = launch.epilogue
        rest = nest._replace(reads=[access for k, access in enumerate(nest.reads) if k != product_read])
        factors = [touch for touch in _of_product(launch) if not touch.is_written]
        return [*factors, *touches(NestLaunch(rest))]
    if isinstance(launch, NestLaunch):
        nest = launch.nest
        lines = [line for group in (*nest.row, *nest.full) for line in group]
        in_place = {line.write for line in lines if isinstance(line, Accumulate) and line.start == IN_PLACE}
        read = [*nest.reads, *[nest.writes[k] for k in sorted(in_place)]]
        return [Touch(a.root, _walked(a, nest.extents), False) for a in read] + [
            Touch(a.root, _walked(a, nest.extents), True) for a in nest.writes
        ]
    if launch.name in ("product", "panels", "columns", "dots"):
        return list(_of_product(launch))
    *_, out = launch.pointers
    touches_of_launch = [Touch(root, np.arange(root.aval.size), False) for root in launch.reads]
    if launch.name == "gemm" and launch.numbers[10]:
        touches_of_launch.append(Touch(out.root, np.arange(out.root.aval.size), False))
    for access in launch.pointers[len(launch.pointers) - launch.written :]:
        end = access.root.aval.size if stop is None else stop
        touches_of_launch.append(Touch(access.root, np.arange(access.offset, end), True))
    return touches_of_launch


def _walked(access: Access, extents: Sequence[int]) -> np.ndarray:
    return _spanned(access.offset, *zip(extents, access.strides, strict=True))


def _spanned(offset: int, *axes: tuple[int, int]) -> np.ndarray:
    elements = np.array([offset])
    for extent, stride in axes:
        if stride:
            elements = np.add.outer(elements, stride * np.arange(extent)).ravel()
    return elements


def _of_product(launch: KernelLaunch) -> Iterator[Touch]:
    count, m, n, k, x_row, x_column, x_batch, y_row, *strides, out_row, out_batch, add = launch.numbers
    y_column, y_batch = (1, *strides) if launch.name == "product" else strides
    x, y, out = launch.pointers
    if 0 in (count, m, n):
        return
    if k:
        yield Touch(x.root, _spanned(x.offset, (count, x_batch), (m, x_row), (k, x_column)), False)
        yield Touch(y.root, _spanned(y.offset, (count, y_batch), (k, y_row), (n, y_column)), False)
    written = _spanned(out.offset, (count, out_batch), (m, out_row), (n, 1))
    if add:
        yield Touch(out.root, written, False)
    yield Touch(out.root, written, True)


def _of_convolution(launch: KernelLaunch, blocks: Blocks) -> Iterator[Touch]:
    """Yield what a range of images of a convolution touches; of its operands, filters and biases as a whole."""
    (count, stride), *inner = blocks.result
    first, last = (number * count // blocks.total for number in launch.numbers[:2])
    given = dict(zip(GEOMETRY, launch.numbers, strict=False))
    x, *others, out = launch.pointers
    axes = [(given[f"extent{i}"], given[f"x{i}"]) for i in range(3)]
    axes.append((given["groups"] * given["channels"], given["x_channel"]))
    at = x.offset + first * given["x_image"]
    yield Touch(x.root, _spanned(at, (last - first, given["x_image"]), *axes), False)
    if launch.epilogue is not None:
        nest, read = launch.epilogue
        others += [access for k, access in enumerate(nest.reads) if k != read]
        (out,) = nest.writes
    for access in others:
        yield Touch(access.root, np.arange(access.root.aval.size), False)
    yield Touch(out.root, _spanned(out.offset + first * stride, (last - first, stride), *inner), True)


def _of_images(launch: KernelLaunch, images: Callable[[Node], int]) -> Iterator[Touch]:
    """Yield what a range of rows touches of arrays that consist of images, one after the other."""
    node = launch.node
    assert node is not None and isinstance(node.op.emit, KernelCall)
    results = [value.aval for value in node.outputs]
    result = results[0] if len(results) == 1 else tuple(results)
    total = node.op.emit.numbers(result, *[value.aval for value in node.inputs], **node.params)[1]
    first, last = (number * images(node) // total for number in launch.numbers[:2])
    for k, access in enumerate(launch.pointers):
        size = access.root.aval.size // images(node)
        elements = access.offset + np.arange(first * size, last * size)
        yield Touch(access.root, elements, k >= len(launch.pointers) - launch.written)


class Checker:
    """Goes through a plan and asserts that

    - no task of a section touches elements that another task of the section writes,
    - elements of the arena and of outputs are written before they are read, for the same value: no other value has used
      the memory since,
    - constants are not written, inputs only as the plan says, and all elements of outputs are,
    - launches without elements also begin within their memory: load() refuses other addresses.
    """

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        sizes = {Place("output", i, 0): a.size * a.dtype.itemsize for i, a in enumerate(plan.outputs)}
        sizes[Place("arena", 0, 0)] = plan.arena_bytes
        self.numbers: dict[Value, int] = {}
        self.first: dict[
            Place, int
        ] = {}  # the first byte of a written input, which may lie before its first element
        for place, (low, high) in self.spans().items():
            self.first[place], sizes[place] = low, high - low
        self.owners = {place: np.full(size, -1, np.int32) for place, size in sizes.items()}
        for root, place in plan.places.items():
            if place in self.first:
                self.owners[place][:] = self.numbers.setdefault(root, len(self.numbers))
        self.tasks = 0

    def spans(self) -> dict[Place, tuple[int, int]]:
        """Return the bytes that launches touch of each input that is written."""
        spans: dict[Place, tuple[int, int]] = {}
        for launch in self.plan.launches:
            tasks = launch.tasks if isinstance(launch, Section) else [[launch]]
            for touch in [touch for task in tasks for single in task for touch in touches(single)]:
                place, size = self.plan.places.get(touch.root), touch.root.dtype.itemsize
                if place and place.kind == "input" and place.number in self.plan.written:
                    low, high = spans.get(place, (0, 0))
                    first, last = touch.elements.min(initial=0), touch.elements.max(initial=-1)
                    spans[place] = min(low, int(first) * size), max(high, (int(last) + 1) * size)
        return spans

    def run(self) -> int:
        """Return the number of tasks."""
        for launch in self.plan.launches:
            tasks = launch.tasks if isinstance(launch, Section) else [[launch]]
            for single in [each for task in tasks for each in task]:
                self.begin(single)
            if isinstance(launch, Section):
                self.section(launch)
            else:
                self.follow(touches(launch))
        for place, owners in self.owners.items():
            assert place.kind != "output" or (owners >= 0).all(), f"output {place.number} is not written"
        return self.tasks

    def begin(self, launch: Single) -> None:
        is_nest = isinstance(launch, NestLaunch)
        nests = [launch.nest] if is_nest else [] if launch.epilogue is None else [launch.epilogue.nest]
        accesses = [access for nest in nests for access in (*nest.reads, *nest.writes)]
        for access in accesses if is_nest else [*launch.pointers, *accesses]:
            if access.root not in self.plan.places:
                assert launch.epilogue is not None and access.root is launch.pointers[-1].root
                continue
            if self.plan.places[access.root].kind != "input":  # an input begins where its layout says
                end = max(access.root.aval.size, 1)
                assert 0 <= access.offset < end, f"a launch begins at element {access.offset} of {end}"

    def section(self, section: Section) -> None:
        stops: dict[tuple[int, int], int] = {}
        for i, (task, after) in enumerate(zip(section.tasks, section.tasks[1:], strict=False)):
            for k, (launch, further) in enumerate(zip(task, after, strict=True)):
                if isinstance(launch, KernelLaunch) and isinstance(further, KernelLaunch):
                    stops[i, k] = further.pointers[-1].offset
        tasks_touches = [
            [touches(launch, stops.get((i, k))) for k, launch in enumerate(task)]
            for i, task in enumerate(section.tasks)
        ]
        self.tasks += len(tasks_touches)
        writers: dict[Place, np.ndarray] = {}
        for wanted in (True, False):
            for number, task in enumerate(tasks_touches):
                for touch in [t for each in task for t in each if t.is_written >= wanted]:
                    at = self.at(touch)
                    if at is None:
                        continue
                    place, places = at
                    last_writer = writers.setdefault(place, np.full(self.owners[place].size, -1, np.int32))
                    others = last_writer[places]
                    assert ((others == -1) | (others == number)).all(), (
                        f"task {number} touches what task {others.max()} writes of {place.kind}"
                    )
                    if touch.is_written:
                        last_writer[places] = number
        for task in tasks_touches:
            for each in task:
                self.follow(each)

    def follow(self, touched: list[Touch]) -> None:
        # Once more after the writes: a launch must not overwrite elements of another value that it reads.
        for touch in (*touched, *touched):
            at = self.at(touch)
            if at is None:
                continue
            owners, places = self.owners[at[0]], at[1]
            number = self.numbers.setdefault(touch.root, len(self.numbers))
            if touch.is_written:
                owners[places] = number
            elif not (owners[places] == number).all():
                raise AssertionError(f"memory of {touch.root} is not its own, or not written")

    def at(self, touch: Touch) -> tuple[Place, np.ndarray] | None:
        """Return the memory of elements, and their bytes; None for memory that is never written."""
        root = touch.root
        kind, number, offset = self.plan.places[root]
        if Place(kind, number, 0) not in self.owners:
            # An input, a constant, or the integer that reports a fault.
            assert not touch.is_written or (kind, number) == ("output", len(self.plan.outputs))
            return None
        size = root.dtype.itemsize
        place = Place(kind, number, 0)
        if place not in self.first:
            assert (
                touch.elements.size == 0 or 0 <= touch.elements.min() <= touch.elements.max() < root.aval.size
            )
        first = offset + size * touch.elements - self.first.get(place, 0)
        return Place(kind, number, 0), np.add.outer(first, np.arange(size)).ravel()


def check_races(plan: Plan) -> int:
    """Assert that a plan is sound in any order of its tasks; return how many there are."""
    return Checker(plan).run()
