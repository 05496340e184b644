# SPDX-License-Identifier: BSD-3-Clause
"""What an expression gives, or a statement does, in the words of the tables in docs/views_and_writes.md."""

import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from write_oracle import KINDS, Ran, compare

import tracejit as tj

PAGE = Path(__file__).resolve().parents[2] / "docs" / "views_and_writes.md"
NAMES = "x, y, s, v, n, m"
WRITERS = (".at(", "out=", "np.copyto", "np.fill_diagonal", "np.log", "np.nan_to_num", "np.place", "np.put",
           "x.fill", "x.partition", "x.put", "x.resize", "x.sort")  # fmt: skip
"""Signs of an expression that writes into an operand."""
CALLS = 3


def _fix_reads_what_it_wrote() -> bool:
    """Return whether NumPy's np.fix(x, out=x) is wrong, as before 2.4."""
    x = np.array([0.5])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return bool(np.fix(x, out=x)[0] != 0)


WRONG_IN_NUMPY = {"np.fix(x, out=x)"} if _fix_reads_what_it_wrote() else set()
"""Code whose result in NumPy is none to compare with."""


def rows() -> Iterator[tuple[str, str]]:
    """Yield each piece of code in the tables of the page, with what the page says of it."""
    for line in PAGE.read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if line.startswith("|") and len(cells) == 3 and cells[1].startswith("`"):
            for code in cells[1].strip("`").split("`, `"):
                if code not in WRONG_IN_NUMPY:
                    yield code, cells[2].replace("`", "")


def arguments(call: int) -> list[np.ndarray]:
    """Return the arrays that the tables name, with other numbers in each call."""
    rng = np.random.default_rng(call)
    x, y, s, v, n = (0.9 * rng.uniform(-1, 1, size) for size in [(3, 4), (3, 4), (3, 3), (12,), (3, 4)])
    m = np.arange(12).reshape(3, 4) % 2 == 0
    return [np.where(m, abs(x), -abs(x)), y, s, v, np.rint(5 * n).astype(np.int64), m]


def ran(function: Callable[..., Any], call: int, box: Any = None) -> Ran:
    """Return the result of a call, or the error, and what its arguments hold afterwards."""
    given = arguments(call)
    try:
        return function(*(given if box is None else map(box, given))), given
    except Exception as error:
        return error.with_traceback(None), given


def gives_an_array(code: str) -> bool:
    """Whether code is an expression that writes nothing."""
    try:
        compile(code, "<table>", "eval")
    except SyntaxError:
        return False
    return not any(sign in code for sign in WRITERS)


def function_of(*lines: str) -> Callable[..., Any]:
    text = "\n    ".join([f"def program({NAMES}):", *lines])
    names: dict[str, Any] = {"np": np, "tj": tj}
    exec(compile(text, "<table>", "exec"), names)
    program: Callable[..., Any] = names["program"]
    return program


def kind_of(error: Exception) -> type[Exception]:
    return next(kind for kind in KINDS if isinstance(error, kind))


def outcome(code: str) -> str:
    """Return what code does, after it was compared with NumPy: uncompiled, evaluated, accelerated."""
    is_array = gives_an_array(code)
    program = function_of(f"r = {code}", "r += 7", "return r") if is_array else function_of(code)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of NumPy: x.shape = ..., np.fix
        expected, after = ran(program, 0)
        found, _ = ran(partial(tj.dlfeval, program), 0)
        as_numpy = isinstance(expected, Exception) and isinstance(found, kind_of(expected))
        if isinstance(found, Exception) and not as_numpy:
            return refusal(found)
        if isinstance(expected, Exception) and not isinstance(found, Exception):
            compare_all(function_of(f"r = {code}", "s[...] *= 2", "x[...] *= 2", "return r"), code)
            return "a view, which NumPy locks"
        compare_all(program, code)
    if isinstance(expected, Exception):
        return "a view, read-only" if is_array else f"{kind_of(expected).__name__}, as in NumPy"
    if expected is None:
        return "written"
    if isinstance(expected, np.generic):
        return "a number"
    return "a view" if any(np.shares_memory(expected, array) for array in after) else "a copy"


def refusal(error: Exception) -> str:
    assert isinstance(error, (tj.TraceJitError, AttributeError, TypeError)), repr(error)
    return f"refused: {error}"


def compare_all(program: Callable[..., Any], code: str) -> None:
    """Compare all ways of running a program with NumPy."""
    accelerated = tj.dlaccelerate(program)
    for call in range(CALLS):
        expected, before = ran(program, call), arguments(call)
        ways = {"evaluated": ran(partial(tj.dlfeval, program), call)}
        if "as_strided" not in code:  # it asks no array, and is answered while something is recorded
            ways["eager"] = ran(program, call, tj.dlarray)
        for how, ours in {**ways, "accelerated": ran(accelerated, call)}.items():
            compare(f"{code}: {how}", call, ours, expected, before, 1e-12)
