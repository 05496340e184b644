# SPDX-License-Identifier: BSD-3-Clause
"""Derivatives of functions: jvp, vjp, hvp, jacobian and hessian evaluate a function and differentiate it."""

from collections.abc import Callable
from typing import Any

import numpy as np

from tracejit import tree
from tracejit.array import as_array, dlarray, wrap
from tracejit.autodiff.many import many_gradients, many_tangents
from tracejit.errors import ArgumentError
from tracejit.functions.derivatives import as_result, check_rank, dlhessian, dljvp, elements, rows_of, units
from tracejit.functions.evaluate import dlfeval, dlgradient
from tracejit.functions.variables import Variables, along, as_computed, recording, target
from tracejit.record import monitor
from tracejit.util.arguments import callable_, is_option, is_real
from tracejit.util.text import brief


def jvp(fun: Callable[..., Any], primals: Any, tangents: Any) -> tuple[Any, Any]:
    """Return ``fun(*primals)`` and its derivative along `tangents`: the product of its Jacobian and a vector.

    Args:
        fun: function of floating-point arrays, or containers of them, that returns such.
        primals: tuple of its arguments.
        tangents: tuple of directions: for each array of `primals` one of its size, in the same containers.

    Returns:
        What `fun` returns, and the derivative in the same containers. Inside dlfeval, or an accelerated function, both
        stay on its trace, and can be differentiated again.

    Raises:
        ArgumentError: if `fun` is no function, `primals` no tuple, or `tangents` has other containers.
        DimsError: if a tangent has not the size of its array.
        GradientError: if an argument or a result has no derivative, or an op has none in forward mode, as lstm.

    Examples:
        >>> import tracejit as tj
        >>> y, slope = tj.jvp(lambda x: x**2, ([1.0, 2.0],), ([1.0, 0.5],))
        >>> y.tolist(), slope.tolist()
        ([1.0, 4.0], [2.0, 2.0])
    """
    callable_("jvp", "fun", fun)
    xs, vs = _arguments("jvp", "primals", primals), _arguments("jvp", "tangents", tangents)

    def evaluated(xs: Any, vs: Any) -> Any:
        before = _as_given(xs)
        y = fun(*xs)
        return y, dljvp(y, before, vs)

    return dlfeval(evaluated, xs, vs)  # type: ignore[no-any-return]


def vjp(fun: Callable[..., Any], primals: Any, cotangents: Any) -> tuple[Any, tuple[Any, ...]]:
    """Return ``fun(*primals)`` and the product of `cotangents` with its Jacobian.

    Args:
        fun: function of floating-point arrays, or containers of them, that returns such.
        primals: tuple of its arguments.
        cotangents: for each array that `fun` returns one of its size, in the same containers.

    Returns:
        What `fun` returns, and a tuple of gradients, one for each of `primals` in the same containers. Inside dlfeval,
        or an accelerated function, both stay on its trace.

    Raises:
        ArgumentError: if `fun` is no function, `primals` no tuple, or `cotangents` has other containers.
        DimsError: if a cotangent has not the size of its array.
        GradientError: if an argument or a result has no derivative.

    Examples:
        >>> import tracejit as tj
        >>> y, (gradient,) = tj.vjp(lambda x: x**2, ([1.0, 2.0],), [1.0, 10.0])
        >>> y.tolist(), gradient.tolist()
        ([1.0, 4.0], [2.0, 40.0])
    """
    callable_("vjp", "fun", fun)
    xs = _arguments("vjp", "primals", primals)

    def evaluated(xs: Any, cts: Any) -> Any:
        before = _as_given(xs)
        y = fun(*xs)
        recorder = recording("vjp")
        leaves, treedef = tree.flatten(y, function="vjp")
        leaves = [*map(as_computed, leaves)]
        places = tree.paths(treedef, "fun(...)")
        targets = [
            target("vjp", leaf, recorder, place, is_scalar=False)
            for leaf, place in zip(leaves, places, strict=True)
        ]
        variables = Variables("vjp", before, recorder, "primals")
        seeds = along("vjp", "cotangents", cts, leaves, treedef, "fun(...)")
        return y, tree.unflatten(variables.treedef, variables.gradients(targets, seeds))

    return dlfeval(evaluated, xs, _arrays("vjp", cotangents))  # type: ignore[no-any-return]


def hvp(fun: Callable[..., Any], x: Any, v: Any, *args: Any) -> Any:
    """Return the product of the Hessian of a function with a vector, without the Hessian.

    It is the derivative of the gradient in forward mode, which takes about as long as three gradients.

    Args:
        fun: function of `x` and `args` that returns a scalar dlarray.
        x: floating-point array, or a container of such.
        v: the vector: for each array of `x` one of its size, in the same containers.
        args: further arguments of `fun`, not differentiated by.

    Returns:
        dlarrays of the sizes of `x`, in the same containers.

    Raises:
        ArgumentError: if `fun` is no function, or `v` has other containers than `x`.
        DimsError: if an array of `v` has not the size of that of `x`.
        GradientError: if `x` or the result has no derivative, or an op has none in forward mode, as lstm.

    Examples:
        >>> import tracejit as tj
        >>> tj.hvp(lambda x: (x**3).sum(), [1.0, 2.0], [1.0, 10.0]).tolist()
        [6.0, 120.0]
    """
    callable_("hvp", "fun", fun)

    def evaluated(x: Any, v: Any, *args: Any) -> Any:
        before = _as_given(x)
        return dljvp(dlgradient(fun(x, *args), before), before, v)

    return dlfeval(evaluated, _arrays("hvp", x), _arrays("hvp", v), *args)


def jacobian(fun: Callable[..., Any], x: Any, *args: Any, mode: str = "auto") -> Any:
    """Return the Jacobian of a function by its first argument.

    All columns (forward mode) or all rows (reverse mode) are computed at once, so that the number of operations does
    not depend on how many there are.

    Args:
        fun: function of `x` and `args` that returns a floating-point dlarray, or a container of such.
        x: floating-point array, or a container of such: a dict of parameters, a network, ...
        args: further arguments of `fun`, not differentiated by.
        mode: "forward", "reverse", or "auto": forward if `x` has no more elements than the result.

    Returns:
        unformatted dlarray of size (\\*size of the result, \\*size of `x`). If `x` is a container, one for each of its
        arrays in such a container; if the result is one, such a container of these.

    Raises:
        ArgumentError: if `fun` is no function, `x` is not made of arrays, or `mode` is none of these.
        GradientError: if `x` or the result has no derivative, or an op has none in forward mode, as lstm.

    Examples:
        >>> import tracejit as tj
        >>> tj.jacobian(lambda x: x[0] * x, [1.0, 2.0]).tolist()
        [[2.0, 0.0], [2.0, 1.0]]
        >>> by = tj.jacobian(lambda p: p["a"] * p["b"], {"a": 2.0, "b": [3.0, 5.0]})
        >>> by["a"].tolist(), by["b"].tolist()
        ([3.0, 5.0], [[2.0, 0.0], [0.0, 2.0]])
    """
    callable_("jacobian", "fun", fun)
    if not is_option(mode, ("auto", "forward", "reverse")):
        raise ArgumentError(f'jacobian: mode must be "auto", "forward" or "reverse", not {brief(mode)}.')

    def evaluated(x: Any, *args: Any) -> Any:
        before = _as_given(x)
        return _jacobian(fun(x, *args), before, mode)

    return dlfeval(evaluated, _variables("jacobian", x), *args)


def _jacobian(y: Any, x: Any, mode: str) -> Any:
    recorder = recording("jacobian")
    leaves, treedef = tree.flatten(y, function="jacobian")
    places = tree.paths(treedef, "fun(x)")
    values = [
        target("jacobian", leaf, recorder, place, is_scalar=False)
        for leaf, place in zip(leaves, places, strict=True)
    ]
    variables, b = Variables("jacobian", x, recorder), recorder.builder
    check_rank("jacobian", values, variables.values)
    m, n = elements(values), elements(variables.values)
    is_forward = mode == "forward" or (mode == "auto" and n <= m)

    def block(i: int, j: int) -> dlarray:
        """Return the derivatives of result i by array j."""
        shape = (*values[i].shape, *variables.values[j].shape)
        if is_forward:
            rows = rows_of(b, found[i], variables.values, j)
            if rows is not None:
                columns = b.reshape(rows, shape=(variables.values[j].aval.size, values[i].aval.size))
                rows = b.transpose(columns, axes=(1, 0))
        else:
            rows = rows_of(b, found[j], values, i)
        if rows is None:
            return as_result(b.constant(np.zeros(shape, variables.values[j].dtype)))
        return as_result(b.reshape(rows, shape=shape))

    with monitor.paused():
        if is_forward:
            found = (
                many_tangents(b, values, variables.values, units(b, variables.values), "jacobian")
                if n
                else []
            )
        else:
            found = many_gradients(b, values, units(b, values), variables.values, "jacobian") if m else []
        found = found or [None] * (len(values) if is_forward else len(variables.values))
        by_result = [[block(i, j) for j in range(len(variables.values))] for i in range(len(values))]
    return tree.unflatten(treedef, [tree.unflatten(variables.treedef, blocks) for blocks in by_result])


def hessian(fun: Callable[..., Any], x: Any, *args: Any) -> Any:
    """Return the Hessian of a scalar function by its first argument: the derivative of the gradient in forward mode.

    Args:
        fun: function of `x` and `args` that returns a scalar dlarray.
        x: floating-point array, or a container of such.
        args: further arguments of `fun`, not differentiated by.

    Returns:
        unformatted dlarray of size (\\*size of `x`, \\*size of `x`). If `x` is a container, such a container of such
        containers: ``h["a"]["b"]`` has the derivatives of the gradient by a, by b.

    Raises:
        ArgumentError: if `fun` is no function, or `x` is not made of arrays.
        GradientError: if `x` or the result has no derivative, or an op has none in forward mode, as lstm.

    Examples:
        >>> import tracejit as tj
        >>> tj.hessian(lambda x: x[0] ** 2 * x[1], [1.0, 2.0]).tolist()
        [[4.0, 2.0], [2.0, 0.0]]
        >>> tj.hessian(lambda p: p["a"] ** 2 * p["b"], {"a": 1.0, "b": 2.0})["a"]["b"].item()
        2.0
    """
    callable_("hessian", "fun", fun)

    def evaluated(x: Any, *args: Any) -> Any:
        before = _as_given(x)
        return dlhessian(fun(x, *args), before)

    return dlfeval(evaluated, _variables("hessian", x), *args)


def _arguments(function: str, name: str, given: Any) -> tuple[Any, ...]:
    if not isinstance(given, (tuple, list)):
        raise ArgumentError(
            f"{function}: {name} must be a tuple with one entry for each argument of fun, not a "
            f"{type(given).__name__}; write ({name},) for a function of one argument."
        )
    return tuple([_arrays(function, entry) for entry in given])


def _as_given(xs: Any) -> Any:
    """Return arguments as other arrays of the same variables, which writes into the arguments leave as they are."""
    leaves, treedef = tree.flatten(xs)
    return tree.unflatten(
        treedef, [wrap(x._data, x._format, x._value) if type(x) is dlarray else x for x in leaves]
    )


def _arrays(function: str, given: Any) -> Any:
    """Return numbers, and lists of numbers, as arrays, also in containers."""
    leaves, treedef = tree.flatten(given, _is_vector, function)
    arrays = [as_array(leaf, function) if is_real(leaf) or _is_vector(leaf) else leaf for leaf in leaves]
    return tree.unflatten(treedef, arrays)


def _variables(function: str, given: Any) -> Any:
    """Return what derivatives are taken by, as arrays: a nested list of numbers is one."""
    is_leaf = tree.flatten(given, function=function)[1].structure == tree.LEAF  # and no list holds itself
    return as_array(given, function) if is_leaf or _is_of_numbers(given) else _arrays(function, given)


def _is_of_numbers(given: Any) -> bool:
    """Return whether an argument is a nested list of numbers."""
    return type(given) is list and all(is_real(each) or _is_of_numbers(each) for each in given)


def _is_vector(given: Any) -> bool:
    """Return whether an argument is a list of numbers."""
    return type(given) is list and bool(given) and all(map(is_real, given))
