# SPDX-License-Identifier: BSD-3-Clause
"""Pooling over adjacent axes: the largest element of each window and its place, the mean, and their adjoints.

A window has `size` elements along each of the axes that begin at `axis`. Windows begin `stride` elements apart, the
first one `padding[i][0]` before the first element; `padding[i][1]` elements are added at the end. Padding is smaller
than the window, so that each window has an element of the array.
"""

from collections.abc import Iterator, Sequence
from itertools import product
from math import prod
from typing import Any

import numpy as np

from tracejit.aval import Aval, describe_shape
from tracejit.errors import DimsError
from tracejit.ops import batch
from tracejit.ops.floats import as_float, float_of
from tracejit.ops.op import KernelCall, Kind, Op, RangeCut, Sample

Shape = tuple[int, ...]
Padding = tuple[tuple[int, int], ...]

MOST_AXES = 3  # that the loops of the kernels go along
_NS_PER_TAP = 0.12  # an element of a window


def pooled_extent(extent: int, size: int, stride: int, padding: tuple[int, int]) -> int:
    """Return how many windows fit along an axis; 0 or less if the window is larger than the padded axis."""
    return (extent + sum(padding) - size) // stride + 1


def pooled_shape(op: str, x: Aval, axis: int, size: Shape, stride: Shape, padding: Padding) -> Shape:
    """Return the shape of the result, or raise a DimsError in the name of `op`."""
    pooled = x.shape[axis : axis + len(size)]
    extents = tuple(map(pooled_extent, pooled, size, stride, padding))
    if (
        len(size) > MOST_AXES
        or min(extents, default=1) < 1
        or any(k <= max(p) for k, p in zip(size, padding, strict=True))
    ):
        raise DimsError(
            f"{op}: windows of {describe_shape(size, None)}, {describe_shape(stride, None)} apart, with padding "
            f"{padding}, do not fit x of {describe_shape(x.shape, x.format)} from axis {axis} on: the result would be "
            f"{describe_shape(extents, None)}."
        )
    return (*x.shape[:axis], *extents, *x.shape[axis + len(size) :])


def place_dtype(size: Shape) -> np.dtype:
    """Return the smallest integer type that holds the places in a window."""
    count = prod(size)
    return np.dtype(np.int8 if count <= 128 else np.int16 if count <= 2**15 else np.int32)


def _infer_maxpool(x: Aval, *, axis: int, size: Shape, stride: Shape, padding: Padding) -> tuple[Aval, Aval]:
    shape = pooled_shape("maxpool", x, axis, size, stride, padding)
    return Aval(shape, x.format, x.dtype), Aval(shape, x.format, place_dtype(size))


def _taps(
    x: Shape, y: Shape, axis: int, size: Shape, stride: Shape, padding: Padding
) -> Iterator[tuple[int, tuple[slice, ...], tuple[slice, ...]]]:
    """Give, for each place in the window, the windows that have an element there, and these elements."""
    before = (slice(None),) * axis
    for place, taps in enumerate(product(*map(range, size))):
        windows, elements = list(before), list(before)
        for i, tap in enumerate(taps):
            lowest = max(0, -((tap - padding[i][0]) // stride[i]))
            highest = min(y[axis + i], (x[axis + i] - 1 + padding[i][0] - tap) // stride[i] + 1)
            start = lowest * stride[i] - padding[i][0] + tap
            windows.append(slice(lowest, max(lowest, highest)))
            elements.append(slice(start, start + max(0, highest - lowest) * stride[i], stride[i]))
        yield place, tuple(windows), tuple(elements)


def _numpy_maxpool(x: np.ndarray, *, axis: int, **window: Any) -> tuple[np.ndarray, np.ndarray]:
    best, place = _infer_maxpool(Aval(x.shape, None, x.dtype), axis=axis, **window)
    y, places = np.empty(best.shape, x.dtype), np.full(place.shape, -1, place.dtype)
    for number, windows, elements in _taps(x.shape, y.shape, axis, **window):
        new, old, at = x[elements], y[windows], places[windows]
        larger = (new > old) | (new != new) | (at < 0)  # noqa: PLR0124 (NaN)
        np.copyto(old, new, where=larger)
        at[larger] = number
    return y, places


def _numpy_adjoint(
    ct: np.ndarray, place: np.ndarray, *, shape: Shape, axis: int, **window: Any
) -> np.ndarray:
    ct = as_float(ct)
    out = np.zeros(shape, ct.dtype)
    for number, windows, elements in _taps(shape, ct.shape, axis, **window):
        out[elements] += np.where(place[windows] == number, ct[windows], 0)
    return out


def _numpy_pick(x: np.ndarray, place: np.ndarray, *, axis: int, **window: Any) -> np.ndarray:
    y = np.zeros(place.shape, x.dtype)
    for number, windows, elements in _taps(x.shape, y.shape, axis, **window):
        np.copyto(y[windows], x[elements], where=place[windows] == number)
    return y


def _numpy_avgpool(x: np.ndarray, *, axis: int, count_padding: bool, **window: Any) -> np.ndarray:
    shape = pooled_shape("avgpool", Aval(x.shape, None, x.dtype), axis, **window)
    x = as_float(x)
    y = np.zeros(shape, x.dtype)
    for _, windows, elements in _taps(x.shape, shape, axis, **window):
        y[windows] += x[elements]
    y *= _share(x, _counts(x.shape, shape, axis, count_padding, **window))
    return y


def _numpy_avgpool_adjoint(
    ct: np.ndarray, *, shape: Shape, axis: int, count_padding: bool, **window: Any
) -> np.ndarray:
    ct = as_float(ct)
    out = np.zeros(shape, ct.dtype)
    share = ct * _share(ct, _counts(shape, ct.shape, axis, count_padding, **window))
    for _, windows, elements in _taps(shape, ct.shape, axis, **window):
        out[elements] += share[windows]
    return out


def _share(x: np.ndarray, counts: np.ndarray) -> Any:
    return (1.0 / counts).astype(x.real.dtype)


def _counts(
    x: Shape, y: Shape, axis: int, count_padding: bool, size: Shape, stride: Shape, padding: Padding
) -> Any:
    """Return how many elements each window has, broadcast to the axes of the result."""
    count = np.ones((), np.int64)
    for i, (k, s, (before, _)) in enumerate(zip(size, stride, padding, strict=True)):
        starts = np.arange(y[axis + i]) * s - before
        own = np.minimum(starts + k, x[axis + i]) - np.maximum(starts, 0)
        count = count * (k if count_padding else own.reshape(-1, *(1,) * (len(y) - axis - i - 1)))
    return count


def view(x: Shape, y: Shape, axis: int, size: Shape, stride: Shape, padding: Padding) -> tuple[int, ...]:
    """Return the integers that kernels take after the rows: d, h, w, inner, od, oh, ow, windows, strides, padding."""
    end = axis + len(size)
    fill = (1,) * (MOST_AXES - len(size))
    starts = (0,) * len(fill) + tuple([before for before, _ in padding])
    inner = prod(x[end:])
    return (*fill, *x[axis:end], inner, *fill, *y[axis:end], *fill, *size, *fill, *stride, *starts)


def _rows(x: Shape, axis: int, count: int) -> int:
    """Return the rows of an array: all but the last of its pooled axes, and those before them."""
    return prod(x[: axis + count - 1])


def _is_pairs(x: Shape, y: Shape, axis: int, size: Shape, stride: Shape, padding: Padding) -> bool:
    """Return whether windows are 2 x 2, do not overlap, and lie within the array."""
    end = axis + len(size)
    return (
        len(size) > 1 and size[-2:] == stride[-2:] == (2, 2) and prod(size) == 4 and not any(p[0] for p in padding)
        and 2 * y[end - 1] <= x[end - 1] and 2 * y[end - 2] <= x[end - 2]
    )  # fmt: skip


def _images(node: Any) -> int:
    """Return how many arrays are pooled apart."""
    return prod(node.outputs[0].shape[: node.params["axis"]])


def _call(name: str, to_windows: bool, counted: bool = False) -> KernelCall:
    """Return the call of a kernel that writes windows, or the elements of the array."""

    def sides(out: Any, x: Aval) -> tuple[Shape, Shape]:
        result = out if type(out) is Aval else out[0]
        return (x.shape, result.shape) if to_windows else (result.shape, x.shape)

    def numbers(
        out: Any, x: Aval, *places: Aval, axis: int, size: Shape, stride: Shape, padding: Padding,
        shape: Shape = (), count_padding: bool = True,
    ) -> Sequence[int]:  # fmt: skip
        big, small = sides(out, x)
        count = _rows(small if to_windows else big, axis, len(size)) if prod(big) else 0
        if count and variant(out, x, axis=axis, size=size, stride=stride, padding=padding).endswith(
            "_planes"
        ):
            count = prod(big[:axis])
        extra = (int(count_padding),) if counted else ()
        return (0, count, *view(big, small, axis, size, stride, padding), *extra)

    def variant(
        out: Any, x: Aval, *places: Aval, axis: int, size: Shape, stride: Shape, padding: Padding,
        shape: Shape = (), count_padding: bool = True,
    ) -> str:  # fmt: skip
        if _is_pairs(*sides(out, x), axis, size, stride, padding):
            return f"{name}_pairs"
        if prod(x.shape[axis + len(size) :]) > 1:
            return name
        return f"{name}_planes" if name == "maxpool_adjoint" and prod(size) <= 2**15 else name

    def ns(numbers: Sequence[int]) -> float:
        _, rows, d, h, w, inner, _, _, ow, *window = numbers
        if name == "maxpool_adjoint" and inner == 1 and window[1:3] != [2, 2]:
            return rows * d * h * w * 2 * _NS_PER_TAP
        if to_windows:
            return rows * ow * inner * prod(window[:3]) * _NS_PER_TAP
        return rows * w * inner * max(2.0, prod(window[:3]) / prod(window[3:6])) * _NS_PER_TAP

    cut = RangeCut(ns, lambda numbers: numbers[1], _images)
    return KernelCall(name, numbers, cut=cut, variant=variant)


def _promote(x: np.dtype, *places: np.dtype) -> tuple[np.dtype, ...]:
    return (float_of(x), *places)


def _infer_adjoint(ct: Aval, *places: Aval, shape: Shape, **window: Any) -> Aval:
    return Aval(shape, ct.format, float_of(ct.dtype))


def _infer_pick(x: Aval, place: Aval, **window: Any) -> Aval:
    return Aval(place.shape, x.format, x.dtype)


def _infer_avgpool(
    x: Aval, *, axis: int, size: Shape, stride: Shape, padding: Padding, count_padding: bool
) -> Aval:
    return Aval(pooled_shape("avgpool", x, axis, size, stride, padding), x.format, float_of(x.dtype))


def _vjp_maxpool(b: Any, node: Any, cts: Any) -> Any:
    x, place = node.inputs[0], node.outputs[1]
    return (lambda: b.maxpool_adjoint(cts[0], place, shape=x.shape, **node.params),)


def _vjp_adjoint(b: Any, node: Any, ct: Any) -> Any:
    window = {name: value for name, value in node.params.items() if name != "shape"}
    return (lambda: b.maxpool_pick(ct, node.inputs[1], **window), None)


def _vjp_pick(b: Any, node: Any, ct: Any) -> Any:
    return (lambda: b.maxpool_adjoint(ct, node.inputs[1], shape=node.inputs[0].shape, **node.params), None)


def _vjp_avgpool_adjoint(b: Any, node: Any, ct: Any) -> Any:
    return (b.avgpool(ct, **{name: value for name, value in node.params.items() if name != "shape"}),)


_Window = dict[str, Any]
_WINDOWS: tuple[tuple[Shape, _Window], ...] = (
    ((2, 4, 5), {"axis": 1, "size": (2, 2), "stride": (2, 2), "padding": ((0, 0), (0, 0))}),
    ((2, 5, 4, 3), {"axis": 1, "size": (2, 2), "stride": (2, 2), "padding": ((0, 0), (0, 0))}),
    ((5, 6, 2), {"axis": 0, "size": (3, 2), "stride": (1, 2), "padding": ((1, 2), (0, 1))}),
    ((2, 5, 7), {"axis": 1, "size": (2, 3), "stride": (1, 1), "padding": ((1, 1), (1, 0))}),
    ((2, 7, 2), {"axis": 1, "size": (3,), "stride": (2,), "padding": ((1, 0),)}),
    ((2, 6, 5), {"axis": 1, "size": (3, 3), "stride": (2, 2), "padding": ((1, 0), (1, 1))}),
    ((1, 3, 4, 4, 2), {"axis": 1, "size": (2, 1, 2), "stride": (1, 3, 2), "padding": ((1, 0), (0, 0), (0, 0))}),
)  # fmt: skip


def _samples(adjoint: bool = False, places: bool = False, **params: Any) -> tuple[Sample, ...]:
    """Return a sample for each of the windows: of an array, or of its windows."""
    samples = []
    for shape, window in _WINDOWS:
        pooled = pooled_shape("pooling", Aval(shape, None, np.dtype(np.float64)), **window)
        shapes = (pooled if adjoint else shape, *((pooled,) if places else ()))
        own = {"shape": shape} if adjoint else {}
        dtypes = (None, str(place_dtype(window["size"]))) if places else None
        samples.append(Sample(shapes, {**own, **window, **params}, dtypes=dtypes, integer_high=2))
    return tuple(samples)


OPS = (
    Op(name="maxpool", doc="the largest element of each window, NaN if one is, and the place in the window where it is "
       "(the first, or the last NaN); ct to that element", kind=Kind.KERNEL, infer=_infer_maxpool,
       numpy=_numpy_maxpool, vjp=_vjp_maxpool, batch=batch.shifted,
       emit=_call("maxpool", True), samples=_samples(), analytic=False),
    Op(name="maxpool_adjoint", doc="the sum, for each element, of ct of the windows that have their place there; ct at "
       "these places", kind=Kind.KERNEL, infer=_infer_adjoint, promote=_promote, numpy=_numpy_adjoint, vjp=_vjp_adjoint,
       batch=batch.shifted, emit=_call("maxpool_adjoint", False), samples=_samples(adjoint=True, places=True)),
    Op(name="maxpool_pick", doc="the element at a place of each window; ct added up at these elements",
       kind=Kind.KERNEL, infer=_infer_pick, numpy=_numpy_pick, vjp=_vjp_pick,
       batch=batch.shifted, emit=_call("maxpool_pick", True)._replace(variant=None), samples=_samples(places=True)),
    Op(name="avgpool", doc="the mean of each window, of its elements or, with count_padding, of these and zeros for "
       "padding; ct over that number, added up for each element", kind=Kind.KERNEL, infer=_infer_avgpool,
       promote=_promote, numpy=_numpy_avgpool,
       vjp=lambda b, n, ct: (b.avgpool_adjoint(ct, shape=n.inputs[0].shape, **n.params),),
       batch=batch.shifted, emit=_call("avgpool", True, counted=True),
       samples=(*_samples(count_padding=True), *_samples(count_padding=False))),
    Op(name="avgpool_adjoint", doc="the sum, for each element, of ct of its windows, each over the number of the "
       "window's elements; the mean of ct in each window", kind=Kind.KERNEL, infer=_infer_adjoint, promote=_promote,
       numpy=_numpy_avgpool_adjoint, vjp=_vjp_avgpool_adjoint, batch=batch.shifted,
       emit=_call("avgpool_adjoint", False, counted=True),
       samples=(*_samples(adjoint=True, count_padding=True), *_samples(adjoint=True, count_padding=False))),
)  # fmt: skip
