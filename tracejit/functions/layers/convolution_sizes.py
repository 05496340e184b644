# SPDX-License-Identifier: BSD-3-Clause
"""The sizes of convolutions: the number of windows along each spatial axis, and the cropping."""

from tracejit.errors import DimsError
from tracejit.functions.formats import describe
from tracejit.functions.layers.convolution_operands import Filters, Images
from tracejit.functions.layers.spatial import Pairs, Sizes


def spans_of(taps: Sizes, dilation: Sizes) -> Sizes:
    """Return the elements from the first to the last tap of a window."""
    return tuple([(k - 1) * d + 1 for k, d in zip(taps, dilation, strict=True)])


def padded(extents: Sizes, pairs: Pairs) -> Sizes:
    """Return sizes with what is added before and after."""
    return tuple([extent + before + after for extent, (before, after) in zip(extents, pairs, strict=True)])


def windows_along(images: Images, filters: Filters, spans: Sizes, strides: Sizes, padding: Pairs) -> Sizes:
    """Return the number of windows along each axis.

    Raises:
        DimsError: along an axis no window fits into the padded input.
    """
    sizes = []
    for axis, (extent, span, stride, (before, after)) in enumerate(
        zip(images.extents, spans, strides, padding, strict=True)
    ):
        padded = extent + before + after
        size = (padded - span) // stride + 1
        if not filters.taps[axis] or padded < span:
            raise DimsError(
                f"dlconv: windows of {filters.taps[axis]} taps that span {span} elements do not fit into the axis "
                f"{images.name(axis)} of x ({describe(images.given)}) with padding ({before}, {after}), which makes "
                f"{padded}; the output size would be ({padded} - {span}) // {stride} + 1 = {size}. Use a larger "
                "padding, fewer taps or a smaller dilation_factor."
            )
        sizes.append(size)
    return tuple(sizes)


def same_cropping(spans: Sizes, strides: Sizes, added: Sizes) -> tuple[Pairs, Sizes]:
    """Return the cropping, and what is added after it, for results `strides` times as large, and `added` besides."""
    totals = [max(0, span - stride) for span, stride in zip(spans, strides, strict=True)]
    more = [n + max(0, stride - span) for span, stride, n in zip(spans, strides, added, strict=True)]
    return tuple([(total // 2, total - total // 2) for total in totals]), tuple(more)


def transposed_size(
    images: Images, filters: Filters, spans: Sizes, strides: Sizes, cropping: Pairs, added: Sizes
) -> Sizes:
    """Return the spatial sizes of a transposed convolution.

    Raises:
        DimsError: nothing is left along an axis.
    """
    found = []
    for axis, (extent, span, stride, (before, after), more) in enumerate(
        zip(images.extents, spans, strides, cropping, added, strict=True)
    ):
        whole = (extent - 1) * stride + span
        size = whole - before - after + more
        if not extent or not filters.taps[axis] or size < 1:
            raise DimsError(
                f"dltranspconv: windows of {filters.taps[axis]} taps that span {span} elements make {whole} of the "
                f"axis {images.name(axis)} of x ({describe(images.given)}), and cropping ({before}, {after}) and "
                f"output_padding {more} leave {size}; the output size must be at least 1. Crop less."
            )
        found.append(size)
    return tuple(found)
