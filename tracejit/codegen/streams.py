# SPDX-License-Identifier: BSD-3-Clause
"""Emission of streams: loops that compute little from several dense arrays.

Note [streams]
A loop over arrays that are larger than the near cache waits for memory. It loses time where vectors of 64 bytes cross
cache lines, because NumPy's arrays begin at any multiple of 16 bytes. With vectors of 32 bytes, every second one lies
within a line. Least times in us of six places of the operands, on an AMD EPYC with AVX-512, with vectors of 64 and of
32 bytes:

    elements                  10,000        100,000       300,000       1,000,000
    x + y, float32            1.47 1.48     13.2 13.3     38.0 37.1     148 139
    maximum(x, y), float32    1.54 1.55     13.5 13.9     38.7 37.1     136 128
    n & m, int64              2.51 2.51     25.4 25.0     74.8 73.0     533 432

Loops that read one array gain nothing, and loops that compute more, such as clip and exp, lose up to a half.
"""

from tracejit.codegen.loop_order import LoopOrder
from tracejit.codegen.nest import Frame
from tracejit.codegen.target import vector_bytes
from tracejit.passes import cost
from tracejit.passes.loops.nest import Compute, Load, Nest, Store

_BYTES = 32
_MOST_OPS = 2
_MOST_COST = 4  # of all ops of an element; a division has that


class StreamFrame(Frame):
    """The loop of a stream."""

    def scratch_lines(self) -> list[str]:
        return [f"    vectors_of_{_BYTES}_bytes()"]


def is_stream(nest: Nest, order: LoopOrder) -> bool:
    """Return whether narrower vectors than those of this machine suit a nest (Note [streams])."""
    if vector_bytes() <= _BYTES or order.depth != 1 or order.lanes or nest.split is not None:
        return False
    if not all(isinstance(line, Load | Compute | Store) for line in nest.lines):
        return False
    reads = [access for access in nest.reads if order.strides(access) != (0,)]
    accesses = (*reads, *nest.writes)
    return (
        len(reads) > 1
        and len(nest.writes) == 1
        and all(order.strides(access) == (1,) for access in accesses)
        and len({access.dtype.itemsize for access in accesses}) == 1
        and len(nest.nodes) <= _MOST_OPS
        and sum(cost.op_cost(node) or 0 for node in nest.nodes) <= _MOST_COST
    )
