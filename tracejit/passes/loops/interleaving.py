# SPDX-License-Identifier: BSD-3-Clause
"""interleaving: joins in one launch the copies of two or three arrays whose elements take turns in another array.

One copy after the other would store elements one by one, and go through the memory of the result once for each array. A
loop that stores all of them lets LLVM store vectors.
"""

from collections.abc import Sequence

from tracejit.aval import part_dtype
from tracejit.ir import Node
from tracejit.ops.op import Layout, Piece, RangeCut, contiguous
from tracejit.passes.loops.builder import LaunchBuilder
from tracejit.passes.loops.launches import KernelLaunch
from tracejit.passes.loops.nest import Access

_MOST = 3  # arrays
_NS = 0.3  # about how long an element of each takes


def interleaved(builder: LaunchBuilder, node: Node, pieces: Sequence[tuple[Piece, Layout]]) -> bool:
    """Launch the assembly of an array from pieces whose elements take turns, and return whether it is one.

    Args:
        builder: takes the launch.
        node: the assembly; no piece of it is where it belongs yet.
        pieces: in order, and where they lie in its memory.
    """
    out, count = node.output, len(pieces)
    dtype = part_dtype(out.dtype)
    if builder.for_device or not 2 <= count <= _MOST or not out.aval.size:
        return False
    if node.op.name not in ("concatenate", "complex_of"):
        return False
    sources = []
    for number, (piece, target) in enumerate(pieces):
        value = node.inputs[int(piece.source)]
        root, layout = builder.fused.view(value)
        is_whole = value.aval.size * count == out.aval.size * (2 if out.dtype.kind == "c" else 1)
        if not is_whole or root.dtype != dtype or target.offset != number:
            return False
        if not (_lies(target, count) and _lies(layout, 1)):
            return False
        sources.append(Access(root, layout.offset, (), dtype))
    size = node.inputs[int(pieces[0][0].source)].aval.size
    cut = RangeCut(lambda numbers: numbers[1] * _NS, lambda numbers: numbers[1])
    pointers = (*sources, Access(out, 0, (), dtype))
    builder.add(KernelLaunch(f"interleaved_{count}", (0, size), pointers, 1, node, whole=cut))
    return True


def _lies(layout: Layout, step: int) -> bool:
    """Return whether the elements of an array lie `step` elements apart, in order."""
    usual = contiguous(layout.shape).strides
    return all(
        stride == step * own
        for n, stride, own in zip(layout.shape, layout.strides, usual, strict=True)
        if n > 1
    )
