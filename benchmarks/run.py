# SPDX-License-Identifier: BSD-3-Clause
"""Runs workloads: one process for each library, in turns on the same machine, results compared with NumPy's.

Each library may have a Python of its own. Who is not at work is stopped, so that each library has the machine for
itself in its turn.
"""

import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from types import TracebackType
from typing import Any

import numpy as np

from benchmarks.cost import Cost, Rates
from benchmarks.workload import Workload

OURS = "tracejit"
PEERS = ("jax", "torch")
ROOT = Path(__file__).parent.parent


@dataclass(frozen=True)
class Settings:
    """The settings of a measurement.

    threads     of each library
    rounds      how many times each way to run a workload has its turn
    turn_s      how long a turn is measured
    limit_s     how long a first call may take before that way is given up
    compilers   whether torch.compile runs too
    peers       whether other libraries run
    pythons     the Python of a library, if it is not this one
    """

    threads: int = 2
    rounds: int = 7
    turn_s: float = 0.1
    limit_s: float = 120.0
    compilers: bool = True
    peers: bool = True
    pythons: dict[str, str] = field(default_factory=dict)


@dataclass
class Measured:
    """The times of one way to run a workload."""

    first_s: float = 0.0
    parts_us: list[float] = field(default_factory=list)
    memory_bytes: int = 0  # the largest
    grown_bytes: int = 0  # by how much the first call and later ones raised it
    note: str = ""
    is_wrong: bool = False  # its results are not NumPy's, so it has no times

    @property
    def median_us(self) -> float:
        """Median of the parts of all turns."""
        return median(self.parts_us) if self.parts_us else float("nan")

    @property
    def min_us(self) -> float:
        """Fastest part of a turn."""
        return min(self.parts_us, default=float("nan"))


@dataclass
class Row:
    """A workload measured."""

    workload: Workload
    runs: dict[str, Measured]
    cost: Cost

    def best_peer(self, which: str = "median_us") -> tuple[str, float] | None:
        """Return the fastest peer whose results are right, and its time, or None without any."""
        times = {
            name: getattr(found, which)
            for name, found in self.runs.items()
            if name != OURS and found.parts_us
        }  # fmt: skip
        return min(times.items(), key=lambda item: item[1]) if times else None

    def ratio(self, which: str = "median_us") -> float | None:
        """Return how many times faster than the best peer we are."""
        best = self.best_peer(which)
        return best[1] / getattr(self.runs[OURS], which) if best else None


class Worker:
    """A process that answers requests; see worker.py."""

    def __init__(self, run: str, workload: str, settings: Settings) -> None:
        threads = settings.threads
        environment = os.environ | dict.fromkeys(
            ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), str(threads)
        )
        environment["TRACEJIT_CACHE"] = "off"  # the first step is one of a machine that knows nothing yet
        self._process = subprocess.Popen(
            [settings.pythons.get(library_of(run), sys.executable), "-m", "benchmarks.worker", run, workload],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT, env=environment,
            text=True, bufsize=1,
        )  # fmt: skip
        self._output = self._process.stdout
        # As many processors as threads, before the library is imported: JAX counts processors, not settings.
        os.sched_setaffinity(self._process.pid, sorted(os.sched_getaffinity(0))[:threads])

    def __enter__(self) -> "Worker":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def ask(self, limit_s: float | None = None, **request: Any) -> dict[str, Any]:
        """Return the answer to a request, {"error": ...} if the process ended or took too long."""
        assert self._process.stdin is not None and self._output is not None
        self._process.send_signal(signal.SIGCONT)
        try:
            self._process.stdin.write(json.dumps(request) + "\n")
        except BrokenPipeError:
            return {"error": self._last_words()}
        ready, _, _ = select.select([self._output], [], [], limit_s)
        if not ready:
            self.close()
            return {"error": f"no answer within {limit_s:g} s"}
        line = self._output.readline()
        if not line:
            return {"error": self._last_words()}
        # Threads that look for work some time after their turn would take part of the next one's CPU.
        self._process.send_signal(signal.SIGSTOP)
        return json.loads(line)  # type: ignore[no-any-return]

    def _last_words(self) -> str:
        assert self._process.stderr is not None
        lines = self._process.stderr.read().strip().splitlines()
        return f"the process ended: {lines[-1] if lines else 'without a word'}"

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.communicate()


def measure(workload: Workload, settings: Settings) -> Row:
    """Run a workload in all libraries.

    Raises:
        RuntimeError: if tracejit itself fails, or its results are not NumPy's.
    """
    expected = expected_results(workload, settings)
    names = [
        name
        for name in workload.runs
        if name == OURS or (settings.peers and (settings.compilers or name != "torch compile"))
    ]
    runs = {name: Measured() for name in names}
    workers = {}
    try:
        for name in names:
            worker = Worker(name, workload.name, settings)
            answer = worker.ask(settings.limit_s, do="first")
            if "error" in answer:
                worker.close()
                if name == OURS:
                    raise RuntimeError(f"{workload.name}: {answer['error']}")
                runs[name].note = answer["error"]
                continue
            runs[name].first_s = answer["first_s"]
            runs[name].grown_bytes = -answer["before_bytes"]
            runs[name].note = differences(taken(answer["results"]), expected, workload.tolerance)
            runs[name].is_wrong = bool(runs[name].note)
            if runs[name].is_wrong:
                worker.close()
                if name == OURS:
                    raise RuntimeError(f"{workload.name}: {runs[name].note}")
            else:
                workers[name] = worker
        cost = Cost(**workers[OURS].ask(do="cost"))
        for _ in range(settings.rounds):
            for name, worker in workers.items():
                answer = worker.ask(do="measure", seconds=settings.turn_s)
                if "error" in answer:
                    runs[name].note = answer["error"]
                    continue
                runs[name].parts_us += [step_ns / 1e3 for step_ns in answer["steps_ns"]]
        for name, worker in workers.items():
            peak = worker.ask(do="memory").get("peak_bytes", 0)
            runs[name].memory_bytes = peak
            runs[name].grown_bytes += peak
    finally:
        for worker in workers.values():
            worker.close()
    return Row(workload, runs, cost)


def library_of(run: str) -> str:
    """Return the library of a way to run a workload: the first word of its name."""
    return run.partition(" ")[0]


def expected_results(workload: Workload, settings: Settings) -> dict[str, np.ndarray]:
    """Return the results that a workload's step has to have.

    Raises:
        RuntimeError: if NumPy and tracejit, uncompiled, do not agree.
    """
    with Worker("numpy", workload.name, settings) as worker:
        answer = worker.ask(do="reference")
    if "error" in answer:
        raise RuntimeError(answer["error"])
    return taken(answer["results"])


def versions(settings: Settings) -> dict[str, dict[str, str]]:
    """Return the versions of each library, of its Python and of its NumPy; {"error": ...} where it is not installed."""
    found = {}
    for library in (OURS, *(PEERS if settings.peers else ())):
        with Worker(library, "", settings) as worker:
            found[library] = worker.ask(do="versions")
    return found


def machine_rates(settings: Settings) -> Rates:
    """Return what the machine can do with a number of threads."""
    with Worker("rates", "", settings) as worker:
        return Rates(**worker.ask(do="rates"))


def best_rates(found: Sequence[Rates]) -> Rates:
    """Return the best of several measurements."""
    kinds = found[0].flops_per_s
    return Rates(
        {kind: max(rates.flops_per_s[kind] for rates in found) for kind in kinds},
        max(rates.bytes_per_s for rates in found),
    )


def differences(found: dict[str, np.ndarray], expected: dict[str, np.ndarray], tolerance: float) -> str:
    """Return in words where results differ by more than a share of the largest magnitude, or nothing."""
    if set(found) != set(expected):
        return f"results differ: {sorted(set(found) ^ set(expected))} are not in both"
    for name, want in expected.items():
        have = found[name]
        if have.shape != want.shape:
            return f"results differ: {name} is {have.shape}, NumPy's {want.shape}"
        scale = float(np.abs(want).max(initial=0.0))
        error = float(np.abs(have.astype(np.float64) - want).max(initial=0.0))
        if not error <= tolerance * scale:  # NaN is a difference too
            return f"results differ: {name} by {error:.1e} of {scale:.1e}"
    return ""


def taken(path: str) -> dict[str, np.ndarray]:
    """Return the arrays that a worker left in a file, and remove the file."""
    with np.load(path) as file:
        arrays = dict(file)
    Path(path).unlink()
    return arrays
