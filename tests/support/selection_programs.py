# SPDX-License-Identifier: BSD-3-Clause
"""Random programs in NumPy that select by masks and places, for one axis and for two."""

from typing import Any

import numpy as np

_MASKS = (
    "x > 0.2", "x < a", "np.abs(x) > 0.5", "(x > -1) & (x < 0.7)", "~(x > 0)", "out >= 0", "x * x < a",
)  # fmt: skip
_FUNCTIONS = (
    "{0} * a", "np.exp(-{0} * {0})", "np.sqrt(np.abs({0}) + a)", "np.where({0} > 0, {0}, a)", "{0} + 1",
    "np.clip({0}, -0.5, 0.5)", "-{0}", "np.tanh({0}) ** 2", "2.0 / (1 + {0}**2)", "np.maximum({0}, 0)",
)  # fmt: skip
_IN_PLACE = (
    "{0} *= a",
    "{0} += 1.5",
    "{0} -= {0}.mean()",
    "{0} /= 2",
    "{0}[{0} > a] = 0",
    "{0}[{0} < 0] *= a",
)
_SIZES = (
    "np.sort({0}, axis=0).sum()", "float(len({0})) * a", "{0}.shape[0] * a", "np.cumsum({0}).sum()", "{0}",
    "np.concatenate([{0}, {0}]).sum()", "{0}.copy()", "{0}.T.sum()", "np.median({0}) if np.any({1}) else a",
)  # fmt: skip
_REDUCTIONS = ("sum", "prod", "any", "all")
_OF_SOME = ("mean", "max", "min", "std", "var")  # which an empty selection does not have


class _Writer:
    """The program that is being written: its masks and selections, with their axes."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.axes = 2 if self.rng.random() < 0.4 else 1
        self.lines: list[str] = []
        self.masks: list[tuple[str, int]] = []
        self.selections: list[tuple[str, str, int]] = []  # name, mask, axes

    def one(self, options: Any) -> Any:
        return options[self.rng.integers(len(options))]

    def selection(self, text: str, mask: str, axes: int) -> None:
        name = f"s{len(self.selections)}"
        self.lines.append(f"{name} = {text}")
        self.selections.append((name, mask, axes))

    def column(self) -> int:
        return int(self.rng.integers(3))

    def mask(self) -> None:
        text, axes = self.one(_MASKS), self.axes
        if axes == 2 and self.rng.random() < 0.5:
            text, axes = f"({text})[:, {self.column()}]", 1
        name = f"m{len(self.masks)}"
        self.lines.append(f"{name} = {text}")
        self.masks.append((name, axes))

    def select(self) -> None:
        (mask, axes), array = self.one(self.masks), self.one(["x", "out"])
        if self.axes == 2 and axes == 1 and self.rng.random() < 0.3:
            self.selection(f"{array}[{mask}, {self.column()}]", mask, 1)
        else:
            self.selection(f"{array}[{mask}]", mask, self.axes - axes + 1)

    def compute(self) -> None:
        name, mask, axes = self.one(self.selections)
        self.selection(self.one(_FUNCTIONS).format(name), mask, axes)

    def combine(self) -> None:
        first = self.one(self.selections)
        second = self.one([other for other in self.selections if other[1:] == first[1:]])
        self.selection(f"{first[0]} * {second[0]} + a", *first[1:])

    def narrow(self) -> None:
        name, _, axes = self.one(self.selections)
        if axes == 1:
            self.lines.append(f"outs.append({name}[{name} > {self.one(['0', 'a', '-0.3'])}].sum())")

    def write_selection(self) -> None:
        name, mask, axes = self.one(self.selections)
        if axes == 1:
            text = self.one(_IN_PLACE).format(name)
            self.lines.append(f"if np.any({mask}): {text}" if "mean" in text else text)

    def reduce(self) -> None:
        name, mask, axes = self.one(self.selections)
        options = self.one(["", ", axis=0", ", keepdims=True", *([", axis=1"] if axes == 2 else [])])
        if self.rng.random() < 0.5:
            self.lines.append(f"outs.append(np.{self.one(_REDUCTIONS)}({name}{options}).sum())")
        else:
            self.lines.append(
                f"if np.any({mask}): outs.append(np.{self.one(_OF_SOME)}({name}{options}).sum())"
            )

    def dot(self) -> None:
        name, mask, axes = self.one(self.selections)
        second = self.one([other for other in self.selections if other[1:] == (mask, axes)])
        if axes == 1:
            self.lines.append(f"outs.append(np.dot({name}, {second[0]}) + {name} @ {second[0]})")

    def assign(self) -> None:
        mask, axes = self.one(self.masks)
        values = [other for other in self.selections if other[1] == mask]
        if values and self.rng.random() < 0.7:
            name, _, have = self.one(values)
            if have == self.axes - axes + 1:
                self.lines.append(f"out[{mask}] {self.one(['=', '+=', '-='])} {name}")
            else:
                self.lines.append(f"out[{mask}, {self.column()}] {self.one(['=', '+=', '*='])} {name}")
        else:
            self.lines.append(f"out[{mask}] {self.one(['= 0', '*= a', '+= 1', '= a', '/= 2'])}")

    def places(self) -> None:
        mask, axes = self.one(self.masks)
        if axes == 1:
            text = self.one(["outs.append(x[{0}].sum())", "out[{0}] *= a", "outs.append(({0} * 2.0).sum())"])
            self.lines.append(text.format(f"np.where({mask})[0]"))
        else:
            self.lines.append(f"i, j = np.nonzero({mask})")
            self.lines.append(
                self.one(["outs.append(x[i, j].sum())", "out[i, j] = a", "outs.append(x[i].sum())"])
            )

    def first(self) -> None:
        name, mask, axes = self.one(self.selections)
        if axes == 1:
            self.lines.append(f"outs.append({name}[0] if np.any({mask}) else a)")

    def size(self) -> None:
        name, mask, _ = self.one(self.selections)
        self.lines.append(f"outs.append({self.one(_SIZES).format(name, mask)})")

    def written(self) -> str:
        self.lines += ["outs = []", self.one(["out = x.copy()", "out = np.zeros_like(x)"])]
        for _ in range(self.rng.integers(1, 3)):
            self.mask()
        self.select()
        actions = (
            self.select, self.select, self.compute, self.compute, self.combine, self.narrow, self.write_selection,
            self.reduce, self.reduce, self.dot, self.assign, self.assign, self.places, self.first, self.size,
        )  # fmt: skip
        for _ in range(self.rng.integers(3, 10)):
            self.one(actions)()
        lines = [*self.lines, "outs.append((out**2).sum())", "outs.append(out)", "return outs"]
        return "\n".join(["def program(x, a):", *[f"    {line}" for line in lines]])


def program(seed: int) -> tuple[str, tuple[int, ...]]:
    """Return the text of a function of an array and a number, and the size of the array."""
    writer = _Writer(seed)
    return writer.written(), (5, 3) if writer.axes == 2 else (9,)
