# SPDX-License-Identifier: BSD-3-Clause
"""What an expression gives, or a statement does, as one word of the table in docs/views_and_writes.md."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from write_oracle import Ran, compare

import tracejit as tj

PAGE = Path(__file__).resolve().parents[2] / "docs" / "views_and_writes.md"
NAMES = ("x", "y", "s", "v", "n", "m")


def arguments(call: int) -> list[np.ndarray]:
    """Return the arrays of the table, with other numbers in each call."""
    rng = np.random.default_rng(call)
    sizes = [(3, 4), (3, 4), (3, 3), (12,), (3, 4)]
    x, y, s, v, n = (0.9 * rng.uniform(-1, 1, size) for size in sizes)
    x[:, ::2], x[:, 1::2] = abs(x[:, ::2]), -abs(x[:, 1::2])  # a mask chooses the same places in each call
    return [x, y, s, v, np.rint(5 * n).astype(np.int64), np.arange(12).reshape(3, 4) % 2 == 0]


def rows() -> Iterator[tuple[str, str]]:
    """Yield each piece of code in the tables of the page, with what the page says of it."""
    for line in PAGE.read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if line.startswith("|") and len(cells) == 3 and cells[1].startswith("`"):
            yield from ((code, cells[2]) for code in cells[1].strip("`").split("`, `"))


def function_of(code: str) -> Callable[..., Any]:
    """Return a function that adds to what an expression gives, or that runs a statement."""
    try:
        compile(code, "<table>", "eval")
        body = [f"r = {code}", "r += 7", "return r"]
        if "out=" in code or ".at(" in code or code.startswith(IN_PLACE):
            body = [code]
    except SyntaxError:
        body = [code]
    text = "\n    ".join([f"def program({', '.join(NAMES)}):", *body])
    names: dict[str, Any] = {"np": np, "tj": tj}
    exec(compile(text, "<table>", "exec"), names)
    program: Callable[..., Any] = names["program"]
    return program


IN_PLACE = (
    "np.copyto", "np.fill_diagonal", "np.put", "np.place", "x.fill", "x.put", "x.sort", "x.partition", "x.resize",
    "np.log", "x.itemset", "np.nan_to_num", "np.random",
)  # fmt: skip


def ran(function: Callable[..., Any], call: int, box: Any = None) -> Ran:
    given = arguments(call)
    try:
        return function(*(given if box is None else map(box, given))), given
    except Exception as error:
        return error, given


def outcome(code: str) -> str:
    """Return what code does, after it was compared with NumPy, uncompiled and accelerated."""
    program = function_of(code)
    accelerated = tj.dlaccelerate(program)
    with np.errstate(all="ignore"):
        expected, after = ran(program, 0)
        found, _ = ran(lambda *args: tj.dlfeval(program, *args), 0)
        if isinstance(found, Exception) and not isinstance(expected, Exception):
            assert isinstance(found, tj.TraceJitError), f"{code}: {found!r}"
            return f"refused: {found}"
        for call in range(4):
            expected, after = ran(program, call)
            before = arguments(call)
            ways = {
                "eager": ran(program, call, tj.dlarray),
                "dlfeval": ran(lambda *args: tj.dlfeval(program, *args), call),
                "accelerated": ran(accelerated, call),
            }
            for how, ours in ways.items():
                compare(f"{code}: {how}", call, ours, (expected, after), before, 1e-12)
    if isinstance(expected, Exception):
        return (
            "read-only"
            if "read-only" in str(expected)
            else f"{type(expected).__mro__[-4].__name__}, as in NumPy"
        )
    if expected is None:
        return "written"
    if isinstance(expected, np.generic):
        return "a number"
    return "a view" if any(np.shares_memory(expected, array) for array in after) else "a copy"
