# SPDX-License-Identifier: BSD-3-Clause
"""What a Python function can read besides what it computes, found in its byte code.

A chain is a root, which is a global name, a module that is imported inside, or a variable that has its value when the
function starts (a parameter, or a name of an enclosing function), and the attributes and constant subscripts that
follow it: ``self.layers[0].w``. For each chain it matters how far its value goes: where it is passed on,
iterated over or computed with, all of it is read; where it is only called, written to or appended to, nothing of
it but the way there. Where in doubt it is read: a chain too many costs a comparison.

Note [chains]
One pass over the instructions with a stack of what is known, in the order in which they stand. Jumps empty the
stack, whose chains are then read. What an unknown instruction does is taken from its effect on the height
of the stack: what it may have popped is read, and what it may have pushed is unknown. Attributes of something unknown
(``for layer in self.layers: layer.w``) are collected as names.
"""

import dis
import re
import sys
import types
from functools import lru_cache
from typing import Any, NamedTuple

READ, TOUCH, WRITE = "read", "touch", "write"

# Methods of builtin containers that change them and tell nothing of what is in them.
WRITERS = frozenset(
    {"append", "appendleft", "add", "extend", "extendleft", "insert", "update", "clear", "discard"}
)


class Chain(NamedTuple):
    """A root and the steps from it: ("attr", name) or ("item", constant)."""

    kind: str  # "global", "module" or "local"
    name: str
    steps: tuple[tuple[str, Any], ...] = ()

    def then(self, kind: str, name: Any) -> "Chain":
        return self._replace(steps=(*self.steps, (kind, name)))


class Use(NamedTuple):
    """A chain and what is done with its value.

    how         "read"; "touch": nothing of it is read but the way there; "write": its last step is assigned to, or
                read for that alone
    place       from where to where the expression reaches that does it
    operator    whether it is an operand of an arithmetic operator or a comparison
    is_index    whether it is indexed by something that is no constant and no slice
    callee      what it is an argument of, if a chain leads to that
    """

    chain: Chain
    how: str
    line: int
    place: Any
    operator: bool = False
    callee: Chain | None = None
    is_index: bool = False


class Reads(NamedTuple):
    """What the code of one function can read.

    `names` are attributes of values that no chain leads to. `free` tells for each name of an enclosing function whether
    it is read, by this function or those inside it, or only written. `is_dynamic`: attributes may be read by names
    that are computed. `decides`: something unknown is compared, counted by, or made a whole number; `takes`: it is
    made a number of Python's, which is not told from others.
    """

    uses: tuple[Use, ...]
    names: frozenset[str]
    free: dict[str, str]
    is_dynamic: bool
    decides: bool
    takes: bool


class _Constant(NamedTuple):
    value: Any


_SLICE = object()
_DERIVED = object()  # taken of, or given by, something unknown


_DYNAMIC = frozenset({"getattr", "hasattr", "vars", "__dict__", "attrgetter"})
_BY_TEXT = frozenset({"globals", "eval", "exec"})
_WORD = re.compile(r"[A-Za-z_]\w*")
_IGNORED = frozenset({
    "RESUME", "NOP", "CACHE", "PRECALL", "KW_NAMES", "COPY_FREE_VARS", "MAKE_CELL", "EXTENDED_ARG", "TO_BOOL",
    "NOT_TAKEN", "RETURN_GENERATOR", "SETUP_ANNOTATIONS",
})  # fmt: skip
_POPS = frozenset({"STORE_NAME", "RETURN_VALUE", "POP_JUMP_IF_TRUE", "POP_JUMP_IF_FALSE", "POP_JUMP_FORWARD_IF_TRUE",
                   "POP_JUMP_FORWARD_IF_FALSE", "POP_JUMP_BACKWARD_IF_TRUE", "POP_JUMP_BACKWARD_IF_FALSE"})  # fmt: skip
_ENDS = frozenset(
    {"RETURN_VALUE", "RETURN_CONST", "RERAISE", "RAISE_VARARGS", "JUMP_FORWARD", "JUMP_BACKWARD"}
)
_WHOLE_NUMBERS = frozenset(Chain("global", name) for name in ("int", "round", "bool", "hash"))
_FLOATS = frozenset({Chain("global", "float")})
_TELLS_NO_VALUE = frozenset(
    Chain("global", name) for name in ("len", "isinstance", "issubclass", "hasattr", "callable", "type", "id")
)
_OPERATORS = ("BINARY_OP", "UNARY_", "COMPARE_OP")
_LOCALS = ("LOAD_FAST", "LOAD_FAST_CHECK", "LOAD_FAST_BORROW")
_LOCAL_PAIRS = ("LOAD_FAST_LOAD_FAST", "LOAD_FAST_BORROW_LOAD_FAST_BORROW")
_INDEX_TYPES = (int, str, bool, float, bytes, tuple, type(None))


@lru_cache(maxsize=4096)
def reads_of(code: types.CodeType) -> Reads:
    """Return what the function of `code` can read."""
    scan = _Scan(code)
    scan.run()
    free = dict.fromkeys(code.co_freevars, WRITE)
    for use in scan.uses:
        if use.chain.name in free and (use.chain.steps or use.how != WRITE) and use.chain.kind == "local":
            free[use.chain.name] = READ
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            free.update(
                (name, READ) for name, how in reads_of(constant).free.items() if how == READ and name in free
            )
    is_dynamic = not _DYNAMIC.isdisjoint(code.co_names) or scan.matches
    names = scan.names
    if is_dynamic:
        names |= {text for text in code.co_consts if isinstance(text, str) and text.isidentifier()}
    if not _BY_TEXT.isdisjoint(code.co_names):
        words = {word for text in code.co_consts if isinstance(text, str) for word in _WORD.findall(text)}
        place = (code.co_firstlineno, None, None, None)
        scan.uses += [Use(Chain("global", word), READ, code.co_firstlineno, place) for word in sorted(words)]
    once: dict[Any, Use] = {}
    for use in scan.uses:
        computed = use.operator or use.is_index or use.callee is not None  # of these each counts
        once.setdefault((use.chain, use.how, computed and (use.place, use.callee, use.is_index)), use)
    return Reads(tuple(once.values()), frozenset(names), free, is_dynamic, scan.decides, scan.takes)


class _Scan:
    def __init__(self, code: types.CodeType) -> None:
        self.code = code
        self.uses: list[Use] = []
        self.names: set[str] = set()
        self.stack: list[Any] = []
        count = code.co_argcount + code.co_kwonlyargcount
        count += bool(code.co_flags & 4) + bool(code.co_flags & 8)
        self.given = {*code.co_varnames[:count], *code.co_freevars}
        self.targets: set[int] = set()  # places in the list that a jump leads to
        self.instructions: list[dis.Instruction] = []
        for instruction in dis.get_instructions(code):
            if instruction.is_jump_target:
                self.targets.add(len(self.instructions))
            if instruction.opname not in _IGNORED:
                self.instructions.append(instruction)
        self.line = code.co_firstlineno
        self.place: Any = None
        self.operator = False
        self.callee: Chain | None = None
        self.is_index = False
        # A variable that one instruction assigns stands for what it was assigned.
        assigned = [name for i in self.instructions for name in _assigned(i)]
        self.once = {name for name in assigned if assigned.count(name) == 1} - self.given
        self.rebound = {i.argval for i in self.instructions if i.opname == "STORE_GLOBAL"} | (
            self.given & {*assigned}
        )
        self.aliases: dict[str, Any] = {}
        self.assigned: set[Chain] = set()  # before anything else could happen
        self.is_straight = True
        self.decides = False
        self.takes = False
        self.last = ""
        self.matches = False

    def run(self) -> None:
        for at, instruction in enumerate(self.instructions):
            if at in self.targets:
                self.empty()
                self.is_straight = False
            positions = instruction.positions
            if positions is not None and positions.lineno is not None:
                self.line = positions.lineno
            self.place = positions and tuple(positions)
            self.operator = instruction.opname.startswith(_OPERATORS) and instruction.argrepr != "[]"
            self.step(at, instruction)
            self.operator = False
            if instruction.opname in _ENDS:
                self.empty()
            if "JUMP" in instruction.opname:
                self.is_straight = False
            self.last = instruction.opname
            self.matches |= instruction.opname == "MATCH_CLASS"  # by the names in __match_args__
        self.empty()

    def use(self, entry: Any, how: str = READ) -> None:
        if type(entry) is Chain:
            for count in range(len(entry.steps) + 1):
                if entry._replace(steps=entry.steps[:count]) in self.assigned:  # by this function itself
                    self.names.update(name for kind, name in entry.steps[count:] if kind == "attr")
                    return
            self.uses.append(
                Use(entry, how, self.line, self.place, self.operator, self.callee, self.is_index)
            )

    def empty(self) -> None:
        for entry in self.stack:
            self.use(entry)
        self.stack.clear()

    def pop(self, how: str | None = READ) -> Any:
        entry = self.stack.pop() if self.stack else None
        if how is not None:
            self.use(entry, how)
        return entry

    def push(self, *entries: Any) -> None:
        self.stack.extend(entries)

    def variable(self, name: str) -> Any:
        return Chain("local", name) if name in self.given else self.aliases.get(name)

    def step(self, at: int, instruction: dis.Instruction) -> None:
        name, arg = instruction.opname, instruction.arg or 0
        value: Any = instruction.argval
        if name in ("LOAD_CONST", "LOAD_SMALL_INT"):
            self.push(_Constant(value))
        elif name in _LOCALS:
            self.push(self.variable(value))
        elif name in _LOCAL_PAIRS:
            self.push(*map(self.variable, value))
        elif name in ("LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_DEREF"):
            if name == "LOAD_FROM_DICT_OR_DEREF":
                self.pop()
            self.push(self.variable(value))
        elif name in ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS"):
            if name == "LOAD_FROM_DICT_OR_GLOBALS":
                self.pop()
            self.push(Chain("global", value))
            if name == "LOAD_GLOBAL" and arg & 1:
                self.push(None)
                if instruction.argrepr.startswith("NULL"):  # below it, so that attributes can follow
                    self.stack[-2:] = self.stack[:-3:-1]
        elif name in ("PUSH_NULL", "LOAD_CLOSURE", "LOAD_FAST_AND_CLEAR"):
            self.push(None)
        elif name in ("LOAD_ATTR", "LOAD_METHOD"):
            self.push(self.attribute(self.pop(None), value))
            if name == "LOAD_METHOD" or "NULL|self" in instruction.argrepr:
                self.push(None)
        elif name == "BINARY_SUBSCR" or (name == "BINARY_OP" and instruction.argrepr == "[]"):
            self.subscript()
        elif name == "BINARY_OP" and instruction.argrepr.endswith("="):
            self.augmented(at)
        elif name == "BUILD_SLICE":
            for _ in range(arg):
                self.pop()
            self.push(_SLICE)
        elif name in ("IS_OP", "COMPARE_OP", "CONTAINS_OP"):
            how = TOUCH if name == "IS_OP" else READ
            self.decides |= name != "IS_OP" and _DERIVED in self.stack[-2:]
            self.pop(how)
            self.pop(how)
            self.push(None)
        elif (name.startswith("POP_JUMP") and "NONE" in name) or name == "POP_TOP":
            self.pop(TOUCH)
        elif name in _POPS:
            self.decides |= name.startswith("POP_JUMP") and self.stack[-1:] == [_DERIVED]
            self.pop()
        elif name == "STORE_FAST":
            self.store(value)
        elif name == "STORE_FAST_STORE_FAST":
            self.store(value[0])
            self.store(value[1])
        elif name == "STORE_FAST_LOAD_FAST":
            self.store(value[0])
            self.push(self.variable(value[1]))
        elif name == "STORE_GLOBAL":
            self.pop()
            self.write(Chain("global", value))
        elif name == "STORE_DEREF":
            self.pop()
            if value in self.given:
                self.write(Chain("local", value))
        elif name == "STORE_ATTR":
            base = self.pop(TOUCH)
            self.pop()
            if type(base) is Chain:
                self.write(base.then("attr", value))
        elif name in ("STORE_SUBSCR", "DELETE_SUBSCR"):
            self.pop()
            self.pop(TOUCH)
            if name == "STORE_SUBSCR":
                self.pop()
        elif name == "COPY":
            self.push(self.stack[-arg] if len(self.stack) >= arg else None)
        elif name == "SWAP":
            if len(self.stack) >= arg:
                self.stack[-1], self.stack[-arg] = self.stack[-arg], self.stack[-1]
            else:
                self.empty()
        elif name in ("CALL", "CALL_KW", "CALL_FUNCTION_EX"):
            self.call(at, name, arg)
        elif name == "IMPORT_NAME":
            self.pop()
            self.pop()
            self.push(Chain("module", value if _is_from(self.instructions, at) else value.partition(".")[0]))
        elif name == "IMPORT_FROM":
            base = self.stack[-1] if self.stack else None
            self.push(self.attribute(base, value))
        else:
            self.unknown(instruction)

    def write(self, target: Chain) -> None:
        size = len(target.steps)
        known = [*(use.chain for use in self.uses), *self.aliases.values(), *self.stack]
        was_met = any(
            type(chain) is Chain and chain._replace(steps=chain.steps[:size]) == target for chain in known
        )
        self.use(target, WRITE)
        if self.is_straight and not was_met:
            self.assigned.add(target)

    def attribute(self, base: Any, name: str) -> Any:
        if type(base) is Chain:
            if base.name in self.rebound:
                self.names.add(name)
            return base.then("attr", name)
        self.names.add(name)
        self.takes |= name in {"item", "tolist"}
        return None

    def subscript(self) -> None:
        key = self.pop()
        self.decides |= key is _DERIVED
        base = self.pop(None)
        if type(base) is Chain and type(key) is _Constant and type(key.value) in _INDEX_TYPES:
            self.push(base.then("item", key.value))
        else:
            self.is_index = key is not _SLICE
            self.use(base)
            self.is_index = False
            self.push(_DERIVED)

    def augmented(self, at: int) -> None:
        """``target += ...``: the target is read for nothing else, unless it is read elsewhere."""
        self.pop()
        target = self.pop(None)
        stores = self.instructions[at + 1 : at + 4]
        while stores and stores[0].opname == "SWAP":
            stores = stores[1:]
        store = stores[0].opname if stores else ""
        own = type(target) is Chain and (
            (store == "STORE_GLOBAL" and target == Chain("global", stores[0].argval))
            or (store == "STORE_DEREF" and target == Chain("local", stores[0].argval))
            or (store == "STORE_ATTR" and target.steps[-1:] == (("attr", stores[0].argval),))
            or (store == "STORE_SUBSCR" and target.steps[-1:] != () and target.steps[-1][0] == "item")
        )
        self.use(target, WRITE if own else READ)
        self.push(None)

    def store(self, name: str) -> None:
        entry = self.pop(None)
        if name in self.once and type(entry) is Chain:
            self.aliases[name] = entry
        else:
            self.use(entry)
        if name in self.given:
            # The parameter is another thing from here on (or was, in a loop).
            self.use(Chain("local", name), READ)

    def call(self, at: int, name: str, arg: int) -> None:
        if name == "CALL_FUNCTION_EX":
            above = 2 if sys.version_info >= (3, 14) else 1 + (arg & 1)  # positional arguments, keywords
        else:
            above = arg + (name == "CALL_KW")
        below = self.stack[-above - 2 : -above] if above else []
        self.callee = next((entry for entry in below if type(entry) is Chain), None)
        if self.callee is not None and self.callee.kind == "local" and self.callee.name in self.rebound:
            self.callee = None  # it may be another function by now
        callee = self.callee
        if callee in _FLOATS:
            self.takes |= any(type(entry) not in (Chain, _Constant) for entry in self.stack[-above:])
        if callee in _WHOLE_NUMBERS:
            self.decides |= _DERIVED in self.stack[-above:]
        for _ in range(above):
            self.pop()
        self.callee = None
        is_dropped = at + 1 < len(self.instructions) and self.instructions[at + 1].opname == "POP_TOP"
        for entry in (self.pop(None), self.pop(None)):
            if type(entry) is not Chain:
                continue
            if is_dropped and entry.steps and entry.steps[-1] in _WRITER_STEPS:
                self.use(entry, WRITE)
            else:
                self.use(entry, TOUCH)
        self.push(None if callee in _TELLS_NO_VALUE else _DERIVED)

    def unknown(self, instruction: dis.Instruction) -> None:
        effect = dis.stack_effect(instruction.opcode, instruction.arg, jump=False)
        for _ in range(max(0, -effect) + 1):
            self.pop()
        self.push(*[None] * (max(0, effect) + 1))


_WRITER_STEPS = frozenset(("attr", name) for name in WRITERS)


def _assigned(instruction: dis.Instruction) -> tuple[str, ...]:
    name = instruction.opname
    value: Any = instruction.argval
    if name == "STORE_FAST_STORE_FAST":
        return (value[0], value[1])
    if name == "STORE_FAST_LOAD_FAST":
        return (value[0],)
    return (value,) if name in ("STORE_FAST", "DELETE_FAST", "LOAD_FAST_AND_CLEAR", "STORE_DEREF") else ()


def _is_from(instructions: list[dis.Instruction], at: int) -> bool:
    return at + 1 < len(instructions) and instructions[at + 1].opname == "IMPORT_FROM"
