# SPDX-License-Identifier: BSD-3-Clause
"""Emission of connectionist temporal classification: sums over alignments, with an observation in each lane.

Note [alignments]
A target of n labels has 2 n + 1 states: a blank before, between and after the labels. `alpha` is the logarithm of the
sum over all ways to be in a state at a step, and `beta` the logarithm of the sum over all ways to go on from there.
Both are sums of at most three terms of the neighbouring step. Observations are the lanes; they differ in their labels,
which are gathered, and in their lengths: an observation that has ended keeps its numbers. Lanes beyond the last
observation repeat it.
"""

from functools import cache

import numpy as np

from tracejit.codegen.target import vector_bytes
from tracejit.codegen.templates.tile_text import written
from tracejit.ops.ctc import UNIT
from tracejit.passes.loops.launches import KernelLaunch
from tracejit.program import Kernel

_NUMBERS = ("first", "last", "batch", "steps", "classes", "most", "blank")

_BEGIN = """
span = scratch_T(LANES)
twice = scratch_T(LANES)
emitted = scratch_T(LANES)
hop = scratch_T(LANES)
ends = scratch_T(LANES)
zero = V(T(0.0))
lowest = V(T(-1e999))
states = 2 * most + 1
stop = min(batch, last * UNIT)
"""

_LANES = """
count = min(LANES, stop - start)
for lane in range(LANES):
    b = start + min(lane, count - 1)
    span[lane] = T(min(steps, max(0, lengths[b])))
    twice[lane] = T(2 * min(most, max(0, label_lengths[b])))
active_steps = load_V(span, 0)
last_state = load_V(twice, 0)
"""

_BLANKS = """
for lane in range(LANES):
    b = start + min(lane, count - 1)
    emitted[lane] = y[(b * steps + t) * classes + blank]
of_blank = load_V(emitted, 0)
"""

_GATHER = """
own = of_blank
if s % 2 == 1:
    for lane in range(LANES):
        b = start + min(lane, count - 1)
        label = blank
        hop[lane] = T(-1e999)
        if s < T(twice[lane]):
            label = labels[b * most + s // 2]
            if label < 0 or label >= classes or label == blank:
                label = blank
                FAULT
            if s > 1 and label != labels[b * most + s // 2 - 1]:
                hop[lane] = T(0.0)
        emitted[lane] = y[(b * steps + t) * classes + label]
    own = load_V(emitted, 0)
"""

_FORWARD = """
BEGIN
for start in range(first * UNIT, stop, LANES):
    PREPARE
    for lane in range(count):
        b = start + lane
        if lengths[b] < 0 or lengths[b] > steps or label_lengths[b] < 0 or label_lengths[b] > most:
            fault[0] = 1
    for t in range(steps):
        BLANKS
        for s in range(states):
            GATHER
            at = (t * states + s) * batch + start
            new = lowest
            if t == 0:
                if s < 2:
                    new = own
                new = where(active_steps > T(0.0), new, lowest)
            else:
                at_before = at - states * batch
                stayed = load_first_V(alpha, at_before, count)
                new = stayed + own
                if s > 0:
                    moved = load_first_V(alpha, at_before - batch, count)
                    top = fold_max_T(stayed, moved)
                    hopped = lowest
                    if s % 2 == 1 and s > 1:
                        hopped = load_first_V(alpha, at_before - 2 * batch, count) + load_V(hop, 0)
                        top = fold_max_T(top, hopped)
                    top = where(top == lowest, zero, top)
                    sum = exp_T(stayed - top) + exp_T(moved - top)
                    if s % 2 == 1:
                        sum = sum + exp_T(hopped - top)
                    new = top + log_T(sum) + own
                new = where(active_steps > T(t), new, stayed)
            store_first_X(alpha, at, new, count)
    for lane in range(LANES):
        b = start + min(lane, count - 1)
        emitted[lane] = T(-1e999)
        ends[lane] = T(-1e999)
        end = min(most, max(0, label_lengths[b])) * 2
        if steps == 0 or lengths[b] <= 0:
            if end == 0:
                emitted[lane] = T(0.0)
        else:
            at = ((steps - 1) * states + end) * batch + b
            emitted[lane] = alpha[at]
            if end > 0:
                ends[lane] = alpha[at - batch]
    one = load_V(emitted, 0)
    other = load_V(ends, 0)
    top = fold_max_T(one, other)
    top = where(top == lowest, zero, top)
    store_first_X(loss, start, -(top + log_T(exp_T(one - top) + exp_T(other - top))), count)
"""

_BACKWARD = """
BEGIN
for i in range(first * UNIT * steps * classes, stop * steps * classes):
    dy[i] = T(0.0)
for start in range(first * UNIT, stop, LANES):
    PREPARE
    cost = load_first_V(loss, start, count)
    # What cannot be has no derivative.
    cost = where(cost == -lowest, lowest, cost)
    weight = load_first_V(ct, start, count)
    for s in range(states):
        store_first_X(work, s * batch + start, lowest, count)
    for step in range(steps):
        t = steps - 1 - step
        BLANKS
        active = active_steps > T(t)
        ending = active_steps == T(t + 1)
        of_blanks = zero
        for s in range(states):
            GATHER
            stayed = load_first_V(work, s * batch + start, count)
            moved = lowest
            if s + 1 < states:
                moved = load_first_V(work, (s + 1) * batch + start, count)
            top = fold_max_T(stayed, moved)
            hopped = lowest
            if s % 2 == 1 and s + 2 < states:
                for lane in range(LANES):
                    b = start + min(lane, count - 1)
                    hop[lane] = T(-1e999)
                    if s + 2 < T(twice[lane]):
                        if labels[b * most + s // 2 + 1] != labels[b * most + s // 2]:
                            hop[lane] = T(0.0)
                hopped = load_first_V(work, (s + 2) * batch + start, count) + load_V(hop, 0)
                top = fold_max_T(top, hopped)
            top = where(top == lowest, zero, top)
            sum = exp_T(stayed - top) + exp_T(moved - top)
            if s % 2 == 1:
                sum = sum + exp_T(hopped - top)
            begun = where((last_state == T(s)) | (last_state == T(s + 1)), zero, lowest)
            beta = where(ending, begun, top + log_T(sum))
            share = exp_T(load_first_V(alpha, (t * states + s) * batch + start, count) + beta + cost)
            share = where(active, share * weight, zero)
            store_first_X(work, s * batch + start, where(active, beta + own, lowest), count)
            if s % 2 == 0:
                of_blanks = of_blanks + share
            else:
                store_V(emitted, 0, share)
                for lane in range(count):
                    b = start + lane
                    label = blank
                    if s < T(twice[lane]):
                        label = labels[b * most + s // 2]
                        if label < 0 or label >= classes:
                            label = blank
                    place = (b * steps + t) * classes + label
                    dy[place] = dy[place] - emitted[lane]
        store_V(emitted, 0, of_blanks)
        for lane in range(count):
            place = ((start + lane) * steps + t) * classes + blank
            dy[place] = dy[place] - emitted[lane]
"""

_KERNELS = {
    "ctc_forward": (
        _FORWARD,
        "y labels:i64 lengths:i64 label_lengths:i64",
        "loss alpha fault:i64",
        "fault[0] = 1",
    ),
    "ctc_backward": (
        _BACKWARD,
        "y labels:i64 lengths:i64 label_lengths:i64 alpha loss ct",
        "dy work",
        "pass",
    ),
}


def kernel(launch: KernelLaunch) -> Kernel:
    """Return a kernel of CTC (Note [alignments])."""
    return _written(launch.name, launch.pointers[0].dtype, vector_bytes())


@cache
def _written(name: str, dtype: np.dtype, _vector_bytes: int) -> Kernel:
    text, pointers, results, fault = _KERNELS[name]
    snippets = {"BEGIN": _BEGIN, "PREPARE": _LANES, "BLANKS": _BLANKS, "GATHER": _GATHER, "FAULT": fault}
    return written(name, text, dtype, _NUMBERS, pointers, results, {"UNIT": UNIT}, snippets)
