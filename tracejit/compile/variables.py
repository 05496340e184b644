# SPDX-License-Identifier: BSD-3-Clause
"""Separate names for the parts of a variable that share no values.

Note [parts of a variable]
A variable is a `tile` of ten vectors in one loop and of one vector in another. Numba would need a name for each
assignment then, which doubles its time. A part of a variable begins with a plain assignment, `tile = ...`, in a block
(the body of a loop or branch) and goes on until the next plain assignment in this block, or to its end. The variable is
taken apart if its parts contain all its reads and writes. Then no value goes from one part to another: each part begins
with a value of its own whenever its block runs. So each part may have a name and a type of its own.
"""

import ast
from collections import Counter
from collections.abc import Iterator, Sequence

_WITH_NAMES = (ast.FunctionDef, ast.Lambda, ast.comprehension, ast.Global, ast.Nonlocal)
"""Syntax that gives names a meaning of its own; no kernel has it."""


def parted(definition: ast.FunctionDef) -> ast.FunctionDef:
    """Give each part of a variable a name of its own, in place, and return the definition.

    Args:
        definition: a function of plain assignments, loops and branches, as kernels are.
    """
    nodes = [*ast.walk(definition)]
    if any(isinstance(node, _WITH_NAMES) for node in nodes[1:]):
        return definition
    names = [node for node in nodes if isinstance(node, ast.Name)]
    taken = {name.id for name in names} | {argument.arg for argument in definition.args.args}
    mentions: dict[str, list[ast.Name]] = {}
    for name in names:
        mentions.setdefault(name.id, []).append(name)
    assigned = Counter(name.id for node in nodes if isinstance(node, ast.Assign) for name in _assigned(node))
    find = _Mentions()
    for variable, times in assigned.items():
        if times < 2:
            continue
        found = mentions[variable]
        parts = [*find.parts(definition.body, variable)]
        if len(parts) < 2 or sum(map(len, parts)) < len(found):
            continue
        for number, part in enumerate(parts[1:], 1):
            own = f"{variable}_{number}"
            while own in taken:
                own += "_"
            taken.add(own)
            for name in part:
                name.id = own
    return definition


def _assigned(statement: ast.Assign) -> list[ast.Name]:
    """Return the variables that an assignment sets."""
    parts = [part for target in statement.targets for part in (getattr(target, "elts", None) or [target])]
    return [part for part in parts if isinstance(part, ast.Name)]


class _Mentions:
    """Finds where variables are mentioned; each node is searched once, for all of them."""

    def __init__(self) -> None:
        self._by_node: dict[ast.AST, dict[str, list[ast.Name]]] = {}

    def of(self, node: ast.AST, variable: str) -> Sequence[ast.Name]:
        """Return the mentions of a variable in a node, by the name that it has in the text."""
        return self._names(node).get(variable, ())

    def _names(self, node: ast.AST) -> dict[str, list[ast.Name]]:
        names = self._by_node.get(node)
        if names is None:
            names = self._by_node[node] = {}
            if isinstance(node, ast.Name):
                names[node.id] = [node]
            for child in ast.iter_child_nodes(node):
                if isinstance(child, ast.stmt):
                    for name, mentions in self._names(child).items():
                        names.setdefault(name, []).extend(mentions)
                else:
                    for part in ast.walk(child):
                        if isinstance(part, ast.Name):
                            names.setdefault(part.id, []).append(part)
        return names

    def parts(self, block: Sequence[ast.stmt], variable: str) -> Iterator[list[ast.Name]]:
        """Yield the parts of a variable in a block; what is in none of them is left out."""
        part: list[ast.Name] | None = None
        for statement in block:
            mentioned = self.of(statement, variable)
            if not mentioned:
                continue
            if self._assigns(statement, variable):
                if part is not None:
                    yield part
                part = []
            if part is not None:
                part += mentioned
            elif (
                isinstance(statement, ast.For)
                and not statement.orelse
                and self.of(statement.target, variable)
            ):
                # Each turn of the loop begins with a value of its own.
                if not self.of(statement.iter, variable):
                    yield [*mentioned]
            elif isinstance(statement, ast.For | ast.While | ast.If):
                yield from self.parts(statement.body, variable)
                yield from self.parts(statement.orelse, variable)
        if part is not None:
            yield part

    def _assigns(self, statement: ast.stmt, variable: str) -> bool:
        """Return whether a statement gives a variable a value that does not come from its former one."""
        if not isinstance(statement, ast.Assign):
            return False
        times = sum(name.id == variable for name in _assigned(statement))
        return times > 0 and times == len(self.of(statement, variable))
