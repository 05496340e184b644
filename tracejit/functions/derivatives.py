# SPDX-License-Identifier: BSD-3-Clause
"""Derivatives of traced arrays, beside dlgradient: along directions, and by each coordinate of an axis."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from tracejit import tree
from tracejit.array import dlarray
from tracejit.autodiff.many import many_gradients, many_tangents
from tracejit.aval import describe_shape
from tracejit.errors import ArgumentError, DimsError
from tracejit.functions.axes import normalize_axis
from tracejit.functions.variables import Variables, along, as_computed, recording, target, value_of
from tracejit.ir import Builder, Value
from tracejit.record import monitor
from tracejit.record import recorder as recorders
from tracejit.util.arguments import MOST_AXES


def dljvp(y: Any, x: Any, v: Any) -> Any:
    """Return the derivative of `y` along the direction `v` of `x`: the product of a Jacobian and a vector.

    The derivative is taken in forward mode: it is recorded as more operations, which can be differentiated again.

    Args:
        y: traced floating-point or complex dlarray of any size, or a container of such, made in the function that
            dlfeval evaluates. For ``dlgradient(loss, x)`` the result is the product of a Hessian and a vector.
        x: floating-point or complex dlarray or a container of such, as for dlgradient.
        v: the direction: for each array of `x` one of its size, in the same containers.

    Returns:
        For each array of `y` one of its size, format and dtype, in the same containers; zeros where `y` does not depend
        on `x`.

    Raises:
        GradientError: outside dlfeval, if `y` is not made of traced floating-point arrays, if an x has no derivative,
            or if an op on the way has none in forward mode, as lstm.
        ArgumentError: if `x` is not made of dlarrays, or `v` has other containers than `x`.
        DimsError: if an array of `v` has not the size of that of `x`.

    Examples:
        >>> import tracejit as tj
        >>> def slope(x, v):
        ...     return tj.dljvp(x**2, x, v)
        >>> tj.dlfeval(slope, tj.dlarray([1.0, 2.0]), tj.dlarray([1.0, 0.5])).tolist()
        [2.0, 2.0]
    """
    recorder = recording("dljvp")
    variables = Variables("dljvp", x, recorder)
    leaves, treedef = tree.flatten(y, function="dljvp")
    leaves = [*map(as_computed, leaves)]
    places = tree.paths(treedef, "y")
    targets = [
        target("dljvp", leaf, recorder, place, is_scalar=False)
        for leaf, place in zip(leaves, places, strict=True)
    ]
    directions = along("dljvp", "v", v, variables.leaves, variables.treedef, "x")
    found = variables.tangents(targets, directions)
    return tree.unflatten(
        treedef,
        [dlarray._wrap(t.data, leaf.format, t) for leaf, t in zip(leaves, found, strict=True)],
    )


def dljacobian(u: Any, x: Any, dim: Any, *, enable_higher_derivatives: bool = True) -> dlarray:
    """Return the derivatives of each slice of `u` along the axis `dim` by `x`, for all observations at once.

    Slice i is summed over the other axes of `u`, so that the derivative of an observation is its own if each
    observation of `u` depends on that of `x` only. The slices are differentiated together: the number of operations
    does not depend on how many there are.

    Args:
        u: traced floating-point dlarray, such as (channels, observations), made in the function that dlfeval evaluates.
        x: floating-point dlarray, as for dlgradient.
        dim: axis of `u`, by number or by label.
        enable_higher_derivatives: accepted for compatibility: derivatives can always be differentiated again.

    Returns:
        dlarray of size (size of `u` along `dim`, \\*size of `x`), the first axis labelled U if `x` has labels; of the
        size and format of `x` if `u` has one slice only. Zeros where `u` does not depend on `x`.

    Raises:
        GradientError: outside dlfeval, or if `u` or `x` has no derivative.
        ArgumentError: if `x` is not one dlarray, or `dim` is no axis.
        DimsError: if `u` has no axis `dim`.

    Examples:
        >>> import tracejit as tj
        >>> def jacobian(x):  # of two channels by three observations
        ...     u = tj.stack([x[0] * x[1], x[0] ** 2])
        ...     return tj.dljacobian(u, x, 0)
        >>> tj.dlfeval(jacobian, tj.dlarray([[1.0, 2.0], [3.0, 4.0]])).tolist()
        [[[3.0, 4.0], [1.0, 2.0]], [[2.0, 4.0], [0.0, 0.0]]]
    """
    of = _Pair("dljacobian", u, x)
    axis = normalize_axis("dljacobian", u, dim)
    count = u.shape[axis]
    if count == 1:
        (gradient,) = of.variables.gradients([of.value], [of.constant(np.ones(of.value.shape, u.dtype))])
        return gradient
    cts = of.units(of.value, axis)
    with monitor.paused():
        (found,) = many_gradients(of.builder, [of.value], [cts], of.variables.values, "dljacobian")
    return of.wrapped(found, (count, *of.x.shape), of.x.format and "U" + of.x.format)


def dldivergence(u: Any, x: Any, dim: Any, *, enable_higher_derivatives: bool = True) -> dlarray:
    """Return the divergence of the vectors `u` by the vectors `x` along the axis `dim`, for all observations at once.

    Args:
        u: traced floating-point dlarray of the size of `x`; each observation of it depends on that of `x` only.
        x: floating-point dlarray, as for dlgradient: vectors along `dim`, other axes count observations.
        dim: axis of both, by number or by label.
        enable_higher_derivatives: accepted for compatibility: derivatives can always be differentiated again.

    Returns:
        dlarray of the size and format of `x` with size 1 along `dim`: the sum of the derivatives of u_i by x_i.

    Raises:
        GradientError: outside dlfeval, or if `u` or `x` has no derivative, or an op on the way has none in forward
            mode.
        ArgumentError: if `x` is not one dlarray, or `dim` is no axis.
        DimsError: if `u` has no axis `dim`, or the sizes differ.

    Examples:
        >>> import tracejit as tj
        >>> def divergence(x):
        ...     return tj.dldivergence(x**2, x, 0)
        >>> tj.dlfeval(divergence, tj.dlarray([[1.0, 2.0], [3.0, 4.0]])).tolist()
        [[8.0, 12.0]]
    """
    of = _Pair("dldivergence", u, x)
    axis = normalize_axis("dldivergence", u, dim)
    if u.shape != of.x.shape:
        raise DimsError(
            f"dldivergence: u has size {describe_shape(u.shape, u.format)} and x "
            f"{describe_shape(of.x.shape, of.x.format)}; the sizes must be equal, with vectors along axis {axis}."
        )
    directions = of.units(of.x_value, axis)
    with monitor.paused():
        (found,) = many_tangents(of.builder, [of.value], [of.x_value], [directions], "dldivergence")
        if found is not None:
            b = of.builder
            found = b.sum(b.mul(found, directions), axes=(0, axis + 1), keepdims=False)
            found = b.reshape(found, shape=_single(u.shape, axis))
    return of.wrapped(found, _single(u.shape, axis), u.format)


def dllaplacian(u: Any, x: Any, dim: Any, *, enable_higher_derivatives: bool = True) -> dlarray:
    """Return the Laplacian of `u` by the vectors `x` along the axis `dim`, for all observations at once.

    It is computed in one forward pass, in which each step carries one tangent for each coordinate and a single sum of
    second derivatives, so that the number of operations does not depend on how many coordinates there are.

    Args:
        u: traced floating-point dlarray; its axes except `dim` have the sizes of those of `x`, and each observation
            of it depends on that of `x` only. It may have several channels along `dim`.
        x: floating-point dlarray, as for dlgradient: vectors along `dim`, other axes count observations.
        dim: axis of both, by number or by label.
        enable_higher_derivatives: accepted for compatibility: derivatives can always be differentiated again.

    Returns:
        dlarray of the size and format of `u`: for each channel the sum of the second derivatives by each coordinate.

    Raises:
        GradientError: outside dlfeval, or if `u` or `x` has no derivative, or an op on the way has none in forward
            mode.
        ArgumentError: if `x` is not one dlarray, or `dim` is no axis.
        DimsError: if `u` or `x` has no axis `dim`, or their other axes differ.

    Examples:
        >>> import tracejit as tj
        >>> def laplacian(x):
        ...     return tj.dllaplacian(x[:1] ** 3 * x[1:], x, 0)
        >>> tj.dlfeval(laplacian, tj.dlarray([[1.0, 2.0], [3.0, 4.0]])).tolist()
        [[18.0, 48.0]]
    """
    from tracejit.autodiff.laplacian import laplacian

    of = _Pair("dllaplacian", u, x)
    axis = normalize_axis("dllaplacian", of.x, dim)
    if _single(u.shape, axis) != _single(of.x.shape, axis):
        raise DimsError(
            f"dllaplacian: u has size {describe_shape(u.shape, u.format)} and x "
            f"{describe_shape(of.x.shape, of.x.format)}; all sizes but that along axis {axis} must be equal. Keep the "
            "axis of channels (u[:1] for u[0])."
        )
    directions = of.units(of.x_value, axis)
    with monitor.paused():
        found = laplacian(of.builder, of.value, of.x_value, directions, "dllaplacian")
    return of.wrapped(found, u.shape, u.format)


def dlhessian(y: Any, x: Any) -> Any:
    """Return the matrix of second derivatives of the scalar `y` by the array `x`, or by the arrays of a container.

    It is the derivative of the gradient in forward mode, along all coordinates at once.

    Args:
        y: traced floating-point scalar (one element), made in the function that dlfeval evaluates.
        x: floating-point dlarray or a container of such, as for dlgradient. For a product with a vector, which takes
            less memory, use dljvp of dlgradient.

    Returns:
        unformatted dlarray of size (\\*size of `x`, \\*size of `x`). If `x` is a container, such a container of such
        containers: ``h["a"]["b"]`` has the derivatives of the gradient by a, by b.

    Raises:
        GradientError: outside dlfeval, if `y` or `x` has no derivative, or if an op on the way has none in forward
            mode.
        ArgumentError: if `x` is not made of dlarrays.

    Examples:
        >>> import tracejit as tj
        >>> def curvature(x):
        ...     return tj.dlhessian(x[0] ** 2 * x[1], x)
        >>> tj.dlfeval(curvature, tj.dlarray([1.0, 2.0])).tolist()
        [[4.0, 2.0], [2.0, 0.0]]
    """
    recorder = recording("dlhessian")
    value = target("dlhessian", y, recorder, "y", is_scalar=True)
    variables, b = Variables("dlhessian", x, recorder), recorder.builder
    wrt, treedef = variables.values, variables.treedef
    check_rank("dlhessian", wrt, wrt)
    slopes = [
        value_of(slope)
        for slope in variables.gradients([value], [b.constant(np.ones(value.shape, value.dtype))])
    ]

    def block(i: int, j: int) -> dlarray:
        """Return the derivatives by arrays i and j: the directions are rows, and the matrix is symmetric."""
        shape, rows = (*wrt[i].shape, *wrt[j].shape), rows_of(b, found[j], wrt, i)
        return as_result(
            b.constant(np.zeros(shape, wrt[j].dtype)) if rows is None else b.reshape(rows, shape=shape)
        )

    with monitor.paused():
        found = (
            many_tangents(b, slopes, wrt, units(b, wrt), "dlhessian") if elements(wrt) else [None] * len(wrt)
        )
        blocks = [[block(i, j) for j in range(len(wrt))] for i in range(len(wrt))]
    return tree.unflatten(treedef, [tree.unflatten(treedef, row) for row in blocks])


class _Pair:
    """The target of a derivative by one array, and that array."""

    def __init__(self, function: str, u: Any, x: Any) -> None:
        if not recorders.is_array(x):
            raise ArgumentError(
                f"{function}: x is a {type(x).__name__}, expected one traced dlarray; join several arrays before they "
                "are used (np.concatenate), or call dlgradient, which takes containers."
            )
        recorder = recording(function)
        self.builder: Builder = recorder.builder
        self.value = target(function, u, recorder, "u", is_scalar=False)
        self.variables = Variables(function, x, recorder)
        self.x = x
        self.x_value = self.variables.values[0]
        self.builder.location = recorders.user_location()

    def constant(self, data: np.ndarray) -> Value:
        """Return a constant of the graph."""
        return self.builder.constant(data)

    def units(self, like: Value, axis: int) -> Value:
        """Return one array for each place along an axis, which is 1 there and 0 elsewhere, along an axis in front."""
        n = like.shape[axis]
        shape = (n, *[n if i == axis else 1 for i in range(like.ndim)])
        unit = self.constant(np.eye(n, dtype=like.dtype).reshape(shape))
        found: Value = self.builder.broadcast_to(unit, shape=(n, *like.shape))
        return found

    def wrapped(self, found: Value | None, shape: tuple[int, ...], format: str | None) -> dlarray:
        """Return a result; zeros if there is none."""
        value = self.constant(np.zeros(shape, self.x.dtype)) if found is None else found
        return dlarray._wrap(value.data, format or None, value)


def check_rank(function: str, values: Sequence[Value], wrt: Sequence[Value]) -> None:
    """Raise a DimsError if a derivative of one of some values by another one would have more axes than an ndarray."""
    most = max([value.ndim for value in values], default=0) + max([value.ndim for value in wrt], default=0)
    if most > MOST_AXES:
        raise DimsError(f"{function}: the result would have {most} axes; flatten x first (x.reshape(-1)).")


def elements(values: Sequence[Value]) -> int:
    """Return how many elements values have together."""
    return sum([value.aval.size for value in values])


def units(b: Builder, values: Sequence[Value]) -> list[Value]:
    """Return, for each value, what it has in each unit vector of the space of all their elements, one in each row."""
    count, start, found = elements(values), 0, []
    for value in values:
        size = value.aval.size
        rows = np.zeros((count, size), value.dtype)
        rows[start : start + size] = np.eye(size)
        found.append(b.constant(rows.reshape(count, *value.shape)))
        start += size
    return found


def rows_of(b: Builder, found: Value | None, values: Sequence[Value], number: int) -> Value | None:
    """Return those rows of what was found along the unit vectors of values that belong to one of the values."""
    if found is None or len(values) == 1:
        return found
    start, size = elements(values[:number]), values[number].aval.size
    width = found.aval.size // found.shape[0]
    matrix = b.reshape(found, shape=(found.shape[0], width))
    return b.slice(matrix, starts=(start, 0), stops=(start + size, width), steps=(1, 1))  # type: ignore[no-any-return]


def as_result(value: Value) -> dlarray:
    """Return a value as a dlarray without labels."""
    return dlarray._wrap(value.data, None, value)


def _single(shape: tuple[int, ...], axis: int) -> tuple[int, ...]:
    """Return a shape with size 1 along an axis."""
    return (*shape[:axis], 1, *shape[axis + 1 :])
