# SPDX-License-Identifier: BSD-3-Clause
"""Times of attention, LSTM, GRU, plain recurrence and CTC beside PyTorch's: the value, and the value with gradients.

    python benchmarks/bench_sequences.py [--torch-python PYTHON] [--threads 2] [--repeats 20] [--cpu] [NAME ...]

Each library runs in a process of its own, on the same data; the processes take turns, and one that waits is stopped.
Times are the least and the median, in ms; with --cpu, the CPU time of the process, for a machine that is busy (then use
--threads 1). The ratio is PyTorch's least time over ours. Losses must agree.
"""

import argparse
import contextlib
import os
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

ROWS = {
    "lstm": "LSTM, 128 units, 100 steps, batch 32",
    "gru": "GRU, 128 units, 100 steps, batch 32",
    "rnn": "plain recurrent layer, 128 units, 100 steps, batch 32",
    "bilstm": "LSTM in both directions, 64 units each, 100 steps, batch 32",
    "attention": "attention, 8 heads, 1024 steps, width 64",
    "causal": "the same, causal",
    "ctc": "CTC of scores, 100 steps, batch 32, 64 classes, up to 20 labels",
}


def data(name: str) -> dict[str, np.ndarray]:
    """Return the operands of a row, as (batch, steps, channels)."""
    rng = np.random.default_rng(0)

    def normal(*shape: int, scale: float = 1.0) -> np.ndarray:
        return (scale * rng.standard_normal(shape)).astype(np.float32)

    if name in ("attention", "causal"):
        return {key: normal(1, 1024, 512) for key in ("q", "k", "v", "ct")}
    if name == "ctc":
        counts = rng.integers(5, 21, 32)
        return {"scores": normal(32, 100, 64), "labels": rng.integers(1, 64, (32, 20)), "counts": counts}
    hidden, directions = (64, 2) if name == "bilstm" else (128, 1)
    rows = directions * hidden * {"gru": 3, "rnn": 1}.get(name, 4)
    return {
        "x": normal(32, 100, 128), "weights": normal(rows, 128, scale=0.1),
        "recurrent": normal(rows, hidden, scale=0.1), "bias": normal(rows, scale=0.1),
        "ct": normal(32, 100, directions * hidden),
    }  # fmt: skip


def ours(name: str, arrays: dict[str, np.ndarray], gradients: bool) -> Callable[[], float]:
    """Return an accelerated function that computes a row's loss, and its gradients."""
    import tracejit as tj

    def loss_of(d: dict[str, Any], ct: Any, labels: Any, counts: Any) -> Any:
        if name == "ctc":
            return tj.ctc(d["scores"], labels, None, counts, from_logits=True, data_format="BTC")
        if name in ("attention", "causal"):
            mask = "causal" if name == "causal" else "none"
            y = tj.attention(d["q"], d["k"], d["v"], 8, attention_mask=mask, data_format="BTC")
        elif name in ("lstm", "bilstm"):
            direction = "bidirectional" if name == "bilstm" else "forward"
            y = tj.lstm(
                d["x"], None, None, d["weights"], d["recurrent"], d["bias"], direction=direction, data_format="BTC"
            )[0]  # fmt: skip
        else:
            function = tj.gru if name == "gru" else tj.rnn
            y = function(d["x"], None, d["weights"], d["recurrent"], d["bias"], data_format="BTC")[0]
        return (y * ct).sum()

    @tj.dlaccelerate
    def step(d: dict[str, Any], ct: Any, labels: Any, counts: Any) -> Any:
        loss = loss_of(d, ct, labels, counts)
        return (loss, tj.dlgradient(loss, d)) if gradients else loss

    d = {key: tj.dlarray(x) for key, x in arrays.items() if key not in ("ct", "labels", "counts")}
    rest = [tj.dlarray(arrays[key]) if key in arrays else None for key in ("ct", "labels", "counts")]

    def run() -> float:
        found = step(d, *rest)
        return (found[0] if gradients else found).item()

    return run


def torchs(name: str, arrays: dict[str, np.ndarray], gradients: bool) -> Callable[[], float]:
    """Return a function that does the same by PyTorch's own layers."""
    import torch

    t = {key: torch.tensor(x) for key, x in arrays.items()}
    wanted = [t[key].requires_grad_() for key in t if key not in ("ct", "labels", "counts")]
    if "weights" in t:
        kind = {"gru": torch.nn.GRU, "rnn": torch.nn.RNN}.get(name, torch.nn.LSTM)
        both = name == "bilstm"
        layer = kind(128, 64 if both else 128, batch_first=True, bidirectional=both)
        wanted = [t["x"], *layer.parameters()]
        for stem, key in (("weight_ih", "weights"), ("weight_hh", "recurrent"), ("bias_ih", "bias")):
            for number, end in enumerate(("", "_reverse") if both else ("",)):
                part = np.split(arrays[key], 2)[number] if both else arrays[key]
                getattr(layer, f"{stem}_l0{end}").data = torch.tensor(part)
                getattr(layer, f"bias_hh_l0{end}").data.zero_()

    def loss_of() -> Any:
        if name == "ctc":
            logs = torch.log_softmax(t["scores"].transpose(0, 1), 2)
            lengths = torch.full((32,), 100)
            losses = torch.nn.functional.ctc_loss(logs, t["labels"], lengths, t["counts"], reduction="sum")
            return losses / 32
        if "weights" in t:
            return (layer(t["x"])[0] * t["ct"]).sum()
        parts = [t[key].reshape(1, 1024, 8, 64).transpose(1, 2) for key in "qkv"]
        y = torch.nn.functional.scaled_dot_product_attention(*parts, is_causal=name == "causal")
        return (y.transpose(1, 2).reshape(1, 1024, 512) * t["ct"]).sum()

    def run() -> float:
        if not gradients:
            with torch.no_grad():
                return float(loss_of())
        for tensor in wanted:
            tensor.grad = None
        loss = loss_of()
        loss.backward()
        return float(loss.detach())

    return run


def work(library: str, name: str, gradients: bool, threads: int, cpu: bool) -> None:
    """Run a row once for each line of the standard input, and print its time in ms and its loss."""
    if library == "torch":
        import torch

        torch.set_num_threads(threads)
    run = (ours if library == "tracejit" else torchs)(name, data(name), gradients)
    for _ in range(6):
        loss = run()
    clock = time.process_time_ns if cpu else time.perf_counter_ns
    print("ready", flush=True)
    for _ in sys.stdin:
        begin = clock()
        loss = run()
        print((clock() - begin) / 1e6, loss, flush=True)


class Worker:
    """A process that runs one row by one library, stopped while it waits for its turn."""

    def __init__(self, python: str, library: str, name: str, gradients: bool, options: Any) -> None:
        environment = os.environ | {
            "TRACEJIT_THREADS": str(options.threads),
            "OMP_NUM_THREADS": str(options.threads),
        }
        command = [
            python,
            __file__,
            "--work",
            library,
            name,
            str(int(gradients)),
            "--threads",
            str(options.threads),
        ]
        self.process = subprocess.Popen(
            command + ["--cpu"] * options.cpu, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )  # fmt: skip
        self.times: list[float] = []
        self.loss = 0.0
        self.works = self.process.stdout is not None and self.process.stdout.readline().strip() == "ready"
        if self.works:
            os.kill(self.process.pid, signal.SIGSTOP)

    def turn(self) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        os.kill(self.process.pid, signal.SIGCONT)
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        ms, loss = map(float, self.process.stdout.readline().split())
        os.kill(self.process.pid, signal.SIGSTOP)
        self.times.append(ms)
        self.loss = loss

    def end(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            self.process.kill()
        self.process.wait()


def compare(name: str, gradients: bool, options: Any) -> str:
    """Return the line of a row."""
    workers = [
        Worker(python, library, name, gradients, options)
        for library, python in (("tracejit", sys.executable), ("torch", options.torch_python))
    ]
    try:
        working = [worker for worker in workers if worker.works]
        for _ in range(options.repeats):
            for worker in working:
                worker.turn()
    finally:
        for worker in workers:
            worker.end()
    texts = [
        f"{min(w.times):8.2f} {statistics.median(w.times):8.2f}" if w.times else f"{'-':>8} {'-':>8}"
        for w in workers
    ]
    mine, theirs = workers
    ratio = f"{min(theirs.times) / min(mine.times):6.2f}" if theirs.times and mine.times else f"{'-':>6}"
    differs = theirs.works and mine.works and abs(mine.loss - theirs.loss) > 1e-3 * max(1.0, abs(theirs.loss))
    title = ROWS[name] + (", gradients" if gradients else "")
    return f"{title:68} {texts[0]}  {texts[1]}  {ratio}" + ("  LOSSES DIFFER" if differs else "")


def main() -> None:
    """Print a line for each row, without and with gradients."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"rows: {', '.join(ROWS)}")
    parser.add_argument("--torch-python", default=sys.executable)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--cpu", action="store_true")
    parser.add_argument("--work", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        library, name, gradients = options.work
        work(library, name, gradients == "1", options.threads, options.cpu)
        return
    print(f"{'':68} {'tracejit':>8} {'median':>8}  {'PyTorch':>8} {'median':>8}   ratio")
    for name in options.names or ROWS:
        for gradients in (False, True):
            print(compare(name, gradients, options), flush=True)


if __name__ == "__main__":
    main()
