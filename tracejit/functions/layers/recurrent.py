# SPDX-License-Identifier: BSD-3-Clause
"""lstm, gru and rnn: recurrent layers over all steps of labelled sequences, in one direction or both."""

from collections.abc import Callable
from typing import Any

import numpy as np

from tracejit.array import apply, as_array, dlarray
from tracejit.errors import ArgumentError, DimsError
from tracejit.functions.formats import describe, in_dtype
from tracejit.functions.halves import in_single
from tracejit.functions.layers.sequences import LabelledSequence, observed, sequence
from tracejit.functions.movement import expanded, permuted, relabel, reshaped
from tracejit.ops.recurrent import packed
from tracejit.util.arguments import is_option
from tracejit.util.named_tuples import NamedTuple
from tracejit.util.text import brief

_DIRECTIONS = ("forward", "reverse", "bidirectional")
_MODES = ("after-multiplication", "before-multiplication", "recurrent-bias-after-multiplication")


class _Layer(NamedTuple):
    """The operands of a layer: weights (rows, channels), without labels, rows being those of all directions."""

    function: str
    x: LabelledSequence
    states: list[dlarray]  # (batch, hidden of all directions)
    weights: dlarray
    recurrent: dlarray
    bias: dlarray
    mask: dlarray | None
    directions: tuple[bool, ...]  # whether each is in reverse

    @property
    def hidden(self) -> int:
        return int(self.recurrent._data.shape[1])


class _Direction(NamedTuple):
    """Operands of the op of one direction: z (batch, steps, gates), turned weights (hidden, gates), and the rest."""

    z: dlarray
    bias: dlarray
    states: list[dlarray]
    turned: dlarray
    mask: Any
    params: dict[str, bool]


@in_single
def lstm(
    x: Any, h0: Any, c0: Any, weights: Any, recurrent_weights: Any, bias: Any, *,
    direction: str = "forward", mask: Any = None, data_format: str | None = None,
) -> tuple[dlarray, dlarray, dlarray]:  # fmt: skip
    """Return the outputs of all steps of an LSTM, its last hidden state and its last cell state.

    With gates in the order input, forget, candidate, output, and H hidden units:

        i, f, g, o = weights x + recurrent_weights h + bias      (4 H rows)
        c = sigmoid(f) c + sigmoid(i) tanh(g);   h = sigmoid(o) tanh(c)

    Args:
        x: dlarray with the labels C, T (or one S; without, there is one step) and perhaps B in any order, or an
            unformatted array with `data_format`.
        h0: hidden state before the first step: (H,), or C and B in the order of `x`, or labelled; None for zeros.
        c0: cell state before the first step, as h0.
        weights: (4 H, channels of x); labels are ignored.
        recurrent_weights: (4 H, H).
        bias: (4 H,), or None for zeros.
        direction: "forward"; "reverse", from the last step to the first; or "bidirectional": weights and bias have
            the rows for the reverse direction below those for the forward one, and states their channels after.
        mask: booleans or numbers (batch, steps), or labelled B and T: where it is 0, states stay as they are and the
            output is 0. So the last state of a padded sequence is that of its last step.
        data_format: labels of an unformatted `x`, such as "CBT".

    Returns:
        (y, h, c): y has the labels and the order of `x`, with H channels (2 H if bidirectional: forward, then
        reverse); h and c the same without the length. Unformatted if `x` was.

    Raises:
        DimsError: if labels or sizes do not fit.
        ArgumentError: for an unknown direction.

    S. Hochreiter, J. Schmidhuber, "Long short-term memory", 1997. There are no second derivatives: dlgradient raises
    a GradientError.

    Examples:
        >>> import numpy as np, tracejit as tj
        >>> x = tj.dlarray(np.ones((2, 3)), "CT")
        >>> y, h, c = tj.lstm(x, None, None, np.ones((4, 2)), np.ones((4, 1)), np.zeros(4))
        >>> y.shape, h.shape, bool(y[0, 2] == h[0])
        ((1, 3), (1,), True)
    """
    layer = _layer("lstm", x, (h0, c0), weights, recurrent_weights, bias, 4, direction, mask, data_format)

    def run(of: _Direction) -> list[dlarray]:
        y, h, c, _, _ = apply(
            "lstm_forward", of.z, of.bias, *of.states, packed(apply, of.turned), of.mask, **of.params
        )
        return [y, h, c]

    y, h, c = _run(layer, 4, run)
    return y, h, c


@in_single
def gru(
    x: Any, h0: Any, weights: Any, recurrent_weights: Any, bias: Any, *,
    reset_gate_mode: str = "after-multiplication", direction: str = "forward", mask: Any = None,
    data_format: str | None = None,
) -> tuple[dlarray, dlarray]:  # fmt: skip
    """Return the outputs of all steps of a GRU, and its last hidden state.

    With gates in the order reset, update, candidate, and H hidden units:

        r, u = sigmoid(weights x + recurrent_weights h + bias)      (the first 2 H rows)
        after-multiplication:   n = tanh(weights x + bias + r (recurrent_weights h))      (the last H rows)
        before-multiplication:  n = tanh(weights x + bias + recurrent_weights (r h))
        recurrent-bias-after-multiplication:  n = tanh(weights x + bias + r (recurrent_weights h + recurrent bias))
        h = (1 - u) n + u h

    Args:
        x: dlarray with the labels C, T (or one S; without, there is one step) and perhaps B in any order, or an
            unformatted array with `data_format`.
        h0: hidden state before the first step: (H,), or C and B in the order of `x`, or labelled; None for zeros.
        weights: (3 H, channels of x); labels are ignored.
        recurrent_weights: (3 H, H).
        bias: (3 H,), or None for zeros; for "recurrent-bias-after-multiplication" (6 H,): that of the inputs, then
            that of the states. PyTorch's GRU is this one.
        reset_gate_mode: one of the three above.
        direction: "forward"; "reverse", from the last step to the first; or "bidirectional": weights and bias have
            the rows for the reverse direction below those for the forward one, and states their channels after.
        mask: booleans or numbers (batch, steps), or labelled B and T: where it is 0, the state stays as it is and the
            output is 0.
        data_format: labels of an unformatted `x`, such as "CBT".

    Returns:
        (y, h): y has the labels and the order of `x`, with H channels (2 H if bidirectional: forward, then reverse);
        h the same without the length. Unformatted if `x` was.

    Raises:
        DimsError: if labels or sizes do not fit.
        ArgumentError: for an unknown direction or mode.

    K. Cho et al., "Learning phrase representations", 2014. There are no second derivatives: dlgradient raises a
    GradientError.

    Examples:
        >>> import numpy as np, tracejit as tj
        >>> x = tj.dlarray(np.ones((2, 3)), "CT")
        >>> y, h = tj.gru(x, None, np.ones((3, 2)), np.ones((3, 1)), np.zeros(3))
        >>> y.shape, h.shape
        ((1, 3), (1,))
    """
    check_reset_gate_mode("gru", reset_gate_mode)
    biases = 6 if reset_gate_mode == _MODES[2] else 3
    layer = _layer("gru", x, (h0,), weights, recurrent_weights, bias, 3, direction, mask, data_format, biases)
    hidden = layer.hidden

    def run(of: _Direction) -> list[dlarray]:
        weights = [_columns(of.turned, 0, 2 * hidden), _columns(of.turned, 2 * hidden, 3 * hidden)]
        panels = [packed(apply, part) for part in weights]
        bias: Any = of.bias
        inner: Any = np.zeros(hidden, of.z.dtype)
        if biases == 6:
            bias, added = _part(of.bias, 0, 3 * hidden), _part(of.bias, 3 * hidden, 5 * hidden)
            bias = apply("add", bias, apply("concatenate", added, inner, axis=0))
            inner = _part(of.bias, 5 * hidden, 6 * hidden)
        before = reset_gate_mode == "before-multiplication"
        y, h, _ = apply(
            "gru_forward", of.z, bias, *of.states, *panels, inner, of.mask, **of.params, before=before
        )
        return [y, h]

    y, h = _run(layer, 3, run)
    return y, h


@in_single
def rnn(
    x: Any, h0: Any, weights: Any, recurrent_weights: Any, bias: Any, *, activation: str = "tanh",
    direction: str = "forward", mask: Any = None, data_format: str | None = None,
) -> tuple[dlarray, dlarray]:  # fmt: skip
    """Return the outputs of all steps of a plain recurrent layer, and its last state.

    With H hidden units: h = tanh(weights x + recurrent_weights h + bias), or relu.

    Args:
        x: dlarray with the labels C, T (or one S; without, there is one step) and perhaps B in any order, or an
            unformatted array with `data_format`.
        h0: state before the first step: (H,), or C and B in the order of `x`, or labelled; None for zeros.
        weights: (H, channels of x); labels are ignored.
        recurrent_weights: (H, H).
        bias: (H,), or None for zeros.
        activation: "tanh" or "relu".
        direction: "forward"; "reverse", from the last step to the first; or "bidirectional": weights and bias have
            the rows for the reverse direction below those for the forward one, and states their channels after.
        mask: booleans or numbers (batch, steps), or labelled B and T: where it is 0, the state stays as it is and the
            output is 0.
        data_format: labels of an unformatted `x`, such as "CBT".

    Returns:
        (y, h): y has the labels and the order of `x`, with H channels (2 H if bidirectional: forward, then reverse);
        h the same without the length. Unformatted if `x` was.

    Raises:
        DimsError: if labels or sizes do not fit.
        ArgumentError: for an unknown direction or activation.

    J. Elman, "Finding structure in time", 1990. There are no second derivatives: dlgradient raises a GradientError.

    Examples:
        >>> import numpy as np, tracejit as tj
        >>> x = tj.dlarray([[1.0, 0.0, 0.0]], "CT")
        >>> y, h = tj.rnn(x, None, [[1.0]], [[0.5]], None, activation="relu")
        >>> y.tolist(), h.tolist()
        ([[1.0, 0.5, 0.25]], [0.25])
    """
    if not is_option(activation, ("tanh", "relu")):
        raise ArgumentError(f'rnn: activation must be "tanh" or "relu", not {brief(activation)}.')
    layer = _layer("rnn", x, (h0,), weights, recurrent_weights, bias, 1, direction, mask, data_format)

    def run(of: _Direction) -> list[dlarray]:
        panels = packed(apply, of.turned)
        relu = activation == "relu"
        return list(apply("rnn_forward", of.z, of.bias, *of.states, panels, of.mask, **of.params, relu=relu))

    y, h = _run(layer, 1, run)
    return y, h


def check_reset_gate_mode(function: str, reset_gate_mode: Any) -> None:
    """Raise an ArgumentError in the name of `function` unless a mode of the reset gate is one."""
    if not is_option(reset_gate_mode, _MODES):
        raise ArgumentError(
            f"{function}: reset_gate_mode must be {', '.join(map(repr, _MODES[:2]))} or {_MODES[2]!r}, not "
            f"{brief(reset_gate_mode)}."
        )


def _other_mode(have: int, size: int, biases: int | None) -> str:
    """Return in which other mode of the reset gate a bias would have the size that it has, if there is one."""
    if biases is None:  # the layer has no such gate
        return ""
    other, modes = (size // 2, _MODES[:2]) if biases == 6 else (2 * size, _MODES[2:])
    advice = f" One of {other} elements is for reset_gate_mode={' or '.join(map(repr, modes))}."
    return advice if have == other else ""


def _layer(
    function: str, x: Any, states: tuple[Any, ...], weights: Any, recurrent: Any, bias: Any, gates: int,
    direction: Any, mask: Any, data_format: str | None, biases: int | None = None,
) -> _Layer:  # fmt: skip
    """Return the operands of a layer with `gates` blocks of rows and `biases` blocks of biases."""
    if not is_option(direction, _DIRECTIONS):
        raise ArgumentError(
            f'{function}: direction must be "forward", "reverse" or "bidirectional", not {brief(direction)}.'
        )
    directions = (False, True) if direction == "bidirectional" else (direction == "reverse",)
    found = sequence(function, "x", x, data_format, needs_length=False)
    batch, steps, channels = found.sizes
    matrices = [
        relabel(as_array(matrix, function, name), None)
        for name, matrix in (("weights", weights), ("recurrent_weights", recurrent))
    ]
    count = gates * len(directions)
    shape = matrices[1]._data.shape
    if len(shape) != 2 or not shape[1] or shape[0] != count * shape[1]:
        raise DimsError(
            f"{function}: recurrent_weights are of {describe(matrices[1])}, but must be ({count} H, H) for H hidden "
            f"units, direction {direction!r}."
        )
    rows, hidden = shape
    if matrices[0]._data.shape != (rows, channels):
        raise DimsError(
            f"{function}: weights are of {describe(matrices[0])}, but x has {channels} channels and recurrent_weights "
            f"have {rows} rows; weights must be ({rows}, {channels})."
        )
    size = (biases or gates) * hidden * len(directions)
    vector = as_array(np.zeros(size, found.data.dtype) if bias is None else bias, function, "bias")
    if vector._data.size != size or max(vector._data.shape, default=1) != size:
        raise DimsError(
            f"{function}: bias is of {describe(vector)}, but must be ({size},) for {hidden} hidden units."
            + _other_mode(vector._data.size, size, biases)
        )
    vector = reshaped(relabel(vector, None), (size,), None)
    names = ("h0", "c0")
    given = [
        _state(function, name, state, found, hidden * len(directions))
        for name, state in zip(names, states, strict=False)
    ]
    seen = None if mask is None else observed(function, "mask", mask, batch, steps, "steps")
    dtype = np.result_type(
        *[array.dtype for array in (found.data, *matrices, vector, *given) if array.dtype.kind == "f"]
    )
    found = found._replace(data=in_dtype(found.data, dtype))
    before, between, vector = (
        in_dtype(array, dtype, f"{function}: {name} of")
        for name, array in zip(("weights", "recurrent_weights", "bias"), (*matrices, vector), strict=True)
    )
    given = [
        in_dtype(state, dtype, f"{function}: {name} of") for name, state in zip(names, given, strict=False)
    ]
    return _Layer(function, found, given, before, between, vector, seen, directions)


def _state(function: str, argument: str, value: Any, x: LabelledSequence, hidden: int) -> dlarray:
    """Return a state as (batch, hidden)."""
    batch = x.sizes[0]
    if value is None:
        return as_array(np.zeros((batch, hidden), x.data.dtype), function, argument)
    array = as_array(value, function, argument)
    format = array._format
    if format is None:
        order = "".join(label for label in x.format if label in "BC")
        format = order if array._data.ndim == 2 else "C"
    plain = relabel(array, None)
    if format == "CB" and array._data.ndim == 2:
        plain = permuted(plain, (1, 0))
    sizes = plain._data.shape
    if "".join(sorted(format)) not in ("BC", "C") or sizes not in ((batch, hidden), (1, hidden), (hidden,)):
        raise DimsError(
            f"{function}: {argument} is of {describe(array)}, but must be ({hidden},) or have {hidden} channels (C) "
            f"and {batch} observations (B), as x has them."
        )
    return expanded(plain, (batch, hidden))


def _run(layer: _Layer, gates: int, run: Callable[[_Direction], list[dlarray]]) -> list[dlarray]:
    """Return y and the last states of all directions, with the labels and the order of x."""
    x, hidden = layer.x, layer.hidden
    batch, steps, channels = x.sizes
    flat = reshaped(x.data, (batch * steps, channels), None)
    if layer.mask is not None:
        # No product may see what padding holds: a NaN there would reach the gradients of weights, times 0.
        flat = apply("where", reshaped(layer.mask, (batch * steps, 1), None), flat, flat.dtype.type(0))
    mask: Any = np.zeros((1, 1), flat.dtype) if layer.mask is None else in_dtype(layer.mask, flat.dtype)
    biases = layer.bias._data.shape[0] // len(layer.directions)
    found = []
    for number, reverse in enumerate(layer.directions):
        first, last = number * gates * hidden, (number + 1) * gates * hidden
        z = apply("matmul", flat, permuted(_rows(layer.weights, first, last), (1, 0)))
        found.append(
            run(
                _Direction(
                    reshaped(z, (batch, steps, gates * hidden), None),
                    _part(layer.bias, number * biases, (number + 1) * biases),
                    [_columns(state, number * hidden, (number + 1) * hidden) for state in layer.states],
                    permuted(_rows(layer.recurrent, first, last), (1, 0)),
                    mask,
                    {"reverse": reverse, "masked": layer.mask is not None},
                )
            )
        )
    y, *states = (_joined(list(parts)) for parts in zip(*found, strict=True))
    if layer.mask is not None:
        y = apply("where", reshaped(layer.mask, (batch, steps, 1), None), y, y.dtype.type(0))
    return [x.restored(y), *map(x.restored_state, states)]


def _joined(parts: list[dlarray]) -> dlarray:
    """Return the channels of all directions, one after the other."""
    axis = parts[0]._data.ndim - 1
    return parts[0] if len(parts) == 1 else apply("concatenate", *parts, axis=axis)


def _part(vector: dlarray, first: int, last: int) -> dlarray:
    if (first, last) == (0, vector._data.shape[0]):
        return vector
    return apply("slice", vector, starts=(first,), stops=(last,), steps=(1,))


def _rows(matrix: dlarray, first: int, last: int) -> dlarray:
    rows, columns = matrix._data.shape
    if (first, last) == (0, rows):
        return matrix
    return apply("slice", matrix, starts=(first, 0), stops=(last, columns), steps=(1, 1))


def _columns(matrix: dlarray, first: int, last: int) -> dlarray:
    rows, columns = matrix._data.shape
    if (first, last) == (0, columns):
        return matrix
    return apply("slice", matrix, starts=(0, first), stops=(rows, last), steps=(1, 1))
