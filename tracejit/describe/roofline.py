# SPDX-License-Identifier: BSD-3-Clause
"""The roofline: the least work of a launch, and the rates of this machine."""

import math
import time
from collections.abc import Callable, Sequence
from functools import cache

import numpy as np

from tracejit.describe.program import Description, Operation
from tracejit.ops import OPS, Kind
from tracejit.util.named_tuples import NamedTuple

PRODUCT = 1536  # rows and columns of a product that is large
COPY_BYTES = 1 << 28  # moved by a copy that fits no cache
_PRODUCTS = (128, 512)  # one thread computes the small one, so that load on the machine hardly matters
_FLOPS = 100_000  # of a launch whose rate counts as one of the machine
_COPIES = tuple(1 << exponent for exponent in (14, 17, 20, 23, 26))  # from the innermost cache to the memory
_GATHERS = frozenset({"take", "take_along_axis"})  # read as much as they return, not their whole input


class Rates(NamedTuple):
    """The rates of this machine.

    flops_per_s     of matrix products, by dtype
    copies          pairs of the bytes that a copy reads and writes, and its bytes per second
    """

    flops_per_s: dict[str, float]
    copies: tuple[tuple[int, float], ...]

    def bytes_per_s(self, size_bytes: float) -> float:
        """Return the rate at which `size_bytes` move, interpolated between the measured copies."""
        sizes = [math.log(size) for size, _ in self.copies]
        return float(np.interp(math.log(max(size_bytes, 1)), sizes, [rate for _, rate in self.copies]))

    def raised(self, costs: Sequence["Cost"], times_ns: Sequence[float]) -> "Rates":
        """Return rates of at least those that launches reached, given their costs and times."""
        flops_per_s = dict(self.flops_per_s)
        for cost, ns in zip(costs, times_ns, strict=True):
            if cost.flops >= _FLOPS and ns > 0 and cost.dtype in flops_per_s:
                flops_per_s[cost.dtype] = max(flops_per_s[cost.dtype], 1e9 * cost.flops / ns)
        return self._replace(flops_per_s=flops_per_s)


class Cost(NamedTuple):
    """The least work of a launch: the bytes that it moves, the flops that it computes, and their dtype."""

    bytes: int
    flops: int
    dtype: str

    def least_ns(self, rates: Rates) -> tuple[float, str]:
        """Return the time of moving or of computing, whichever is longer, and its name."""
        moving = 1e9 * self.bytes / rates.bytes_per_s(self.bytes)
        per_s = rates.flops_per_s.get(self.dtype) or max(rates.flops_per_s.values())
        computing = 1e9 * self.flops / per_s
        return (moving, "memory") if moving >= computing else (computing, "arithmetic")


def flops(name: str, inputs: Sequence[int], output: Sequence[int]) -> int:
    """Return the flops of an op, given the numbers of elements of its inputs and the shape of its output.

    Two for each term of a matrix product, one for each element that another op computes or folds.

    >>> flops("matmul", [128 * 64, 64 * 10], (128, 10)), flops("sum", [12], ())
    (163840, 12)
    """
    size = math.prod(output)
    if name in ("matmul", "matmul_add"):
        # x is (..., m, k), y is (..., k, n); one of them may be the same for all matrices.
        x, y = inputs[:2]
        return 2 * max(x * output[-1], y * output[-2])
    op = OPS.get(name)  # a program on disk may have ops of an older version
    if op is not None and op.kind in (Kind.ELEMENTWISE, Kind.REDUCE):
        return max([size, *inputs])
    return 0


def costs(description: Description, launch_of_row: Sequence[int]) -> list[Cost]:
    """Return the least work of each launch of a program.

    Values that it reads from other launches and values that it is the first to write count once each, in the size that
    it sees.

    Args:
        description: of the program.
        launch_of_row: the launch that each row belongs to.
    """
    operations = {operation.number: operation for operation in description.ops}
    results = {result.value: result for operation in description.ops for result in operation.outputs}
    stored = {buffer.value: buffer.bytes for buffer in description.buffers}

    def elements(value: str, dtype: str) -> int:
        result = results.get(value)
        if result is None:  # an argument or a constant, whose dtype is this one or a larger one
            return stored.get(value, 0) // np.dtype(dtype).itemsize
        return math.prod(result.shape)

    def size(value: str) -> int:
        result = results.get(value)
        if result is None:
            return stored.get(value, 0)
        return math.prod(result.shape) * np.dtype(result.dtype).itemsize

    def cost(ops: Sequence[Operation]) -> Cost:
        computed_here = {result.value for op in ops for result in op.outputs}
        read: dict[str, int] = {}
        flop_count = 0
        for op in ops:
            out = op.outputs[0]
            flop_count += flops(op.name, [elements(value, out.dtype) for value in op.inputs], out.shape)
            for value in op.inputs:
                if value not in computed_here:
                    most = size(out.value) if op.name in _GATHERS else size(value)
                    read[value] = max(read.get(value, 0), min(size(value), most))
        dtypes = [op.outputs[0].dtype for op in ops if op.outputs[0].dtype.startswith("float")]
        return Cost(sum(read.values()), flop_count, dtypes[-1] if dtypes else "float32")

    by_launch = [Cost(0, 0, "float32")] * (max(launch_of_row, default=-1) + 1)
    computes: set[int] = set()
    for row in description.rows:
        launch = launch_of_row[row.number]
        by_launch[launch] = cost([operations[number] for number in row.ops if number in operations])
        if row.ops:
            computes.add(launch)
    for buffer in description.buffers:
        if buffer.place.kind in ("arena", "output"):
            launch = launch_of_row[buffer.first]
            # A launch that computes nothing copies, so it reads as much as it writes.
            moved = buffer.bytes if launch in computes else 2 * buffer.bytes
            by_launch[launch] = by_launch[launch]._replace(bytes=by_launch[launch].bytes + moved)
    return by_launch


@cache
def rates() -> Rates:
    """Measure the machine, once in a process; this takes about 0.2 s."""
    return Rates(
        {
            dtype: max(product_rate(dtype, extent, 20) for extent in _PRODUCTS)
            for dtype in ("float32", "float64")
        },
        tuple([(size, copy_rate(size, 5 if size > 1 << 20 else 50)) for size in _COPIES]),
    )


def product_rate(dtype: str, extent: int, repeats: int) -> float:
    """Return the flops per second of NumPy's product of square matrices: the best of some repeats."""
    x = np.ones((extent, extent), dtype)
    out = np.empty_like(x)
    return 2 * extent**3 / fastest_s(lambda: np.matmul(x, x, out), repeats)


def copy_rate(size_bytes: int, repeats: int) -> float:
    """Return the bytes per second of a copy that moves `size_bytes`, half of them read: the best of some repeats."""
    source = np.ones(size_bytes // 16)
    target = np.empty_like(source)
    one = np.ones(1)
    call_s = fastest_s(lambda: np.copyto(one, one), repeats)
    copy_s = fastest_s(lambda: np.copyto(target, source), repeats)
    return size_bytes / max(copy_s - call_s, 0.1 * copy_s)


def fastest_s(function: Callable[[], object], repeats: int) -> float:
    """Return the seconds of the fastest of some calls, after one warm-up call."""
    function()
    best = math.inf
    for _ in range(repeats):
        started = time.perf_counter()
        function()
        best = min(best, time.perf_counter() - started)
    return best
