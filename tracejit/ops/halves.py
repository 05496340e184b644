# SPDX-License-Identifier: BSD-3-Clause
"""Numbers of 16 bits: the ops that take them as they are.

Note [numbers of 16 bits]
float16 and bfloat16 are formats of memory. Arithmetic is done in float32: before an op its operands of 16 bits are
cast, and a result that has 16 bits in NumPy is cast back, which rounds to the nearest number, ties to the even one.
These casts are nodes of a recording, so that derivatives, batches and guards need no rules of their own. Ops that only
move numbers take them as they are. Kernels know integers, and floats of 32 and 64 bits: passes/graph/half_bits.py
replaces each number by an integer of the same bits, and the casts by the ops of ops/half_bits.py.
"""

from tracejit.ops.op import Kind, Op

_MOVES = frozenset({
    "reshape", "transpose", "broadcast_to", "slice", "setslice", "concatenate", "assemble", "pad",
    "take", "put", "take_along_axis", "cast", "where", "stop_gradient",
})  # fmt: skip


def takes_halves(op: Op) -> bool:
    """Return whether an op takes numbers of 16 bits as they are, because it does not compute with them."""
    return op.name in _MOVES or op.kind in (Kind.HOST, Kind.LOOP)
