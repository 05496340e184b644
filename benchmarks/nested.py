# SPDX-License-Identifier: BSD-3-Clause
"""Containers of arrays, the same for every library: dicts and lists, with arrays as leaves."""

from collections.abc import Callable
from typing import Any


def leaves(tree: Any, path: str = "") -> dict[str, Any]:
    """Return the arrays of a container by their paths, dicts in the order of their sorted keys."""
    if isinstance(tree, dict):
        parts = [(f"{path}.{key}" if path else str(key), tree[key]) for key in sorted(tree)]
    elif isinstance(tree, list | tuple):
        parts = [(f"{path}[{number}]", item) for number, item in enumerate(tree)]
    else:
        return {path: tree}
    return {name: leaf for path, part in parts for name, leaf in leaves(part, path).items()}


def mapped(fun: Callable[[Any], Any], tree: Any) -> Any:
    """Return a container of ``fun(leaf)`` for all leaves."""
    if isinstance(tree, dict):
        return {key: mapped(fun, item) for key, item in tree.items()}
    if isinstance(tree, list | tuple):
        return type(tree)(mapped(fun, item) for item in tree)
    return fun(tree)
