# SPDX-License-Identifier: BSD-3-Clause
"""Interpolation of values on a grid, along any number of axes."""

from collections.abc import Sequence
from itertools import product
from math import prod
from typing import Any

import numpy as np

from tracejit.array import apply, as_array, dlarray
from tracejit.errors import ArgumentError, DimsError
from tracejit.functions import elementwise, joining, movement, reductions
from tracejit.functions.elementwise import where
from tracejit.functions.formats import describe_sizes, floating
from tracejit.interpolate.piecewise import knots, numbers
from tracejit.record.demands import demand
from tracejit.util.arguments import flag, is_option
from tracejit.util.text import brief


class RegularGridInterpolator:
    """The function between values on a grid, as ``scipy.interpolate.RegularGridInterpolator``.

    Args:
        points: the places of the grid along each axis, vectors that increase or decrease.
        values: the values at the grid, (n_1, ..., n_d, ...).
        method: "linear" (multilinear in each cell) or "nearest".
        bounds_error: whether a point outside of the grid is an error, in replays as well.
        fill_value: the result outside of the grid; None for that of the nearest cell, continued.

    Raises:
        DimsError: if the sizes do not fit.
        ArgumentError: if places neither increase nor decrease, or for another method.

    There are derivatives by the points, the values, and the places of the grid; where cells meet, they are one-sided.

    Examples:
        >>> import tracejit as tj
        >>> plane = tj.interpolate.RegularGridInterpolator(([0, 1], [0, 2]), [[0.0, 2.0], [1.0, 3.0]])
        >>> plane([[0.5, 1.0], [1.0, 0.5]]).tolist()
        [1.5, 1.5]
    """

    def __init__(
        self,
        points: Any,
        values: Any,
        method: str = "linear",
        bounds_error: bool = True,
        fill_value: Any = np.nan,
    ) -> None:
        name = "RegularGridInterpolator"
        if not isinstance(points, (tuple, list)) or not points:
            raise ArgumentError(
                f"{name}: points must be a tuple of vectors, one for each axis, not {brief(points)}."
            )
        turned = [_increasing(name, f"points[{i}]", x) for i, x in enumerate(points)]
        self.grid, self.signs = tuple([x for x, _ in turned]), tuple([sign for _, sign in turned])
        self.values = movement.relabel(numbers(name, values, "values"), None)
        sizes = tuple([x.size for x in self.grid])
        if self.values.shape[: len(sizes)] != sizes:
            raise DimsError(
                f"{name}: values have size {describe_sizes(self.values)}, expected {sizes} first, the sizes of points."
            )
        self.method = _method(name, method)
        self.bounds_error = flag(name, "bounds_error", bounds_error)
        self.fill_value = fill_value

    def __call__(self, xi: Any, method: Any = None) -> dlarray:
        """Return the values at points.

        Args:
            xi: points (..., d), or a tuple of d arrays that broadcast.
            method: instead of that of the interpolator.

        Returns:
            dlarray without labels, of the sizes of the points and those of a value.

        Raises:
            DimsError: if points have another number of coordinates.
            ArgumentError: for a point outside of the grid, unless that is allowed, or another method.
        """
        name = "RegularGridInterpolator"
        given, shape = self._coordinates(name, xi)
        coordinates = [x * sign for x, sign in zip(given, self.signs, strict=True)]
        way = self.method if method is None else _method(name, method)
        outside = reductions.any(
            joining.stack([(x < g[0]) | (x > g[-1]) for x, g in zip(coordinates, self.grid, strict=True)], 0),
            0,
        )
        unknown = reductions.any(joining.stack([elementwise.isnan(x) for x in coordinates], 0), 0)
        if self.bounds_error:

            def fail() -> None:
                raise ArgumentError(
                    f"{name}: a point lies outside of the grid, or is NaN; pass bounds_error=False, and a fill_value."
                )

            demand(~reductions.any(outside | unknown), name, fail)
        cells, shares = [], []
        for x, g in zip(coordinates, self.grid, strict=True):
            cell = elementwise.clip(apply("searchsorted", g, x, right=False) - 1, 0, g.size - 2)
            low, high = apply("take", g, cell, axis=0), apply("take", g, cell + 1, axis=0)
            cells.append(cell)
            shares.append((x - low) / (high - low))
        found = self._between(cells, shares) if way == "linear" else self._nearest(cells, shares)
        beside = (1,) * (found.ndim - 1)
        if not self.bounds_error and self.fill_value is not None:
            other = as_array(self.fill_value, name, "fill_value")
            found = where(movement.reshape(outside, (-1, *beside)), other.astype(found.dtype), found)
        if not self.bounds_error:
            found = where(movement.reshape(unknown, (-1, *beside)), found.dtype.type(np.nan), found)
        return movement.reshape(found, (*shape, *found.shape[1:]))

    def _coordinates(self, name: str, xi: Any) -> tuple[list[dlarray], tuple[int, ...]]:
        """Return a vector for each axis of the grid, and the sizes of the points."""
        d = len(self.grid)
        if isinstance(xi, tuple):
            parts = [movement.relabel(floating(name, x), None) for x in xi]
            count = len(parts)
            shape = np.broadcast_shapes(*[x.shape for x in parts])
            parts = [movement.ravel(movement.broadcast_to(x, shape)) for x in parts]
        else:
            array = movement.relabel(floating(name, xi), None)
            if d == 1 and array.ndim < 2:
                array = movement.expand_dims(array, -1)
            if array.ndim < 2 and d > 1:  # one point, in a row, as in SciPy
                array = movement.reshape(array, (1, -1))
            count, shape = array.shape[-1], array.shape[:-1]
            parts = [movement.ravel(array[..., i]) for i in range(count)]
        if count != d:
            raise DimsError(
                f"{name}: points have {count} coordinates, expected {d}, one for each axis of the grid."
            )
        return parts, shape

    def _at(self, places: Sequence[Any]) -> dlarray:
        """Return the values at places of the grid."""
        sizes, flat = [x.size for x in self.grid], None
        for place, size in zip(places, sizes, strict=True):
            flat = place if flat is None else flat * size + place
        table = movement.reshape(self.values, (prod(sizes), *self.values.shape[len(sizes) :]))
        return apply("take", table, flat, axis=0)

    def _between(self, cells: Sequence[dlarray], shares: Sequence[dlarray]) -> dlarray:
        beside = (1,) * (self.values.ndim - len(cells))
        total: Any = None
        for corner in product((0, 1), repeat=len(cells)):
            weight: Any = None
            for upper, share in zip(corner, shares, strict=True):
                part = share if upper else 1 - share
                weight = part if weight is None else weight * part
            term = movement.reshape(weight, (-1, *beside)) * self._at(
                [c + u for c, u in zip(cells, corner, strict=True)]
            )
            total = term if total is None else total + term
        return total  # type: ignore[no-any-return]

    def _nearest(self, cells: Sequence[dlarray], shares: Sequence[dlarray]) -> dlarray:
        # A middle belongs to the smaller place, which comes last where places decrease.
        places = [
            where((share < 0.5) | ((share == 0.5) & (sign > 0)), cell, cell + 1)
            for cell, share, sign in zip(cells, shares, self.signs, strict=True)
        ]
        return self._at(places)


def interpn(
    points: Any,
    values: Any,
    xi: Any,
    method: str = "linear",
    bounds_error: bool = True,
    fill_value: Any = np.nan,
) -> dlarray:
    """Return the function between values on a grid at points: ``RegularGridInterpolator(points, values, ...)(xi)``.

    Args:
        points: the places of the grid along each axis.
        values: the values at the grid.
        xi: points (..., d), or a tuple of d arrays.
        method: "linear" or "nearest".
        bounds_error: whether a point outside of the grid is an error.
        fill_value: the result outside; None for that of the nearest cell, continued.

    Returns:
        dlarray without labels.

    Raises:
        DimsError: if the sizes do not fit.
        ArgumentError: as `RegularGridInterpolator`.

    Examples:
        >>> import tracejit as tj
        >>> tj.interpolate.interpn(([0.0, 1.0],), [0.0, 10.0], [[0.25], [0.5]]).tolist()
        [2.5, 5.0]
    """
    function = RegularGridInterpolator(points, values, method, bounds_error, fill_value)
    is_point = (
        isinstance(xi, tuple) and len(xi) == len(function.grid) > 1 and not any(as_array(x).ndim for x in xi)
    )
    return function(joining.stack([as_array(x) for x in xi])) if is_point else function(xi)


def _increasing(function: str, argument: str, x: Any) -> tuple[dlarray, dlarray]:
    """Return places of a grid, and their sign: -1 for places that decrease, which then are negative places."""
    array = as_array(x, function, argument)
    if array.ndim != 1 or array.size < 2:
        return knots(function, argument, array), array
    array = movement.relabel(floating(function, array), None)
    one = array.dtype.type(1)
    sign = where(array[-1] < array[0], -one, one)
    return knots(function, argument, array * sign), sign


def _method(function: str, method: Any) -> str:
    if not is_option(method, ("linear", "nearest")):
        raise ArgumentError(f"{function}: method must be 'linear' or 'nearest', not {brief(method)}.")
    return str(method)
