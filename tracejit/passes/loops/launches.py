# SPDX-License-Identifier: BSD-3-Clause
"""Launches: of loop nests, of other kernels, and sections of tasks that may run at the same time."""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from tracejit.ir import Node, Value, Where
from tracejit.ops.op import Cut, RangeCut
from tracejit.passes.loops.nest import Access, Nest
from tracejit.passes.loops.products import Product
from tracejit.passes.loops.spans import Inner, RowSpan
from tracejit.program import Place, Program
from tracejit.util.named_tuples import NamedTuple


class Blocks(NamedTuple):
    """The division of a kernel's work into calls on consecutive blocks, from the kernel's first integer to its second.

    total       the number of blocks
    parts       the number of calls
    unit        a call begins at a multiple of it
    step        the elements between the results of two calls, 0 if all write to one
    ns          about how long all blocks take
    images      of a batch, if each has as many blocks as another, one after the other
    spans       how images lie in what is read and written; none if they cannot be computed apart
    result      extents and strides of the result of a convolution: images, three spatial axes, filters
    """

    total: int
    parts: int
    unit: int = 1
    step: int = 0
    ns: float = 0.0
    images: int = 1
    spans: tuple[RowSpan, ...] = ()
    result: tuple[Inner, ...] = ()


class NestLaunch(NamedTuple):
    """A loop nest to run."""

    nest: Nest

    @property
    def reads(self) -> list[Value]:
        return [access.root for access in self.nest.reads]

    @property
    def writes(self) -> list[Value]:
        return [access.root for access in self.nest.writes]

    @property
    def touched(self) -> list[Value]:
        return [*self.reads, *self.writes]

    @property
    def nodes(self) -> list[Node]:
        return self.nest.nodes


class Epilogue(NamedTuple):
    """A loop nest over the result of a product or a convolution, which is the nest's read number `product_read`."""

    nest: Nest
    product_read: int


class KernelLaunch(NamedTuple):
    """A kernel that is not a loop nest, name(*numbers, *pointers), or a product or a convolution with an epilogue."""

    name: str
    numbers: tuple[int, ...]
    pointers: tuple[Access, ...]  # strides are not used: the kernel knows its layout
    written: int  # the number of pointers, at the end, that are written
    node: Node | None
    symbol: str | None = None  # a routine outside kernels/ whose address is the first argument
    whole: Product | Cut | RangeCut | Blocks | None = (
        None  # how it can be cut into parts; of a part, what was cut
    )
    epilogue: Epilogue | None = None  # with one, the result is not in memory

    @property
    def reads(self) -> list[Value]:
        factors = [access.root for access in self.pointers[: len(self.pointers) - self.written]]
        if self.epilogue is None:
            return factors
        nest, product_read = self.epilogue
        return factors + [access.root for k, access in enumerate(nest.reads) if k != product_read]

    @property
    def writes(self) -> list[Value]:
        if self.epilogue is not None:
            return [access.root for access in self.epilogue.nest.writes]
        return [access.root for access in self.pointers[len(self.pointers) - self.written :]]

    @property
    def touched(self) -> list[Value]:
        return (
            [access.root for access in self.pointers]
            if self.epilogue is None
            else [*self.reads, *self.writes]
        )

    @property
    def nodes(self) -> list[Node]:
        nodes = [] if self.node is None else [self.node]
        return nodes if self.epilogue is None else [*nodes, *self.epilogue.nest.nodes]


class LoopLaunch(NamedTuple):
    """A loop: the rows of a program of its own, the body, up to `most` times.

    inputs      for each input of the body its memory, and how many bytes this moves on after each step
    outputs     the same for the outputs of the body, and last for the fault if the body checks indices
    constants   the constants of the body
    scratch     the arena of the body
    written     the numbers of the inputs that the body writes, whose memory is read before
    condition   the bool that says whether the loop goes on, if there is one
    """

    node: Node
    body: Program
    most: int
    inputs: Sequence[tuple[Access, int]]
    outputs: Sequence[tuple[Access, int]]
    constants: Sequence[Value]
    scratch: Value
    condition: Access | None = None
    origins: Mapping[str, dict[str, Node]] = MappingProxyType({})
    whole: None = None

    def memory(self, place: Place) -> tuple[Access, int]:
        """Return the memory of a place of the body, and how many bytes it moves on after each step."""
        if place.kind == "input":
            return self.inputs[place.number]
        if place.kind == "output":
            return self.outputs[place.number]
        root = self.constants[place.number] if place.kind == "constant" else self.scratch
        return Access(root, 0, (), root.dtype), 0

    def with_memory(self, moved: Callable[[Access], Access]) -> "LoopLaunch":
        """Return the launch with other memory in place of that of its inputs and outputs."""
        inputs, outputs = (
            [(moved(access), step) for access, step in some] for some in (self.inputs, self.outputs)
        )
        condition = None if self.condition is None else moved(self.condition)
        return self._replace(inputs=inputs, outputs=outputs, condition=condition)

    @property
    def where(self) -> tuple[Where, ...]:
        return () if self.node.where is None else (self.node.where,)

    @property
    def reads(self) -> list[Value]:
        first = [] if self.condition is None else [self.condition.root]
        return [*first, *[access.root for access, _ in self.inputs], *self.constants]

    @property
    def writes(self) -> list[Value]:
        written = [self.inputs[number][0].root for number in self.body.written]
        return [*written, *[access.root for access, _ in self.outputs], self.scratch]

    @property
    def touched(self) -> list[Value]:
        return [*self.reads, *self.writes]

    @property
    def nodes(self) -> list[Node]:
        return [self.node]


Single = NestLaunch | KernelLaunch | LoopLaunch


class Section(NamedTuple):
    """Tasks that may run at the same time; each has the same number of launches, one after the other."""

    tasks: list[list[Single]]

    @property
    def touched(self) -> list[Value]:
        return [root for task in self.tasks for launch in task for root in launch.touched]


Launch = Single | Section


def row_count(launch: Launch) -> int:
    """Return how many rows of a program a launch is."""
    if isinstance(launch, Section):
        return sum(map(len, launch.tasks))
    return len(launch.body.rows) if isinstance(launch, LoopLaunch) else 1


def copied(launch: Single) -> Value | None:
    """Return the root that a launch only copies, each element to the same place, or None."""
    if not isinstance(launch, NestLaunch) or launch.nest.nodes or len(launch.nest.reads) != 1:
        return None
    (read,), (write, *more) = launch.nest.reads, launch.nest.writes
    same = (read.offset, read.strides, read.dtype) == (write.offset, write.strides, write.dtype)
    return read.root if same and not more else None


def product_launch(
    product: Product, kernel: str, node: Node | None, whole: Product | None = None
) -> KernelLaunch:
    """Return the launch of a product by one of our kernels, such as "panels".

    Args:
        product: what is computed.
        kernel: the name of the kernel.
        node: the matrix product.
        whole: the product that this one is a part of, whose sizes choose among kernels of that name; itself by default.
    """
    count, m, n, k, x, y, out, add = product
    y_strides = (y.row, y.batch) if kernel == "product" else (y.row, y.column, y.batch)
    numbers = (count, m, n, k, x.row, x.column, x.batch, *y_strides, out.row, out.batch, add)
    return KernelLaunch(kernel, numbers, (x.access, y.access, out.access), 1, node, whole=whole or product)
