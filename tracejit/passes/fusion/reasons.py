# SPDX-License-Identifier: BSD-3-Clause
"""The reasons why a step and the reader of its result are not one loop.

The passes note a reason where they decide; other reasons follow from the kind of a step. They have no influence on any
decision, and are read only for inspection.
"""

from enum import Enum


class Apart(Enum):
    """A reason in words. The step that computes the value runs over {made_over}, its reader over {read_over}."""

    KERNEL = "{op} has a kernel of its own"
    STEPS = "{op} is a loop, whose steps are launches of their own"
    PRODUCT = "{op} is a matrix product, which has a kernel of its own"
    COPY = "{op} needs its operand in another order, which takes a copy"
    PIECES = "{op} is put together in memory, piece by piece"
    FOLDED = "{op} is complete only when its loop has ended"
    LONG = "one loop of {count} ops was cut, where its ops repeat"
    EXTENTS = "their loops run over different extents: {made_over}, and {read_over}"
    ROWS = "they fold different axes of their rows"
    AXES = "they walk over {value} along different axes"
    SLICE = "{value} is read through {op}, another view of it: all of it has to be in memory first"
    OTHER_MAKER = "{reader} also reads the result of another step, which does not fit into the same loop"
    OTHER_READER = "another step reads {value} earlier"
    TOGETHER = "several loops read {value}, none of them before the others"
    START = "{reader} adds to a sum that is not complete before the loop begins"
    BROADCAST = "{reader} folds an axis that was added by a broadcast, along which the loop does not run"
    FIRST = "it was moved into the loop that reads it first, and is kept for this one"
    OPERAND = "{op} reads its operands row by row, so they are copied first"
    TILES = "rows are short, so the loop runs over several at a time; what they share is repeated first"
    PARTS = "each part of the loop accumulates in memory of its own; these sums are added up after them"
    WHOLE = "what is computed with a fold of all elements follows the loop, which other sizes run in parts"
    OUTPUT = "a result needs memory of its own, but this one is a view of other memory"

    def says(self, **words: object) -> str:
        """Return the reason in words."""
        return str(self.value).format(**words)
