# SPDX-License-Identifier: BSD-3-Clause
"""A process that runs one workload in one library: ``python -m benchmarks.worker RUN WORKLOAD``.

It may be another Python than that of tracejit: only what a library needs is imported.

Requests come as lines of JSON on stdin, and each is answered by one line on stdout:

{"do": "versions"}                  versions of Python, of the library and of NumPy
{"do": "reference"}                 the results that a step has to have, by NumPy in float64
{"do": "first"}                     time and results of the first compiled step
{"do": "measure", "seconds": s}     times of one step: means over the parts of a turn of about so many seconds
{"do": "cost"}                      floating-point operations and bytes of a step (of tracejit only)
{"do": "rates"}                     what the machine can do
{"do": "memory"}                    the largest memory so far

An answer {"error": ...} says why there is none.
"""

import importlib.metadata
import json
import os
import platform
import resource
import sys
import tempfile
import time
from dataclasses import asdict
from typing import Any

import numpy as np

from benchmarks.workload import Workload

SEED = 0
PACKAGES = {"tracejit": ("tracejit", "numba", "llvmlite", "scipy"), "jax": ("jax", "jaxlib")}
PARTS = 10  # of a turn; the fastest part is short enough to escape what else the machine does


class Session:
    """The state of a worker between requests."""

    def __init__(self, run: str, workload: Workload | None) -> None:
        self._run = run
        self._workload = workload
        self._job: Any = None
        self._count = self._parts = 0

    def versions(self) -> dict[str, Any]:
        """Return the versions of Python and of the packages that count."""
        library = self._run.partition(" ")[0]
        names = PACKAGES.get(library, (library,))
        return {"Python": platform.python_version()} | {
            name: importlib.metadata.version(name) for name in (*names, "numpy")
        }

    def reference(self) -> dict[str, Any]:
        """Compute what a step has to compute; results are written to a file."""
        from benchmarks.libraries.reference import reference

        workload = self._workload
        assert workload is not None
        return {"results": _written(reference(workload, workload.data(np.random.default_rng(SEED))))}

    def first(self) -> dict[str, Any]:
        """Make the job and run its first step; results are written to a file."""
        from benchmarks.libraries import make_job

        workload = self._workload
        assert workload is not None
        self._job = make_job(self._run, workload, workload.data(np.random.default_rng(SEED)))
        before = _peak_bytes()
        started = time.perf_counter()
        results = self._job.first()
        first_s = time.perf_counter() - started
        return {"first_s": first_s, "results": _written(results), "before_bytes": before}

    def measure(self, seconds: float) -> dict[str, Any]:
        """Time a turn in parts, after a warm-up."""
        run = self._job.run
        part_s = seconds / PARTS
        if not self._count:
            started = time.perf_counter()
            run(1)
            single_s = time.perf_counter() - started
            if single_s < part_s:
                tries = max(1, min(100, int(part_s / single_s)))
                started = time.perf_counter()
                run(tries)
                single_s = (time.perf_counter() - started) / tries
            self._count = max(1, round(part_s / single_s))
            self._parts = max(1, min(PARTS, round(seconds / single_s)))
        if self._parts > 1:
            run(self._count * max(1, self._parts // 3))
        steps_ns = []
        for _ in range(self._parts):
            started_ns = time.perf_counter_ns()
            run(self._count)
            steps_ns.append((time.perf_counter_ns() - started_ns) / self._count)
        return {"steps_ns": steps_ns, "count": self._count}

    def cost(self) -> dict[str, Any]:
        """Return what a step of ours does at least."""
        from benchmarks.cost import cost, record

        return asdict(cost(record(self._job.function, *self._job.arguments)))

    def rates(self) -> dict[str, Any]:
        """Return what the machine can do."""
        from benchmarks.cost import rates

        return asdict(rates())

    def memory(self) -> dict[str, Any]:
        """Return the largest memory of this process so far."""
        return {"peak_bytes": _peak_bytes()}

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """Return the answer to a request."""
        arguments = {key: value for key, value in request.items() if key != "do"}
        try:
            return getattr(self, request["do"])(**arguments)  # type: ignore[no-any-return]
        except ImportError as error:  # of the metadata, too
            return {"error": f"not installed: {error}"}
        except Exception as error:
            if "tracejit" in self._run:
                raise
            return {"error": f"{type(error).__name__}: {error}"}


def _written(results: dict[str, np.ndarray]) -> str:
    """Write arrays into a file; return its path."""
    with tempfile.NamedTemporaryFile(suffix=".npz", delete=False) as file:
        np.savez(file, **results)  # type: ignore[arg-type]
    return file.name


def _peak_bytes() -> int:
    # Linux counts in kilobytes. The process that starts workers is small, so what it leaves here is too.
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def serve(session: Session) -> None:
    """Answer requests until stdin ends."""
    # Libraries print; what they print goes to stderr, and stdout is kept for answers.
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    for line in sys.stdin:
        answers.write(json.dumps(session.answer(json.loads(line))) + "\n")


if __name__ == "__main__":
    from benchmarks.workloads import BY_NAME

    serve(Session(sys.argv[1], BY_NAME.get(sys.argv[2])))
