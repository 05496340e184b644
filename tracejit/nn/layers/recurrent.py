# SPDX-License-Identifier: BSD-3-Clause
"""Recurrent layers: LSTM and GRU in one direction or both."""

from typing import Any

import numpy as np

from tracejit.array import as_array, dlarray
from tracejit.errors import ArgumentError, DimsError
from tracejit.functions.creation import zeros
from tracejit.functions.joining import concatenate
from tracejit.functions.layers.recurrent import check_reset_gate_mode, gru, lstm
from tracejit.nn.fields import LearnableField, StateField
from tracejit.nn.initializers import check_initializer, initial
from tracejit.nn.layer import BuiltInLayer
from tracejit.nn.layers.options import channels_of, number_of, set_factors
from tracejit.nn.layout import DataLayout
from tracejit.record import recorder as recorders
from tracejit.util.arguments import flag, is_option
from tracejit.util.text import brief

_MODES = ("sequence", "last")


class RecurrentLayer(BuiltInLayer):
    """The base class of recurrent layers."""

    input_weights = LearnableField()
    recurrent_weights = LearnableField()
    bias = LearnableField(l2_factor=0)
    hidden_state = StateField(per_observation=True)
    _gates = 0
    _directions = 1

    def __init__(
        self, num_hidden_units: Any, *, output_mode: str = "sequence", has_mask_input: bool = False,
        input_weights_initializer: Any = "glorot", recurrent_weights_initializer: Any = "orthogonal",
        bias_initializer: Any = None, input_weights: Any = None, recurrent_weights: Any = None, bias: Any = None,
        learn_rate_factor: Any = None, l2_factor: Any = None, name: str = "",
    ) -> None:  # fmt: skip
        kind = type(self).__name__
        self.name = name
        self.num_hidden_units = number_of(kind, "num_hidden_units", num_hidden_units)
        if not is_option(output_mode, _MODES):
            raise ArgumentError(
                f'{kind}: output_mode must be "sequence" or "last", not {brief(output_mode)}.'
            )
        self.output_mode = output_mode
        self.input_names = ("in", "mask") if flag(kind, "has_mask_input", has_mask_input) else ("in",)
        self.input_weights_initializer = check_initializer(
            kind, "input_weights_initializer", input_weights_initializer
        )
        self.recurrent_weights_initializer = check_initializer(
            kind, "recurrent_weights_initializer", recurrent_weights_initializer
        )
        if bias_initializer is None:
            bias_initializer = self._bias_initializer
        self.bias_initializer = check_initializer(
            kind, "bias_initializer", bias_initializer, ("unit-forget-gate",)
        )
        given = {"input_weights": input_weights, "recurrent_weights": recurrent_weights, "bias": bias}
        self.__dict__.update({name: value for name, value in given.items() if value is not None})
        set_factors(self, learn_rate_factor, l2_factor)

    _bias_initializer = "zeros"

    def initialize(self, layout: DataLayout, *mask: DataLayout) -> None:
        channels = channels_of(type(self).__name__, layout)
        units = self.num_hidden_units
        rows = self._gates * units
        parts = range(self._directions)
        if self.input_weights is None:
            self.input_weights = _stacked(
                [
                    initial("input_weights", self.input_weights_initializer, (rows, channels), channels, rows)
                    for _ in parts
                ]
            )
        if self.recurrent_weights is None:
            self.recurrent_weights = _stacked(
                [
                    initial(
                        "recurrent_weights", self.recurrent_weights_initializer, (rows, units), units, rows
                    )
                    for _ in parts
                ]
            )
        if self.bias is None:
            self.bias = _stacked([self._bias(rows) for _ in parts])
        if self.hidden_state is None:
            self.reset_state()

    def _bias(self, rows: int) -> dlarray:
        if self.bias_initializer != "unit-forget-gate":
            return initial("bias", self.bias_initializer, (rows,), 1, rows)
        values = np.zeros(rows, np.float32)
        values[self.num_hidden_units : 2 * self.num_hidden_units] = 1
        return dlarray(values)

    def reset_state(self) -> None:
        """Set the state to zeros."""
        self.hidden_state = zeros(self._directions * self.num_hidden_units, np.float32)

    def forward(self, *inputs: Any) -> Any:
        return self.predict(*inputs)

    def _start(self, name: str, x: dlarray) -> Any:
        """Return the state to begin with: zeros, or that of the batch before, whose observations go on."""
        state = as_array(getattr(self, name))
        if state._data.ndim > 1:
            given, wanted = (
                array._data.shape[(array._format or "").index("B")] if "B" in (array._format or "") else 1
                for array in (state, x)
            )
            if given != wanted:
                raise DimsError(
                    f"{type(self).__name__}: {name} is of {given} observations, but the input of "
                    f"{recorders.describe(x)} has "
                    f"{wanted}; use net = net.reset_state() between batches of different sequences."
                )
        return state

    def _output(self, y: dlarray, last: dlarray) -> dlarray:
        return y if self.output_mode == "sequence" else last


def _stacked(parts: list[dlarray]) -> dlarray:
    return parts[0] if len(parts) == 1 else concatenate(parts, 0)


class LSTM(RecurrentLayer):
    """A long short-term memory.

    Args:
        num_hidden_units: number of hidden units, which are the channels of the output.
        output_mode: "sequence" for the outputs of all steps, "last" for that of the last one.
        has_mask_input: whether there is a second input, mask: (batch, steps), 0 for steps that do not count.
        input_weights_initializer, recurrent_weights_initializer, bias_initializer: as in FullyConnected; also
            "unit-forget-gate" for the bias, which is 1 at forget gates and 0 elsewhere.
        input_weights: (4 units, channels), recurrent_weights: (4 units, units), bias: (4 units,); gates in the order
            of tj.lstm; None to initialise them.
        learn_rate_factor, l2_factor: a number, or numbers by the names of the learnables.
        name: of the layer.

    Raises:
        DimsError: if a size is not positive.
        ArgumentError: for an unknown option.

    Examples:
        >>> import numpy as np, tracejit as tj
        >>> from tracejit import nn
        >>> net = tj.dlnetwork([nn.SequenceInput(3), nn.LSTM(5, output_mode="last")])
        >>> net.predict(tj.dlarray(np.ones((2, 7, 3), np.float32), "BTC")).shape
        (2, 5)
    """

    cell_state = StateField(per_observation=True)
    default_name = "lstm"
    _gates = 4
    _direction = "forward"
    _bias_initializer = "unit-forget-gate"

    def reset_state(self) -> None:
        """Set the state to zeros."""
        super().reset_state()
        self.cell_state = self.hidden_state

    def predict(self, x: Any, mask: Any = None) -> Any:
        y, h, c = lstm(
            x, self._start("hidden_state", x), self._start("cell_state", x), self.input_weights,
            self.recurrent_weights, self.bias, direction=self._direction, mask=mask,
        )  # fmt: skip
        return self._output(y, h), h, c


class BiLSTM(LSTM):
    """A long short-term memory in both directions, whose outputs stand one after the other.

    Args:
        num_hidden_units: number of hidden units of a direction; the output has twice as many channels.
        output_mode, has_mask_input, input_weights_initializer, recurrent_weights_initializer, bias_initializer: as of
            LSTM.
        input_weights, recurrent_weights, bias: as in LSTM, the rows for the reverse direction below those for the
            forward one; None to initialise them.
        learn_rate_factor, l2_factor, name: as in LSTM.

    Raises:
        DimsError: if a size is not positive.
        ArgumentError: for an unknown option.

    Examples:
        >>> import numpy as np, tracejit as tj
        >>> from tracejit import nn
        >>> net = tj.dlnetwork([nn.SequenceInput(3), nn.BiLSTM(5)])
        >>> net.predict(tj.dlarray(np.ones((2, 7, 3), np.float32), "BTC")).shape
        (2, 7, 10)
    """

    default_name = "biLSTM"
    _directions = 2
    _direction = "bidirectional"


class GRU(RecurrentLayer):
    """A gated recurrent unit.

    Args:
        num_hidden_units: number of hidden units, which are the channels of the output.
        reset_gate_mode: "after-multiplication", "before-multiplication" or "recurrent-bias-after-multiplication", as
            of tj.gru.
        output_mode, has_mask_input, input_weights_initializer, recurrent_weights_initializer, bias_initializer: as of
            LSTM.
        input_weights: (3 units, channels), recurrent_weights: (3 units, units), bias: (3 units,), or twice as many
            with a recurrent bias; None to initialise them.
        learn_rate_factor, l2_factor, name: as in LSTM.

    Raises:
        DimsError: if a size is not positive.
        ArgumentError: for an unknown option.

    Examples:
        >>> import numpy as np, tracejit as tj
        >>> from tracejit import nn
        >>> net = tj.dlnetwork([nn.SequenceInput(3), nn.GRU(5)])
        >>> net.predict(tj.dlarray(np.ones((2, 7, 3), np.float32), "BTC")).shape
        (2, 7, 5)
    """

    default_name = "gru"
    _gates = 3

    def __init__(
        self, num_hidden_units: Any, *, reset_gate_mode: str = "after-multiplication", **options: Any
    ) -> None:
        super().__init__(num_hidden_units, **options)
        check_reset_gate_mode(type(self).__name__, reset_gate_mode)
        self.reset_gate_mode = reset_gate_mode

    def _bias(self, rows: int) -> dlarray:
        twice = self.reset_gate_mode.startswith("recurrent-bias")
        return super()._bias(2 * rows if twice else rows)

    def predict(self, x: Any, mask: Any = None) -> Any:
        y, h = gru(
            x, self._start("hidden_state", x), self.input_weights, self.recurrent_weights, self.bias,
            reset_gate_mode=self.reset_gate_mode, mask=mask,
        )  # fmt: skip
        return self._output(y, h), h
