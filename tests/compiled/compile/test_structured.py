# SPDX-License-Identifier: BSD-3-Clause
"""Kernels are lowered in one walk (Note [one walk]), unless a variable has two types; both mean what Python means."""

import ctypes
from typing import Any

import numpy as np
import pytest
from effort import sample
from hypothesis import given, settings
from hypothesis import strategies as st
from op_cases import CASES, draw, graph_of

import tracejit as tj
from tracejit.aval import Aval
from tracejit.codegen.names import DTYPES
from tracejit.codegen.target import vector_bytes
from tracejit.codegen.templates.convolution import _windows
from tracejit.compile import numba_target
from tracejit.compile.objects import load, new_engine
from tracejit.compile.operations import UnsupportedError
from tracejit.ir import Builder, Graph
from tracejit.pipeline import build
from tracejit.program import Kernel

F32 = DTYPES["f32"]

TWO_TYPES = """def two_types(args):
    out = write_f64(args[0], 0)
    for i in range(args[2]):
        if i == 0:
            x = args[1]
            out[0] = f64(x % 2)
        else:
            x = f64(0.25)
        out[1] = f64(x) + f64(x)
"""
NO_COMMON_TYPE = """def no_common_type(args):
    for i in range(args[2]):
        if i == 0:
            x = write_f64(args[0], 0)
            x[0] = f64(args[1] % 2)
            y = x
        x = f64(0.25)
    y[1] = x + x
"""
TWO_PARTS = """def two_parts(args):
    for i in range(args[2]):
        x = write_f64(args[0], 0)
        x[0] = f64(args[1] % 2)
        y = x
        x = f64(0.25)
        y[1] = x + x
"""
ONE_TYPE = """def one_type(args):
    out = write_f64(args[0], 0)
    x = args[1]
    out[0] = f64(x % 2)
    x = 0
    y = f64(0)
    for i in range(5):
        x += i
        y = y + f64(0.05)
    out[1] = y + f64(x - 10) + f64(0.25)
"""


@pytest.fixture
def left_to_numba(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The functions that are not lowered in one walk, with the reasons."""
    found: list[str] = []
    written = numba_target.write_function

    def noted(context: Any, definition: Any, *rest: Any) -> Any:
        try:
            return written(context, definition, *rest)
        except UnsupportedError as error:
            found.append(f"{definition.name}: {error}")
            raise

    monkeypatch.setattr(numba_target, "write_function", noted)
    return found


def run(text: str, *arguments: int, count: int = 16) -> list[float]:
    """Compile a function, run it with `out` and some integers, and return what it wrote to `out`."""
    name = text.partition("(")[0].removeprefix("def ")
    code, needs = numba_target.lower(Kernel(name, text)).object_code()
    engine = new_engine()
    function = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(load(name, code, needs, engine))
    out = np.full(count, np.nan)
    words = np.array([out.ctypes.data, *arguments], np.intp)
    function(words.ctypes.data)
    return list(out.tolist())


@pytest.mark.parametrize(
    ("text", "reasons"),
    [
        (ONE_TYPE, []),
        (TWO_TYPES, ["two_types: x is int64 and float64"]),
        (NO_COMMON_TYPE, ["no_common_type: x is Pointer(float64, 0) and float64"]),
        (TWO_PARTS, []),
    ],
)
def test_values_keep_their_types(text: str, reasons: list[str], left_to_numba: list[str]) -> None:
    """As float64, a common type, 2**53 + 1 would be even."""
    assert run(text, 2**53 + 1, 2)[:2] == [1.0, 0.5]
    assert left_to_numba == reasons


BODIES = {
    "zero turns": "for i in range(n, n): total += 1",
    "steps down": "for i in range(n, -1, -3): total += i",
    "steps of three": "for i in range(-5, n, 3): total += i * i",
    "a step that varies": "for i in range(0, n, m): total += i",
    "a step that varies down": "for i in range(n, 0, -m): total += i",
    "a last value": "for i in range(n): pass\ntotal = i",
    "an assigned counter": "for i in range(n):\n    total += i\n    i = 100\n    total += i",
    "continue": "for i in range(n):\n    if i % 2 == 0: continue\n    total += i",
    "break": "for i in range(n):\n    if i * i > n: break\n    total += i",
    "while": "while total * total < n: total += m",
    "while true": "while True:\n    total += 1\n    if total > n: break",
    "inner loops": "for i in range(n):\n    for j in range(i):\n        if j == m: break\n        total += j",
    "a value of an inner block": "for i in range(n):\n    if i:\n        was = i\n        total += was\ntotal += was",
    "a value of the turn before": "old = 0\nfor i in range(n):\n    total += old\n    old = i * m",
    "two values": "a, b = n, m\na, b = b, a\ntotal = 10 * a + b",
    "chosen pairs": "a, b = (n, 1) if n > m else (1, m)\ntotal = 10 * a + b",
    "chosen": "total = n if m > 2 else -m",
    "chosen of two types": "total = n + (0.5 if m > 2 else m)",
    "a chain": "if 0 <= n - m < n: total = 7",
    "a long chain": "if 0 < m < n < 2 * n: total = 7",
    "and": "if n > 3 and m > 100: total = 1",
    "or": "if n > 300 or m > 1: total = 1",
    "not": "if not (n > 300 or m > 100) and not n == m: total = 1",
    "truths": "total = (n > m and m > 1) + 2 * (n > 100 or m > 100) + 4 * (not n > m)",
    "numbers as truths": "if n - n: total = 1\nif m: total += 2",
    "floors": "total = -n // m + 100 * (-n % m) + 10000 * (n // -m)",
    "bits": "total = ((n << 3) ^ m) & ~1 | (n >> 1)",
    "constants": "total = (3 - 5) * 2 ** 3 // 3 + -7 % 3 + math.inf * 0 * n if n < 0 else (4 + 5) // 2",
    "least and greatest": "total = min(n, m, 5) + 10 * max(m, n) + 100 * min(2.5, n)",
    "nothing after a return": "if n > 0:\n    out[0] = 5\n    return\ntotal = 3",
}
BODIES_FOR_NUMBA = {
    "a variable of two types": "v = n\nfor i in range(m): v = v * 0.5\ntotal = v",
    "numbers joined by or": "total = n or m",
    "division by a constant zero": "if n < 0: total = 1 // 0",
}


def function_of(body: str) -> str:
    lines = "".join(f"    {line}\n" for line in body.split("\n"))
    head = "def f(args):\n    out = write_f64(args[0], 0)\n    n = args[1]\n    m = args[2]\n    total = 0\n"
    return f"{head}{lines}    out[0] = f64(total)\n".replace("math.inf", "1e308")


def in_python(text: str, n: int, m: int) -> float:
    """Return what Python writes to the first element."""
    out = [np.nan]
    names: dict[str, Any] = {"write_f64": lambda address, scope: out, "f64": float}
    exec(text, names)
    names["f"]([0, n, m])
    return out[0]


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_statements_mean_what_they_mean_in_python(body: str, left_to_numba: list[str]) -> None:
    text = function_of(body)
    for n, m in ((13, 4), (3, 3), (9, 2)):
        assert run(text, n, m)[0] == in_python(text, n, m), (n, m)
    assert left_to_numba == []


@pytest.mark.parametrize("body", BODIES_FOR_NUMBA.values(), ids=BODIES_FOR_NUMBA)
def test_what_is_left_to_numba_means_the_same(body: str, left_to_numba: list[str]) -> None:
    text = function_of(body)
    assert run(text, 13, 4)[0] == in_python(text, 13, 4)
    assert left_to_numba


@st.composite
def blocks(draw: Any, depth: int, in_loop: bool) -> list[str]:
    """Return the lines of a block of random statements."""
    lines: list[str] = []
    variable = st.sampled_from(["a", "b", "c", "total"])
    number = st.one_of(variable, st.integers(-4, 9).map(str), st.sampled_from(["n", "m"]))
    for _ in range(draw(st.integers(1, 3))):
        target, left, right = draw(variable), draw(number), draw(number)
        operator = draw(st.sampled_from(["+", "-", "*", "&", "|", "^"]))
        value = f"({left} {operator} {right}) % 1009"
        test = f"{left} {draw(st.sampled_from(['<', '<=', '==', '!=', '>']))} {right}"
        if draw(st.booleans()):
            test = f"{test} {draw(st.sampled_from(['and', 'or', 'and not']))} {draw(number)} > {draw(number)}"
        kind = draw(st.sampled_from(["=", "=", "+=", "choice", "if", "for", "leave"]))
        if (kind in ("if", "for") and depth == 0) or (kind == "leave" and not in_loop):
            kind = "="
        if kind == "choice":
            lines.append(f"{target} = {left} if {test} else {right}")
        elif kind == "leave":
            lines.append(f"if {test}: {draw(st.sampled_from(['break', 'continue']))}")
        elif kind == "if":
            lines += [f"if {test}:", *[f"    {line}" for line in draw(blocks(depth - 1, in_loop))]]
            if draw(st.booleans()):
                lines += ["else:", *[f"    {line}" for line in draw(blocks(depth - 1, in_loop))]]
        elif kind == "for":
            counter = f"i{depth}"
            start, stop = draw(st.integers(-3, 3)), draw(st.integers(-3, 5))
            step = draw(st.sampled_from([1, 2, -1, -2]))
            lines += [f"for {counter} in range({start}, {stop}, {step}):", f"    total += {counter}"]
            lines += [f"    {line}" for line in draw(blocks(depth - 1, True))]
        else:
            lines.append(f"{target} {kind} {value}")
    return lines


@given(blocks(3, False), st.integers(-5, 20), st.integers(1, 9))
@settings(max_examples=40, deadline=None)
def test_random_functions_mean_what_they_mean_in_python(lines: list[str], n: int, m: int) -> None:
    text = function_of("\n".join(["a = n", "b = m", "c = 0", *lines, "total = total % 100003"]))
    assert run(text, n, m)[0] == in_python(text, n, m), text


@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_kernels_of_ops_are_lowered_in_one_walk(dtype: str, left_to_numba: list[str]) -> None:
    kernels: dict[str, Kernel] = {}
    for op, case in sample(CASES[::20], "one walk"):

        def results(b: Any, *values: Any, op: Any = op, case: Any = case) -> list[Any]:
            result = b.apply(op, values, dict(case.params))
            return list(result) if isinstance(result, tuple) else [result]

        try:
            graph = graph_of(results, draw(op, case, dtype))
        except tj.DTypeError:
            continue
        kernels.update({kernel.name: kernel for kernel in build(graph).kernels if kernel.host is None})
    for kernel in kernels.values():
        numba_target.lower(kernel)
    # Of int32, which NumPy never adds up in int32, a recurrence has a variable of two types.
    assert [what for what in left_to_numba if not what.startswith("recurrence: ")] == []


@pytest.mark.slow
def test_long_kernels_are_lowered_in_one_walk(left_to_numba: list[str]) -> None:
    """Also those whose variables have parts of several types."""
    graph = Graph()
    b = Builder(graph)
    x, y = b.input(Aval((5, 30), None, F32)), b.input(Aval((30, 10), None, F32))
    graph.outputs = [b.sum(b.tanh(b.matmul(x, y)), axes=(0,), keepdims=False)]
    for kernel in [*build(graph).kernels, _windows(F32, 8, 32, True, ("s", "s"), False, True, None)]:
        code, _ = numba_target.lower(kernel).object_code()
        assert numba_target.lower(kernel).object_code()[0] == code
    assert left_to_numba == []


@pytest.mark.parametrize(("count", "is_probed"), [(1 << 17, False), ((1 << 17) + 1, True)])
def test_much_scratch_memory_is_probed(count: int, is_probed: bool) -> None:
    text = f"def f(args):\n    s = scratch_f32({count})\n    o = write_f32(args[0], 0)\n    o[1] = s[0]\n"
    texts = numba_target.lower(Kernel("f", text)).texts
    assert any("probe-stack" in module for module in texts) == is_probed


def test_loops_of_winograds_method_hide_their_counters(monkeypatch: pytest.MonkeyPatch) -> None:
    """LLVM does not rewrite their addresses; the result is the same."""
    text = "def f(args):\n    out = write_f64(args[0], 0)\n" + (
        "    for i in range(4):\n        for j in range(args[1]):\n            out[4 * i + j] = 10 * i + j\n"
    )
    plain = numba_target.lower(Kernel("f", text))
    monkeypatch.setattr(numba_target, "_TRANSFORMS", "10 * i")
    hidden = numba_target.lower(Kernel("f", text))
    narrow = numba_target.lower(Kernel("f", f"# add_outer_f32x{vector_bytes() // 4}(\n{text}"))
    assert [lowered.texts[-1].count("asm") for lowered in (plain, hidden, narrow)] == [0, 2, 0]
    assert run(text, 4) == run(text.replace("10 * i", "i * 10"), 4)
