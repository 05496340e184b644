# SPDX-License-Identifier: BSD-3-Clause
"""Networks with the weights of PyTorch's give the same values and gradients."""

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from peers import pytorch

import tracejit as tj
from tracejit import nn

torch = pytorch()
RNG = np.random.default_rng(0)


def copied(net: tj.dlnetwork, modules: dict[str, dict[str, Any]]) -> tj.dlnetwork:
    """Return a network with PyTorch's parameters, by layer and name: tensors, or the parts of one."""
    table = net.learnables
    for layer, own in modules.items():
        for name, parts in own.items():
            tensor = torch.cat(parts) if isinstance(parts, list) else parts
            assert table[layer, name].shape == tuple(tensor.shape), (layer, name)
            value = tj.dlarray(tensor.detach().numpy().copy(), table[layer, name].format)
            table = table.with_value(layer, name, value)
    return net.with_learnables(table)


def dense(module: Any) -> dict[str, Any]:
    return {"weights": module.weight, "bias": module.bias}


def compared(
    net: tj.dlnetwork, x: np.ndarray, format: str, theirs: Any, modules: dict[str, dict[str, Any]]
) -> None:
    """Compare outputs, and gradients of a weighted sum of them by the input and by all learnables."""
    tensor = torch.tensor(x, requires_grad=True)
    wanted = theirs(tensor)
    weights = RNG.standard_normal(tuple(wanted.shape))
    (wanted * torch.tensor(weights)).sum().backward()
    net = copied(tj.dlupdate(lambda p: p.astype(np.float64), net), modules)

    def run(net: Any, x: Any) -> Any:
        y, _ = net.forward(x)
        return y, tj.dlgradient((tj.stripdims(y) * weights).sum(), (net.learnables, x))

    y, (table, dx) = tj.dlfeval(run, net, tj.dlarray(x, format))
    assert_allclose(y, wanted.detach().numpy(), rtol=1e-9, atol=1e-10)
    assert_allclose(dx, tensor.grad.numpy(), rtol=1e-8, atol=1e-9)
    for layer, own in modules.items():
        for name, parts in own.items():
            slopes = [part.grad for part in (parts if isinstance(parts, list) else [parts]) if part.is_leaf]
            if slopes and slopes[0] is not None:  # no view of one
                wanted = torch.cat(slopes).numpy()
                assert_allclose(table[layer, name], wanted, rtol=1e-8, atol=1e-9, err_msg=f"{layer}/{name}")


def test_convolutions() -> None:
    torch.manual_seed(0)
    conv, norm = torch.nn.Conv2d(3, 6, 3, padding=1).double(), torch.nn.BatchNorm2d(6).double()
    up, group = torch.nn.ConvTranspose2d(6, 4, 2, stride=2).double(), torch.nn.GroupNorm(2, 4).double()
    last = torch.nn.Linear(4 * 6 * 8, 5).double()
    with torch.no_grad():
        for module in (norm, group):
            module.weight.uniform_(0.5, 1.5)
            module.bias.uniform_(-1, 1)
    layers = [
        nn.ImageInput((6, 8, 3)), nn.Convolution2d(3, 6, padding=1), nn.BatchNormalization(), nn.Relu(),
        nn.MaxPooling2d(2, stride=2), nn.TransposedConv2d(2, 4, stride=2), nn.GroupNormalization(2), nn.Gelu(),
        nn.FullyConnected(5), nn.LogSoftmax(),
    ]  # fmt: skip
    f = torch.nn.functional
    compared(
        tj.dlnetwork(layers, seed=0), RNG.standard_normal((4, 3, 6, 8)), "BCSS",
        lambda x: torch.log_softmax(
            last(f.gelu(group(up(f.max_pool2d(torch.relu(norm(conv(x))), 2)))).flatten(1)), 1
        ),
        {
            "conv": dense(conv), "batchnorm": {"scale": norm.weight, "offset": norm.bias},
            "transposed-conv": dense(up), "groupnorm": {"scale": group.weight, "offset": group.bias}, "fc": dense(last),
        },
    )  # fmt: skip


def test_lstm_in_both_directions() -> None:
    torch.manual_seed(0)
    theirs = torch.nn.LSTM(3, 5, batch_first=True, bidirectional=True).double()
    last = torch.nn.Linear(10, 2).double()
    names = ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0")
    forward, reverse = ([getattr(theirs, name + end) for name in names] for end in ("", "_reverse"))
    with torch.no_grad():  # there is one bias here
        for bias in (forward[3], reverse[3]):
            bias.zero_()
    w, r, b, _ = ([*pair] for pair in zip(forward, reverse, strict=True))
    net = tj.dlnetwork([nn.SequenceInput(3), nn.BiLSTM(5, name="lstm"), nn.FullyConnected(2)], seed=0)
    modules = {
        "lstm": {"input_weights": w, "recurrent_weights": r, "bias": b},
        "fc": dense(last),
    }
    compared(net, RNG.standard_normal((2, 7, 3)), "BTC", lambda x: last(theirs(x)[0]), modules)


def test_gru() -> None:
    torch.manual_seed(0)
    theirs = torch.nn.GRU(3, 5, batch_first=True).double()
    mode = "recurrent-bias-after-multiplication"
    net = tj.dlnetwork([nn.SequenceInput(3), nn.GRU(5, reset_gate_mode=mode)], seed=0)
    modules = {
        "gru": {
            "input_weights": theirs.weight_ih_l0, "recurrent_weights": theirs.weight_hh_l0,
            "bias": [theirs.bias_ih_l0, theirs.bias_hh_l0],
        }
    }  # fmt: skip
    compared(net, RNG.standard_normal((2, 7, 3)), "BTC", lambda x: theirs(x)[0], modules)


@pytest.mark.parametrize("mask", ["none", "causal"])
def test_self_attention(mask: str) -> None:
    torch.manual_seed(0)
    theirs = torch.nn.MultiheadAttention(8, 2, batch_first=True).double()
    norm = torch.nn.LayerNorm(8).double()
    q, k, v = theirs.in_proj_weight.detach().chunk(3)
    bq, bk, bv = theirs.in_proj_bias.detach().chunk(3)
    net = tj.dlnetwork(
        [
            nn.SequenceInput(8),
            nn.SelfAttention(2, 8, attention_mask=mask),
            nn.LayerNormalization(epsilon=1e-5),
        ],
        seed=0,
    )
    modules = {
        "selfattention": {
            "query_weights": q, "key_weights": k, "value_weights": v, "query_bias": bq, "key_bias": bk,
            "value_bias": bv, "output_weights": theirs.out_proj.weight, "output_bias": theirs.out_proj.bias,
        },
        "layernorm": {"scale": norm.weight, "offset": norm.bias},
    }  # fmt: skip
    hidden = None if mask == "none" else torch.triu(torch.ones(5, 5, dtype=torch.bool), 1)
    compared(
        net, RNG.standard_normal((2, 5, 8)), "BTC",
        lambda x: norm(theirs(x, x, x, attn_mask=hidden, need_weights=False)[0]), modules,
    )  # fmt: skip
