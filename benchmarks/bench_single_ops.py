# SPDX-License-Identifier: BSD-3-Clause
"""Times of single operations: accelerated, uncompiled, NumPy's, and JAX's under jit.

    python -m benchmarks.bench_single_ops [--quick] [--only sort "cum*"] [--jax-python jax-venv/bin/python] [--behind]

A row is one call, such as np.exp(A), of one size and one layout of memory. Elementwise calls are made from the records
of the ops; others are in the tables of `benchmarks/single_ops.py`. Calls of ours and of NumPy take turns in one
process; JAX has a process of its own, which runs before and after. Times are the least of all turns, in microseconds;
ratios are the time of the other one over ours, so that below 1 ours is behind.
"""

import argparse
import fnmatch
import importlib
import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from benchmarks.single_ops import LAYOUTS, SIZES, Row, operands, rows

Call = Callable[[], Any]
_BLOCK_NS = 20_000  # calls that are timed together take at least that long
_TURN_NS = 1_000_000  # a turn takes twice that, or two calls


def function(text: str, row: Row, namespace: dict[str, Any]) -> Callable[..., Any]:
    """Return a function of the operands of a row that computes `text`."""
    made: Callable[..., Any] = eval(f"lambda {', '.join(row.operands)}: {text}", namespace)
    return made


def leaves(result: Any) -> list[np.ndarray]:
    """Return the arrays of a result."""
    return [np.asarray(leaf) for leaf in (result if isinstance(result, (tuple, list)) else [result])]


def added(x: np.ndarray, index: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return a copy of `x` to which values are added at an index, which may occur twice."""
    x = x.copy()
    np.add.at(x, index, values)
    return x


def replaced(x: Any, index: Any, values: Any) -> Any:
    """Return a copy of `x` with other values at an index."""
    x = x.copy()
    x[index] = values
    return x


def digest(result: Any) -> float:
    """Return one number that equal results share: the sum of the sizes of their finite elements."""
    parts = [np.abs(leaf[np.isfinite(leaf)].astype(complex)).sum() for leaf in leaves(result)]
    return float(math.fsum(parts))


def least(calls: Sequence[Call], seconds: float) -> list[float]:
    """Return the least microseconds of each call; the calls take turns for `seconds`.

    A turn is some blocks of calls. Calls that are not timed begin it: the caches hold what the others read and wrote.
    """
    clock = time.perf_counter_ns
    counts = []
    for call in calls:
        took = []
        for _ in range(
            5
        ):  # the first ones find nothing in the caches, and a block of few calls is mostly the clock
            started = clock()
            call()
            took.append(clock() - started)
        counts.append(max(1, _BLOCK_NS // max(1, min(took))))
    found = [math.inf] * len(calls)
    until = clock() + int(seconds * 1e9)
    while True:
        for number, (call, count) in enumerate(zip(calls, counts, strict=True)):
            began = clock()
            while True:
                call()
                started = clock()
                if started - began >= _TURN_NS:
                    break
            timed_until = started + _TURN_NS
            while started < timed_until:
                for _ in range(count):
                    call()
                ended = clock()
                found[number] = min(found[number], (ended - started) / count / 1e3)
                started = ended
        if clock() >= until:
            return found


def measure_ours(row: Row, seconds: float) -> dict[str, Any]:
    """Return times of ours, of the same uncompiled, and of NumPy; and the number that JAX's result is compared with."""
    import tracejit as tj
    from tracejit.array import apply
    from tracejit.ops import OPS

    arrays = operands(row)
    given = [tj.dlarray(array) for array in arrays]
    names = {"np": np, "tj": tj, "apply": apply, "OPS": OPS, "added": added, "replaced": replaced}
    if "special." in row.text:
        names["special"] = importlib.import_module("scipy.special")
    plain = function(row.ours or row.text, row, names)
    reference = function(row.text, row, names)
    ready = tj.dlaccelerate(function(row.ours or row.text, row, names), audit=False)
    with np.errstate(all="ignore"):
        expected = leaves(reference(*arrays))
        for _ in range(4):
            result = ready(*given)
        same = all(
            np.allclose(a, b, rtol=1e-3, atol=1e-3, equal_nan=True)
            for a, b in zip(leaves(result), expected, strict=True)
        )
        times = least([lambda: ready(*given), lambda: plain(*given), lambda: reference(*arrays)], seconds)
    return {**dict(zip(("ours", "uncompiled", "numpy"), times, strict=True)),
            "kernels": ready.stats.kernels, "same": same, "digest": digest(expected)}  # fmt: skip


def measure_jax(row: Row, seconds: float) -> dict[str, float]:
    """Return the time of JAX."""
    import jax  # type: ignore[import-not-found, unused-ignore]
    import jax.numpy as jnp  # type: ignore[import-not-found, unused-ignore]

    jax.config.update("jax_enable_x64", True)
    given = [jnp.asarray(array) for array in operands(row)]
    ready = jax.jit(function(row.jax or row.text, row, {"np": jnp, "jax": jax}))
    result = jax.block_until_ready(ready(*given))
    (us,) = least([lambda: jax.block_until_ready(ready(*given))], seconds)
    return {"jax": us, "digest": digest(result)}


def worker(library: str, seconds: float) -> None:
    """Measure the rows that come as lines of JSON, and answer each with a line."""
    measure = measure_jax if library == "jax" else measure_ours
    for line in sys.stdin:
        try:
            answer = measure(Row.read(line), seconds)
        except Exception as error:  # such as a function that JAX lacks: then the row has no ratio
            answer = {} if library == "jax" else {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)


def ask(library: str, python: str, some: Sequence[Row], seconds: float) -> list[dict[str, Any]]:
    """Return what a process of one library, on one CPU, measures of some rows."""
    command = [python, "-m", "benchmarks.bench_single_ops", "--library", library, "--seconds", str(seconds)]
    if hasattr(os, "sched_setaffinity"):
        command = ["taskset", "-c", str(min(os.sched_getaffinity(0))), *command]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "TRACEJIT_THREADS": "1",
                   "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false"}  # fmt: skip
    lines = "".join(row.written() + "\n" for row in some)
    done = subprocess.run(
        command, input=lines, env=environment, stdout=subprocess.PIPE, text=True, check=True
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def merged(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """Return what is in either, of times the least."""
    times = {name: min(old[name], new[name]) for name in ("ours", "uncompiled", "numpy", "jax")
             if name in old and name in new}  # fmt: skip
    return {**old, **new, **times}


def ratios(found: dict[str, Any]) -> dict[str, float]:
    """Return the times of the others over ours."""
    return {name: found[name] / found["ours"] for name in ("numpy", "jax", "uncompiled") if name in found}


def table(some: Sequence[Row], found: Sequence[dict[str, Any]], behind: bool) -> str:
    """Return the text of the table, of the rows behind only if `behind`, the worst first; and the geometric means."""
    lines = [
        f"{'call':44} {'layout':11} {'size':>8} {'ours, us':>10} {'NumPy':>7} {'JAX':>7} {'uncompiled':>10}"
    ]
    lines += [
        f"{row.name}, {row.layout}: {t['error']}" for row, t in zip(some, found, strict=True) if "error" in t
    ]
    pairs = [(row, times) for row, times in zip(some, found, strict=True) if "ours" in times]
    timed = pairs
    if behind:
        pairs = sorted([p for p in pairs if min(ratios(p[1]).values()) < 1],
                       key=lambda p: min(ratios(p[1]).values()))  # fmt: skip
    for row, times in pairs:
        each = ratios(times)
        cells = [f"{each[name]:.2f}" if name in each else "-" for name in ("numpy", "jax", "uncompiled")]
        lines.append(f"{row.name:44} {row.layout:11} {row.size:8} {times['ours']:10.2f} {cells[0]:>7} {cells[1]:>7} "
                     f"{cells[2]:>10}{'' if times['same'] else '  THE RESULTS DIFFER'}")  # fmt: skip
    for size in dict.fromkeys(row.size for row in some):
        for name in ("numpy", "jax", "uncompiled"):
            logs = [math.log(ratios(t)[name]) for row, t in timed if row.size == size and name in t]
            if logs:
                late = sum(each < 0 for each in logs)
                lines.append(f"{size} elements, {name}: geometric mean {math.exp(math.fsum(logs) / len(logs)):.2f}, "
                             f"{late} of {len(logs)} rows behind")  # fmt: skip
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.bench_single_ops", description=__doc__.partition(".")[0]
    )
    parser.add_argument(
        "--only", nargs="+", metavar="NAME", help="calls with these words or patterns in them"
    )
    parser.add_argument("--quick", action="store_true", help="10^4 elements, contiguous")
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES))
    parser.add_argument("--layouts", nargs="+", choices=LAYOUTS, default=list(LAYOUTS))
    parser.add_argument("--seconds", type=float, default=0.03, help="for each row and round")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument(
        "--behind", action="store_true", help="only rows where ours is behind, the worst first"
    )
    parser.add_argument("--jax-python", help="a Python with JAX")
    parser.add_argument("--json", help="a file for all that was measured")
    parser.add_argument("--library", choices=("ours", "jax"), help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.library:
        worker(options.library, options.seconds)
        return
    sizes, layouts = ([10_000], ["contiguous"]) if options.quick else (options.sizes, options.layouts)
    some = [
        row for row in rows(sizes, layouts)
        if not options.only or any(fnmatch.fnmatch(row.name, f"*{word}*") for word in options.only)
    ]  # fmt: skip
    found: list[dict[str, Any]] = [{} for _ in some]
    for _ in range(options.rounds):
        for library, python in (("jax", options.jax_python), ("ours", sys.executable)):
            if python:
                answers = ask(library, python, some, options.seconds)
                found = [merged(old, new) for old, new in zip(found, answers, strict=True)]
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(
                [{**row._asdict(), **times} for row, times in zip(some, found, strict=True)], file, indent=1
            )
    print(table(some, found, options.behind))


if __name__ == "__main__":
    main()
