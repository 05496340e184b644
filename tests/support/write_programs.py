# SPDX-License-Identifier: BSD-3-Clause
"""Programs that write into arrays, as text that is the same for NumPy and for tracejit, and their arguments."""

from typing import Any, NamedTuple

import numpy as np

MODULE = """
import numpy as np


class Box:
    pass


def scaled(x, number):
    x *= number
    return x[1:]


def with_first(x, value):
    x[0] = value
    return x


def halves(x):
    return x[: len(x) // 2], x[len(x) // 2 :]


def added(arrays, value):
    for x in arrays:
        x += value
    return arrays


def shifted(x):
    x[1:] = x[:-1]
    x[0] = 0
    return x.T


def relaxed(x, y):
    x[...] = 0.5 * (x + y)
    return x


def summed(out, x):
    for i in range(len(x)):
        out[i % len(out)] += x[i]
    return out[::-1]


def rebound(x):
    x = x + 1
    x += 1
    return x


def swapped(x, i, j):
    kept = x[i].copy()
    x[i] = x[j]
    x[j] = kept


def flat_written(x):
    y = x.reshape(-1)
    y[::2] *= 0.5
    return y
"""


class Argument(NamedTuple):
    """How to make an argument: its size, its dtype, and its memory (whole, with a step, in Fortran's order, locked)."""

    shape: tuple[int, ...]
    dtype: str
    layout: str


class Program(NamedTuple):
    """A program: statements, what it returns, and its arguments by name; text stands for an array passed again.

    What is named g is no argument but a global name of the program.
    """

    seed: int
    parameters: dict[str, Any]
    statements: tuple[str, ...]
    result: str

    @property
    def overlaps(self) -> bool:
        """Whether an argument is a view of another one, which may be refused by name."""
        return any(isinstance(value, str) and not value.isidentifier() for value in self.parameters.values())

    @property
    def text(self) -> str:
        """The source of the function and of those that it calls."""
        body = [line for statement in self.statements for line in statement.splitlines()]
        names = ", ".join(name for name in self.parameters if name != "g")
        lines = [f"def program({names}):", *(f"    {line}" for line in body)]
        return "\n".join([MODULE, "", *lines, f"    return {self.result}", ""])


def arguments_of(parameters: dict[str, Any], seed: int, call: int) -> tuple[dict[str, Any], list[np.ndarray]]:
    """Return fresh arguments for a call of a program, and the buffers that hold them.

    The first three calls have numbers of the same signs, so that a mask chooses the same places.
    """
    signs, sizes = np.random.default_rng(seed), np.random.default_rng([seed, call])
    buffers: list[np.ndarray] = []
    made: dict[str, Any] = {}

    def array(argument: Argument) -> np.ndarray:
        shape, layout = argument.shape, argument.layout
        if layout == "step" and shape:
            shape = (2 * shape[0], *shape[1:])
        numbers = np.where(signs.random(shape) < 0.6, 1.0, -1.0) * sizes.uniform(0.3, 2.0, shape)
        if call > 2:
            numbers *= np.where(sizes.random(shape) < 0.8, 1.0, -1.0)
        if argument.dtype == "int64":
            numbers = np.rint(3 * numbers)
        whole = (numbers > 0).astype(bool) if argument.dtype == "bool" else numbers.astype(argument.dtype)
        whole = np.array(whole, order="F" if layout == "fortran" else "C")
        buffers.append(whole)
        found = whole[::2] if layout == "step" and shape else whole[...]
        found.flags.writeable = layout != "locked"
        return found

    def value(parameter: Any) -> Any:
        if isinstance(parameter, Argument):
            return array(parameter)
        if isinstance(parameter, dict):
            return {name: value(part) for name, part in parameter.items()}
        if isinstance(parameter, (list, tuple)):
            return type(parameter)(value(part) for part in parameter)
        return eval(parameter, {}, made) if isinstance(parameter, str) else parameter

    for name, parameter in parameters.items():
        made[name] = value(parameter)
    return made, buffers
