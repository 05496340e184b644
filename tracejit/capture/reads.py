# SPDX-License-Identifier: BSD-3-Clause
"""The state that a function can read, as a record: access paths, their uses, and what else its code tells.

An access path is a root and the attributes and constant subscripts that follow it: ``self.layers[0].w``. The root is a
global name, a module that is imported inside the function, or a variable that has its value when the function starts:
a parameter, or a name of an enclosing function. Each use of a path says how much of its value matters. A value that is
passed on, iterated over or computed with is read as a whole. If a value is only called, written to or appended to, only
the path to it is read. In doubt, a path counts as read: a needless path costs one comparison in a replay.
"""

from typing import Any

from tracejit.util.named_tuples import NamedTuple

READ, TOUCH, WRITE, UPDATE, CHANGE, MOVE, PROBE, DELETE, LENGTH, TAKE, ASK = (
    "read",
    "touch",
    "write",
    "update",
    "change",
    "move",
    "probe",
    "delete",
    "length",
    "take",
    "ask",
)


# Methods of builtin containers that change them and return nothing of their contents; those that move elements.
MOVERS = frozenset({"appendleft", "extendleft", "insert"})
WRITERS = MOVERS | {"append", "add", "extend", "update", "clear", "discard"}


class AccessPath(NamedTuple):
    """A root and the steps from it.

    scope       of the root: "global", "module" or "local"
    name        of the root
    steps       ("attr", name) or ("item", constant)
    """

    scope: str
    name: str
    steps: tuple[tuple[str, Any], ...] = ()

    def then(self, kind: str, name: Any) -> "AccessPath":
        return self._replace(steps=(*self.steps, (kind, name)))


class Constant(NamedTuple):
    """A constant of the code."""

    value: Any


class Added(NamedTuple):
    """The right side of an augmented assignment.

    operator    as it is written: ``+=``
    operand     the right side, as far as it is known
    """

    operator: str
    operand: AccessPath | Constant | None


class Use(NamedTuple):
    """An access path and what is done with its value.

    how         READ: all of the value matters; TOUCH: only the path to it; WRITE: its last step is assigned to; UPDATE:
                it is read for that assignment only, as += does; CHANGE: elements of its value are assigned to; MOVE:
                they may move, as by a slice; PROBE: whether its last step exists; DELETE: its last step is deleted;
                LENGTH: it is passed to len(); TAKE: to a function such as random.sample, which takes elements out of
                it; ASK: to getattr() and the like with a computed name (asked.py, Note [attributes by name])
    line        of the instruction
    place       of the expression: its first and last line, its first and last column
    operator    whether it is an operand of an arithmetic operator or a comparison
    callee      the path of the function that it is an argument of
    is_index    whether it is indexed by something that is neither a constant nor a slice
    is_tested   whether it is tested for its truth
    addition    what an UPDATE adds
    """

    path: AccessPath
    how: str
    line: int
    place: Any
    operator: bool = False
    callee: AccessPath | None = None
    is_index: bool = False
    is_tested: bool = False
    addition: Added | None = None


class FreeVariable(NamedTuple):
    """The uses of a name of an enclosing function, by a function and those nested in it.

    is_read      whether its value matters
    is_assigned  whether it is assigned to, other than by += and the like
    additions    what those assignments add
    """

    is_read: bool = False
    is_assigned: bool = False
    additions: tuple[Added, ...] = ()


class SuperAttribute(NamedTuple):
    """An attribute of ``super()``.

    after       leads to the class after which it is looked for
    owner       leads to the object, or the class, whose attribute it is
    name        of the attribute
    line        of the instruction
    """

    after: AccessPath
    owner: AccessPath
    name: str
    line: int


class Comparison(NamedTuple):
    """A comparison of two objects by ``is``."""

    first: AccessPath
    second: AccessPath
    line: int


class Reads(NamedTuple):
    """The state that the code of one function can read.

    uses        of access paths
    supers      attributes of ``super()``
    identities  comparisons by ``is``
    names       attributes of untracked values
    probes      those of the names that an object may lack
    stored      attributes and items of untracked values that are assigned
    texts       constants that can be names of attributes
    modules     constants that can be names of modules
    marks       names of the functions and attributes that tell more than the values which they are used with
    free        what is done with each name of an enclosing function that is used here or in a nested function
    is_dynamic  whether attributes may be read by computed names
    catches     whether the function can catch an error, such as that for a missing argument
    branches_on_untracked
                whether an untracked value is compared, tested, used as a subscript or truncated to an integer
    extracts_untracked
                whether an untracked value is converted to a Python float, or by item() or tolist()
    tells_apart whether an untracked value is compared by ``is`` with anything but None
    named_at    the places of the calls of getattr() and the like whose names are constants, which the uses tell
    """

    uses: tuple[Use, ...]
    supers: tuple[SuperAttribute, ...]
    identities: tuple[Comparison, ...]
    names: frozenset[str]
    probes: frozenset[str]
    stored: frozenset[Any]
    texts: frozenset[str]
    modules: frozenset[str]
    marks: frozenset[str]
    free: dict[str, FreeVariable]
    is_dynamic: bool
    catches: bool
    branches_on_untracked: bool
    extracts_untracked: bool
    tells_apart: bool
    named_at: frozenset[int]
