# SPDX-License-Identifier: BSD-3-Clause
"""Counts: bincount and histograms. The length of bincount is guarded; edges and the sums of weights have derivatives.

Labels: counts have none.
"""

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from tracejit.array import apply, as_array, dlarray
from tracejit.aval import FLOAT64, INT64
from tracejit.errors import ArgumentError, ArgumentValueError
from tracejit.functions import elementwise, movement, reductions
from tracejit.functions.elementwise import where
from tracejit.functions.formats import in_dtype
from tracejit.functions.numpy_api import differences, in_python
from tracejit.functions.numpy_api.flattening import flattened
from tracejit.functions.numpy_api.ordering import check_monotonic, searchsorted
from tracejit.functions.numpy_api.ranges import linspace
from tracejit.functions.refusals import refuse
from tracejit.record import recorder
from tracejit.record.guards import Decides
from tracejit.util.arguments import check_room, check_sizes, integer
from tracejit.util.text import brief


def _summed(places: dlarray, weights: dlarray | None, size: int, dtype: np.dtype) -> dlarray:
    """Return the sums of weights, or how often each occurs, at places from 0 to size - 1."""
    start = as_array(np.zeros(size, dtype))
    if weights is None:
        weights = movement.broadcast_to(as_array(np.ones((), dtype)), places.shape)
    return apply("scatter_add", start, places, in_dtype(weights, dtype), axis=0)


def bincount(x: Any, weights: Any = None, minlength: Any = 0) -> dlarray:
    """Return how often each number from 0 on occurs, or the sum of the weights there."""
    array = as_array(x, "np.bincount")
    least = integer("np.bincount", "minlength", minlength)
    if array.ndim != 1 or array.dtype.kind not in "iub":
        error = ArgumentError if array.ndim == 1 else ArgumentValueError
        refuse("np.bincount", f"x is {recorder.describe(array)}, expected a vector of integers", error)
    if least < 0:
        refuse("np.bincount", f"minlength is {least}, expected 0 or more", ArgumentValueError)
    array = movement.relabel(array, None)
    check_room("np.bincount", check_sizes("np.bincount", "minlength", (max(least, 0),)), INT64)
    given = None if weights is None else movement.relabel(as_array(weights, "np.bincount", "weights"), None)
    if given is not None and given.shape != array.shape:
        refuse("np.bincount", f"weights have size {given.shape}, expected {array.shape}", ArgumentValueError)
    places = in_dtype(array, INT64)
    size = least
    if array.size:
        largest, lowest = reductions.max(places), reductions.min(places)
        if bool(recorder.need_value(lowest < 0, "np.bincount", Decides.TRUTH)):
            refuse("np.bincount", "x has negative elements; add an offset first", ArgumentValueError)
        if not least or not bool(recorder.need_value(largest < least, "np.bincount", Decides.TRUTH)):
            size = max(least, int(recorder.need_value(largest, "the length of np.bincount")) + 1)
    return _summed(places, given, size, INT64 if given is None or not array.size else FLOAT64)


def _outer_edges(name: str, a: dlarray, range: Any) -> tuple[Any, Any]:
    """Return the ends of the bins: those given, or the extrema."""
    if range is not None:
        first, last = range
        if not (recorder.is_array(first) or recorder.is_array(last)) and not first <= last:
            refuse(name, f"range is {range}, whose end lies before its start; swap them", ArgumentValueError)
    elif not a.size:
        first, last = 0, 1
    else:
        first, last = reductions.min(a), reductions.max(a)
        if a.dtype.kind == "f":
            known = elementwise.isfinite(first) & elementwise.isfinite(last)
            if not bool(recorder.need_value(known, name, Decides.TRUTH)):
                refuse(
                    name,
                    "a holds NaN or infinities, so that its range is not finite; pass range=",
                    ArgumentValueError,
                )
    if not recorder.is_array(first) and not recorder.is_array(last):
        return (first - 0.5, last + 0.5) if first == last else (first, last)
    same = elementwise.equal(first, last)
    if bool(recorder.need_value(same, name, Decides.TRUTH)):
        return first - 0.5, last + 0.5
    return first, last


def _estimated(x: np.ndarray, rule: str, range: Any) -> np.ndarray:
    return np.array(np.histogram_bin_edges(x, rule, range).size - 1)


def _number_of_bins(name: str, a: dlarray, rule: str, range: Any) -> int:
    """Return how many bins NumPy's rule of a name takes, such as "auto", which is a guard."""
    if rule not in ("auto", "doane", "fd", "rice", "scott", "sqrt", "stone", "sturges"):
        refuse(
            name,
            f"bins={brief(rule)} is no rule for the number of bins; pass 'auto', a number, or edges",
            ArgumentValueError,
        )
    number = in_python.call(name, _estimated, (a, rule, range), {})
    return int(recorder.need_value(number, name))


def _edges(name: str, a: dlarray, bins: Any, range: Any) -> tuple[dlarray, tuple[Any, Any] | None]:
    """Return the edges of bins, and the ends if all bins are as wide."""
    if isinstance(bins, str):
        bins = _number_of_bins(name, a, bins, range)
    given = as_array(bins, name, "bins")
    if given.ndim == 1:
        edges = movement.relabel(given, None)
        if edges.size < 2:
            refuse(name, f"bins has {edges.size} elements, expected two edges or more", ArgumentValueError)
        check_monotonic(name, "bins", bins, False)
        return edges, None
    count = integer(name, "bins", bins)
    if given.ndim or count < 1:
        refuse(
            name,
            f"bins is {brief(bins)}, expected a positive number or a vector of edges",
            ArgumentValueError,
        )
    first, last = _outer_edges(name, a, range)
    dtypes = [x if type(x) in (int, float) else as_array(x).dtype for x in (first, last)]
    dtype = np.result_type(*(d(0) if isinstance(d, type) else d for d in dtypes), a.dtype)
    dtype = dtype if dtype.kind == "f" else np.result_type(dtype, float)
    return linspace(first, last, count + 1, dtype=dtype), (first, last)


def histogram_bin_edges(a: Any, bins: Any = 10, range: Any = None, weights: Any = None) -> dlarray:
    """Return the edges that np.histogram would use."""
    return _edges("np.histogram_bin_edges", flattened("np.histogram_bin_edges", a), bins, range)[0]


def histogram(
    a: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None
) -> tuple[dlarray, dlarray]:
    """Return how many elements lie in each bin, or the sums of their weights, and the edges."""
    array = flattened("np.histogram", a)
    given = None if weights is None else flattened("np.histogram", weights)
    if given is not None and given.size != array.size:
        refuse(
            "np.histogram",
            f"weights have {given.size} elements, expected {array.size}, as a has",
            ArgumentValueError,
        )
    if array.dtype == bool:
        array = in_dtype(array, np.dtype(np.uint8))
    edges, _ = _edges("np.histogram", array, bins, range)
    counts = _counted([array], [edges], given, INT64 if given is None else given.dtype)
    if density:
        widths = in_dtype(differences.diff(edges), FLOAT64)
        return counts / widths / reductions.sum(counts), edges
    return counts, edges


def _counted(
    columns: list[dlarray], edges: list[dlarray], weights: dlarray | None, dtype: np.dtype
) -> dlarray:
    """Return the histogram of points, given by columns, in the boxes of some edges."""
    sizes = [e.size - 1 for e in edges]
    inside: Any = True
    place: Any = 0
    for column, e, size in zip(columns, edges, sizes, strict=True):
        found = searchsorted(e, column, "right") - 1
        found = where(column == e[-1], size - 1, found)
        inside = (found >= 0) & (found < size) & inside
        place = place * size + found
    # What lies in no box is counted behind the last one, which is cut off.
    place = where(inside, place, prod(sizes))
    total = _summed(place, weights, prod(sizes) + 1, dtype)[:-1]
    return movement.reshape(total, tuple(sizes))


def _number_of(bins: Any) -> int | None:
    """Return how many entries bins have, in an array as in a list; None of a number of bins for each axis."""
    if isinstance(bins, (np.ndarray, dlarray)):
        return bins.shape[0] if bins.ndim else None
    return len(bins) if isinstance(bins, Sequence) else None


def histogramdd(
    sample: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None
) -> tuple[dlarray, tuple[dlarray, ...]]:
    """Return how many points lie in each box of a grid, and the edges along each axis."""
    name = "np.histogramdd"
    if recorder.is_array(sample) or isinstance(sample, np.ndarray):
        points = movement.relabel(as_array(sample, name), None)
        points = points if points.ndim == 2 else movement.transpose(movement.atleast_2d(points))
        columns = [points[:, i] for i in np.arange(points.shape[1]).tolist()]
    else:
        columns = [flattened(name, column) for column in sample]
        dtype = np.result_type(*(column.dtype for column in columns))
        columns = [in_dtype(column, dtype) for column in columns]
    d = len(columns)
    listed = list(bins) if _number_of(bins) is not None else [bins] * d
    if any(isinstance(entry, str) for entry in listed):
        refuse(
            name, f"bins={brief(bins)} is a rule, which histograms of one axis take; pass numbers, or edges"
        )
    ranges = [None] * d if range is None else list(range)
    if len(listed) != d or len(ranges) != d:
        refuse(
            name,
            f"bins and range have {len(listed)} and {len(ranges)} entries, expected {d}, one for each axis",
            ArgumentValueError,
        )
    edges = []
    for column, n, ends in zip(columns, listed, ranges, strict=True):
        edge, uniform = _edges(name, column, n, ends)
        edges.append(linspace(*uniform, edge.size) if uniform else edge)
    given = None if weights is None else flattened(name, weights)
    hist = _counted(columns, edges, given, FLOAT64)
    if density:
        total = reductions.sum(hist)
        for axis, edge in enumerate(edges):
            shape = tuple(-1 if i == axis else 1 for i in np.arange(d).tolist())
            hist = hist / movement.reshape(differences.diff(edge), shape)
        hist = hist / total
    return hist, tuple(edges)


def histogram2d(
    x: Any, y: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None
) -> tuple[dlarray, dlarray, dlarray]:
    """Return how many points (x, y) lie in each box of a grid, and the edges along both axes."""
    columns = [flattened("np.histogram2d", column) for column in (x, y)]
    if columns[0].size != columns[1].size:
        refuse(
            "np.histogram2d",
            f"x and y have {columns[0].size} and {columns[1].size} elements, expected the same number",
            ArgumentValueError,
        )
    listed = bins if _number_of(bins) in (None, 1, 2) else [bins, bins]
    hist, edges = histogramdd(columns, listed, range, density, weights)
    return hist, edges[0], edges[1]


FUNCTIONS: dict[Callable[..., Any], Callable[..., Any]] = {
    np.bincount: bincount,
    np.histogram: histogram,
    np.histogram_bin_edges: histogram_bin_edges,
    np.histogram2d: histogram2d,
    np.histogramdd: histogramdd,
}
