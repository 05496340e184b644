# SPDX-License-Identifier: BSD-3-Clause
"""GFLOP/s of matrix products: kernels of tracejit beside OpenBLAS on one thread and on two.

    python benchmarks/bench_products.py [--dtype float64] [--repeats 40] [--threads 1 2]

Each line is a product (m, k) (k, n): plain (NN), with a left factor by columns (TN, as in x' ct) and with a right one
by columns (NT, as in ct W', which is turned first); as a whole, by panels, and by BLAS. Times are the least and the
median of the repeats, in us; the contenders take turns, so that what else the machine does meets them alike. The number
of BLAS threads is fixed when BLAS is loaded, so there is a process for each.
"""

import argparse
import ctypes
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
from tracejit.kernels.executor.machine import call_kernel

SIZES = (
    (128, 64, 64), (64, 128, 128), (64, 64, 64), (32, 4, 32), (32, 32, 32), (32, 32, 2), (128, 128, 10), (128, 10, 128),
    (1000, 20, 20), (1000, 2, 20), (20, 1000, 20), (1000, 20, 1), (1, 128, 128), (4, 128, 128), (100, 100, 100),
    (128, 128, 128), (160, 160, 160), (256, 256, 256), (128, 784, 512), (512, 512, 512),
)  # fmt: skip

Call = tuple[int, Sequence[int]]  # the address of a kernel, and its arguments


def calls_of(m: int, k: int, n: int, dtype: str) -> tuple[dict[str, list[Call]], list[np.ndarray]]:
    """Return, by name, the kernels to launch for each way to multiply, and the arrays they work on."""
    from tracejit.codegen.emit import _adapter
    from tracejit.codegen.templates import gemm
    from tracejit.compile.registry import registry
    from tracejit.passes.loops.launches import KernelLaunch
    from tracejit.passes.loops.nest import Access
    from tracejit.passes.loops.products import WIDE_BYTES
    from tracejit.runtime.table import _symbol_address

    kind = np.dtype(dtype)
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((m, k)).astype(kind), rng.standard_normal((k, n)).astype(kind)
    arrays = [
        x,
        np.ascontiguousarray(x.T),
        y,
        np.ascontiguousarray(y.T),
        np.empty_like(y),
        np.empty((m, n), kind),
    ]
    x_, xt, y_, yt, turned, out = [array.ctypes.data for array in arrays]
    product, panels, transpose = (
        registry.address(f) for f in (gemm.product(kind, m, n), gemm.panels(kind), gemm.transpose(kind))
    )
    pointer = Access(None, 0, (), kind)  # type: ignore[arg-type]
    blas = registry.address(_adapter(KernelLaunch("gemm", (0,) * 11, (pointer,) * 3, 1, None, "blas")))
    routine = _symbol_address("sgemm" if kind.itemsize == 4 else "dgemm")
    end = (n, 0, 0)  # distances in the result, and whether to add
    calls: dict[str, list[Call]] = {
        "NN": [(product, (1, m, n, k, k, 1, 0, n, 0, *end, x_, y_, out))],
        "TN": [(product, (1, m, n, k, 1, m, 0, n, 0, *end, xt, y_, out))],
        "NT": [
            (transpose, (1, n, k, k, 0, yt, turned)),
            (product, (1, m, n, k, k, 1, 0, n, 0, *end, x_, turned, out)),
        ],
        "NN blas": [(blas, (routine, 1, m, n, k, 0, k, 0, 0, n, 0, 0, x_, y_, out))],
        "TN blas": [(blas, (routine, 1, m, n, k, 1, m, 0, 0, n, 0, 0, xt, y_, out))],
        "NT blas": [(blas, (routine, 1, m, n, k, 0, k, 0, 1, k, 0, 0, x_, yt, out))],
    }
    if n * kind.itemsize >= WIDE_BYTES:
        calls |= {
            "NN panels": [(panels, (1, m, n, k, k, 1, 0, n, 1, 0, *end, x_, y_, out))],
            "TN panels": [(panels, (1, m, n, k, 1, m, 0, n, 1, 0, *end, xt, y_, out))],
            "NT panels": [(panels, (1, m, n, k, k, 1, 0, 1, k, 0, *end, x_, yt, out))],
        }
    return calls, arrays


def measure(m: int, k: int, n: int, dtype: str, repeats: int) -> dict[str, tuple[float, float]]:
    """Return the least and the median time of each way, in us."""
    run = looped()
    named, arrays = calls_of(m, k, n, dtype)
    count = max(1, int(2e7 / max(2 * m * n * k, 1e4)))
    times: dict[str, list[float]] = {name: [] for name in named}
    for _ in range(repeats):
        for name, calls in named.items():
            total = 0.0
            for address, arguments in calls:
                words = np.array(arguments, np.intp)
                started = time.perf_counter_ns()
                run(address, words.ctypes.data, count)
                total += (time.perf_counter_ns() - started) / count / 1000
            times[name].append(total)
    del arrays
    return {name: (min(found), float(np.median(found))) for name, found in times.items()}


def _loop(address: int, arguments: int, count: int) -> None:  # an int64 function
    for _ in range(count):
        call_kernel(address, arguments)


@cache
def looped() -> Any:
    """Return a compiled function (address, arguments, count) that calls a kernel `count` times."""
    from tracejit.compile import machine_words, objects

    lowered = machine_words.lower(_loop, "benchmark_loop")
    code, needs = lowered.object_code()
    address = objects.load(lowered.symbol, code, needs)
    return ctypes.CFUNCTYPE(None, ctypes.c_ssize_t, ctypes.c_void_p, ctypes.c_ssize_t)(address)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dtype", default="float32", choices=("float32", "float64"))
    parser.add_argument("--repeats", type=int, default=40)
    parser.add_argument("--threads", type=int, nargs="*", default=[1, 2], help="numbers of BLAS threads")
    arguments = parser.parse_args()
    if arguments.threads:
        for threads in arguments.threads:
            print(
                f"OpenBLAS on {threads} thread(s), {arguments.dtype}; us least (median) GFLOP/s", flush=True
            )
            command = [
                sys.executable,
                __file__,
                "--dtype",
                arguments.dtype,
                "--repeats",
                str(arguments.repeats),
            ]
            environment = {**os.environ, "OPENBLAS_NUM_THREADS": str(threads)}
            subprocess.run([*command, "--threads"], env=environment, check=True)
        return
    for m, k, n in SIZES:
        found = measure(m, k, n, arguments.dtype, arguments.repeats)
        parts = []
        for name, (least, median) in found.items():
            parts.append(f"{name} {least:8.2f} ({median:8.2f}) {2 * m * n * k / least / 1000:5.0f}")
        print(f"({m}, {k}) ({k}, {n})".ljust(24), " | ".join(parts), flush=True)


if __name__ == "__main__":
    main()
