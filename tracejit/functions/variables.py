# SPDX-License-Identifier: BSD-3-Clause
"""The arrays whose derivatives are taken, and those they are taken by: traced arrays of the current evaluation."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from tracejit import autodiff, tree
from tracejit.array import apply, as_array, dlarray
from tracejit.autodiff import forward
from tracejit.aval import describe_shape, is_inexact
from tracejit.errors import ArgumentError, DimsError, GradientError
from tracejit.functions.selecting import by_elements
from tracejit.ir import Value
from tracejit.record import monitor
from tracejit.record import recorder as recorders
from tracejit.record.memory import is_private, root_of
from tracejit.record.plain_numbers import PlainNumber
from tracejit.util.compositions import with_derivative
from tracejit.util.memory import collector_paused


def is_array(leaf: Any) -> bool:
    """Return whether an argument is an array, which is traced; arrays of strings or objects are other data."""
    if isinstance(leaf, np.ndarray):
        return leaf.dtype.kind not in "OSUVMmT" or leaf.dtype.name == "bfloat16"
    return hasattr(type(leaf), "__dlpack__")


def value_of(array: dlarray) -> Value:
    """Return the Value of an array in the recording of this thread."""
    current = recorders.recorder()
    assert current is not None
    value: Value = current.value(array)
    return value


def as_computed(y: Any) -> Any:
    """Return a number that was computed from arrays, or a sum of X[i], as an array; anything else as it is."""
    return y._array if recorders.is_number(y) and y._array._value.node is not None else y


def recording(function: str) -> recorders.Recorder:
    """Return the recorder of this thread, or raise a GradientError if there is none."""
    recorder = recorders.recorder()
    if recorder is None:
        raise GradientError(
            f"{function}: nothing is being recorded; call it inside a function that dlfeval evaluates, "
            "dlfeval(fun, x), or dlaccelerate accelerates, dlaccelerate(fun)(x)."
        )
    return recorder


def target(
    function: str, y: Any, recorder: recorders.Recorder, name: str = "y", is_scalar: bool = True
) -> Value:
    """Return the Value of what is differentiated, the argument `name`: a scalar, or an array of any size."""
    expected = "scalar" if is_scalar else "array"
    y = as_computed(y)
    if type(y) is not dlarray:
        raise GradientError(
            f"{function}: {name} is a {y.__class__.__name__}, expected a traced {expected} dlarray; compute it inside "
            "the function from its arguments, with functions of tracejit, NumPy or math, and pass tj.dlarray(x) "
            "for an argument x that is a number."
        )
    recorders.check_open(y)
    if is_private(y):  # a constant, as np.zeros(3).sum() is
        y = dlarray._wrap(y._data, y._format, value_of(y))
    if is_scalar and y.size != 1:
        raise GradientError(
            f"{function}: {name} is {_describe(y)}, expected a traced scalar; reduce it first, e.g. sum({name}), or "
            "pass the cotangent of its elements as seed of dlgradient."
        )
    if y.dtype.kind == "c" and function != "dljvp":
        raise GradientError(
            f"{function}: {name} is {_describe(y)}, expected a real {expected}, because no direction lowers a complex "
            f"number; take a real function of it, such as abs({name}) or {name}.real."
        )
    if not is_inexact(y.dtype):
        raise GradientError(
            f"{function}: {name} is {_describe(y)}, expected a floating-point {expected}; comparisons, rounding and "
            "integers have no derivative. In the arguments write -1.0 for -1."
        )
    value = y._value
    if value is None:
        raise GradientError(
            f"{function}: {name} is an untraced {_describe(y)}, expected a traced {expected}; compute it inside the "
            "function from the arguments of dlfeval, without extractdata or NumPy's own arrays in between."
        )
    if value.owner is not recorder:
        raise GradientError(
            f"{function}: {name} was recorded in {value.owner.name}, not in {recorder.name}; take the gradient "
            f"in the function that computes {name}."
        )
    checked: Value = value
    recorder.state.differentiates(checked)
    return checked


class Variables:
    """The arrays that derivatives are taken by.

    Args:
        function: the public function, in whose name errors are raised.
        xs: dlarrays, or containers of them.
        recorder: the recorder of this thread.
        root: names `xs` in messages.

    Attributes:
        leaves: the arrays.
        values: their Values.
        treedef: their containers.
    """

    def __init__(self, function: str, xs: Any, recorder: recorders.Recorder, root: str = "x") -> None:
        self.function = function
        self.recorder = recorder
        self.root = root
        leaves, self.treedef = tree.flatten(tree.parameters(xs, function)[0], function=function)
        self.leaves = [*map(as_computed, leaves)]
        self.values = [_variable(self, x, number) for number, x in enumerate(self.leaves)]
        if recorder.plain_numbers:
            self._check_plain(recorder.plain_numbers)

    def _check_plain(self, plain_numbers: Mapping[Value, PlainNumber]) -> None:
        """Raise an error if a value that a function made a plain number of depends on the arrays."""
        computed = [forward.computed_from(self.recorder.graph.nodes, variable) for variable in self.values]
        for value, plain in plain_numbers.items():
            number = next((number for number, values in enumerate(computed) if value in values), None)
            if number is not None:
                where = recorders.describe_location(plain.where)
                if plain.is_write:
                    raise GradientError(
                        f"{self.function}: a value that depends on {self.place(number)} was written into {plain.by} "
                        f"at {where}; what NumPy reads there has no derivative. Take "
                        "the gradient before the write, or make the ndarray a dlarray before the first call (self.y = "
                        "tj.dlarray(self.y))."
                    )
                raise GradientError(
                    f"{self.function}: {plain.by} at {where} made a plain number of a value that depends on "
                    f"{self.place(number)}, and dropped its derivative. Use {with_derivative(plain.by)}, or pass "
                    f"tj.stop_gradient(x) to {plain.by} where the value x is meant to be a constant."
                )

    def place(self, number: int) -> str:
        """Return the name of an array in messages."""
        return tree.paths(self.treedef, self.root)[number]

    def gradients(self, targets: list[Value], cts: list[Value]) -> list[dlarray]:
        """Append the adjoint of targets and return the gradient by each array."""
        builder = self.recorder.builder
        builder.location = recorders.user_location()
        with monitor.paused(), collector_paused():
            found = autodiff.gradient(builder, targets, cts, self.values)
        grads = []
        for number, (x, gradient) in enumerate(zip(self.leaves, found, strict=True)):
            if gradient is None:
                for y in targets:
                    check_written(self, y, number)
                gradient = builder.constant(np.zeros(x.shape, x.dtype))
            elif gradient.dtype.kind == "c":
                gradient = builder.conj(gradient)  # Note [complex cotangents] in autodiff/reverse.py
            grads.append(dlarray._wrap(gradient.data, x.format, gradient))
        return grads

    def tangents(self, targets: list[Value], directions: list[Value]) -> list[Value]:
        """Append the tangents of targets along directions, one for each array, and return them."""
        builder = self.recorder.builder
        builder.location = recorders.user_location()
        with monitor.paused(), collector_paused():
            found = autodiff.tangents(builder, targets, self.values, directions)
        for y, tangent in zip(targets, found, strict=True):
            for number in range(len(self.leaves)) if tangent is None else ():
                check_written(self, y, number)
        return [
            builder.constant(np.zeros(y.shape, y.dtype)) if tangent is None else tangent
            for y, tangent in zip(targets, found, strict=True)
        ]


def along(
    function: str, name: str, given: Any, like: list[dlarray], treedef: tree.TreeDef, what: str
) -> list[Value]:
    """Return the Values of an argument that has an array for each of some arrays: a seed, or directions.

    Args:
        function: the public function, in whose name errors are raised.
        name: the argument.
        given: arrays or numbers, in the same containers as `like`.
        like: the arrays that they belong to.
        treedef: the containers.
        what: names these arrays in messages.
    """
    is_one = treedef.structure == tree.LEAF  # then a list is one array
    leaves, given_treedef = ([given], treedef) if is_one else tree.flatten(given, function=function)
    if given_treedef != treedef:  # a network stands for its learnables, as where derivatives are taken by it
        leaves, given_treedef = tree.flatten(tree.parameters(given, function)[0], function=function)
    if given_treedef != treedef:
        raise ArgumentError(
            f"{function}: {name} must have an array for each of {what}, in the same containers; "
            f"{tree.difference_of_trees(tree.unflatten(treedef, like), given, what, name)}."
        )
    values = []
    for number, (leaf, array) in enumerate(zip(leaves, like, strict=True)):
        place = tree.paths(treedef, name)[number]
        found = as_array(leaf, function, place)
        if found.shape != array.shape:
            raise DimsError(
                f"{function}: {place} has size {describe_shape(found.shape, found.format)}, but "
                f"{tree.paths(treedef, what)[number]} has {describe_shape(array.shape, array.format)}; the sizes must "
                "be equal."
            )
        if found.dtype != array.dtype:
            found = apply("cast", found, dtype=array.dtype)
        values.append(value_of(found))
    return values


def _variable(of: Variables, x: Any, number: int) -> Value:
    function, place, recorder = of.function, of.place, of.recorder
    if type(x) is not dlarray:
        raise ArgumentError(f"{function}: {place(number)} is {_without_gradient(x)}")
    recorders.check_open(x)
    if x.dtype.kind == "c" and function not in ("dlgradient", "dljvp", "vjp"):
        raise GradientError(
            f"{function}: {place(number)} is {_describe(x)}, expected real numbers; only dlgradient, dljvp and vjp "
            "take complex ones. Pass their real and imaginary parts."
        )
    if not is_inexact(x.dtype):
        raise GradientError(
            f"{function}: {place(number)} is {_describe(x)}, expected floating point; integers and bools "
            "have no gradient. Write -1.0 for -1, cast it before the call (x.astype(float)), or leave it out."
        )
    if x._value is not None and x._value.owner is recorder:
        if x._value in recorder.settled:
            by_elements(x)
        return x._value
    if is_private(x):
        raise GradientError(
            f"{function}: {place(number)} is an untraced {_describe(x)} that the function copied or computed from "
            "untraced arrays, so that it is a constant. Copy it outside: an argument, an attribute or a global has a "
            "gradient. So has what is computed of traced arrays: 0 * x in place of zeros_like(x)."
        )
    value = recorder.value(x)
    recorder.state.differentiates_by(value)
    if id(x._data) in recorder.rewritten:
        raise GradientError(
            f"{function}: the elements of {place(number)} were changed by NumPy in the function, after it had been "
            "used. Change the dlarray instead (w -= g), whose operations are recorded, or take the gradient before."
        )
    return value


def check_written(of: Variables, y: Value, number: int) -> None:
    """Check that a target which does not depend on an array does not depend on its elements before a write either."""
    recorder = of.recorder
    root = root_of(of.leaves[number])
    change = recorder.memories.written.get(id(root))
    sources = zip(recorder.memories.sources, recorder.graph.inputs, strict=False)
    before = change.input if change else next((v for (array, _), v in sources if array is root), None)
    if before is None or before is root._value:
        return
    active = {before}
    for node in recorder.graph.nodes:
        if node.op.vjp is not None and not active.isdisjoint(node.inputs):
            active.update(node.outputs)
    if y in active:
        raise GradientError(
            f"{of.function}: y was computed before {of.place(number)} was written (x += 1, x[i] = y), so that it does "
            "not depend on the new elements. Take the gradient before the write."
        )


def _without_gradient(x: Any) -> str:
    """Return the rest of the message for a variable that is no dlarray."""
    name = type(x).__name__
    if isinstance(x, (int, float, np.number)) and not isinstance(x, bool):
        kind = "NumPy" if isinstance(x, np.number) else "Python"
        return (
            f"a {kind} number, which has no gradient. Pass tj.dlarray(x) in its place, such as tj.dlarray(0.5), or "
            "leave it out."
        )
    if is_array(x):
        return (
            f"an untraced array, {name}; what NumPy computes with it is not recorded. Make it a dlarray where it is "
            "made (self.w = tj.dlarray(w)), or pass it as an argument."
        )
    return f"a {name}, expected a traced dlarray; leave it out of the containers to differentiate by."


def _describe(x: dlarray) -> str:
    return f"{describe_shape(x.shape, x.format)} dlarray {x.dtype}"
