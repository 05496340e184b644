# SPDX-License-Identifier: BSD-3-Clause
"""One call path for several traces, which reads captured state once for all of them.

Note [shared reads]
Where a branch goes another way, the call path of the latest trace finds out only after it has compared all that the
function reads besides its arguments, and the next path compares it once more. For a method that reads 16 names this
takes 2 us each time, and the program 0.2. So paths that are often taken by turns are written anew, as one function:

    def replay(args):
        try:
            v0 = g0.__self__
            if type(v0) is not g1: return MISS
            ...                                  what all of the traces compare
        except (AttributeError, ...):
            return MISS
        while True:
            try:
                if v7 is not g9: break           what some of them compare besides
            except (AttributeError, ...):
                break
            while True:                          the first of these
                ...
                result = enter(args, frame, v8)
                if result is MISS: break
                ...
                latest[0] = 0
                if next(g12) >= limits[0]: told(0)
                return result
            while True:                          the second one
                ...
            break
        while True:                              others
            ...
        return MISS

What a path reads gets a name by its text, in which constants have names by their identity, and sizes by their value. So
equal reads of two traces get one name. A statement is shared only where, in each trace, all tests that stand before it
and are of the same variables are shared too: nothing is read from an object before its type is known. Where traces draw
from generators, the path begins with lists of what a call has drawn (Note [shared draws] in shared_draws.py), and gives
it back before it returns MISS.
"""

import ast
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tracejit.call.path_text import PathText, path_function
from tracejit.call.result import MISS
from tracejit.call.served_counts import ServedCounts
from tracejit.call.shared_draws import SharedDraws, undo
from tracejit.call.signature import ArrayPart
from tracejit.errors import BoundsError
from tracejit.util.named_tuples import NamedTuple
from tracejit.util.parsing import parsed

_INDENT = "    "
_BEFORE, _MADE = "states_before", "draws_made"  # which no path has


class _Statement(NamedTuple):
    """A statement that reads or tests.

    text    of the value that is read, or of the condition under which the trace does not apply
    binds   the variables that a read binds; none for a test
    uses    those in the text
    """

    text: str
    binds: tuple[str, ...]
    uses: frozenset[str]

    def line(self, miss: str) -> str:
        """Return the source, with `miss` as the statement where a test fails."""
        if not self.binds:
            return f"if {self.text}: {miss}"
        return f"{', '.join(self.binds)}{',' if len(self.binds) > 1 else ''} = {self.text}"

    def precedes(self, other: "_Statement") -> bool:
        """Return whether it has to stay before a later statement: it binds or tests a variable of that."""
        return not other.uses.isdisjoint(self.binds or self.uses)


def shared(paths: Sequence[PathText], counts: ServedCounts) -> Callable[[Any], Any] | None:
    """Return a call path for several traces, or None if their paths cannot be joined.

    Args:
        paths: of the traces.
        counts: of the calls that it serves.
    """
    names = _Names(
        {"MISS": MISS, "latest": counts.latest, "limits": counts.limits, "told": counts.told,
         "BoundsError": BoundsError, "undo": undo}
    )  # fmt: skip
    draws = SharedDraws()
    try:
        members = [_Member(path, names, draws) for path in paths]
    except _UnknownFormError:
        return None
    common = _common([member.reads for member in members])
    errors = members[0].errors
    lines: list[str] = []
    alike: dict[tuple[_Statement, ...], list[int]] = {}
    for number, member in enumerate(members):
        alike.setdefault(tuple([read for read in member.reads if read not in common]), []).append(number)
    for own, numbers in alike.items():
        body = _tried([read.line("break") for read in own], errors, "break")
        for number in numbers:
            counted = names.constant("", counts.counts[number])
            after = [f"latest[0] = {number}", f"if next({counted}) >= limits[{number}]: told({number})"]
            body += _once(members[number].rest(after))
        lines += _once([*body, "break"]) if own else body
    # Where an index is out of range, the general way finds out whether the function handles the error.
    lines = [
        *_tried([read.line("return MISS") for read in common], errors, "return MISS"),
        *([f"{_BEFORE}, {_MADE} = [], []"] if any(path.draws for path in paths) else []),
        *_tried(lines, "BoundsError", "pass"),
        *([f"undo({_BEFORE})"] if any(path.draws for path in paths) else []),
        "return MISS",
    ]
    return path_function(lines, names.values)


def _tried(lines: Sequence[str], errors: str, otherwise: str) -> list[str]:
    if not lines:
        return []
    return ["try:", *[f"{_INDENT}{line}" for line in lines], f"except {errors}:", f"{_INDENT}{otherwise}"]


def _once(lines: Sequence[str]) -> list[str]:
    """Return statements in a block that "break" leaves."""
    return ["while True:", *[f"{_INDENT}{line}" for line in lines]]


def _common(members: Sequence[Sequence[_Statement]]) -> list[_Statement]:
    """Return the statements that can stand once for all members, in their order."""
    common: dict[_Statement, None] = {}
    for read in members[0]:
        if all(read in member and _is_known(read, member, common) for member in members):
            common[read] = None
    return [*common]


def _is_known(read: _Statement, member: Sequence[_Statement], common: dict[_Statement, None]) -> bool:
    """Return whether all that has to stay before a statement of a member is common."""
    return all(other in common for other in member[: member.index(read)] if other.precedes(read))


class _UnknownFormError(Exception):
    """A path has a statement that cannot be shared."""


class _Names:
    """The names of a function that is made of several ones.

    Args:
        values: the first globals.

    Attributes:
        values: all globals.
    """

    def __init__(self, values: dict[str, Any]) -> None:
        self.values = values
        self._constants: dict[int | ArrayPart, str] = {}
        self._variables: dict[str, str] = {}

    def constant(self, name: str, value: Any) -> str:
        """Return the name of an object: that which a path has for it, if it is a word that no other object has."""
        key = value if type(value) is ArrayPart else id(value)
        known = self._constants.get(key)
        if known is None:
            is_free = name.isalpha() and name not in self.values
            known = self._constants[key] = name if is_free else f"g{len(self._constants)}"
            self.values[known] = value
        return known

    def variable(self, text: str) -> str:
        """Return the name of what a text reads."""
        return self._variables.setdefault(text, f"v{len(self._variables)}")


class _Member(ast.NodeTransformer):
    """A path among several, in the names of all.

    Attributes:
        reads: what it reads and tests of captured state.
        errors: those that reading may raise where the trace does not apply.
    """

    def __init__(self, path: PathText, names: _Names, draws: SharedDraws) -> None:
        self._path = path
        self._own_names = path.names
        self._names = names
        self._variables: dict[str, str] = {}
        self._after: list[ast.stmt] = []
        self.errors = ""
        before, after = (parsed("\n".join(lines)).body for lines in (path.before, path.after))
        if path.draws is not None:
            self._own_names = {
                **path.names,
                "draw": draws.of(path.draws),
                "rejected": path.draws.reads.rejected,
            }
            assert isinstance(after[0], ast.Assign)
            assert isinstance(after[0].value, ast.Call)
            found, _ = after[0].value.args
            after[0].value.args = [ast.Name(_BEFORE, ast.Load()), ast.Name(_MADE, ast.Load()), found]
        # The inputs that were read come first.
        is_read = (
            bool(after) and isinstance(after[0], ast.Assign) and ast.unparse(after[0].targets[0]) == "more"
        )
        self._inputs = after[:is_read]
        self._rest = ast.Module([*before, *after[is_read:]], [])
        if any(isinstance(node, (ast.For, ast.While)) for node in ast.walk(self._rest)):
            raise _UnknownFormError  # which a break would leave
        self.reads = list(dict.fromkeys(self._read()))

    def _read(self) -> Iterator[_Statement]:
        for tried in parsed("\n".join(self._path.reads)).body:
            if not isinstance(tried, ast.Try):
                raise _UnknownFormError
            (handler,) = tried.handlers
            self.errors = ast.unparse(handler.type or ast.Name("Exception"))
            yield from map(self._statement, [node for node in tried.body if not isinstance(node, ast.Pass)])
        yield from map(self._statement, self._inputs)

    def _statement(self, node: ast.stmt) -> _Statement:
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            return self._bound(node.targets[0], *self._renamed(node.value))
        if not isinstance(node, ast.If) or node.orelse:
            raise _UnknownFormError
        text, uses = self._renamed(node.test)
        return _Statement(text, (), uses)

    def _renamed(self, node: ast.expr) -> tuple[str, frozenset[str]]:
        """Return the text of an expression, and the variables in it."""
        renamed = self.visit(node)
        names = {part.id for part in ast.walk(renamed) if isinstance(part, ast.Name)}
        return ast.unparse(renamed), frozenset(names.intersection(self._variables.values()))

    def _bound(self, target: ast.expr, text: str, uses: frozenset[str]) -> _Statement:
        if isinstance(target, ast.Name):
            bound = self._variables[target.id] = self._names.variable(text)
            return _Statement(text, (bound,), uses)
        if not isinstance(target, ast.Tuple) or not all(isinstance(part, ast.Name) for part in target.elts):
            raise _UnknownFormError
        parts = [part.id for part in target.elts if isinstance(part, ast.Name)]
        bounds = [self._names.variable(f"{text} {place} {len(parts)}") for place in range(len(parts))]
        self._variables |= dict(zip(parts, bounds, strict=True))
        return _Statement(text, tuple(bounds), uses)

    def rest(self, after: Sequence[str]) -> list[str]:
        """Return the statements after the reads, with some more before the result is returned."""
        self._after = parsed("\n".join(after)).body
        return ast.unparse(self.visit(self._rest)).splitlines()

    def visit_Name(self, node: ast.Name) -> ast.Name:
        """Give a name the one that it has in the whole."""
        if node.id in self._variables:
            return ast.Name(self._variables[node.id], node.ctx)
        if node.id in self._own_names and isinstance(node.ctx, ast.Load):
            return ast.Name(self._names.constant(node.id, self._own_names[node.id]), node.ctx)
        return node

    def visit_Return(self, node: ast.Return) -> list[ast.stmt]:
        """Go on to the next trace in place of a miss, and count a hit."""
        assert node.value is not None
        if isinstance(node.value, ast.Name) and self._own_names.get(node.value.id) is MISS:
            return [ast.Break()]
        result = ast.Name("result", ast.Load())
        is_named = isinstance(node.value, ast.Name) and node.value.id == "result"
        kept = ast.Assign([ast.Name("result", ast.Store())], self.visit(node.value), lineno=0)
        return [*([] if is_named else [kept]), *self._after, ast.Return(result)]
