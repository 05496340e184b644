# SPDX-License-Identifier: BSD-3-Clause
"""epilogues: joins a product and the loop that reads its result in one launch.

Note [epilogues]
A bias and an activation, or the mask of an adjoint and the sum of the bias's gradient, are a loop over the result of
a product. If nothing else reads the result, it need not be written: the kernel multiplies some rows, which stay in the
nearest cache, runs the loop over them, and goes on with the next rows. This saves the way to memory and back. Times in
us on one core with AVX-512, float32, apart and as one:

    relu((128, 64) (64, 128) + bias)                          10.6    9.9
    mask and sum over rows of (128, 10) (10, 128)              5.4    4.1
    tanh((32, 64) (64, 64) + bias)                            1.75   1.74

Rows of less than 64 elements, over which loops run several at a time or as if all were one, stay apart: Adam on
(32, 32) takes 0.3 us by itself, and 0.4 us row by row.

This pass comes last: launches are cut into parts and bands before, and a pair becomes one where both were cut alike, in
all tasks of a section. So no pass has to know how to cut a product with an epilogue.
"""

from collections import Counter
from collections.abc import Container, Sequence

from tracejit.ir import Value
from tracejit.passes import cost
from tracejit.passes.loops import products
from tracejit.passes.loops.launches import Epilogue, KernelLaunch, Launch, NestLaunch, Section, Single
from tracejit.passes.loops.nest import IN_PLACE, Accumulate, Nest

LONGEST_BYTES = 2048  # of a row of the result, so that the rows of a tile stay in the nearest cache
_PENDING = 8  # products that wait for their reader, at most


def join_epilogues(launches: Sequence[Launch], external: Container[Value]) -> list[Launch]:
    """Return launches in which products and the only readers of their results are one (Note [epilogues]).

    Args:
        launches: in the order of the program, cut into parts and bands.
        external: roots that are inputs or outputs of the program.
    """
    return _Joiner(launches, external).run()


class _Joiner:
    def __init__(self, launches: Sequence[Launch], external: Container[Value]) -> None:
        self.launches = launches
        # Tasks of a section touch the same roots.
        firsts = [
            single
            for launch in launches
            for single in (launch.tasks[0] if isinstance(launch, Section) else [launch])
        ]
        plain = [launch.writes[0] for launch in firsts if _is_plain(launch)]
        self.candidates = {root for root in plain if root not in external}
        if self.candidates:
            read = Counter(root for launch in firsts for root in set(launch.reads))
            written = Counter(root for launch in firsts for root in launch.writes)
            self.candidates = {root for root in self.candidates if read[root] == written[root] == 1}

    def run(self) -> list[Launch]:
        if not self.candidates:
            return [*self.launches]
        result: list[Launch] = []
        between: list[Single] = []  # launches that follow each other without a section
        for launch in self.launches:
            if isinstance(launch, Section):
                result += self.joined([between])[0]
                between = []
                result.append(Section(self.joined(launch.tasks)))
            else:
                between.append(launch)
        result += self.joined([between])[0]
        return result

    def joined(self, tasks: list[list[Single]]) -> list[list[Single]]:
        """Return tasks in which the same pairs of launches have become one."""
        pairs = self.pairs(tasks)
        if not pairs:
            return tasks
        left = set(pairs.values())
        return [
            [
                _pair(task[pairs[i]], launch) if i in pairs else launch
                for i, launch in enumerate(task)
                if i not in left
            ]
            for task in tasks
        ]

    def pairs(self, tasks: list[list[Single]]) -> dict[int, int]:
        """Return pairs by number within a task: the loop -> the product that it is the epilogue of."""
        pairs: dict[int, int] = {}
        pending: dict[Value, int] = {}  # products by their results
        for i, launch in enumerate(tasks[0]):
            if pending:
                written = launch.writes
                for root in [root for root in dict.fromkeys(launch.reads) if root in pending]:
                    product = pending.pop(root)
                    if i not in pairs and all(_fits(task[product], task[i]) for task in tasks):
                        pairs[i] = product
                for root, product in list(pending.items()):
                    # The product would run later, and read memory that has been overwritten.
                    if not set(tasks[0][product].touched).isdisjoint(written):
                        del pending[root]
            if self.is_candidate(launch):
                pending[launch.writes[0]] = i
                if len(pending) > _PENDING:
                    del pending[next(iter(pending))]
        return pairs

    def is_candidate(self, launch: Single) -> bool:
        return _is_plain(launch) and launch.writes[0] in self.candidates


def _is_plain(launch: Single) -> bool:
    """Return whether a launch is one product by tiles that fill vectors."""
    if not isinstance(launch, KernelLaunch) or launch.name != "product":
        return False
    count, m, n, *_, add = launch.numbers
    fits = n >= cost.LONG_ROW and n * launch.pointers[-1].dtype.itemsize <= LONGEST_BYTES
    return count == 1 and not add and fits and m > products.ROWS // 2


def _product_read(product: KernelLaunch, nest: Nest) -> int | None:
    """Return the number of the read of a nest that is the product's result, row by row, or None."""
    _, m, n, *_, out_row, _, _ = product.numbers
    out = product.pointers[-1]
    reads = [k for k, access in enumerate(nest.reads) if access.root is out.root]
    if len(reads) != 1 or nest.extents != (m, n):
        return None
    access = nest.reads[reads[0]]
    return reads[0] if (access.offset, access.strides) == (out.offset, (out_row, 1)) else None


def _fits(product: Single, reader: Single) -> bool:
    """Return whether a loop can run over a product's rows as they are computed."""
    if not isinstance(product, KernelLaunch) or not isinstance(reader, NestLaunch):
        return False
    nest = reader.nest
    if not set(product.touched).isdisjoint(reader.writes):
        return False  # the rows of a factor would be overwritten before the product of further rows
    if nest.split is not None or len(nest.full) != 1 or any(nest.row):
        return False
    if any(isinstance(line, Accumulate) and line.start == IN_PLACE for line in nest.full[0]):
        return False
    # Otherwise the loop walks along columns.
    units = [
        sum(access.strides[axis : axis + 1] == (1,) for access in (*nest.reads, *nest.writes))
        for axis in (0, 1)
    ]
    return units[0] <= units[1] and _product_read(product, nest) is not None


def _pair(product: Single, reader: Single) -> KernelLaunch:
    assert isinstance(product, KernelLaunch) and isinstance(reader, NestLaunch)
    product_read = _product_read(product, reader.nest)
    assert product_read is not None
    return product._replace(epilogue=Epilogue(reader.nest, product_read))
