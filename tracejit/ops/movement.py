# SPDX-License-Identifier: BSD-3-Clause
"""Ops that rearrange elements without arithmetic: reshape, transpose, slices, joins and padding.

Those with Strided emission are other views of the operand's memory; those with Pieces are written in parts.
"""

from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate
from math import prod
from typing import Any

import numpy as np

from tracejit.aval import Aval, describe_shape
from tracejit.errors import AxisError, DimsError, WriteError
from tracejit.ops import batch
from tracejit.ops.op import Kind, Layout, Op, Piece, Pieces, Sample, Strided, contiguous
from tracejit.util.text import brief

Shape = tuple[int, ...]


def _infer_reshape(x: Aval, *, shape: Shape) -> Aval:
    if prod(shape) != x.size or any(extent < 0 for extent in shape):
        raise DimsError(
            f"reshape: x has {x.size} elements ({describe_shape(x.shape, x.format)}), but shape={brief(shape)} "
            f"holds {brief(prod(shape))}; the sizes must have the same product."
        )
    return Aval(shape, None, x.dtype)


def _layout_reshape(layout: Layout, *, shape: Shape) -> Layout | None:
    """Return the layout of a reshape without a copy, or None (Note [reshape without a copy])."""
    if 0 in shape:
        return contiguous(shape)._replace(offset=layout.offset)
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
    """Return the output axis of each input axis if only axes of size 1 come and go, or None."""
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


@lru_cache(maxsize=1024)
def _infer_transpose(x: Aval, *, axes: Shape) -> Aval:
    if sorted(axes) != list(range(x.ndim)):
        kind = AxisError if any(not 0 <= axis < x.ndim for axis in axes) else DimsError
        raise kind(
            f"transpose: axes={brief(axes)} is not an order of the {x.ndim} axes of x "
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
        tuple([layout.shape[axis] for axis in axes]),
        tuple([layout.strides[axis] for axis in axes]),
    )


def _infer_broadcast(x: Aval, *, shape: Shape) -> Aval:
    extra = len(shape) - x.ndim
    if extra < 0 or any(have not in (1, want) for have, want in zip(x.shape, shape[extra:], strict=True)):
        raise DimsError(
            f"broadcast_to: x of size {describe_shape(x.shape, x.format)} does not broadcast to "
            f"shape={shape}; aligned from the last axis, each size of x must be 1 or equal."
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


def _write_broadcast(apply: Any, x: Any, v: Any, *, shape: Shape) -> Any:
    raise WriteError(
        f"write: an array that was broadcast from {describe_shape(x.shape, None)} to {describe_shape(shape, None)} is "
        "read-only, as NumPy's is, because its elements share places in memory; write to a copy (x.copy())."
    )


def _extents(op: str, x: Aval, starts: Shape, stops: Shape, steps: Shape) -> Shape:
    """Return the sizes of a slice, or raise a DimsError in the name of `op` if it leaves `x`."""
    if not len(starts) == len(stops) == len(steps) == x.ndim:
        raise DimsError(
            f"{op}: starts={starts}, stops={stops} and steps={steps} must have one entry for each of the "
            f"{x.ndim} axes of x ({describe_shape(x.shape, x.format)})."
        )
    extents = []
    for axis, (size, start, stop, step) in enumerate(zip(x.shape, starts, stops, steps, strict=True)):
        if step == 1 and 0 <= start <= stop <= size:
            extents.append(stop - start)
            continue
        inside = range(start, stop, step) if step else None
        if inside is None or (inside and not (0 <= inside[0] < size and 0 <= inside[-1] < size)):
            raise DimsError(
                f"{op}: range({start}, {stop}, {step}) leaves axis {axis} of x "
                f"({describe_shape(x.shape, x.format)}); indices must lie in 0 to {size - 1}, and a step is not 0."
            )
        extents.append(len(inside))
    return tuple(extents)


def _infer_slice(x: Aval, *, starts: Shape, stops: Shape, steps: Shape) -> Aval:
    return Aval(_extents("slice", x, starts, stops, steps), x.format, x.dtype)


def index_of(starts: Shape, stops: Shape, steps: Shape) -> tuple[slice, ...]:
    """Return the places range(start, stop, step) of each axis as NumPy's index."""
    return tuple(map(_slice_object, starts, stops, steps))


def _slice_object(start: int, stop: int, step: int) -> slice:
    if step > 0:
        return slice(start, stop, step)
    # A stop of -1 ("through 0") would count from the end in a slice object.
    return slice(start, None if stop < 0 else stop, step) if range(start, stop, step) else slice(0, 0)


def _layout_slice(layout: Layout, *, starts: Shape, stops: Shape, steps: Shape) -> Layout:
    shape = tuple(map(len, map(range, starts, stops, steps)))
    if 0 in shape:
        # A load may be hoisted out of the empty loop, so it must not move backwards from where the array begins.
        return contiguous(shape)._replace(offset=layout.offset)
    offset = layout.offset + sum(start * stride for start, stride in zip(starts, layout.strides, strict=True))
    strides = tuple(step * stride for step, stride in zip(steps, layout.strides, strict=True))
    return Layout(offset, shape, strides)


def zeros(b: Any, ct: Any, shape: Shape) -> Any:
    """Return zeros of `shape` in the dtype of `ct`."""
    return b.broadcast_to(b.constant(np.zeros((), ct.dtype)), shape=shape)


def _infer_setslice(x: Aval, v: Aval, *, starts: Shape, stops: Shape, steps: Shape) -> Aval:
    shape = _extents("setslice", x, starts, stops, steps)
    extra = len(shape) - v.ndim
    if extra < 0 or any(have not in (1, want) for have, want in zip(v.shape, shape[extra:], strict=True)):
        raise DimsError(
            f"setslice: a value of size {describe_shape(v.shape, v.format)} does not broadcast to the "
            f"{describe_shape(shape, x.format)} places of x ({describe_shape(x.shape, x.format)}) that are "
            "assigned; aligned from the last axis, each size must be 1 or equal."
        )
    return x


def target(x: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Return a copy of `x` to assign `v` to; it is complex if `v` is, for derivatives by complex step."""
    return np.array(x, dtype=np.result_type(x, v) if v.dtype.kind == "c" else x.dtype)


def _numpy_setslice(x: np.ndarray, v: np.ndarray, *, starts: Shape, stops: Shape, steps: Shape) -> np.ndarray:
    y = target(x, v)
    y[index_of(starts, stops, steps)] = v
    return y


def _pieces_setslice(
    out: Aval, x: Aval, v: Aval, *, starts: Shape, stops: Shape, steps: Shape
) -> Sequence[Piece]:
    shape = tuple(map(len, map(range, starts, stops, steps)))
    whole = Piece(0, (0,) * out.ndim, out.shape, (1,) * out.ndim)
    return (whole, Piece(1, starts, shape, steps))


def _infer_concatenate(*xs: Aval, axis: int) -> Aval:
    first = xs[0]
    format = None
    for number, x in enumerate(xs):
        if x.ndim != first.ndim or any(
            have != want for i, (have, want) in enumerate(zip(x.shape, first.shape, strict=True)) if i != axis
        ):
            raise DimsError(
                f"concatenate: array 0 has size {describe_shape(first.shape, first.format)} and array "
                f"{number} {describe_shape(x.shape, x.format)}; all sizes except along axis "
                f"{axis} must be equal."
            )
        if x.format is not None and format is not None and x.format != format:
            raise DimsError(
                f"concatenate: the arrays have the formats {format!r} and {x.format!r}; joined axes must "
                "have the same labels. Permute or relabel one of them."
            )
        format = format or x.format
    if not 0 <= axis < first.ndim:
        raise AxisError(
            f"concatenate: axis {axis} is out of range for arrays of {describe_shape(first.shape, format)}; "
            "a scalar has no axes, so reshape it to (1,) first."
        )
    extent = sum(x.shape[axis] for x in xs)
    shape = (*first.shape[:axis], extent, *first.shape[axis + 1 :])
    return Aval(shape, format, np.result_type(*[x.dtype for x in xs]))


def _promote_concatenate(*dtypes: np.dtype) -> tuple[np.dtype, ...]:
    return (np.result_type(*dtypes),) * len(dtypes)


def _edges(xs: Sequence[Any], axis: int) -> list[int]:
    """Return the starts of the parts of a concatenation, and the end of the last."""
    return list(accumulate((x.shape[axis] for x in xs), initial=0))


def _pieces_concatenate(out: Aval, *xs: Aval, axis: int) -> Sequence[Piece]:
    return tuple(
        Piece(number, (0,) * axis + (at,) + (0,) * (out.ndim - axis - 1), x.shape, (1,) * out.ndim)
        for number, (x, at) in enumerate(zip(xs, _edges(xs, axis), strict=False))
    )


def _vjp_concatenate(b: Any, node: Any, ct: Any) -> Any:
    axis = node.params["axis"]
    edges = _edges(node.inputs, axis)

    def part(number: int) -> Any:
        starts, stops = [0] * ct.ndim, list(ct.shape)
        starts[axis], stops[axis] = edges[number : number + 2]
        return b.slice(ct, starts=tuple(starts), stops=tuple(stops), steps=(1,) * ct.ndim)

    return [lambda number=number: part(number) for number in range(len(node.inputs))]


Place = tuple[Shape, Shape, Shape]  # starts, stops and steps of a slice


def _infer_assemble(*vs: Aval, shape: Shape, places: tuple[Place, ...]) -> Aval:
    for v, place in zip(vs, places, strict=True):
        extents = _extents("assemble", Aval(shape, None, v.dtype), *place)
        if v.shape != extents:
            raise DimsError(
                f"assemble: a value of size {describe_shape(v.shape, v.format)} is to fill "
                f"{describe_shape(extents, None)} places; the sizes must be equal."
            )
    return Aval(shape, None, np.result_type(*[v.dtype for v in vs]))


def _numpy_assemble(*vs: np.ndarray, shape: Shape, places: tuple[Place, ...]) -> np.ndarray:
    y = np.zeros(shape, np.result_type(*vs))
    for v, place in zip(vs, places, strict=True):
        y[index_of(*place)] = v
    return y


def _pieces_assemble(out: Aval, *vs: Aval, shape: Shape, places: tuple[Place, ...]) -> Sequence[Piece]:
    parts = [
        Piece(number, starts, v.shape, steps)
        for number, (v, (starts, _, steps)) in enumerate(zip(vs, places, strict=True))
    ]
    if sum(v.size for v in vs) < out.size:
        parts.insert(0, Piece(0, (0,) * out.ndim, shape, (1,) * out.ndim, fill=True))
    return parts


def _vjp_assemble(b: Any, node: Any, ct: Any) -> Any:
    def part(place: Place) -> Any:
        return b.slice(ct, **dict(zip(("starts", "stops", "steps"), place, strict=True)))

    return [lambda place=place: part(place) for place in node.params["places"]]


Widths = tuple[tuple[int, int], ...]


def _infer_pad(x: Aval, *, widths: Widths, value: float) -> Aval:
    if len(widths) != x.ndim or any(width < 0 for pair in widths for width in pair):
        raise DimsError(
            f"pad: widths={widths} must be one pair (before, after) of sizes >= 0 for each of the {x.ndim} "
            f"axes of x ({describe_shape(x.shape, x.format)})."
        )
    shape = tuple(before + extent + after for extent, (before, after) in zip(x.shape, widths, strict=True))
    return Aval(shape, x.format, x.dtype)


def _numpy_pad(x: np.ndarray, *, widths: Widths, value: float) -> np.ndarray:
    shape = [before + extent + after for extent, (before, after) in zip(x.shape, widths, strict=True)]
    y = np.full(shape, value, x.dtype, order="F" if x.flags.fnc else "C")
    y[tuple(slice(before, before + extent) for extent, (before, _) in zip(x.shape, widths, strict=True))] = x
    return y


def _pieces_pad(out: Aval, x: Aval, *, widths: Widths, value: float) -> Sequence[Piece]:
    step = (1,) * out.ndim
    fill = out.dtype.type(value).item()
    pieces = []
    # Each place of the border is written once: the slabs of an axis span the interior of the axes before it.
    start, shape = [0] * out.ndim, list(out.shape)
    for axis, (before, after) in enumerate(widths):
        for at, width in ((0, before), (out.shape[axis] - after, after)):
            start[axis], shape[axis] = at, width
            if 0 not in shape:
                pieces.append(Piece(fill, tuple(start), tuple(shape), step, fill=True))
        start[axis], shape[axis] = before, x.shape[axis]
    pieces.append(Piece(0, tuple(start), x.shape, step))
    return pieces


def _vjp_pad(b: Any, node: Any, ct: Any) -> Any:
    starts = tuple(before for before, _ in node.params["widths"])
    stops = tuple(before + extent for before, extent in zip(starts, node.inputs[0].shape, strict=True))
    return (lambda: b.slice(ct, starts=starts, stops=stops, steps=(1,) * ct.ndim),)


OPS = (
    Op(name="reshape", doc="the elements in C order in another shape, unformatted; ct reshaped back",
       kind=Kind.MOVE, infer=_infer_reshape, numpy=lambda x, *, shape: x.reshape(shape),
       vjp=lambda b, n, ct: (lambda: b.reshape(ct, shape=n.inputs[0].shape),),
       batch=batch.shifted, emit=Strided(_layout_reshape, _axes_reshape),
       view=lambda apply, x, v, *, shape: apply("reshape", v, shape=x.shape),
       samples=(Sample(((2, 3),), {"shape": (3, 2)}), Sample(((2, 1, 3),), {"shape": (2, 3, 1)}),
                Sample(((),), {"shape": (1, 1)}), Sample(((0, 3),), {"shape": (2, 0)}))),
    Op(name="transpose", doc="axes (and labels) in the order `axes`; ct in the inverse order",
       kind=Kind.MOVE, infer=_infer_transpose, numpy=lambda x, *, axes: x.transpose(axes),
       vjp=lambda b, n, ct: (lambda: b.transpose(ct, axes=_inverse(n.params["axes"])),),
       batch=batch.transpose, emit=Strided(_layout_transpose, lambda ndim, shape_in, *, axes: _inverse(axes)),
       view=lambda apply, x, v, *, axes: apply("transpose", v, axes=_inverse(axes)),
       samples=(Sample(((2, 3),), {"axes": (1, 0)}), Sample(((2, 3, 4),), {"axes": (2, 0, 1)}))),
    Op(name="broadcast_to", doc="x repeated to `shape` by NumPy's rule, new axes labelled U; ct (summed)",
       kind=Kind.MOVE, infer=_infer_broadcast, numpy=lambda x, *, shape: np.broadcast_to(x, shape),
       vjp=lambda b, n, ct: (ct,), batch=batch.broadcast,
       emit=Strided(_layout_broadcast, _axes_broadcast), view=_write_broadcast,
       samples=(Sample(((3, 1),), {"shape": (2, 3, 4)}), Sample(((),), {"shape": (2,)}),
                Sample(((2, 3),), {"shape": (2, 3)}))),
    Op(name="slice", doc="the places range(start, stop, step) of each axis; ct set into zeros",
       kind=Kind.MOVE, infer=_infer_slice,
       numpy=lambda x, *, starts, stops, steps: x[index_of(starts, stops, steps)],
       vjp=lambda b, n, ct: (lambda: b.setslice(zeros(b, ct, n.inputs[0].shape), ct, **n.params),),
       batch=batch.slice_,
       emit=Strided(_layout_slice), view=lambda apply, x, v, **params: apply("setslice", x, v, **params),
       samples=(Sample(((4, 5),), {"starts": (1, 0), "stops": (3, 5), "steps": (1, 2)}),
                Sample(((4,),), {"starts": (3,), "stops": (-1,), "steps": (-1,)}),
                Sample(((4, 3),), {"starts": (2, 0), "stops": (2, 3), "steps": (1, 1)}))),
    Op(name="setslice", doc="x with the slice replaced by v, which broadcasts and is cast to x's dtype; "
       "ct with the slice zeroed, the slice of ct (summed)",
       kind=Kind.MOVE, infer=_infer_setslice, numpy=_numpy_setslice, promote=lambda x, v: (x, x),
       vjp=lambda b, n, ct: (lambda: b.setslice(ct, 0.0, **n.params), lambda: b.slice(ct, **n.params)),
       batch=batch.slice_, emit=Pieces(_pieces_setslice),
       samples=(Sample(((4, 5), (2, 3)), {"starts": (1, 0), "stops": (3, 5), "steps": (1, 2)}),
                Sample(((4, 3), (3,)), {"starts": (3, 2), "stops": (-1, -1), "steps": (-2, -1)}),
                Sample(((4,), ()), {"starts": (1,), "stops": (2,), "steps": (1,)}))),
    Op(name="concatenate", doc="arrays joined along an axis, in their common dtype; the parts of ct",
       kind=Kind.MOVE, infer=_infer_concatenate, numpy=lambda *xs, axis: np.concatenate(xs, axis),
       promote=_promote_concatenate, vjp=_vjp_concatenate, batch=batch.shifted, emit=Pieces(_pieces_concatenate),
       samples=(Sample(((2, 3), (4, 3)), {"axis": 0}), Sample(((2, 3), (2, 0), (2, 1)), {"axis": 1}),
                Sample(((2,),), {"axis": 0}))),
    Op(name="assemble", doc="arrays at disjoint slices of zeros: the sum of adjoints of slices; the slices of ct",
       kind=Kind.MOVE, infer=_infer_assemble, numpy=_numpy_assemble, promote=_promote_concatenate,
       vjp=_vjp_assemble, batch=batch.assemble, emit=Pieces(_pieces_assemble),
       samples=(Sample(((2, 3), (2, 2)), {"shape": (2, 5), "places": (((0, 0), (2, 3), (1, 1)),
                                                                      ((0, 3), (2, 5), (1, 1)))}),
                Sample(((1, 2), (2, 1)), {"shape": (3, 4), "places": (((2, 0), (3, 4), (1, 2)),
                                                                      ((1, 3), (-1, 4), (-1, 1)))}))),
    Op(name="pad", doc="x with `value` (cast to x's dtype) around it; the slice of ct",
       kind=Kind.MOVE, infer=_infer_pad, numpy=_numpy_pad, vjp=_vjp_pad, batch=batch.pad, emit=Pieces(_pieces_pad),
       samples=(Sample(((2, 3),), {"widths": ((1, 2), (0, 1)), "value": 0.0}),
                Sample(((3,),), {"widths": ((2, 0),), "value": 1.5}))),
)  # fmt: skip
