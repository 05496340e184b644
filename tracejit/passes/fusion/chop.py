# SPDX-License-Identifier: BSD-3-Clause
"""chop: cuts a loop with many nodes into several, at places where the pieces repeat.

Note [cutting by content]
An unrolled loop over scalars fuses into one chain of thousands of nodes. If pieces had a fixed number of nodes, they
would all differ, because the cuts would fall on different places of the loop's body each time, and every piece would be
a kernel to compile. So the place of a cut depends only on the nodes around it: among the places that give a piece of an
allowed size, it is the last one where a checksum of the neighbouring nodes is smallest. In a periodic chain these
places come round with the period, so that the pieces repeat and share a kernel, however long the chain is. (Files are
cut into blocks in this way to find blocks in common.)
"""

import zlib
from collections.abc import Sequence

from tracejit.ir import Node, Value
from tracejit.passes.fusion.fuse import Fused, Loop, Step

SMALLEST, LARGEST = 24, 96  # nodes of a piece; compile time grows by about 4 ms for each op of a kernel
_CONTEXT = 4  # nodes whose checksum decides
_FAR = 32


def chop(fused: Fused) -> None:
    """Split loops of more than LARGEST nodes; the pieces run one after the other."""
    steps: list[Step] = []
    for step in fused.steps:
        if isinstance(step, Loop) and len(step.nodes) > LARGEST:
            steps += pieces(step, cut(step.nodes), fused)
        else:
            steps.append(step)
    fused.steps = steps


def pieces(loop: Loop, parts: Sequence[list[Node]], fused: Fused) -> list[Loop]:
    """Return a loop for each part of the nodes of a loop, which is cut into them."""
    result: list[Loop] = []
    for nodes in parts:
        piece = Loop(loop.domain, loop.depth)
        piece.split = loop.split
        piece.whole = loop.whole or loop
        piece.nodes = nodes
        for node in nodes:
            out = node.output
            piece.maps[out] = loop.maps[out]
            if out in loop.reduced_from:
                piece.reduced_from[out] = loop.reduced_from[out]
            if out in loop.accumulates:
                piece.accumulates.add(out)
            fused.home[out] = piece
        result.append(piece)
    return result


def cut(nodes: list[Node]) -> list[list[Node]]:
    """Return nodes in pieces of SMALLEST to LARGEST (Note [cutting by content])."""
    checksums = _checksums(nodes)
    parts: list[list[Node]] = []
    start = 0
    while len(nodes) - start > LARGEST:
        last = min(start + LARGEST, len(nodes) - SMALLEST)
        end = min(range(start + SMALLEST, last + 1), key=lambda i: (checksums[i], -i))
        parts.append(nodes[start:end])
        start = end
    parts.append(nodes[start:])
    return parts


def _checksums(nodes: list[Node]) -> list[int]:
    """Return, for each node, a checksum of it and the nodes before it that is the same in every process."""
    positions: dict[Value, int] = {node.output: i for i, node in enumerate(nodes)}
    texts: list[str] = []
    for i, node in enumerate(nodes):
        # The distance to an operand, if it is near: an adjoint reads the forward values in reverse.
        distances = [i - positions.get(v, -_FAR) for v in node.inputs]
        distances = [distance if distance < _FAR else 0 for distance in distances]
        texts.append(f"{node.op.name} {node.output.dtype} {distances}")
    return [zlib.crc32(";".join(texts[max(i - _CONTEXT + 1, 0) : i + 1]).encode()) for i in range(len(nodes))]
