# SPDX-License-Identifier: BSD-3-Clause
"""Primitives of int64 functions: operations below the language, each made of one or a few LLVM instructions.

Note [int64 functions]
The executor, its threads and its entry (executor.py, threads.py, entry.py) work with addresses, counts and bits: with
words of 64 bits only. So these functions are written in a subset of Python and translated to LLVM IR
statement by statement (tracejit/compile/machine_words.py). That takes milliseconds; Numba, which infers types and knows
all of Python's objects, took a quarter of a second for them. In such a function

- each value is a signed word; a condition is 1 or 0, and a word other than 0 counts as true;
- ``p[i]`` is the word at the address p + 8 i;
- the statements are assignments, ``if``, ``while``, ``for`` over a ``range``, ``break``, ``continue``, ``return``;
- the expressions are ``+ - * & | ^ << >>``, comparisons, ``and``, ``or``, ``not``, ``a if b else c`` (which computes
  both), and ``min`` and ``max`` of two words;
- names are local variables, integers and functions of the module, and the primitives defined here.
"""

import sys
from collections.abc import Callable
from typing import Any, NamedTuple

from .state import CPU, SYSTEM

Word = Any
"""A word for mypy: an integer of 64 bits, or an address."""


class Text:
    """The text of an LLVM function under construction; values are names or numbers.

    start       allocations: in a loop they would be repeated each time
    lines       all other instructions
    declared    declarations of the routines that the text calls
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
        """Return the address of new memory on the stack."""
        name = self.fresh()
        self.start.append(f"  {name} = alloca {kind}")
        return name

    def place(self, base: str, index: str | None = None) -> str:
        """Return a pointer to the word at an address, or to the word `index` words later."""
        at = self.value(f"inttoptr i64 {base} to ptr")
        return at if index is None else self.value(f"getelementptr i64, ptr {at}, i64 {index}")

    def routine(self, name: str, result: str, *operands: str) -> str:
        """Return the text that calls a function of LLVM or of the C library, given its operands with their types."""
        kinds = ", ".join(operand.rpartition(" ")[0] for operand in operands)
        self.declared[name] = f"declare {result} @{name}({kinds})"
        return f"call {result} @{name}({', '.join(operands)})"


class Primitive(NamedTuple):
    """An operation of int64 functions; `emit` appends it to a text and returns its value, or None."""

    emit: Callable[..., str | None]

    def __call__(self, *words: int) -> Any:
        """Fail: a primitive has a meaning only in compiled code."""
        raise TypeError(
            f"{self.emit.__name__}() works only in functions that are compiled as int64 functions"
        )


@Primitive
def call(t: Text, at: str, *words: str) -> str:
    """Call the function at an address; return its word."""
    return t.value(f"call i64 {t.place(at)}({', '.join(f'i64 {word}' for word in words)})")


@Primitive
def call_kernel(t: Text, at: str, arguments: str) -> None:
    """Call the kernel at an address with the address of its arguments."""
    t.do(f"call void {t.place(at)}(i64 {arguments})")


@Primitive
def half_at(t: Text, at: str) -> str:
    """Return the 32-bit integer at an address."""
    return t.value(f"sext i32 {t.value(f'load i32, ptr {t.place(at)}')} to i64")


@Primitive
def read_control(t: Text) -> str:
    """Return the register that controls arithmetic (MXCSR of SSE, FPCR of NEON); 0 on other machines."""
    if CPU == "aarch64":
        return t.value(t.routine("llvm.aarch64.get.fpcr", "i64"))
    if CPU != "x86_64":
        return "0"
    slot = t.memory("i32")
    t.do(t.routine("llvm.x86.sse.stmxcsr", "void", f"ptr {slot}"))
    return t.value(f"zext i32 {t.value(f'load i32, ptr {slot}')} to i64")


@Primitive
def set_control(t: Text, control: str) -> None:
    """Set the register that controls arithmetic, if there is one."""
    if CPU == "aarch64":
        t.do(t.routine("llvm.aarch64.set.fpcr", "void", f"i64 {control}"))
    elif CPU == "x86_64":
        slot = t.memory("i32")
        t.do(f"store i32 {t.value(f'trunc i64 {control} to i32')}, ptr {slot}")
        t.do(t.routine("llvm.x86.sse.ldmxcsr", "void", f"ptr {slot}"))


@Primitive
def load_word(t: Text, base: str, index: str) -> str:
    """Return base[index]: an atomic load, sequentially consistent."""
    return t.value(f"load atomic i64, ptr {t.place(base, index)} seq_cst, align 8")


@Primitive
def store_word(t: Text, base: str, index: str, value: str) -> None:
    """Set base[index]: an atomic store, sequentially consistent."""
    t.do(f"store atomic i64 {value}, ptr {t.place(base, index)} seq_cst, align 8")


@Primitive
def add_word(t: Text, base: str, index: str, value: str) -> str:
    """Add to base[index] atomically; return its value before."""
    return t.value(f"atomicrmw add ptr {t.place(base, index)}, i64 {value} seq_cst")


@Primitive
def exchange_word(t: Text, base: str, index: str, expected: str, value: str) -> str:
    """Replace base[index] atomically if it has the expected value; return whether it had."""
    result = t.value(f"cmpxchg ptr {t.place(base, index)}, i64 {expected}, i64 {value} seq_cst seq_cst")
    is_done = t.value(f"extractvalue {{ i64, i1 }} {result}, 1")
    return t.value(f"zext i1 {is_done} to i64")


def _system(posix: str, windows: str, result: str = "i32", more: tuple[str, ...] = ()) -> Primitive:
    """Return a primitive that calls a routine of the system with addresses; on a system without threads a no-op.

    Args:
        posix: the name of the routine where there are threads of POSIX.
        windows: its name on Windows.
        result: the type of its result there.
        more: its operands there after the addresses.
    """

    def emit(t: Text, *words: str) -> None:
        operands = [f"ptr {t.place(word)}" for word in words]
        if SYSTEM == "posix":
            t.value(t.routine(posix, "i32", *operands))
        elif SYSTEM == "nt":
            called = t.routine(windows, result, *operands, *more)
            if result == "void":
                t.do(called)
            else:
                t.value(called)

    return Primitive(emit)


lock = _system("pthread_mutex_lock", "AcquireSRWLockExclusive", "void")
unlock = _system("pthread_mutex_unlock", "ReleaseSRWLockExclusive", "void")
wait_for = _system(
    "pthread_cond_wait", "SleepConditionVariableSRW", "i32", ("i32 -1", "i32 0")
)  # without a limit
wake_all = _system("pthread_cond_broadcast", "WakeAllConditionVariable", "void")
give_way = _system("sched_yield", "SwitchToThread")

_MONOTONIC = 6 if sys.platform == "darwin" else 1


@Primitive
def now_ns(t: Text) -> str:
    """Return the time of the monotonic clock in nanoseconds."""
    if SYSTEM == "nt":
        return _windows_ns(t)
    if SYSTEM != "posix":
        return "0"
    slot = t.memory("[2 x i64]")  # seconds, nanoseconds
    t.value(t.routine("clock_gettime", "i32", f"i32 {_MONOTONIC}", f"ptr {slot}"))
    seconds = t.value(f"load i64, ptr {slot}")
    rest = t.value(f"load i64, ptr {t.value(f'getelementptr i64, ptr {slot}, i64 1')}")
    return t.value(f"add i64 {t.value(f'mul i64 {seconds}, {10**9}')}, {rest}")


def _windows_ns(t: Text) -> str:
    numbers = []
    for name in ("QueryPerformanceCounter", "QueryPerformanceFrequency"):
        slot = t.memory("i64")
        t.value(t.routine(name, "i32", f"ptr {slot}"))
        numbers.append(t.value(f"load i64, ptr {slot}"))
    count, each_s = numbers
    seconds, rest = (t.value(f"{operation} i64 {count}, {each_s}") for operation in ("sdiv", "srem"))
    rest_ns = t.value(f"sdiv i64 {t.value(f'mul i64 {rest}, {10**9}')}, {each_s}")
    return t.value(f"add i64 {t.value(f'mul i64 {seconds}, {10**9}')}, {rest_ns}")


@Primitive
def pause(t: Text) -> None:
    """Tell the CPU that this is a waiting loop."""
    if CPU == "aarch64":
        t.do(t.routine("llvm.aarch64.hint", "void", "i32 1"))  # yield
    elif CPU == "x86_64":
        t.do(t.routine("llvm.x86.sse2.pause", "void"))
