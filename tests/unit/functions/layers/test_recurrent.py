# SPDX-License-Identifier: BSD-3-Clause
"""lstm, gru and rnn: against loops over steps and observations, and gradients against differences."""

import itertools
from collections.abc import Callable
from typing import Any

import effort
import numpy as np
import pytest

import tracejit as tj

Oracle = Callable[..., tuple[np.ndarray, ...]]


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def lstm_step(x: np.ndarray, states: list[np.ndarray], w: np.ndarray, r: np.ndarray, b: np.ndarray) -> Any:
    h, c = states
    i, f, g, o = np.split(w @ x + r @ h + b, 4)
    c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    return [sigmoid(o) * np.tanh(c), c]


def gru_step(mode: str) -> Any:
    def step(x: np.ndarray, states: list[np.ndarray], w: np.ndarray, r: np.ndarray, b: np.ndarray) -> Any:
        (h,) = states
        n = len(h)
        inner = b[3 * n :] if mode.startswith("recurrent") else np.zeros(3 * n)
        z, own = w @ x + b[: 3 * n], r @ h + inner
        reset, update = sigmoid(z[:n] + own[:n]), sigmoid(z[n : 2 * n] + own[n : 2 * n])
        entering = r[2 * n :] @ (reset * h) if mode.startswith("before") else reset * own[2 * n :]
        return [(1 - update) * np.tanh(z[2 * n :] + entering) + update * h]

    return step


def rnn_step(activation: str) -> Any:
    def step(x: np.ndarray, states: list[np.ndarray], w: np.ndarray, r: np.ndarray, b: np.ndarray) -> Any:
        new = w @ x + r @ states[0] + b
        return [np.tanh(new) if activation == "tanh" else np.maximum(new, 0)]

    return step


def oracle(
    step: Any, x: np.ndarray, states: list[np.ndarray], w: np.ndarray, r: np.ndarray, b: np.ndarray, direction: str,
    mask: np.ndarray | None,
) -> list[np.ndarray]:  # fmt: skip
    """Return y (batch, steps, channels) and the last states, one observation and one step at a time."""
    batch, steps, _ = x.shape
    hidden = r.shape[1]
    found = []
    directions = ["forward", "reverse"] if direction == "bidirectional" else [direction]
    for number, one in enumerate(directions):
        parts = [np.split(a, len(directions))[number] for a in (w, r, b)]
        own = [state[:, number * hidden : (number + 1) * hidden].copy() for state in states]
        y = np.zeros((batch, steps, hidden))
        for row, s in itertools.product(range(batch), range(steps)):
            t = s if one == "forward" else steps - 1 - s
            if mask is None or mask[row, t]:
                new = step(x[row, t], [state[row] for state in own], *parts)
                for state, value in zip(own, new, strict=True):
                    state[row] = value
                y[row, t] = new[0]
        found.append([y, *own])
    return [np.concatenate(parts, axis=-1) for parts in zip(*found, strict=True)]


LAYERS: dict[str, tuple[Any, str, dict[str, Any], int, int, int]] = {  # step, function, options, gates, biases, states
    "lstm": (lstm_step, "lstm", {}, 4, 4, 2),
    "gru": (gru_step("after"), "gru", {}, 3, 3, 1),
    "gru before": (gru_step("before"), "gru", {"reset_gate_mode": "before-multiplication"}, 3, 3, 1),
    "gru bias": (
        gru_step("recurrent"), "gru", {"reset_gate_mode": "recurrent-bias-after-multiplication"}, 3, 6, 1,
    ),
    "rnn": (rnn_step("tanh"), "rnn", {}, 1, 1, 1),
    "rnn relu": (rnn_step("relu"), "rnn", {"activation": "relu"}, 1, 1, 1),
}  # fmt: skip


def operands(name: str, sizes: tuple[int, int, int, int], directions: int) -> list[Any]:
    """Return x, states, weights, recurrent weights and bias."""
    batch, steps, channels, hidden = sizes
    _, _, _, gates, biases, states = LAYERS[name]
    rng = np.random.default_rng(sum(sizes))
    rows = directions * gates * hidden
    return [
        rng.standard_normal((batch, steps, channels)),
        *[rng.standard_normal((batch, directions * hidden)) for _ in range(states)],
        rng.standard_normal((rows, channels)),
        rng.standard_normal((rows, hidden)),
        rng.standard_normal(directions * biases * hidden),
    ]


GRID = list(itertools.product((1, 2, 17), (0, 1, 3), (1, 2), (1, 3)))


@pytest.mark.parametrize("sizes", GRID[:: effort.sweep(4, 1)], ids=str)
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("name", LAYERS)
def test_values_and_states(name: str, direction: str, sizes: tuple[int, int, int, int]) -> None:
    step, function, options, _, _, states = LAYERS[name]
    arrays = operands(name, sizes, 2 if direction == "bidirectional" else 1)
    for mask in (None, np.random.default_rng(1).random(sizes[:2]) < 0.6):
        found = getattr(tj, function)(*arrays, **options, direction=direction, mask=mask, data_format="BTC")
        wanted = oracle(step, arrays[0], arrays[1 : 1 + states], *arrays[1 + states :], direction, mask)
        for have, want in zip(found, wanted, strict=True):
            np.testing.assert_allclose(have, want, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("direction", ["forward", "bidirectional"])
@pytest.mark.parametrize("name", LAYERS)
def test_gradients(name: str, direction: str) -> None:
    _, function, options, *_ = LAYERS[name]
    arrays = [tj.dlarray(x) for x in operands(name, (2, 3, 2, 3), 2 if direction == "bidirectional" else 1)]
    mask = np.array([[1, 1, 0], [0, 1, 1]])
    weights = np.random.default_rng(2).standard_normal(7)

    for given in (None, mask):

        def loss(*arrays: Any, mask: Any = given) -> Any:
            results = getattr(tj, function)(
                *arrays, **options, direction=direction, mask=mask, data_format="BTC"
            )
            return sum(w * (y * y * y + y).sum() for w, y in zip(weights, results, strict=False))

        tj.testing.check_gradients(loss, *arrays)


@pytest.mark.parametrize("direction", ["forward", "bidirectional"])
def test_padding_may_hold_nan(direction: str) -> None:
    rng, rows = np.random.default_rng(0), 8 if direction == "forward" else 16
    x, mask = rng.normal(size=(2, 3, 3)), np.array([[1, 1, 0], [1, 0, 0]])
    parameters = [rng.normal(size=shape) for shape in ((rows, 3), (rows, 2), (rows,))]

    def step(x: Any, *parameters: Any) -> Any:
        y, h, c = tj.lstm(x, None, None, *parameters, mask=mask, direction=direction, data_format="BTC")
        return y, h, c, *tj.dlgradient(y.sum() + h.sum(), [x, *parameters])

    padded = np.where(mask[:, :, None], x, np.nan)
    for want, have in zip(
        tj.dlfeval(step, x, *parameters), tj.dlfeval(step, padded, *parameters), strict=True
    ):
        np.testing.assert_array_equal(tj.extractdata(have), tj.extractdata(want))


@pytest.mark.parametrize("name", LAYERS)
def test_only_the_last_state_or_only_the_outputs(name: str) -> None:
    _, function, options, *_ = LAYERS[name]
    arrays = [tj.dlarray(x) for x in operands(name, (2, 3, 2, 2), 1)]
    for number in range(LAYERS[name][5] + 1):
        tj.testing.check_gradients(
            lambda *arrays, number=number: (
                getattr(tj, function)(*arrays, **options, data_format="BTC")[number] ** 2
            ).sum(),
            *arrays,
        )


@pytest.mark.parametrize("name", ["lstm", "gru", "rnn"])
def test_a_second_derivative_is_an_error_that_names_the_function(name: str) -> None:
    arrays = [tj.dlarray(x) for x in operands(name, (1, 2, 1, 1), 1)]

    def twice(*arrays: Any) -> Any:
        y = getattr(tj, name)(*arrays, data_format="BTC")[0]
        return tj.dlgradient((tj.dlgradient((y * y).sum(), arrays[0]) ** 2).sum(), arrays[0])

    with pytest.raises(tj.GradientError, match=f"^{name}: there are no second derivatives"):
        tj.dlfeval(twice, *arrays)


@pytest.mark.parametrize("format", ["CBT", "BTC", "TBC", "TC", "BC", "C", "BSC"])
def test_labels_in_any_order(format: str) -> None:
    x, h0, c0, *weights = operands("lstm", (2, 3, 2, 4), 1)
    plain = format.replace("S", "T")
    x = x[: 2 if "B" in plain else 1, : 3 if "T" in plain else 1]
    h0, c0 = h0[: len(x)], c0[: len(x)]
    y, h, c = oracle(lstm_step, x, [h0, c0], *weights, "forward", None)

    def arranged(array: np.ndarray, labels: str, wanted: str) -> np.ndarray:
        kept = [label for label in labels if label in wanted]
        array = array.reshape([n for n, label in zip(array.shape, labels, strict=True) if label in wanted])
        return array.transpose([kept.index(label) for label in wanted])

    states = "".join(label for label in plain if label in "BC")
    given = [arranged(state, "BC", states) for state in (h0, c0)]
    labelled = tj.lstm(tj.dlarray(arranged(x, "BTC", plain), format), *given, *weights)
    assert [tj.dims(part) for part in labelled] == [format, states, states]
    unlabelled = tj.lstm(arranged(x, "BTC", plain), *given, *weights, data_format=format)
    assert [tj.dims(part) for part in unlabelled] == ["", "", ""]
    for found in (labelled, unlabelled):
        np.testing.assert_allclose(found[0], arranged(y, "BTC", plain), rtol=1e-12)
        np.testing.assert_allclose(found[1], arranged(h, "BC", states), rtol=1e-12)
        np.testing.assert_allclose(found[2], arranged(c, "BC", states), rtol=1e-12)


def test_states_with_labels_of_their_own_vectors_and_none() -> None:
    x, h0, _, *weights = operands("lstm", (2, 3, 2, 4), 1)
    for state, same in ((tj.dlarray(h0.T, "CB"), h0), (h0[0], h0[[0, 0]]), (None, np.zeros_like(h0))):
        found = tj.lstm(x, state, state, *weights, data_format="BTC")
        wanted = tj.lstm(x, same, same, *weights, data_format="BTC")
        for have, want in zip(found, wanted, strict=True):
            np.testing.assert_array_equal(have, want)


def test_accelerated_steps_are_the_uncompiled_ones() -> None:
    for name, (_, function, options, *_) in LAYERS.items():
        batch = 17 if name == "lstm" else 2  # more than one thread's share of rows
        arrays = [tj.dlarray(x) for x in operands(name, (batch, 2, 2, 3), 2)]
        mask = np.random.default_rng(1).random((batch, 2)) < 0.7

        def step(*arrays: Any, function: str = function, options: Any = options, mask: Any = mask) -> Any:
            results = getattr(tj, function)(
                *arrays, **options, direction="bidirectional", mask=mask, data_format="BTC"
            )
            return [*results, *tj.dlgradient(sum((y * y).sum() for y in results), *arrays)]

        accelerated = tj.dlaccelerate(step, confirm=0)
        accelerated(*arrays)
        for have, want in zip(accelerated(*arrays), tj.dlfeval(step, *arrays), strict=True):
            np.testing.assert_allclose(have, want, rtol=1e-10, atol=1e-11)
