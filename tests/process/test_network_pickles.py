# SPDX-License-Identifier: BSD-3-Clause
"""Networks that another process reads, which has not made them."""

import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tracejit as tj
from tracejit import nn

X = tj.dlarray(np.linspace(-1, 1, 20, dtype=np.float32).reshape(5, 4), "BC")
READ = """
import pickle
import sys

import numpy as np

with open(sys.argv[1], "rb") as file:
    net, table, x, expected = pickle.load(file)
for _ in range(4):
    y, state = net.forward(x)
    assert np.allclose(y, expected, atol=1e-6)
assert all(np.array_equal(a, b) for a, b in zip(table.value, net.learnables.value, strict=True))
print(net.learnables.parameter, net.learn_rate_factors.value)
with open(sys.argv[1], "wb") as file:
    pickle.dump(net, file)
"""


def blocks() -> Any:
    inner = tj.dlnetwork([nn.FullyConnected(4, name="inside"), nn.Relu()], initialize=False)
    return [
        nn.FullyConnected(4, name="first"),
        nn.BatchNormalization(),
        nn.Network(inner),
        nn.FullyConnected(4),
    ]


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_another_process_reads_a_network(tmp_path: Path, protocol: int) -> None:
    net = tj.dlnetwork(
        [nn.FeatureInput(4, normalization="zscore", mean=np.ones(4), standard_deviation=2), *blocks()]
    )
    net = net.freeze("first").tie(("first", "weights"), ("fc", "weights"))
    expected = np.asarray(net.forward(X)[0])
    path = tmp_path / "network.pkl"
    with path.open("wb") as file:
        pickle.dump((net, net.learnables, X, expected), file, protocol)
    done = subprocess.run(
        [sys.executable, "-c", READ, str(path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == f"{net.learnables.parameter} {net.learn_rate_factors.value}"
    with path.open("rb") as file:
        assert pickle.load(file) == net
