# SPDX-License-Identifier: BSD-3-Clause
"""Random programs that read and change numbers which they do not get as arguments: attributes, items, globals."""

import random
from collections.abc import Callable
from typing import Any

import numpy as np

INTEGERS = ("o.n", "o.i", "o.part.n", "o.d['k']", "K.count", "N", "o.l[1]")
FLOATS = ("o.t", "o.r", "o.part.s", "o.d['v']", "R", "o.l[0]", "o.f")
READS = (
    "{i}", "{f}", "{i} % 3", "{i} // 2", "{f} * 0.5", "{f} + {i}", "1.0 / (1 + {i})", "0.9 ** {i}", "{f} - 0.1 * {f}",
    "np.sin({f})", "math.exp(-abs({f}))", "min({f}, 2.0)", "max({i}, 3)", "abs({f})", "-{i}", "o.rate()", "{i} + {i}",
    "o.scaled",
)  # fmt: skip
CHANGES = (
    "{i} += 1", "{i} = ({i} + 1) % 4", "{i} -= 2", "{f} *= 0.9", "{f} += 0.25", "{f} += {n} * 0.1", "{f} = {n}",
    "{f} = 0.5", "{i} = 0", "{f} = max({f} * 0.5, 0.01)", "{i} = {i} + {i} % 2", "o.a += x * ({n})",
    "o.a[{i} % 3] = {n}", "o.b[{i} % 4] = x", "o.b[{i} % 4, {i} % 3] += {n}", "x = x * ({n})", "x = x + ({n})",
    "y = o.b[{i} % 4] + y", "y = y * ({n})", "o.advance()", "o.advance(); {i} += 1", "o.w = {n}", "o.w = x[0] * ({n})",
    "n = {i}; n += 1; {i} = n", "{i}, {f} = {i} + 1, {f} * 0.5", "o.last = {i}",
)  # fmt: skip
ENDS = ("{n}", "x * ({n})", "y", "[{n}, y]", "(x.sum(), {i}, {f})", "{i}", "o.a.sum()", "o.w * x")


class K:
    """A class that counts."""

    count = 0


class Part:
    """An object in an object."""

    __slots__ = ("n", "s")

    def __init__(self) -> None:
        self.n, self.s = 1, 0.5


class Counting:
    """What a program reads and changes."""

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.n, self.i = seed % 3, 0
        self.t, self.r, self.f = 0.0, 0.5, np.float32(0.5)
        self.w: Any = 1.0
        self.last = 0
        self.d: dict[str, Any] = {"k": 2, "v": 1.5}
        self.l: list[Any] = [0.25, 1]
        self.part = Part()
        self.a = rng.normal(size=3)
        self.b = rng.normal(size=(4, 3))

    def rate(self) -> float:
        """Return a rate that decays."""
        return 0.1 / (1.0 + 0.5 * self.n)

    @property
    def scaled(self) -> float:
        """The time, scaled."""
        return self.t * 0.5

    def advance(self) -> None:
        """Go on in time."""
        self.t += 0.125
        self.n += 1

    def state(self) -> list[Any]:
        """Return all numbers and arrays."""
        return [
            self.n, self.i, self.t, self.r, self.f, self.w, self.last, *self.d.values(), *self.l, self.part.n,
            self.part.s, self.a, self.b,
        ]  # fmt: skip


def body(seed: int) -> list[str]:
    """Return the lines of a program of x, an array of 3 numbers, and the object o."""
    rng = random.Random(seed)
    ints, floats = rng.sample(INTEGERS, 2), rng.sample(FLOATS, 2)

    def filled(text: str) -> str:
        while "{" in text:
            start = text.index("{")
            choices = {"i": ints, "f": floats, "n": READS}[text[start + 1]]
            text = text[:start] + filled(rng.choice(choices)) + text[start + 3 :]
        return text

    lines = []
    for _ in range(rng.randint(1, 5)):
        line = filled(rng.choice(CHANGES))
        form, indented = rng.random(), f"    {line}"
        if form < 0.1:
            lines += [f"if {filled('{i}')} % 2 == 0:", indented]
        elif form < 0.15:
            lines += [f"if {filled('{f}')} > 0.4:", indented, "else:", f"    {filled('{i} += 1')}"]
        elif form < 0.2:
            lines += ["for _ in range(2):", indented]
        else:
            lines.append(line)
    return ["global N, R", "y = x * 0.5", *lines, f"return {filled(rng.choice(ENDS))}"]


def made(
    seed: int, accelerated: Callable[[Any], Any] = lambda fun: fun
) -> tuple[Any, Counting, dict[str, Any]]:
    """Return a program, the object that it changes, and its global names."""
    lines = ["import math", "def program(x):", *[f"    {line}" for line in body(seed)]]
    kind = type("K", (K,), {"count": 1})
    names: dict[str, Any] = {"np": np, "o": Counting(seed), "K": kind, "N": 1, "R": 0.75}
    exec(compile("\n".join(lines), f"<counts {seed}>", "exec"), names)
    return accelerated(names["program"]), names["o"], names


def state(o: Counting, names: dict[str, Any]) -> list[Any]:
    """Return all that a program can change."""
    return [*o.state(), names["K"].count, names["N"], names["R"]]
