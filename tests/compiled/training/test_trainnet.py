# SPDX-License-Identifier: BSD-3-Clause
"""Training that goes on from a checkpoint in another process gives the same bits, with compiled steps."""

import subprocess
import sys
from pathlib import Path

import numpy as np

import tracejit as tj
from tracejit import nn

PROGRAM = """
import sys
import numpy as np
import tracejit as tj
from tracejit import nn

folder, resume = sys.argv[1], sys.argv[2:]
rng = np.random.default_rng(0)
x = tj.dlarray(rng.standard_normal((70, 8, 8, 3)).astype(np.float32), "BSSC")
t = tj.dlarray(tj.onehotencode(np.arange(70) % 5, 1, 5), "BC")
layers = [
    nn.ImageInput((8, 8, 3)), nn.Convolution2d(3, 16, padding="same"), nn.BatchNormalization(), nn.Relu(),
    nn.MaxPooling2d(2, stride=2), nn.Dropout(0.3), nn.FullyConnected(5), nn.Softmax(),
]
options = tj.trainingoptions(
    "adam", max_epochs=3, mini_batch_size=32, shuffle="every-epoch", verbose=False, checkpoint_path=folder,
    checkpoint_frequency_unit="iteration", validation_data=(x, t), validation_frequency=2,
)
net = tj.dlnetwork(layers, seed=1)
net, info = tj.trainnet((x, t), net, "crossentropy", options, resume=resume[0] if resume else None)
for row in (*net.learnables, *net.state):
    print(row.layer, row.parameter, np.asarray(row.value).tobytes().hex())
print(info.training_history["loss"].tolist(), info.validation_history["loss"].tolist())
"""


def test_it_goes_on_in_another_process(tmp_path: Path) -> None:
    def run(*arguments: str) -> str:
        return subprocess.run(
            [sys.executable, "-W", "error", "-c", PROGRAM, *arguments],
            capture_output=True,
            text=True,
            check=True,
        ).stdout

    want = run(str(tmp_path / "all"))
    for iteration in (1, 5):
        assert run(str(tmp_path / "other"), str(tmp_path / "all" / f"checkpoint_{iteration}.npz")) == want


def test_it_goes_on_where_the_state_becomes_wider(tmp_path: Path) -> None:
    """Statistics of float32 are float64 after a step with data of float64, so that the step is recorded twice."""
    rng = np.random.default_rng(0)
    x = tj.dlarray(rng.standard_normal((12, 1, 5, 5)), "BCSS")
    t = tj.dlarray(rng.standard_normal((12, 2)), "BC")
    layers = [
        nn.ImageInput((5, 5, 1)), nn.Convolution2d(3, 3, padding="same"), nn.BatchNormalization(), nn.Gelu(),
        nn.FullyConnected(2),
    ]  # fmt: skip
    net = tj.dlnetwork(layers, seed=0)
    options = tj.trainingoptions(
        "adam", max_epochs=1, mini_batch_size=4, shuffle="never", verbose=False, checkpoint_path=tmp_path,
        checkpoint_frequency_unit="iteration",
    )  # fmt: skip
    want, _ = tj.trainnet((x, t), net, "mse", options)
    found, _ = tj.trainnet((x, t), net, "mse", options, resume=tmp_path / "checkpoint_1.npz")
    for have, expected in zip(
        (*found.learnables, *found.state), (*want.learnables, *want.state), strict=True
    ):
        np.testing.assert_array_equal(have.value, expected.value, err_msg=f"{have.layer}/{have.parameter}")
