# SPDX-License-Identifier: BSD-3-Clause
"""Emission of connectionist temporal classification for a device.

Note [states of an alignment]
A group of 32 threads goes through the steps of an observation, and its threads take states in turn; they wait for each
other after each step (Note [alignments] in codegen/templates/ctc.py says what is computed). The adjoint overwrites the
states of a step with those of the step before: 32 at a time, in order, after all of them have been read. Several states
may have one class, whose cotangent is the sum of theirs. The threads exchange their cotangents, and the first thread of
each class adds the sum. So no number is written by two threads, and each sum has one order.
"""

from tracejit.codegen.device.text import emitted, indented
from tracejit.codegen.nest import Emitted
from tracejit.passes.loops.kept_values import GROUP
from tracejit.passes.loops.launches import KernelLaunch
from tracejit.passes.loops.spread import BLOCK, blocks_of
from tracejit.program import Grid

_NUMBERS = ("first", "last", "batch", "steps", "classes", "most", "blank")

_OBSERVATION = """
lowest = T(-1e999)
states = index(2 * most + 1)
row = group()
while row < batch:
    span = index(min(steps, max(0, lengths[row])))
    twice = index(2 * min(most, max(0, label_lengths[row])))
    OF_ONE
    row = index(row + groups())
"""

_FORWARD = """
if lengths[row] < 0 or lengths[row] > steps or label_lengths[row] < 0 or label_lengths[row] > most:
    fault[0] = 1
t = index(0)
while t < steps:
    s = lane()
    while s < states:
        label = index(blank)
        is_hop = False
        if (s & 1) == 1 and s < twice:
            at_label = row * most + (s >> 1)
            given = labels[at_label]
            if given < 0 or given >= classes or given == blank:
                fault[0] = 1
            else:
                label = index(given)
            if s > 1:
                is_hop = label != labels[at_label - 1]
        own = y[(row * steps + t) * classes + label]
        new = lowest
        if t == 0:
            if s < 2 and span > 0:
                new = own
        else:
            before = ((t - 1) * states + s) * batch + row
            new = alpha[before]
            if t < span:
                if s > 0:
                    stayed = new
                    moved = alpha[before - batch]
                    hopped = alpha[before - 2 * batch] if is_hop else lowest
                    LOG_SUM
                    new = summed
                new = new + own
        alpha[(t * states + s) * batch + row] = new
        s = index(s + 32)
    together()
    t = index(t + 1)
stayed = lowest
moved = lowest
if span == 0:
    if twice == 0:
        stayed = T(0)
else:
    end = ((steps - 1) * states + twice) * batch + row
    stayed = alpha[end]
    if twice > 0:
        moved = alpha[end - batch]
hopped = lowest
LOG_SUM
if lane() == 0:
    loss[row] = -summed
"""

_LOG_SUM = """
top = fold_max_T(fold_max_T(stayed, moved), hopped)
if top == lowest:
    top = T(0)
summed = top + log_T(exp_T(stayed - top) + exp_T(moved - top) + exp_T(hopped - top))
"""

_BACKWARD = """
at_row = row * steps * classes
i = lane()
while i < steps * classes:
    dy[at_row + i] = T(0)
    i = index(i + 32)
s = lane()
while s < states:
    work[s * batch + row] = lowest
    s = index(s + 32)
together()
cost = loss[row]
if cost == -lowest:  # what cannot be has no derivative
    cost = lowest
weight = ct[row]
t = index(span - 1)
while t >= 0:
    first = index(0)
    while first < states:
        s = index(first + lane())
        is_state = s < states
        label = index(blank)
        share = T(0)
        new = lowest
        if is_state:
            at_label = row * most + (s >> 1)
            is_hop = False
            if (s & 1) == 1:
                if s < twice:
                    given = labels[at_label]
                    if given >= 0 and given < classes:
                        label = index(given)
                if s + 2 < twice:
                    is_hop = labels[at_label + 1] != labels[at_label]
            here = s * batch + row
            stayed = work[here]
            moved = work[here + batch] if s + 1 < states else lowest
            hopped = work[here + 2 * batch] if is_hop else lowest
            LOG_SUM
            if t + 1 == span:
                summed = T(0) if twice == s or twice == s + 1 else lowest
            share = exp_T(alpha[(t * states + s) * batch + row] + summed + cost) * weight
            new = summed + y[at_row + t * classes + label]
        together()
        if is_state:
            work[s * batch + row] = new
        else:
            label = index(-1)
        is_first = is_state
        total = share
        step = index(1)
        while step < 32:
            other = across_i32(label, step)
            given_share = across_T(share, step)
            if other == label:
                total = total + given_share
                if index(lane() ^ step) < lane():
                    is_first = False
            step = index(step + 1)
        if is_first:
            place = at_row + t * classes + label
            dy[place] = dy[place] - total
        together()
        first = index(first + 32)
    t = index(t - 1)
"""

_READS = "y labels lengths label_lengths"
_OPERANDS = {
    "ctc_forward": (_FORWARD, _READS, "loss alpha fault"),
    "ctc_backward": (_BACKWARD, f"{_READS} alpha loss ct", "dy work"),
}


def emit_ctc(launch: KernelLaunch) -> list[tuple[Emitted, Grid]]:
    """Return the kernel of CTC or of its adjoint, its arguments, and its threads."""
    of_one, *operands = _OPERANDS[launch.name]
    reads, writes = map(str.split, operands)
    numbers = dict(zip(_NUMBERS, launch.numbers, strict=True))
    places = dict(zip([*reads, *writes], launch.pointers, strict=True))
    kernel = emitted(
        launch.name, _with(_with(_OBSERVATION, "OF_ONE", of_one), "LOG_SUM", _LOG_SUM), places["y"].dtype, numbers,
        {name: places[name] for name in reads}, {name: places[name] for name in writes},
    )  # fmt: skip
    return [(kernel, Grid(blocks_of(numbers["batch"] * GROUP), BLOCK))]


def _with(text: str, name: str, lines: str) -> str:
    """Return a text with lines in place of those that are their name."""
    result = []
    for line in text.splitlines():
        depth = (len(line) - len(line.lstrip())) // 4
        result += indented(depth, lines.strip("\n").splitlines()) if line.strip() == name else [line]
    return "\n".join(result)
