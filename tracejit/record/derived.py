# SPDX-License-Identifier: BSD-3-Clause
"""Traced arrays that have no derivative: those computed from numbers that vary, ndarrays and integers.

In the same place, NumPy's code would have an ndarray. So where something needs an ndarray (a function that is not
supported on dlarrays, a conversion), it gets the elements, and the values that they were computed from become guards:
numbers are needed from then on (record/number.py), integers and captured ndarrays are compared.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from tracejit.ir import Value
from tracejit.ops import Op
from tracejit.record import number, recorder
from tracejit.record.ended import is_open
from tracejit.record.guards import Decides
from tracejit.record.mapping import check_same
from tracejit.record.memory import is_ndarray, root_of
from tracejit.record.selections import SelectionValue

_DEEPEST = 8  # lists in lists among the operands of NumPy's functions


def is_derived(array: Any) -> bool:
    """Return whether a traced array depends on no input, and no dlarray, that somebody may differentiate by."""
    if type(array._value) is SelectionValue:
        array = array._value.data.whole
    if array._value is None or not is_open(array):
        return False
    owner = array._value.owner
    if owner is not recorder.thread.recorder:
        return False
    if not owner.accelerating:  # where captured arrays are constants
        return all(owner.is_of_ndarrays(value) for value in _leaves_of(array._value))
    inputs = _inputs_of(array._value)
    if array._data.dtype.kind != "f" and not any(value in owner.sources for value in inputs):
        return False  # integers, whose own values are guarded
    return all(
        value in owner.sources or value.aval.dtype.kind != "f" or _ndarray_of(owner, value) is not None
        for value in inputs
    )


def elements(array: Any, what: str) -> np.ndarray:
    """Return the elements of such an array, for `what`, which a replay does not repeat."""
    owner = array._value.owner
    if owner.maps:
        check_same(owner, array, what)
    where = recorder.user_location()
    for value in _inputs_of(array._value) if owner.accelerating else ():
        ndarray = _ndarray_of(owner, value)
        if value in owner.sources:
            for source in owner.sources[value]:
                owner.need(source, what, where)
        elif ndarray is not None:
            owner.state.taken(ndarray)
            if owner.attempts.is_lasting:
                owner.attempts.noted(partial(owner.state.taken, ndarray))
        else:
            owner.guard(value, Decides.VALUE, what)
    number.settle_needed(owner)
    data: np.ndarray = array._data
    return data


def as_number(result: Any) -> Any:
    """Return the result of an operation, as a number if NumPy's code would have one: a sum of X[i], for instance."""
    owner = recorder.thread.recorder
    if owner is None or not owner.sources or type(result) is not recorder.array_class() or result._data.ndim:
        return result
    value = result._value
    if (
        value is None
        or value.owner is not owner
        or type(result._view) is tuple
        or result._data.dtype.kind == "b"
    ):
        return result
    sources = _sources_of(owner, value)
    return number.Number(result._data[()], result, sources) if sources else result


def stands_for_ndarray(array: Any) -> bool:
    """Return whether NumPy's code has an ndarray in place of a dlarray: made by NumPy or computed from numbers."""
    value = array._value
    if value is None:
        return is_ndarray(array)
    if type(value) is SelectionValue:
        array = value.data.whole
        value = array._value
    owner = recorder.thread.recorder
    if owner is None or value.owner is not owner or not owner.sources:
        return False
    while type(array._view) is tuple:
        array, op, _ = array._view
        if op is None:  # dlarray(x)
            return False
    return bool(_sources_of(owner, value))


def _sources_of(owner: Any, value: Value) -> frozenset[int]:
    """Return the number arguments that a value is computed from; none if other arguments or dlarrays contribute too."""
    inputs = _inputs_of(value)
    if not _are_of_numpy(owner, inputs):
        return frozenset()
    return frozenset().union(*[owner.sources[other] for other in inputs if other in owner.sources])


def settle(array: Any, what: str) -> None:
    """Have such an array, and all that share its elements, be ndarrays that NumPy knows from now on, for `what`."""
    owner = array._value.owner
    with owner.attempts.lasting(array):
        elements(array, what)
        owner.attempts.noted(partial(number.settle_needed, owner))
    root = root_of(array)
    views = [view for view in owner.memories.views if view is not root and root_of(view) is root]
    root._value = None
    if not is_of_ndarray(root, owner):
        _move(root, views)  # NumPy may write it, and copies of it have the same memory (copy in views.py)
    for view in views:
        view._value = None
    owner.memories.private(root, is_ndarray=True)


def _move(root: Any, views: list[Any]) -> None:
    """Give an array, and the views of it, memory that nothing else shares."""
    root._data = root._data.copy("K")
    moved = {id(root)}
    for view in views:
        _follow(view, moved)


def _follow(view: Any, moved: set[int]) -> None:
    """Have a view show the new memory of its root, after those that it is a view of."""
    if id(view) not in moved:
        moved.add(id(view))
        base, op, params = view._view
        _follow(base, moved)
        view._data = base._data if op is None else op.numpy(base._data, **params)


def is_of_ndarray(array: Any, owner: Any) -> bool:
    """Return whether an array, or what it is a view of, is a captured ndarray, which NumPy's code may write."""
    data = root_of(array)._data
    if id(data) not in owner.ndarrays:
        return False
    known = owner.ndarrays[id(data)]
    return known is None or known() is data  # another array may have had its id


def otherwise(error: Exception, operation: Callable[..., Any], *operands: Any, **options: Any) -> Any:
    """Do with ndarrays what failed with dlarrays that stand for ndarrays of NumPy's code, or raise the error.

    Dlarrays support less than ndarrays do, and where numbers had the same values so far there were ndarrays.
    """
    derived: list[Any] = []
    if recorder.thread.recorder is None or not all(
        _are_ndarrays(part, derived) for part in (*operands, *options.values())
    ):
        raise error
    if not any(map(recorder.is_array, derived)):
        raise error
    what = getattr(operation, "__name__", "an operation")
    for part in derived:
        if recorder.is_number(part):
            part.needed(what)
        elif recorder.is_array(part) and part._value is not None:  # a number may be a true one by now
            settle(part, what)
    plain = {name: _plain(part) for name, part in options.items()}
    try:
        return operation(*map(_plain, operands), **plain)
    except Exception as numpys:
        raise numpys from None


def _are_ndarrays(x: Any, derived: list[Any], depth: int = 0) -> bool:
    """Return whether the dlarrays in an operand stand for ndarrays; they, and numbers that vary, are noted."""
    if type(x) in (list, tuple):  # which may hold itself
        return depth < _DEEPEST and all(_are_ndarrays(part, derived, depth + 1) for part in x)
    if type(x) is slice:
        return all(_are_ndarrays(part, derived) for part in (x.start, x.stop, x.step))
    is_number = recorder.is_number(x)
    if is_number or recorder.is_array(x):
        derived.append(x)
        return is_number or (is_ndarray(x) if x._value is None else is_computed_of_ndarrays(x))
    return True


def is_computed_of_ndarrays(array: Any) -> bool:
    """Return whether a traced array depends on numbers and ndarrays alone, so that NumPy's code has ndarrays."""
    return is_derived(array) or _is_of_ndarrays(array)


def is_of_numpy(array: Any) -> bool:
    """Return whether NumPy's code has an ndarray or a number, computed of numbers that vary and ndarrays alone.

    Integers among the arguments do not count, although their elements can be taken (is_derived).
    """
    if not is_computed_of_ndarrays(array):
        return False
    owner = array._value.owner
    value = array._value.data.whole._value if type(array._value) is SelectionValue else array._value
    return not owner.accelerating or _are_of_numpy(owner, _inputs_of(value))


def _are_of_numpy(owner: Any, inputs: list[Value]) -> bool:
    """Return whether inputs stand for numbers that vary and captured ndarrays alone."""
    return all(value in owner.sources or _ndarray_of(owner, value) is not None for value in inputs)


def _is_of_ndarrays(array: Any) -> bool:
    """Return whether a traced array is computed from captured ndarrays alone, whatever its dtype."""
    if array._value is None or not is_open(array):  # kept of a recording that has ended
        return False
    owner = array._value.owner
    if owner is not recorder.thread.recorder or not owner.accelerating:
        return False
    return all(_ndarray_of(owner, value) is not None for value in _inputs_of(array._value))


def _plain(x: Any) -> Any:
    """Return an operand with the ndarrays of the dlarrays in it."""
    if type(x) in (list, tuple):
        return type(x)(map(_plain, x))
    return x._data if recorder.is_array(x) else x


def named_part_of(array: Any) -> Any:
    """Return the array around a captured ndarray of which an array shows a part named by varying numbers, or None."""
    is_part = False
    base = array
    while type(base._view) is tuple:
        base, op, _ = base._view
        is_part = is_part or (op is not None and type(op) is not Op)
    owner = recorder.thread.recorder
    is_around = is_part and base._value is None and base._view is None and owner.is_ndarray(base._data)
    return base if is_around else None


def _ndarray_of(owner: Any, value: Value) -> np.ndarray | None:
    """Return the captured ndarray that an input stands for, if the function reads it as one."""
    data = owner.state.elements(value)
    return data if data is not None and owner.is_ndarray(data) else None


def _inputs_of(value: Value) -> list[Value]:
    """Return the inputs of a graph that a value is computed from; constants do not count."""
    return [leaf for leaf in _leaves_of(value) if not leaf.is_constant]


def _leaves_of(value: Value) -> list[Value]:
    """Return the inputs and the constants of a graph that a value is computed from."""
    leaves: list[Value] = []
    seen = {value}
    pending = [value]
    while pending:
        value = pending.pop()
        if value.node is None:
            leaves.append(value)
            continue
        for other in value.node.inputs:
            if other not in seen:
                seen.add(other)
                pending.append(other)
    return leaves
