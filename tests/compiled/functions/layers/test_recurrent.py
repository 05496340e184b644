# SPDX-License-Identifier: BSD-3-Clause
"""lstm, gru and rnn, compiled: against PyTorch, without a kernel for each length, alike on any number of threads."""

from typing import Any

import numpy as np
import pytest
from peers import pytorch

import tracejit as tj
from tracejit import config
from tracejit.compile.registry import registry

LAYERS = {
    "lstm": ("LSTM", {}, 4, 2),
    "gru": ("GRU", {"reset_gate_mode": "recurrent-bias-after-multiplication"}, 3, 1),
    "rnn": ("RNN", {}, 1, 1),
}


def step(x: Any, states: Any, weights: Any, recurrent: Any, bias: Any, name: str, direction: str) -> Any:
    options = {**LAYERS[name][1], "direction": direction, "data_format": "BTC"}
    results = getattr(tj, name)(x, *states, weights, recurrent, bias, **options)
    loss = sum(((1 + number) * y * y).sum() for number, y in enumerate(results))
    return [*results, *tj.dlgradient(loss, x, *states, weights, recurrent, bias)]


def operands(name: str, dtype: str, sizes: tuple[int, int, int, int], directions: int) -> Any:
    batch, steps, channels, hidden = sizes
    _, _, gates, states = LAYERS[name]
    rng = np.random.default_rng(3)

    def normal(*shape: int) -> tj.dlarray:
        return tj.dlarray((rng.standard_normal(shape) / 4).astype(dtype))

    rows = directions * gates * hidden
    given = [normal(batch, directions * hidden) for _ in range(states)]
    bias = normal(rows * (2 if name == "gru" else 1))
    return normal(batch, steps, channels), given, normal(rows, channels), normal(rows, hidden), bias


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", LAYERS)
def test_values_and_gradients_are_those_of_pytorch(name: str, dtype: str) -> None:
    torch = pytorch()
    accelerated = tj.dlaccelerate(step, confirm=0)
    kernels = []
    for sizes, directions in (((18, 7, 5, 33), 2), ((18, 9, 5, 33), 2), ((1, 1, 1, 1), 2)):
        direction = "bidirectional" if directions == 2 else "forward"
        arrays = operands(name, dtype, sizes, directions)
        for _ in range(2):
            found = accelerated(*arrays, name, direction)
        kernels.append(len(registry))
        layer = getattr(torch.nn, LAYERS[name][0])(
            sizes[2], sizes[3], batch_first=True, bidirectional=True, dtype=getattr(torch, dtype)
        )
        x, *states = (torch.tensor(np.asarray(a), requires_grad=True) for a in (arrays[0], *arrays[1]))
        parameters = dict(layer.named_parameters())
        for number, end in enumerate(("", "_reverse")):
            weights, recurrent, bias = (np.split(np.asarray(a), 2)[number] for a in arrays[2:])
            inputs, own = np.split(bias, 2) if name == "gru" else (bias, np.zeros_like(bias))
            for stem, value in (
                ("weight_ih", weights), ("weight_hh", recurrent), ("bias_ih", inputs), ("bias_hh", own)
            ):  # fmt: skip
                parameters[f"{stem}_l0{end}"].data = torch.tensor(value)
        stacked = [torch.stack(state.split(sizes[3], dim=1)) for state in states]
        y, last = layer(x, tuple(stacked) if name == "lstm" else stacked[0])
        lasts = [torch.cat(list(part), dim=1) for part in (last if name == "lstm" else (last,))]
        wanted = [y, *lasts]
        sum(((1 + number) * part * part).sum() for number, part in enumerate(wanted)).backward()
        tolerance = 1e-4 if dtype == "float32" else 1e-11
        gradients = [x.grad, *(state.grad for state in states)]
        ends = ("", "_reverse")
        gradients += [
            torch.cat([parameters[f"{stem}_l0{end}"].grad for end in ends])
            for stem in ("weight_ih", "weight_hh")
        ]
        for have, want in zip(found[:-1], [*wanted, *gradients], strict=True):
            np.testing.assert_allclose(have, want.detach(), rtol=tolerance, atol=tolerance)
        stems = ("bias_ih", "bias_hh") if name == "gru" else ("bias_ih",)
        of_bias = [parameters[f"{stem}_l0{end}"].grad for end in ends for stem in stems]
        np.testing.assert_allclose(found[-1], torch.cat(of_bias), rtol=tolerance, atol=tolerance)
    assert kernels[1] == kernels[0]  # a new length needs none that the process lacks


@pytest.mark.parametrize("name", LAYERS)
def test_results_do_not_depend_on_threads(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    arrays = operands(name, "float32", (40, 30, 8, 24), 1)
    found = []
    for threads in (1, 2):
        monkeypatch.setattr(config.settings, "threads", threads)
        accelerated = tj.dlaccelerate(step, confirm=0)
        for _ in range(2):
            result = accelerated(*arrays, name, "forward")
        found.append([np.asarray(x).copy() for x in result])
    for one, two in zip(*found, strict=True):
        np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("hidden", [20, 32])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_compiled_is_uncompiled(name: str, hidden: int, dtype: str) -> None:
    arrays = operands(name, dtype, (19, 6, 3, hidden), 1)
    accelerated = tj.dlaccelerate(step, confirm=0)
    accelerated(*arrays, name, "reverse")
    found = accelerated(*arrays, name, "reverse")
    for have, want in zip(found, tj.dlfeval(step, *arrays, name, "reverse"), strict=True):
        tolerance = 1e-4 if dtype == "float32" else 1e-11
        np.testing.assert_allclose(have, want, rtol=tolerance, atol=tolerance)
