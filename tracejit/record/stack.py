# SPDX-License-Identifier: BSD-3-Clause
"""Local variables and operands, read from the frames that have them: those of a call, and those that hold an object.

Note [the depth of a stack]
For a trace function, Python 3.11 notes how far the stack of a frame reaches. Later versions report calls without that.
But the depth at an instruction is the same whenever it is reached, so it follows from the code: each instruction
changes it by what dis.stack_effect() says, and a handler begins at the depth that the table of exceptions gives. For
each call, a check makes sure that the function is where it has to be by that depth.

A call with a star is reported when the stack may have lost the starred argument (f(*x) makes a tuple of x first), and
Python 3.12 reports no such call of a function of Python. So such a call is looked at earlier, as an instruction.
"""

import ctypes
import dis
import functools
import inspect
import sys
import types
from collections.abc import Mapping
from typing import Any

from tracejit.record.become import is_possible
from tracejit.util.frames import PACKAGE
from tracejit.util.named_tuples import NamedTuple

CALLS = {dis.opmap[name]: name for name in ("CALL", "CALL_FUNCTION_EX", "CALL_KW") if name in dis.opmap}
_CACHE = dis.opmap["CACHE"]
_STAR = dis.opmap["CALL_FUNCTION_EX"]
_BEFORE = "PRECALL"  # comes before CALL in Python 3.11, and may do all of it
_TAKING = frozenset(dis.opmap[name] for name in ("FOR_ITER", "LIST_EXTEND", "UNPACK_EX", "UNPACK_SEQUENCE"))
_ITERATORS = (map, zip, enumerate)  # which tell what they go through
_OF_SEQUENCES: tuple[type, ...] = (type(iter([])), type(iter(())))
_OF_ONE = 3  # words of the stack that a call with one argument takes
# The memory of a frame, in Python 3.11 to 3.13.
_FRAME, _TOP, _VALUES, _WORD_BYTES = 24, 64, 72, 8
_Word = ctypes.c_ssize_t
_EMPTY = (
    0 if sys.version_info < (3, 13) else 1
)  # the word of a call that holds the object of a method, or nothing
_JUMPS = frozenset({*dis.hasjrel, *dis.hasjabs})
_ENDS = frozenset({
    "INTERPRETER_EXIT", "JUMP_BACKWARD", "JUMP_BACKWARD_NO_INTERRUPT", "JUMP_FORWARD", "RAISE_VARARGS", "RERAISE",
    "RETURN_CONST", "RETURN_VALUE",
})  # fmt: skip


@functools.cache
def is_readable() -> bool:
    """Return whether the stack of a frame can be read."""
    return is_possible() and (3, 11) <= sys.version_info < (3, 14) and _is_first_value(object())


def _is_first_value(thing: object) -> bool:
    return _Word.from_address(_values(sys._getframe())).value == id(thing)


def _values(frame: types.FrameType) -> int:
    """Return the address of the first word of the local variables, cells, free variables and stack of a frame."""
    return _Word.from_address(id(frame) + _FRAME).value + _VALUES


@functools.lru_cache(maxsize=1024)
def code_of(code: types.CodeType) -> bytes:
    """Return the instructions of a code, which Python makes anew at each access."""
    return code.co_code


def has_star(code: types.CodeType) -> bool:
    """Return whether a code has calls with stars: f(*x), f(**x)."""
    return _STAR in code_of(code)[::2]


def is_star(code: types.CodeType, at: int) -> bool:
    """Return whether an instruction is a call with stars."""
    return code_of(code)[at] == _STAR


def noted(frame: types.FrameType) -> list[Any]:
    """Return what the call takes that a trace function of Python 3.11 is told of: the function, and its arguments."""
    count = _words_of_call(frame.f_code, frame.f_lasti)
    first = _values(frame)
    top = ctypes.c_int.from_address(first - _VALUES + _TOP).value
    return [_object(word) for word in _words(first + _WORD_BYTES * (top - count), count) if word]


def reported(frame: types.FrameType, at: int, function: Any) -> list[Any] | None:
    """Return what a call takes that Python 3.12 or later reports, as noted() does, or None if that cannot be told.

    Args:
        frame: that calls.
        at: the place of the instruction, in bytes.
        function: what is called; None of a call with a star, which was reported as an instruction.
    """
    call = _calls(frame.f_code).get(at)
    if call is None:
        return None
    words = _taken_by(frame, call)
    if words[_EMPTY] != 0 if function is None else id(function) not in words[:2]:
        return None
    return [_object(word) for word in words if word]


class FramePlace(NamedTuple):
    """A place in a frame: a local variable, one that functions inside share, or an operand that waits on the stack.

    address  of the word
    held     the id of the object there
    """

    address: int
    held: int

    @property
    def value(self) -> Any:
        """The object that the place holds."""
        return _object(self.held)

    def put(self, value: Any) -> None:
        """Have the place hold something else."""
        before = self.value
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(value))
        _Word.from_address(self.address).value = id(value)
        ctypes.pythonapi.Py_DecRef(ctypes.py_object(before))


def places_in(frame: types.FrameType) -> list[FramePlace] | None:
    """Return the places in a frame of a function that can hold something else from now on; None if they are not known.

    What the instruction takes that the frame is at is not among them, nor are variables of functions around it.
    """
    code = frame.f_code
    depth = _waiting(frame)
    if depth is None or not code.co_flags & inspect.CO_OPTIMIZED:
        return None
    found = []
    own = len(code.co_varnames) + len({*code.co_cellvars} - {*code.co_varnames})
    for first, count in ((_values(frame), own), (_address_of(frame, 0), depth)):
        for number, word in enumerate(_words(first, count)):
            address = first + _WORD_BYTES * number
            if word and _Word.from_address(word + _WORD_BYTES).value == id(types.CellType):
                address = word + 2 * _WORD_BYTES
                word = _Word.from_address(address).value
            if word:
                found.append(FramePlace(address, word))
    return found


def assign(frame: types.FrameType, values: Mapping[str, Any]) -> None:
    """Assign to arguments of a function that begins to run, by their names."""
    if (
        sys.version_info < (3, 12) or not is_readable()
    ):  # where a profile function gives back the dict of variables
        frame.f_locals.update(values)
        return
    for name, value in values.items():
        address = _values(frame) + _WORD_BYTES * frame.f_code.co_varnames.index(name)
        word = _Word.from_address(address).value
        if _Word.from_address(word + _WORD_BYTES).value != id(types.CellType):
            FramePlace(address, word).put(value)


def is_writing(frame: types.FrameType, array: Any) -> bool:
    """Return whether a frame is at an assignment to elements of an array, or at a statement like ``array += x``."""
    at = frame.f_lasti
    below = _CONTAINERS.get(dis.opname[code_of(frame.f_code)[at]])
    depth = None if below is None else _depths_of(frame.f_code).get(at)
    if below is None or depth is None or not is_readable():
        return False
    return _words(_address_of(frame, depth - below), 1) == [id(array)]


_CONTAINERS = {"BINARY_OP": 2, "STORE_SLICE": 3, "STORE_SUBSCR": 2}
"""The places of what instructions write into, counted from the top of the stack."""
_OPERANDS = {
    "BINARY_OP": 2, "BINARY_SLICE": 3, "BINARY_SUBSCR": 2, "COMPARE_OP": 2, "CONTAINS_OP": 2, "FOR_ITER": 1,
    "LOAD_ATTR": 1, "RESUME": 0, "STORE_ATTR": 2, "STORE_SLICE": 4, "STORE_SUBSCR": 3, "UNARY_NEGATIVE": 1,
}  # fmt: skip
"""The numbers of words of the stack that instructions take, besides calls."""


def _waiting(frame: types.FrameType) -> int | None:
    """Return how many words of the stack of a frame the instruction does not take that it is at; None if unknown."""
    code, at = frame.f_code, frame.f_lasti
    if at < 0:  # nothing has run
        return 0
    instructions = code_of(code)
    while instructions[at] == _CACHE:  # while what it calls is running, Python 3.11 names the end of a call
        at -= 2
    call = _calls(code).get(at)
    if call is not None:
        return call.depth - call.taken
    depth, taken = _depths_of(code).get(at), _OPERANDS.get(dis.opname[instructions[at]])
    return None if depth is None or taken is None else depth - taken


def is_call_of(frame: types.FrameType, function: Any, argument: Any) -> bool:
    """Return whether the instruction that a frame is at is a call of a function with one argument."""
    call = _calls(frame.f_code).get(frame.f_lasti)
    if call is None or call.taken != _OF_ONE:
        return False
    words = _taken_by(frame, call)
    return sorted(words) == sorted([0, id(function), id(argument)])


def is_taking_map_of(frame: types.FrameType, function: Any) -> bool:
    """Return whether the instruction that a frame is at only takes elements of map(function, ...).

    It does in ``a, b = map(float, x)``, in ``for a in map(float, x)``, and in the list and the tuple of such a map.
    """
    code, at = frame.f_code, frame.f_lasti
    call = _calls(code).get(at)
    if call is None:
        depth = _depths_of(code).get(at) if code_of(code)[at] in _TAKING else None
        taken = [] if depth is None else _words(_address_of(frame, depth - 1), 1)
    else:
        is_of_one = call.taken == _OF_ONE and not is_star(code, at)
        taken = _taken_by(frame, call) if is_of_one else []
        if not {id(list), id(tuple)} & {*taken}:
            return False
    for word in taken:
        if word and _Word.from_address(word + _WORD_BYTES).value == id(map):
            of, *iterators = _object(word).__reduce__()[1]
            return of is function and len(iterators) == 1 and _is_of_elements(iterators[0])
    return False


def _is_of_elements(iterator: Any) -> bool:
    """Return whether an iterator gives the elements of a list, a tuple or an array, and runs no other code."""
    if type(iterator) is types.GeneratorType:
        return iterator.gi_code.co_filename.startswith(PACKAGE)
    return type(iterator) in _OF_SEQUENCES


def callees(frame: types.FrameType) -> list[Any]:
    """Return the function that the call calls which a frame is at, and the object of a method; none at other places."""
    return [_object(word) for word in arguments_of(frame)[:2] if word]


def maps_of(frame: types.FrameType) -> list[Any]:
    """Return the functions of the maps that the instruction takes which a frame is at.

    A call does, as ``sum(map(f, x))`` and ``dict(zip(keys, map(f, x)))``, and so does ``a, *b = map(f, zip(x, y))``.
    """
    found: list[Any] = []
    pending = [_object(word) for word in _iterators_taken(frame)]
    while pending:
        kind, parts, *_ = pending.pop().__reduce__()
        found += parts[:1] if kind is map else ()
        pending += [part for part in parts if type(part) in _ITERATORS]
    return found


def _iterators_taken(frame: types.FrameType) -> list[int]:
    """Return the ids of maps, and of iterators over others, that the instruction takes which a frame is at."""
    code, at = frame.f_code, frame.f_lasti
    words = arguments_of(frame)
    if code_of(code)[at] in _TAKING:
        depth = _depths_of(code).get(at)
        words = [] if depth is None else _words(_address_of(frame, depth - 1), 1)
    kinds = [*map(id, _ITERATORS)]
    return [word for word in words if word and _Word.from_address(word + _WORD_BYTES).value in kinds]


def arguments_of(frame: types.FrameType) -> list[int]:
    """Return the ids of what the call takes that a frame is at; none where it is at another instruction."""
    call = _calls(frame.f_code).get(frame.f_lasti)
    return [] if call is None else _taken_by(frame, call)


def _taken_by(frame: types.FrameType, call: "_Call") -> list[int]:
    """Return the words of the stack of a frame that a call takes."""
    return _words(_address_of(frame, call.depth - call.taken), call.taken)


def _address_of(frame: types.FrameType, depth: int) -> int:
    """Return the address of a word of the stack of a frame."""
    code = frame.f_code
    cells = {*code.co_cellvars} - {*code.co_varnames}
    return _values(frame) + _WORD_BYTES * (len(code.co_varnames) + len(cells) + len(code.co_freevars) + depth)


def _words(address: int, count: int) -> list[int]:
    return [_Word.from_address(address + _WORD_BYTES * i).value for i in range(count)]


def _object(word: int) -> Any:
    return ctypes.cast(word, ctypes.py_object).value


def _words_of_call(code: types.CodeType, at: int) -> int:
    """Return how many words of the stack a call takes."""
    instructions = code_of(code)
    number, shift, before = instructions[at + 1], 8, at - 2
    while before >= 0 and instructions[before] == dis.EXTENDED_ARG:
        number |= instructions[before + 1] << shift
        shift, before = shift + 8, before - 2
    name = CALLS[instructions[at]]
    if name == "CALL_FUNCTION_EX":
        return 3 + (number & 1)
    return 2 + number + (name == "CALL_KW")


class _Call(NamedTuple):
    """A call in a code: how deep the stack is before it, and how many words of that it takes."""

    depth: int
    taken: int


@functools.lru_cache(maxsize=1024)
def _calls(code: types.CodeType) -> dict[int, _Call]:
    """Return the calls in a code by their places (Note [the depth of a stack])."""
    depths = _depths_of(code)
    calls = {}
    depth = None  # before the PRECALL, whose effect dis does not tell from that of its call
    for instruction in dis.get_instructions(code):
        at = instruction.offset
        if instruction.opname == _BEFORE:
            depth, before = depths.get(at), at
        elif instruction.opcode in CALLS and at in depths:
            if depth is not None:
                calls[before] = _Call(depth, _words_of_call(code, at))
            calls[at] = _Call(depths[at] if depth is None else depth, _words_of_call(code, at))
            depth = None
    return calls


@functools.lru_cache(maxsize=1024)
def _depths_of(code: types.CodeType) -> dict[int, int]:
    """Return the depth of the stack before each instruction that can be reached, by place."""
    instructions = list(dis.get_instructions(code))
    index = {instruction.offset: i for i, instruction in enumerate(instructions)}
    depths: dict[int, int] = {}
    handlers = dis._parse_exception_table(code)  # type: ignore[attr-defined]
    # A handler finds the exception on the stack, and where it broke off.
    pending = [(0, 0), *[(handler.target, handler.depth + handler.lasti + 1) for handler in handlers]]
    while pending:
        start, depth = pending.pop()
        for instruction in instructions[index[start] :]:
            if instruction.offset in depths:
                break
            depths[instruction.offset] = depth
            if instruction.opcode in _JUMPS:
                pending.append((instruction.argval, depth + _effect(instruction, jump=True)))
            if instruction.opname in _ENDS:
                break
            depth += _effect(instruction, jump=False)
    return depths


def _effect(instruction: dis.Instruction, jump: bool) -> int:
    """Return by how much an instruction changes the depth of the stack."""
    if sys.version_info < (3, 13):  # where dis is wrong about generators
        if instruction.opname == "RETURN_GENERATOR":
            return 1
        if instruction.opname == "SEND":
            return -1 if jump and sys.version_info < (3, 12) else 0
    number = instruction.arg if instruction.opcode >= dis.HAVE_ARGUMENT else None
    return dis.stack_effect(instruction.opcode, number, jump=jump)
