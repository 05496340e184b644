# SPDX-License-Identifier: BSD-3-Clause
"""dlconv and dltranspconv: sums over the windows of images, and their transposes."""

from math import prod
from typing import Any

from tracejit.array import apply, dlarray
from tracejit.errors import DimsError, DTypeError
from tracejit.functions.formats import describe
from tracejit.functions.halves import in_single
from tracejit.functions.layers import convolution_sizes as sizes
from tracejit.functions.layers.convolution_operands import (
    Filters,
    Images,
    bias_of,
    filters_of,
    images_of,
    weights_of,
    with_bias,
)
from tracejit.functions.layers.spatial import Pairs, Sizes, pairs_of, per_axis, same_padding, within
from tracejit.functions.movement import permuted, relabel, reshaped, sliced
from tracejit.util.arguments import check_room, check_sizes, is_option

_SWAPPED = str.maketrans("CU", "UC")

# Labels of weights without any, with one S for all: where channels of x stand before its spatial axes, as in PyTorch,
# and elsewhere.
_ORDERS = ("UCS", "SCU")
_TRANSPOSED_ORDERS = ("CUS", "SUC")


@in_single
def dlconv(
    x: Any,
    weights: Any,
    bias: Any = None,
    *,
    stride: Any = 1,
    padding: Any = 0,
    dilation_factor: Any = 1,
    groups: Any = 1,
    data_format: str | None = None,
    weights_format: str | None = None,
) -> dlarray:
    """Return the convolution of `x`: for each window of `x` and each filter, the sum of their products, plus bias.

    Args:
        x: dlarray labelled C, with 1 to 3 axes S that windows move along ('SSCB', 'BCSS', 'BSSC', ...); T takes the
            place of S where there is none, or where weights have one spatial axis more than `x` has S. Or an
            unformatted array with `data_format`. Other axes (B, T, U) are images, each convolved by itself.
        weights: filters, with as many axes S as windows have, an axis C (channels of a group) and an axis U (filters):
            a dlarray with these labels in any order, or an unformatted array with `weights_format`.
        bias: (filters,), or one number, or None for none.
        stride: how many elements windows move: an integer, or one for each spatial axis.
        padding: zeros around `x`: an integer, one for each spatial axis, or a pair (before, after) for each; "same"
            for a window for each stride (an odd zero goes after); "causal", with one spatial axis, for windows that
            end where the output stands.
        dilation_factor: the distance between taps of a window, an integer or one for each spatial axis.
        groups: the number of groups of channels, each with filters of its own; as many as channels for a
            depthwise convolution.
        data_format: labels of an unformatted `x`.
        weights_format: labels of unformatted `weights`. By default "UCSS" for an `x` labelled "BCSS" (channels before
            spatial axes, images first), as in PyTorch, and "SSCU" for any other order; with as many S as windows have.

    Returns:
        dlarray with the axes of `x`, whose C are the filters; unformatted if `x` was. Along a spatial axis its size
        is floor((size + before + after - (taps - 1) dilation_factor - 1) / stride) + 1.

    Raises:
        DimsError: if labels are missing, or the sizes do not fit.
        ArgumentError: if an option is no integer or one of the strings.

    y[o, u] = bias[u] + sum over taps k and channels c of x[o stride + k dilation_factor - before, c] w[k, c, u],
    the cross-correlation that is called convolution in this field. The cotangent of x is the transposed convolution
    of ct, that of weights the convolution of x by ct, that of bias the sum of ct over images and windows. A
    convolution with windows of one tap is a product of matrices.

    Examples:
        >>> import numpy as np, tracejit as tj
        >>> image = tj.dlarray(np.arange(16.0).reshape(1, 1, 4, 4), "BCSS")
        >>> tj.extractdata(tj.dlconv(image, np.ones((1, 1, 3, 3)), 0.5, stride=2, padding=1))
        array([[[[10.5, 24.5],
                 [51.5, 90.5]]]])
        >>> tj.dlconv(np.ones((9, 2)), np.ones((3, 2, 5)), padding="causal", data_format="TC").shape
        (9, 5)
    """
    array = weights_of("dlconv", weights, weights_format)
    images, formatted = images_of("dlconv", x, data_format, array._data.ndim - 2)
    filters = filters_of("dlconv", array, images, _ORDERS)
    count = len(filters.taps)
    strides = per_axis("dlconv", "stride", stride, count, 1)
    dilation = per_axis("dlconv", "dilation_factor", dilation_factor, count, 1)
    parts = within("dlconv", "groups", groups, 1)
    _check_groups(images, filters, parts)
    spans = sizes.spans_of(filters.taps, dilation)
    pairs = _padding(padding, images, spans, strides)
    size = sizes.windows_along(images, filters, spans, strides, pairs)
    _check_room("dlconv", images, size, filters.extent("U"))
    _check_room("dlconv", images, sizes.padded(images.extents, pairs), images.channels)
    added = bias_of("dlconv", bias, filters.extent("U"), filters)
    if parts == 1 and prod(filters.taps) == 1 and not any(map(any, pairs)):
        y = _pointwise(images, filters.array, filters.labels, strides)
    else:
        joined = added is not None and added._data.size == filters.extent("U")
        _check_real("dlconv", x=images.array, weights=filters.array, bias=added if joined else None)
        y = apply(
            "convolution", images.array, filters.array, *([added] if joined else []),
            labels=(images.labels, filters.labels, images.labels.replace("C", "U")), size=size, strides=strides,
            before=tuple([before for before, _ in pairs]), dilation=dilation, groups=parts,
        )  # fmt: skip
        added = None if joined else added
    y = with_bias(y, added, images.labels.index("C"))
    return relabel(images.restored(y), images.format if formatted else None)


@in_single
def dltranspconv(
    x: Any,
    weights: Any,
    bias: Any = None,
    *,
    stride: Any = 1,
    cropping: Any = 0,
    dilation_factor: Any = 1,
    groups: Any = 1,
    output_padding: Any = 0,
    data_format: str | None = None,
    weights_format: str | None = None,
) -> dlarray:
    """Return the transposed convolution of `x`: each element adds its multiple of each filter to a window, plus bias.

    Args:
        x: dlarray labelled C, with 1 to 3 axes S that windows move along, as for `dlconv`; or an unformatted array
            with `data_format`.
        weights: filters, with as many axes S as windows have, an axis C (all channels of `x`) and an axis U (filters of
            a group): a dlarray with these labels in any order, or an unformatted array with `weights_format`.
        bias: (filters of all groups,), or one number, or None for none.
        stride: how many elements windows move: an integer, or one for each spatial axis.
        cropping: what is removed from the edges of the result: an integer, one for each spatial axis, or a pair
            (before, after) for each; "same" for results that are `stride` times as large as `x`.
        dilation_factor: the distance between taps of a window, an integer or one for each spatial axis.
        groups: the number of groups of channels, each with filters of its own.
        output_padding: elements that are added after the result, an integer or one for each spatial axis.
        data_format: labels of an unformatted `x`.
        weights_format: labels of unformatted `weights`. By default "CUSS" for an `x` labelled "BCSS" (channels before
            spatial axes, images first), as in PyTorch, and "SSUC" for any other order; with as many S as windows have.

    Returns:
        dlarray with the axes of `x`, whose C are the filters; unformatted if `x` was. Along a spatial axis its size
        is (size - 1) stride + (taps - 1) dilation_factor + 1 - before - after + output_padding.

    Raises:
        DimsError: if labels are missing, or the sizes do not fit.
        ArgumentError: if an option is no integer or one of the strings.

    y[o stride + k dilation_factor - before, u] is the sum over channels c of x[o, c] w[k, u, c]: the adjoint of
    `dlconv` by its input. The cotangent of x is the convolution of ct, that of weights the convolution of ct by x, that
    of bias the sum of ct over images and elements.

    Examples:
        >>> import numpy as np, tracejit as tj
        >>> signal = tj.dlarray([[[1.0, 2.0, 3.0]]], "BCS")
        >>> tj.dltranspconv(signal, np.ones((1, 1, 2)), stride=2).tolist()
        [[[1.0, 1.0, 2.0, 2.0, 3.0, 3.0]]]
    """
    array = weights_of("dltranspconv", weights, weights_format)
    images, formatted = images_of("dltranspconv", x, data_format, array._data.ndim - 2)
    filters = filters_of("dltranspconv", array, images, _TRANSPOSED_ORDERS)
    count = len(filters.taps)
    strides = per_axis("dltranspconv", "stride", stride, count, 1)
    dilation = per_axis("dltranspconv", "dilation_factor", dilation_factor, count, 1)
    added = per_axis("dltranspconv", "output_padding", output_padding, count, 0)
    parts = within("dltranspconv", "groups", groups, 1)
    _check_transposed_groups(images, filters, parts)
    spans = sizes.spans_of(filters.taps, dilation)
    if is_option(cropping, ("same",)):
        pairs, added = sizes.same_cropping(spans, strides, added)
    else:
        pairs = pairs_of("dltranspconv", "cropping", cropping, count, '"same", ')
    size = sizes.transposed_size(images, filters, spans, strides, pairs, added)
    total = filters.extent("U") * parts
    _check_room("dltranspconv", images, sizes.padded(size, pairs), total)
    if parts == 1 and prod(filters.taps) == 1 and not any(map(any, pairs)) and size == images.extents:
        y = _pointwise(images, filters.array, filters.labels, (1,) * count)
    else:
        _check_real("dltranspconv", x=images.array, weights=filters.array)
        y = apply(
            "convolution_input", images.array, filters.array,
            labels=(images.labels, filters.labels.translate(_SWAPPED), images.labels.replace("C", "U")), size=size,
            strides=strides, before=tuple([before for before, _ in pairs]), dilation=dilation, groups=parts,
        )  # fmt: skip
    y = with_bias(y, bias_of("dltranspconv", bias, total, filters), images.labels.index("C"))
    return relabel(images.restored(y), images.format if formatted else None)


def _padding(padding: Any, images: Images, spans: Sizes, strides: Sizes) -> Pairs:
    if is_option(padding, ("same",)):
        return same_padding(images.extents, spans, strides)
    if is_option(padding, ("causal",)):
        if len(spans) != 1:
            raise DimsError(
                f'dlconv: padding="causal" is for windows that move along one axis, but x of {describe(images.given)} '
                f"has {len(spans)}; give numbers, such as {tuple([(span - 1, 0) for span in spans])}."
            )
        return ((spans[0] - 1, 0),)
    return pairs_of("dlconv", "padding", padding, len(spans), '"same", "causal", ')


def _check_groups(images: Images, filters: Filters, groups: int) -> None:
    have, each, total = images.channels, filters.extent("C"), filters.extent("U")
    if have != each * groups:
        fits = have and each and have % each == 0 and total % (have // each) == 0
        raise DimsError(
            f"dlconv: x of {describe(images.given)} has {have} channels, but weights of {filters.text} take {each} in "
            f"each of groups={groups}; channels of x must be C of weights times groups, {each} * {groups}. "
            + (f"Pass groups={have // each}?" if fits else _order_of_axes(_ORDERS, filters))
        )
    if total % groups:
        raise DimsError(
            f"dlconv: weights of {filters.text} have {total} filters, which groups={groups} does not divide; all "
            "groups have the same number of filters."
        )


def _order_of_axes(orders: tuple[str, str], filters: Filters) -> str:
    """Return what to do about weights whose axes may have another order."""
    labels = orders[0].replace("S", "S" * len(filters.taps))
    return f'Check the order of axes of weights; that of PyTorch is weights_format="{labels}".'


def _check_transposed_groups(images: Images, filters: Filters, groups: int) -> None:
    have, takes = images.channels, filters.extent("C")
    if have != takes:
        raise DimsError(
            f"dltranspconv: x of {describe(images.given)} has {have} channels, but weights of {filters.text} take "
            f"{takes}; C of weights must be the channels of x. {_order_of_axes(_TRANSPOSED_ORDERS, filters)}"
        )
    if have % groups:
        raise DimsError(
            f"dltranspconv: x of {describe(images.given)} has {have} channels, which groups={groups} does not divide; "
            "all groups have the same number of channels."
        )


def _check_real(function: str, **operands: dlarray | None) -> None:
    """Check the operands of a kernel, which takes real numbers."""
    for name, operand in operands.items():
        if operand is not None and operand._data.dtype.kind == "c":
            raise DTypeError(
                f"{function}: {name} of {operand._data.dtype} numbers; windows of several taps take real ones. "
                "Convolve the real and the imaginary parts, x.real and x.imag, by themselves."
            )


def _check_room(function: str, images: Images, extents: tuple[int, ...], channels: int) -> None:
    """Check that there is room for an array of these spatial sizes and channels."""
    values = iter(extents)
    others = {"B": images.array._data.shape[images.labels.index("B")], "C": channels}
    shape = tuple([next(values) if label == "S" else others[label] for label in images.labels])
    check_room(function, check_sizes(function, "the sizes of the result", shape), images.array._data.dtype)


def _pointwise(images: Images, weights: dlarray, labels: str, strides: tuple[int, ...]) -> dlarray:
    """Return the convolution with windows of one tap: a product of matrices, in which no axis changes its place."""
    steps = iter(strides)
    x = sliced(
        images.array,
        {a: slice(None, None, next(steps)) for a, label in enumerate(images.labels) if label == "S"},
    )
    shape, at = x._data.shape, images.labels.index("C")
    order = (labels.index("U"), labels.index("C"))
    outputs, channels = (weights._data.shape[axis] for axis in order)
    spatial = tuple([axis for axis, label in enumerate(labels) if label == "S"])
    matrix = reshaped(permuted(weights, (*order, *spatial)), (outputs, channels), None)
    before, after = prod(shape[:at]), prod(shape[at + 1 :])
    if after == 1:
        rows = reshaped(x, (before, channels), None)
        y = apply("matmul", rows, apply("transpose", matrix, axes=(1, 0)))
    else:
        y = apply("matmul", matrix, reshaped(x, (before, channels, after), None))
    return reshaped(y, (*shape[:at], outputs, *shape[at + 1 :]), None)
