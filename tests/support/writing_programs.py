# SPDX-License-Identifier: BSD-3-Clause
"""Random programs that write into ndarrays which they do not get as arguments: attributes, items, globals, views."""

import random
from collections.abc import Callable
from typing import Any

import numpy as np

VECTORS = (
    "o.a", "o.b[1]", "o.b[k]", "o.b.T[1][:3]", "o.b[::-1][0]", "o.l[0]", "o.d['v']", "G", "o.a[::-1]", "o.view",
    "o.same", "o.part.q",
)  # fmt: skip
SCALARS = (
    "o.a[0]",
    "o.b[1, 2]",
    "o.b[2][k]",
    "o.l[0][1]",
    "o.d['v'][-1]",
    "G[k]",
    "o.view[2]",
    "x[1]",
    "t",
    "0.5",
)
READS = (
    "{v}", "{v} * 2.0", "x + {v}", "np.sin({v})", "{v}[::-1]", "np.where({v} > x, x, {v})", "{v}.copy()", "np.abs({v})",
    "np.cumsum({v})", "{v} * {v}", "np.maximum({v}, x)", "o.b[:3] @ {v}", "np.stack([x, {v}]).mean(axis=0)", "x * t",
    "np.full(3, {s})", "x * {s}", "x - {v}.mean()", "{v} / (1.0 + np.linalg.norm({v}))",
)  # fmt: skip
WRITES = (
    "{w} += {r}", "{w} *= 0.5", "{w} -= {r}", "{w}[:] = {r}", "{w}[1:] = ({r})[:2]", "{w}[0] = {s}", "{w}[1] += {s}",
    "{w}[...] = 0.25", "{w}[{w} > 1.0] = 0.5", "{w}[[0, 2]] = ({r})[1:]", "np.multiply({v}, 0.5, out={w})",
    "np.copyto({w}, {r})", "np.add.at({w}, [0, 0, 1], {r})", "{w}.fill({s})", "o.b[:, 1] = {s}", "o.b *= 0.5",
    "o.b[1:3] = o.b[:2]", "o.n[1] += 2", "o.n[k] = 1", "np.clip({r}, -1.0, 1.0, out={w})", "{w} = np.tanh({w})",
    "o.bump({r})", "move({w}, {r})", "w = {w}; w += {r}", "w = {w}; w[0] = {s}", "for row in o.b: row *= 0.5",
    "for v in o.l: v -= {r}", "o.b[k, 1:] -= ({r})[:2]", "np.put({w}, [0, 1], ({r})[:2])", "{w}.sort()",
    "{w}[k] = float({s})", "{w}[:2], t = ({r})[:2], {s}", "o.kept = {w}", "o.kept = {r}", "o.kept += {r}",
    "global G; G += {r}",
)  # fmt: skip
ENDS = ("{r}", "{v}", "{s}", "[{r}, {s}]", "{r}.sum()", "float({s})", "({v}, {v}.copy())")


class Part:
    """An object in an object."""


class Holder:
    """What a program reads and writes."""

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.a = rng.normal(size=3)
        self.b = rng.normal(size=(4, 3))
        self.n = np.array([1, 2, 3])
        self.l = [rng.normal(size=3), rng.normal(size=3)]
        self.d = {"v": rng.normal(size=3)}
        self.view = self.b[3]
        self.same = self.a
        self.kept = rng.normal(size=3)
        self.part = Part()
        self.part.q = rng.normal(size=3)  # type: ignore[attr-defined]

    def bump(self, x: Any) -> None:
        """Write in a method."""
        self.a += x
        self.l[1][0] = x[0]

    def arrays(self) -> dict[str, Any]:
        """Return the arrays by names."""
        found = {name: value for name, value in vars(self).items() if name not in ("l", "d", "part")}
        return {**found, "l0": self.l[0], "l1": self.l[1], "d": self.d["v"], "q": self.part.q}  # type: ignore[attr-defined]


def body(seed: int) -> list[str]:
    """Return the lines of a program of x, an array of 3 numbers, the object o and the constant k."""
    rng = random.Random(seed)

    def filled(text: str, depth: int = 0) -> str:
        while "{" in text:
            start = text.index("{")
            kind = text[start + 1]
            choices = {"v": VECTORS, "w": VECTORS, "s": SCALARS, "r": READS}[kind]
            if kind == "r" and depth > 1:
                choices = ("x", "{v}")
            text = text[:start] + filled(rng.choice(choices), depth + 1) + text[start + 3 :]
        return text

    lines = ["t = x[0] * 0.5"]
    for _ in range(rng.randint(1, 4)):
        template = rng.choice(WRITES)
        place = filled("{w}")
        line = filled(template.replace("{w}", place))
        if "global" in line:
            lines.insert(0, "global G")
            line = line.partition("; ")[2]
        form, indented = rng.random(), f"    {line}"
        if form < 0.12:
            lines += [f"if {filled('{s}')} > 0.1:", indented]
        elif form < 0.2:
            lines += ["for i in range(2):", indented]
        else:
            lines.append(line)
    first = ["global G"] if "global G" in lines else []
    return [*first, *[line for line in lines if line != "global G"], f"return {filled(rng.choice(ENDS))}"]


def made(
    seed: int, accelerated: Callable[[Any], Any] = lambda fun: fun
) -> tuple[Any, Holder, dict[str, Any]]:
    """Return a program, the object that it writes, and its global names."""
    lines = ["def program(x):", *[f"    {line}" for line in body(seed)]]
    lines += ["def move(w, v):", "    w[1:] = v[:2]", "    w *= 0.9"]
    names: dict[str, Any] = {
        "np": np,
        "o": Holder(seed),
        "k": seed % 3,
        "G": np.random.default_rng(seed + 1).normal(size=3),
    }
    exec(compile("\n".join(lines), f"<writes {seed}>", "exec"), names)
    return accelerated(names["program"]), names["o"], names
