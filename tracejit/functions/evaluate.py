# SPDX-License-Identifier: BSD-3-Clause
"""dlfeval and dlgradient: evaluation of a function on a trace, and gradients within it."""

from collections.abc import Callable
from functools import partial
from typing import Any, ParamSpec, TypeVar, overload

import numpy as np

from tracejit import config, tree
from tracejit.array import apply, as_array, dlarray
from tracejit.aval import is_inexact
from tracejit.errors import ArgumentError
from tracejit.functions.variables import Variables, along, is_array, recording, target, value_of
from tracejit.record import crossings, patches, views
from tracejit.record import recorder as recorders
from tracejit.record.argument_containers import ContainerCopies, PassedContainer, places_of
from tracejit.record.memory import check_same, is_ndarray, is_private
from tracejit.record.number import true_numbers_after
from tracejit.record.subscripts import Subscripts
from tracejit.util.devices import write as write_all
from tracejit.util.frames import global_names
from tracejit.util.text import name_of

P = ParamSpec("P")
R = TypeVar("R")
X1 = TypeVar("X1")
X2 = TypeVar("X2")
X3 = TypeVar("X3")
X4 = TypeVar("X4")


_LEAF = tree.flatten(0)[1]


def dlfeval(fun: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Return ``fun(*args, **kwargs)``, evaluated so that dlgradient can be called inside.

    All arrays in the arguments become traced: what is computed of them is recorded until `fun` returns.

    Args:
        fun: any function.
        args: its arguments. dlarrays, ndarrays (as unformatted dlarrays) and anything with ``__dlpack__``
            are traced, also within dicts, lists, tuples, named tuples and dataclasses; integer and bool
            arrays are dlarrays inside but have no gradient. Anything else is passed on as it is. What `fun`
            writes into an array (x += 1, x[0] = y), or puts into a dict, a list or a dataclass, is in the
            caller's afterwards, unless the setting write_arguments is off.
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


def evaluate(fun: Callable[..., R], args: Any, kwargs: Any, write: bool, replaces: bool = True) -> R:
    """Evaluate a function as dlfeval does.

    Args:
        fun: the function.
        args, kwargs: its arguments.
        write: whether what it writes into its arguments reaches the caller's arrays.
        replaces: whether arrays take the places of ndarrays that it makes.
    """
    if not callable(fun):
        raise ArgumentError(
            f"dlfeval: fun must be a function, not {type(fun).__name__}; pass the function and then its "
            "arguments, dlfeval(fun, x), not dlfeval(fun(x))."
        )
    outer = recorders.recorder()
    if outer is None and getattr(fun, "evaluates_itself", False):
        return fun(*args, **kwargs)
    given = (args, kwargs)
    leaves, treedef = tree.flatten(given, function="dlfeval")
    if outer is not None:
        return _evaluated_within(fun, given, leaves, treedef, write)
    recorder = recorders.Recorder(name_of(fun))
    recorder.replaces = replaces
    recorder.names = global_names(fun)
    with true_numbers_after(recorder), recorder, Subscripts(recorder):
        recorder.keeps_graph = False
        recorder.memories.writes_sources = write
        inputs = [recorder.input(leaf) if type(leaf) is dlarray else leaf for leaf in _as_inputs(leaves)]
        recorder.memories.place = lambda number: _places(fun, leaves, treedef)[number]
        copy = tree.unflatten(treedef, inputs)
        copies = ContainerCopies(treedef, given, copy)
        args, kwargs = copy
        with crossings.Calls(recorder):
            returned = patches.standing_for(fun)(*args, **kwargs)
        if write:
            copies.check(name_of(fun), partial(places_of, treedef))
            returned = copies.with_passed(returned, PassedContainer)
        results, result_treedef = tree.flatten(returned)
        del returned
        results = [_untraced(recorder.given_back(leaf)) for leaf in results]
        put_back = None
        if write and copies.changes():
            put_back = copies.put_back(
                partial(_outside, recorder, dict(zip(map(id, inputs), leaves, strict=True)))
            )
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
    write_all([memory for memory, _ in writes], [content for _, content in writes])
    if put_back is not None:
        put_back()
    originals = [copies.originals[leaf.number] if type(leaf) is PassedContainer else leaf for leaf in results]
    return tree.unflatten(result_treedef, originals)  # type: ignore[no-any-return]


def _evaluated_within(
    fun: Callable[..., R], given: Any, leaves: list[Any], treedef: tree.TreeDef, write: bool
) -> R:
    """Evaluate a function inside another evaluation, on whose tape it is recorded."""
    inputs = [_inner_input(leaf) for leaf in leaves]
    values = [leaf._value if type(leaf) is dlarray else None for leaf in inputs]
    copy = tree.unflatten(treedef, inputs)
    copies = ContainerCopies(treedef, given, copy)
    args, kwargs = copy
    result: R = patches.standing_for(fun)(*args, **kwargs)
    for leaf, array, value in zip(leaves, inputs, values, strict=True):
        if write and type(array) is dlarray and array._value is not value:
            if _is_foreign(leaf):  # whose copy shares no memory
                np.copyto(leaf, array._data)
            else:
                views.store(_as_input(leaf), array)
    if write:
        copies.check(name_of(fun), partial(places_of, treedef))
        result = copies.with_passed(result, copies.originals.__getitem__)
        copies.put_back(lambda leaf: leaf)()
    return result


def _outside(recorder: recorders.Recorder, passed: dict[int, Any], leaf: Any) -> Any:
    """Return what stands outside of an evaluation for a leaf; `passed` has arguments by the ids of those inside."""
    if id(leaf) in passed:
        return passed[id(leaf)]
    is_array = type(leaf) is dlarray and not leaf._data.ndim and not views.is_scalar(leaf)
    given_back = _untraced(recorder.given_back(leaf))
    return views.without_axes(given_back) if is_array and type(given_back) is dlarray else given_back


def _arrays(leaves: list[Any]) -> list[Any]:
    return [leaf for leaf in leaves if is_array(leaf)]


def _places(fun: Callable[..., Any], leaves: list[Any], treedef: tree.TreeDef) -> list[str]:
    """Return the places of the arrays among the arguments."""
    paths = tree.paths(treedef, "")
    names = {"[0]": "args", "[1]": "kwargs"}
    return [names[path[:3]] + path[3:] for path, leaf in zip(paths, leaves, strict=True) if is_array(leaf)]


def _as_inputs(leaves: list[Any]) -> list[Any]:
    """Return leaves with dlarrays as arrays; an array in foreign byte order that is there twice is one copy."""
    inputs = []
    copies: dict[Any, dlarray] = {}
    for leaf in leaves:
        array = _as_input(leaf) if is_array(leaf) else leaf
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
        and is_array(leaf)
    )


def _memory(leaf: Any) -> np.ndarray:
    """Return the memory of an argument that is an array."""
    is_ndarray = type(leaf) is not dlarray and isinstance(leaf, np.ndarray)
    return leaf if is_ndarray else _as_input(leaf)._data


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
    if not is_array(leaf):
        return leaf
    array = _as_input(leaf)
    if is_inexact(array.dtype):
        if is_private(array):
            array = dlarray._wrap(array._data, array._format, value_of(array))
        variable = apply("cast", array, dtype=array.dtype)
        return variable if array._data.ndim or views.is_scalar(array) else views.without_axes(variable)
    return dlarray._wrap(array._data, array._format, array._value)  # index assignment to it stays inside


def _untraced(leaf: Any) -> Any:
    """Return a result of an evaluation, with elements of its own."""
    if recorders.is_number(leaf):
        return leaf._number
    if type(leaf) is dlarray and is_ndarray(leaf):
        return leaf._data.copy()
    if type(leaf) is dlarray and recorders.is_open(leaf):
        data, value = leaf._data, leaf._value
        own = data.base is None and value is not None and value.node is not None
        return dlarray._wrap(data if own else data.copy(), leaf._format, None)
    return leaf


@overload
def dlgradient(
    y: dlarray,
    x: X1,
    /,
    *,
    seed: Any = None,
    retain_data: bool = False,
    enable_higher_derivatives: bool = False,
) -> X1: ...


@overload
def dlgradient(
    y: dlarray,
    x1: X1,
    x2: X2,
    /,
    *,
    seed: Any = None,
    retain_data: bool = False,
    enable_higher_derivatives: bool = False,
) -> tuple[X1, X2]: ...


@overload
def dlgradient(
    y: dlarray,
    x1: X1,
    x2: X2,
    x3: X3,
    /,
    *,
    seed: Any = None,
    retain_data: bool = False,
    enable_higher_derivatives: bool = False,
) -> tuple[X1, X2, X3]: ...


@overload
def dlgradient(
    y: dlarray, x1: X1, x2: X2, x3: X3, x4: X4, /, *,
    seed: Any = None, retain_data: bool = False, enable_higher_derivatives: bool = False,
) -> tuple[X1, X2, X3, X4]: ...  # fmt: skip


@overload
def dlgradient(
    y: dlarray, *xs: Any, seed: Any = None, retain_data: bool = False, enable_higher_derivatives: bool = False
) -> Any: ...


def dlgradient(
    y: dlarray, *xs: Any, seed: Any = None, retain_data: bool = False, enable_higher_derivatives: bool = False
) -> Any:
    """Return the gradient of `y` by each of `xs`, as new traced arrays.

    The adjoint is recorded like everything else, so that gradients can be differentiated again and
    several gradients taken of one trace, whatever the two flags say.

    Args:
        y: traced floating-point scalar (one element), made in the function that dlfeval evaluates; with `seed` an
            array of any size.
        xs: floating-point dlarrays, or containers of them: arguments of that function, dlarrays that it reads
            elsewhere (attributes, globals, variables of enclosing functions), or what was computed of them.
        seed: array of the size of `y`, the cotangent of its elements: the gradient is that of sum(seed * y). None
            stands for 1.
        retain_data: accepted for compatibility: a hint that further gradients follow.
        enable_higher_derivatives: accepted for compatibility: a hint that derivatives of these follow.

    Returns:
        For one x, its gradient: the same containers, sizes, formats and dtypes; for a network a table of its
        learnables. For several, a tuple of those. Zeros where `y` does not depend on an x.

    Raises:
        GradientError: outside dlfeval, if `y` is no traced floating-point scalar, or if an x is a constant that
            the function made, is not of floating point, or was changed since `y` was computed.
        ArgumentError: if an x is not made of dlarrays, or `seed` is no array.
        DimsError: if the size of `seed` is not that of `y`.
        TraceError: if `y` or an x is left over from an evaluation that has ended.

    Examples:
        >>> import tracejit as tj
        >>> def slope(params):
        ...     loss = (params["w"] ** 2).sum() + params["b"]
        ...     return tj.dlgradient(loss, params)
        >>> grads = tj.dlfeval(slope, {"w": tj.dlarray([1.0, 2.0]), "b": tj.dlarray(0.5)})
        >>> grads["w"].tolist(), grads["b"].item()
        ([2.0, 4.0], 1.0)
        >>> tj.dlfeval(lambda x: tj.dlgradient(x**2, x, seed=[1.0, 10.0]), tj.dlarray([1.0, 2.0])).tolist()
        [2.0, 40.0]
    """
    recorder = recording("dlgradient")
    value = target("dlgradient", y, recorder, is_scalar=seed is None)
    if not xs:
        raise ArgumentError("dlgradient: there is no x to differentiate by; pass dlgradient(y, x).")
    variables = Variables("dlgradient", xs if len(xs) > 1 else xs[0], recorder, "xs" if len(xs) > 1 else "x")
    if seed is None:
        ct = recorder.builder.constant(np.ones(value.shape, value.dtype))
    else:
        (ct,) = along("dlgradient", "seed", seed, [dlarray._wrap(value.data, None, value)], _LEAF, "y")
    return tree.unflatten(variables.treedef, variables.gradients([value], [ct]))
