# SPDX-License-Identifier: BSD-3-Clause
"""What functions of words need below the language, each an instruction or a few of LLVM.

Note [functions of words]
What runs programs (executor.py, threads.py, entry.py) works with addresses, counts and bits: with words of 64 bits
and nothing else. So these functions are written in a small part of Python and translated to LLVM's source statement
by statement (tracejit/backend/wordcode.py). That takes milliseconds; Numba, which infers types and knows all of
Python's objects, took a quarter of a second for them. In such a function

- each value is a word with a sign; a condition counts as 1 or 0, and a word as true where it is not 0;
- ``p[i]`` is the word at the address p + 8 i;
- there are assignments, ``if``, ``while``, ``for`` over a ``range``, ``break``, ``continue`` and ``return``;
- there are ``+ - * & | ^ << >>``, comparisons, ``and``, ``or``, ``not``, ``a if b else c`` (which computes both), and
  ``min`` and ``max`` of two words;
- names are its variables, the whole numbers and functions of its module, and what is defined here.
"""

import sys
from collections.abc import Callable
from typing import Any, NamedTuple

from llvmlite import ir

from .state import HAS_CONTROL_REGISTER, HAS_THREADS

Words = Any
"""What mypy sees of a word: it can be an address too."""
WORD = ir.IntType(64)
_HALF = ir.IntType(32)
_ADDRESS = ir.IntType(8).as_pointer()


class Primitive(NamedTuple):
    """Something that a function of words may call; `emit` appends it to a block and gives its value.

    A primitive that has no value gives None.
    """

    emit: Callable[..., Any]

    def __call__(self, *words: int) -> Any:
        """Fail: a primitive has a meaning only where it is compiled."""
        raise TypeError(f"{self.emit.__name__}() can only be called where functions of words are compiled")


def address(b: ir.IRBuilder, base: Any, index: Any = None) -> Any:
    """Return LLVM's pointer to the word at an address, or `index` words later."""
    place = b.inttoptr(base, WORD.as_pointer())
    return place if index is None else b.gep(place, [index])


def _slot(b: ir.IRBuilder, kind: Any) -> Any:
    """Return memory of the function, made where it begins: made in a loop, it would be made again each time."""
    with b.goto_entry_block():
        return b.alloca(kind)


def _routine(b: ir.IRBuilder, name: str, kind: ir.FunctionType) -> Any:
    """Return a function of LLVM or of the C library."""
    return b.module.globals.get(name) or ir.Function(b.module, kind, name)


def _called(b: ir.IRBuilder, at: Any, words: tuple[Any, ...], result: Any = WORD) -> Any:
    kind = ir.FunctionType(result, [WORD] * len(words))
    return b.call(b.inttoptr(at, kind.as_pointer()), words)


@Primitive
def call(b: ir.IRBuilder, at: Any, *words: Any) -> Any:
    """Call the function at an address with words or addresses, for the word or address that it returns."""
    return _called(b, at, words)


@Primitive
def call_kernel(b: ir.IRBuilder, at: Any, arguments: Any) -> None:
    """Call the kernel at an address with the address of its arguments."""
    _called(b, at, (arguments,), ir.VoidType())


@Primitive
def half_at(b: ir.IRBuilder, at: Any) -> Any:
    """Return the whole number of 32 bits at an address."""
    return b.sext(b.load(b.inttoptr(at, _HALF.as_pointer())), WORD)


@Primitive
def read_control(b: ir.IRBuilder) -> Any:
    """Return the control register of floating-point numbers; 0 on machines that have another."""
    if not HAS_CONTROL_REGISTER:
        return WORD(0)
    slot = _slot(b, _HALF)
    kind = ir.FunctionType(ir.VoidType(), [_ADDRESS])
    b.call(_routine(b, "llvm.x86.sse.stmxcsr", kind), [b.bitcast(slot, _ADDRESS)])
    return b.zext(b.load(slot), WORD)


@Primitive
def set_control(b: ir.IRBuilder, control: Any) -> None:
    """Set the control register, where there is one."""
    if HAS_CONTROL_REGISTER:
        slot = _slot(b, _HALF)
        b.store(b.trunc(control, _HALF), slot)
        kind = ir.FunctionType(ir.VoidType(), [_ADDRESS])
        b.call(_routine(b, "llvm.x86.sse.ldmxcsr", kind), [b.bitcast(slot, _ADDRESS)])


@Primitive
def load_word(b: ir.IRBuilder, base: Any, index: Any) -> Any:
    """Return base[index], in order with what other threads store."""
    return b.load_atomic(address(b, base, index), "seq_cst", 8)


@Primitive
def store_word(b: ir.IRBuilder, base: Any, index: Any, value: Any) -> None:
    """Set base[index], in order with what other threads store."""
    b.store_atomic(value, address(b, base, index), "seq_cst", 8)


@Primitive
def add_word(b: ir.IRBuilder, base: Any, index: Any, value: Any) -> Any:
    """Add to base[index] at once; return what it was."""
    return b.atomic_rmw("add", address(b, base, index), value, "seq_cst")


@Primitive
def exchange_word(b: ir.IRBuilder, base: Any, index: Any, expected: Any, value: Any) -> Any:
    """Set base[index] if it is as expected, at once; return whether it was."""
    found = b.cmpxchg(address(b, base, index), expected, value, "seq_cst", "seq_cst")
    return b.zext(b.extract_value(found, 1), WORD)


def _system(name: str) -> Primitive:
    """Return a primitive that calls a routine of the system with addresses; without threads it does nothing."""

    def emit(b: ir.IRBuilder, *words: Any) -> None:
        if HAS_THREADS:
            kind = ir.FunctionType(_HALF, [_ADDRESS] * len(words))
            b.call(_routine(b, name, kind), [b.inttoptr(word, _ADDRESS) for word in words])

    return Primitive(emit)


lock = _system("pthread_mutex_lock")
unlock = _system("pthread_mutex_unlock")
wait_for = _system("pthread_cond_wait")
wake_all = _system("pthread_cond_broadcast")
give_way = _system("sched_yield")

_MONOTONIC = 6 if sys.platform == "darwin" else 1


@Primitive
def now_ns(b: ir.IRBuilder) -> Any:
    """Return a time in nanoseconds, from the clock that only goes forward."""
    if not HAS_THREADS:
        return WORD(0)
    slot = _slot(b, ir.ArrayType(WORD, 2))  # seconds, nanoseconds
    kind = ir.FunctionType(_HALF, [_HALF, slot.type])
    b.call(_routine(b, "clock_gettime", kind), [_HALF(_MONOTONIC), slot])
    seconds, rest = (b.extract_value(b.load(slot), i) for i in range(2))
    return b.add(b.mul(seconds, WORD(10**9)), rest)


@Primitive
def pause(b: ir.IRBuilder) -> None:
    """Let a waiting loop use less of the CPU."""
    if HAS_CONTROL_REGISTER:
        b.call(_routine(b, "llvm.x86.sse2.pause", ir.FunctionType(ir.VoidType(), [])), [])
