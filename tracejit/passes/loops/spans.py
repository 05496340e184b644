# SPDX-License-Identifier: BSD-3-Clause
"""spans: the memory of rows, and of the images of a batch, which bands of a launch keep to."""

from tracejit.ir import Value
from tracejit.passes.loops.nest import Access
from tracejit.util.named_tuples import NamedTuple

Inner = tuple[int, int]  # extent and stride of an axis within a row


class RowSpan(NamedTuple):
    """The memory of rows in `root`: they lie `stride` elements apart, all within `period` elements, which may repeat.

    The period is None if rows overlap.
    """

    root: Value
    stride: int
    period: int | None
    is_written: bool


def row_span(access: Access, extent: int, stride: int, is_written: bool, *inner: Inner) -> RowSpan:
    """Return the span of `extent` rows that each have `inner` axes."""
    period = stride * extent
    if stride > 0:
        reach = access.offset % period
        for count, step in inner:
            if count > 1 and step % period:
                reach += step * (count - 1) if step > 0 else stride
        if reach < stride:
            return RowSpan(access.root, stride, period, is_written)
    return RowSpan(access.root, stride, None, is_written)
