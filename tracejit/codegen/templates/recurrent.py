# SPDX-License-Identifier: BSD-3-Clause
"""Emission of recurrent layers: kernels that go through all steps.

Note [recurrence]
A kernel takes some rows of the batch through all steps, so that threads never wait for each other: each step multiplies
the states of these rows by weights, whose panels stay in the second cache, and then computes the gates. The
contribution of the inputs, z, is one product for all steps, made before the kernel runs. Likewise, the products that
give the cotangents of weights are made after the adjoint. Where no adjoint reads gates and cells, each step overwrites
those of the step before, which stay in the near caches. Memory for results holds what goes from step to step: `state`,
and in adjoints `dh` and `dc`. The length is an argument: a new one compiles nothing.
"""

from functools import cache

import numpy as np

from tracejit.codegen.target import vector_bytes
from tracejit.codegen.templates.tile_text import written
from tracejit.ops.recurrent import PANEL, UNIT
from tracejit.passes.loops.launches import KernelLaunch
from tracejit.program import Kernel

_NUMBERS = ("first", "last", "batch", "steps", "hidden", "reverse", "masked")

_BEGIN = """
start = first * UNIT
stop = min(batch, last * UNIT)
zero = V(T(0.0))
one = V(T(1.0))
for i in range(start * hidden, stop * hidden):
    state[i] = h0[i]
"""

_KEEP = """
for u in range(0, hidden, LANES):
    n = min(LANES, hidden - u)
    store_first_X(h, to + u, load_first_V(state, b * hidden + u, n), n)
"""

_LSTM = """
BEGIN
width = 4 * hidden
for i in range(start * hidden, stop * hidden):
    cell[i] = c0[i]
for s in range(steps):
    t = s
    if reverse:
        t = steps - 1 - s
    kept = t * saves
    for j in range(0, width, WIDE):
        edge = min(WIDE, width - j)
        at_w = j // PANEL * hidden * PANEL + j % PANEL
        for i in range(start, stop, HIGH):
            rows = rows_HIGH(i, stop)
            tile = load_tile_W(z, t * width + j, rows, steps * width, 0, edge)
            for p in range(hidden):
                tile = add_outer_W(tile, state, p, rows, hidden, load_W(w, at_w + p * PANEL))
            store_tile_W(gates, kept * width + j, rows, steps * width, tile, 0, edge)
    for b in range(start, stop):
        at = (b * steps + kept) * width
        at_cell = (b * steps + kept) * hidden
        to = (b * steps + t) * hidden
        if masked and mask[b * steps + t] == 0:
            KEEP_STATE
            for u in range(0, hidden, LANES):
                n = min(LANES, hidden - u)
                store_first_X(cells, at_cell + u, load_first_V(cell, b * hidden + u, n), n)
            for u in range(0, width, LANES):
                store_first_X(gates, at + u, zero, min(LANES, width - u))
        else:
            for u in range(0, hidden, LANES):
                n = min(LANES, hidden - u)
                i_gate = load_first_V(gates, at + u, n) + load_first_V(bias, u, n)
                i_gate = one / (one + exp_T(-i_gate))
                f_gate = load_first_V(gates, at + hidden + u, n) + load_first_V(bias, hidden + u, n)
                f_gate = one / (one + exp_T(-f_gate))
                g_gate = load_first_V(gates, at + 2 * hidden + u, n) + load_first_V(bias, 2 * hidden + u, n)
                g_gate = tanh_T(g_gate)
                o_gate = load_first_V(gates, at + 3 * hidden + u, n) + load_first_V(bias, 3 * hidden + u, n)
                o_gate = one / (one + exp_T(-o_gate))
                c = f_gate * load_first_V(cell, b * hidden + u, n) + i_gate * g_gate
                new = o_gate * tanh_T(c)
                store_first_X(gates, at + u, i_gate, n)
                store_first_X(gates, at + hidden + u, f_gate, n)
                store_first_X(gates, at + 2 * hidden + u, g_gate, n)
                store_first_X(gates, at + 3 * hidden + u, o_gate, n)
                store_first_X(cell, b * hidden + u, c, n)
                store_first_X(cells, at_cell + u, c, n)
                store_first_X(state, b * hidden + u, new, n)
                store_first_X(h, to + u, new, n)
"""

_BEGIN_ADJOINT = """
start = first * UNIT
stop = min(batch, last * UNIT)
zero = V(T(0.0))
one = V(T(1.0))
for i in range(start * hidden, stop * hidden):
    dh[i] = ct_h[i]
"""

_STEP_BACK = """
t = steps - 1 - s
earlier = t - 1
if reverse:
    t = s
    earlier = t + 1
"""

_ADD_TO_DH = """
for j in range(0, hidden, WIDE):
    edge = min(WIDE, hidden - j)
    at_w = j // PANEL * depth * PANEL + j % PANEL
    for i in range(start, stop, HIGH):
        rows = rows_HIGH(i, stop)
        tile = load_tile_W(dh, j, rows, hidden, 0, edge)
        for p in range(depth):
            tile = add_outer_W(tile, dz, t * width + p, rows, steps * width, load_W(w, at_w + p * PANEL))
        store_tile_W(dh, j, rows, hidden, tile, 0, edge)
"""

_KEEP_DH = """
for u in range(0, hidden, LANES):
    n = min(LANES, hidden - u)
    store_first_X(dh, b * hidden + u, load_first_V(dh, b * hidden + u, n) + load_first_V(ct, to + u, n), n)
for u in range(0, width, LANES):
    store_first_X(dz, at + u, zero, min(LANES, width - u))
"""

_LSTM_ADJOINT = """
BEGIN_ADJOINT
width = 4 * hidden
depth = width
for i in range(start * hidden, stop * hidden):
    dc[i] = ct_c[i]
for s in range(steps):
    STEP_BACK
    for b in range(start, stop):
        at = (b * steps + t) * width
        to = (b * steps + t) * hidden
        if masked and mask[b * steps + t] == 0:
            KEEP_DH
        else:
            for u in range(0, hidden, LANES):
                n = min(LANES, hidden - u)
                i_gate = load_first_V(gates, at + u, n)
                f_gate = load_first_V(gates, at + hidden + u, n)
                g_gate = load_first_V(gates, at + 2 * hidden + u, n)
                o_gate = load_first_V(gates, at + 3 * hidden + u, n)
                if s == steps - 1:
                    before = load_first_V(c0, b * hidden + u, n)
                else:
                    before = load_first_V(cells, (b * steps + earlier) * hidden + u, n)
                bent = tanh_T(load_first_V(cells, to + u, n))
                slope = load_first_V(dh, b * hidden + u, n) + load_first_V(ct, to + u, n)
                inner = load_first_V(dc, b * hidden + u, n) + slope * o_gate * (one - bent * bent)
                store_first_X(dz, at + u, inner * g_gate * i_gate * (one - i_gate), n)
                store_first_X(dz, at + hidden + u, inner * before * f_gate * (one - f_gate), n)
                store_first_X(dz, at + 2 * hidden + u, inner * i_gate * (one - g_gate * g_gate), n)
                store_first_X(dz, at + 3 * hidden + u, slope * bent * o_gate * (one - o_gate), n)
                store_first_X(dc, b * hidden + u, inner * f_gate, n)
                store_first_X(dh, b * hidden + u, zero, n)
    ADD_TO_DH
"""

_GRU = """
BEGIN
width = 4 * hidden
for s in range(steps):
    t = s
    if reverse:
        t = steps - 1 - s
    kept = t * saves
    for j in range(0, 2 * hidden, WIDE):
        edge = min(WIDE, 2 * hidden - j)
        at_w = j // PANEL * hidden * PANEL + j % PANEL
        for i in range(start, stop, HIGH):
            rows = rows_HIGH(i, stop)
            tile = load_tile_W(z, t * 3 * hidden + j, rows, steps * 3 * hidden, 0, edge)
            for p in range(hidden):
                tile = add_outer_W(tile, state, p, rows, hidden, load_W(w, at_w + p * PANEL))
            store_tile_W(gates, kept * width + j, rows, steps * width, tile, 0, edge)
    for b in range(start, stop):
        at = (b * steps + kept) * width
        for u in range(0, 2 * hidden, LANES):
            n = min(LANES, 2 * hidden - u)
            gate = load_first_V(gates, at + u, n) + load_first_V(bias, u, n)
            store_first_X(gates, at + u, one / (one + exp_T(-gate)), n)
        if before:
            for u in range(0, hidden, LANES):
                n = min(LANES, hidden - u)
                reset = load_first_V(gates, at + u, n)
                store_first_X(gates, at + 2 * hidden + u, reset * load_first_V(state, b * hidden + u, n), n)
    for j in range(0, hidden, WIDE):
        edge = min(WIDE, hidden - j)
        at_w = j // PANEL * hidden * PANEL + j % PANEL
        for i in range(start, stop, HIGH):
            rows = rows_HIGH(i, stop)
            if before:
                tile = load_tile_W(z, (t * 3 + 2) * hidden + j, rows, steps * 3 * hidden, 0, edge)
                at_x = kept * width + 2 * hidden
                for p in range(hidden):
                    tile = add_outer_W(tile, gates, at_x + p, rows, steps * width, load_W(wn, at_w + p * PANEL))
                store_tile_W(gates, kept * width + 3 * hidden + j, rows, steps * width, tile, 0, edge)
            else:
                tile = load_tile_W(inner_bias, j, rows, 0, 0, edge)
                for p in range(hidden):
                    tile = add_outer_W(tile, state, p, rows, hidden, load_W(wn, at_w + p * PANEL))
                store_tile_W(gates, kept * width + 2 * hidden + j, rows, steps * width, tile, 0, edge)
    for b in range(start, stop):
        at = (b * steps + kept) * width
        to = (b * steps + t) * hidden
        if masked and mask[b * steps + t] == 0:
            KEEP_STATE
            for u in range(0, width, LANES):
                store_first_X(gates, at + u, zero, min(LANES, width - u))
        else:
            for u in range(0, hidden, LANES):
                n = min(LANES, hidden - u)
                update = load_first_V(gates, at + hidden + u, n)
                if before:
                    new = load_first_V(gates, at + 3 * hidden + u, n)
                else:
                    new = load_first_V(gates, at + u, n) * load_first_V(gates, at + 2 * hidden + u, n)
                    new = load_first_V(z, 3 * to + 2 * hidden + u, n) + new
                new = tanh_T(new + load_first_V(bias, 2 * hidden + u, n))
                store_first_X(gates, at + 3 * hidden + u, new, n)
                new = (one - update) * new + update * load_first_V(state, b * hidden + u, n)
                store_first_X(state, b * hidden + u, new, n)
                store_first_X(h, to + u, new, n)
"""

_GRU_ADJOINT = """
BEGIN_ADJOINT
width = 3 * hidden
depth = 2 * hidden
for s in range(steps):
    STEP_BACK
    for b in range(start, stop):
        at = (b * steps + t) * width
        to = (b * steps + t) * hidden
        if masked and mask[b * steps + t] == 0:
            KEEP_DH
            for u in range(0, hidden, LANES):
                store_first_X(ds, to + u, zero, min(LANES, hidden - u))
        else:
            for u in range(0, hidden, LANES):
                n = min(LANES, hidden - u)
                reset = load_first_V(gates, 4 * to + u, n)
                update = load_first_V(gates, 4 * to + hidden + u, n)
                entering = load_first_V(gates, 4 * to + 2 * hidden + u, n)
                new = load_first_V(gates, 4 * to + 3 * hidden + u, n)
                if s == steps - 1:
                    old = load_first_V(h0, b * hidden + u, n)
                else:
                    old = load_first_V(states, (b * steps + earlier) * hidden + u, n)
                slope = load_first_V(dh, b * hidden + u, n) + load_first_V(ct, to + u, n)
                of_new = slope * (one - update) * (one - new * new)
                store_first_X(dz, at + 2 * hidden + u, of_new, n)
                store_first_X(dz, at + hidden + u, slope * (old - new) * update * (one - update), n)
                store_first_X(dh, b * hidden + u, slope * update, n)
                if before:
                    store_first_X(ds, to + u, of_new, n)
                else:
                    store_first_X(ds, to + u, of_new * reset, n)
                    store_first_X(dz, at + u, of_new * entering * reset * (one - reset), n)
    for j in range(0, hidden, WIDE):
        edge = min(WIDE, hidden - j)
        at_w = j // PANEL * hidden * PANEL + j % PANEL
        for i in range(start, stop, HIGH):
            rows = rows_HIGH(i, stop)
            if before:
                tile = zero_W(rows)
            else:
                tile = load_tile_W(dh, j, rows, hidden, 0, edge)
            for p in range(hidden):
                tile = add_outer_W(tile, ds, t * hidden + p, rows, steps * hidden, load_W(wn, at_w + p * PANEL))
            if before:
                store_tile_W(dz, t * width + j, rows, steps * width, tile, 0, edge)
            else:
                store_tile_W(dh, j, rows, hidden, tile, 0, edge)
    if before:
        for b in range(start, stop):
            at = (b * steps + t) * width
            to = (b * steps + t) * hidden
            for u in range(0, hidden, LANES):
                n = min(LANES, hidden - u)
                reset = load_first_V(gates, 4 * to + u, n)
                if s == steps - 1:
                    old = load_first_V(h0, b * hidden + u, n)
                else:
                    old = load_first_V(states, (b * steps + earlier) * hidden + u, n)
                through = load_first_V(dz, at + u, n)
                passed = load_first_V(dh, b * hidden + u, n)
                store_first_X(dz, at + u, through * old * reset * (one - reset), n)
                store_first_X(dh, b * hidden + u, passed + through * reset, n)
    ADD_TO_DH
"""

_RNN = """
BEGIN
for s in range(steps):
    t = s
    if reverse:
        t = steps - 1 - s
    for j in range(0, hidden, WIDE):
        edge = min(WIDE, hidden - j)
        at_w = j // PANEL * hidden * PANEL + j % PANEL
        for i in range(start, stop, HIGH):
            rows = rows_HIGH(i, stop)
            tile = load_tile_W(z, t * hidden + j, rows, steps * hidden, 0, edge)
            for p in range(hidden):
                tile = add_outer_W(tile, state, p, rows, hidden, load_W(w, at_w + p * PANEL))
            store_tile_W(h, t * hidden + j, rows, steps * hidden, tile, 0, edge)
    for b in range(start, stop):
        to = (b * steps + t) * hidden
        if masked and mask[b * steps + t] == 0:
            KEEP_STATE
        else:
            for u in range(0, hidden, LANES):
                n = min(LANES, hidden - u)
                new = load_first_V(h, to + u, n) + load_first_V(bias, u, n)
                if relu:
                    new = where(new < zero, zero, new)
                else:
                    new = tanh_T(new)
                store_first_X(state, b * hidden + u, new, n)
                store_first_X(h, to + u, new, n)
"""

_RNN_ADJOINT = """
BEGIN_ADJOINT
width = hidden
depth = hidden
for s in range(steps):
    t = steps - 1 - s
    if reverse:
        t = s
    for b in range(start, stop):
        at = (b * steps + t) * width
        to = at
        if masked and mask[b * steps + t] == 0:
            KEEP_DH
        else:
            for u in range(0, hidden, LANES):
                n = min(LANES, hidden - u)
                state = load_first_V(states, to + u, n)
                slope = load_first_V(dh, b * hidden + u, n) + load_first_V(ct, to + u, n)
                if relu:
                    slope = where(state > zero, slope, zero)
                else:
                    slope = slope * (one - state * state)
                store_first_X(dz, at + u, slope, n)
                store_first_X(dh, b * hidden + u, zero, n)
    ADD_TO_DH
"""

_SNIPPETS = {
    "BEGIN": _BEGIN, "BEGIN_ADJOINT": _BEGIN_ADJOINT, "KEEP_STATE": _KEEP, "STEP_BACK": _STEP_BACK,
    "ADD_TO_DH": _ADD_TO_DH, "KEEP_DH": _KEEP_DH,
}  # fmt: skip
_KERNELS = {  # text, further numbers, what is read, what is written
    "lstm_forward": (_LSTM, ("saves",), "z bias h0 c0 w mask", "h state cell cells gates"),
    "lstm_backward": (_LSTM_ADJOINT, (), "gates cells c0 w mask ct ct_h ct_c", "dz dh dc"),
    "gru_forward": (_GRU, ("before", "saves"), "z bias h0 w wn inner_bias mask", "h state gates"),
    "gru_backward": (_GRU_ADJOINT, ("before",), "gates states h0 w wn mask ct ct_h", "dz ds dh"),
    "rnn_forward": (_RNN, ("relu",), "z bias h0 w mask", "h state"),
    "rnn_backward": (_RNN_ADJOINT, ("relu",), "states w mask ct ct_h", "dz dh"),
}


def kernel(launch: KernelLaunch) -> Kernel:
    """Return a kernel of a recurrent layer (Note [recurrence])."""
    return _written(launch.name, launch.pointers[-1].dtype, vector_bytes())


@cache
def _written(name: str, dtype: np.dtype, _vector_bytes: int) -> Kernel:
    text, numbers, pointers, results = _KERNELS[name]
    sizes = {"PANEL": PANEL, "UNIT": UNIT}
    return written(name, text, dtype, (*_NUMBERS, *numbers), pointers, results, sizes, _SNIPPETS)
