# SPDX-License-Identifier: BSD-3-Clause
"""DifferentiableFunction: a function with a backward function of its own, both written in NumPy."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tracejit.array import as_array
from tracejit.aval import SUPPORTED_DTYPES, Aval
from tracejit.errors import ArgumentError, DimsError, GradientError
from tracejit.ops import Kind, Op, name_apart
from tracejit.ops.op import PythonCall
from tracejit.record import host
from tracejit.record import recorder as recorders
from tracejit.util.arguments import flag, integer
from tracejit.util.text import count


class _Ops:
    """The ops of an instance, by the sizes of inputs and outputs; a copy of the instance has none."""

    __slots__ = ("of", "owner")

    def __init__(self, owner: Any = None) -> None:
        self.owner = owner
        self.of: dict[Any, Op] = {}

    def __reduce__(self) -> Any:
        return (_Ops, ())

    def __deepcopy__(self, memo: Any) -> "_Ops":
        return _Ops()


class DifferentiableFunction:
    """Base class of functions that have a backward function of their own, both in NumPy, or any other Python code.

    A subclass defines ``forward(self, *inputs)``, which gets read-only ndarrays and returns the outputs and then the
    memory values, one array or a tuple. It also defines
    ``backward(self, *cotangents, compute_gradients, *inputs, *outputs, *memory)``, all by position, which returns the
    gradient by each input, None where `compute_gradients` is False. The inputs and the outputs are passed only if they
    are saved. Formats are stripped: outputs are unformatted. In an accelerated function forward and backward are called
    between the kernels of the program. What backward needs of forward is a saved input, a saved output or a memory
    value, not an attribute.

    Args:
        num_outputs: number of outputs of forward.
        save_inputs_for_backward: whether backward gets the inputs.
        save_outputs_for_backward: whether backward gets the outputs.
        num_memory_values: number of arrays or numbers that forward returns after the outputs, for backward.

    Raises:
        ArgumentError: for an argument of the wrong kind; from a call, if an input is no array, or if forward or
            backward returns anything but arrays, or the wrong number of them.
        DimsError: from dlgradient, if a gradient and its input differ in size.
        GradientError: from a second derivative, or if a gradient that is needed is None.

    Examples:
        >>> import numpy as np, tracejit as tj
        >>> class Clip(tj.DifferentiableFunction):
        ...     def __init__(self, limit):
        ...         super().__init__(save_inputs_for_backward=True)
        ...         self.limit = limit
        ...     def forward(self, x):
        ...         return np.clip(x, -self.limit, self.limit)
        ...     def backward(self, dy, compute_gradients, x):
        ...         return np.where(np.abs(x) <= self.limit, dy, 0)
        >>> clip = Clip(1.0)
        >>> @tj.dlaccelerate
        ... def slope(x):
        ...     return tj.dlgradient(tj.sum(clip(x) ** 2), x)
        >>> slope(tj.dlarray([0.5, 3.0])).tolist()
        [1.0, 0.0]
    """

    is_part_of_programs = True  # which hold an instance
    num_outputs = 1
    save_inputs_for_backward = False
    save_outputs_for_backward = False
    num_memory_values = 0
    _once_only: str | None = None  # what an error says about other than first derivatives, if not the usual
    _ops: _Ops

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        """Return a new instance, with a place for its ops."""
        self = super().__new__(cls)
        self._ops = _Ops(self)
        return self

    def __init__(
        self, num_outputs: int = 1, *, save_inputs_for_backward: bool = False,
        save_outputs_for_backward: bool = False, num_memory_values: int = 0,
    ) -> None:  # fmt: skip
        name = type(self).__name__
        self.num_outputs = _at_least(name, "num_outputs", num_outputs, 1)
        self.save_inputs_for_backward = flag(name, "save_inputs_for_backward", save_inputs_for_backward)
        self.save_outputs_for_backward = flag(name, "save_outputs_for_backward", save_outputs_for_backward)
        self.num_memory_values = _at_least(name, "num_memory_values", num_memory_values, 0)

    # Keywords of any name stand for "any parameters": type checkers let subclasses name theirs.

    def forward(self, *inputs: Any, **parameters: Any) -> Any:
        """Return the outputs, and then the memory values."""
        raise ArgumentError(f"{type(self).__name__}: there is no forward; define forward(self, *inputs).")

    def backward(self, *arguments: Any, **parameters: Any) -> Any:
        """Return the gradient by each input."""
        raise GradientError(
            f"{type(self).__name__}: there is no backward; define backward(self, *cotangents, compute_gradients, ...)."
        )

    def __call__(self, *inputs: Any) -> Any:
        """Return the outputs of forward as unformatted dlarrays: one, or a tuple."""
        name = type(self).__name__
        if not inputs:
            raise ArgumentError(f"{name}: it was called without inputs; pass one array at least.")
        arrays = [as_array(x, name, f"input {i + 1}") for i, x in enumerate(inputs)]
        for array in arrays:
            recorders.check_open(array)
        returned = host.copies(_forward_of(self))(*[array._data for array in arrays])
        results = returned if type(returned) is tuple else (returned,)
        avals = tuple([Aval(array.shape, array.format, array.dtype) for array in arrays])
        op = _forward_op(self, avals, tuple([Aval(x.shape, None, x.dtype) for x in results]))
        outputs = host.append(op, arrays, host.params_here(), op.infer(*avals), results)
        return outputs[0] if self.num_outputs == 1 else outputs[: self.num_outputs]


def _at_least(name: str, argument: str, value: Any, least: int) -> int:
    number = integer(name, argument, value)
    if number < least:
        raise ArgumentError(f"{name}: {argument} must be at least {least}, not {number}.")
    return number


def _forward_of(function: DifferentiableFunction) -> Callable[..., Any]:
    """Return forward of an instance as a function that checks what it returns."""
    wanted = function.num_outputs + function.num_memory_values

    def forward(*arrays: np.ndarray) -> Any:
        returned = host.run(function.forward, arrays)
        if type(returned) is np.ndarray and wanted == 1 and returned.dtype in SUPPORTED_DTYPES:
            return returned
        return _checked(function, returned, wanted)

    return forward


def _checked(function: DifferentiableFunction, returned: Any, wanted: int) -> Any:
    """Return the outputs and memory values that forward returned as ndarrays: one, or a tuple.

    Raises:
        ArgumentError: if they are anything else, or the wrong number of them.
    """
    name = f"{type(function).__name__}.forward"
    is_one = wanted == 1 and not (isinstance(returned, (tuple, list)) and len(returned) == 1)
    parts = [returned] if is_one or not isinstance(returned, (tuple, list)) else [*returned]
    if len(parts) != wanted:
        memory = (
            f" and {count(function.num_memory_values, 'memory value')}" if function.num_memory_values else ""
        )
        raise ArgumentError(
            f"{name}: it returned {count(len(parts), 'value')}, expected {wanted}: "
            f"{count(function.num_outputs, 'output')}{memory}. Return that many, or change num_outputs and "
            "num_memory_values."
        )
    arrays = [as_array(part, name, f"value {i + 1}")._data for i, part in enumerate(parts)]
    return arrays[0] if wanted == 1 else tuple(arrays)


def _forward_op(function: DifferentiableFunction, inputs: tuple[Aval, ...], outputs: tuple[Aval, ...]) -> Op:
    """Return the op of forward for inputs and results of some sizes; the same for the same."""

    def make() -> Op:
        name = type(function).__name__
        vjp = _Backward(function, inputs, outputs).vjp
        return _op(name, f"{name}.forward, in Python", outputs, _forward_of(function), vjp)

    return _cached(function, ("forward", inputs, outputs), make)


def _cached(function: DifferentiableFunction, key: Any, make: Callable[[], Op]) -> Op:
    if function._ops.owner is not function:
        function._ops = _Ops(function)
    ops = function._ops.of
    found = ops.get(key)
    return ops.setdefault(key, make()) if found is None else found


def _op(name: str, doc: str, outputs: Sequence[Aval], function: Callable[..., Any], vjp: Any) -> Op:
    avals: Any = outputs[0] if len(outputs) == 1 else tuple(outputs)

    def infer(*inputs: Aval, handled: bool = False) -> Any:
        return avals

    return Op(
        name=name_apart(name), doc=doc, kind=Kind.HOST, infer=infer, numpy=host.copies(function), vjp=vjp,
        emit=PythonCall(function), samples=(), analytic=False,
    )  # fmt: skip


class _Backward:
    """The adjoint of a forward op: one op that calls backward."""

    def __init__(
        self, function: DifferentiableFunction, inputs: tuple[Aval, ...], outputs: tuple[Aval, ...]
    ) -> None:
        self.function = function
        self.inputs = inputs
        self.outputs = outputs

    def vjp(self, b: Any, node: Any, ct: Any) -> list[Any]:
        """Append the op that calls backward; return the cotangent of each input that needs one."""
        function = self.function
        cts = (ct if isinstance(ct, tuple) else (ct,))[: function.num_outputs]
        needed = tuple(
            [value.dtype.kind in "fc" and (b.active is None or value in b.active) for value in node.inputs]
        )
        if all(given is None for given in cts) or not any(needed):
            return [None] * len(node.inputs)
        given = [
            b.constant(np.zeros(value.shape, value.dtype)) if one is None else host.conjugate(b, one)
            for value, one in zip(node.outputs, cts, strict=False)
        ]
        results, memory = node.outputs[: function.num_outputs], node.outputs[function.num_outputs :]
        saved = [
            *(node.inputs if function.save_inputs_for_backward else ()),
            *(results if function.save_outputs_for_backward else ()),
            *memory,
        ]
        op = self.op(needed)
        found = b.apply(op, [*given, *saved], host.params_here())
        gradients = iter(found if isinstance(found, tuple) else (found,))
        return [host.conjugate(b, next(gradients)) if is_needed else None for is_needed in needed]

    def op(self, needed: tuple[bool, ...]) -> Op:
        """Return the op that calls backward for some of the gradients."""
        function, inputs = self.function, self.inputs
        name = type(function).__name__

        def no_second(b: Any, node: Any, ct: Any) -> Any:
            raise GradientError(
                function._once_only
                or f"{name}: backward is Python code, which has no derivative of its own, so there are no second "
                "derivatives; write backward of dlarray operations, with tj.custom_gradient."
            )

        def make() -> Op:
            avals = [aval for aval, is_needed in zip(inputs, needed, strict=True) if is_needed]
            backward = _backward_of(function, inputs, needed)
            return _op(f"{name}_backward", f"{name}.backward, in Python", avals, backward, no_second)

        return _cached(function, ("backward", self.outputs, inputs, needed), make)


def _backward_of(
    function: DifferentiableFunction, inputs: tuple[Aval, ...], needed: tuple[bool, ...]
) -> Callable[..., Any]:
    """Return backward of an instance as a function that returns the gradients that are needed, checked."""
    first = function.num_outputs
    only = inputs[0] if len(inputs) == 1 else None

    def call(*arrays: np.ndarray) -> Any:
        return function.backward(*arrays[:first], needed, *arrays[first:])

    def backward(*arrays: np.ndarray) -> Any:
        returned = host.run(call, arrays)
        if only is not None and type(returned) is np.ndarray and returned.shape == only.shape:
            return _in_dtype(returned, only.dtype)
        return _gradients(function, returned, inputs, needed)

    return backward


def _gradients(
    function: DifferentiableFunction, returned: Any, inputs: tuple[Aval, ...], needed: tuple[bool, ...]
) -> Any:
    """Return the gradients that are needed as ndarrays of the sizes and dtypes of their inputs: one, or a tuple.

    Raises:
        ArgumentError, DimsError, GradientError: if they are not what the inputs ask for.
    """
    name = f"{type(function).__name__}.backward"
    parts = returned if isinstance(returned, (tuple, list)) else (returned,)
    if len(parts) != len(inputs):
        raise ArgumentError(
            f"{name}: it returned {count(len(parts), 'gradient')}, expected {len(inputs)}: one for each input of "
            "forward, in their order, None where compute_gradients is False."
        )
    found = zip(parts, inputs, needed, strict=True)
    gradients = [
        _gradient(name, i, part, aval) for i, (part, aval, is_needed) in enumerate(found) if is_needed
    ]
    return gradients[0] if len(gradients) == 1 else tuple(gradients)


def _gradient(name: str, number: int, part: Any, aval: Aval) -> np.ndarray:
    """Return a gradient, of the size and dtype of its input."""
    if part is None:
        raise GradientError(
            f"{name}: gradient {number + 1} is None, but compute_gradients[{number}] is True; return an array of "
            f"{aval}, zeros if no output depends on the input."
        )
    data: np.ndarray = as_array(part, name, f"gradient {number + 1}")._data
    if data.shape != aval.shape:
        raise DimsError(
            f"{name}: gradient {number + 1} is {Aval(data.shape, None, data.dtype)}, but input {number + 1} of forward "
            f"is {aval}; a gradient has the size of its input. Sum over the axes that were broadcast."
        )
    return _in_dtype(data, aval.dtype)


def _in_dtype(data: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Return a gradient in the dtype of its input; that by a real one is real."""
    if data.dtype == dtype:
        return data
    return (data.real if data.dtype.kind == "c" and dtype.kind != "c" else data).astype(dtype)
