# SPDX-License-Identifier: BSD-3-Clause
"""The references of convolutions in NumPy: products of matrices whose rows are the windows of some images.

Arrays have the axes x (B, *I, C), w (U, *K, C / groups) and y (B, *O, U). The windows of a whole batch would take as
many times the memory of x as a window has taps. So windows are laid out block by block, and a block stays in the near
caches.
"""

from collections.abc import Iterator
from math import prod

import numpy as np

from tracejit.util.named_tuples import NamedTuple

Sizes = tuple[int, ...]

_BLOCK = 1 << 18  # elements of the windows of a block
_FEW = 8  # channels of a group; fewer are laid out tap by tap, so that runs in memory are as long as a row of windows


class Windows(NamedTuple):
    """The places of windows along each spatial axis: tap k of window o is element o stride + k dilation - before.

    size        the number of windows
    taps        of each
    Elements outside of an array are 0.
    """

    size: Sizes
    taps: Sizes
    strides: Sizes
    before: Sizes
    dilation: Sizes

    @property
    def spans(self) -> Sizes:
        """The elements from the first to the last that belong to a window."""
        return tuple([
            (o - 1) * s + (k - 1) * d + 1
            for o, k, s, d in zip(self.size, self.taps, self.strides, self.dilation, strict=True)
        ])  # fmt: skip

    def of_rows(self, start: int, stop: int) -> "Windows":
        """Return the windows from `start` to before `stop` of the first axis."""
        return self._replace(
            size=(stop - start, *self.size[1:]),
            before=(self.before[0] - start * self.strides[0], *self.before[1:]),
        )

    def overlap(self, extents: Sizes) -> tuple[tuple[slice, ...], tuple[slice, ...]]:
        """Return which elements of an array lie within the spans, and where."""
        inside, places = [], []
        for extent, span, before in zip(extents, self.spans, self.before, strict=True):
            start, stop = max(0, -before), min(extent, span - before)
            inside.append(slice(start, max(start, stop)))
            places.append(slice(start + before, max(start, stop) + before))
        return tuple(inside), tuple(places)

    def tap(self, tap: Sizes) -> tuple[slice, ...]:
        """Return the elements within the spans that are a tap of the windows."""
        return tuple([
            slice(k * d, k * d + (o - 1) * s + 1, s)
            for o, k, s, d in zip(self.size, tap, self.strides, self.dilation, strict=True)
        ])  # fmt: skip


def forward(x: np.ndarray, w: np.ndarray, windows: Windows, groups: int) -> np.ndarray:
    """Return y[b, o, u] = the sum over taps k and the channels c of u's group of x[b, tap k of o, c] w[u, k, c]."""
    y = np.zeros((len(x), *windows.size, len(w)), np.result_type(x, w))
    filters = w.reshape(groups, len(w) // groups, *w.shape[1:])
    for images, rows, some in _blocks(x, y, w, windows):
        seen = _covered(x[images], some, groups)
        target = y[images, rows]
        if _is_apart(w, groups):
            grouped = target.reshape(*target.shape[:-1], groups, -1)
            for k in np.ndindex(*some.taps):
                grouped += seen[(slice(None), *some.tap(k))] * filters[(slice(None), slice(None), *k, 0)]
        elif w.shape[-1] < _FEW:
            products = _matrices(filters) @ _by_taps(seen, some)
            target[...] = np.moveaxis(products.reshape(-1, *target.shape[:-1]), 0, -1)
        else:
            products = _by_windows(seen, some) @ _matrices(filters).swapaxes(1, 2)
            target[...] = np.moveaxis(products, 0, 1).reshape(target.shape)
    return y


def backward_x(y: np.ndarray, w: np.ndarray, extents: Sizes, windows: Windows, groups: int) -> np.ndarray:
    """Return x of spatial sizes `extents`, the sum of y[b, o, u] w[u, k] at tap k of each window o."""
    x = np.zeros((len(y), *extents, groups * w.shape[-1]), np.result_type(y, w))
    filters = w.reshape(groups, len(w) // groups, *w.shape[1:])
    for images, rows, some in _blocks(x, y, w, windows):
        part = _by_group(y[images, rows], groups)
        padded = np.zeros((len(part), *some.spans, groups, w.shape[-1]), x.dtype)
        if _is_apart(w, groups):
            for k in np.ndindex(*some.taps):
                products = (part * filters[(slice(None), slice(None), *k, 0)]).sum(-1)
                padded[(slice(None), *some.tap(k))] += products[..., None]
        else:
            flat = np.moveaxis(part, -2, 0).reshape(groups, -1, part.shape[-1])
            products = (flat @ _matrices(filters)).reshape(groups, *part.shape[:-2], *some.taps, -1)
            products = np.moveaxis(products, 0, -2)
            axes = (slice(None),) * (1 + len(extents))
            for k in np.ndindex(*some.taps):
                padded[(slice(None), *some.tap(k))] += products[(*axes, *k)]
        inside, places = some.overlap(extents)
        target = x[(images, *inside)]
        target += padded[(slice(None), *places)].reshape(target.shape)
    return x


def backward_w(x: np.ndarray, y: np.ndarray, windows: Windows, groups: int) -> np.ndarray:
    """Return w[u, k, c] = the sum over images b and windows o of y[b, o, u] x[b, tap k of o, c]."""
    filters, channels = y.shape[-1] // groups, x.shape[-1] // groups
    w = np.zeros((groups * filters, *windows.taps, channels), np.result_type(x, y))
    total = w.reshape(groups, filters, prod(w.shape[1:]))
    for images, rows, some in _blocks(x, y, w, windows):
        seen = _covered(x[images], some, groups)
        part = _by_group(y[images, rows], groups)
        if _is_apart(w, groups):
            axes = tuple(range(part.ndim - 2))
            by_tap = total.reshape(groups, filters, *some.taps)
            for k in np.ndindex(*some.taps):
                sums = (part * seen[(slice(None), *some.tap(k))]).sum(axes)
                by_tap[(slice(None), slice(None), *k)] += sums
            continue
        columns = np.moveaxis(part, -2, 0).reshape(groups, -1, filters).swapaxes(1, 2)
        few = channels < _FEW
        total += columns @ (_by_taps(seen, some).swapaxes(1, 2) if few else _by_windows(seen, some))
    return w


def _is_apart(w: np.ndarray, groups: int) -> bool:
    """Return whether each channel is convolved by itself (depthwise), where products of matrices have one column."""
    return groups > 1 and w.shape[-1] == 1


def _blocks(
    x: np.ndarray, y: np.ndarray, w: np.ndarray, windows: Windows
) -> Iterator[tuple[slice, slice, Windows]]:
    """Give blocks of images and of windows along the first axis, and what is left of the windows."""
    if not min(x.size, w.size, y.size):
        return
    row = prod(windows.taps) * x.shape[-1] * prod(windows.size[1:])
    height = max(1, min(windows.size[0], _BLOCK // row))
    count = max(1, _BLOCK // (row * height)) if height == windows.size[0] else 1
    for image in range(0, len(x), count):
        for start in range(0, windows.size[0], height):
            stop = min(windows.size[0], start + height)
            yield slice(image, image + count), slice(start, stop), windows.of_rows(start, stop)


def _covered(x: np.ndarray, windows: Windows, groups: int) -> np.ndarray:
    """Return the elements (B, *spans, groups, C / groups) of images that belong to windows, with zeros around them."""
    inside, places = windows.overlap(x.shape[1:-1])
    shape = (len(x), *windows.spans, x.shape[-1])
    part = x[(slice(None), *inside)]
    if part.shape == shape:
        padded = part
    elif x.shape[-1] < groups * _FEW:  # runs of memory are rows of the image
        padded = np.moveaxis(np.zeros((len(x), x.shape[-1], *windows.spans), x.dtype), 1, -1)
    else:
        padded = np.zeros(shape, x.dtype)
    if padded is not part:
        padded[(slice(None), *places)] = part
    return _by_group(padded, groups)


def _by_group(x: np.ndarray, groups: int) -> np.ndarray:
    """Return an array whose last axis is split in groups."""
    return x.reshape(*x.shape[:-1], groups, x.shape[-1] // groups)


def _matrices(filters: np.ndarray) -> np.ndarray:
    """Return the filters of each group as a matrix (groups, filters, taps and channels)."""
    return filters.reshape(*filters.shape[:2], -1)


def _strided(seen: np.ndarray, windows: Windows) -> np.ndarray:
    """Return a view (B, *size, *taps, groups, C / groups)."""
    image, *steps = seen.strides[:-2]
    strides = [step * s for step, s in zip(steps, windows.strides, strict=True)]
    strides += [step * d for step, d in zip(steps, windows.dilation, strict=True)]
    shape = (len(seen), *windows.size, *windows.taps, *seen.shape[-2:])
    return np.lib.stride_tricks.as_strided(seen, shape, (image, *strides, *seen.strides[-2:]))


def _by_windows(seen: np.ndarray, windows: Windows) -> np.ndarray:
    """Return a matrix (groups, images and windows, taps and channels)."""
    view = np.moveaxis(_strided(seen, windows), -2, 0)
    count = len(seen) * prod(windows.size)
    return view.reshape(seen.shape[-2], count, prod(windows.taps) * seen.shape[-1])


def _by_taps(seen: np.ndarray, windows: Windows) -> np.ndarray:
    """Return a matrix (groups, taps and channels, images and windows)."""
    view = _strided(seen, windows)
    own = 1 + len(windows.size)  # axes of images and windows
    last = view.ndim - 1
    view = view.transpose(last - 1, *range(own, last - 1), last, *range(own))
    return view.reshape(seen.shape[-2], prod(windows.taps) * seen.shape[-1], len(seen) * prod(windows.size))
