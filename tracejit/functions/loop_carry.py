# SPDX-License-Identifier: BSD-3-Clause
"""The carry of loops, from one step to the next: arrays of one size, format and dtype, in containers."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from tracejit import tree
from tracejit.array import apply, as_array, dlarray
from tracejit.aval import SUPPORTED_DTYPES, Aval
from tracejit.errors import ArgumentError, DimsError, DTypeError
from tracejit.ir import Value, weak_array
from tracejit.record import recorder as recorders


def array_of(function: str, argument: str, leaf: Any, like: dlarray | None = None) -> dlarray:
    """Return a leaf as an array; a Python number in the dtype of the array that it takes the place of."""
    if like is not None and type(leaf) in (int, float):
        return dlarray(weak_array(leaf, [like.dtype]))
    return as_array(leaf, function, argument)


def value_of(array: dlarray) -> Value:
    """Return the Value of an array in the recording of this thread."""
    recorder = recorders.recorder()
    assert recorder is not None
    value: Value = recorder.value(array)
    return value


def own(arrays: Sequence[dlarray]) -> list[dlarray]:
    """Return arrays with the same elements, which a step may write."""
    if recorders.recorder() is None:
        return [dlarray._wrap(array._data.copy(), array._format, None) for array in arrays]
    return [
        apply("cast", dlarray._wrap(array._data, array._format, value_of(array)), dtype=array.dtype)
        for array in arrays
    ]


def apart(function: str, result: Any) -> Any:
    """Return a result whose arrays share no elements with each other or with any other array."""
    leaves, treedef = tree.flatten(result, function=function)
    return tree.unflatten(treedef, [_leaf_apart(leaf) for leaf in leaves])


def _leaf_apart(leaf: Any) -> Any:
    """Return a leaf with elements of its own; a recording reads an ndarray by reference, as arrays of the state."""
    if type(leaf) is np.ndarray and leaf.dtype in SUPPORTED_DTYPES:
        if recorders.recorder() is None:
            return leaf.copy(order="K")
        leaf = as_array(leaf)
    return own([leaf])[0] if type(leaf) is dlarray else leaf


def next_carry(function: str, carry: Any, treedef: tree.TreeDef, before: Sequence[dlarray]) -> list[dlarray]:
    """Return the arrays of a carry that a step gave.

    Args:
        function: the loop, for error messages.
        carry: what the step gave.
        treedef: of the first carry.
        before: the arrays of the carry before.

    Raises:
        ArgumentError: if containers differ.
        DimsError: if a size or format differs.
        DTypeError: if a dtype differs.
    """
    leaves, found = tree.flatten(carry, function=function)
    if found != treedef:
        differ = tree.difference(treedef, found, "carry", "the first carry", "what fun returned")
        raise ArgumentError(f"{function}: {differ}; a step returns the carry in the containers that it gets.")
    arrays = [array_of(function, "carry", leaf, one) for leaf, one in zip(leaves, before, strict=True)]
    check_same(function, "carry", treedef, arrays, before)
    return arrays


def check_same(
    function: str, root: str, treedef: tree.TreeDef, arrays: Sequence[dlarray], before: Sequence[dlarray]
) -> None:
    """Check that arrays have the sizes, formats and dtypes of those that stood in their places a step before.

    Raises:
        DimsError: if a size or format differs.
        DTypeError: if a dtype differs.
    """
    for number, (array, one) in enumerate(zip(arrays, before, strict=True)):
        found, expected = (Aval(x._data.shape, x._format, x._data.dtype) for x in (array, one))
        if found == expected:
            continue
        path = tree.paths(treedef, root)[number]
        keeps = "a carry keeps its" if root == "carry" else "results of all steps have the same"
        text = (
            f"{function}: after a step {path} is {found}, expected {expected} as before it; {keeps} size, format and "
            "dtype."
        )
        if found.shape == expected.shape and found.format == expected.format:
            raise DTypeError(f"{text} Cast it in fun (x.astype(np.{expected.dtype})).")
        raise DimsError(f"{text} Reshape or relabel it in fun.")
