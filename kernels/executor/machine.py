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

from .state import HAS_CONTROL_REGISTER, HAS_THREADS

Word = Any
"""A word for mypy: an integer of 64 bits, or an address."""


class Text:
    """The text of a function of LLVM while it is written; values are names or numbers.

    start       lines that make memory: made in a loop, it would be made again each time
    lines       all others
    declared    what is called outside of the text
    """

    def __init__(self, declared: dict[str, str]) -> None:
        self.start: list[str] = []
        self.lines: list[str] = []
        self.declared = declared
        self._count = 0

    def fresh(self) -> str:
        """Return a new name."""
        self._count += 1
        return f"%v{self._count}"

    def do(self, line: str) -> None:
        """Append an instruction without a value."""
        self.lines.append(f"  {line}")

    def value(self, instruction: str) -> str:
        """Append an instruction; return the name of its value."""
        name = self.fresh()
        self.lines.append(f"  {name} = {instruction}")
        return name

    def memory(self, kind: str) -> str:
        """Return the place of new memory of the function."""
        name = self.fresh()
        self.start.append(f"  {name} = alloca {kind}")
        return name

    def place(self, base: str, index: str | None = None) -> str:
        """Return LLVM's pointer to the word at an address, or `index` words later."""
        at = self.value(f"inttoptr i64 {base} to ptr")
        return at if index is None else self.value(f"getelementptr i64, ptr {at}, i64 {index}")

    def routine(self, name: str, result: str, *operands: str) -> str:
        """Return the text that calls a function of LLVM or of the C library, given its operands with their types."""
        kinds = ", ".join(operand.rpartition(" ")[0] for operand in operands)
        self.declared[name] = f"declare {result} @{name}({kinds})"
        return f"call {result} @{name}({', '.join(operands)})"


class Primitive(NamedTuple):
    """Something that a function of words may call; `emit` appends it to a text and gives its value.

    A primitive that has no value gives None.
    """

    emit: Callable[..., str | None]

    def __call__(self, *words: int) -> Any:
        """Fail: a primitive has a meaning only where it is compiled."""
        raise TypeError(f"{self.emit.__name__}() can only be called where functions of words are compiled")


@Primitive
def call(t: Text, at: str, *words: str) -> str:
    """Call the function at an address with words or addresses, for the word or address that it returns."""
    return t.value(f"call i64 {t.place(at)}({', '.join(f'i64 {word}' for word in words)})")


@Primitive
def call_kernel(t: Text, at: str, arguments: str) -> None:
    """Call the kernel at an address with the address of its arguments."""
    t.do(f"call void {t.place(at)}(i64 {arguments})")


@Primitive
def half_at(t: Text, at: str) -> str:
    """Return the whole number of 32 bits at an address."""
    return t.value(f"sext i32 {t.value(f'load i32, ptr {t.place(at)}')} to i64")


@Primitive
def read_control(t: Text) -> str:
    """Return the control register of floating-point numbers; 0 on machines that have another."""
    if not HAS_CONTROL_REGISTER:
        return "0"
    slot = t.memory("i32")
    t.do(t.routine("llvm.x86.sse.stmxcsr", "void", f"ptr {slot}"))
    return t.value(f"zext i32 {t.value(f'load i32, ptr {slot}')} to i64")


@Primitive
def set_control(t: Text, control: str) -> None:
    """Set the control register, where there is one."""
    if HAS_CONTROL_REGISTER:
        slot = t.memory("i32")
        t.do(f"store i32 {t.value(f'trunc i64 {control} to i32')}, ptr {slot}")
        t.do(t.routine("llvm.x86.sse.ldmxcsr", "void", f"ptr {slot}"))


@Primitive
def load_word(t: Text, base: str, index: str) -> str:
    """Return base[index], in order with what other threads store."""
    return t.value(f"load atomic i64, ptr {t.place(base, index)} seq_cst, align 8")


@Primitive
def store_word(t: Text, base: str, index: str, value: str) -> None:
    """Set base[index], in order with what other threads store."""
    t.do(f"store atomic i64 {value}, ptr {t.place(base, index)} seq_cst, align 8")


@Primitive
def add_word(t: Text, base: str, index: str, value: str) -> str:
    """Add to base[index] at once; return what it was."""
    return t.value(f"atomicrmw add ptr {t.place(base, index)}, i64 {value} seq_cst")


@Primitive
def exchange_word(t: Text, base: str, index: str, expected: str, value: str) -> str:
    """Set base[index] if it is as expected, at once; return whether it was."""
    found = t.value(f"cmpxchg ptr {t.place(base, index)}, i64 {expected}, i64 {value} seq_cst seq_cst")
    is_done = t.value(f"extractvalue {{ i64, i1 }} {found}, 1")
    return t.value(f"zext i1 {is_done} to i64")


def _system(name: str) -> Primitive:
    """Return a primitive that calls a routine of the system with addresses; without threads it does nothing."""

    def emit(t: Text, *words: str) -> None:
        if HAS_THREADS:
            t.value(t.routine(name, "i32", *[f"ptr {t.place(word)}" for word in words]))

    return Primitive(emit)


lock = _system("pthread_mutex_lock")
unlock = _system("pthread_mutex_unlock")
wait_for = _system("pthread_cond_wait")
wake_all = _system("pthread_cond_broadcast")
give_way = _system("sched_yield")

_MONOTONIC = 6 if sys.platform == "darwin" else 1


@Primitive
def now_ns(t: Text) -> str:
    """Return a time in nanoseconds, from the clock that only goes forward."""
    if not HAS_THREADS:
        return "0"
    slot = t.memory("[2 x i64]")  # seconds, nanoseconds
    t.value(t.routine("clock_gettime", "i32", f"i32 {_MONOTONIC}", f"ptr {slot}"))
    seconds = t.value(f"load i64, ptr {slot}")
    rest = t.value(f"load i64, ptr {t.value(f'getelementptr i64, ptr {slot}, i64 1')}")
    return t.value(f"add i64 {t.value(f'mul i64 {seconds}, {10**9}')}, {rest}")


@Primitive
def pause(t: Text) -> None:
    """Let a waiting loop use less of the CPU."""
    if HAS_CONTROL_REGISTER:
        t.do(t.routine("llvm.x86.sse2.pause", "void"))
