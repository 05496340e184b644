# SPDX-License-Identifier: BSD-3-Clause
"""Int64 functions do what Python does with the same text."""

import ctypes
import linecache
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from effort import sweep
from tracejit.kernels.executor.machine import (
    add_word,
    call,
    exchange_word,
    half_at,
    load_word,
    now_ns,
    read_control,
    set_control,
    store_word,
)

from tracejit.compile import machine_words, objects
from tracejit.errors import CodegenError

SEVEN = 7
NUMBERS = (0, 1, -1, 2, 5, -3, 7, 63, -64, 1 << 40, -(1 << 40) - 1)
_ENGINES: list[Any] = []


def compiled(function: Callable[..., Any], words: int) -> Callable[..., int]:
    lowered = machine_words.lower(function, f"tested_{function.__name__}")
    engine = objects.new_engine()
    _ENGINES.append(engine)
    code, needs = lowered.object_code()
    address = objects.load(lowered.symbol, code, needs, engine)
    return ctypes.CFUNCTYPE(ctypes.c_ssize_t, *[ctypes.c_ssize_t] * words)(address)


def arithmetic(a: Any, b: Any) -> Any:
    return (a + b) * 3 - (a & b) + (a | 5) - (b ^ 9) + (a << 2) - (b >> 1) + -a + SEVEN


def comparisons(a: Any, b: Any) -> Any:
    found = 0
    if a < b:
        found += 1
    if a <= b and not a == 5:  # noqa: SIM201
        found += 2
    elif a > b or b == 2:
        found += 4
    else:
        found += 8
    found += 16 * (a >= b) + (32 if a != b else 64) + 128 * ((a < b and b < 7) or a == 0)  # noqa: PLR1716
    return found + 256 * min(a, b) + 512 * max(a, 3) + (not a)


def loops(a: Any, b: Any) -> Any:
    total = 0
    for i in range(a & 15):
        if i == 3:
            continue
        i += 1
        for j in range(i, b & 7):
            total += i * j
            if total > 400:
                break
        total += 1
    while total > 10:
        total = total - 7
        if total == 12:
            return total + 1000
    while True:
        total += 3
        if total > 20:
            break
    return total


def early(a: Any, b: Any) -> Any:
    if a > b:
        if a > 2 * b:
            return 1
        return 2
    a, b = b, a
    return a - b


def helper(a: Any) -> Any:
    if a <= 0:
        return 0
    return a + helper(a - 1)


def calls(a: Any, b: Any) -> Any:
    return helper(a & 31) - helper(b & 15) * 2


@pytest.mark.parametrize("function", [arithmetic, comparisons, loops, early, calls])
def test_words(function: Callable[[int, int], int]) -> None:
    found = compiled(function, 2)
    rnd = random.Random(0)
    pairs = [(a, b) for a in NUMBERS for b in NUMBERS]
    pairs += [(rnd.randrange(-300, 300), rnd.randrange(-300, 300)) for _ in range(300)]
    for a, b in pairs:
        wanted = function(a, b) & ((1 << 64) - 1)
        assert found(a, b) & ((1 << 64) - 1) == wanted, (a, b)


def expression(rnd: random.Random, depth: int) -> str:
    if depth == 0:
        return rnd.choice(("a", "b", "c", str(rnd.randrange(-9, 9))))
    first, second = expression(rnd, depth - 1), expression(rnd, depth - 1)
    kind = rnd.randrange(6)
    if kind == 0:
        return f"({first} {rnd.choice(('<', '<=', '==', '!=', '>', '>='))} {second})"
    if kind == 1:
        return f"({first} if {second} > 0 else {expression(rnd, depth - 1)})"
    if kind == 2:
        return f"{rnd.choice(('min', 'max'))}({first}, {second})"
    if kind == 3:
        return f"({first} >> {rnd.randrange(5)})"
    return f"({first} {rnd.choice('+-*&|^')} {second})"


@pytest.mark.parametrize("seed", range(sweep(3, 8)))
def test_random_expressions(seed: int, tmp_path: Path) -> None:
    rnd = random.Random(seed)
    lines = ["def made(a, b):", "    c = a - b"]
    for _ in range(12):
        target = rnd.choice("abc")
        lines.append(f"    if {expression(rnd, 2)} {rnd.choice(('and', 'or'))} {expression(rnd, 1)} != 0:")
        lines.append(f"        {target} {rnd.choice(('', '+', '-', '^'))}= {expression(rnd, 3)} & 0xFFFFFF")
    lines.append("    return a ^ b ^ c")
    file = tmp_path / "made.py"
    file.write_text("\n".join(lines) + "\n")
    names: dict[str, Any] = {}
    exec(compile(file.read_text(), str(file), "exec"), names)
    found = compiled(names["made"], 2)
    for _ in range(200):
        a, b = rnd.randrange(-(1 << 20), 1 << 20), rnd.randrange(-(1 << 20), 1 << 20)
        assert found(a, b) & ((1 << 64) - 1) == names["made"](a, b) & ((1 << 64) - 1)


def memory(at: Any, count: Any) -> Any:
    first = at
    second = at + 8 * count
    for i in range(count):
        second[i] = first[count - 1 - i] + half_at(first + 8 * i)
    second[0] += 5
    first[1], first[0] = first[0], first[1]
    second[count] = at
    return second[count][0]


def test_memory() -> None:
    words = np.array([3, 1 << 33, -5, 9, 0, 0, 0, 0, 0], np.int64)
    found = compiled(memory, 2)(words.ctypes.data, 4)
    assert found == 1 << 33
    assert words[:8].tolist() == [1 << 33, 3, -5, 9, 9 + 3 + 5, -5 + 0, (1 << 33) - 5, 3 + 9]


def atomics(at: Any) -> Any:
    store_word(at, 0, 40)
    before = add_word(at, 0, 2)
    at[1] = exchange_word(at, 0, 42, 50)
    at[2] = exchange_word(at, 0, 42, 60)
    return before * 1000 + load_word(at, 0)


def test_atomics() -> None:
    words = np.zeros(3, np.int64)
    assert compiled(atomics, 1)(words.ctypes.data) == 40 * 1000 + 50
    assert words.tolist() == [50, 1, 0]


def many(count: Any) -> Any:
    started = now_ns()
    for _ in range(count):
        control = read_control()
        set_control(control)
    return now_ns() - started


def test_memory_of_a_loop_does_not_grow_with_its_length() -> None:
    assert compiled(many, 1)(5_000_000) >= 0  # 8 MB of stack would be full


def through(address: Any, a: Any) -> Any:
    return call(address, a, 2) + 1


def test_calls_of_addresses() -> None:
    kind = ctypes.CFUNCTYPE(ctypes.c_ssize_t, ctypes.c_ssize_t, ctypes.c_ssize_t)
    given = kind(lambda a, b: 10 * a + b)
    address = ctypes.cast(given, ctypes.c_void_p).value
    assert compiled(through, 2)(address, 7) == 73


def divides(a: Any) -> Any:
    return a // 2


def names_nothing(a: Any) -> Any:
    return a + unknown  # type: ignore[name-defined]  # noqa: F821


def has_text(a: Any) -> Any:
    return a + "text"


def takes_keywords(a: Any) -> Any:
    return helper(a=a)


def loops_over_a_list(a: Any) -> Any:
    for i in (1, 2):
        a += i
    return a


def has_with(a: Any) -> Any:
    with a:
        return 1


def asks_a_primitive_without_a_value(a: Any) -> Any:
    return set_control(a)


@pytest.mark.parametrize(
    ("function", "at"),
    [
        (divides, "a // 2"),
        (names_nothing, "unknown"),
        (has_text, "'text'"),
        (takes_keywords, r"helper\(a=a\)"),
        (loops_over_a_list, r"for i in \(1, 2\)"),
        (has_with, "with a"),
        (asks_a_primitive_without_a_value, r"set_control\(a\)"),
    ],
)
def test_functions_outside_of_the_int64_subset(function: Callable[..., Any], at: str) -> None:
    with pytest.raises(CodegenError, match=f"{function.__name__} is not an int64 function: it has .*{at}"):
        machine_words.lower(function, "tested")


def test_without_source() -> None:
    names: dict[str, Any] = {"__name__": "somewhere"}
    # From 3.13 on Python has a source for "<string>": the command of `python -c`, with which workers start.
    exec(compile("def made(a):\n    return a\n", "<nowhere>", "exec"), names)
    reason = r"somewhere\.made cannot be compiled: its source file is not installed\."
    with pytest.raises(CodegenError, match=rf"^{reason} .*TRACEJIT_BACKEND=python\.$"):
        machine_words.lower(names["made"], "tested")


@pytest.mark.parametrize(
    "text",
    ["def other(a):\n    return a\n\ndef made(a):\n    return a + 1\n", "def made(a):\n    return a + 2\n"],
)
def test_a_source_that_changed(text: str, tmp_path: Path) -> None:
    file = tmp_path / "made.py"
    file.write_text("def made(a):\n    return a + 1\n")
    names: dict[str, Any] = {"__name__": "somewhere"}
    exec(compile(file.read_text(), str(file), "exec"), names)
    assert compiled(names["made"], 1)(5) == 6
    file.write_text(text)
    linecache.clearcache()
    machine_words._definition.cache_clear()  # it was read before the change, and would be right
    with pytest.raises(
        CodegenError,
        match=r"^somewhere\.made cannot be compiled: its source file changed since it was imported\. Restart the "
        r"process\.$",
    ):
        machine_words.lower(names["made"], "tested")


def test_primitives_cannot_be_called() -> None:
    with pytest.raises(
        TypeError, match=r"load_word\(\) works only in functions that are compiled as int64 functions"
    ):
        load_word(0, 0)
