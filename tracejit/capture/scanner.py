# SPDX-License-Identifier: BSD-3-Clause
"""An interpreter of the byte code of a function, which collects the uses of access paths.

Note [access paths]
The scanner interprets the instructions once, in the order in which they stand, with a stack of what is known of each
value. A jump empties the stack, and the paths on it count as read. An unknown instruction is described by its effect
on the height of the stack: what it may pop is read, and what it may push is untracked. Attributes of untracked values
(``for layer in self.layers: layer.w``) are collected as bare names.

Long because each opcode of Python 3.11 to 3.14 has a method or an alias.
"""

import dis
import sys
import types
from collections.abc import Callable, Sequence
from typing import Any

from tracejit.capture.reads import (
    ASK,
    CHANGE,
    DELETE,
    LENGTH,
    MOVE,
    PROBE,
    READ,
    TAKE,
    TOUCH,
    UPDATE,
    WRITE,
    WRITERS,
    AccessPath,
    Added,
    Comparison,
    Constant,
    SuperAttribute,
    Use,
)
from tracejit.util.named_tuples import NamedTuple


class _Super(NamedTuple):
    """A call of ``super()``: what leads to its arguments."""

    after: AccessPath
    owner: AccessPath


# Stack entries besides AccessPath and Constant; None is a value that does not matter.
_SLICE = object()
_UNTRACKED = object()  # an element, or the result of a call, that no access path leads to
_MADE, _MADE_BY_CALL = object(), object()  # a new object; what a call gives is untracked, too
# What makes a new object: instructions, and the names of functions and methods.
_MAKING = frozenset({
    "BUILD_LIST", "BUILD_MAP", "BUILD_SET", "BUILD_CONST_KEY_MAP", "LIST_EXTEND", "SET_UPDATE", "DICT_UPDATE",
    "BINARY_OP", "UNARY_NEGATIVE", "UNARY_INVERT",
})  # fmt: skip
_MAKERS = frozenset({
    "arange", "array", "copy", "empty", "empty_like", "eye", "full", "full_like", "identity", "linspace", "ones",
    "ones_like", "zeros", "zeros_like",
})  # fmt: skip
_CATCHING = frozenset({"AttributeError", "Exception", "BaseException", "suppress"})
_IGNORED = frozenset({
    "RESUME", "NOP", "CACHE", "PRECALL", "COPY_FREE_VARS", "MAKE_CELL", "EXTENDED_ARG", "TO_BOOL",
    "NOT_TAKEN", "RETURN_GENERATOR", "SETUP_ANNOTATIONS",
})  # fmt: skip
_ENDS = frozenset(
    {"RETURN_VALUE", "RETURN_CONST", "RERAISE", "RAISE_VARARGS", "JUMP_FORWARD", "JUMP_BACKWARD"}
)
_TO_INTEGER = frozenset(AccessPath("global", name) for name in ("int", "round", "bool", "hash"))
_TO_FLOAT = AccessPath("global", "float")
_IGNORE_ARGUMENTS = frozenset({AccessPath("global", "super"), AccessPath("global", "print")})
_SUPER, _GETATTR, _TYPE = [AccessPath("global", name) for name in ("super", "getattr", "type")]
_SETATTR, _DELATTR = AccessPath("global", "setattr"), AccessPath("global", "delattr")
_VARS, _DICT = AccessPath("global", "vars"), "__dict__"
_BY_NAME = frozenset({_GETATTR, AccessPath("global", "hasattr"), _SETATTR, _DELATTR})
_ASKING = _BY_NAME | {_VARS, AccessPath("global", "dir")}
_IGNORE_CONTENTS = frozenset(
    AccessPath("global", name)
    for name in ("len", "isinstance", "issubclass", "hasattr", "callable", "type", "id")
)
_LEN = AccessPath("global", "len")
_GETTERS = frozenset({"attrgetter", "methodcaller"})
# Functions that take elements out of what they get first, or by one of these names.
_TAKERS, _TAKEN = frozenset({"choice", "choices", "sample"}), frozenset({"population", "seq"})
_OPERATORS = ("BINARY_OP", "UNARY_", "COMPARE_OP")
_INDEX_TYPES = (int, str, bool, float, bytes, tuple, type(None))
_WRITER_STEPS = frozenset(("attr", name) for name in WRITERS)
# Functions of NumPy that write into their first argument.
_WRITING_STEPS = frozenset(
    (("attr", name),)
    for name in ("at", "copyto", "fill_diagonal", "place", "put", "put_along_axis", "putmask")
)
_HAS_VARARGS, _HAS_KEYWORDS = 4, 8  # flags of code


class _UntrackedVariable(NamedTuple):
    """A variable that no access path leads to."""

    name: str


class _UntrackedAttribute(NamedTuple):
    """An attribute of something that no access path leads to."""

    name: str


class Scanner:
    """The interpreter of Note [access paths]: a method ``visit_...`` for each opcode.

    Long because it has thirty such methods, none above twenty lines.
    """

    def __init__(self, code: types.CodeType) -> None:
        self.uses: list[Use] = []
        self.supers: list[SuperAttribute] = []
        self.identities: list[Comparison] = []
        self.names: set[str] = set()
        self.probes: set[str] = set()
        self.stored: set[Any] = set()  # attributes and items of untracked values
        self._stored_in: list[tuple[str, Any]] = []  # variables, and items of theirs
        self._kept: set[str] = set()  # variables that hold something else than new objects
        self.computes_names = False  # of attributes, where no call of getattr() and the like shows them
        self.named_at: set[int] = set()
        self.catches = "suppress" in code.co_names  # errors about missing attributes
        self.branches_on_untracked = False
        self.extracts_untracked = False
        self.tells_apart = False
        self.matches_classes = False  # by the attributes that __match_args__ names
        self._stack: list[Any] = []
        count = code.co_argcount + code.co_kwonlyargcount
        count += bool(code.co_flags & _HAS_VARARGS) + bool(code.co_flags & _HAS_KEYWORDS)
        self._cells = {*code.co_cellvars, *code.co_freevars}
        self._given = {*code.co_varnames[:count], *code.co_freevars}  # variables with a value at the start
        self._constants = code.co_consts
        self._instructions: list[dis.Instruction] = []
        self._jump_targets: set[int] = set()  # positions in that list
        for instruction in dis.get_instructions(code):
            if instruction.is_jump_target:
                self._jump_targets.add(len(self._instructions))
            if instruction.opname not in _IGNORED:
                self._instructions.append(instruction)
        # Of the instruction that is interpreted.
        self._at = 0
        self._line = code.co_firstlineno
        self._place: Any = None
        self._is_operator = False
        self._callee: AccessPath | None = None
        self._is_index = False
        self._is_tested = False
        self._keywords: tuple[str, ...] = ()  # of the call that follows
        self._updated_at = -1  # where what the last augmented assignment gave is assigned
        # A variable that exactly one instruction assigns stands for the path that it was assigned.
        assigned = _all_assigned(self._instructions)
        self._assigned_once = {name for name in assigned if assigned.count(name) == 1} - self._given
        globals_ = {step.argval for step in self._instructions if step.opname == "STORE_GLOBAL"}
        self._rebound = globals_ | (self._given & {*assigned})
        self._aliases: dict[str, Any] = {}
        self._read: set[str] = set()  # variables that were loaded
        # Paths that this function assigns before anything else can have happened to them.
        self._own: set[AccessPath] = set()
        self._is_straight = True  # no jump, and no target of one, so far
        # Names that the body of a class has set by now.
        self._named = {"__name__", "__qualname__", "__module__", "__annotations__"}
        first = code.co_varnames[0] if code.co_argcount else ""
        is_known = bool(first) and first not in self._rebound
        self._can_catch = not _CATCHING.isdisjoint(code.co_names)
        self._super = (
            _Super(AccessPath("local", "__class__"), AccessPath("local", first)) if is_known else None
        )

    @property
    def opnames(self) -> set[str]:
        """The names of the instructions."""
        return {instruction.opname for instruction in self._instructions}

    def run(self) -> None:
        for at, instruction in enumerate(self._instructions):
            name = instruction.opname
            if at in self._jump_targets:
                self._empty()
                self._is_straight = False
            positions = instruction.positions
            if positions is not None and positions.lineno is not None:
                self._line = positions.lineno
            self._place = positions and tuple(positions)
            self._at = at
            self._is_operator = name.startswith(_OPERATORS) and instruction.argrepr != "[]"
            _VISITORS.get(name, Scanner.visit_unknown)(self, instruction)
            self._is_operator = False
            is_making = name in _MAKING and instruction.argrepr != "[]" and not _is_augmented(instruction)
            if is_making and self._stack[-1:] == [None]:
                self._stack[-1] = _MADE
            if name in _ENDS:
                self._empty()
            if "JUMP" in name:
                self._is_straight = False
            self.matches_classes |= name == "MATCH_CLASS"
            is_bare = name == "PUSH_EXC_INFO" and self._next_is("POP_TOP")
            self.catches |= is_bare or (name in ("CHECK_EXC_MATCH", "CHECK_EG_MATCH") and self._can_catch)
        self._empty()
        self.stored |= {key for name, key in self._stored_in if name in self._kept}
        for name in self._aliases.keys() - self._read:
            entry = self._aliases[name]
            if (
                type(entry) is AccessPath and entry.steps
            ):  # of an array the last step is an operation, as in w.T
                self._use(entry._replace(steps=entry.steps[:-1]), TOUCH)

    def _use(self, entry: Any, how: str = READ, addition: Added | None = None) -> None:
        if type(entry) is AccessPath:
            self.computes_names |= how == READ and _last(entry) in _GETTERS  # map(attrgetter, names)
            for count in range(len(entry.steps) + 1):
                if entry._replace(steps=entry.steps[:count]) in self._own:
                    self.names.update(name for kind, name in entry.steps[count:] if kind == "attr")
                    return
            use = Use(
                entry,
                how,
                self._line,
                self._place,
                self._is_operator,
                self._callee,
                self._is_index,
                self._is_tested,
                addition,
            )
            self.uses.append(use)

    def _empty(self) -> None:
        for entry in self._stack:
            self._use(entry)
        self._stack.clear()

    def _take(self) -> Any:
        """Pop an entry that the instruction itself does not read."""
        return self._stack.pop() if self._stack else None

    def _pop(self, how: str = READ) -> Any:
        entry = self._take()
        self._use(entry, how)
        return entry

    def _push(self, *entries: Any) -> None:
        self._stack.extend(entries)

    def _variable(self, name: str) -> Any:
        if name in self._given:
            return AccessPath("local", name)
        self._read.add(name)
        return self._aliases.get(name, _UntrackedVariable(name))

    def _local(self, name: str) -> Any:
        """Return what a variable is, None for a cell: from Python 3.13 on one is loaded so for an inner function."""
        return None if name in self._cells else self._variable(name)

    def _next_is(self, opname: str) -> bool:
        following = self._instructions[self._at + 1 : self._at + 2]
        return any(instruction.opname == opname for instruction in following)

    # Constants and variables

    def visit_load_const(self, instruction: dis.Instruction) -> None:
        self._push(Constant(instruction.argval))

    visit_load_small_int = visit_load_const

    def visit_load_fast(self, instruction: dis.Instruction) -> None:
        self._push(self._local(instruction.argval))

    visit_load_fast_check = visit_load_fast_borrow = visit_load_fast

    def visit_load_deref(self, instruction: dis.Instruction) -> None:
        self._push(self._variable(instruction.argval))

    visit_load_classderef = visit_load_deref

    def visit_load_fast_load_fast(self, instruction: dis.Instruction) -> None:
        self._push(*map(self._local, instruction.argval))

    visit_load_fast_borrow_load_fast_borrow = visit_load_fast_load_fast

    def visit_load_from_dict_or_deref(self, instruction: dis.Instruction) -> None:
        self._pop()
        self.visit_load_deref(instruction)

    def visit_load_global(self, instruction: dis.Instruction) -> None:
        self._push(AccessPath("global", instruction.argval))
        self.computes_names |= (
            self._stack[-1] in _ASKING and not (instruction.arg or 0) & 1
        )  # map(getattr, ...)
        if (instruction.arg or 0) & 1:
            self._push(None)
            if instruction.argrepr.startswith("NULL"):  # below the function, so that attributes can follow
                self._stack[-2:] = self._stack[:-3:-1]

    def visit_load_name(self, instruction: dis.Instruction) -> None:
        name = instruction.argval
        self._push(None if name in self._named else AccessPath("global", name))
        self.computes_names |= self._stack[-1] in _ASKING

    def visit_load_from_dict_or_globals(self, instruction: dis.Instruction) -> None:
        self._pop()
        self.visit_load_name(instruction)

    def visit_push_null(self, instruction: dis.Instruction) -> None:
        self._push(None)

    visit_load_closure = visit_load_fast_and_clear = visit_push_null

    def visit_store_fast(self, instruction: dis.Instruction) -> None:
        self._store(instruction.argval)

    def visit_store_fast_store_fast(self, instruction: dis.Instruction) -> None:
        for name in instruction.argval:
            self._store(name)

    def visit_store_fast_load_fast(self, instruction: dis.Instruction) -> None:
        stored, loaded = instruction.argval
        self._store(stored)
        self._push(self._local(loaded))

    def visit_store_global(self, instruction: dis.Instruction) -> None:
        self._pop()
        self._write(AccessPath("global", instruction.argval))

    def visit_store_deref(self, instruction: dis.Instruction) -> None:
        self._pop()
        if instruction.argval in self._given:
            self._write(AccessPath("local", instruction.argval))

    def _store(self, name: str) -> None:
        entry = self._take()
        if entry is not _MADE and entry is not _MADE_BY_CALL:
            self._kept.add(name)
        if name in self._assigned_once and type(entry) in (AccessPath, _Super):
            self._aliases[name] = entry
        else:
            self._use(entry)
        if name in self._given:
            # The parameter has another value from here on, or had it in the last round of a loop.
            self._use(AccessPath("local", name), READ)

    def _write(self, target: AccessPath) -> None:
        if self._at == self._updated_at:
            return
        size = len(target.steps)
        paths = [*(use.path for use in self.uses), *self._aliases.values(), *self._stack]
        was_used = any(
            type(path) is AccessPath and path._replace(steps=path.steps[:size]) == target for path in paths
        )
        self._use(target, WRITE)
        if self._is_straight and not was_used:
            self._own.add(target)

    def _delete(self, target: AccessPath) -> None:
        self._use(target, DELETE)
        self._own.discard(target)

    # Attributes, items and modules

    def visit_load_attr(self, instruction: dis.Instruction) -> None:
        self._push(self._attribute(self._take(), instruction.argval))
        if "NULL|self" in instruction.argrepr:
            self._push(None)

    def visit_load_method(self, instruction: dis.Instruction) -> None:
        self._push(self._attribute(self._take(), instruction.argval), None)

    def visit_load_super_attr(self, instruction: dis.Instruction) -> None:
        owner, after = self._pop(TOUCH), self._pop(TOUCH)
        self._pop(TOUCH)
        is_known = type(owner) is AccessPath and type(after) is AccessPath
        self._push(self._attribute(_Super(after, owner) if is_known else None, instruction.argval))
        if "NULL|self" in instruction.argrepr:
            self._push(None)

    def visit_store_attr(self, instruction: dis.Instruction) -> None:
        owner = self._pop(TOUCH)
        self._pop()
        if type(owner) is AccessPath:
            self._write(owner.then("attr", instruction.argval))
        else:
            self.stored.add(instruction.argval)

    def visit_binary_subscr(self, instruction: dis.Instruction) -> None:
        key = self._pop()
        self.branches_on_untracked |= _is_untracked(key)
        owner = self._take()
        if type(owner) is AccessPath and type(key) is Constant and type(key.value) in _INDEX_TYPES:
            self._push(owner.then("item", key.value))
        else:
            self._is_index = key is not _SLICE
            self._use(owner)
            self._is_index = False
            self._push(_UNTRACKED)

    def visit_store_subscr(self, instruction: dis.Instruction) -> None:
        key, owner = self._pop(), self._pop(TOUCH)
        self._pop()
        if type(owner) is AccessPath and type(key) is Constant and type(key.value) in _INDEX_TYPES:
            self._write(owner.then("item", key.value))
        else:
            self._use(owner, CHANGE)
            if key is _SLICE:
                self._use(owner, MOVE)
            if type(key) is Constant and type(owner) is _UntrackedVariable and owner.name not in self._cells:
                self._stored_in.append((owner.name, key.value))
            elif type(key) is Constant and type(owner) is not AccessPath:
                self.stored.add(key.value)

    def visit_store_slice(self, instruction: dis.Instruction) -> None:
        self._pop()
        self._pop()
        owner = self._pop(TOUCH)
        self._use(owner, CHANGE)
        self._use(owner, MOVE)
        self._pop()

    def visit_delete_subscr(self, instruction: dis.Instruction) -> None:
        key, owner = self._pop(), self._pop(TOUCH)
        if type(owner) is AccessPath and type(key) is Constant and type(key.value) in _INDEX_TYPES:
            self._delete(owner.then("item", key.value))
        else:
            self._use(owner, MOVE)

    def visit_delete_attr(self, instruction: dis.Instruction) -> None:
        owner = self._pop(TOUCH)
        if type(owner) is AccessPath:
            self._delete(owner.then("attr", instruction.argval))
        else:
            self.probes.add(instruction.argval)

    def visit_delete_global(self, instruction: dis.Instruction) -> None:
        self._delete(AccessPath("global", instruction.argval))

    def visit_delete_deref(self, instruction: dis.Instruction) -> None:
        if instruction.argval in self._given:
            self._delete(AccessPath("local", instruction.argval))

    def visit_build_slice(self, instruction: dis.Instruction) -> None:
        for _ in range(instruction.arg or 0):
            self._pop()
        self._push(_SLICE)

    def visit_build_list(self, instruction: dis.Instruction) -> None:
        for _ in range(instruction.arg or 0):
            self._pop()
        self._push(None)

    visit_build_tuple = visit_build_set = visit_build_string = visit_build_list

    def visit_build_map(self, instruction: dis.Instruction) -> None:
        for _ in range(2 * (instruction.arg or 0)):
            self._pop()
        self._push(None)

    def visit_import_name(self, instruction: dis.Instruction) -> None:
        self._pop()
        self._pop()
        name: str = instruction.argval
        module = AccessPath("module", name if self._next_is("IMPORT_FROM") else name.partition(".")[0])
        self._use(module, TOUCH)
        self._push(module)

    def visit_import_from(self, instruction: dis.Instruction) -> None:
        module = self._stack[-1] if self._stack else None
        self._push(self._attribute(module, instruction.argval))

    def _attribute(self, owner: Any, name: str) -> Any:
        if type(owner) is AccessPath:
            if owner.name in self._rebound:
                self.names.add(name)
                self.computes_names |= name == _DICT
            return owner.then("attr", name)
        self.names.add(name)
        self.computes_names |= name == _DICT
        if type(owner) is _Super:
            self.supers.append(SuperAttribute(*owner, name, self._line))
        self.extracts_untracked |= name in {"item", "tolist"}
        return _UntrackedAttribute(name)

    # Operators, branches and the stack

    def visit_binary_op(self, instruction: dis.Instruction) -> None:
        if instruction.argrepr == "[]":
            self.visit_binary_subscr(instruction)
        elif instruction.argrepr.endswith("="):
            self._augmented(instruction)
        else:
            self.visit_unknown(instruction)

    def _augmented(self, instruction: dis.Instruction) -> None:
        """Interpret ``target += ...``, which reads the target for the assignment only."""
        operand = self._pop()
        target = self._take()
        at = self._at + 1
        while at < len(self._instructions) and self._instructions[at].opname == "SWAP":
            at += 1
        if at < len(self._instructions) and _stores(self._instructions[at], target):
            self._updated_at = at
            is_known = type(operand) in (AccessPath, Constant)
            addition = Added(instruction.argrepr, operand if is_known else None)
            self._use(target, UPDATE, addition)
        else:
            self._use(target)
            self._use(target, CHANGE)
        self._push(None)

    def visit_compare_op(self, instruction: dis.Instruction) -> None:
        self.branches_on_untracked |= any(map(_is_untracked, self._stack[-2:]))
        self._pop()
        self._pop()
        self._push(None)

    visit_contains_op = visit_compare_op

    def visit_is_op(self, instruction: dis.Instruction) -> None:
        second, first = self._pop(TOUCH), self._pop(TOUCH)
        if type(first) is AccessPath and type(second) is AccessPath:
            self.identities.append(Comparison(first, second, self._line))
        elif not any(type(entry) is Constant and entry.value is None for entry in (first, second)):
            self.tells_apart = True
        self._push(None)

    def visit_pop_top(self, instruction: dis.Instruction) -> None:
        self._pop(TOUCH)

    visit_pop_jump_if_none = visit_pop_jump_if_not_none = visit_pop_top
    # Python 3.11:
    visit_pop_jump_forward_if_none = visit_pop_jump_forward_if_not_none = visit_pop_top
    visit_pop_jump_backward_if_none = visit_pop_jump_backward_if_not_none = visit_pop_top

    def visit_pop_jump_if_true(self, instruction: dis.Instruction) -> None:
        self.branches_on_untracked |= any(map(_is_untracked, self._stack[-1:]))
        self._is_tested = True
        self._pop()
        self._is_tested = False

    visit_pop_jump_if_false = visit_pop_jump_if_true
    # Python 3.11:
    visit_pop_jump_forward_if_true = visit_pop_jump_forward_if_false = visit_pop_jump_if_true
    visit_pop_jump_backward_if_true = visit_pop_jump_backward_if_false = visit_pop_jump_if_true

    def visit_return_value(self, instruction: dis.Instruction) -> None:
        self._pop()

    def visit_store_name(self, instruction: dis.Instruction) -> None:
        self._pop()
        if self._is_straight:
            self._named.add(instruction.argval)

    def visit_copy(self, instruction: dis.Instruction) -> None:
        depth = instruction.arg or 0
        self._push(self._stack[-depth] if len(self._stack) >= depth else None)

    def visit_swap(self, instruction: dis.Instruction) -> None:
        depth = instruction.arg or 0
        if len(self._stack) >= depth:
            self._stack[-1], self._stack[-depth] = self._stack[-depth], self._stack[-1]
        else:
            self._empty()

    def visit_unknown(self, instruction: dis.Instruction) -> None:
        effect = dis.stack_effect(instruction.opcode, instruction.arg, jump=False)
        for _ in range(max(0, -effect) + 1):
            self._pop()
        self._push(*[None] * (max(0, effect) + 1))

    # Calls

    def visit_call(self, instruction: dis.Instruction) -> None:
        self._call(instruction.arg or 0)

    def visit_call_kw(self, instruction: dis.Instruction) -> None:
        names = self._take()
        self._keywords = names.value if type(names) is Constant else ()
        self._call(instruction.arg or 0)

    def visit_kw_names(self, instruction: dis.Instruction) -> None:
        self._keywords = self._constants[instruction.arg or 0]  # Python 3.11 and 3.12

    def visit_call_function_ex(self, instruction: dis.Instruction) -> None:
        # Positional arguments, then keywords; Python 3.14 always pushes both.
        self._call(2 if sys.version_info >= (3, 14) else 1 + ((instruction.arg or 0) & 1), is_spread=True)

    def _call(self, above: int, is_spread: bool = False) -> None:
        """Interpret a call with `above` entries on the stack above the function and its self or NULL."""
        at = len(self._stack) - above
        arguments, below = self._stack[max(at, 0) :], self._stack[max(at - 2, 0) : max(at, 0)]
        callee = next((entry for entry in below if type(entry) is AccessPath), None)
        methods = [entry.name for entry in below if type(entry) is _UntrackedAttribute]
        methods += [name for _, name in (callee.steps[-1:] if callee is not None else ())]
        result = _UNTRACKED if _MAKERS.isdisjoint(methods) else _MADE_BY_CALL
        if callee is not None and callee.scope == "local" and callee.name in self._rebound:
            callee = None  # the variable may hold another function by now
        if callee == _TO_FLOAT:
            self.extracts_untracked |= any(type(entry) not in (AccessPath, Constant) for entry in arguments)
        if callee in _TO_INTEGER:
            self.branches_on_untracked |= any(map(_is_untracked, arguments))
        self.computes_names |= callee in _ASKING and is_spread
        is_one = above == 1 and not is_spread and type(arguments[0] if arguments else None) is AccessPath
        if callee == _VARS and is_one:
            self.named_at.add(self._instructions[self._at].offset)
            self._use(arguments[0], TOUCH)
            self._stack[at] = None
        elif callee is not None and callee in _ASKING and arguments and not is_spread:
            self._attribute_by_name(callee, arguments, at)
        self._callee = None if is_spread else callee  # which gets the elements, in a tuple of its own
        keywords, self._keywords = self._keywords, ()
        self._note_getter(callee, methods, arguments, keywords, is_spread)
        is_taker = callee is not None and _last(callee) in _TAKERS
        if (is_taker or callee == _LEN) and at >= 0 and not is_spread:
            named = [above - len(keywords) + i for i, name in enumerate(keywords) if name in _TAKEN]
            place = 0 if above > len(keywords) else named[0] if named else above
            if place < above:
                self._use(self._stack[at + place], TAKE if is_taker else LENGTH)
                self._stack[at + place] = None
        if "out" in keywords and len(arguments) >= len(keywords):
            self._use(arguments[keywords.index("out") - len(keywords)], CHANGE)
        if callee is not None and callee.steps[-1:] in _WRITING_STEPS and arguments:
            self._use(arguments[0], CHANGE)
        for _ in range(above):
            self._pop(TOUCH if callee in _IGNORE_ARGUMENTS else READ)
        self._callee = None
        is_dropped = self._next_is("POP_TOP")
        for entry in (self._take(), self._take()):
            if type(entry) is AccessPath:
                is_writer = is_dropped and entry.steps and entry.steps[-1] in _WRITER_STEPS
                self._use(entry, WRITE if is_writer else TOUCH)
        if callee == _SUPER:
            is_given = len(arguments) == 2 and all(type(entry) is AccessPath for entry in arguments)
            proxy = _Super(*arguments) if is_given else self._super
            self._push(proxy if is_given or not arguments else _UNTRACKED)
        elif callee == _VARS and is_one:
            self._push(self._attribute(arguments[0], _DICT))
        elif callee == _TYPE and len(arguments) == 1 and type(arguments[0]) is AccessPath:
            self._push(self._attribute(arguments[0], "__class__"))
        else:
            self._push(None if callee in _IGNORE_CONTENTS else result)

    def _note_getter(
        self,
        callee: AccessPath | None,
        methods: list[str],
        arguments: list[Any],
        keywords: tuple[str, ...],
        is_spread: bool,
    ) -> None:
        """Interpret a call that may make an attrgetter or a methodcaller, which reads attributes of other objects."""
        name = callee.name if callee is not None and not callee.steps else (*methods, "")[0]
        if name not in _GETTERS:
            return
        texts = arguments if name == "attrgetter" else arguments[:1]
        if is_spread or keywords or not texts or not all(type(text) is Constant for text in texts):
            self.computes_names = True
            return
        names = {part for text in texts for part in str(text.value).split(".")}
        self.names |= names
        self.probes |= names

    def _attribute_by_name(self, callee: AccessPath, arguments: list[Any], at: int) -> None:
        """Interpret a call of getattr(), vars() and the like, whose arguments are on the stack from `at` on."""
        owner, name = (*arguments, None)[:2]
        if callee not in _BY_NAME or type(name) is not Constant or type(name.value) is not str:
            if type(owner) is AccessPath:
                self._callee = callee
                self._use(owner, ASK)
                self._stack[at] = None
            return
        is_change = callee in (_SETATTR, _DELATTR)
        if not is_change or type(owner) is AccessPath:
            self.named_at.add(self._instructions[self._at].offset)
        if is_change:
            if type(owner) is AccessPath:
                change = self._write if callee == _SETATTR else self._delete
                change(owner.then("attr", name.value))
        elif type(owner) is AccessPath:
            self._use(self._attribute(owner, name.value), READ if callee == _GETATTR else PROBE)
            self._use(owner, TOUCH)
            self._stack[at] = None
        else:
            self._attribute(owner, name.value)
            self.probes.add(name.value)


_VISITORS: dict[str, Callable[[Scanner, dis.Instruction], None]] = {
    name.removeprefix("visit_").upper(): visitor
    for name, visitor in vars(Scanner).items()
    if name.startswith("visit_")
}


def _last(path: AccessPath) -> Any:
    """Return the last name of an access path."""
    return path.steps[-1][1] if path.steps else path.name


def _is_untracked(entry: Any) -> bool:
    return entry is _UNTRACKED or entry is _MADE_BY_CALL


def _assigned(instruction: dis.Instruction) -> tuple[str, ...]:
    """Return the variables that an instruction assigns."""
    name = instruction.opname
    value: Any = instruction.argval
    if name == "STORE_FAST_STORE_FAST":
        return (value[0], value[1])
    if name == "STORE_FAST_LOAD_FAST":
        return (value[0],)
    return (value,) if name in ("STORE_FAST", "DELETE_FAST", "LOAD_FAST_AND_CLEAR", "STORE_DEREF") else ()


def _all_assigned(instructions: Sequence[dis.Instruction]) -> list[str]:
    """Return the variables that instructions assign, as often as they do.

    What += gives of an array is that array, so that its assignment is none.
    """
    return [
        name
        for before, instruction in zip([None, *instructions], instructions, strict=False)
        for name in (() if _is_augmented(before) else _assigned(instruction))
    ]


def _is_augmented(instruction: dis.Instruction | None) -> bool:
    """Return whether an instruction is the operator of an augmented assignment."""
    return instruction is not None and instruction.opname == "BINARY_OP" and instruction.argrepr.endswith("=")


def _stores(instruction: dis.Instruction, target: Any) -> bool:
    """Return whether an instruction assigns to an access path."""
    if type(target) is not AccessPath:
        return False
    if instruction.opname == "STORE_GLOBAL":
        return target == AccessPath("global", instruction.argval)
    if instruction.opname == "STORE_DEREF":
        return target == AccessPath("local", instruction.argval)
    if instruction.opname == "STORE_ATTR":
        return target.steps[-1:] == (("attr", instruction.argval),)
    return instruction.opname == "STORE_SUBSCR" and target.steps != () and target.steps[-1][0] == "item"
