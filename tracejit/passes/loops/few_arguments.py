# SPDX-License-Identifier: BSD-3-Clause
"""few_arguments: cuts the loops whose kernels would take more arguments than a kernel of a device may.

Note [words of a kernel]
A kernel of a device takes its arguments by value, as words of 64 bits: up to 4096 bytes of them (more from CUDA 12.1 on
only). An array is one word, and one more for each axis that does not lie in all memory as the next one does. So a loop
over many arrays of many axes may take too many, and is cut in half until it does not. How a nest will be spread over
threads is not known yet; its words are counted as if no axes could be joined.
"""

from collections.abc import Iterable

from tracejit.ir import Graph, Value
from tracejit.passes.fusion.chop import pieces
from tracejit.passes.fusion.fuse import Fused, Loop, Step
from tracejit.passes.loops.lower import lower
from tracejit.passes.loops.nest import Access, Compute, Literal
from tracejit.passes.loops.pieces import Assemblies
from tracejit.passes.loops.select import stored_values

MOST_WORDS = 512  # that a kernel of a device takes
_SPARE = 32  # for sizes, and results that are stored a second time


def in_few_arguments(graph: Graph, fused: Fused) -> None:
    """Cut loops whose kernels would take more than MOST_WORDS; the pieces run one after the other."""
    while any(_may_be_too_many(step) for step in fused.steps if isinstance(step, Loop)):
        stored = stored_values(graph, fused, Assemblies(graph, fused))
        steps: list[Step] = []
        for step in fused.steps:
            if isinstance(step, Loop) and _is_too_many(step, fused, stored.get(step, ())):
                half = len(step.nodes) // 2
                steps += pieces(step, [step.nodes[:half], step.nodes[half:]], fused)
            else:
                steps.append(step)
        if len(steps) == len(fused.steps):
            return
        fused.steps = steps


def _may_be_too_many(loop: Loop) -> bool:
    """Return whether a loop may take too many words, as if each operand and each result were an array."""
    arrays = sum([len(node.inputs) + len(node.outputs) for node in loop.nodes])
    return len(loop.nodes) > 1 and arrays * (len(loop.domain) + 2) + _SPARE > MOST_WORDS


def _is_too_many(loop: Loop, fused: Fused, stored: Iterable[Value]) -> bool:
    if not _may_be_too_many(loop):
        return False
    nest = lower(loop, fused, stored)
    numbers = {
        part for line in nest.lines if isinstance(line, Compute) for part in line.operands if isinstance(part, Literal)
    }  # fmt: skip
    words = len(numbers) + sum(map(_words, nest.reads)) + sum([1 + _words(access) for access in nest.writes])
    return words + _SPARE > MOST_WORDS


def _words(access: Access) -> int:
    return 1 + sum([stride != 0 for stride in access.strides])
