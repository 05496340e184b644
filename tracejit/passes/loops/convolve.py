# SPDX-License-Identifier: BSD-3-Clause
"""convolve: turns a convolution, or one of its gradients, into launches of codegen/templates/convolution.py's kernels.

Note [phases]
If windows move by one element, the gradient by the input is a convolution of the cotangent with turned filters. If they
move by s, the elements r, r + s, r + 2 s, ... of the result all get their sums from the same taps, every s-th or fewer.
These elements are a phase. A phase is a convolution by itself: its windows move by one element, and its results lie s
apart. A transposed convolution of windows 4 by 4 that move by 2 is four convolutions of windows 2 by 2.
"""

from collections.abc import Mapping, Sequence
from itertools import product
from math import gcd, prod
from typing import Any

from tracejit.aval import Aval
from tracejit.ir import Node, Value
from tracejit.ops.convolution import W, X, Y
from tracejit.ops.op import Layout, contiguous
from tracejit.passes import cost
from tracejit.passes.loops import parts, winograd, winograd_phases
from tracejit.passes.loops.bands import MOST_BANDS
from tracejit.passes.loops.builder import LaunchBuilder
from tracejit.passes.loops.convolution_operands import (
    FilterArray,
    ImageArray,
    array_of,
    channelwise,
    filters_of,
    images_apart,
    readable,
    result_apart,
    settle,
    triple,
)
from tracejit.passes.loops.convolution_parts import sum_in_parts
from tracejit.passes.loops.launches import Blocks, KernelLaunch
from tracejit.passes.loops.nest import Access, Literal
from tracejit.passes.loops.planes import in_planes, launch_planes, numbers_of
from tracejit.passes.loops.products import ROWS
from tracejit.passes.loops.windows import Convolution, ReadyFilters
from tracejit.util.named_tuples import NamedTuple

MOST_SUMS = 1 << 20  # elements that the parts of a gradient by filters sum apart, all together
MOST_PHASES = 64  # of a gradient; with more it is computed by plain loops


def convolve(builder: LaunchBuilder, node: Node) -> bool:
    """Launch a convolution or one of its gradients; return False if plain loops have to do it.

    Args:
        builder: takes the launches, and copies of filters in another order.
        node: the operation.
    """
    out = node.output
    if builder.for_device:
        return node.op.name == "convolution_weights" and sum_in_parts(builder, node)
    if not min(value.aval.size for value in (*node.inputs, out)):
        if out.aval.size and len(node.inputs) > 2:
            return False  # nothing but the bias
        builder.copy(Literal(out.dtype.type(0), out.dtype), (out, contiguous(out.shape)))
        return True
    if node.op.name == "convolution":
        return _forward(builder, node)
    return (
        _backward_input(builder, node)
        if node.op.name == "convolution_input"
        else _backward_weights(builder, node)
    )


def _forward(builder: LaunchBuilder, node: Node) -> bool:
    params = node.params
    labels, groups = params["labels"], params["groups"]
    x, w = (
        array_of(builder, v, operand, labels[operand])
        for v, operand in zip(node.inputs, (X, W), strict=False)
    )
    y = array_of(builder, node.output, Y, labels[Y])
    target, weights = result_apart(y), filters_of(w, groups)
    convolution = Convolution(
        x.shape[0], groups, weights.shape[4], weights.shape[5], w.spatial, y.spatial, triple(params["strides"], 1),
        triple(params["before"], 0), triple(params["dilation"], 1), x.spatial, x.apart(), None,
        target.operand(),
    )  # fmt: skip
    convolution, weights = channelwise(convolution, weights)
    convolution = convolution.with_fewest_multiplications().with_full_lanes()
    if convolution.block() is None:
        return False
    seen = images_apart(builder, x)
    convolution = convolution._replace(x=seen.operand(), w=readable(builder, weights))
    _launch(builder, node, convolution, [builder.contiguous(bias) for bias in node.inputs[2:]])
    settle(builder, target, y)
    return True


class _Phase(NamedTuple):
    """Every s-th element of a result from `start` on, along one axis, and the taps that they are the sums of.

    taps        in the order of the windows of the phase
    """

    start: int
    step: int
    size: int
    taps: range
    before: int
    dilation: int


def _phases(extent: int, taps: int, stride: int, before: int, dilation: int) -> list[_Phase]:
    """Return the phases of the gradient by an input of `extent` elements (Note [phases])."""
    phases = []
    common = gcd(stride, dilation)
    for start in range(min(stride, extent)):
        size = -(-(extent - start) // stride)
        shift = start + before
        fitting = [k for k in range(taps) if (shift - k * dilation) % stride == 0]
        if not fitting:
            phases.append(_Phase(start, stride, size, range(0), 0, 1))
            continue
        step = dilation // common
        first, every = fitting[0], stride // common
        last = (len(fitting) - 1) * step - (shift - first * dilation) // stride
        taken = range(fitting[-1], first - 1, -every)
        phases.append(_Phase(start, stride, size, taken, last, step))
    return phases


def _backward_input(builder: LaunchBuilder, node: Node) -> bool:
    params, dtype = node.params, node.output.dtype
    labels, groups = params["labels"], params["groups"]
    y, w = (
        array_of(builder, v, operand, labels[operand]) for v, operand in zip(node.inputs, (Y, W), strict=True)
    )
    result = array_of(builder, node.output, X, labels[X])
    x = result_apart(result)
    together = _made_together(y, filters_of(w, groups), x, groups, params)
    if together is not None:
        convolution, weights = together
        seen = images_apart(builder, y).operand()
        _launch(builder, node, convolution._replace(x=seen, w=readable(builder, weights)))
        settle(builder, x, result)
        return True
    along = [
        _phases(extent, taps, stride, before, dilation)
        for extent, taps, stride, before, dilation in zip(
            x.spatial, w.spatial, triple(params["strides"], 1), triple(params["before"], 0),
            triple(params["dilation"], 1), strict=True,
        )
    ]  # fmt: skip
    if prod(map(len, along)) > MOST_PHASES:
        return False
    convolutions: list[tuple[Convolution, FilterArray]] = []
    empty: list[Layout] = []
    for phases in product(*along):
        part = _every(x, phases)
        if not all(phase.taps for phase in phases):
            empty.append(Layout(part.offset, part.shape, part.strides))
            continue
        weights = _turned(w, groups, phases)
        convolution, weights = channelwise(_convolution_of_phase(y, weights, part, phases), weights)
        convolution = convolution.with_fewest_multiplications().with_fewest_tiles().with_full_lanes()
        if convolution.scattered:
            weights = _turned_back(weights)
        convolutions.append((convolution, weights))
    if any(convolution.block() is None for convolution, _ in convolutions):
        return False
    for layout in empty:
        builder.copy(Literal(dtype.type(0), dtype), (x.root, layout))
    seen = images_apart(builder, y).operand()
    for convolution, weights in convolutions:
        _launch(builder, node, convolution._replace(x=seen, w=readable(builder, weights)))
    settle(builder, x, result)
    return True


def _made_together(
    y: ImageArray, w: FilterArray, x: ImageArray, groups: int, params: Mapping[str, Any]
) -> tuple[Convolution, FilterArray] | None:
    """Return the gradient by the input as one convolution that makes all phases (Note [phases at points] in
    winograd_phases.py), and its filters; None if Winograd's method is not for it."""
    groups, *taps, channels, filters = w.shape
    group, *steps, channel, own = w.strides
    turned = _turned_back(
        FilterArray(w.root, w.offset, (groups, *taps, filters, channels), (group, *steps, own, channel))
    )
    own_taps = triple(tuple(taps), 1)
    made, before = winograd_phases.made_of(x.spatial, own_taps, triple(params["before"], 0))
    size = (x.spatial[0], *[-(-n // 2) for n in x.spatial[1:]])
    convolution = Convolution(
        y.shape[0], groups, filters, channels, own_taps, triple(size, 1), triple(params["strides"], 1), before,
        triple(params["dilation"], 1), y.spatial, y.apart(), None, x.operand(),
    )  # fmt: skip
    convolution = convolution.with_phases_made(made)
    return None if convolution.made is None else (convolution, turned)


def _every(x: ImageArray, phases: tuple[_Phase, ...]) -> ImageArray:
    """Return the elements of an array that belong to a phase."""
    first, *steps, last = x.strides
    offset = x.offset + sum(phase.start * step for phase, step in zip(phases, steps, strict=True))
    strides = (first, *[phase.step * step for phase, step in zip(phases, steps, strict=True)], last)
    return ImageArray(x.root, offset, (x.shape[0], *[phase.size for phase in phases], x.shape[-1]), strides)


def _turned(w: ImageArray, groups: int, phases: tuple[_Phase, ...]) -> FilterArray:
    """Return the filters of a phase: its taps in their order, where channels are filters and filters channels."""
    first, *steps, last = w.strides
    filters = w.shape[0] // groups
    offset = w.offset + sum(phase.taps.start * step for phase, step in zip(phases, steps, strict=True))
    taps = [len(phase.taps) for phase in phases]
    strides = [phase.taps.step * step for phase, step in zip(phases, steps, strict=True)]
    shape = (groups, *taps, filters, w.shape[-1])
    return FilterArray(w.root, offset, shape, (first * filters, *strides, first, last))


def _turned_back(w: FilterArray) -> FilterArray:
    """Return filters with their taps in the opposite order, as they are before a convolution becomes its adjoint."""
    taps, steps = w.shape[1:4], w.strides[1:4]
    offset = w.offset + sum((k - 1) * step for k, step in zip(taps, steps, strict=True))
    group, *_, channel, own = w.strides
    return FilterArray(w.root, offset, w.shape, (group, *[-step for step in steps], channel, own))


def _convolution_of_phase(
    y: ImageArray, weights: FilterArray, result: ImageArray, phases: tuple[_Phase, ...]
) -> Convolution:
    groups, *taps, channels, filters = weights.shape
    before, dilation = [phase.before for phase in phases], [phase.dilation for phase in phases]
    return Convolution(
        y.shape[0], groups, channels, filters, triple(tuple(taps), 1), result.spatial, (1, 1, 1),
        triple(tuple(before), 0), triple(tuple(dilation), 1), y.spatial, y.apart(), None,
        result.operand(),
    )  # fmt: skip


def _launch(
    builder: LaunchBuilder, node: Node, convolution: Convolution, bias: Sequence[Access] = ()
) -> None:
    """Launch a convolution whose filters can be read."""
    if in_planes(convolution):
        launch_planes(builder, node, convolution, list(bias))
        return
    w = convolution.w
    assert w is not None
    strides, others = w.strides, tuple[int, ...]()
    name = "channelwise" if convolution.channelwise else "laid_out" if convolution.laid_out else "windows"
    if convolution.at_points:
        name, w = "winograd", _at_points(builder, node, convolution, w)
        strides = (w.group,)
        others = (convolution.images, convolution.together, len(bias), convolution.halves)
        bias = bias or [w.access]  # which is not read
    if convolution.made is not None:
        name, bias = "winograd_made", []
        others = (*convolution.made.extents[1:], *convolution.made.odd, *others[:2], convolution.halves)
    if convolution.scattered:
        name, bias = "winograd_scattered", []
        most = winograd.most_tiles(convolution.channels, convolution.filters, convolution.taps)
        others = (convolution.images, convolution.together, most)
    count = convolution.blocks
    ns = convolution.ns
    parts_count = cost.count_of_parts(ns, count)
    images, spans, result = convolution.images_apart, convolution.spans, convolution.result
    blocks = Blocks(count, parts_count, ns=ns, images=images, spans=spans, result=result)
    pointers = (convolution.x.access, w.access, *bias, convolution.out.access)
    numbers = (0, count, *convolution.numbers, *strides, *convolution.out.strides, *others)
    builder.add(KernelLaunch(name, numbers, pointers, 1, node, whole=blocks))


def _at_points(builder: LaunchBuilder, node: Node, convolution: Convolution, w: ReadyFilters) -> ReadyFilters:
    """Return what filters become in Winograd's method, which a launch makes."""
    groups, channels, filters = convolution.groups, convolution.channels, convolution.filters
    planes, *taps = convolution.all_taps
    phases = winograd_phases.PHASES if convolution.phases else 1
    dtype = node.output.dtype
    values = winograd.values_of(convolution.tile_taps, winograd.has_few_points(channels))
    shape = (groups, planes * phases, values, winograd.padded(filters), channels)
    memory = Access(Value(Aval(shape, None, dtype), None), 0, (), dtype)
    total = groups * planes * phases * channels
    numbers = (0, total, planes, phases, *taps, channels, filters, w.group, *w.steps, w.channel)
    blocks = Blocks(total, _parts_of_transform(total, filters))
    builder.add(KernelLaunch("winograd_filters", numbers, (w.access, memory), 1, node, whole=blocks))
    return ReadyFilters(memory, prod(shape[1:]), (0, 0, 0), 0)


def _parts_of_transform(total: int, filters: int) -> int:
    """Return in how many parts filters are transformed, of `total` channels."""
    return cost.count_of_parts(total * winograd.padded(filters) * winograd.TRANSFORM_NS, total)


def _backward_weights(builder: LaunchBuilder, node: Node) -> bool:
    params = node.params
    labels, groups = params["labels"], params["groups"]
    x, y = (
        array_of(builder, v, operand, labels[operand]) for v, operand in zip(node.inputs, (X, Y), strict=True)
    )
    result = filters_of(array_of(builder, node.output, W, labels[W]), groups)
    _, *taps, channels, filters = result.shape
    convolution = Convolution(
        x.shape[0], groups, channels, filters, triple(tuple(taps), 1), y.spatial, triple(params["strides"], 1),
        triple(params["before"], 0), triple(params["dilation"], 1), x.spatial, x.apart(), None,
        y.apart(),
    )  # fmt: skip
    convolution, w = channelwise(convolution, result)
    convolution = convolution.with_fewest_multiplications(summed=True).with_full_lanes_of_windows()
    if convolution.block() is None:
        return False
    convolution = convolution._replace(
        x=images_apart(builder, x).operand(), out=images_apart(builder, y).operand()
    )
    if convolution.channelwise:
        _channelwise_weights(builder, node, convolution, w)
        return True
    if convolution.dotted:
        _dotted_weights(builder, node, convolution, w)
        return True
    if convolution.at_points:
        _weights_at_points(builder, node, convolution, w)
        return True
    runs, run = convolution.runs
    shape = (groups, *taps[:2], runs, filters, run)
    blocks = _blocks_of_weights(convolution, prod(shape))
    numbers = (
        0,
        blocks.total,
        *convolution.numbers,
        *convolution.out.strides,
        convolution.images,
        int(blocks.unit > 1),
    )
    total = _summed(builder, node, "filters", convolution, numbers, blocks, shape)
    # (group, taps0, taps1, run of taps, filter, tap of the run, channel) in the order of the result's axes.
    taps_of_run = run // channels
    group, s0, s1, s2, channel, own = w.strides
    target = Layout(
        w.offset, (*shape[:-1], taps_of_run, channels), (group, s0, s1, s2 * taps_of_run, own, s2, channel)
    )
    builder.copy((total, contiguous(target.shape)), (w.root, target))
    return True


def _channelwise_weights(
    builder: LaunchBuilder, node: Node, convolution: Convolution, w: FilterArray
) -> None:
    """Launch the gradient by filters that have one channel each."""
    shape = (*convolution.taps, convolution.channels)
    blocks = _parts_of_images(convolution, prod(shape))
    name, numbers = "channels", (*convolution.numbers, *convolution.out.strides)
    if in_planes(convolution):
        planes = convolution.images * convolution.channels
        name, numbers = "plane_sums", numbers_of(convolution)
        blocks = blocks._replace(total=planes)
    total = _summed(builder, node, name, convolution, (0, blocks.total, *numbers), blocks, shape)
    _, s0, s1, s2, _, own = w.strides
    builder.copy((total, contiguous(shape)), (w.root, Layout(w.offset, shape, (s0, s1, s2, own))))


def _dotted_weights(builder: LaunchBuilder, node: Node, convolution: Convolution, w: FilterArray) -> None:
    """Launch the gradient by filters of few channels and taps."""
    shape = (convolution.groups, convolution.filters, *convolution.taps, convolution.channels)
    blocks = _parts_of_images(convolution, prod(shape))
    numbers = (0, blocks.total, *convolution.numbers, *convolution.out.strides)
    total = _summed(builder, node, "window_dots", convolution, numbers, blocks, shape)
    group, s0, s1, s2, channel, own = w.strides
    builder.copy(
        (total, contiguous(shape)), (w.root, Layout(w.offset, shape, (group, own, s0, s1, s2, channel)))
    )


def _weights_at_points(builder: LaunchBuilder, node: Node, convolution: Convolution, w: FilterArray) -> None:
    """Launch the gradient by filters by Winograd's method."""
    groups, channels, filters = convolution.groups, convolution.channels, convolution.filters
    dtype = node.output.dtype
    planes, *taps = convolution.taps
    phases = winograd_phases.PHASES if convolution.phases else 1
    values = winograd.values_of(convolution.tile_taps, few=True)
    shape = (groups, planes * phases, values, channels, winograd.padded(filters))
    most = max(winograd.FEWEST_PARTS, winograd.MOST_SUMS // prod(shape))
    blocks = _parts_of_images(convolution, prod(shape), most)
    images = convolution.images, convolution.together, convolution.halves
    numbers = (0, blocks.total, *convolution.numbers, *convolution.out.strides, *images)
    total = _summed(builder, node, "winograd_weights", convolution, numbers, blocks, shape)
    found = Value(Aval((groups, *convolution.taps, channels, filters), None, dtype), None)
    rows = groups * planes * phases * channels
    pointers = (Access(total, 0, (), dtype), Access(found, 0, (), dtype))
    whole = Blocks(rows, _parts_of_transform(rows, filters))
    numbers = (0, rows, planes, phases, *taps, channels, filters)
    builder.add(KernelLaunch("winograd_sums", numbers, pointers, 1, node, whole=whole))
    builder.copy((found, contiguous(found.shape)), (w.root, Layout(w.offset, found.shape, w.strides)))


def _summed(
    builder: LaunchBuilder, node: Node, name: str, convolution: Convolution, numbers: tuple[int, ...], blocks: Blocks,
    shape: tuple[int, ...],
) -> Value:  # fmt: skip
    """Launch the kernel of a gradient by filters, and the sum of what its parts sum apart; return its memory."""
    dtype = node.output.dtype
    count = blocks.parts if blocks.step else 1
    memory = Value(Aval((count, *shape), None, dtype), None)
    pointers = (convolution.x.access, convolution.out.access, Access(memory, 0, (), dtype))
    builder.add(KernelLaunch(name, numbers, pointers, 1, node, whole=blocks))
    # For one part too, so that a larger batch, which has more parts, needs no further kernel.
    total = Value(Aval(shape, None, dtype), None)
    builder.add_nest(parts.sum_of_parts(memory, total, node))
    return total


def _blocks_of_weights(convolution: Convolution, size: int) -> Blocks:
    """Return the parts of a gradient by filters of `size` elements: some images each, or some filters."""
    by_images = _parts_of_images(convolution, size)
    count = cost.count_of_parts(convolution.ns, MOST_BANDS)
    if by_images.parts > 1 or count == 1:
        return by_images
    rows = -(-convolution.filters // ROWS)
    return Blocks(convolution.filters, min(count, rows), unit=ROWS)


def _parts_of_images(convolution: Convolution, size: int, most: int | None = None) -> Blocks:
    """Return parts that each take some of the images, `most` of them if that is given."""
    total = convolution.blocks
    most = MOST_SUMS // size if most is None else most
    count = min(cost.count_of_parts(convolution.ns, MOST_BANDS), total, most)
    return Blocks(total, max(1, count), step=size)
