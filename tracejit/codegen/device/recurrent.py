# SPDX-License-Identifier: BSD-3-Clause
"""Emission of recurrent layers for a device.

Note [steps of a recurrent layer]
A step needs all of the state before it, so each step is a launch, which waits for the one before; a step that
multiplies twice is two launches. Note [products of a step] in recurrent_step.py says what a launch multiplies. States
are read where the step before wrote them, in the result. In adjoints, `dh` is the cotangent that goes to the step
before, without the part that comes through weights. That part is multiplied at the beginning of the next launch, and
after the last step by a launch of its own. All launches have the same few kernels, and the length is an argument.
"""

from collections.abc import Mapping, Sequence
from functools import cache

from tracejit.codegen.device.recurrent_step import Products, StepText, grid_of, text_of
from tracejit.codegen.device.text import emitted, indented
from tracejit.codegen.nest import Emitted
from tracejit.passes.loops.launches import KernelLaunch
from tracejit.passes.loops.spread import BLOCK, blocks_of
from tracejit.program import Grid

_OPERANDS = {  # further numbers, what is read, what is written
    "lstm_forward": ("saves", "z bias h0 c0 w mask", "h state cell cells gates"),
    "lstm_backward": ("", "gates cells c0 w mask ct ct_h ct_c", "dz dh dc"),
    "gru_forward": ("before saves", "z bias h0 w wn inner_bias mask", "h state gates"),
    "gru_backward": ("before", "gates states h0 w wn mask ct ct_h", "dz ds dh"),
    "rnn_forward": ("relu", "z bias h0 w mask", "h state"),
    "rnn_backward": ("relu", "states w mask ct ct_h", "dz dh"),
}
_BEFORE = {
    "lstm_forward": {"before": ("h", "h0"), "before_c": ("cells", "c0")},
    "lstm_backward": {"before": ("cells", "c0")},
    "gru_forward": {"before": ("h", "h0")},
    "gru_backward": {"before": ("states", "h0")},
    "rnn_forward": {"before": ("h", "h0")},
    "rnn_backward": {},
}
"""The names of what a step reads of the one before, each with the operand that has it, and that of the first step."""
_COPY = """
element = thread()
while element < elements:
    copy[element] = x[element]
    element = index(element + threads())
"""
_ONCE = ("h0", "c0", "ct_h", "ct_c")
"""Operands that one launch only reads."""
_GATES = {"lstm": 4, "gru": 3, "rnn": 1}  # of which a cotangent is computed


_PLACES = [
    "at = (row * steps + t) * hidden + unit",
    "gate = (row * steps + t) * width + unit",
    "is_kept = False",
    "if masked:",
    "    is_kept = mask[row * steps + t] == T(0)",
]
"""The lines that find where a unit has its state and its gates, and whether the step leaves the state as it is."""


def _sums(names: Sequence[str]) -> dict[str, tuple[str, str, str]]:
    return {name: ("w", f"unit + {number} * hidden", "hidden") for number, name in enumerate(names)}


def _sigmoid(x: str) -> str:
    return f"T(1) / (T(1) + exp_T(-{x}))"


def _keep(states: Mapping[str, str], gates: Sequence[int]) -> list[str]:
    """Return the lines of a step that leaves states as they are, and whose gates are 0."""
    lines = [f"{name} = {before}[row * apart + unit]" for name, before in states.items()]
    return [*lines, *[f"gates[gate + {number} * hidden] = T(0)" for number in gates]]


_STATE_BEFORE = "before[row * apart"


def _lstm() -> StepText:
    names = ("i_gate", "f_gate", "g_gate", "o_gate")
    starts = [
        f"{name} = {name} + z[gate + {number} * hidden] + bias[unit + {number} * hidden]"
        for number, name in enumerate(names)
    ]
    lines = [
        *_PLACES,
        "if is_kept:",
        *indented(1, _keep({"new": "before", "c": "before_c"}, range(4))),
        "else:",
        *indented(1, [
            *starts,
            *[f"{name} = {_sigmoid(name)}" for name in ("i_gate", "f_gate", "o_gate")],
            "g_gate = tanh_T(g_gate)",
            "c = f_gate * before_c[row * apart + unit] + i_gate * g_gate",
            "new = o_gate * tanh_T(c)",
            *[f"gates[gate + {number} * hidden] = {name}" for number, name in enumerate(names)],
        ]),
        "h[at] = new",
        "cells[at] = c",
        "if is_last:",
        "    state[element] = new",
        "    cell[element] = c",
    ]  # fmt: skip
    return StepText([Products(_STATE_BEFORE, "hidden", _sums(names))], lines)


def _gru_gates() -> list[str]:
    """Return the lines of the reset gate and the update gate."""
    return [
        "at_z = (row * steps + t) * 3 * hidden + unit",
        "reset = reset + z[at_z] + bias[unit]",
        "update = update + z[at_z + hidden] + bias[unit + hidden]",
        f"reset = {_sigmoid('reset')}",
        f"update = {_sigmoid('update')}",
        "gates[gate] = reset",
        "gates[gate + hidden] = update",
    ]


_OF_GATES = {"reset": ("w", "unit", "hidden"), "update": ("w", "unit + hidden", "hidden")}
_CANDIDATE = {"entering": ("wn", "unit", "hidden")}
_NEW_STATE = [
    "gates[gate + 3 * hidden] = new",
    "new = (T(1) - update) * new + update * before[row * apart + unit]",
]
_STATE = ["h[at] = new", "if is_last:", "    state[element] = new"]


def _gru() -> StepText:
    lines = [
        *_PLACES,
        "if is_kept:",
        *indented(1, _keep({"new": "before"}, range(4))),
        "else:",
        *indented(1, [
            *_gru_gates(),
            "entering = entering + inner_bias[unit]",
            "gates[gate + 2 * hidden] = entering",
            "new = tanh_T(z[at_z + 2 * hidden] + reset * entering + bias[unit + 2 * hidden])",
            *_NEW_STATE,
        ]),
        *_STATE,
    ]  # fmt: skip
    return StepText([Products(_STATE_BEFORE, "hidden", {**_OF_GATES, **_CANDIDATE})], lines)


def _gru_before_gates() -> StepText:
    lines = [
        *_PLACES,
        "if is_kept:",
        *indented(1, _keep({}, range(3))),
        "else:",
        *indented(1, [*_gru_gates(), "gates[gate + 2 * hidden] = reset * before[row * apart + unit]"]),
    ]
    return StepText([Products(_STATE_BEFORE, "hidden", _OF_GATES)], lines)


def _gru_before_candidate() -> StepText:
    lines = [
        *_PLACES,
        "if is_kept:",
        *indented(1, _keep({"new": "before"}, [3])),
        "else:",
        *indented(1, [
            "at_z = (row * steps + t) * 3 * hidden + unit",
            "new = tanh_T(entering + z[at_z + 2 * hidden] + bias[unit + 2 * hidden])",
            "update = gates[gate + hidden]",
            *_NEW_STATE,
        ]),
        *_STATE,
    ]  # fmt: skip
    x = "gates[(row * steps + t) * width + 2 * hidden"
    return StepText([Products(x, "hidden", _CANDIDATE)], lines)


def _rnn() -> StepText:
    lines = [
        *_PLACES,
        "if is_kept:",
        *indented(1, _keep({"new": "before"}, [])),
        "else:",
        *indented(1, [
            "new = total + z[at] + bias[unit]",
            "if relu:",
            "    new = T(0) if new < T(0) else new",
            "else:",
            "    new = tanh_T(new)",
        ]),
        *_STATE,
    ]  # fmt: skip
    return StepText([Products(_STATE_BEFORE, "hidden", _sums(["total"]))], lines)


# Adjoints. `after` is the step that the launch before has gone through; `inner` is 0 where there is none.


def _through(weights: Mapping[str, str]) -> list[Products]:
    """Return the products of cotangents of the launch before and weights, which are given by their names."""
    found = []
    for x, w in weights.items():
        rows, count, width = (
            ("hidden", "inner_hidden", "hidden") if x == "ds" else ("depth", "inner", "width")
        )
        found.append(Products(f"{x}[(row * steps + after) * {width}", count, {"slope": (w, "unit", rows)}))
    return found


def _stepped(weights: Mapping[str, str], body: list[str], zeros: list[str]) -> StepText:
    """Return a step, which may leave the state as it was; `zeros` are the results that are 0 then."""
    lines = [
        *_PLACES,
        "slope = slope + dh[element] + ct[at]",
        "if is_kept:",
        *indented(1, ["dh[element] = slope", *[f"{zero} = T(0)" for zero in zeros]]),
        "else:",
        *indented(1, body),
    ]
    return StepText(_through(weights), lines)


def _of_gates(count: int) -> list[str]:
    return [f"dz[gate + {number} * hidden]" for number in range(count)]


def _lstm_adjoint() -> StepText:
    body = [
        *[
            f"{name} = gates[gate + {number} * hidden]"
            for number, name in enumerate(("i_gate", "f_gate", "g_gate", "o_gate"))
        ],
        "bent = tanh_T(cells[at])",
        "own = dc[element] + slope * o_gate * (T(1) - bent * bent)",
        "dz[gate] = own * g_gate * i_gate * (T(1) - i_gate)",
        "dz[gate + hidden] = own * before[row * apart + unit] * f_gate * (T(1) - f_gate)",
        "dz[gate + 2 * hidden] = own * i_gate * (T(1) - g_gate * g_gate)",
        "dz[gate + 3 * hidden] = slope * bent * o_gate * (T(1) - o_gate)",
        "dc[element] = own * f_gate",
        "dh[element] = T(0)",
    ]
    return _stepped({"dz": "w"}, body, _of_gates(4))


def _gru_adjoint(before: bool = False) -> StepText:
    body = [
        "reset = gates[4 * (at - unit) + unit]",
        "update = gates[4 * (at - unit) + hidden + unit]",
        "new = gates[4 * (at - unit) + 3 * hidden + unit]",
        "of_new = slope * (T(1) - update) * (T(1) - new * new)",
        "dz[gate + 2 * hidden] = of_new",
        "dz[gate + hidden] = slope * (before[row * apart + unit] - new) * update * (T(1) - update)",
        "dh[element] = slope * update",
    ]
    if before:
        body.append("ds[at] = of_new")
    else:
        body += [
            "entering = gates[4 * (at - unit) + 2 * hidden + unit]",
            "ds[at] = of_new * reset",
            "dz[gate] = of_new * entering * reset * (T(1) - reset)",
        ]
    through = {"dz": "w"} if before else {"dz": "w", "ds": "wn"}
    return _stepped(through, body, [*_of_gates(3), "ds[at]"])


def _gru_before_reset() -> StepText:
    """Return what follows where the reset gate comes before the weights: its own cotangent."""
    lines = [
        *_PLACES,
        "reset = gates[4 * (at - unit) + unit]",
        "dz[gate] = through * before[row * apart + unit] * reset * (T(1) - reset)",
        "dh[element] = dh[element] + through * reset",
    ]
    x = "ds[(row * steps + t) * hidden"
    return StepText([Products(x, "hidden", {"through": ("wn", "unit", "hidden")})], lines)


def _rnn_adjoint() -> StepText:
    body = [
        "state = states[at]",
        "if relu:",
        "    slope = slope if state > T(0) else T(0)",
        "else:",
        "    slope = slope * (T(1) - state * state)",
        "dz[gate] = slope",
        "dh[element] = T(0)",
    ]
    return _stepped({"dz": "w"}, body, _of_gates(1))


def _finished(weights: Mapping[str, str]) -> StepText:
    """Return what adds to the cotangent of the first state what comes through weights."""
    return StepText(_through(weights), ["dh[element] = dh[element] + slope"])


_STEPS: Mapping[str, Sequence[StepText]] = {
    "lstm_forward": [_lstm()],
    "lstm_backward": [_lstm_adjoint(), _finished({"dz": "w"})],
    "gru_forward": [_gru()],
    "gru_backward": [_gru_adjoint(), _finished({"dz": "w", "ds": "wn"})],
    "gru_forward_before": [_gru_before_gates(), _gru_before_candidate()],
    "gru_backward_before": [_gru_adjoint(before=True), _gru_before_reset(), _finished({"dz": "w"})],
    "rnn_forward": [_rnn()],
    "rnn_backward": [_rnn_adjoint(), _finished({"dz": "w"})],
}
"""The launches of a step; in adjoints the last one comes after all steps."""


@cache
def _text(name: str, number: int) -> str:
    """Return the text of a launch by its number among those of a step."""
    return text_of(_STEPS[name][number])


def emit_recurrent(launch: KernelLaunch) -> list[tuple[Emitted, Grid]]:
    """Return the kernels of a recurrent layer, or of its adjoint, with their arguments and threads."""
    layer = _RecurrentLaunches(launch)
    if not layer.elements:
        return []
    return layer.forward() if launch.name.endswith("forward") else layer.backward()


class _RecurrentLaunches:
    """The launches of a recurrent layer."""

    def __init__(self, launch: KernelLaunch) -> None:
        self.name = launch.name
        further, reads, writes = map(str.split, _OPERANDS[launch.name])
        names = ("first", "last", "batch", "steps", "hidden", "reverse", "masked", *further)
        n = dict(zip(names, launch.numbers, strict=True))
        self.places = dict(zip([*reads, *writes], launch.pointers, strict=True))
        self.writes = {name: self.places[name] for name in writes}
        self.reads = {name: self.places[name] for name in reads if name not in _ONCE}
        self.steps, self.hidden = n["steps"], n["hidden"]
        self.is_reverse = bool(n["reverse"])
        self.elements = n["batch"] * self.hidden
        kind = launch.name.partition("_")[0]
        gates = _GATES[kind]
        wide = _GATES["lstm"] if launch.name == "gru_forward" else gates
        self.depth = (gates - 1 if kind == "gru" else gates) * self.hidden
        self.numbers = {
            "batch": n["batch"], "steps": self.steps, "hidden": self.hidden, "masked": n["masked"],
            "width": wide * self.hidden, "depth": self.depth, "relu": n.get("relu", 0),
        }  # fmt: skip
        self.grid = grid_of(n["batch"], self.hidden)
        self.texts = self.name + ("_before" if n.get("before") else "")

    def forward(self) -> list[tuple[Emitted, Grid]]:
        order = range(self.steps)[:: -1 if self.is_reverse else 1]
        if not order:
            return [self.copy(x, out) for x, out in (("h0", "state"), ("c0", "cell")) if x in self.places]
        launches = []
        for number, t in enumerate(order):
            before = order[number - 1] if number else None
            own = {"t": t, "is_last": int(t == order[-1])}
            launches += [self.step(part, own, before) for part in range(len(_STEPS[self.texts]))]
        return launches

    def backward(self) -> list[tuple[Emitted, Grid]]:
        order = range(self.steps)[:: 1 if self.is_reverse else -1]
        launches = [self.copy(x, out) for x, out in (("ct_h", "dh"), ("ct_c", "dc")) if x in self.places]
        *parts, last = range(len(_STEPS[self.texts]))
        own = {"t": 0, "after": 0, "inner": 0, "inner_hidden": 0}
        for number, t in enumerate(order):
            before = order[number + 1] if t != order[-1] else None
            launches += [self.step(part, own | {"t": t}, before) for part in parts]
            own = {"t": t, "after": t, "inner": self.depth, "inner_hidden": self.hidden}
        if order:
            launches.append(self.step(last, own, None))
        return launches

    def step(self, part: int, own: Mapping[str, int], before: int | None) -> tuple[Emitted, Grid]:
        """Return a launch of a step.

        Args:
            part: its number among those of a step.
            own: its numbers.
            before: the step whose state is read; None for the first state.
        """
        reads = dict(self.reads)
        for name, (operand, first) in _BEFORE[self.name].items():
            reads[name] = self.places[first if before is None else operand]
            if before is not None:
                reads[name] = reads[name].moved(before * self.hidden)
        apart = self.hidden if before is None else self.steps * self.hidden
        numbers = {**self.numbers, "apart": apart, **own}
        dtype = self.places["w"].dtype
        return emitted(self.name, _text(self.texts, part), dtype, numbers, reads, self.writes), self.grid

    def copy(self, x: str, out: str) -> tuple[Emitted, Grid]:
        """Return the launch that copies one state to another."""
        reads, writes = {"x": self.places[x]}, {"copy": self.places[out]}
        numbers = {"elements": self.elements}
        kernel = emitted("copied", _COPY, reads["x"].dtype, numbers, reads, writes)
        return kernel, Grid(blocks_of(self.elements), BLOCK)
