# SPDX-License-Identifier: BSD-3-Clause
"""Views of an array that show what an ndarray shows of the same memory: found by strides, made by slices and axes."""

import numpy as np

from tracejit.array import dlarray
from tracejit.functions.indexing import getitem
from tracejit.functions.movement import permuted, reshape
from tracejit.util.devices import address


def part(root: dlarray, whole: np.ndarray, data: np.ndarray) -> dlarray | None:
    """Return the view of an array that shows what `data` shows of the memory `whole`, or None.

    Args:
        root: the array; its elements may be elsewhere by now.
        whole: the memory that it had at first.
        data: an ndarray over the same memory. Slices with any steps, elements, axes in another order, new axes of
            size 1, and elements that follow one another in other sizes are found; diagonals and windows are not.
    """
    if whole.dtype != data.dtype:
        return None
    found = _by_axes(root, whole, data)
    return _in_a_row(root, whole, data) if found is None else found


def _in_a_row(root: dlarray, whole: np.ndarray, data: np.ndarray) -> dlarray | None:
    """Return the part of an array whose elements follow one another, as those of the array do, or None."""
    first, rest = divmod(address(data) - address(whole), whole.itemsize)
    is_dense = all(x.flags.c_contiguous for x in (root._data, whole, data))
    if rest or not is_dense or not 0 <= first <= whole.size - data.size:
        return None
    return reshape(getitem(reshape(root, (-1,)), slice(first, first + data.size)), data.shape)


def _by_axes(root: dlarray, whole: np.ndarray, data: np.ndarray) -> dlarray | None:
    """Return the view by slices and axes in another order, or None."""
    starts = _starts(whole, address(data) - address(whole))
    if starts is None:
        return None
    key: list[slice] = [slice(start, start + 1) for start in starts]
    free = sorted(
        (axis for axis in range(whole.ndim) if whole.shape[axis] > 1), key=lambda i: -abs(whole.strides[i])
    )
    taken: list[int] = []
    for extent, stride in zip(data.shape, data.strides, strict=True):
        if extent == 1:
            continue
        for axis in free:
            step, rest = divmod(stride, whole.strides[axis])
            last = starts[axis] + step * (extent - 1)
            if step and not rest and 0 <= last < whole.shape[axis]:
                end = last + (1 if step > 0 else -1)
                key[axis] = slice(starts[axis], None if end < 0 else end, step)
                taken.append(axis)
                free.remove(axis)
                break
        else:
            return None
    result = getitem(root, tuple(key)) if key else root
    rest_of_axes = [axis for axis in range(whole.ndim) if axis not in taken]
    order = (*taken, *rest_of_axes)
    if order != tuple(range(whole.ndim)):
        result = permuted(result, order)
    if result._data.shape != data.shape:
        result = reshape(result, data.shape)
    return result


def _starts(whole: np.ndarray, offset: int) -> list[int] | None:
    """Return the index of the element of an array that lies so many bytes behind its first, or None."""
    axes = [axis for axis in range(whole.ndim) if whole.shape[axis] > 1]
    axes.sort(key=lambda axis: -abs(whole.strides[axis]))
    starts = [0] * whole.ndim
    for axis in axes:
        stride, last = whole.strides[axis], whole.shape[axis] - 1
        if not stride:
            return None
        offset += 0 if stride > 0 else -stride * last  # from the lowest element
    for axis in axes:
        stride, last = whole.strides[axis], whole.shape[axis] - 1
        index, offset = divmod(offset, abs(stride))
        if not 0 <= index <= last:
            return None
        starts[axis] = index if stride > 0 else last - index
    return None if offset else starts
