# SPDX-License-Identifier: BSD-3-Clause
"""All workloads: the table, and the sweeps."""

from dataclasses import replace

from benchmarks.workload import Workload
from benchmarks.workloads.elementwise import calls, chain, layernorm_rows, logsumexp_rows, mixture
from benchmarks.workloads.mlp import mlp
from benchmarks.workloads.pinn import pinn
from benchmarks.workloads.recurrent import gru, rnn
from benchmarks.workloads.transformer import transformer

_DIGITS = (64, 128, 10)

TABLE = (
    mlp((4, 32, 32, 2), 32, name="mlp-tiny", activation="tanh", target_us=12),
    mlp(_DIGITS, 128, name="mlp-small", target_us=45),
    mlp((784, 512, 512, 10), 128, name="mlp-large"),
    mlp((64,) * 20 + (10,), 64, name="mlp-deep", title="MLP 20 x 64, batch 64", activation="tanh",
        target_us=350),
    mlp(_DIGITS, 128, name="mlp-denormal", title="MLP 64-128-10, batch 128, denormal squares", scale=1e-19),
    pinn("pinn", target_us=1200),
    pinn("pinn-float64", dtype="float64"),
    gru("gru", 50),
    transformer("transformer"),
    chain("chain", 1_000_000, target_us=2000),
    rnn("rnn", 400, target_us=5000),
    mixture("mixture", 10_000, 16, 4),
    logsumexp_rows("logsumexp", 4096, 256),
    layernorm_rows("layernorm", 4096, 256),
    calls("calls", 10, target_us=5),
    replace(mlp(_DIGITS, 128, name="sizes", title="first two steps at a new batch size, MLP 64-128-10"),
            kind="sizes"),
)  # fmt: skip


def _sweep() -> tuple[Workload, ...]:
    powers = tuple(2**n for n in range(13))
    batches = [mlp(_DIGITS, n, name=f"batch-{n}", sweep=True) for n in powers]
    widths = [mlp((64, n, n, 10), 128, name=f"width-{n}", sweep=True) for n in powers if 8 <= n <= 2048]
    steps = [rnn(f"steps-{n}", n) for n in (10, 20, 50, 100, 200, 500, 1000, 2000)]
    depths = [
        mlp((16,) * layers + (10,), 16, name=f"leaves-{2 * layers}", sweep=True, activation="tanh",
            title=f"MLP {layers} x 16, batch 16: {2 * layers} leaves")
        for layers in (2, 5, 10, 20, 50, 100, 200)
    ]  # fmt: skip
    return (*batches, *widths, *steps, *depths)


SWEEP = _sweep()
BY_NAME = {workload.name: workload for workload in (*TABLE, *SWEEP)}
