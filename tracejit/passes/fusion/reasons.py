# SPDX-License-Identifier: BSD-3-Clause
"""apart: why two steps, of which one reads what the other makes, are not one loop.

The passes note a reason where they decide; what they do not note follows from the kind of a step. Nothing of it
changes what they decide, and nobody reads it before somebody looks.
"""

from enum import Enum


class Apart(Enum):
    """A reason, in words about the steps: {made} runs over {made_over}, {read} over {read_over}."""

    KERNEL = "{op} has a kernel of its own"
    PRODUCT = "{op} is a matrix product, which has a kernel of its own"
    COPY = "{op} needs its operand in another order, which takes a copy"
    PIECES = "{op} is put together in memory, piece by piece"
    FOLDED = "{op} is complete only when its loop has ended"
    LONG = "one loop of {count} ops was cut, where its ops repeat"
    EXTENTS = "their loops run over different extents: {made_over}, and {read_over}"
    ROWS = "they fold other axes of their rows"
    AXES = "they walk over {value} along different axes"
    SLICE = "{op} is read, which is another view of {value}: all of it has to be in memory first"
    OTHER_MAKER = "{reader} reads what another step makes too, which does not fit into one loop with this"
    OTHER_READER = "another step reads {value} before"
    TOGETHER = "several loops read {value}, none of them before the others"
    START = "{reader} adds to a sum that is not there before the loop begins"
    BROADCAST = "{reader} folds an axis that was added by a broadcast, along which the loop does not run"
    FIRST = "it was moved into the loop that reads it first, and is kept for this one"
    OPERAND = "{op} reads its operands one row after the other, so they are copied before"
    TILES = "rows are short, so several are taken at a time; what they share is repeated before"
    PARTS = "parts of the loop add up in memory of their own, which is added up after them"
    OUTPUT = "a result has memory of its own, and this one is a view of other memory"

    def says(self, **words: object) -> str:
        """Return the reason in words."""
        return str(self.value).format(**words)
