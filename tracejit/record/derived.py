# SPDX-License-Identifier: BSD-3-Clause
"""Traced arrays that nobody differentiates: what is computed of numbers that vary, of ndarrays, and of integers.

NumPy's code would have an ndarray where such an array is. So where something needs an ndarray (a function that is not
supported on dlarrays, a conversion), it gets the elements, and what they were computed of becomes a guard: numbers are
needed from then on (record/number.py), integers and captured ndarrays are compared.
"""

from typing import Any

import numpy as np

from tracejit.ir import Value
from tracejit.ops import Op
from tracejit.record import number, recorder
from tracejit.record.ended import is_open
from tracejit.record.guards import Decides
from tracejit.record.memory import root_of


def is_derived(array: Any) -> bool:
    """Return whether a traced array depends on no input that somebody may differentiate by."""
    if array._value is None or not is_open(array):
        return False
    owner = array._value.owner
    if owner is not recorder.thread.recorder or not owner.accelerating:
        return False
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
    where = recorder.user_location()
    for value in _inputs_of(array._value):
        ndarray = _ndarray_of(owner, value)
        if value in owner.sources:
            for source in owner.sources[value]:
                owner.needed.setdefault(source, (what, where))
        elif ndarray is not None:
            owner.state.taken(ndarray)
        else:
            owner.guard(value, Decides.VALUE, what)
    number.settle(owner, [x for x in owner.varying if x._sources <= owner.needed.keys()])
    data: np.ndarray = array._data
    return data


def settle(array: Any, what: str) -> None:
    """Have such an array, and all that share its elements, be ndarrays that NumPy knows from now on, for `what`."""
    elements(array, what)
    memories = array._value.owner.memories
    root = root_of(array)
    for view in [root, *memories.views]:
        if root_of(view) is root:
            view._value = None
    memories.private(root, is_ndarray=True)


def settle_part(array: Any, what: str) -> bool:
    """Do so with a part of an ndarray that varying numbers name, or a view of it; return whether the array is one."""
    owner = recorder.thread.recorder
    is_part = False
    base = array
    while type(base._view) is tuple:
        base, op, _ = base._view
        is_part = is_part or (op is not None and type(op) is not Op)
    if not is_part or base._value is not None or base._view is not None:
        return False
    found = owner.ndarrays.get(id(base._data))
    if found is None or found() is not base._data:
        return False
    settle(array, what)
    return True


def _ndarray_of(owner: Any, value: Value) -> np.ndarray | None:
    """Return the captured ndarray that an input stands for, if the function reads it as one."""
    data = owner.state.elements(value)
    found = None if data is None else owner.ndarrays.get(id(data))
    return None if found is None or found() is not data else data


def _inputs_of(value: Value) -> list[Value]:
    """Return the inputs of a graph that a value is computed of; constants are none."""
    found: list[Value] = []
    seen = {value}
    pending = [value]
    while pending:
        value = pending.pop()
        if value.node is None:
            if not value.is_constant:
                found.append(value)
            continue
        for other in value.node.inputs:
            if other not in seen:
                seen.add(other)
                pending.append(other)
    return found
