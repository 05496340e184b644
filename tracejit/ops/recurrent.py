# SPDX-License-Identifier: BSD-3-Clause
"""Recurrent layers: LSTM, GRU and the plain one, over all steps of a batch of sequences.

Arrays lie as (batch, steps, ...). An op takes z, the contribution of the inputs to the gates of each step (x w', one
product for all steps), and the bias. It goes through the steps, and each step multiplies the state before it. The
adjoint gives the cotangent of z, from which those of all weights follow by products over all steps at once.

Weights that multiply states come in panels of 32 columns, (panels, rows, 32), which a kernel reads without gaps. Where
the mask (batch, steps) is 0, a state stays as it was; without a mask (masked=False) it is (1, 1) and not read. With
`reverse` the last step comes first. The results of a row of the batch depend on this row only.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from tracejit.aval import Aval
from tracejit.ops.floats import cast_to_one_float, one_float
from tracejit.ops.op import KernelCall, Kind, OnlyOnce, Op, RangeCut, Sample

PANEL = 32  # columns
UNIT = 16  # rows of a batch that one thread takes, at least
_MULTIPLIED_PER_NS = 30.0  # by one core, roughly: it only decides into how many parts a launch is cut

Apply = Callable[..., Any]


def packed(apply: Apply, weights: Any) -> Any:
    """Return a matrix in panels of columns. `apply` appends or computes an op by name."""
    rows, columns = weights.shape
    panels = -(-columns // PANEL)
    if columns % PANEL:
        weights = apply("pad", weights, widths=((0, 0), (0, panels * PANEL - columns)), value=0.0)
    return apply("transpose", apply("reshape", weights, shape=(rows, panels, PANEL)), axes=(1, 0, 2))


def unpacked(apply: Apply, panels: Any, columns: int) -> Any:
    """Return the matrix from which packed() made panels."""
    count, rows, _ = panels.shape
    matrix = apply("reshape", apply("transpose", panels, axes=(1, 0, 2)), shape=(rows, count * PANEL))
    if columns == count * PANEL:
        return matrix
    return apply("slice", matrix, starts=(0, 0), stops=(rows, columns), steps=(1, 1))


def _by_name(b: Any) -> Apply:
    return lambda name, *operands, **params: getattr(b, name)(*operands, **params)


def _matrix(panels: np.ndarray, columns: int) -> np.ndarray:
    return panels.transpose(1, 0, 2).reshape(panels.shape[1], -1)[:, :columns]


def _order(steps: int, reverse: bool) -> Iterator[int]:
    return iter(range(steps - 1, -1, -1) if reverse else range(steps))


def _sigmoid(x: np.ndarray) -> np.ndarray:
    result: np.ndarray = 1 / (1 + np.exp(-x))
    return result


def _masked_rows(mask: np.ndarray, t: int, masked: bool) -> Any:
    """Return the rows whose states stay as they are, as a column."""
    return (mask[:, t] == 0)[:, None] if masked else False


def _before(h: np.ndarray, h0: np.ndarray, reverse: bool) -> np.ndarray:
    """Return the states before each step."""
    if not h.shape[1]:
        return h
    parts = (h[:, 1:], h0[:, None]) if reverse else (h0[:, None], h[:, :-1])
    return np.concatenate(parts, axis=1)


def _previous(b: Any, h: Any, h0: Any, reverse: bool) -> Any:
    """Append the states before each step, as rows of a matrix."""
    batch, steps, hidden = h.shape
    if steps:
        first = b.reshape(h0, shape=(batch, 1, hidden))
        at = (1, steps) if reverse else (0, steps - 1)
        rest = b.slice(h, starts=(0, at[0], 0), stops=(batch, at[1], hidden), steps=(1, 1, 1))
        h = b.concatenate(*((rest, first) if reverse else (first, rest)), axis=1)
    return b.reshape(h, shape=(batch * steps, hidden))


def _or_zeros(b: Any, ct: Any, like: Any) -> Any:
    """Return a cotangent, zeros where there is none."""
    return b.broadcast_to(b.constant(np.zeros((), like.dtype)), shape=like.shape) if ct is None else ct


def _flat(b: Any, x: Any) -> Any:
    batch, steps, width = x.shape
    return b.reshape(x, shape=(batch * steps, width))


def _of_weights(b: Any, before: Any, of_gates: Any) -> Any:
    """Return the cotangent of weights in panels: states before each step, turned, times cotangents of gates."""
    return packed(_by_name(b), b.matmul(b.transpose(before, axes=(1, 0)), of_gates))


def _of_bias(b: Any, dz: Any) -> Any:
    return b.sum(dz, axes=(0, 1), keepdims=False)


def _turned(b: Any, panels: Any, columns: int) -> Any:
    """Return the panels of the transposed matrix."""
    apply = _by_name(b)
    return packed(apply, b.transpose(unpacked(apply, panels, columns), axes=(1, 0)))


def _numbers(gates: int) -> Callable[..., tuple[int, ...]]:
    """Return the integers of a kernel: rows in units from and to, batch, steps, hidden, and the options."""

    def numbers(outs: Any, *operands: Aval, **params: Any) -> tuple[int, ...]:
        batch, steps, width = outs[0].shape
        options = (params[name] for name in ("reverse", "masked", "before", "relu") if name in params)
        return (0, -(-batch // UNIT), batch, steps, width // gates, *map(int, options))

    return numbers


def _cut(products: int) -> RangeCut:
    """Return the division of a kernel into rows of the batch; each step multiplies by `products` times hidden**2."""

    def ns(numbers: Sequence[int]) -> float:
        _, _, batch, steps, hidden, *_ = numbers
        return batch * steps * hidden * (products * hidden / _MULTIPLIED_PER_NS + 3.0)

    return RangeCut(ns, lambda numbers: numbers[1])


# LSTM: gates input, forget, candidate, output


def _infer_lstm(z: Aval, bias: Aval, h0: Aval, *rest: Aval, **params: bool) -> tuple[Aval, ...]:
    dtype = one_float(z.dtype, bias.dtype, h0.dtype, *[aval.dtype for aval in rest])[0]
    states = Aval((*z.shape[:2], h0.shape[1]), None, dtype)
    state = Aval(h0.shape, None, dtype)
    return states, state, state, states, Aval(z.shape, None, dtype)


def _lstm(*arrays: np.ndarray, reverse: bool, masked: bool) -> tuple[np.ndarray, ...]:
    z, bias, h0, c0, w, mask = cast_to_one_float(arrays)
    batch, steps, width = z.shape
    hidden = width // 4
    weights = _matrix(w, width)
    states, cells = np.empty((2, batch, steps, hidden), z.dtype)
    gates = np.empty_like(z)
    h, c = h0.copy(), c0.copy()
    for t in _order(steps, reverse):
        i, f, g, o = np.split(z[:, t] + bias + h @ weights, 4, axis=1)
        i, f, g, o = _sigmoid(i), _sigmoid(f), np.tanh(g), _sigmoid(o)
        kept = _masked_rows(mask, t, masked)
        c = np.where(kept, c, f * c + i * g)
        h = np.where(kept, h, o * np.tanh(c))
        states[:, t], cells[:, t] = h, c
        gates[:, t] = np.where(kept, 0, np.concatenate((i, f, g, o), axis=1))
    return states, h, c, cells, gates


def _infer_lstm_backward(gates: Aval, cells: Aval, c0: Aval, *rest: Aval, **params: bool) -> tuple[Aval, ...]:
    dtype = one_float(gates.dtype, cells.dtype, c0.dtype, *[aval.dtype for aval in rest])[0]
    state = Aval(c0.shape, None, dtype)
    return Aval(gates.shape, None, dtype), state, state


def _lstm_backward(*arrays: np.ndarray, reverse: bool, masked: bool) -> tuple[np.ndarray, ...]:
    gates, cells, c0, w, mask, ct, ct_h, ct_c = cast_to_one_float(arrays)
    weights = _matrix(w, ct.shape[2])
    dz = np.empty_like(gates)
    dh, dc = ct_h.copy(), ct_c.copy()
    before = _before(cells, c0, reverse)
    for t in _order(gates.shape[1], not reverse):
        i, f, g, o = np.split(gates[:, t], 4, axis=1)
        kept = _masked_rows(mask, t, masked)
        dh = dh + ct[:, t]
        tanh = np.tanh(cells[:, t])
        inner = dc + dh * o * (1 - tanh * tanh)
        parts = (
            inner * g * i * (1 - i), inner * before[:, t] * f * (1 - f), inner * i * (1 - g * g),
            dh * tanh * o * (1 - o),
        )  # fmt: skip
        dz[:, t] = np.where(kept, 0, np.concatenate(parts, axis=1))
        dc = np.where(kept, dc, inner * f)
        dh = np.where(kept, dh, 0) + dz[:, t] @ weights
    return dz, dh, dc


def _vjp_lstm(b: Any, node: Any, cts: Any) -> Any:
    _, _, h0, c0, w, mask = node.inputs
    states, h, c, cells, gates = node.outputs
    ct, ct_h, ct_c = (_or_zeros(b, given, like) for given, like in zip(cts, (states, h, c), strict=False))
    panels = _turned(b, w, gates.shape[2])
    dz, dh0, dc0 = b.lstm_backward(gates, cells, c0, panels, mask, ct, ct_h, ct_c, **node.params)

    def of_weights() -> Any:
        return _of_weights(b, _previous(b, states, h0, node.params["reverse"]), _flat(b, dz))

    return dz, lambda: _of_bias(b, dz), dh0, dc0, of_weights, None


# GRU: gates reset, update, candidate


def _infer_gru(z: Aval, bias: Aval, h0: Aval, *rest: Aval, **params: bool) -> tuple[Aval, ...]:
    dtype = one_float(z.dtype, bias.dtype, h0.dtype, *[aval.dtype for aval in rest])[0]
    batch, steps, _ = z.shape
    hidden = h0.shape[1]
    return (
        Aval((batch, steps, hidden), None, dtype), Aval(h0.shape, None, dtype),
        Aval((batch, steps, 4 * hidden), None, dtype),
    )  # fmt: skip


def _gru(*arrays: np.ndarray, reverse: bool, masked: bool, before: bool) -> tuple[np.ndarray, ...]:
    """Return states, the last state, and gates: reset, update, what enters the candidate, candidate.

    What enters is the state times weights, plus inner bias, which the reset gate then multiplies; or, with `before`,
    the state times the reset gate, which weights then multiply."""
    z, bias, h0, w, wn, inner_bias, mask = cast_to_one_float(arrays)
    z = z + bias
    batch, steps, width = z.shape
    hidden = width // 3
    weights, of_candidate = _matrix(w, 2 * hidden), _matrix(wn, hidden)
    states = np.empty((batch, steps, hidden), z.dtype)
    gates = np.empty((batch, steps, 4 * hidden), z.dtype)
    h = h0.copy()
    for t in _order(steps, reverse):
        r, u = np.split(_sigmoid(z[:, t, : 2 * hidden] + h @ weights), 2, axis=1)
        entering = r * h if before else h @ of_candidate + inner_bias
        n = np.tanh(z[:, t, 2 * hidden :] + (entering @ of_candidate if before else r * entering))
        kept = _masked_rows(mask, t, masked)
        h = np.where(kept, h, (1 - u) * n + u * h)
        states[:, t] = h
        gates[:, t] = np.where(kept, 0, np.concatenate((r, u, entering, n), axis=1))
    return states, h, gates


def _infer_gru_backward(gates: Aval, states: Aval, h0: Aval, *rest: Aval, **params: bool) -> tuple[Aval, ...]:
    dtype = one_float(gates.dtype, states.dtype, h0.dtype, *[aval.dtype for aval in rest])[0]
    batch, steps, hidden = states.shape
    return (
        Aval((batch, steps, 3 * hidden), None, dtype), Aval(states.shape, None, dtype),
        Aval(h0.shape, None, dtype),
    )  # fmt: skip


def _gru_backward(*arrays: np.ndarray, reverse: bool, masked: bool, before: bool) -> tuple[np.ndarray, ...]:
    """Return the cotangents of z, of what weights of the candidate give, and of the first state."""
    gates, states, h0, w, wn, mask, ct, ct_h = cast_to_one_float(arrays)
    batch, steps, hidden = states.shape
    weights, of_candidate = _matrix(w, hidden), _matrix(wn, hidden)
    dz = np.empty((batch, steps, 3 * hidden), gates.dtype)
    ds = np.empty_like(states)
    dh = ct_h.copy()
    earlier = _before(states, h0, reverse)
    for t in _order(steps, not reverse):
        r, u, entering, n = np.split(gates[:, t], 4, axis=1)
        h = earlier[:, t]
        kept = _masked_rows(mask, t, masked)
        dh = dh + ct[:, t]
        dn = np.where(kept, 0, dh * (1 - u) * (1 - n * n))
        du = np.where(kept, 0, dh * (h - n) * u * (1 - u))
        passed = np.where(kept, dh, dh * u)
        ds[:, t] = dn if before else dn * r
        through = ds[:, t] @ of_candidate
        dr = through * h if before else dn * entering
        dr = np.where(kept, 0, dr * r * (1 - r))
        dz[:, t] = np.concatenate((dr, du, dn), axis=1)
        dh = passed + (through * r if before else through) + dz[:, t, : 2 * hidden] @ weights
    return dz, ds, dh


def _vjp_gru(b: Any, node: Any, cts: Any) -> Any:
    _, _, h0, w, wn, _, mask = node.inputs
    states, h, gates = node.outputs
    hidden = h0.shape[1]
    ct, ct_h = (_or_zeros(b, given, like) for given, like in zip(cts, (states, h), strict=False))
    turned = _turned(b, w, 2 * hidden), _turned(b, wn, hidden)
    dz, ds, dh0 = b.gru_backward(gates, states, h0, *turned, mask, ct, ct_h, **node.params)

    def columns(x: Any, first: int, last: int) -> Any:
        flat = _flat(b, x)
        return b.slice(flat, starts=(0, first), stops=(flat.shape[0], last), steps=(1, 1))

    def previous() -> Any:
        return _previous(b, states, h0, node.params["reverse"])

    def of_candidate() -> Any:
        left = columns(gates, 2 * hidden, 3 * hidden) if node.params["before"] else previous()
        return _of_weights(b, left, _flat(b, ds))

    return (
        dz, lambda: _of_bias(b, dz), dh0, lambda: _of_weights(b, previous(), columns(dz, 0, 2 * hidden)),
        of_candidate, None if node.params["before"] else lambda: _of_bias(b, ds), None,
    )  # fmt: skip


# Plain: tanh, or relu


def _infer_rnn(z: Aval, bias: Aval, h0: Aval, *rest: Aval, **params: bool) -> tuple[Aval, ...]:
    dtype = one_float(z.dtype, bias.dtype, h0.dtype, *[aval.dtype for aval in rest])[0]
    return Aval(z.shape, None, dtype), Aval(h0.shape, None, dtype)


def _rnn(*arrays: np.ndarray, reverse: bool, masked: bool, relu: bool) -> tuple[np.ndarray, ...]:
    z, bias, h0, w, mask = cast_to_one_float(arrays)
    weights = _matrix(w, z.shape[2])
    states = np.empty_like(z)
    h = h0.copy()
    for t in _order(z.shape[1], reverse):
        new = z[:, t] + bias + h @ weights
        h = np.where(_masked_rows(mask, t, masked), h, np.maximum(new, 0) if relu else np.tanh(new))
        states[:, t] = h
    return states, h


def _infer_rnn_backward(states: Aval, w: Aval, mask: Aval, ct: Aval, ct_h: Aval, **params: bool) -> Any:
    dtype = one_float(states.dtype, w.dtype, mask.dtype, ct.dtype, ct_h.dtype)[0]
    return Aval(states.shape, None, dtype), Aval(ct_h.shape, None, dtype)


def _rnn_backward(*arrays: np.ndarray, reverse: bool, masked: bool, relu: bool) -> tuple[np.ndarray, ...]:
    states, w, mask, ct, ct_h = cast_to_one_float(arrays)
    weights = _matrix(w, states.shape[2])
    dz = np.empty_like(states)
    dh = ct_h.copy()
    for t in _order(states.shape[1], not reverse):
        h = states[:, t]
        dh = dh + ct[:, t]
        kept = _masked_rows(mask, t, masked)
        slope = np.where(h > 0, dh, 0) if relu else dh * (1 - h * h)
        dz[:, t] = np.where(kept, 0, slope)
        dh = np.where(kept, dh, 0) + dz[:, t] @ weights
    return dz, dh


def _vjp_rnn(b: Any, node: Any, cts: Any) -> Any:
    _, _, h0, w, mask = node.inputs
    states, h = node.outputs
    ct, ct_h = (_or_zeros(b, given, like) for given, like in zip(cts, (states, h), strict=True))
    dz, dh0 = b.rnn_backward(states, _turned(b, w, h0.shape[1]), mask, ct, ct_h, **node.params)

    def of_weights() -> Any:
        return _of_weights(b, _previous(b, states, h0, node.params["reverse"]), _flat(b, dz))

    return dz, lambda: _of_bias(b, dz), dh0, of_weights, None


def _gru_shapes(batch: int, steps: int, hidden: int) -> Sequence[tuple[int, ...]]:
    widths = ((3 * hidden,), (batch, hidden), _panels(hidden, 2 * hidden), _panels(hidden, hidden), (hidden,))
    return ((batch, steps, 3 * hidden), *widths)


def _panels(rows: int, columns: int) -> tuple[int, int, int]:
    return (-(-columns // PANEL), rows, PANEL)


def _samples(
    shapes: Callable[[int, int, int], Sequence[tuple[int, ...]]], **options: bool
) -> tuple[Sample, ...]:
    plain = Sample((*shapes(2, 3, 2), (1, 1)), {"reverse": False, "masked": False, **options})
    masked = Sample(
        (*shapes(3, 2, 9), (3, 2)), {"reverse": True, "masked": True, **options}, low=-0.5, high=0.5
    )
    return plain, masked


def _backward_samples(
    shapes: Callable[[int, int, int], Sequence[tuple[int, ...]]], states: int, **options: bool
) -> tuple[Sample, ...]:
    """Return samples whose operands end with the mask, a cotangent of all states and those of last states."""
    return tuple(
        Sample(
            (*shapes(*sizes), mask, sizes, *[(sizes[0], sizes[2])] * states),
            {"reverse": reverse, "masked": reverse, **options}, low=-0.5, high=0.5,
        )
        for sizes, mask, reverse in (((2, 3, 2), (1, 1), False), ((3, 2, 9), (3, 2), True))
    )  # fmt: skip


OPS = (
    Op(name="lstm_forward", doc="states, the last state and cell of an LSTM; cells and gates are saved for the "
       "adjoint, which is lstm_backward", kind=Kind.KERNEL, infer=_infer_lstm, numpy=_lstm, vjp=_vjp_lstm,
       promote=one_float, analytic=False, saved=2,
       emit=KernelCall("lstm_forward", _numbers(1), cut=_cut(4), tells_saved=True),
       samples=_samples(lambda b, t, h: ((b, t, 4 * h), (4 * h,), (b, h), (b, h), _panels(h, 4 * h)))),
    Op(name="lstm_backward", doc="cotangents of the gates, the first state and the first cell of an LSTM; no "
       "derivative", kind=Kind.KERNEL, infer=_infer_lstm_backward, numpy=_lstm_backward, vjp=OnlyOnce("lstm"),
       promote=one_float, analytic=False, emit=KernelCall("lstm_backward", _numbers(4), cut=_cut(4)),
       samples=_backward_samples(
           lambda b, t, h: ((b, t, 4 * h), (b, t, h), (b, h), _panels(4 * h, h)), 2)),
    Op(name="gru_forward", doc="states and the last state of a GRU; gates are saved for the adjoint, gru_backward",
       kind=Kind.KERNEL, infer=_infer_gru, numpy=_gru, vjp=_vjp_gru, promote=one_float, analytic=False, saved=1,
       emit=KernelCall("gru_forward", _numbers(1), cut=_cut(3), tells_saved=True),
       samples=tuple(
           sample for before in (False, True) for sample in _samples(_gru_shapes, before=before))),
    Op(name="gru_backward", doc="cotangents of the gates, of what enters the candidate, and of the first state of a "
       "GRU; no derivative", kind=Kind.KERNEL, infer=_infer_gru_backward, numpy=_gru_backward, vjp=OnlyOnce("gru"),
       promote=one_float, analytic=False, emit=KernelCall("gru_backward", _numbers(3), cut=_cut(3)),
       samples=tuple(
           sample for before in (False, True)
           for sample in _backward_samples(
               lambda b, t, h: ((b, t, 4 * h), (b, t, h), (b, h), _panels(2 * h, h), _panels(h, h)), 1,
               before=before))),
    Op(name="rnn_forward", doc="states and the last state of a recurrent layer with tanh, or relu; its adjoint is "
       "rnn_backward", kind=Kind.KERNEL, infer=_infer_rnn, numpy=_rnn, vjp=_vjp_rnn, promote=one_float, analytic=False,
       emit=KernelCall("rnn_forward", _numbers(1), cut=_cut(1)),
       samples=tuple(
           sample for relu in (False, True)
           for sample in _samples(lambda b, t, h: ((b, t, h), (h,), (b, h), _panels(h, h)), relu=relu))),
    Op(name="rnn_backward", doc="cotangents of what enters, and of the first state; no derivative", kind=Kind.KERNEL,
       infer=_infer_rnn_backward, numpy=_rnn_backward, vjp=OnlyOnce("rnn"), promote=one_float, analytic=False,
       emit=KernelCall("rnn_backward", _numbers(1), cut=_cut(1)),
       samples=tuple(
           sample for relu in (False, True)
           for sample in _backward_samples(lambda b, t, h: ((b, t, h), _panels(h, h)), 1, relu=relu))),
)  # fmt: skip
