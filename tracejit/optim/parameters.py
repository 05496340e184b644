# SPDX-License-Identifier: BSD-3-Clause
"""The arrays of parameters, and of the containers that go with them."""

from typing import Any

from tracejit import tree
from tracejit.array import as_array, dlarray
from tracejit.aval import is_half
from tracejit.errors import ArgumentError, DimsError, DTypeError
from tracejit.functions.formats import describe, in_dtype
from tracejit.functions.movement import relabel


def factors_of(where: str, params: Any) -> list[float]:
    """Return the factor of the learning rate for each parameter."""
    factors: list[float] = []
    for part in tree.flatten(params, lambda part: isinstance(part, tree.TreeNode), where)[0]:
        if isinstance(part, tree.TreeNode):
            rates = part.rates()
            factors += [1.0] * len(part.parameters()._leaves) if rates is None else rates
        else:
            factors.append(1.0)
    return factors


def arrays_of(where: str, params: Any) -> tuple[tree.TreeDef, list[dlarray]]:
    """Return the structure of parameters without nodes, and their arrays, which are of floating point."""
    leaves, treedef = tree.flatten(params, function=where)
    return treedef, floating(where, "params", treedef, leaves)


def floating(where: str, name: str, treedef: tree.TreeDef, leaves: list[Any]) -> list[dlarray]:
    """Return the leaves of a container as arrays of floating point."""
    arrays = [as_array(leaf, where, name) for leaf in leaves]
    for number, array in enumerate(arrays):
        if array._data.dtype.kind != "f" and not is_half(array._data.dtype):
            raise DTypeError(
                f"{where}: {tree.paths(treedef, name)[number]} holds {array._data.dtype}, expected floating point; "
                "leave it out of the containers, or cast it."
            )
    return arrays


def arrays_like(
    where: str, treedef: tree.TreeDef, params: Any, arrays: list[dlarray], other: Any, name: str
) -> list[dlarray]:
    """Return the arrays of a container that goes with parameters, in their dtypes and with their labels.

    Args:
        where: the function on whose behalf errors are raised.
        treedef: the structure of the parameters.
        params: the parameters, without nodes.
        arrays: their arrays.
        other: the container.
        name: how errors call it.
    """
    column = leaves_like(where, treedef, params, "params", other, name)
    for number, (leaf, p) in enumerate(zip(column, arrays, strict=True)):
        if type(leaf) is dlarray and leaf._format == p._format and _are_alike(leaf._data, p._data):
            continue
        array = as_array(leaf, where, name)
        if array._data.shape != p._data.shape or array._format not in (None, p._format):
            raise DimsError(
                f"{where}: {tree.paths(treedef, name)[number]} is of {describe(array)}, but "
                f"{tree.paths(treedef, 'params')[number]} is of {describe(p)}; they must have the same "
                "sizes and labels."
            )
        column[number] = relabel(in_dtype(array, p._data.dtype), p._format)
    return column


def _are_alike(x: Any, y: Any) -> bool:
    return bool(x.shape == y.shape and x.dtype == y.dtype)


def leaves_like(
    where: str, treedef: tree.TreeDef, first: Any, first_name: str, other: Any, name: str
) -> list[Any]:
    """Return the leaves of a container, which must have the structure of the first one."""
    other, _ = tree.parameters(other, where)
    leaves, other_treedef = tree.flatten(other, function=where)
    if other_treedef != treedef:
        difference = tree.difference_of_trees(first, other, first_name, name)
        raise ArgumentError(
            f"{where}: {name} does not match {first_name}: {difference}. They must have the same containers and keys."
        )
    return leaves
