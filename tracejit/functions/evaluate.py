# SPDX-License-Identifier: BSD-3-Clause
"""dlfeval and dlgradient: evaluation of a function on a trace, and gradients within it."""

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar, overload

import numpy as np

from tracejit import autodiff, config, tree
from tracejit.array import apply, as_array, dlarray
from tracejit.aval import describe_shape
from tracejit.errors import ArgumentError, GradientError
from tracejit.ir import Value
from tracejit.record import monitor, views
from tracejit.record import recorder as recorders
from tracejit.record.memory import check_same, is_ndarray, is_private, root_of
from tracejit.util.frames import global_names
from tracejit.util.memory import collector_paused
from tracejit.util.text import name_of

P = ParamSpec("P")
R = TypeVar("R")
X1 = TypeVar("X1")
X2 = TypeVar("X2")
X3 = TypeVar("X3")
X4 = TypeVar("X4")


def dlfeval(fun: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Return ``fun(*args, **kwargs)``, evaluated so that dlgradient can be called inside.

    All arrays in the arguments become traced: what is computed of them is recorded until `fun` returns.

    Args:
        fun: any function.
        args: its arguments. dlarrays, ndarrays (as unformatted dlarrays) and anything with ``__dlpack__``
            are traced, also within dicts, lists, tuples, named tuples and dataclasses; integer and bool
            arrays are dlarrays inside but have no gradient. Anything else is passed on as it is. What `fun`
            writes into an array (x += 1, x[0] = y) is in the caller's array afterwards, unless the setting
            write_arguments is off.
        kwargs: likewise.

    Returns:
        What `fun` returns, with untraced dlarrays. Inside another dlfeval, or an accelerated function,
        the recording is part of that one and the arrays stay on its trace.

    Raises:
        ArgumentError: if `fun` cannot be called.

    Examples:
        >>> import tracejit as tj
        >>> def rosenbrock(x):
        ...     y = 100 * (x[1] - x[0] ** 2) ** 2 + (1 - x[0]) ** 2
        ...     return y, tj.dlgradient(y, x)
        >>> y, grad = tj.dlfeval(rosenbrock, tj.dlarray([-1.0, 2.0]))
        >>> y.item(), grad.tolist()
        (104.0, [396.0, 200.0])
    """
    return evaluate(fun, args, kwargs, config.settings.write_arguments)


def evaluate(fun: Callable[..., R], args: Any, kwargs: Any, write: bool) -> R:
    """Evaluate a function as dlfeval does; `write` if what it writes into its arguments reaches the caller's arrays."""
    if not callable(fun):
        raise ArgumentError(
            f"dlfeval: fun must be a function, not {type(fun).__name__}; pass the function and then its "
            "arguments, dlfeval(fun, x), not dlfeval(fun(x))."
        )
    outer = recorders.recorder()
    if outer is None and getattr(fun, "evaluates_itself", False):
        return fun(*args, **kwargs)
    leaves, treedef = tree.flatten((args, kwargs), function="dlfeval")
    if outer is not None:
        inputs = [_inner_input(leaf) for leaf in leaves]
        values = [leaf._value if type(leaf) is dlarray else None for leaf in inputs]
        args, kwargs = tree.unflatten(treedef, inputs)
        result = fun(*args, **kwargs)
        for leaf, array, value in zip(leaves, inputs, values, strict=True):
            if write and type(array) is dlarray and array._value is not value:
                views.store(_as_input(leaf), array)
        return result
    recorder = recorders.Recorder(name_of(fun))
    recorder.names = global_names(fun)
    with recorder:
        recorder.keeps_graph = False
        recorder.memories.writes_sources = write
        inputs = [recorder.input(leaf) if type(leaf) is dlarray else leaf for leaf in _as_inputs(leaves)]
        recorder.memories.place = lambda number: _places(fun, leaves, treedef)[number]
        args, kwargs = tree.unflatten(treedef, inputs)
        results, result_treedef = tree.flatten(fun(*args, **kwargs))
        results = [_untraced(leaf) for leaf in results]
        writes = [
            (_memory(leaf), array._data.copy())
            for leaf, array, value in zip(
                _arrays(leaves), _arrays(inputs), recorder.graph.inputs, strict=False
            )
            if write and array._value is not value
        ]
        if any(_is_foreign(leaf) for leaf in leaves):  # whose copies share no memory
            arrays = [_memory(leaf) for leaf in _arrays(leaves)]
            for memory, _ in writes:
                for number, other in enumerate(arrays):
                    check_same(memory, other, recorder.memories.place(number), recorder.name)
        writes += [(change.data, change.result._data.copy()) for change in recorder.restored()]
    for memory, content in writes:
        np.copyto(memory, content)
    return tree.unflatten(result_treedef, results)  # type: ignore[no-any-return]


def _arrays(leaves: list[Any]) -> list[Any]:
    return [leaf for leaf in leaves if _is_array(leaf)]


def _places(fun: Callable[..., Any], leaves: list[Any], treedef: tree.TreeDef) -> list[str]:
    """Return the places of the arrays among the arguments."""
    paths = tree.paths(treedef, "")
    names = {"[0]": "args", "[1]": "kwargs"}
    return [names[path[:3]] + path[3:] for path, leaf in zip(paths, leaves, strict=True) if _is_array(leaf)]


def _as_inputs(leaves: list[Any]) -> list[Any]:
    """Return leaves with dlarrays as arrays; an array in foreign byte order that is there twice is one copy."""
    inputs = []
    copies: dict[Any, dlarray] = {}
    for leaf in leaves:
        array = _as_input(leaf) if _is_array(leaf) else leaf
        if _is_foreign(leaf):
            place = leaf.__array_interface__["data"][0], leaf.shape, leaf.strides, leaf.dtype
            array = copies.setdefault(place, array)
        inputs.append(array)
    return inputs


def _is_foreign(leaf: Any) -> bool:
    return (
        type(leaf) is not dlarray
        and isinstance(leaf, np.ndarray)
        and not leaf.dtype.isnative
        and _is_array(leaf)
    )


def _memory(leaf: Any) -> np.ndarray:
    """Return the memory of an argument that is an array."""
    is_ndarray = type(leaf) is not dlarray and isinstance(leaf, np.ndarray)
    return leaf if is_ndarray else _as_input(leaf)._data


def _is_array(leaf: Any) -> bool:
    # Arrays of strings or objects are data of another sort, passed on as they are.
    if isinstance(leaf, np.ndarray):
        return leaf.dtype.kind not in "OSUVMmT"
    return hasattr(type(leaf), "__dlpack__")


def _as_input(leaf: Any) -> dlarray:
    array: dlarray = as_array(leaf, "dlfeval")
    recorders.check_open(array)
    if not array._data.ndim and array is not leaf:
        array = dlarray._wrap(
            array._data[...], None, None
        )  # an array, not a number: is_scalar in record/views.py
    return array


def _inner_input(leaf: Any) -> Any:
    """Return an argument of an evaluation inside another, as a variable of its own.

    The gradient by it is then that by the argument alone, also where the function sees the same array in
    another way (a closure, a second argument), and an array that is a constant of the outer trace has one.
    """
    if not _is_array(leaf):
        return leaf
    array = _as_input(leaf)
    if array.dtype.kind == "f":
        if is_private(array):
            array = dlarray._wrap(array._data, array._format, _value_of(array))
        return apply("cast", array, dtype=array.dtype)
    return dlarray._wrap(array._data, array._format, array._value)  # index assignment to it stays inside


def _value_of(array: dlarray) -> Value:
    """Return the Value of an array in the recording of this thread."""
    current = recorders.recorder()
    assert current is not None
    value: Value = current.value(array)
    return value


def _untraced(leaf: Any) -> Any:
    """Return a result of an evaluation, with elements of its own."""
    if type(leaf) is dlarray and is_ndarray(leaf):
        return leaf._data.copy()
    if type(leaf) is dlarray and recorders.is_open(leaf):
        data, value = leaf._data, leaf._value
        own = data.base is None and value is not None and value.node is not None
        return dlarray._wrap(data if own else data.copy(), leaf._format, None)
    return leaf


@overload
def dlgradient(
    y: dlarray, x: X1, /, *, retain_data: bool = False, enable_higher_derivatives: bool = False
) -> X1: ...


@overload
def dlgradient(
    y: dlarray, x1: X1, x2: X2, /, *, retain_data: bool = False, enable_higher_derivatives: bool = False
) -> tuple[X1, X2]: ...


@overload
def dlgradient(
    y: dlarray,
    x1: X1,
    x2: X2,
    x3: X3,
    /,
    *,
    retain_data: bool = False,
    enable_higher_derivatives: bool = False,
) -> tuple[X1, X2, X3]: ...


@overload
def dlgradient(
    y: dlarray, x1: X1, x2: X2, x3: X3, x4: X4, /, *,
    retain_data: bool = False, enable_higher_derivatives: bool = False,
) -> tuple[X1, X2, X3, X4]: ...  # fmt: skip


@overload
def dlgradient(
    y: dlarray, *xs: Any, retain_data: bool = False, enable_higher_derivatives: bool = False
) -> Any: ...


def dlgradient(
    y: dlarray, *xs: Any, retain_data: bool = False, enable_higher_derivatives: bool = False
) -> Any:
    """Return the gradient of the scalar `y` by each of `xs`, as new traced arrays.

    The adjoint is recorded like everything else, so that gradients can be differentiated again and
    several gradients taken of one trace, whatever the two flags say.

    Args:
        y: traced floating-point scalar (one element), made in the function that dlfeval evaluates.
        xs: floating-point dlarrays, or containers of them: arguments of that function, dlarrays that it reads
            elsewhere (attributes, globals, variables of enclosing functions), or what was computed of them.
        retain_data: accepted for compatibility: a hint that further gradients follow.
        enable_higher_derivatives: accepted for compatibility: a hint that derivatives of these follow.

    Returns:
        For one x, its gradient: the same containers, sizes, formats and dtypes; for a network a table of its
        learnables. For several, a tuple of those. Zeros where `y` does not depend on an x.

    Raises:
        GradientError: outside dlfeval, if `y` is no traced floating-point scalar, or if an x is a constant that
            the function made, is not of floating point, or was changed since `y` was computed.
        ArgumentError: if an x is not made of dlarrays.
        TraceError: if `y` or an x is left over from an evaluation that has ended.

    Examples:
        >>> import tracejit as tj
        >>> def slope(params):
        ...     loss = (params["w"] ** 2).sum() + params["b"]
        ...     return tj.dlgradient(loss, params)
        >>> grads = tj.dlfeval(slope, {"w": tj.dlarray([1.0, 2.0]), "b": tj.dlarray(0.5)})
        >>> grads["w"].tolist(), grads["b"].item()
        ([2.0, 4.0], 1.0)
    """
    recorder = recorders.recorder()
    if recorder is None:
        raise GradientError(
            "dlgradient: nothing is being recorded; call it inside a function that dlfeval evaluates, dlfeval(fun, x), "
            "or dlaccelerate accelerates, dlaccelerate(fun)(x)."
        )
    target = _check_target(y, recorder)
    if not xs:
        raise ArgumentError("dlgradient: there is no x to differentiate by; pass dlgradient(y, x).")
    leaves, treedef = tree.flatten(tree.parameters(xs, "dlgradient")[0], function="dlgradient")

    def place(number: int) -> str:
        path = tree.paths(treedef, "xs")[number]
        return path if len(xs) > 1 else "x" + path.removeprefix("xs[0]")

    wrt = [_check_variable(x, number, place, recorder) for number, x in enumerate(leaves)]
    builder = recorder.builder
    builder.location = recorders.user_location()
    seed = builder.constant(np.ones(target.shape, target.dtype))
    grads: list[dlarray] = []
    with monitor.paused(), collector_paused():
        gradients = autodiff.gradient(builder, [target], [seed], wrt)
    for x, gradient in zip(leaves, gradients, strict=True):
        if gradient is None:
            _check_written(target, x, place(len(grads)), recorder)
        value = builder.constant(np.zeros(x.shape, x.dtype)) if gradient is None else gradient
        grads.append(dlarray._wrap(value.data, x.format, value))
    result = tree.unflatten(treedef, grads)
    return result[0] if len(xs) == 1 else result


def _check_target(y: Any, recorder: recorders.Recorder) -> Value:
    if recorders.is_number(y) and y._array._value.node is not None:  # as the sum of X[i]
        y = y._array
    if type(y) is not dlarray:
        raise GradientError(
            f"dlgradient: y is a {type(y).__name__}, expected a traced scalar dlarray; compute it inside the function "
            "from its arguments, with functions of tracejit or NumPy (tj.exp instead of math.exp), and pass "
            "tj.dlarray(x) for an argument x that is a number."
        )
    recorders.check_open(y)
    if is_private(y):  # a constant, as np.zeros(3).sum() is
        y = dlarray._wrap(y._data, y._format, _value_of(y))
    if y.size != 1:
        raise GradientError(
            f"dlgradient: y is {_describe(y)}, expected a traced scalar; reduce it first, e.g. sum(y)."
        )
    if y.dtype.kind != "f":
        raise GradientError(
            f"dlgradient: y is {_describe(y)}, expected a floating-point scalar; comparisons, rounding and "
            "integers have no derivative. In the arguments write -1.0 for -1."
        )
    value = y._value
    if value is None:
        raise GradientError(
            f"dlgradient: y is an untraced {_describe(y)}, expected a traced scalar; compute it inside the "
            "function from the arguments of dlfeval, without extractdata or NumPy's own arrays in between."
        )
    if value.owner is not recorder:
        raise GradientError(
            f"dlgradient: y was recorded in {value.owner.name}, not in {recorder.name}; take the gradient "
            "in the function that computes y."
        )
    checked: Value = value
    return checked


def _check_variable(x: Any, number: int, place: Callable[[int], str], recorder: recorders.Recorder) -> Value:
    if type(x) is not dlarray:
        raise ArgumentError(f"dlgradient: {place(number)} is {_without_gradient(x)}")
    recorders.check_open(x)
    if x.dtype.kind != "f":
        raise GradientError(
            f"dlgradient: {place(number)} is {_describe(x)}, expected floating point; integers and bools "
            "have no gradient. Write -1.0 for -1, cast it before the call (x.astype(float)), or leave it out."
        )
    if x._value is not None and x._value.owner is recorder:
        return x._value
    if is_private(x):
        raise GradientError(
            f"dlgradient: {place(number)} is an untraced {_describe(x)} that the function copied or computed from "
            "untraced arrays, so that it is a constant. Copy it outside: an argument, an attribute or a global has a "
            "gradient."
        )
    value = recorder.value(x)
    if id(x._data) in recorder.rewritten:
        raise GradientError(
            f"dlgradient: the elements of {place(number)} were changed by NumPy in the function, after it had been "
            "used. Change the dlarray instead (w -= g), whose operations are recorded, or take the gradient before."
        )
    return value


def _check_written(y: Value, x: dlarray, place: str, recorder: recorders.Recorder) -> None:
    """Check that a target which does not depend on an array does not depend on its elements before a write either."""
    root = root_of(x)
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
            f"dlgradient: y was computed before {place} was written (x += 1, x[i] = y), so that it does not depend on "
            "the new elements. Take the gradient before the write."
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
    if _is_array(x):
        return (
            f"an untraced array, {name}; what NumPy computes with it is not recorded. Make it a dlarray where it is "
            "made (self.w = tj.dlarray(w)), or pass it as an argument."
        )
    return f"a {name}, expected a traced dlarray; leave it out of the containers to differentiate by."


def _describe(x: dlarray) -> str:
    return f"{describe_shape(x.shape, x.format)} dlarray {x.dtype}"
