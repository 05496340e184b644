# SPDX-License-Identifier: BSD-3-Clause
"""Emission of recurrent layers for a device.

Note [steps of a recurrent layer]
A step needs all of the state before it, so each step is a launch, which waits for the one before; where a step
multiplies twice, it is two. A thread has a hidden unit of an observation: it multiplies the states of the observation
by the unit's columns of the weights, and computes the unit's gates. States are read where the step before wrote them,
in the result. In adjoints `dh` is what goes to the step before, without what comes through weights: that is multiplied
at the beginning of the next launch, and after the last step by a launch of its own. All launches have the same few
kernels, and the length is an argument.
"""

from collections.abc import Mapping, Sequence
from functools import cache

from tracejit.codegen.device.text import emitted, indented, taken_apart
from tracejit.codegen.nest import Emitted
from tracejit.ops.recurrent import PANEL
from tracejit.passes.loops.launches import KernelLaunch
from tracejit.passes.loops.spread import BLOCK, GROUP, blocks_of
from tracejit.program import Grid

_AT_ONCE = 16  # weights that are loaded before they are multiplied
_FEW = 1 << 14  # threads, which are better spread over all processors

_OPERANDS = {  # further numbers, what is read, what is written
    "lstm_forward": ("", "z bias h0 c0 w mask", "h state cell cells gates"),
    "lstm_backward": ("", "gates cells c0 w mask ct ct_h ct_c", "dz dh dc"),
    "gru_forward": ("before", "z bias h0 w wn inner_bias mask", "h state gates"),
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
"""What a step reads of the one before by its name, the operand that has it, and that of the first step."""
_ONCE = ("h0", "c0", "ct_h", "ct_c")
"""What is read by one launch only."""
_GATES = {"lstm": 4, "gru": 3, "rnn": 1}  # of which a cotangent is computed


def _dots(sums: Mapping[str, tuple[str, str, str]], count: str, x: str) -> list[str]:
    """Return the lines that add products of x and weights to sums.

    Args:
        sums: their names, with the name of the weights, the column, and how many rows a panel of them has.
        count: the number of products.
        x: the text before the number of an element of x, as in ``h[at``.
    """
    lines = []
    for name, (_, column, rows) in sums.items():
        lines.append(
            f"at_{name} = quotient(index({column}), {PANEL}) * {rows} * {PANEL} + remainder(index({column}), {PANEL})"
        )

    def products(numbers: range) -> list[str]:
        loads = [f"x{k} = {x} + p + {k}]" for k in numbers]
        for name, (w, _, _) in sums.items():
            loads += [f"{name}_{k} = {w}[at_{name} + (p + {k}) * {PANEL}]" for k in numbers]
        adds = [f"{name} = fma_T(x{k}, {name}_{k}, {name})" for k in numbers for name in sums]
        return [*loads, *adds, f"p = index(p + {len(numbers)})"]

    at_once = _AT_ONCE // (4 if len(sums) > 2 else 2)
    return [
        *lines,
        "p = index(0)",
        f"while p <= {count} - {at_once}:",
        *indented(1, products(range(at_once))),
        f"while p < {count}:",
        *indented(1, products(range(1))),
    ]


_PLACES = [
    *taken_apart("element", [("row", ""), ("unit", "hidden")]),
    "at = (row * steps + t) * hidden + unit",
    "gate = (row * steps + t) * width + unit",
    "is_kept = False",
    "if masked:",
    "    is_kept = mask[row * steps + t] == T(0)",
]
"""Where a unit has its state and its gates, and whether the step leaves the state as it is."""


def _sums(names: Sequence[str]) -> dict[str, tuple[str, str, str]]:
    return {name: ("w", f"unit + {number} * hidden", "hidden") for number, name in enumerate(names)}


def _sigmoid(x: str) -> str:
    return f"T(1) / (T(1) + exp_T(-{x}))"


def _keep(states: Mapping[str, str], gates: Sequence[int]) -> list[str]:
    """Return the lines of a step that leaves states as they are, and whose gates are 0."""
    lines = [f"{name} = {before}[row * apart + unit]" for name, before in states.items()]
    return [*lines, *[f"gates[gate + {number} * hidden] = T(0)" for number in gates]]


def _lstm() -> list[str]:
    names = ("i_gate", "f_gate", "g_gate", "o_gate")
    starts = [
        f"{name} = z[gate + {number} * hidden] + bias[unit + {number} * hidden]"
        for number, name in enumerate(names)
    ]
    return [
        *_PLACES,
        "if is_kept:",
        *indented(1, _keep({"new": "before", "c": "before_c"}, range(4))),
        "else:",
        *indented(1, [
            *starts,
            *_dots(_sums(names), "hidden", "before[row * apart"),
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


def _gru_gates() -> list[str]:
    """Return the lines of the reset gate and the update gate."""
    return [
        "at_z = (row * steps + t) * 3 * hidden + unit",
        "reset = z[at_z] + bias[unit]",
        "update = z[at_z + hidden] + bias[unit + hidden]",
        *_dots(_sums(("reset", "update")), "hidden", "before[row * apart"),
        f"reset = {_sigmoid('reset')}",
        f"update = {_sigmoid('update')}",
        "gates[gate] = reset",
        "gates[gate + hidden] = update",
    ]


_CANDIDATE = {"entering": ("wn", "unit", "hidden")}
_NEW_STATE = [
    "gates[gate + 3 * hidden] = new",
    "new = (T(1) - update) * new + update * before[row * apart + unit]",
]
_STATE = ["h[at] = new", "if is_last:", "    state[element] = new"]


def _gru() -> list[str]:
    return [
        *_PLACES,
        "if is_kept:",
        *indented(1, _keep({"new": "before"}, range(4))),
        "else:",
        *indented(1, [
            *_gru_gates(),
            "entering = inner_bias[unit]",
            *_dots(_CANDIDATE, "hidden", "before[row * apart"),
            "gates[gate + 2 * hidden] = entering",
            "new = tanh_T(z[at_z + 2 * hidden] + reset * entering + bias[unit + 2 * hidden])",
            *_NEW_STATE,
        ]),
        *_STATE,
    ]  # fmt: skip


def _gru_before_gates() -> list[str]:
    return [
        *_PLACES,
        "if is_kept:",
        *indented(1, _keep({}, range(3))),
        "else:",
        *indented(1, [*_gru_gates(), "gates[gate + 2 * hidden] = reset * before[row * apart + unit]"]),
    ]


def _gru_before_candidate() -> list[str]:
    return [
        *_PLACES,
        "if is_kept:",
        *indented(1, _keep({"new": "before"}, [3])),
        "else:",
        *indented(1, [
            "entering = z[(row * steps + t) * 3 * hidden + 2 * hidden + unit] + bias[unit + 2 * hidden]",
            *_dots(_CANDIDATE, "hidden", "gates[gate - unit + 2 * hidden"),
            "new = tanh_T(entering)",
            "update = gates[gate + hidden]",
            *_NEW_STATE,
        ]),
        *_STATE,
    ]  # fmt: skip


def _rnn() -> list[str]:
    return [
        *_PLACES,
        "if is_kept:",
        *indented(1, _keep({"new": "before"}, [])),
        "else:",
        *indented(1, [
            "new = z[at] + bias[unit]",
            *_dots(_sums(["new"]), "hidden", "before[row * apart"),
            "if relu:",
            "    new = T(0) if new < T(0) else new",
            "else:",
            "    new = tanh_T(new)",
        ]),
        *_STATE,
    ]  # fmt: skip


# Adjoints. `after` is the step that the launch before has gone through; `inner` is 0 where there is none.


def _slope(through: Mapping[str, str]) -> list[str]:
    """Return the lines that compute the cotangent of a state, all but what comes from outside of the layer.

    Args:
        through: weights, by the cotangents that are multiplied with them.
    """
    lines = ["slope = dh[element]"]
    for x, w in through.items():
        rows, count, width = (
            ("hidden", "inner_hidden", "hidden") if x == "ds" else ("depth", "inner", "width")
        )
        lines += _dots({"slope": (w, "unit", rows)}, count, f"{x}[(row * steps + after) * {width}")
    return lines


def _stepped(through: Mapping[str, str], body: list[str], zeros: list[str]) -> list[str]:
    """Return the lines of a step, which may leave the state as it was; `zeros` are of results that are 0 then."""
    return [
        *_PLACES,
        *_slope(through),
        "slope = slope + ct[at]",
        "if is_kept:",
        *indented(1, ["dh[element] = slope", *[f"{zero} = T(0)" for zero in zeros]]),
        "else:",
        *indented(1, body),
    ]


def _of_gates(count: int) -> list[str]:
    return [f"dz[gate + {number} * hidden]" for number in range(count)]


def _lstm_adjoint() -> list[str]:
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


def _gru_adjoint(before: bool = False) -> list[str]:
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


def _gru_before_reset() -> list[str]:
    """Return the lines that follow where the reset gate comes before the weights: its own cotangent."""
    return [
        *_PLACES,
        "through = T(0)",
        *_dots({"through": ("wn", "unit", "hidden")}, "hidden", "ds[at - unit"),
        "reset = gates[4 * (at - unit) + unit]",
        "dz[gate] = through * before[row * apart + unit] * reset * (T(1) - reset)",
        "dh[element] = dh[element] + through * reset",
    ]


def _rnn_adjoint() -> list[str]:
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


def _finished(through: Mapping[str, str]) -> list[str]:
    """Return the lines that add to the cotangent of the first state what comes through weights."""
    return [*_PLACES, *_slope(through), "dh[element] = slope"]


_STEPS: Mapping[str, Sequence[list[str]]] = {
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
    return _looped(_STEPS[name][number])


def _looped(lines: list[str]) -> str:
    body = [*lines, "element = index(element + threads())"]
    return "\n".join(["element = thread()", "while element < elements:", *indented(1, body)])


def emit_recurrent(launch: KernelLaunch) -> list[tuple[Emitted, Grid]]:
    """Return the kernels of a recurrent layer, or of its adjoint, with their arguments and threads."""
    layer = _Layer(launch)
    if not layer.elements:
        return []
    return layer.forward() if launch.name.endswith("forward") else layer.backward()


class _Layer:
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
            "elements": self.elements, "steps": self.steps, "hidden": self.hidden, "masked": n["masked"],
            "width": wide * self.hidden, "depth": self.depth, "relu": n.get("relu", 0),
        }  # fmt: skip
        self.grid = Grid(blocks_of(self.elements), BLOCK)
        if self.elements <= _FEW:
            self.grid = Grid(-(-self.elements // GROUP), GROUP)
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
        return emitted(
            "copied", _looped(["copy[element] = x[element]"]), reads["x"].dtype, numbers, reads, writes
        ), self.grid
