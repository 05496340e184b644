# SPDX-License-Identifier: BSD-3-Clause
"""Emission of loops that end before the last element: whether any, or all, elements of a row are true.

Note [early ends]
If one element of a row is true, no further ones are needed. A loop that can end at each element takes elements one by
one. So the row is folded block by block, each in vectors, and a test follows each block. An element may count twice, so
the last block begins early and is a whole block too.
"""

from tracejit.codegen.long_sums import LongSumsEmitter
from tracejit.codegen.loop_order import LoopOrder
from tracejit.codegen.names import INDENT
from tracejit.codegen.nest import Hoisted, loop_lines
from tracejit.passes.loops.nest import Compute, Line, Load, Nest, RowFold

_ENDS_AT = {"any": "{}", "all": "not {}"}
_BLOCK = 256  # elements, between two tests; of fewer LLVM makes single steps instead of vectors


def ends_early(nest: Nest, order: LoopOrder) -> bool:
    """Return whether some pass over the rows of a nest can end before the last element (Note [early ends])."""
    return not order.lanes and not order.short and any(_end(lines) is not None for lines in nest.full)


def _end(lines: list[Line]) -> RowFold | None:
    """Return the fold after which nothing is left to do for a row in one pass; None if there is more to it."""
    folds = [line for line in lines if not isinstance(line, Load | Compute)]
    if len(folds) != 1 or not isinstance(folds[0], RowFold) or folds[0].node.op.name not in _ENDS_AT:
        return None
    return folds[0]


class EarlyEndEmitter(LongSumsEmitter):
    """The writer of the kernel of a nest whose passes can end early."""

    def pass_loops(self, lines: list[Line], within: Hoisted, inner: list[str]) -> list[str]:
        order = self.order
        fold, last = _end(lines), order.depth - 1
        if fold is None:
            return super().pass_loops(lines, within, inner)
        test = _ENDS_AT[fold.node.op.name].format(self.values.in_row[fold.result])
        blocks = [
            *within.get(last, []),
            f"if n{last} < {_BLOCK}:",
            *[INDENT + line for line in loop_lines(order, range(last, last + 1), 0, {}, inner)],
            "else:",
            f"{INDENT}for next{last} in range(0, n{last}, {_BLOCK}):",
            f"{INDENT * 2}start{last} = min(next{last}, n{last} - {_BLOCK})",
            f"{INDENT * 2}for i{last} in range(start{last}, start{last} + {_BLOCK}):",
            *[INDENT * 3 + line for line in inner],
            f"{INDENT * 2}if {test}:",
            f"{INDENT * 3}break",
        ]
        return loop_lines(order, range(order.row_depth, last), 0, within, blocks)
