# SPDX-License-Identifier: BSD-3-Clause
"""custom_gradient: a function of dlarrays with a backward function of its own, both recorded.

Note [a gradient of one's own]
What forward computes is recorded like all other code. Its outputs then pass through one more op, which takes the
arguments, the outputs and the residuals, and gives the outputs. This op computes nothing and is in no program, but
dlgradient meets it first. Its adjoint calls backward, records its operations, and gives the result to the arguments
only. So the operations of forward get no cotangent. The operations of backward are differentiated like any others, and
the residuals are too, in a second derivative. A residual that is an output stands for the output of the function, whose
derivative is again what backward gives.
"""

import functools
import inspect
import types
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tracejit import tree
from tracejit.array import as_array, dlarray
from tracejit.aval import Aval
from tracejit.errors import ArgumentError, DimsError, GradientError
from tracejit.functions.backward_bodies import (
    BackwardBody,
    NoBackwardBody,
    appended,
    backward_body,
    in_body,
)
from tracejit.functions.loop_carry import apart
from tracejit.functions.movement import relabel
from tracejit.ir import Value
from tracejit.ops import Kind, Op
from tracejit.ops.op import Passed
from tracejit.record import host, monitor
from tracejit.record import recorder as recorders
from tracejit.util.arguments import callable_
from tracejit.util.named_tuples import NamedTuple
from tracejit.util.text import count, name_of


class _CallRecord(NamedTuple):
    """A recorded call: where its arrays are among the inputs of the op, and all else that backward gets.

    inputs          the avals of the arrays among the arguments, with formats
    places          the number of the argument, and the path in words, of each of these
    arguments       how many arguments there are
    outputs         for each leaf of the outputs the number of the array and its format, or None
    outputs_tree    the structure of the outputs
    residuals       for each leaf of the residuals the number of the input of the op and its format, that of the output
                    (less than 0) or the object itself
    residuals_tree  their structure
    reads           how many inputs of the op, the last ones, are what a recorded backward function reads besides
    backward        the recorded backward function, or why there is none; None where it is recorded when it is needed
    """

    inputs: tuple[Aval, ...]
    places: tuple[tuple[int, str], ...]
    arguments: int
    outputs: tuple[Any, ...]
    outputs_tree: tree.TreeDef
    residuals: tuple[Any, ...]
    residuals_tree: tree.TreeDef
    reads: int = 0
    backward: BackwardBody | NoBackwardBody | None = None


class _Number(NamedTuple):
    """A residual that is an array: the number of its Value, counted from -1 downwards for outputs, and its format."""

    number: int
    format: str | None


class CustomGradient:
    """A function with a backward function of its own. Made by custom_gradient.

    Attributes:
        function: the forward function, which returns outputs and residuals.
    """

    traced_functions = ("_function", "_backward")  # what a call runs

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = callable_("custom_gradient", "function", function)
        self._backward: Callable[..., Any] | None = None
        self._name = name_of(function)
        self._op = Op(
            name="custom_gradient", doc="the outputs of a function; its adjoint calls backward", kind=Kind.HOST,
            infer=_infer, numpy=_outputs, vjp=self._vjp, emit=Passed(), samples=(), analytic=False,
        )  # fmt: skip
        functools.update_wrapper(self, function, updated=())

    @property
    def function(self) -> Callable[..., Any]:
        """The forward function."""
        return self._function

    def backward(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Set the backward function, as a decorator does.

        Args:
            function: called with the residuals and the cotangent of each output, in the containers of the outputs. It
                returns a gradient for each argument, in a tuple if there are several: an array, a container like the
                argument, or None for zeros.

        Returns:
            The function as it is.
        """
        self._backward = callable_("custom_gradient", "backward", function)
        return function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Return the outputs of the function."""
        args, options = self._bound(args, kwargs)
        outputs, residuals = self._forward(args, options)
        current = recorders.recorder()
        if current is None:
            return apart(self._name, outputs)
        return self._record(current, args, outputs, residuals)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        """Return the function, or that bound to an instance."""
        return self if instance is None else types.MethodType(self, instance)

    def __reduce__(self) -> str:
        return str(self.__qualname__)  # type: ignore[attr-defined]

    def __repr__(self) -> str:
        return f"<custom_gradient {self._name}>"

    def _bound(self, args: Any, kwargs: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the arguments by position, as far as they can be, and the others by name."""
        if not kwargs:
            return args, kwargs
        bound = inspect.signature(self._function).bind(*args, **kwargs)
        for name, value in bound.kwargs.items():
            if any(isinstance(leaf, (dlarray, np.ndarray)) for leaf in tree.flatten(value)[0]):
                raise ArgumentError(
                    f"{self._name}: {name}, which is passed by name only, is an array; backward gives gradients by "
                    "position. Let the function take it by position."
                )
        return bound.args, bound.kwargs

    def _forward(self, args: tuple[Any, ...], options: dict[str, Any]) -> tuple[Any, Any]:
        returned = self._function(*args, **options)
        if not isinstance(returned, tuple) or len(returned) != 2:
            kind = count(len(returned), "value") if isinstance(returned, tuple) else type(returned).__name__
            raise ArgumentError(
                f"{self._name}: a function under custom_gradient returns its outputs and its residuals, not {kind}; "
                "return y, (x, ...), or y, None."
            )
        return returned

    def _record(self, current: Any, args: tuple[Any, ...], outputs: Any, residuals: Any) -> Any:
        """Record the op that the outputs pass through; return them."""
        leaves, _ = tree.flatten(args, function=self._name)
        paths = tree.paths(tree.flatten(args)[1], "")
        found = [(leaf, path) for leaf, path in zip(leaves, paths, strict=True) if _is_array(leaf)]
        inputs = [as_array(leaf) for leaf, _ in found]
        out_leaves, outputs_tree = tree.flatten(outputs, function=self._name)
        given = [as_array(leaf) for leaf in out_leaves if _is_array(leaf)]
        if not inputs or not given:
            return apart(self._name, outputs)
        first = len(inputs)
        kept: list[Any] = []

        def residual(leaf: Any) -> Any:
            if not _is_array(leaf):
                return leaf
            same = next((i for i, out in enumerate(given) if out is leaf), None)
            if same is not None:
                return _Number(-1 - same, leaf.format)
            kept.append(as_array(leaf))
            return _Number(first + len(given) + len(kept) - 1, kept[-1].format)

        res_leaves, residuals_tree = tree.flatten(residuals, function=self._name)
        places = tuple([(int(path[1 : path.index("]")]), path[path.index("]") + 1 :]) for _, path in found])
        numbers = iter(range(len(given)))
        recorded = _CallRecord(
            tuple([Aval(x.shape, x.format, x.dtype) for x in inputs]), places, len(args),
            tuple([(next(numbers), leaf.format) if _is_array(leaf) else None for leaf in map(_labelled, out_leaves)]),
            outputs_tree, tuple(map(residual, res_leaves)), residuals_tree,
        )  # fmt: skip
        arrays = [*inputs, *given, *kept]
        if in_body(current) and self._backward is not None:
            recorded, reads = self._with_backward(current, recorded, arrays, first)
            arrays += [recorders.wrap(value.data, None, value) for value in reads]
        params = {"first": first, "count": len(given), "recorded": recorded}
        avals = [Aval(x.shape, x.format, x.dtype) for x in given]
        passed = iter(
            host.append(
                self._op,
                arrays,
                params,
                avals[0] if len(avals) == 1 else tuple(avals),
                [x._data.copy() for x in given],  # the function may return an argument as it is
            )
        )
        return tree.unflatten(
            outputs_tree, [next(passed) if _is_array(leaf) else leaf for leaf in out_leaves]
        )

    def _with_backward(
        self, current: Any, recorded: _CallRecord, arrays: Sequence[Any], first: int
    ) -> tuple[_CallRecord, list[Value]]:
        """Record backward as a body, for a call inside a step of a loop; return the Values that it reads besides."""
        count = len(arrays) - first
        ones = [
            np.broadcast_to(np.ones((), x.dtype), x.shape)
            for x in arrays[first : first + _outputs_of(recorded)]
        ]
        given = [
            *[recorders.wrap(data, None, current.builder.constant(data)) for data in ones],
            *[recorders.wrap(x._data, None, current.value(x)) for x in arrays[first:]],
        ]

        def run(copies: Sequence[Any]) -> list[Any]:
            def cotangent(number: int, format: str | None) -> Any:
                return relabel(copies[number], format) if copies[number].dtype.kind in "fc" else None

            def residual(leaf: _Number) -> Any:
                at = leaf.number - first if leaf.number >= 0 else -1 - leaf.number
                return relabel(copies[len(ones) + at], leaf.format)

            return self._values(current, recorded, cotangent, residual)

        assert len(given) == len(ones) + count
        found, reads = backward_body(current, self._name, given, run)
        return recorded._replace(reads=len(reads), backward=found), reads

    def _values(
        self, current: Any, recorded: _CallRecord, cotangent: Callable[..., Any], residual: Callable[..., Any]
    ) -> list[Any]:
        """Call backward; return the Values of the gradients, None for no gradient.

        Args:
            current: the recorder.
            recorded: the call.
            cotangent: returns the cotangent of an output, given its number and its format.
            residual: returns the array of a residual.
        """
        assert self._backward is not None
        residuals = [residual(leaf) if type(leaf) is _Number else leaf for leaf in recorded.residuals]
        cotangents = [None if place is None else cotangent(*place) for place in recorded.outputs]
        with monitor.resumed():
            gradients = self._backward(
                tree.unflatten(recorded.residuals_tree, residuals),
                tree.unflatten(recorded.outputs_tree, cotangents),
            )
        return self._gradients(current, gradients, recorded)

    def _vjp(self, b: Any, node: Any, ct: Any) -> list[Any]:
        """Call backward, whose operations are recorded; return the cotangents of the arguments."""
        current = recorders.recorder()
        if self._backward is None:
            raise GradientError(
                f"{self._name}: there is no backward function; define one under @{self._name}.backward."
            )
        recorded: _CallRecord = node.params["recorded"]
        cts = ct if isinstance(ct, tuple) else (ct,)
        given = [
            b.constant(np.zeros(value.shape, value.dtype)) if one is None else host.conjugate(b, one)
            for value, one in zip(node.outputs, cts, strict=True)
        ]
        location = b.location
        if current is None or b is not current.builder:
            values = self._appended(b, node, given)
        else:

            def cotangent(number: int, format: str | None) -> Any:
                one = given[number]
                return recorders.wrap(one.data, format, one) if one.dtype.kind in "fc" else None

            def residual(leaf: _Number) -> Any:
                value: Value = (
                    node.inputs[leaf.number] if leaf.number >= 0 else node.outputs[-1 - leaf.number]
                )
                return recorders.wrap(value.data, leaf.format, value)

            values = self._values(current, recorded, cotangent, residual)
        b.location = location
        found = [None if value is None else host.conjugate(b, value) for value in values]
        return [*found, *[None] * (len(node.inputs) - len(found))]

    def _appended(self, b: Any, node: Any, given: Sequence[Value]) -> list[Any]:
        """Append the backward function that was recorded with a step of a loop."""
        recorded: _CallRecord = node.params["recorded"]
        backward = recorded.backward
        if backward is None:
            raise GradientError(
                f"{self._name}: its backward is recorded where dlgradient, jvp, vjp or hvp is called, for one "
                "cotangent. Call one of these instead of jacobian, dljacobian, dldivergence or dllaplacian; call an "
                "accelerated function that contains it outside of dlfeval, or take the gradient inside that function."
            )
        if isinstance(backward, NoBackwardBody):
            if backward.kind is not None:
                raise backward.kind(backward.reason)
            raise GradientError(
                f"{self._name}: its backward cannot be part of a loop that a program keeps: {backward.reason}. "
                "Make it of operations on arrays, or write the loop in Python."
            )
        first = len(recorded.inputs)
        kept = node.inputs[first + len(given) :]
        return appended(b, backward, [*given, *node.outputs, *kept])

    def _gradients(self, current: Any, gradients: Any, recorded: _CallRecord) -> list[Any]:
        """Return the Values of the gradients by the arrays among the arguments, None for no gradient."""
        parts = (gradients,) if recorded.arguments == 1 else gradients
        if not isinstance(parts, (tuple, list)) or len(parts) != recorded.arguments:
            found = (
                count(len(parts), "gradient") if isinstance(parts, (tuple, list)) else type(parts).__name__
            )
            raise ArgumentError(
                f"{self._name}: backward returned {found}, expected {recorded.arguments}: one for each argument, None "
                "for zeros."
            )
        leaves = [
            dict(zip(tree.paths(treedef, ""), found, strict=True))
            for found, treedef in (tree.flatten(part, function=self._name) for part in parts)
        ]
        values: list[Any] = []
        for (argument, path), aval in zip(recorded.places, recorded.inputs, strict=True):
            part = leaves[argument].get(path)
            if part is None:
                if (
                    parts[argument] is not None
                    and aval.dtype.kind in "fc"
                    and not _has_none(parts[argument], path)
                ):
                    raise ArgumentError(
                        f"{self._name}: the gradient by argument {argument + 1} has no {path.lstrip('.')}; it has the "
                        "containers of the argument, with None for zeros."
                    )
                values.append(None)
                continue
            array = as_array(part, self._name, f"gradient {argument + 1}{path}")
            if array.shape != aval.shape:
                raise DimsError(
                    f"{self._name}: the gradient by argument {argument + 1}{path} is {recorders.describe(array)}, but "
                    f"the argument is {aval}; a gradient has the size of its argument."
                )
            values.append(current.value(array))
        return values


def _outputs_of(recorded: _CallRecord) -> int:
    return sum(place is not None for place in recorded.outputs)


def _has_none(part: Any, path: str) -> bool:
    """Return whether a container has None where a path leads, or on the way there."""
    marked = tree.flatten(part, is_leaf=lambda x: x is None)
    paths = zip(tree.paths(marked[1], ""), marked[0], strict=True)
    return any(leaf is None and path.startswith(place) for place, leaf in paths)


def _is_array(leaf: Any) -> bool:
    return isinstance(leaf, (dlarray, np.ndarray, np.generic)) or recorders.is_number(leaf)


def _labelled(leaf: Any) -> Any:
    return as_array(leaf) if _is_array(leaf) else leaf


def _infer(*avals: Aval, first: int, count: int, recorded: Any) -> Any:
    return avals[first] if count == 1 else tuple(avals[first : first + count])


def _outputs(*arrays: np.ndarray, first: int, count: int, recorded: Any) -> Any:
    return arrays[first] if count == 1 else arrays[first : first + count]


def custom_gradient(function: Callable[..., Any]) -> CustomGradient:
    """Return a function with a backward function of its own, both made of operations on dlarrays.

    Both are recorded, differentiated and fused like all other code, so there are second derivatives. Use
    DifferentiableFunction for code that is not array code.

    Args:
        function: returns its outputs, an array or containers of arrays, and its residuals: what backward needs, in any
            containers. Its attribute backward is a decorator for ``backward(residuals, cotangents)``, which returns one
            gradient for each argument.

    Returns:
        The function, which returns the outputs.

    Raises:
        ArgumentError: if `function` is no function; from a call, if it returns no pair; from dlgradient, if backward
            returns more or fewer gradients than there are arguments.
        DimsError: from dlgradient, if a gradient and its argument differ in size.
        GradientError: from dlgradient, if there is no backward function.

    Examples:
        >>> import tracejit as tj
        >>> @tj.custom_gradient
        ... def softplus(x):
        ...     return tj.log(1 + tj.exp(x)), x
        >>> @softplus.backward
        ... def _(x, dy):
        ...     return dy * tj.sigmoid(x)
        >>> tj.dlfeval(lambda x: tj.dlgradient(softplus(x), x), tj.dlarray(100.0)).item()
        1.0
    """
    return CustomGradient(function)
