# SPDX-License-Identifier: BSD-3-Clause
"""Programs of the kinds that people differentiate, value with gradients in float64, beside JAX's under jit.

    python -m benchmarks.bench_programs [--jax-python jax-venv/bin/python] [--only "k*" wave] [--seconds 1] [--rounds 3]

Each library runs a program in a process of its own on one processor, and the processes take turns. Times are the least
and the middle of all calls. Programs with steps run in two ways: kept as a loop (dlscan, lax.scan), and unrolled (by
Python in ours; lax.scan with eight steps in one in JAX's, whose compilation of all steps takes minutes). The ratio is
that of the faster ways: JAX's time over ours. Values and gradients must agree.
"""

import argparse
import fnmatch
import importlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.nested import leaves
from benchmarks.programs import PROGRAMS
from benchmarks.programs.program import Program

WAYS = {False: "loop", True: "unrolled"}
_CLOSE = 1e-7  # of the largest element


def prepared(program: Program, library: str, unroll: bool) -> Callable[[], Any]:
    """Return a call of a program in the words of a library."""
    data = program.data(np.random.default_rng(7))
    if library == "jax":
        import jax  # type: ignore[import-not-found, unused-ignore]

        jax.config.update("jax_enable_x64", True)
        words = importlib.import_module("benchmarks.programs.jaxs").Jaxs(unroll)
        arguments = jax.tree.map(jax.numpy.asarray, data)
        ready = jax.jit(lambda *arguments: program.run(words, *arguments))
        return lambda: jax.block_until_ready(ready(*arguments))
    import tracejit as tj

    words = importlib.import_module("benchmarks.programs.ours").Ours(unroll)
    arguments = tj.tree.map(tj.dlarray, data)
    ready = tj.dlaccelerate(lambda *arguments: program.run(words, *arguments))
    return lambda: ready(*arguments)


def work(name: str, library: str, unroll: bool, seconds: float, results: str) -> None:
    """Run a program for some time, and print the microseconds of its calls; keep its results in a file."""
    program = PROGRAMS[name]
    started = time.perf_counter()
    call = prepared(program, library, unroll)
    for _ in range(1 if library == "jax" else 3):
        result = call()
    first = time.perf_counter() - started
    times: list[float] = []
    until = time.perf_counter() + seconds
    while not times or time.perf_counter() < until:
        before = time.perf_counter()
        call()
        times.append(time.perf_counter() - before)
    np.savez(results, *[np.asarray(leaf) for leaf in leaves(result).values()])
    print(json.dumps({"first": first, "least": 1e6 * min(times), "middle": 1e6 * float(np.median(times))}))


def run(python: str, options: Any, name: str, way: tuple[str, bool], results: Path) -> dict[str, float]:
    """Run a program in a process of its own, on one processor."""
    library, unroll = way
    command = [python, "-m", "benchmarks.bench_programs", "--work", name, library, WAYS[unroll], str(results),
               "--seconds", str(options.seconds)]  # fmt: skip
    if hasattr(os, "sched_setaffinity"):
        command = ["taskset", "-c", str(options.processor), *command]
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "TRACEJIT_THREADS"), "1")
    flags = {"XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false"}
    done = subprocess.run(
        command, env=os.environ | threads | flags, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{name} by {library}, {WAYS[unroll]}:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])  # type: ignore[no-any-return]


def apart(first: Path, second: Path) -> float:
    """Return the largest difference of two files of results, relative to the largest element of each array."""
    with np.load(first) as one, np.load(second) as other:
        if sorted(one) != sorted(other) or any(one[name].shape != other[name].shape for name in one):
            return np.inf
        return max(float(np.abs(one[name] - other[name]).max() / np.abs(other[name]).max()) for name in one)


def report(name: str, found: dict[tuple[str, bool], list[dict[str, float]]], difference: float) -> float:
    """Print a row for each way, and return the ratio of the faster ones."""
    best: dict[str, float] = {}
    for (library, unroll), turns in found.items():
        least, middle, first = (min(turn[key] for turn in turns) for key in ("least", "middle", "first"))
        best[library] = min(best.get(library, np.inf), least)
        way = WAYS[unroll] if PROGRAMS[name].loops else ""
        print(f"{name:28}{library:6}{way:9}{least:12.1f}{middle:12.1f}{first:9.2f}")
    ratio = best["jax"] / best["ours"] if "jax" in best else np.nan
    wrong = f"   THE RESULTS DIFFER by {difference:.0e}" if difference > _CLOSE else ""
    print(f"{name:28}ratio {ratio:.2f}{wrong}", flush=True)
    return ratio


def main(argv: list[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.bench_programs", description=__doc__.partition(".")[0]
    )
    parser.add_argument("--jax-python", help="a Python with JAX")
    parser.add_argument("--only", nargs="*", default=["*"], help="names of programs, or patterns")
    parser.add_argument("--seconds", type=float, default=1.0, help="for each way, in each round")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--processor", type=int, default=0)
    parser.add_argument("--work", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    if options.work:
        name, library, way, results = options.work
        work(name, library, way == WAYS[True], options.seconds, results)
        return
    pythons = {"ours": sys.executable} | ({"jax": options.jax_python} if options.jax_python else {})
    ratios = []
    print(f"{'program':28}{'by':6}{'way':9}{'least, us':>12}{'middle, us':>12}{'first, s':>9}")
    for name, program in PROGRAMS.items():
        if not any(fnmatch.fnmatch(name, pattern) for pattern in options.only):
            continue
        ways = [
            (library, unroll)
            for library in pythons
            for unroll in ([False, True] if program.loops else [False])
        ]
        found: dict[tuple[str, bool], list[dict[str, float]]] = {way: [] for way in ways}
        with tempfile.TemporaryDirectory() as folder:
            files = {way: Path(folder, f"{way[0]}-{way[1]}.npz") for way in ways}
            for _ in range(options.rounds):
                for way in ways:
                    found[way].append(run(pythons[way[0]], options, name, way, files[way]))
            difference = max(apart(file, files[ways[-1]]) for file in files.values())
        ratios.append(report(name, found, difference))
    print(f"geometric mean of {len(ratios)}: {np.exp(np.mean(np.log(ratios))):.2f}")


if __name__ == "__main__":
    main()
