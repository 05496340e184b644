# SPDX-License-Identifier: BSD-3-Clause
"""Checks for code that is built on tracejit: check_gradients, assert_max_traces."""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np

from tracejit import autodiff, tree
from tracejit.array import apply, as_array, dlarray
from tracejit.errors import ArgumentError
from tracejit.functions.evaluate import dlfeval, dlgradient
from tracejit.ir import Graph, Node, Value
from tracejit.record import recorder as recorders
from tracejit.util.arguments import callable_, integer, real
from tracejit.util.named_tuples import NamedTuple
from tracejit.util.text import brief, name_of

_MOST_ORDER = 20
_STEP = {False: 6e-6, True: 1e-3}  # about the cube root of the rounding error, by whether float32 takes part
_LARGEST_STEP = 0.1
_DIRECTIONS = 2  # random directions for each argument
_RTOL = {  # by whether the complex step applies, and whether float32 takes part
    (True, False): 1e-9,
    (False, False): 1e-6,
    (True, True): 1e-4,
    (False, True): 1e-2,
}


class _Recorded(NamedTuple):
    """The recorded function: a projection of its outputs, and the derivative by each variable."""

    graph: Graph
    inputs: list[np.ndarray]
    variables: list[int]  # numbers of the inputs to differentiate by
    target: Value
    gradients: list[np.ndarray]


def check_gradients(
    fun: Callable[..., Any],
    *args: Any,
    order: int = 1,
    rtol: float | None = None,
    atol: float | None = None,
) -> None:
    """Check the gradients of `fun` at `args` against derivatives computed without any adjoint.

    The outputs of `fun` are multiplied by random weights and summed; the gradient of that by each array is
    compared along random directions, in float64. Where every op on the way is analytic the independent
    derivative is the complex step, Im f(x + ih) / h, which is exact to rounding; elsewhere it is
    a central difference, which needs a neighbourhood without kinks; where that disagrees, differences of
    larger steps are extrapolated, because they have less rounding. The function is recorded once, so
    branches taken and values extracted at `args` are held fixed, as dlgradient holds them.

    Args:
        fun: function of arrays or containers of arrays, which returns the same.
        args: where to check. Floating-point arrays are taken in float64.
        order: 1 checks the gradient, 2 also the gradient of the gradient, and so on.
        rtol: relative tolerance; by default 1e-9 for the complex step and 1e-6 for differences, more
            where `fun` computes in float32.
        atol: absolute tolerance; by default a thousandth of `rtol`.

    Raises:
        AssertionError: if a derivative is wrong, with the argument, both numbers and their relative error.
        ArgumentError: if there is nothing to differentiate, or `order` is not positive.

    Examples:
        >>> import numpy as np, tracejit as tj
        >>> from tracejit.testing import check_gradients
        >>> check_gradients(lambda x: np.tanh(x) * x, np.linspace(-1, 1, 5), order=2)
    """
    if not isinstance(order, int) or order < 1:
        raise ArgumentError(f"check_gradients: order must be a positive integer, not {brief(order)}.")
    if order > _MOST_ORDER:
        raise ArgumentError(f"check_gradients: order must be at most {_MOST_ORDER}, not {brief(order)}.")
    callable_("check_gradients", "fun", fun)
    for argument, tolerance in (("rtol", rtol), ("atol", atol)):
        if tolerance is not None and not real("check_gradients", argument, tolerance) >= 0:
            raise ArgumentError(f"check_gradients: {argument} must be a number >= 0, not {brief(tolerance)}.")
    name = name_of(fun)
    level = fun
    for depth in range(1, order + 1):
        what = name if depth == 1 else f"{name} (derivative {depth})"
        _check(level, what, args, depth, rtol=rtol, atol=atol)
        level = _gradient_function(level, depth)


def _gradient_function(fun: Callable[..., Any], depth: int) -> Callable[..., Any]:
    """Return the function that gives the gradients of the projection of `fun`."""

    def gradients(*args: Any) -> Any:
        def inner(*args: Any) -> Any:
            variables = [leaf for leaf in tree.flatten(args)[0] if _is_variable(leaf)]
            return dlgradient(_project(fun(*args), depth, "fun"), variables)

        return dlfeval(inner, *args)

    return gradients


def _is_variable(leaf: Any) -> bool:
    return type(leaf) is dlarray and leaf.dtype.kind == "f"


def _project(outputs: Any, seed: int, name: str) -> dlarray:
    """Return the sum of all floating-point outputs with random weights between 0.5 and 1.5."""
    rng = np.random.default_rng(seed)
    found = [as_array(leaf) if recorders.is_number(leaf) else leaf for leaf in tree.flatten(outputs)[0]]
    leaves = [leaf for leaf in found if _is_variable(leaf) and leaf._value is not None]
    if not leaves:
        raise ArgumentError(
            f"check_gradients: {name} returns no traced floating-point dlarray, so it has no gradient."
        )
    total = as_array(0.0)
    for leaf in leaves:
        weights = rng.uniform(0.5, 1.5, leaf.shape).astype(leaf.dtype)
        product = apply("mul", leaf, weights)
        axes = tuple(range(leaf.ndim))
        total = total + apply("sum", product, axes=axes, keepdims=False)
    return total


def _record(fun: Callable[..., Any], name: str, args: tuple[Any, ...], seed: int) -> _Recorded:
    leaves, treedef = tree.flatten(args, function="check_gradients")
    with recorders.Recorder(name) as recorder:
        inputs: list[Any] = []
        arrays: list[np.ndarray] = []
        variables: list[int] = []
        for leaf in leaves:
            if not hasattr(type(leaf), "__dlpack__"):
                inputs.append(leaf)
            else:
                array = as_array(leaf, "check_gradients")
                if array.dtype.kind == "f":
                    array = dlarray._wrap(array._data.astype(np.float64), array.format, None)
                    variables.append(len(arrays))
                arrays.append(array._data)
                inputs.append(recorder.input(array))
        if not variables:
            raise ArgumentError(
                f"check_gradients: args of {name} hold no floating-point array to differentiate by."
            )
        target = _project(fun(*tree.unflatten(treedef, inputs)), seed, name)._value
        assert target is not None
        graph = Graph()  # of the function alone, without the adjoint that follows
        graph.inputs, graph.constants = recorder.graph.inputs, recorder.graph.constants
        graph.nodes = recorder.graph.nodes[:]
        builder = recorder.builder
        ct = builder.constant(np.ones(target.shape, target.dtype))
        wrt = [graph.inputs[number] for number in variables]
        cotangents = autodiff.gradient(builder, [target], [ct], wrt)
        gradients = [np.zeros(x.shape) if g is None else g.data for x, g in zip(wrt, cotangents, strict=True)]
    return _Recorded(graph, arrays, variables, target, gradients)


def _check(
    fun: Callable[..., Any],
    name: str,
    args: tuple[Any, ...],
    seed: int,
    *,
    rtol: float | None,
    atol: float | None,
) -> None:
    recorded = _record(fun, name, args, seed)
    rng = np.random.default_rng(seed)
    base = _evaluate(recorded.graph, recorded.inputs)
    if not np.isfinite(base[recorded.target]):
        raise AssertionError(
            f"check_gradients: {name} gives {base[recorded.target]} at args; choose args where it is finite."
        )
    places = _places(args)
    for number, gradient in zip(recorded.variables, recorded.gradients, strict=True):
        path = _path(recorded.graph, recorded.graph.inputs[number])
        exact = all(_analytic(node, path) for node in recorded.graph.nodes)
        coarse = any(v.dtype in (np.float32, np.complex64) for v in path)
        relative = _RTOL[exact, coarse] if rtol is None else rtol
        absolute = relative * 1e-3 if atol is None else atol
        for _ in range(_DIRECTIONS):
            direction = rng.uniform(0.5, 1.5, gradient.shape) * rng.choice((-1.0, 1.0), gradient.shape)
            expected = _derivative(recorded, number, direction, base, exact=exact, coarse=coarse)
            have = float(np.sum(gradient * direction))
            if not exact and not _is_close(have, expected, relative, absolute):  # it may be rounding
                expected = _extrapolated(recorded, number, direction, base, coarse=coarse)
            if not _is_close(have, expected, relative, absolute):
                error = abs(have - expected)
                scale = max(abs(have), abs(expected))
                method = "complex step" if exact else "central difference"
                raise AssertionError(
                    f"check_gradients: the derivative of {name} by {places[number]} along a random direction "
                    f"is {have!r} by dlgradient, but {expected!r} by {method} "
                    f"(relative error {error / scale if scale else error:.2g}, allowed {relative:.2g})."
                )


def _is_close(have: float, expected: float, relative: float, absolute: float) -> bool:
    """Return whether two derivatives agree; NaN agrees with nothing."""
    return abs(have - expected) <= absolute + relative * max(abs(have), abs(expected))


def _places(args: tuple[Any, ...]) -> list[str]:
    leaves, treedef = tree.flatten(args, function="check_gradients")
    paths = tree.paths(treedef, "args")
    return [path for path, leaf in zip(paths, leaves, strict=True) if hasattr(type(leaf), "__dlpack__")]


def _path(graph: Graph, source: Value) -> set[Value]:
    """Return the floating-point values that a derivative by `source` flows through."""
    path = {source}
    for node in graph.nodes:
        if node.op.vjp is not None and any(v in path for v in node.inputs):
            path.update(v for v in node.outputs if v.dtype.kind in "fc")
    return path


def _analytic(node: Node, path: set[Value]) -> bool:
    """Return whether the complex step applies to a node, or no derivative goes through it."""
    if any(v in path and v.dtype.kind == "c" for v in node.outputs):
        return False  # the step would be taken for an imaginary part
    if node.op.analytic or not any(v in path for v in node.outputs):
        return True
    # A cast between floating-point types is left out; a condition that is not complex selects either branch.
    return node.op.name in ("cast", "where")


def _derivative(
    recorded: _Recorded,
    number: int,
    direction: np.ndarray,
    base: dict[Value, np.ndarray],
    *,
    exact: bool,
    coarse: bool,
) -> float:
    """Return the derivative of the target along `direction` of one input."""
    at = partial(_displaced, recorded, number, direction, base)
    if exact:
        return float(np.imag(at(1e-30j))) / 1e-30
    return _difference(at, _STEP[coarse])


def _displaced(
    recorded: _Recorded, number: int, direction: np.ndarray, base: dict[Value, np.ndarray], step: complex
) -> Any:
    """Return the target where one input is displaced by `step` times `direction`."""
    arrays: list[np.ndarray] = list(recorded.inputs)
    arrays[number] = arrays[number] + step * direction
    return _evaluate(recorded.graph, arrays, base)[recorded.target].reshape(())


def _difference(at: Callable[[float], Any], step: float) -> float:
    return float(at(step) - at(-step)) / (2 * step)


def _extrapolated(
    recorded: _Recorded, number: int, direction: np.ndarray, base: dict[Value, np.ndarray], *, coarse: bool
) -> float:
    """Return the derivative by differences of many steps, extrapolated to a step of 0.

    Rounding is divided by the step, so a large step is right where the target is large and its derivative is
    small; the error of a large step is extrapolated away. Of the table of extrapolations the entry is taken
    that differs least from those it was computed from (C. J. F. Ridders, "Accurate computation of F'(x) and
    F'(x)F''(x)", Advances in Engineering Software 4 (1982), 75-76). Steps that leave the domain give NaN, which is
    never taken.
    """
    at = partial(_displaced, recorded, number, direction, base)
    step, best, least = _LARGEST_STEP, math.nan, math.inf
    before: list[float] = []
    while step >= _STEP[coarse]:
        row = [_difference(at, step)]
        for k, coarser in enumerate(before, 1):
            row.append(row[-1] + (row[-1] - coarser) / (4**k - 1))
            error = max(abs(row[-1] - row[-2]), abs(row[-1] - coarser))
            if error < least:
                best, least = row[-1], error
        before, step = row, step / 2
    return best


def _evaluate(
    graph: Graph, arrays: Sequence[np.ndarray], base: dict[Value, np.ndarray] | None = None
) -> dict[Value, np.ndarray]:
    """Return all values of a graph by the ops' references, some inputs being displaced or complex.

    `base` has the values at the undisplaced inputs: what passes through stop_gradient stays there.
    """
    data: dict[Value, np.ndarray] = dict(zip(graph.inputs, arrays, strict=True))
    data.update((value, value.data) for value in graph.constants)
    with np.errstate(all="ignore"):
        _evaluate_nodes(graph, data, base)
    return data


def _evaluate_nodes(
    graph: Graph, data: dict[Value, np.ndarray], base: dict[Value, np.ndarray] | None
) -> None:
    for node in graph.nodes:
        operands = [data[v] for v in node.inputs]
        is_complex = any(
            x.dtype.kind == "c" and v.dtype.kind != "c" for x, v in zip(operands, node.inputs, strict=True)
        )
        result: Any
        if node.op.name == "stop_gradient" and base is not None:
            result = base[node.output]
        elif is_complex and node.op.name == "cast" and node.output.dtype.kind == "f":
            result = operands[0]
        elif is_complex and (node.op.vjp is None or node.output.dtype.kind != "f"):
            result = node.op.numpy(*map(np.real, operands), **node.params)
        else:
            result = node.op.numpy(*operands, **node.params)
        if isinstance(result, tuple):
            data.update(zip(node.outputs, map(np.asarray, result), strict=True))
        else:
            data[node.output] = np.asarray(result)


@contextmanager
def assert_max_traces(fun: Any, n: int) -> Iterator[None]:
    """Check that an accelerated function is recorded at most `n` times while a with-block runs.

    Args:
        fun: what dlaccelerate returned.
        n: recordings that are allowed, those that confirm a trace and audits included; calls that run uncompiled
            because the function cannot be accelerated for their arguments count, too.

    Raises:
        AssertionError: at the end of the block, if there were more; with what explain() says.
        ArgumentError: if `fun` is not an accelerated function.

    Examples:
        >>> import tracejit as tj
        >>> double = tj.dlaccelerate(lambda x: 2 * x)
        >>> with tj.testing.assert_max_traces(double, 2):
        ...     for n in range(5):
        ...         _ = double(tj.dlarray([1.0]) * n)
    """
    if not getattr(fun, "evaluates_itself", False):
        raise ArgumentError(
            f"assert_max_traces: expected an accelerated function, not {type(fun).__name__}; pass what dlaccelerate "
            "returned."
        )
    most = integer("assert_max_traces", "n", n)
    before = fun.stats
    yield
    after = fun.stats
    count = after.traces - before.traces + after.uncompiled - before.uncompiled
    if count > most:
        raise AssertionError(
            f"{name_of(fun)} was recorded, or ran uncompiled, {count} times, expected at most {n}. The last call: "
            f"{fun.explain()}"
        )
