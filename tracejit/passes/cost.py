# SPDX-License-Identifier: BSD-3-Clause
"""The cost model: about how long loops and products take, and from where on a rewrite pays.

A cost without a unit is that of an op's `Scalar` rule: 1 for an addition, 10 and more for functions such as exp. Times
are those of one core with AVX-512. Estimates need not be exact, because they only decide what is worth a second thread.
Us for 65,536 elements of float32:

                 neg    add   sqrt    exp   tanh    log
    estimated    7.7   11.0   13.6   30.2   30.2   30.2
    measured     6.7   10.0   12.8   15.3   19.5   25.7
"""

from tracejit.ir import Node
from tracejit.ops.op import Scalar

# The choice between computing again, and storing and loading. Note [passes] has the gain for the gradient of a layer
# normalisation.
CHEAP = 3  # the cost of an op that is computed again; values of dearer ops are stored
CHEAP_TOGETHER = 5  # the same for all ops and loads that one value needs (Note [passes])
RECIPE = 4  # the cost of all that readers in other loops compute again (Note [recomputing])

# Rows. LLVM unrolls loops of float32 by 64 elements; those left over run one by one. Note [tiles] and Note [short rows]
# have the times of short rows.
DEAR = 10  # the cost of an op, such as exp, that is slow for an element left over from vectors
LONG_ROW = 64  # elements: a row of vectors, which needs no help (Note [tiles], Note [short rows])
UNROLLED = 64  # elements

# Time.
NS_PER_TOUCH = 0.05  # an element that is loaded or stored
NS_PER_COST = 0.018  # an element, for each unit of an op's cost
MULTIPLIED_BYTES_PER_NS = 300  # 75 multiplications of float32: 150 GFLOP/s

# Threads. Handing work to a thread that is awake takes 0.5 us, but its operands have to come from this CPU's cache, and
# its results have to go back. A product (128, 64) (64, 128), float32, whose factors one CPU writes, takes 14 us on that
# CPU and 16 us on two; (256, 128) (128, 128) takes 53 us and 48 us. Elementwise work begins to pay at about the same
# time.
LEAST_SPLIT_NS = 40_000.0  # a launch that takes less runs as a whole
LEAST_SECTION_NS = 40_000.0  # a section that takes less runs on one thread
MOST_SECTION_BYTES = 1 << 21  # that a section writes into the arena: more would leave the near cache
TINY_NS = 100.0  # a launch that takes less, such as a copy of a bias, runs before a section if it can
SMALL_NS = 1000.0  # the same for a launch that cannot join the section
PART_NS = 10_000.0  # a part of a launch
MOST_PARTS = 32
LEAST_FOLDED = 4  # elements for each number that a part accumulates


def op_cost(node: Node) -> int | None:
    """Return the cost of an elementwise op for each element, None for other ops."""
    emit = node.op.emit
    return emit.cost if isinstance(emit, Scalar) else None


def is_dear(node: Node) -> bool:
    """Return whether a node takes long for an element that is left over from vectors."""
    return (op_cost(node) or 0) >= DEAR


def makes_vectors(row: int) -> bool:
    """Return whether vectors leave few elements of such a row over, or none."""
    return row >= LONG_ROW or row % (UNROLLED // 4) == 0


def product_ns(multiplications: int, itemsize: int) -> float:
    """Return about how many nanoseconds matrix products take."""
    return multiplications * itemsize / MULTIPLIED_BYTES_PER_NS


def count_of_parts(ns: float, most: int) -> int:
    """Return into how many parts to cut a launch that takes about `ns` and can be cut into at most `most`."""
    return 1 if ns < LEAST_SPLIT_NS else max(1, min(int(ns / PART_NS), MOST_PARTS, most))
