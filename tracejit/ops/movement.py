# SPDX-License-Identifier: BSD-3-Clause
"""Ops that rearrange elements without arithmetic: reshape, transpose, slices, joins and padding.

Those with Strided emission are other views of the operand's memory; those with Pieces are written part by part.
"""

from math import prod

import numpy as np

from tracejit.aval import Aval, describe_shape
from tracejit.errors import DimsError
from tracejit.ops.op import Kind, Layout, Op, Sample, Strided

Shape = tuple[int, ...]


def _infer_reshape(x: Aval, *, shape: Shape) -> Aval:
    if prod(shape) != x.size or any(extent < 0 for extent in shape):
        raise DimsError(
            f"reshape: x has {x.size} elements ({describe_shape(x.shape, x.format)}), but shape={shape} holds "
            f"{prod(shape)}; the sizes must have the same product."
        )
    return Aval(shape, None, x.dtype)


def _layout_reshape(layout: Layout, *, shape: Shape) -> Layout | None:
    """Return the layout of a reshape without a copy, or None (Note [reshape without a copy])."""
    if 0 in shape:
        return Layout(layout.offset, shape, _contiguous(shape))
    blocks: list[list[int]] = []  # [extent, stride], innermost first
    for extent, stride in zip(reversed(layout.shape), reversed(layout.strides), strict=True):
        if extent == 1:
            continue
        if blocks and stride == blocks[-1][0] * blocks[-1][1]:
            blocks[-1][0] *= extent
        else:
            blocks.append([extent, stride])
    strides = []
    left, step = 1, 1
    waiting = iter(blocks)
    for extent in reversed(shape):
        if extent != 1 and left == 1:
            left, step = next(waiting)
        if left % extent:
            return None
        strides.append(step)
        left //= extent
        step *= extent
    return Layout(layout.offset, shape, tuple(reversed(strides)))


# Note [reshape without a copy]
# Axes of size 1 are left out, and neighbours that lie in memory as one axis (stride == inner extent * inner
# stride) are merged into blocks. The reshape is a view exactly if the new axes, innermost first, fill one
# block after the other without crossing from one to the next: a (2, 3) array that was transposed has the
# blocks 2 and 3, so (3, 2, 1) is a view of it and (6,) is not.


def _axes_reshape(ndim: int, shape_in: Shape, *, shape: Shape) -> tuple[int | None, ...] | None:
    """Return the output axis of each input axis if only axes of size 1 come and go, else None."""
    axes: list[int | None] = []
    at = 0
    for extent in shape_in:
        while at < len(shape) and shape[at] != extent and shape[at] == 1:
            at += 1
        if at < len(shape) and shape[at] == extent:
            axes.append(at)
            at += 1
        elif extent == 1:
            axes.append(None)
        else:
            return None
    return tuple(axes) if all(extent == 1 for extent in shape[at:]) else None


def _contiguous(shape: Shape) -> Shape:
    """Return the strides of contiguous memory in C order."""
    strides = [1] * len(shape)
    for i in range(len(shape) - 1, 0, -1):
        strides[i - 1] = strides[i] * shape[i]
    return tuple(strides)


def _infer_transpose(x: Aval, *, axes: Shape) -> Aval:
    if sorted(axes) != list(range(x.ndim)):
        raise DimsError(
            f"transpose: axes={axes} is not an order of the {x.ndim} axes of x "
            f"({describe_shape(x.shape, x.format)}); name each of 0 to {x.ndim - 1} once."
        )
    format = None if x.format is None else "".join(x.format[axis] for axis in axes)
    return Aval(tuple(x.shape[axis] for axis in axes), format, x.dtype)


def _inverse(axes: Shape) -> Shape:
    """Return the order that undoes the permutation `axes`."""
    return tuple(axes.index(i) for i in range(len(axes)))


def _layout_transpose(layout: Layout, *, axes: Shape) -> Layout:
    return Layout(
        layout.offset,
        tuple(layout.shape[axis] for axis in axes),
        tuple(layout.strides[axis] for axis in axes),
    )


def _infer_broadcast(x: Aval, *, shape: Shape) -> Aval:
    extra = len(shape) - x.ndim
    if extra < 0 or any(have not in (1, want) for have, want in zip(x.shape, shape[extra:], strict=True)):
        raise DimsError(
            f"broadcast_to: x of size {describe_shape(x.shape, x.format)} does not broadcast to shape={shape}; "
            "aligned from the last axis, each size of x must be 1 or equal."
        )
    format = None if x.format is None else "U" * extra + x.format
    return Aval(shape, format, x.dtype)


def _layout_broadcast(layout: Layout, *, shape: Shape) -> Layout:
    extra = len(shape) - len(layout.shape)
    kept = zip(layout.shape, layout.strides, shape[extra:], strict=True)
    strides = tuple(stride if have == want else 0 for have, stride, want in kept)
    return Layout(layout.offset, shape, (0,) * extra + strides)


def _axes_broadcast(ndim: int, shape_in: Shape, *, shape: Shape) -> tuple[int | None, ...]:
    return tuple(range(len(shape) - ndim, len(shape)))


OPS = (
    Op(name="reshape", doc="the elements in C order in another shape, unformatted; ct reshaped back",
       kind=Kind.MOVE, infer=_infer_reshape, numpy=lambda x, *, shape: x.reshape(shape),
       vjp=lambda b, n, ct: (lambda: b.reshape(ct, shape=n.inputs[0].shape),),
       emit=Strided(_layout_reshape, _axes_reshape),
       samples=(Sample(((2, 3),), {"shape": (3, 2)}), Sample(((2, 1, 3),), {"shape": (2, 3, 1)}),
                Sample(((),), {"shape": (1, 1)}), Sample(((0, 3),), {"shape": (2, 0)}))),
    Op(name="transpose", doc="axes (and labels) in the order `axes`; ct in the inverse order",
       kind=Kind.MOVE, infer=_infer_transpose, numpy=lambda x, *, axes: x.transpose(axes),
       vjp=lambda b, n, ct: (lambda: b.transpose(ct, axes=_inverse(n.params["axes"])),),
       emit=Strided(_layout_transpose, lambda ndim, shape_in, *, axes: _inverse(axes)),
       samples=(Sample(((2, 3),), {"axes": (1, 0)}), Sample(((2, 3, 4),), {"axes": (2, 0, 1)}))),
    Op(name="broadcast_to", doc="x repeated to `shape` by NumPy's rule, new leading axes labelled U; ct (summed)",
       kind=Kind.MOVE, infer=_infer_broadcast, numpy=lambda x, *, shape: np.broadcast_to(x, shape),
       vjp=lambda b, n, ct: (ct,), emit=Strided(_layout_broadcast, _axes_broadcast),
       samples=(Sample(((3, 1),), {"shape": (2, 3, 4)}), Sample(((),), {"shape": (2,)}),
                Sample(((2, 3),), {"shape": (2, 3)}))),
)  # fmt: skip
