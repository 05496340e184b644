# SPDX-License-Identifier: BSD-3-Clause
"""Convolutions: one sum of products of three arrays; each op computes one of the arrays from the other two.

With x (B, *I, C), w (U, *K, C / groups) and y (B, *O, U), the sum is over images b, windows o, taps k, filters u and
the channels c of the group of u:

    x[b, o strides + k dilation - before, c] w[u, k, c] y[b, o, u]

where x is 0 outside of its sizes. `convolution` is its derivative by y, `convolution_input` by x and
`convolution_weights` by w; so the adjoint of each is made of the other two. A transposed convolution is
`convolution_input`. `convolution` may add a bias for each filter.

The order of axes is a param: `labels` has those of x, w and y (B images, S spatial, C channels, U filters), such as
("BCSS", "UCSS", "BUSS"). `size` has the spatial sizes of the result. They say how far windows go, so there is no param
for padding after an array. `before`, the padding before it, may be negative.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from tracejit.aval import Aval, describe_shape
from tracejit.errors import DimsError
from tracejit.ops import batch, convolution_numpy
from tracejit.ops.convolution_numpy import Sizes, Windows
from tracejit.ops.floats import common_float, promote_common
from tracejit.ops.op import KernelCall, Kind, Op, Sample, contiguous

Labels = tuple[str, str, str]

X, W, Y = range(3)  # the operands, in the order of `labels`
_ORDERS = ("BSC", "USC", "BSU")  # of their axes in the references


def in_order(operand: int, labels: str) -> tuple[int, ...]:
    """Return the axes of an operand in the order of the references."""
    return tuple([axis for label in _ORDERS[operand] for axis, own in enumerate(labels) if own == label])


def spatial(shape: Sequence[int], labels: str) -> Sizes:
    """Return the sizes of the spatial axes."""
    return tuple([extent for extent, label in zip(shape, labels, strict=True) if label == "S"])


def _shape(labels: str, size: Sizes, **others: int) -> Sizes:
    sizes = iter(size)
    return tuple([next(sizes) if label == "S" else others[label] for label in labels])


def _extents(op: str, first: Aval, second: Aval, operands: Sequence[int], labels: Labels, groups: int) -> Any:
    """Return the sizes of B, C and U by label, C being those of x.

    Raises:
        DimsError: the sizes of the operands do not fit.
    """
    extents_of: dict[str, set[int]] = {"B": set(), "C": set(), "U": set()}
    fits = True
    for aval, operand in zip((first, second), operands, strict=True):
        fits = fits and aval.ndim == len(labels[operand])
        for extent, label in zip(aval.shape, labels[operand], strict=False):
            if label != "S":
                extents_of[label].add(extent * groups if label == "C" and operand == W else extent)
    sizes = {label: extents.pop() for label, extents in extents_of.items() if len(extents) == 1}
    if not fits or any(extents_of.values()) or any(sizes.get(label, 0) % groups for label in "CU"):
        described = " and ".join(
            f"{describe_shape(aval.shape, None)} ({labels[operand]!r})"
            for aval, operand in zip((first, second), operands, strict=True)
        )
        raise DimsError(
            f"{op}: operands of sizes {described} do not fit with groups={groups}; sizes of a label must be equal, C "
            "of weights times groups is C of x, and groups divide C and U. Use dlconv or dltranspconv."
        )
    return sizes


def _infer(
    x: Aval,
    w: Aval,
    *bias: Aval,
    labels: Labels,
    size: Sizes,
    strides: Sizes,
    before: Sizes,
    dilation: Sizes,
    groups: int,
) -> Aval:
    sizes = _extents("convolution", x, w, (X, W), labels, groups)
    for one in bias:
        if one.shape != (sizes["U"],):
            raise DimsError(
                f"convolution: a bias of {describe_shape(one.shape, None)} is given for {sizes['U']} filters; it has "
                "one number for each filter. Use dlconv."
            )
    dtype = common_float(x.dtype, w.dtype, *[one.dtype for one in bias])
    return Aval(_shape(labels[Y], size, **sizes), None, dtype)


def _infer_input(
    y: Aval,
    w: Aval,
    *,
    labels: Labels,
    size: Sizes,
    strides: Sizes,
    before: Sizes,
    dilation: Sizes,
    groups: int,
) -> Aval:
    sizes = _extents("convolution_input", y, w, (Y, W), labels, groups)
    return Aval(_shape(labels[X], size, **sizes), None, common_float(y.dtype, w.dtype))


def _infer_weights(
    x: Aval,
    y: Aval,
    *,
    labels: Labels,
    size: Sizes,
    strides: Sizes,
    before: Sizes,
    dilation: Sizes,
    groups: int,
) -> Aval:
    sizes = _extents("convolution_weights", x, y, (X, Y), labels, groups)
    sizes["C"] //= groups
    return Aval(_shape(labels[W], size, **sizes), None, common_float(x.dtype, y.dtype))


def _ready(operand: int, array: np.ndarray, labels: Labels, dtype: np.dtype) -> np.ndarray:
    """Return a view with the axes in the order of the references."""
    return array.astype(dtype, copy=False).transpose(in_order(operand, labels[operand]))


def _result(operand: int, array: np.ndarray, labels: Labels) -> np.ndarray:
    """Return an array of the references in the order of its labels, without gaps."""
    back = np.argsort(in_order(operand, labels[operand]))
    return np.ascontiguousarray(array.transpose(back))


def _reference(
    x: np.ndarray, w: np.ndarray, *bias: np.ndarray, labels: Labels, size: Sizes, groups: int, **params: Sizes
) -> np.ndarray:
    dtype = common_float(x.dtype, w.dtype, *[one.dtype for one in bias])
    windows = Windows(size, spatial(w.shape, labels[W]), **params)
    y = convolution_numpy.forward(_ready(X, x, labels, dtype), _ready(W, w, labels, dtype), windows, groups)
    for one in bias:
        y += one
    return _result(Y, y, labels)


def _reference_input(
    y: np.ndarray, w: np.ndarray, *, labels: Labels, size: Sizes, groups: int, **params: Sizes
) -> np.ndarray:
    dtype = common_float(y.dtype, w.dtype)
    windows = Windows(spatial(y.shape, labels[Y]), spatial(w.shape, labels[W]), **params)
    x = convolution_numpy.backward_x(
        _ready(Y, y, labels, dtype), _ready(W, w, labels, dtype), size, windows, groups
    )
    return _result(X, x, labels)


def _reference_weights(
    x: np.ndarray, y: np.ndarray, *, labels: Labels, size: Sizes, groups: int, **params: Sizes
) -> np.ndarray:
    dtype = common_float(x.dtype, y.dtype)
    windows = Windows(spatial(y.shape, labels[Y]), size, **params)
    w = convolution_numpy.backward_w(
        _ready(X, x, labels, dtype), _ready(Y, y, labels, dtype), windows, groups
    )
    return _result(W, w, labels)


def _other(operand: int, node: Any, like: Any) -> dict[str, Any]:
    """Return the params of the op that computes an operand as large as `like`."""
    return {**node.params, "size": spatial(like.shape, node.params["labels"][operand])}


def _vjp(b: Any, node: Any, ct: Any) -> Any:
    x, w, *bias = node.inputs
    labels = node.params["labels"][Y]
    axes = tuple([axis for axis, label in enumerate(labels) if label != "U"])
    return (
        lambda: b.convolution_input(ct, w, **_other(X, node, x)),
        lambda: b.convolution_weights(x, ct, **_other(W, node, w)),
        *[lambda: b.sum(ct, axes=axes, keepdims=False) for _ in bias],
    )


def _vjp_input(b: Any, node: Any, ct: Any) -> Any:
    y, w = node.inputs
    return (
        lambda: b.convolution(ct, w, **_other(Y, node, y)),
        lambda: b.convolution_weights(ct, y, **_other(W, node, w)),
    )


def _vjp_weights(b: Any, node: Any, ct: Any) -> Any:
    x, y = node.inputs
    return (
        lambda: b.convolution_input(y, ct, **_other(X, node, x)),
        lambda: b.convolution(x, ct, **_other(Y, node, y)),
    )


def _loops(x: Aval, w: Aval, y: Aval, labels: Labels, params: dict[str, Any]) -> Sequence[int]:
    """Return the numbers of the kernels in kernels/loops/convolution.py, for arrays without gaps."""
    arrays = (x, w, y)
    groups = params["groups"]
    shapes, strides = [], []
    for aval, operand in zip(arrays, (X, W, Y), strict=True):
        first, *inner, last = in_order(operand, labels[operand])
        own = contiguous(aval.shape).strides
        added = 3 - len(inner)
        shapes.append([aval.shape[axis] for axis in (first, *inner, last)])
        strides.append([own[first], *[0] * added, *[own[axis] for axis in inner], own[last]])
    numbers = [shapes[X][0], groups, shapes[W][-1], shapes[W][0] // groups]
    for sizes in shapes:
        numbers += [*[1] * (5 - len(sizes)), *sizes[1:-1]]
    for name, neutral in (("strides", 1), ("before", 0), ("dilation", 1)):
        numbers += [*[neutral] * (3 - len(params[name])), *params[name]]
    return [*numbers, *strides[X], *strides[W], *strides[Y]]


def _numbers(y: Aval, x: Aval, w: Aval, *bias: Aval, labels: Labels, **params: Any) -> Sequence[int]:
    return _loops(x, w, y, labels, params)


def _loops_with_bias(y: Aval, x: Aval, w: Aval, *bias: Aval, **params: Any) -> str:
    return "convolution_bias" if bias else "convolution"


def _numbers_input(x: Aval, y: Aval, w: Aval, *, labels: Labels, **params: Any) -> Sequence[int]:
    return _loops(x, w, y, labels, params)


def _numbers_weights(w: Aval, x: Aval, y: Aval, *, labels: Labels, **params: Any) -> Sequence[int]:
    return _loops(x, w, y, labels, params)


def _sample(*shapes: Sizes, labels: Labels, size: Sizes, groups: int = 1, **params: Sizes) -> Sample:
    one = (1,) * len(size)
    given = {"strides": one, "before": (0,) * len(size), "dilation": one, **params}
    return Sample(shapes, {"labels": labels, "size": size, **given, "groups": groups})


_1D, _2D, _2D_LAST = ("BCS", "UCS", "BUS"), ("BCSS", "UCSS", "BUSS"), ("SSCB", "SSCU", "SSUB")
_PLAIN = ((2, 3, 5), (4, 3, 3), (2, 4, 3))
_PADDED = ((2, 4, 5, 3), (4, 2, 3, 2), (2, 4, 3, 4))
_LAST = ((5, 4, 2, 2), (2, 2, 2, 3), (2, 3, 3, 2))
_EMPTY = ((0, 2, 3), (2, 2, 2), (0, 2, 2))
_MANY = {"strides": (2, 1), "before": (1, 1), "dilation": (1, 2), "groups": 2}
_SAMPLES = tuple([
    tuple([
        _sample(*[shape for i, shape in enumerate(shapes) if i != found], labels=labels,
                size=spatial(shapes[found], labels[found]), **params)
        for shapes, labels, params in (
            (_PLAIN, _1D, {}), (_PADDED, _2D, _MANY), (_LAST, _2D_LAST, {"strides": (2, 1)}), (_EMPTY, _1D, {}),
        )
    ])
    for found in (X, W, Y)
])  # fmt: skip
_BIASED = _SAMPLES[Y][1]._replace(shapes=(*_SAMPLES[Y][1].shapes, (4,)))

OPS = (
    Op(name="convolution", doc="sums of x w over windows, plus a bias of each filter if there is a third operand; ct "
       "by convolution_input for x, by convolution_weights for w, the sum of ct for the bias",
       kind=Kind.KERNEL, infer=_infer, numpy=_reference, promote=promote_common, vjp=_vjp,
       batch=batch.convolution(X, Y), emit=KernelCall("convolution", _numbers, variant=_loops_with_bias),
       samples=(*_SAMPLES[Y], _BIASED), domain=(0.25, 1.0)),
    Op(name="convolution_input", doc="y w added at the taps of windows, the adjoint of convolution by x and a "
       "transposed convolution; ct by convolution for y, by convolution_weights for w",
       kind=Kind.KERNEL, infer=_infer_input, numpy=_reference_input, promote=promote_common, vjp=_vjp_input,
       batch=batch.convolution(Y, X), emit=KernelCall("convolution_input", _numbers_input),
       samples=tuple([sample._replace(shapes=sample.shapes[::-1]) for sample in _SAMPLES[X]]), domain=(0.25, 1.0)),
    Op(name="convolution_weights", doc="sums of x y over images and windows, the adjoint of convolution by w; ct by "
       "convolution_input for x, by convolution for y",
       kind=Kind.KERNEL, infer=_infer_weights, numpy=_reference_weights, promote=promote_common, vjp=_vjp_weights,
       emit=KernelCall("convolution_weights", _numbers_weights), samples=_SAMPLES[W], domain=(0.25, 1.0)),
)  # fmt: skip
