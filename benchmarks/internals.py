# SPDX-License-Identifier: BSD-3-Clause
"""``python -m benchmarks.internals``: what recording, building, compiling and calling cost by themselves."""

import argparse
import gc
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from types import FunctionType
from typing import Any

import numpy as np

import tracejit as tj
from benchmarks.cost import record
from benchmarks.libraries.ours import TraceJit
from benchmarks.report import environment, table
from benchmarks.run import ROOT
from benchmarks.workload import Workload
from benchmarks.workloads.elementwise import calls
from benchmarks.workloads.recurrent import rnn
from tracejit import pipeline
from tracejit.ir import Graph
from tracejit.record.recorder import Recorder
from tracejit.traces.replay import Replay

COUNTS = (100, 1_000, 10_000, 100_000)
OPS_PER_STEP = 18  # of the recurrent network whose loops are built: forward and adjoint, about

COLD = """
import numpy as np
from benchmarks.libraries import make_job
from benchmarks.workloads import BY_NAME
workload = BY_NAME[{workload!r}]
job = make_job({library!r}, workload, workload.data(np.random.default_rng(0)))
job.first()
"""

COMPILED = """
import json
import time
import numpy as np
started = time.perf_counter()
from tracejit.compile.registry import registry
registry.function("run")
ready_s = time.perf_counter() - started
from benchmarks.libraries import make_job
from benchmarks.workloads import BY_NAME
workload = BY_NAME[{workload!r}]
make_job("tracejit", workload, workload.data(np.random.default_rng(0))).first()
print(json.dumps([ready_s, registry.compile_ns / 1e9, len(registry)]))
"""

WARM = "mlp-small, kernels on disk"

Rows = list[list[str]]


def job_of(workload: Workload) -> TraceJit:
    """Return a workload in tracejit."""
    return TraceJit("tracejit", workload, workload.data(np.random.default_rng(0)))


def recording(counts: tuple[int, ...] = COUNTS, repeats: int = 3) -> Rows:
    """Return what recording takes for one op, beyond the same ops on NumPy's arrays."""
    rows = []
    for count in counts:

        def chained(x: Any, count: int = count) -> Any:
            for _ in range(count // 2):
                x = x * 0.5 + 1.0
            return x

        data = np.ones((8, 8), np.float32)
        x = tj.dlarray(data)

        def recorded(function: Callable[[Any], Any] = chained, x: tj.dlarray = x) -> None:
            with Recorder("chained", accelerating=True) as recorder:
                function(recorder.input(x))

        with_numpy = fastest(lambda f=chained, data=data: f(data), repeats)
        eager = fastest(lambda f=chained, x=x: f(x), repeats)
        while_recording = fastest(recorded, repeats)
        rows.append(
            [
                str(count),
                *(f"{1e6 * s / count:.2f}" for s in (with_numpy, eager, while_recording)),
                f"{1e6 * (while_recording - with_numpy) / count:.2f}",
            ]
        )
    return rows


def building(counts: tuple[int, ...] = COUNTS) -> Rows:
    """Return what each stage of building takes for one op, of the adjoint of a loop in Python."""
    rows = []
    for count in counts:
        job = job_of(rnn("built", max(1, count // OPS_PER_STEP), width=4, inputs=4, batch=4))
        graph = record(job.function, *job.arguments)
        times, total = stages(graph)
        ops = len(graph.nodes)
        rest = total - sum(times.values())
        rows.append([str(ops), *(f"{1e6 * s / ops:.1f}" for s in (*times.values(), rest, total))])
    return rows


STAGES = tuple(
    name
    for name in pipeline.stages.__code__.co_names
    if isinstance(getattr(pipeline, name, None), FunctionType) and name != "verify"
)


def stages(graph: Graph) -> tuple[dict[str, float], float]:
    """Return the seconds of each stage of a build, and of all of it."""
    times = dict.fromkeys(STAGES, 0.0)

    def timed(name: str, stage: Callable[..., Any]) -> Callable[..., Any]:
        def run(*args: Any) -> Any:
            started = time.perf_counter()
            result = stage(*args)
            times[name] += time.perf_counter() - started
            return result

        return run

    originals = {name: getattr(pipeline, name) for name in STAGES}
    try:
        for name, stage in originals.items():
            setattr(pipeline, name, timed(name, stage))
        with collector_paused():  # as a replay builds
            started = time.perf_counter()
            pipeline.build(graph)
            return times, time.perf_counter() - started
    finally:
        for name, stage in originals.items():
            setattr(pipeline, name, stage)


def compiling(names: tuple[str, ...]) -> Rows:
    """Return what compiling takes in a new process: what all programs need, and each kernel."""
    rows = []
    for name in names:
        ready_s, compile_s, kernels = json.loads(in_process(COMPILED.format(workload=name))[1])
        rows.append(
            [name, f"{ready_s:.2f}", f"{kernels}", f"{compile_s:.2f}", f"{1e3 * compile_s / kernels:.0f}"]
        )
    return rows


def calling(counts: tuple[int, ...] = (1, 10, 100)) -> Rows:
    """Return what a call takes with as many small arrays in and out, and what running its program takes."""
    rows = []
    for count in counts:
        job = job_of(calls("calls", count))
        job.first()
        job.run(100)
        call_s = fastest(lambda job=job: job.run(1000), 5) / 1000
        launch_s = _launch_s(job)
        rows.append(
            [str(count), *(f"{1e6 * s:.2f}" for s in (call_s, launch_s, (call_s - launch_s) / (2 * count)))]
        )
    return rows


def guarding(repeats: int = 15) -> Rows:
    """Return what guards on values, and on what is read around the arguments, take in a replay."""
    kept = [tj.dlarray(np.full(8, n, np.float32)) for n in range(5)]
    one, two, three, four, five = (float(n) for n in range(5))

    def plain(x: Any) -> Any:
        return x * 2.0

    def deciding(x: Any) -> Any:
        for n in range(10):
            if x[n % 8] > 100.0 + n:
                x = -x
        return x * 2.0

    def summed(x: Any, a: Any, b: Any, c: Any, d: Any, e: Any) -> Any:
        return x * 2.0 + a + b + c + d + e + (0.0 + 1.0 + 2.0 + 3.0 + 4.0)

    def reading(x: Any) -> Any:
        a, b, c, d, e = kept
        return x * 2.0 + a + b + c + d + e + (one + two + three + four + five)

    x = tj.dlarray(np.ones(8, np.float32))
    cases: list[tuple[str, Callable[..., Any], tuple[Any, ...], int]] = [
        ("no guard", plain, (x,), 0),
        ("ten outcomes of if", deciding, (x,), 0),
        ("six arrays as arguments", summed, (x, *kept), 2),
        ("five arrays and five numbers read, one as an argument", reading, (x,), 2),
    ]
    functions = [tj.dlaccelerate(function, audit=False) for _, function, _, _ in cases]
    for function, (_, _, arguments, _) in zip(functions, cases, strict=True):
        for _ in range(10):
            function(*arguments)

    def thousand(function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
        for _ in range(1000):
            function(*arguments)

    seconds: list[list[float]] = [[] for _ in cases]
    for _ in range(repeats):
        for times, function, (_, _, arguments, _) in zip(seconds, functions, cases, strict=True):
            times.append(fastest(lambda f=function, a=arguments: thousand(f, a), 1) / 1000)
    medians = [median(times) for times in seconds]
    return [
        [name, f"{1e6 * own:.2f}", f"{1e6 * (own - medians[against]):.2f}"]
        for (name, _, _, against), own in zip(cases, medians, strict=True)
    ]


def _launch_s(job: TraceJit) -> float:
    """Return what the compiled program takes, on outputs that exist."""
    replay = Replay(record(job.function, *job.arguments), "calls")
    inputs = tuple(x._data for x in job.arguments[0])
    outputs = tuple(replay(inputs))
    launch = replay.launch
    if launch is None:  # not compiled
        return float("nan")

    def run() -> None:
        for _ in range(1000):
            launch(inputs, outputs)

    return fastest(run, 5) / 1000


def starting(repeats: int) -> Rows:
    """Return how long processes take: to import, and from start to end with one replayed step."""
    codes = {
        "import numpy": "import numpy",
        "import tracejit": "import tracejit",
        "import numba": "import numba",
        "import jax": "import jax",
        "import torch": "import torch",
        "mlp-small, replayed once": COLD.format(library="tracejit", workload="mlp-small"),
        WARM: COLD.format(library="tracejit", workload="mlp-small"),
        "mlp-small, jax": COLD.format(library="jax", workload="mlp-small"),
        "mlp-small, torch": COLD.format(library="torch", workload="mlp-small"),
    }
    rows = []
    with TemporaryDirectory() as folder:
        for name, code in codes.items():
            cache = os.path.join(folder, "cache") if name == WARM else "off"
            try:
                if name == WARM:
                    in_process(code, cache)
                seconds = [in_process(code, cache)[0] for _ in range(repeats)]
            except subprocess.CalledProcessError:
                rows.append([name, "-", "-"])  # not installed
                continue
            rows.append([name, f"{min(seconds):.2f}", f"{median(seconds):.2f}"])
    return rows


def in_process(code: str, cache: str = "off") -> tuple[float, str]:
    """Return the seconds that a new process with this code takes, and what it prints.

    `cache` is the folder of the cache on disk, or "off".
    """
    kept = {"TRACEJIT_CACHE": "off"} if cache == "off" else {"TRACEJIT_CACHE_DIR": cache}
    started = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "2"} | kept,
    )
    return time.perf_counter() - started, done.stdout


def fastest(function: Callable[[], Any], repeats: int) -> float:
    """Return the seconds of the fastest of several calls."""
    best = float("inf")
    for _ in range(repeats):
        with collector_paused():
            started = time.perf_counter()
            function()
            best = min(best, time.perf_counter() - started)
    return best


@contextmanager
def collector_paused() -> Iterator[None]:
    """Keep the garbage collector out of what is timed."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def main(argv: list[str] | None = None) -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.internals", description=__doc__.partition(": ")[2]
    )
    parser.add_argument("--quick", action="store_true", help="up to 10,000 ops, processes started once")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the tables")
    args = parser.parse_args(argv)
    counts = COUNTS[:-1] if args.quick else COUNTS
    parts: dict[str, tuple[list[str], Callable[[], Rows]]] = {
        "recording, us for one op": (
            ["ops", "NumPy", "dlarray", "recorded", "beyond NumPy"],
            lambda: recording(counts),
        ),
        "building, us for one op": (["ops", *STAGES, "rest", "all"], lambda: building(counts)),
        "compiling, in a new process": (
            ["workload", "ready s", "kernels", "all s", "each ms"],
            lambda: compiling(("mlp-small",) if args.quick else ("mlp-small", "pinn", "transformer")),
        ),
        "a call, us": (["arrays in and out", "call", "program", "each array"], calling),
        "guards in a replay, us": (["the function has", "call", "beyond"], guarding),
        "a process, s": (["", "min", "median"], lambda: starting(1 if args.quick else 5)),
    }
    written: dict[str, Any] = {"environment": environment()}
    for title, (header, part) in parts.items():
        rows = part()
        written[title] = [dict(zip(header, row, strict=True)) for row in rows]
        print(f"{title}\n{table(header, rows)}\n", flush=True)
    print("  ".join(f"{key} {value}" for key, value in environment().items()))
    if args.json:
        args.json.write_text(json.dumps(written, indent=1) + "\n")


if __name__ == "__main__":
    main()
